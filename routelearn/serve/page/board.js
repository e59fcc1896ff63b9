// One map: stops, routes in colours, and, while thinking, the decoder's probabilities.

import { columns, limits, written } from "./instance.js";
import { ends } from "./keep.js";

const SIDE = 600;
const MARGIN = 30;
const NAMESPACE = "http://www.w3.org/2000/svg";

export function element(tag, attributes = {}, text) {
  const made = document.createElementNS(NAMESPACE, tag);
  for (const [name, value] of Object.entries(attributes)) made.setAttribute(name, value);
  if (text !== undefined) made.textContent = text;
  return made;
}

// Turns of the golden angle keep neighbours apart; the theme says how light they are.
export const colour = (route) => `hsl(${(route * 137.5 + 210) % 360} 65% var(--lightness, 45%))`;
const show = (value) => Number(value.toPrecision(5)).toLocaleString("en");

export class Board {
  constructor(figure, handlers) {
    this.figure = figure;
    this.handlers = handlers; // place(a, b), move(index, a, b), remove(index); absent on a board that only shows
    this.svg = element("svg", { class: "map", viewBox: `0 0 ${SIDE} ${SIDE}`, role: "application", "aria-label": "map of stops" });
    this.layers = ["routes", "halos", "stops"].map((name) => this.svg.appendChild(element("g", { class: name })));
    this.caption = document.createElement("figcaption");
    this.chart = element("svg", { class: "chart", viewBox: "0 0 100 30", preserveAspectRatio: "none" });
    this.list = document.createElement("ul");
    this.list.className = "routes";
    figure.append(this.svg, this.caption, this.chart, this.list);
    this.frame = { low: [0, 0], size: 1 };
    this.moving = false;
    this.again = null; // what draw() was last called with
    new ResizeObserver(() => this.again && this.draw(...this.again)).observe(this.svg);
    if (handlers) this.#listen();
  }

  // The map's frame: the unit square while nothing is outside it, else the box around the stops.
  fit(instance) {
    const xs = instance.stops.map((stop) => this.#place(instance, stop));
    const inside = !instance.globe && xs.every(([x, y]) => x >= 0 && x <= 1 && y >= 0 && y <= 1);
    const large = xs.length < 2 || Math.max(...xs.flat()) - Math.min(...xs.flat()) > 0.05;
    if (inside && large) {
      this.frame = { low: [0, 0], size: 1 };
      return;
    }
    const low = [0, 1].map((axis) => Math.min(...xs.map((p) => p[axis])));
    const high = [0, 1].map((axis) => Math.max(...xs.map((p) => p[axis])));
    const size = Math.max(high[0] - low[0], high[1] - low[1]) || 1;
    this.frame = { low: low.map((value, axis) => value - (size - (high[axis] - value)) / 2), size };
  }

  // Degrees of longitude are narrower away from the equator.
  #place(instance, stop) {
    if (!instance.globe) return [stop.a, stop.b];
    const middle = instance.stops.reduce((sum, other) => sum + other.a, 0) / instance.stops.length;
    return [stop.b * Math.cos((middle * Math.PI) / 180), stop.a];
  }

