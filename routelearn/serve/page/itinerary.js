// The visits of each vehicle as tables, whose rows can be dragged to another place or moved by Alt with an arrow.

import { colour, make, show } from "./dom.js";
import { short, summary, windows, wrong } from "./plan.js";

const HEADS = ["", "stop", "arrives", "leaves", "load"];

const UNSEEN = ["id", "lat", "lon", "x", "y"]; // of a stop that is read: they are on the map

// What a document says of a stop, in a line: also windows, and amounts of several kinds.
const cell = (value) => {
  if (value === null || typeof value !== "object") return typeof value === "string" ? short(value) : value ?? "";
  const inside = Array.isArray(value) ? value.map(cell) : Object.values(value).map(cell);
  return inside.join(Array.isArray(value[0]) ? ", " : value.length === 2 && /:/.test(inside[0]) ? "–" : " ");
};

export class Itinerary {
  // `move(id, route, position)` puts a stop before the visit at that position; route null leaves it out.
  constructor(host, move) {
    Object.assign(this, { host, move });
  }

  // The stops as they were read, until there is a plan.
  read(round) {
    const empty = (value) => value == null || value === "" || value === 0 || (Array.isArray(value) && value.every(empty));
    const names = [...new Set(round.stops.flatMap((stop) => Object.keys(stop).filter((name) => !UNSEEN.includes(name) && !empty(stop[name]))))];
    const head = make("tr", {}, ...["stop", ...names].map((name) => make("th", { textContent: name.replaceAll("_", " "), scope: "col" })));
    const rows = round.stops.map((stop) => make("tr", { data: { id: stop.id } },
      ...[stop.id, ...names.map((name) => cell(stop[name]))].map((textContent) => make("td", { textContent }))));
    this.host.replaceChildren(make("section", { className: "vehicle wide", ariaLabel: "stops as they were read", tabIndex: 0 }, make("h3", { className: "plain", textContent: "Press Solve for a plan of these stops" }),
      make("table", { className: "read" }, make("thead", {}, head), make("tbody", {}, ...rows))));
  }

  // `routes`: those that can be driven, the free vehicles' too, as they would be sent.
  draw(answer, vehicles, routes, unit) {
    const left = make("div", { className: "left-out" }, make("h3", { textContent: "Left out" }));
    this.#droppable(left, null, 0);
    for (const { id, reason } of answer.unassigned) {
      const line = this.#draggable(make("p", { textContent: `${id}: ${reason}` }), id);
      this.#keys(line, id, routes.length, 0, routes.length);
      left.append(line);
    }
    if (!answer.unassigned.length) left.append(make("p", { className: "hint", textContent: "Drag a stop here to leave it out." }));
    this.host.replaceChildren(...routes.map((moved, r) => this.#vehicle(answer, vehicles, moved, r, routes.length, unit)), left);
  }

  focus(id) {
    this.host.querySelector(`[data-id="${CSS.escape(id)}"]`)?.focus();
  }

  #vehicle(answer, vehicles, moved, r, count, unit) {
    const route = answer.drawing.routes[r];
    const title = make("h3", { textContent: route ? route.label : `${moved.vehicle} (free)` });
    this.#droppable(title, r, moved.visits.length);
    if (!route) return make("div", { className: "free" }, title);
    title.style.setProperty("--colour", colour(r));
    let [position, number] = [0, 0];
    const rows = route.visits.map((visit, k) => {
      if (visit.kind === "stop") number += 1;
      const row = this.#row(answer, r, k, visit.kind === "stop" ? number : "");
      this.#droppable(row, r, position);
      if (visit.kind === "stop" && !visit.kept) this.#keys(this.#draggable(row, visit.id), visit.id, r, position, count);
      if (["stop", "reload"].includes(visit.kind)) position += 1;
      return row;
    });
    const head = make("tr", {}, ...[...HEADS, `so far${unit && `,${unit}`}`].map((textContent) => (textContent ? make("th", { textContent, scope: "col" }) : make("td"))));
    return make("section", { className: "vehicle", ariaLabel: route.label }, title, make("p", { className: "hint", textContent: summary(answer, vehicles, unit, r) }),
      make("div", { className: "wide" }, make("table", { className: "itinerary" }, make("thead", {}, head), make("tbody", {}, ...rows))));
  }

  #row(answer, r, k, number) {
    const visit = answer.drawing.routes[r].visits[k];
    const bad = wrong(answer, r, k);
    const name = make("td", {}, make("span", { textContent: `${visit.kind === "stop" ? "" : `${visit.kind} `}${visit.id}` }));
    const open = visit.stop === null ? "" : windows(answer, visit.stop).map((one) => one.words).join(", ");
    if (open) name.append(make("small", { textContent: `open ${open}` }));
    for (const words of bad) name.append(make("small", { className: "wrong", textContent: words }));
    const arrives = make("td", { textContent: visit.kind === "start" ? "" : short(visit.arrival[1]) });
    if (visit.wait > 30) arrives.append(make("small", { textContent: `waits ${show(Math.round(visit.wait / 60))} min` }));
    const rest = [visit.kind === "end" ? "" : short(visit.departure[1]), show(visit.load), show(visit.distance_so_far, 3)];
    const title = Object.entries(visit.columns || {}).map(([column, text]) => `${column}: ${text}`).join("\n");
    return make("tr", { className: bad.length ? "wrong" : visit.kind === "stop" ? "" : "other", title, data: visit.kind === "stop" ? { id: visit.id } : {} },
      make("td", { textContent: number }), name, arrives, ...rest.map((textContent) => make("td", { textContent })));
  }

  #draggable(row, id) {
    Object.assign(row, { draggable: true, tabIndex: 0 });
    row.dataset.id = id;
    row.addEventListener("dragstart", (event) => event.dataTransfer.setData("text/plain", id));
    return row;
  }

  #droppable(target, route, position) {
    const stop = (event) => event.dataTransfer.types.includes("text/plain"); // and not a file
    target.addEventListener("dragover", (event) => {
      if (!stop(event)) return;
      event.preventDefault();
      target.classList.add("over");
    });
    target.addEventListener("dragleave", () => target.classList.remove("over"));
    target.addEventListener("drop", (event) => {
      if (!stop(event)) return;
      event.preventDefault();
      target.classList.remove("over");
      this.move(event.dataTransfer.getData("text/plain"), route, position);
    });
  }

  // The stops that are left out are as on a line after the last of the `count` routes.
  #keys(row, id, route, position, count) {
    row.addEventListener("keydown", (event) => {
      if (!event.altKey) return;
      const ways = { ArrowUp: [route, position - 1], ArrowDown: [route, position + 2], ArrowLeft: [route - 1, 0], ArrowRight: [route + 1, 0] };
      if (!ways[event.key]) return;
      event.preventDefault(); // also where there is no way: the browser's own would leave the page
      const [to, at] = ways[event.key];
      if (to < 0 || to > count || at < 0 || (to === count && route === count)) return;
      this.move(id, to === count ? null : to, at);
    });
  }
}
