// What a plan of a round says of its visits, in words and as a scene for the map.

import { colour, plural, show } from "./dom.js";

export const short = (moment) => moment.replace(/(\d\d:\d\d):\d\d\b/, "$1");

// The windows of a stop that close it at some time: [from, to] in seconds or null, and in words.
export const windows = (answer, stop) =>
  answer.drawing.stops[stop].windows.filter(([low, , high]) => low !== null || high !== null)
    .map(([low, from, high, to]) => ({ low, high, words: `${short(from) || "…"}–${short(to) || "…"}` }));

export const wrong = (answer, route, visit) =>
  (answer.violations || []).filter((one) => one.route === route + 1 && one.visit === visit).map((one) => one.words);

export function about(answer, route, k) {
  const visit = answer.drawing.routes[route].visits[k];
  const open = visit.stop === null ? [] : windows(answer, visit.stop).map((one) => `open ${one.words}`);
  const times = [`arrives ${visit.arrival[1]}`, visit.kind === "end" ? "" : `leaves ${visit.departure[1]}`];
  return [visit.kind === "stop" ? visit.id : `${visit.kind} ${visit.id}`, ...open, ...times, ...wrong(answer, route, k)].filter(Boolean);
}

// What a vehicle does, in a line: stops, load, length, from when to when.
export function summary(answer, vehicles, unit, r) {
  const route = answer.drawing.routes[r];
  const room = vehicles.find((one) => String(one.id) === route.vehicle)?.capacity;
  const ends = [route.visits[0].departure[1], route.visits.at(-1).arrival[1]].map(short);
  return [
    plural(route.visits.filter((visit) => visit.kind === "stop").length, "stop"), `load ${show(route.load)}${room == null ? "" : ` of ${show(room)}`}`,
    `${show(route.length)}${unit}`, ends.every(Boolean) && `${ends[0]} to ${ends[1]}`,
  ].filter(Boolean).join(" · ");
}

// The first and the last moment of the plan and of the windows that its stops have.
export function horizon(answer) {
  const visits = answer.drawing.routes.flatMap((route) => route.visits.flatMap((visit) => [visit.arrival[0], visit.departure[0]]));
  const open = answer.drawing.stops.flatMap((_, stop) => windows(answer, stop).flatMap(({ low, high }) => [low, high]));
  const moments = [...visits, ...open].filter((at) => at !== null);
  return moments.length ? [Math.min(...moments), Math.max(...moments)] : null;
}

const total = (value) => [value ?? 0].flat(9).reduce((sum, part) => sum + (Number(part) || 0), 0);

// The sizes of dots: the area is the amount that is brought and taken.
function sizes(round) {
  const amounts = new Map(round.stops.map((stop) => [String(stop.id), total(stop.delivery) + total(stop.pickup)]));
  const most = Math.max(0, ...amounts.values());
  return (id) => 8 + (most > 0 ? 4 * Math.sqrt((amounts.get(String(id)) || 0) / most) : 0);
}

// The round without a plan: its stops and depots, where the file has places.
export function bare(round) {
  const globe = round.stops.every((stop) => stop.lat != null);
  const size = sizes(round);
  const stop = (one, depot) => ({
    at: globe ? [one.lat, one.lon] : [one.x, one.y], key: `${depot ? "depot " : ""}${one.id}`, depot, radius: depot ? 9 : size(one.id),
    kind: "free", words: [String(one.id)], data: { id: one.id }, label: String(one.id), rank: depot ? Infinity : size(one.id),
  });
  const depots = round.depots || (round.depot ? [round.depot] : []);
  const stops = [...round.stops.map((one) => stop(one, false)), ...depots.map((one) => stop(one, true))];
  return { globe, lines: [], stops: stops.filter(({ at }) => at.every(Number.isFinite)), invite: ["The stops of this round have no places;", "the plan will be drawn by its legs."] };
}

// A plan; `only`: of one route alone, for its driver.
export function planned(answer, round, only = null) {
  const { places, latlon, routes, stops, ends, unassigned } = answer.drawing;
  const at = (place) => (latlon ? latlon[place] : places[place].slice(1));
  const size = sizes(round);
  const span = horizon(answer);
  const ring = (stop) => span && windows(answer, stop).map(({ low, high }) =>
    [low ?? span[0], high ?? span[1]].map((time) => (time - span[0]) / (span[1] - span[0] || 1)));
  const shown = routes.map((route, r) => [route, r]).filter(([, r]) => only === null || r === only);
  const lines = shown.map(([route, r]) => (
    { at: route.visits.filter((visit) => visit.place !== null).map((visit) => at(visit.place)), stroke: colour(r), data: { route: r }, words: [route.label] }));
  const dots = shown.flatMap(([route, r]) => {
    let number = 0;
    return route.visits.flatMap((visit, k) => {
      if (visit.kind !== "stop") return [];
      number += 1;
      const bad = wrong(answer, r, k).length;
      return [{
        at: at(visit.place), key: `${r} ${k}`, radius: size(visit.id), fill: bad ? null : colour(r), kind: bad ? "wrong" : "", number,
        words: [`${number}. ${about(answer, r, k)[0]}, ${route.label}`, ...about(answer, r, k).slice(1)], data: { id: visit.id }, label: visit.id, rank: size(visit.id),
        windows: ring(visit.stop),
      }];
    });
  });
  const left = only !== null ? [] : unassigned.map(([stop, reason]) => (
    { at: at(stops[stop].place), key: `left ${stop}`, radius: size(stops[stop].id), kind: "left", words: [stops[stop].id, `left out: ${reason}`], data: { id: stops[stop].id }, label: stops[stop].id, rank: 99 }));
  const used = new Set(shown.flatMap(([route]) => route.visits.map((visit) => visit.place)));
  const depots = ends.filter((place) => only === null || used.has(place)).map((place) => (
    { at: at(place), key: `depot ${place}`, depot: true, radius: 9, words: [places[place][0]], label: places[place][0], rank: Infinity }));
  return { globe: Boolean(latlon), lines, stops: [...left, ...dots, ...depots] };
}
