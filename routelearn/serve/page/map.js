// One map, for boards, rounds and printed sheets: a scene of lines and stops, drawn in pixels, that can be looked around.
//
// A scene: {globe, lines: [{at, stroke, data, kind, words}], stops: [{at, key, depot, radius, fill, kind, words, data,
// label, named, reach, rank, number, windows}], extra(map, pixels): more shapes, invite: lines for a map without stops}.
// `at` are coordinates (x, y or lat, lon), `words` the lines that are told when it is pointed at, `key` what handlers are
// given, `reach` the radius outside which the label stands.

import { element, make } from "./dom.js";
import { grid, north, scale } from "./furniture.js";
import { buttons, listen } from "./gestures.js";
import { placed } from "./labels.js";
import { Tiles } from "./tiles.js";
import { mercator, plane, Viewport } from "./view.js";

const MARGIN = 44;
const MANY = 500; // legs, of which labels do not keep clear: there is no room anyway
const LAYERS = ["tiles", "grid", "casings", "lines", "halos", "stops", "labels", "furniture"];
const HOUSE = "M-1 .95V-.1L0 -1L1 -.1V.95Z"; // the depot's symbol
const settings = { tiles: null };
const all = new Set();

export function useTiles(template) {
  settings.tiles = template;
  for (const map of all) map.useTiles();
}

