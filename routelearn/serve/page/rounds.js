// A round and its plan: map, time lines, itinerary, vehicles. A stop that is moved is checked by the service at once.

import { element } from "./board.js";

const make = (tag, properties = {}, ...children) => {
  const made = Object.assign(document.createElement(tag), properties);
  made.append(...children);
  return made;
};
const show = (value) =>
  value == null ? "" : Array.isArray(value) ? value.map(show).join(" / ") : Number(value.toPrecision(6)).toLocaleString("en");
const HEADS = ["stop", "arrival", "start", "leaves", "waits", "load", "so far", "window"];
// Of vehicles, those that the table always shows.
const USUAL = ["id", "number", "capacity", "shift", "fixed_cost", "distance_cost", "time_cost", "max_duration", "skills"];

export class RoundView {
  constructor($, post, attempt) {
    Object.assign(this, { $, post, attempt, document: null, answer: null, before: null, open: false });
    $("round-close").addEventListener("click", () => this.close());
    $("round-undo").addEventListener("click", () => this.#take(this.before, true));
  }

  show(name, round, notes) {
    Object.assign(this, { document: round, answer: null, before: null, open: true, name });
    this.$("round").hidden = false;
    this.$("boards").hidden = true;
    this.$("round-title").textContent = `${name}: ${round.stops.length} stops`;
    this.$("round-notes").textContent = notes.join("\n");
    for (const id of ["round-plan", "round-map", "round-times", "round-broken"]) this.$(id).replaceChildren();
    this.$("round-undo").disabled = true;
    this.#fleet();
  }

  close() {
    this.open = false;
    this.$("round").hidden = true;
    this.$("boards").hidden = false;
  }

  async solve(seconds, signal) {
    this.#take(await this.post("solve", { ...this.document, seconds, drawing: true }, signal), true);
  }

  // `solved`: what undoing goes back to.
  #take(answer, solved) {
    this.answer = answer;
    if (solved) this.before = answer;
    this.$("round-undo").disabled = solved;
    this.#draw();
  }

  // ------------------------------------------------------------------------------------------- moving stops

