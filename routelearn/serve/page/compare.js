// Two answers to the same stops: which routes are the same in colour, which legs only one of them has.

import { ends } from "./keep.js";

const pair = (one, other) => JSON.stringify([String(one), String(other)].sort());

export const legs = (answer) =>
  new Set(answer.routes.flatMap((route) => ends(answer, route).slice(1).map((to, i) => pair(ends(answer, route)[i], to))));

// Colours of the second answer's routes: that of the first's route with which they share most stops, each once.
export function matched(first, second) {
  const pairs = second.routes.flatMap((route, b) => {
    const own = new Set(route.stops.map(String));
    return first.routes.map((other, a) => ({ a, b, shared: other.stops.filter((stop) => own.has(String(stop))).length }));
  });
  pairs.sort((one, other) => other.shared - one.shared);
  const [colours, taken] = [new Map(), new Set()];
  for (const { a, b, shared } of pairs) {
    if (!shared || taken.has(a) || colours.has(b)) continue;
    colours.set(b, a);
    taken.add(a);
  }
  let next = first.routes.length;
  return second.routes.map((_, b) => colours.get(b) ?? next++);
}

// The legs of an answer, as pairs of ids, that the other has not.
export function onlyHere(answer, other) {
  const there = legs(other);
  return answer.routes.flatMap((route, i) => {
    const visits = ends(answer, route);
    return visits.slice(1).map((to, k) => ({ route: i, from: visits[k], to })).filter(({ from, to }) => !there.has(pair(from, to)));
  });
}

// How much an answer is from the one on the other map.
export function against(answer, rival, info) {
  const share = (100 * (answer.objective - rival.objective)) / Math.abs(rival.objective || 1);
  if (Math.abs(share) < 0.005) return "the same as beside";
  return `${Math.abs(share).toFixed(2)} % ${share > 0 ? "more" : "less"} than beside${share > 0 === info.maximise ? " (better)" : ""}`;
}