  #pixel([x, y]) {
    const scale = (SIDE - 2 * MARGIN) / this.frame.size;
    return [MARGIN + (x - this.frame.low[0]) * scale, SIDE - MARGIN - (y - this.frame.low[1]) * scale];
  }

  #unpixel(px, py) {
    const scale = (SIDE - 2 * MARGIN) / this.frame.size;
    const [x, y] = [this.frame.low[0] + (px - MARGIN) / scale, this.frame.low[1] + (SIDE - MARGIN - py) / scale];
    const tidy = (value) => Number(value.toFixed(Math.max(0, 4 - Math.floor(Math.log10(this.frame.size)))));
    if (!this.instance.globe) return [tidy(x), tidy(y)];
    const stops = this.instance.stops;
    const middle = stops.length ? stops.reduce((sum, other) => sum + other.a, 0) / stops.length : 0;
    return [tidy(y), tidy(x / Math.cos((middle * Math.PI) / 180))];
  }

  #event(event) {
    const box = this.svg.getBoundingClientRect();
    return this.#unpixel(((event.clientX - box.left) / box.width) * SIDE, ((event.clientY - box.top) / box.height) * SIDE);
  }

  #listen() {
    let held = null;
    this.svg.addEventListener("pointerdown", (event) => {
      const index = event.target.dataset?.index;
      held = { index: index === undefined ? null : Number(index), moved: false };
      if (held.index !== null) this.svg.setPointerCapture(event.pointerId);
    });
    this.svg.addEventListener("pointermove", (event) => {
      if (held === null || held.index === null) return;
      held.moved = true;
      this.moving = true; // the frame stays as it is while a stop is dragged
      this.handlers.move(held.index, ...this.#event(event));
    });
    this.svg.addEventListener("pointerup", (event) => {
      this.moving = false;
      if (held !== null && held.index === null) this.handlers.place(...this.#event(event));
      else if (held?.moved) this.handlers.moved();
      held = null;
    });
    this.svg.addEventListener("keydown", (event) => {
      const index = event.target.dataset?.index;
      if (index === undefined) return;
      const step = this.frame.size / 50;
      const ways = { ArrowLeft: [-1, 0], ArrowRight: [1, 0], ArrowUp: [0, 1], ArrowDown: [0, -1] };
      const stop = this.instance.stops[index];
      if (event.key === "Delete" || event.key === "Backspace") this.handlers.remove(Number(index));
      else if (ways[event.key]) {
        const [dx, dy] = ways[event.key];
        const [da, db] = this.instance.globe ? [dy, dx] : [dx, dy];
        this.handlers.move(Number(index), stop.a + da * step, stop.b + db * step);
        this.handlers.moved();
      } else return;
      event.preventDefault();
      this.svg.querySelector(`[data-index="${index}"]`)?.focus();
    });
  }

  // Letters and dots keep their size on a small screen, where the map is scaled down.
  #unit() {
    const unit = Math.min(2, Math.max(1, SIDE / (this.svg.clientWidth || SIDE)));
    this.svg.style.setProperty("--unit", unit);
    return unit;
  }

  // `rival`: the answer on the other map, to compare with.
  draw(instance, info, answer, step, rival = null) {
    this.again = [instance, info, answer, step, rival];
    this.instance = instance;
    const unit = this.#unit();
    if (!this.moving) this.fit(instance);
    const points = instance.stops.map((stop) => this.#pixel(this.#place(instance, stop)));
    const at = new Map(instance.stops.map((stop, i) => [String(stop.id), points[i]]));
    const focused = document.activeElement?.dataset?.index;
    const holds = focused !== undefined && this.svg.contains(document.activeElement);
    const [routes, halos, stops] = this.layers;
    for (const layer of this.layers) layer.replaceChildren();
    (answer?.routes || []).forEach((route, i) => {
      const line = ends(answer, route).map((name) => at.get(String(name))).filter(Boolean);
      const path = element("polyline", { class: "route", points: line.join(" "), stroke: colour(i), "data-route": i });
      path.append(element("title", {}, describe(route, i, answer, info)));
      path.addEventListener("pointerenter", () => this.light(i));
      path.addEventListener("pointerleave", () => this.light(null));
      routes.append(path);
    });
    if (step) this.#thought(step, points, unit);
    if (!points.length && this.handlers) {
      halos.append(element("text", { class: "invite", x: SIDE / 2, y: SIDE / 2 }, "Click to place stops, or press Random"));
    }
    const radius = (points.length > 300 ? 3 : points.length > 80 ? 5 : 7) * unit;
    const masked = new Map(step ? step.masked : []);
    points.forEach(([x, y], i) => {
      const depot = info.has_depot && i === instance.depot;
      const node = step ? step.order.indexOf(i) : -1;
      const why = masked.get(node);
      const circle = element("circle", {
        class: `stop${depot ? " depot" : ""}${why ? " masked" : ""}`, cx: x, cy: y, r: depot ? radius * 1.3 : radius, "data-index": i,
        ...(this.handlers ? { tabindex: 0, role: "button", "aria-label": `stop ${instance.stops[i].id}${depot ? ", depot" : ""}` } : {}),
      });
      circle.append(element("title", {}, this.#words(instance.stops[i], info, depot, step, node, why)));
      stops.append(circle);
      if (points.length <= 60) {
        const edge = x > SIDE - 20 - 16 * unit; // there it stands on the other side
        const where = { x: edge ? x - radius - 2 : x + radius + 2, y: y - radius, "text-anchor": edge ? "end" : "start" };
        stops.append(element("text", { class: "label", ...where }, String(instance.stops[i].id)));
      }
    });
    if (holds) this.svg.querySelector(`[data-index="${focused}"]`)?.focus();
    if (step) stops.append(...this.#shares(step, points, unit));
    this.#tell(answer, info, rival);
  }

  #words(stop, info, depot, step, node, why) {
    const known = columns(info).filter((one) => (one.at_depot || !depot) && !one.revealed_on_visit && stop.values[one.name] != null);
    const lines = [`${stop.id}${depot ? " (depot)" : ""}`, ...known.map((one) => `${one.title} ${written(stop.values[one.name])}`)];
    if (why) lines.push(`masked: ${why}`);
    else if (step) lines.push(`probability ${(100 * step.probabilities[node]).toFixed(2)} %`);
    return lines.join("\n");
  }

  // The way so far, the next leg, and a halo for every probability.
  #thought(step, points, unit) {
    const [routes, halos] = this.layers;
    const line = step.built.map((node) => points[step.order[node]]);
    if (line.length > 1) routes.append(element("polyline", { class: "route built", points: line.join(" ") }));
    const target = points[step.order[step.chosen]];
    if (line.length) routes.append(element("polyline", { class: "route next", points: [line.at(-1), target].join(" ") }));
    step.probabilities.forEach((share, node) => {
      const [x, y] = points[step.order[node]];
      if (share > 0.001) halos.append(element("circle", { class: "halo", cx: x, cy: y, r: unit * (8 + 26 * Math.sqrt(share)) }));
      if (node === step.chosen) halos.append(element("circle", { class: "chosen", cx: x, cy: y, r: 13 * unit }));
    });
  }

  // Percentages beside the stops that have a say, the largest first where they would cover one another.
  #shares(step, points, unit) {
    const ranked = step.probabilities.map((share, node) => ({ share, node })).filter(({ share }) => share >= 0.02);
    ranked.sort((one, other) => other.share - one.share);
    const taken = [];
    return ranked.flatMap(({ share, node }) => {
      const [x, y] = points[step.order[node]];
      const below = y + (12 + 26 * Math.sqrt(share)) * unit + 8;
      const at = below < SIDE - 8 ? below : y - (8 + 26 * Math.sqrt(share)) * unit - 4;
      if (taken.some(([a, b]) => Math.abs(a - x) < 40 * unit && Math.abs(b - at) < 14 * unit)) return [];
      taken.push([x, at]);
      return [element("text", { class: "share", x, y: at }, `${(100 * share).toFixed(share < 0.1 ? 1 : 0)} %`)];
    });
  }

  light(route) {
    this.svg.querySelectorAll(".route").forEach((path) => {
      path.classList.toggle("dim", route !== null && path.dataset.route !== String(route));
    });
    [...this.list.children].forEach((item, i) => item.classList.toggle("lit", i === route));
  }

  #tell(answer, info, rival) {
    this.caption.replaceChildren();
    this.list.replaceChildren();
    this.chart.replaceChildren();
    this.chart.style.display = answer?.history.length > 1 ? "" : "none";
    if (!answer) return;
    const unit = answer.unit ? ` ${answer.unit}` : "";
    const strong = document.createElement("strong");
    strong.textContent = info.maximise ? `prize ${show(answer.objective)}` : `cost ${show(answer.objective)}${unit}`;
    const more = [`length ${show(answer.length)}${unit}`, `${answer.routes.length} route${answer.routes.length === 1 ? "" : "s"}`];
    if (answer.unvisited.length && answer.depot !== null) more.push(`${answer.unvisited.length} left out`);
    if (rival) more.push(against(answer, rival, info));
    const last = answer.history.at(-1);
    if (last) more.push(`by ${last.by} after ${last.seconds.toFixed(2)} s`);
    const notes = document.createElement("div");
    notes.className = "notes";
    notes.textContent = [this.method, ...answer.notes].filter(Boolean).join(" · ");
    this.caption.append(strong, ` · ${more.join(" · ")}`, notes);
    answer.routes.forEach((route, i) => {
      const item = document.createElement("li");
      item.tabIndex = 0;
      item.style.borderColor = colour(i);
      item.textContent = describe(route, i, answer, info);
      for (const kind of ["pointerenter", "focus"]) item.addEventListener(kind, () => this.light(i));
      for (const kind of ["pointerleave", "blur"]) item.addEventListener(kind, () => this.light(null));
      this.list.append(item);
    });
    this.#curve(answer);
  }

  // Cost over time: each better solution holds until the next.
  #curve(answer) {
    const history = answer.history;
    if (history.length < 2) return;
    const end = Math.max(answer.seconds, history.at(-1).seconds) || 1;
    const costs = history.map((event) => event.cost);
    const [low, high] = [Math.min(...costs), Math.max(...costs)];
    const point = (seconds, cost) => `${(100 * seconds) / end},${28 - (26 * (cost - low)) / (high - low || 1)}`;
    const corners = history.flatMap((event, i) => [...(i ? [point(event.seconds, history[i - 1].cost)] : []), point(event.seconds, event.cost)]);
    this.chart.append(element("polyline", { points: [...corners, point(end, costs.at(-1))].join(" ") }));
    this.chart.append(element("title", {}, `cost from ${show(high)} to ${show(low)} in ${end.toFixed(2)} s`));
  }
}

// How much this answer is from the one on the other map.
function against(answer, rival, info) {
  const share = (100 * (answer.objective - rival.objective)) / Math.abs(rival.objective || 1);
  if (Math.abs(share) < 0.005) return "the same as beside";
  return `${Math.abs(share).toFixed(2)} % ${share > 0 ? "more" : "less"} than beside${share > 0 === info.maximise ? " (better)" : ""}`;
}

function describe(route, i, answer, info) {
  const holds = limits(info).find((one) => one.of === "vehicle" && one.unit === "amount" && !one.shape.length);
  const room = holds && answer.limits[holds.name];
  const load = route.load == null ? "" : `, load ${show(route.load)}${room ? ` of ${show(room)}` : ""}`;
  return `route ${i + 1}: ${route.stops.length} stop${route.stops.length === 1 ? "" : "s"}, length ${show(route.length)}${load}`;
}