export class MapView {
  // `handlers`: place(a, b), move(key, a, b), moved(), remove(key), each if the map may be changed that way; viewed().
  // `still`: a size, for a map that nobody can move.
  constructor(host, name, handlers = {}, still = null) {
    Object.assign(this, { handlers, still, view: new Viewport(), scene: null, moving: false, projection: plane });
    this.svg = element("svg", { class: "map", role: still ? "img" : "application", "aria-label": name });
    this.layers = Object.fromEntries(LAYERS.map((layer) => [layer, this.svg.appendChild(element("g", { class: layer }))]));
    host.classList.add("frame");
    host.append(this.svg);
    this.tiles = new Tiles(this.layers.tiles, still ? null : settings.tiles);
    if (still) {
      this.view.size = still;
      return;
    }
    all.add(this);
    this.#interact(host);
    new ResizeObserver(() => this.#resize()).observe(this.svg);
  }

  useTiles() {
    this.tiles = new Tiles(this.layers.tiles, settings.tiles);
    this.render();
  }

  #interact(host) {
    const { svg, handlers } = this;
    svg.tabIndex = 0;
    svg.classList.toggle("places", Boolean(handlers.place));
    const key = (target) => this.keys.get(target.closest?.("[data-key]")?.dataset.key) ?? null;
    const change = (how) => (...given) => {
      how(...given);
      this.render();
      handlers.viewed?.(this.view);
    };
    const act = {
      key, movable: Boolean(handlers.move),
      click: (point) => handlers.place?.(...this.#coordinates(point)),
      drag: (index, point) => {
        this.moving = true;
        handlers.move(index, ...this.#coordinates(point));
      },
      drop: () => {
        this.moving = false;
        handlers.moved();
      },
      nudge: (index, dx, dy) => {
        const step = Math.min(...this.view.size) / 50;
        const [x, y] = this.pixel(this.scene.stops.find((stop) => stop.key === index).at);
        handlers.move(index, ...this.#coordinates([x + dx * step, y + dy * step]));
        handlers.moved();
      },
      remove: (index) => handlers.remove(index),
      pan: change((dx, dy) => this.view.pan(dx, dy)),
      zoom: change((factor, at) => this.view.zoom(factor, at)),
      fit: change(() => this.#fit()),
    };
    listen(svg, act);
    this.controls = make("div", { className: "controls" }, ...buttons(act).map(([text, ariaLabel, onclick]) =>
      make("button", { type: "button", textContent: text, ariaLabel, title: ariaLabel, onclick })));
    this.tip = make("div", { className: "tip", hidden: true });
    host.append(this.controls, this.tip);
    svg.addEventListener("pointermove", ({ clientX, clientY }) => (this.pointer = [clientX, clientY]));
    svg.addEventListener("pointerover", (event) => this.#pointed(event));
    svg.addEventListener("focusin", (event) => this.#tell(event.target));
    for (const kind of ["pointerleave", "focusout"]) svg.addEventListener(kind, () => this.#tell(null));
  }

  // A stop that comes to lie under a pointer at rest is not pointed at: keys moved the map, and the tip follows them.
  #pointed({ clientX, clientY, target }) {
    const rests = this.pointer?.[0] === clientX && this.pointer[1] === clientY;
    if (!rests) this.#tell(target);
  }

  // A tip beside what is pointed at.
  #tell(target) {
    const words = target?.closest?.("[data-words]")?.dataset.words;
    this.tip.hidden = !words || this.moving;
    if (this.tip.hidden) return;
    this.tip.textContent = words;
    const [around, box] = [this.svg.getBoundingClientRect(), target.getBoundingClientRect()];
    const [wide, high] = [this.tip.offsetWidth, this.tip.offsetHeight];
    const small = box.width < 60 && box.height < 60; // a line's box says little of where it is
    const [x, y] = small ? [box.right - around.left + 8, box.top - around.top] : [10, 10];
    this.tip.style.left = `${x + wide > around.width - 4 ? Math.max(4, box.left - around.left - wide - 8) : x}px`;
    this.tip.style.top = `${Math.max(4, Math.min(y, around.height - high - 4))}px`;
  }

  #resize() {
    const size = [this.svg.clientWidth, this.svg.clientHeight];
    if (!size[0] || String(size) === String(this.view.size)) return;
    const [before, changed] = [this.view.size, this.view.scale !== this.view.home];
    this.view.size = size;
    if (!this.scene) return;
    if (!before[0] || !changed) this.#fit();
    this.render();
  }

  pixel(at) {
    return this.view.pixel(this.projection.to(at));
  }

  // Where a pixel is, with as many digits as a pixel is worth.
  #coordinates(point) {
    const each = (this.scene.globe ? this.view.scale / 360 : this.view.scale) || 1;
    const digits = Math.min(12, Math.max(0, Math.ceil(Math.log10(each)) + 1));
    return this.projection.from(this.view.world(point)).map((value) => Number(value.toFixed(digits)));
  }

  // A place in view, for a stop that is added without pointing.
  somewhere() {
    return this.#coordinates(this.view.size.map((length) => length * (0.15 + 0.7 * Math.random())));
  }

  // The unit square while nothing is outside it, else the box around the stops.
  #fit() {
    const places = this.scene.stops.map((stop) => stop.at);
    const flat = places.flat();
    const inside = !this.scene.globe && flat.every((part) => part >= 0 && part <= 1);
    const large = places.length < 2 || Math.max(...[0, 1].map((axis) => span(places.map((at) => at[axis])))) > 0.05;
    const shown = (inside && large) || !places.length ? [[0, 0], [1, 1]] : places;
    this.view.fit(shown.map(this.projection.to), Math.min(MARGIN, Math.min(...this.view.size) / 9), this.scene.globe ? 1e-5 : 1e-6);
  }

  // `whole`: bring all of it into view; else what is in view stays.
  draw(scene, whole) {
    const other = this.scene?.globe !== scene.globe;
    this.scene = scene;
    this.projection = scene.globe ? mercator : plane;
    if (whole || other) this.#fit();
    this.render();
  }

  // Show what another map shows.
  follow(view) {
    Object.assign(this.view, { centre: view.centre, scale: view.scale, home: view.home });
    this.render();
  }

  render() {
    const { scene, view, layers } = this;
    if (!scene || !view.size[0]) return;
    const held = this.svg.contains(document.activeElement) ? document.activeElement.dataset?.key : undefined;
    this.svg.setAttribute("viewBox", `0 0 ${view.size.join(" ")}`);
    this.keys = new Map(scene.stops.map((stop) => [String(stop.key), stop.key]));
    const points = scene.stops.map((stop) => this.pixel(stop.at));
    this.tiles.draw(view, scene.globe);
    layers.grid.replaceChildren(...grid(view, this.projection, scene.globe));
    layers.furniture.replaceChildren(...scale(view, this.projection, scene.globe), ...(scene.globe ? north(view) : []));
    const lines = scene.lines.map((line) => [line, line.at.map((at) => this.pixel(at).map(tidy)).join(" ")]);
    layers.casings.replaceChildren(...lines.filter(([line]) => !line.kind).map(([, corners]) => element("polyline", { class: "casing", points: corners })));
    layers.lines.replaceChildren(...lines.map(([line, corners]) => this.#line(line, corners)));
    layers.halos.replaceChildren();
    layers.stops.replaceChildren(...scene.stops.flatMap((stop, i) => this.#stop(stop, points[i])));
    layers.labels.replaceChildren(...this.#labels(points));
    if (scene.invite && !points.length) {
      layers.labels.append(element("text", { class: "invite" }, ...scene.invite.map((words, i) =>
        element("tspan", { x: view.size[0] / 2, y: view.size[1] / 2 + 24 * i }, words))));
    }
    scene.extra?.(this, points);
    if (held !== undefined) this.svg.querySelector(`[data-key="${CSS.escape(held)}"]`)?.focus({ preventScroll: true });
  }

  #line(line, corners) {
    const made = element("polyline", { class: line.kind || "route", points: corners });
    if (line.stroke) made.style.stroke = line.stroke;
    if (line.words) made.dataset.words = line.words.join("\n");
    Object.assign(made.dataset, line.data || {});
    return made;
  }

  // Its symbol; over it the number of its visit, round it the times at which it may be visited.
  #stop(stop, [x, y]) {
    const shape = stop.depot
      ? element("path", { d: HOUSE, transform: `translate(${tidy(x)} ${tidy(y)}) scale(${tidy(stop.radius)})`, "vector-effect": "non-scaling-stroke" })
      : element("circle", { cx: tidy(x), cy: tidy(y), r: tidy(stop.radius) });
    shape.setAttribute("class", `stop ${stop.depot ? "depot" : ""} ${stop.kind || ""}`.trim().replace(/ +/g, " "));
    if (stop.fill) shape.style.fill = stop.fill;
    if (!this.still) {
      Object.assign(shape.dataset, { key: stop.key, words: stop.words.join("\n") }, stop.data || {});
      for (const [name, value] of Object.entries({ tabindex: 0, role: "button", "aria-label": stop.words.join(", ") })) shape.setAttribute(name, value);
    }
    const parts = [shape];
    for (const [from, to] of stop.windows || []) parts.push(arc(x, y, stop.radius + 4, from, to));
    if (stop.number) parts.push(element("text", { class: "number", x: tidy(x), y: tidy(y + 3.6) }, String(stop.number)));
    return parts;
  }

  #labels(points) {
    const { stops } = this.scene;
    const { size } = this.view;
    const seen = (i) => points[i][0] > -9 && points[i][1] > -9 && points[i][0] < size[0] + 9 && points[i][1] < size[1] + 9;
    const near = stops.map((_, i) => i).filter(seen);
    const dots = near.map((i) => {
      const [[x, y], r] = [points[i], stops[i].radius + (stops[i].windows ? 3 : 0)];
      return [x - r, y - r, x + r, y + r];
    });
    const corners = this.scene.lines.filter((line) => !line.kind).map((line) => line.at.map((at) => this.pixel(at)));
    const legs = corners.flatMap((line) => line.slice(1).map((to, i) => [...line[i], ...to]));
    const furniture = [[0, size[1] - 34, 150, size[1]], ...(this.still ? [] : [[size[0] - 48, 0, size[0], 130]])];
    const wanted = near.filter((i) => stops[i].label).map((i) => (
      { x: points[i][0], y: points[i][1], radius: stops[i].reach ?? stops[i].radius, text: stops[i].label, rank: stops[i].rank, data: stops[i].data, named: stops[i].named }));
    return placed(wanted, [...dots, ...furniture], legs.length > MANY ? [] : legs, size).map(({ text, left, base, data, named = "" }) => {
      const made = element("text", { class: `label ${named}`.trim(), x: tidy(left), y: tidy(base) }, text);
      Object.assign(made.dataset, data || {});
      return made;
    });
  }
}

const tidy = (value) => Number(value.toFixed(2));

const span = (values) => Math.max(...values) - Math.min(...values);

// A part of a ring, clockwise from the top; 0 to 1 is the whole of it.
function arc(x, y, radius, from, to) {
  const end = Math.min(to, from + 0.999);
  const corner = (share) => [x + radius * Math.sin(2 * Math.PI * share), y - radius * Math.cos(2 * Math.PI * share)].map(tidy).join(" ");
  return element("path", { class: "window", d: `M${corner(from)}A${radius} ${radius} 0 ${end - from > 0.5 ? 1 : 0} 1 ${corner(end)}` });
}