  // Routes as /check takes them; vehicles that are free have one without visits.
  #routes() {
    const routes = this.answer.routes.map((route) => ({
      vehicle: route.vehicle,
      visits: route.visits.filter((visit) => ["stop", "reload"].includes(visit.kind)).map(({ kind, id, kept }) => ({ kind, id, kept })),
    }));
    const used = (id) => routes.filter((route) => route.vehicle === id).length;
    const vehicles = Array.isArray(this.document.vehicles) ? this.document.vehicles : [];
    for (const vehicle of vehicles) {
      const id = String(vehicle.id);
      if (vehicle.number === null || used(id) < (vehicle.number ?? 1)) routes.push({ vehicle: id, visits: [] });
    }
    return routes;
  }

  // Put a stop before the visit at `position` of a route; route null: leave it out.
  async move(id, route, position) {
    const routes = this.#routes();
    for (const [at, one] of routes.entries()) {
      const found = one.visits.findIndex((visit) => visit.kind === "stop" && visit.id === id);
      if (found < 0) continue;
      one.visits.splice(found, 1);
      if (at === route && found < position) position -= 1;
    }
    if (route !== null) routes[route].visits.splice(position, 0, { kind: "stop", id });
    await this.attempt(async () => {
      const sent = routes.filter((one) => one.visits.some((visit) => visit.kind === "stop"));
      this.#take(await this.post("check", { ...this.document, routes: sent, drawing: true }), false);
      this.$("round-plan").querySelector(`[data-id="${CSS.escape(id)}"]`)?.focus();
    });
  }

  #draggable(row, id) {
    Object.assign(row, { draggable: true, tabIndex: 0 });
    row.dataset.id = id;
    row.addEventListener("dragstart", (event) => event.dataTransfer.setData("text/plain", id));
  }

  #droppable(target, route, position) {
    target.addEventListener("dragover", (event) => {
      event.preventDefault();
      target.classList.add("over");
    });
    target.addEventListener("dragleave", () => target.classList.remove("over"));
    target.addEventListener("drop", (event) => {
      event.preventDefault();
      target.classList.remove("over");
      this.move(event.dataTransfer.getData("text/plain"), route, position);
    });
  }

  #keys(row, id, route, position) {
    row.addEventListener("keydown", (event) => {
      if (!event.altKey) return;
      const ways = { ArrowUp: [route, position - 1], ArrowDown: [route, position + 2], ArrowLeft: [route - 1, 0], ArrowRight: [route + 1, 0] };
      const [to, at] = ways[event.key] || [];
      if (to === undefined || to < 0 || to >= this.#routes().length || at < 0) return;
      event.preventDefault();
      this.move(id, to, at);
    });
  }

  // ---------------------------------------------------------------------------------------------- drawing

  #windows(stop) {
    const windows = this.answer.drawing.stops[stop].windows.filter(([low, , high]) => low !== null || high !== null);
    return windows.map(([, low, , high]) => `${low || "…"} to ${high || "…"}`).join(", ");
  }

  #wrong(route, visit) {
    return (this.answer.violations || []).filter((one) => one.route === route + 1 && one.visit === visit).map((one) => one.words);
  }

  #about(route, k) {
    const visit = this.answer.drawing.routes[route].visits[k];
    const window = visit.stop === null ? "" : this.#windows(visit.stop);
    return [visit.id, window && `window ${window}`, `arrival ${visit.arrival[1]}`, `leaves ${visit.departure[1]}`, ...this.#wrong(route, k)]
      .filter(Boolean).join("\n");
  }

  #draw() {
    const { answer } = this;
    const unit = answer.unit ? ` ${answer.unit}` : "";
    const broken = answer.violations || [];
    this.$("round-title").textContent =
      `${this.name}: cost ${show(answer.cost)}, length ${show(answer.length)}${unit}, ${answer.routes.length} vehicles` +
      (answer.unassigned.length ? `, ${answer.unassigned.length} stops left out` : "");
    this.$("round-broken").replaceChildren(...broken.map((one) => make("li", { textContent: one.words })));
    this.$("round-notes").textContent = answer.notes.join("\n");
    this.#map();
    this.#times();
    this.#plan();
  }

  #map() {
    const { places, routes, stops, ends, unassigned } = this.answer.drawing;
    const range = (values) => [Math.min(...values), Math.max(...values)];
    const [left, right] = range(places.map((place) => place[1]));
    const [low, high] = range(places.map((place) => place[2]));
    const size = Math.max(right - left, (high - low) * 1.35) || 1;
    const x = (place) => ((places[place][1] - (left + right) / 2) / size) * 1020;
    const y = (place) => (-(places[place][2] - (low + high) / 2) / size) * 1020;
    const parts = routes.map((route) => {
      const line = route.visits.filter((visit) => visit.place !== null).map((visit) => `${x(visit.place)} ${y(visit.place)}`);
      return element("path", { class: "route", stroke: route.colour, d: `M${line.join("L")}`, fill: "none" });
    });
    const dot = (place, fill, words) => {
      const circle = element("circle", { cx: x(place), cy: y(place), r: 8, fill });
      circle.append(element("title", {}, words));
      return circle;
    };
    routes.forEach((route, r) =>
      route.visits.forEach((visit, k) => {
        if (visit.kind === "stop") parts.push(dot(visit.place, this.#wrong(r, k).length ? "#b3261e" : route.colour, this.#about(r, k)));
      }),
    );
    for (const [stop, reason] of unassigned) parts.push(dot(stops[stop].place, "#999", `${stops[stop].id}\nleft out: ${reason}`));
    for (const place of ends) {
      const box = element("rect", { x: x(place) - 10, y: y(place) - 10, width: 20, height: 20, fill: "currentColor" });
      box.append(element("title", {}, places[place][0]));
      parts.push(box);
    }
    this.$("round-map").replaceChildren(...parts);
  }

  #times() {
    const { routes, stops, clock } = this.answer.drawing;
    const chart = this.$("round-times");
    const moments = routes.flatMap((route) => route.visits.flatMap((visit) => [visit.arrival[0], visit.departure[0]])).filter((at) => at !== null);
    chart.replaceChildren();
    if (!moments.length) return;
    const [first, last] = [Math.min(...moments), Math.max(...moments)];
    const [wide, tall, name] = [1000, 26, 110];
    const at = (time) => name + ((Math.min(Math.max(time, first), last) - first) / (last - first || 1)) * (wide - name - 10);
    chart.setAttribute("viewBox", `0 0 ${wide} ${22 + tall * routes.length}`);
    const step = clock ? [900, 1800, 3600, 7200, 14400, 86400].find((size) => (last - first) / size <= 12) || 172800 : (last - first || 1) / 6;
    for (let time = Math.ceil(first / step) * step; time <= last; time += step) {
      const pad = (value) => String(Math.floor(value)).padStart(2, "0");
      chart.append(
        element("line", { x1: at(time), x2: at(time), y1: 16, y2: 22 + tall * routes.length, class: "tick" }),
        element("text", { x: at(time), y: 12, "text-anchor": "middle", class: "label" }, clock ? `${pad((time / 3600) % 24)}:${pad((time / 60) % 60)}` : show(time)),
      );
    }
    routes.forEach((route, r) => {
      const line = element("g", { class: "time-line" });
      const y = 22 + r * tall;
      const bar = (from, to, high, opacity, fill, k) => {
        if (from === null || to === null || to < from) return;
        const box = element("rect", { x: at(from), y: y + (tall - high) / 2, width: Math.max(1.5, at(to) - at(from)), height: high, opacity, fill });
        box.append(element("title", {}, this.#about(r, k)));
        line.append(box);
      };
      line.append(element("text", { x: 0, y: y + 17, class: "label" }, route.label.slice(0, 16)));
      route.visits.forEach((visit, k) => {
        if (k) bar(route.visits[k - 1].departure[0], visit.arrival[0], 3, 0.5, route.colour, k);
        if (visit.kind === "start" || visit.kind === "end") return;
        bar(visit.arrival[0], visit.start[0], 12, 0.2, route.colour, k);
        bar(visit.start[0], visit.departure[0], 14, 1, this.#wrong(r, k).length ? "#b3261e" : visit.kind === "stop" ? route.colour : "#888", k);
        // The window of a stop shows while the stop is pointed at.
        for (const [low, , high] of visit.stop === null ? [] : stops[visit.stop].windows) {
          if (low === null && high === null) continue;
          const [from, to] = [low ?? first, high ?? last];
          line.append(element("rect", { x: at(from), y: y + tall - 3, width: Math.max(0, at(to) - at(from)), height: 2, fill: route.colour, class: "window", "data-window": visit.id }));
        }
      });
      chart.append(line);
    });
  }

  #point(row, id) {
    const bars = () => this.$("round-times").querySelectorAll(`[data-window="${CSS.escape(id)}"]`);
    row.addEventListener("pointerenter", () => bars().forEach((bar) => bar.classList.add("on")));
    row.addEventListener("pointerleave", () => bars().forEach((bar) => bar.classList.remove("on")));
  }

  #plan() {
    const { answer } = this;
    const unit = answer.unit ? ` ${answer.unit}` : "";
    const parts = this.#routes().map((moved, r) => {
      const route = answer.drawing.routes[r];
      const head = make("tr", {}, ...HEADS.map((name) => make("th", { textContent: name })));
      const title = make("h3", { textContent: route ? route.label : `${moved.vehicle} (free)` });
      if (route) title.style.borderLeft = `12px solid ${route.colour}`;
      this.#droppable(title, r, moved.visits.length);
      if (!route) return make("div", { className: "free" }, title);
      let position = 0;
      const rows = route.visits.map((visit, k) => {
        const wrong = this.#wrong(r, k);
        const ends = visit.kind === "start" || visit.kind === "end";
        const cells = [
          `${visit.kind === "stop" ? "" : `(${visit.kind}) `}${visit.id}`, visit.kind === "start" ? "" : visit.arrival[1],
          ends ? "" : visit.start[1], visit.kind === "end" ? "" : visit.departure[1], visit.wait > 0.5 ? show(visit.wait / 60) + " min" : "",
          show(visit.load), show(visit.distance_so_far) + unit, visit.stop === null ? "" : this.#windows(visit.stop),
        ];
        const row = make("tr", { className: wrong.length ? "wrong" : "", title: [...wrong, ...Object.entries(visit.columns || {}).map(([name, text]) => `${name}: ${text}`)].join("\n") },
          ...cells.map((textContent) => make("td", { textContent })));
        this.#droppable(row, r, position);
        if (visit.kind === "stop" && !visit.kept) {
          this.#draggable(row, visit.id);
          this.#keys(row, visit.id, r, position);
        }
        if (visit.kind === "stop") this.#point(row, visit.id);
        if (["stop", "reload"].includes(visit.kind)) position += 1;
        return row;
      });
      return make("div", { className: "wide" }, title, make("table", { className: "itinerary" }, head, ...rows));
    });
    const left = make("div", { className: "left-out" }, make("h3", { textContent: "Left out" }));
    this.#droppable(left, null, 0);
    for (const { id, reason } of answer.unassigned) {
      const line = make("p", { textContent: `${id}: ${reason}` });
      this.#draggable(line, id);
      left.append(line);
    }
    this.$("round-plan").replaceChildren(...parts, left);
  }

  // ---------------------------------------------------------------------------------------------- vehicles

  #fleet() {
    const vehicles = Array.isArray(this.document.vehicles) ? this.document.vehicles : [];
    const names = [...new Set([...USUAL, ...vehicles.flatMap(Object.keys)])].filter((name) => !["breaks"].includes(name));
    const head = make("tr", {}, ...[...names, ""].map((name) => make("th", { textContent: name.replaceAll("_", " ") })));
    const rows = vehicles.map((vehicle, v) => {
      const cells = names.map((name) => {
        const text = Array.isArray(vehicle[name]) ? vehicle[name].join(name === "shift" ? "-" : ", ") : vehicle[name] ?? "";
        const input = make("input", { value: text, ariaLabel: `${name} of ${vehicle.id}` });
        input.addEventListener("change", () => this.#set(vehicle, name, input.value.trim()));
        return make("td", {}, input);
      });
      const remove = make("button", { type: "button", textContent: "×", ariaLabel: `remove ${vehicle.id}` });
      remove.addEventListener("click", () => {
        vehicles.splice(v, 1);
        this.#fleet();
      });
      return make("tr", {}, ...cells, make("td", {}, remove));
    });
    const add = make("button", { type: "button", textContent: "Add a vehicle" });
    add.addEventListener("click", () => {
      vehicles.push({ ...(vehicles.at(-1) || {}), id: `vehicle ${vehicles.length + 1}` });
      this.document.vehicles = vehicles;
      this.#fleet();
    });
    this.$("fleet-table").replaceChildren(head, ...rows, make("tr", {}, make("td", { colSpan: names.length + 1 }, add)));
  }

  // Numbers stay numbers, lists stay lists; the service says what it cannot read.
  #set(vehicle, name, text) {
    const value = (part) => (part !== "" && Number.isFinite(Number(part)) ? Number(part) : part);
    if (text === "") delete vehicle[name];
    else if (name === "shift") vehicle[name] = text;
    else vehicle[name] = text.includes(",") ? text.split(",").map((part) => value(part.trim())) : name === "id" ? text : value(text);
  }
}
