// An instance on a map with its answer beside it: routes in colours, and, while watching, the decoder's probabilities.

import { against, matched, onlyHere } from "./compare.js";
import { WIDE, colour, element, make, plural, show } from "./dom.js";
import { columns, limits, written } from "./instance.js";
import { ends } from "./keep.js";
import { MapView } from "./map.js";

const INVITE = matchMedia("(pointer: coarse)").matches
  ? ["Tap to place stops", "or take an example.", "Drag to look around, two fingers zoom."]
  : ["Click to place stops", "or take an example.", "Drag to look around, wheel to zoom."];

export class Board {
  constructor(figure, name, handlers) {
    Object.assign(this, { figure, handlers, instance: null, method: "" });
    this.map = new MapView(figure.appendChild(make("div")), name, handlers);
    this.caption = make("figcaption");
    this.chart = element("svg", { class: "chart", viewBox: "0 0 100 30", preserveAspectRatio: "none", role: "img" });
    this.list = make("ul", { className: "routes" });
    figure.append(this.caption, this.chart, this.list);
    this.map.svg.addEventListener("pointerover", (event) => this.light(event.target.dataset?.route ?? null, true));
    this.map.svg.addEventListener("pointerleave", () => this.light(null));
  }

  get moving() {
    return this.map.moving;
  }

  // `rival`: the answer on the other map, to compare with; `second`: this map takes its colours from there.
  draw(instance, info, answer, step, rival = null, second = false) {
    const whole = this.instance !== instance;
    this.instance = instance;
    this.colours = answer && rival && second ? matched(rival, answer) : answer?.routes.map((_, i) => i) ?? [];
    const differ = answer && rival ? onlyHere(answer, rival) : [];
    this.map.draw(this.#scene(instance, info, answer, step, differ), whole && !this.moving);
    this.#tell(answer, info, rival, differ.length);
  }

  #scene(instance, info, answer, step, differ) {
    const at = new Map(instance.stops.map((stop) => [String(stop.id), [stop.a, stop.b]]));
    const lines = (answer?.routes || []).map((route, i) => (
      { at: ends(answer, route).map((name) => at.get(String(name))).filter(Boolean), stroke: colour(this.colours[i]), data: { route: i }, words: [describe(route, i, answer, info)] }));
    for (const leg of differ) lines.push({ at: [leg.from, leg.to].map((name) => at.get(String(name))), kind: "differs", data: { route: leg.route } });
    const visits = new Map((answer?.routes || []).flatMap((route, i) => route.stops.map((name, k) => [String(name), [i, k]])));
    const base = instance.stops.length > 300 ? 3.5 : instance.stops.length > 80 ? 5 : 7;
    const size = sizes(instance, info, base);
    const masked = new Map(step ? step.masked : []);
    const stops = instance.stops.map((stop, i) => {
      const depot = info.has_depot && i === instance.depot;
      const node = step ? step.order.indexOf(i) : -1;
      const [route, k] = visits.get(String(stop.id)) || [];
      const left = answer && route === undefined && !depot;
      const words = this.#words(stop, info, depot, step, node, masked.get(node));
      if (route !== undefined) words.push(`route ${route + 1}, visit ${k + 1} of ${answer.routes[route].stops.length}`);
      if (left) words.push("left out");
      return {
        at: [stop.a, stop.b], key: i, depot, radius: depot ? base + 3 : size[i], words, data: { index: i, ...(route === undefined ? {} : { route }) },
        label: String(stop.id), rank: depot ? Infinity : size[i], ...(step ? share(step.probabilities[node], stop.id) : {}), kind: [masked.has(node) && "masked", left && "left"].filter(Boolean).join(" "),
        fill: route === undefined || depot ? null : colour(this.colours[route]),
      };
    });
    const extra = step ? (map, points) => thought(map, step, points) : null;
    return { globe: instance.globe, lines, stops, extra, invite: this.handlers?.place ? INVITE : null };
  }

  #words(stop, info, depot, step, node, why) {
    const known = columns(info).filter((one) => (one.at_depot || !depot) && !one.revealed_on_visit && stop.values[one.name] != null);
    const words = [`${depot ? "depot" : "stop"} ${stop.id}`, ...known.map((one) => `${one.title} ${written(stop.values[one.name])}`)];
    if (why) words.push(`masked: ${why}`);
    else if (step) words.push(`probability ${(100 * step.probabilities[node]).toFixed(2)} %`);
    return words;
  }

  // `found`: bring its line of the list into view, too.
  light(route, found = false) {
    const lit = route === null || route === undefined ? null : Number(route);
    this.map.svg.querySelectorAll(".route").forEach((path) => path.classList.toggle("dim", lit !== null && Number(path.dataset.route) !== lit));
    [...this.list.children].forEach((item, i) => item.classList.toggle("lit", i === lit));
    if (found && WIDE.matches) this.list.children[lit]?.scrollIntoView({ block: "nearest" });
  }

  #tell(answer, info, rival, differing) {
    this.caption.replaceChildren();
    this.list.replaceChildren();
    this.chart.replaceChildren();
    this.chart.style.display = answer?.history.length > 1 ? "" : "none";
    this.figure.classList.toggle("answered", Boolean(answer));
    if (!answer) return;
    const unit = answer.unit ? ` ${answer.unit}` : "";
    const best = info.maximise ? `prize ${show(answer.objective)}` : `cost ${show(answer.objective)}${unit}`;
    const more = [`length ${show(answer.length)}${unit}`, plural(answer.routes.length, "route")];
    if (answer.unvisited.length && answer.depot !== null) more.push(`${answer.unvisited.length} left out`);
    if (rival) more.push(against(answer, rival, info), differing ? `${plural(differing, "leg")} only here (striped)` : "the same legs");
    const last = answer.history.at(-1);
    if (last) more.push(`by ${last.by} after ${last.seconds.toFixed(2)} s`);
    const notes = [this.method, ...answer.notes].filter(Boolean).join(" · ");
    this.caption.append(make("strong", { textContent: best }), ` ${more.join(" · ")} `, make("div", { className: "notes", textContent: notes }));
    this.list.append(...answer.routes.map((route, i) => {
      const order = make("small", { className: "order", textContent: ends(answer, route).join(" → ") });
      const item = make("li", { tabIndex: 0 }, describe(route, i, answer, info), order);
      item.style.borderColor = colour(this.colours[i]);
      for (const kind of ["pointerenter", "focus"]) item.addEventListener(kind, () => this.light(i));
      for (const kind of ["pointerleave", "blur"]) item.addEventListener(kind, () => this.light(null));
      return item;
    }));
    this.#curve(answer);
  }

  // Cost over time: each better solution holds until the next.
  #curve(answer) {
    const { history } = answer;
    if (history.length < 2) return;
    const end = Math.max(answer.seconds, history.at(-1).seconds) || 1;
    const costs = history.map((event) => event.cost);
    const [low, high] = [Math.min(...costs), Math.max(...costs)];
    const point = (seconds, cost) => `${(100 * seconds) / end},${28 - (26 * (cost - low)) / (high - low || 1)}`;
    const corners = history.flatMap((event, i) => [...(i ? [point(event.seconds, history[i - 1].cost)] : []), point(event.seconds, event.cost)]);
    const line = [...corners, point(end, costs.at(-1))].join(" ");
    this.chart.setAttribute("aria-label", `cost from ${show(high)} to ${show(low)} in ${end.toFixed(2)} s`);
    this.chart.append(element("polygon", { points: `${line} 100,30 ${corners[0].split(",")[0]},30` }), element("polyline", { points: line }));
  }
}

// Dots by what the stops want or offer: area for amount, whatever the unit.
function sizes(instance, info, base) {
  const told = columns(info).filter((one) => !one.revealed_on_visit && ["amount", "prize"].includes(one.unit));
  const one = told.find(({ name }) => instance.stops.some((stop) => stop.values[name] != null));
  const values = instance.stops.map((stop) => [(one && stop.values[one.name]) ?? 0].flat(9).reduce((sum, part) => sum + Math.max(0, part), 0));
  const most = Math.max(...values);
  return values.map((value) => (most > 0 ? base * (0.6 + 0.75 * Math.sqrt(value / most)) : base));
}

const halo = (chance) => 8 + 26 * Math.sqrt(chance);

// Names of stops that have a say are placed first, with the percentage, outside the halo.
const share = (chance, id) =>
  chance >= 0.02 ? { label: `${id} ${(100 * chance).toFixed(chance < 0.1 ? 1 : 0)} %`, rank: 1e6 * (1 + chance), reach: halo(chance), named: "share" } : {};

// The way so far, the next leg, and a halo for every probability.
function thought(map, step, points) {
  const { lines, casings, halos } = map.layers;
  const corners = (nodes) => nodes.map((node) => points[step.order[node]].join(",")).join(" ");
  if (step.built.length > 1) {
    casings.append(element("polyline", { class: "casing", points: corners(step.built) }));
    lines.append(element("polyline", { class: "route built", points: corners(step.built) }));
  }
  if (step.built.length) lines.append(element("polyline", { class: "route next", points: corners([step.built.at(-1), step.chosen]) }));
  step.probabilities.forEach((chance, node) => {
    const [cx, cy] = points[step.order[node]];
    if (chance > 0.001) halos.append(element("circle", { class: "halo", cx, cy, r: halo(chance) }));
    if (node === step.chosen) halos.append(element("circle", { class: "chosen", cx, cy, r: 14 }));
  });
}

function describe(route, i, answer, info) {
  const holds = limits(info).find((one) => one.of === "vehicle" && one.unit === "amount" && !one.shape.length);
  const room = holds && answer.limits[holds.name];
  const load = route.load == null ? "" : `, load ${show(route.load)}${room ? ` of ${show(room)}` : ""}`;
  return `route ${i + 1}: ${plural(route.stops.length, "stop")}, length ${show(route.length)}${answer.unit ? ` ${answer.unit}` : ""}${load}`;
}
