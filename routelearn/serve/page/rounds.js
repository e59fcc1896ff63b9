// A round and its plan: map, time lines, itinerary, vehicles. A stop that is moved is checked by the service at once.

import { file, post, stream } from "./api.js";
import { $, WIDE, make, plural, show } from "./dom.js";
import { draw as drawFleet, vehicles } from "./fleet.js";
import { Itinerary } from "./itinerary.js";
import { download } from "./keep.js";
import { MapView } from "./map.js";
import { bare, horizon, planned } from "./plan.js";
import { sheets } from "./sheets.js";
import { draw as drawTimes } from "./timeline.js";

const FILES = { json: "application/json", csv: "text/csv", geojson: "application/geo+json", "vroom.json": "application/vnd.vroom+json" };

export class RoundView {
  // `closed()`: what is done when the boards are there again.
  constructor(attempt, closed) {
    Object.assign(this, { attempt, closed, document: null, answer: null, before: null, wanted: null, moved: false, open: false });
    this.map = new MapView($("round-map"), "map of the round");
    this.itinerary = new Itinerary($("round-plan"), (...given) => this.move(...given));
    $("round-close").addEventListener("click", () => this.close());
    $("round-undo").addEventListener("click", () => this.#take(this.before, true));
    $("allow-unassigned").addEventListener("change", (event) => (this.document.allow_unassigned = event.target.checked));
    $("round-print").addEventListener("click", () => window.print());
    window.addEventListener("beforeprint", () => this.#sheets());
    this.saves = [...$("round-downloads").querySelectorAll("button")];
    for (const button of this.saves) button.addEventListener("click", () => attempt(() => this.#save(button.dataset.form)));
    new ResizeObserver(() => this.answer && drawTimes($("round-times"), this.answer)).observe($("round-times"));
    this.#link();
  }

  // `unit`: of lengths, where the file tells it.
  show(name, round, notes, unit) {
    Object.assign(this, { document: round, answer: null, before: null, wanted: null, open: true, name, unit: unit ? ` ${unit}` : "" });
    this.#visible();
    $("round-title").textContent = `${name}: ${plural(round.stops.length, "stop")}`;
    $("round-notes").textContent = notes.join("\n");
    $("count").textContent = round.stops.length;
    for (const id of ["round-times", "round-broken"]) $(id).replaceChildren();
    for (const button of [$("round-undo"), $("round-print"), ...this.saves]) button.disabled = true;
    $("round-key").textContent = "";
    drawFleet($("fleet-table"), round);
    $("allow-unassigned").checked = Boolean(round.allow_unassigned);
    this.itinerary.read(round);
    this.map.draw(bare(round), true);
  }

  close() {
    this.open = false;
    this.#visible();
    this.closed();
  }

  #visible() {
    $("round").hidden = !this.open;
    $("boards").hidden = this.open;
    document.body.dataset.view = this.open ? "round" : "stops";
  }

  // Plans are drawn as they are found, until a stop is moved; a search that is stopped leaves its last one.
  async solve(seconds, signal) {
    this.moved = false;
    this.wanted = null;
    const hear = (plan) => this.moved || this.#take(plan, true);
    await stream("solve/stream", { ...this.document, seconds, drawing: true }, hear, signal);
  }

  // `solved`: what undoing goes back to.
  #take(answer, solved) {
    const first = !this.answer;
    this.answer = answer;
    this.wanted = null;
    if (solved) this.before = answer;
    $("round-undo").disabled = solved;
    $("round-print").disabled = false;
    for (const button of this.saves) button.disabled = button.dataset.form === "geojson" && !answer.drawing.latlon;
    this.#draw(first);
  }

  // Routes as /check takes them; vehicles that are free have one without visits.
  #routes() {
    const routes = this.answer.routes.map((route) => ({
      vehicle: route.vehicle,
      visits: route.visits.filter((visit) => ["stop", "reload"].includes(visit.kind)).map(({ kind, id, kept }) => ({ kind, id, kept })),
    }));
    const used = (id) => routes.filter((route) => route.vehicle === id).length;
    for (const vehicle of vehicles(this.document)) {
      const id = String(vehicle.id);
      if (vehicle.number === null || used(id) < (vehicle.number ?? 1)) routes.push({ vehicle: id, visits: [] });
    }
    return routes;
  }

  // Put a stop before the visit at `position` of a route as it is drawn; route null: leave it out. Moves that come before
  // the service has answered add up in `wanted`, and only the answer to the last of them is taken.
  async move(id, route, position) {
    this.moved = true;
    const is = (one) => (visit) => visit.kind === "stop" && visit.id === one;
    const before = route === null ? null : this.#routes()[route].visits.slice(position).find((visit) => visit.kind === "stop" && visit.id !== id);
    const routes = structuredClone(this.wanted) || this.#routes();
    for (const [at, one] of routes.entries()) {
      const found = one.visits.findIndex(is(id));
      if (found < 0) continue;
      one.visits.splice(found, 1);
      if (at === route && found < position) position -= 1;
    }
    if (route !== null) {
      const { visits } = routes[route];
      const there = this.wanted && before ? visits.findIndex(is(before.id)) : -1;
      visits.splice(there < 0 ? position : there, 0, { kind: "stop", id });
    }
    this.wanted = routes;
    await this.attempt(async () => {
      try {
        const answer = await post("check", { ...this.document, routes: driven(routes), drawing: true });
        if (this.wanted !== routes) return;
        this.#take(answer, false);
        this.itinerary.focus(id);
      } catch (error) {
        if (this.wanted !== routes) return; // nobody waits for it any more
        this.wanted = null;
        throw error;
      }
    });
  }

  // The plan as `routelearn solve` writes it; the service has the writers of all but JSON.
  async #save(form) {
    const { drawing, ...plan } = this.answer;
    const routes = driven(this.#routes());
    const content = form === "json" ? `${JSON.stringify(plan, null, 2)}\n` : await file("check", { ...this.document, routes }, FILES[form]);
    download(`plan.${form}`, FILES[form], content);
  }

  #draw(first) {
    const { answer } = this;
    const unit = answer.unit ? ` ${answer.unit}` : this.unit;
    const left = answer.unassigned.length ? `, ${plural(answer.unassigned.length, "stop")} left out` : "";
    $("round-title").textContent =
      `${this.name}: cost ${show(answer.cost)}, length ${show(answer.length)}${unit}, ${plural(answer.routes.length, "vehicle")}${left}`;
    $("round-broken").replaceChildren(...(answer.violations || []).map((one) => make("li", { textContent: one.words })));
    $("round-notes").textContent = answer.notes.join("\n");
    const timed = horizon(answer) && answer.drawing.stops.some((stop) => stop.windows.some(([low, , high]) => low !== null || high !== null));
    $("round-key").textContent = `Dots are as large as what is brought and taken.${timed ? " The ring shows when a stop is open, clockwise from the first hour to the last." : ""}`;
    this.map.draw(planned(answer, this.document), first);
    drawTimes($("round-times"), answer);
    this.itinerary.draw(answer, vehicles(this.document), this.#routes(), unit);
  }

  #sheets() {
    if (!this.open || !this.answer) return;
    const unit = this.answer.unit ? ` ${this.answer.unit}` : this.unit;
    sheets($("sheets"), this.answer, this.document, vehicles(this.document), unit, this.name);
  }

  // What is pointed at on the map, in the itinerary or on a time line is lit in all three.
  #link() {
    const view = $("round");
    const id = (event) => event.target.closest?.("[data-id]")?.dataset.id;
    const light = (event) => {
      const found = id(event);
      for (const part of view.querySelectorAll(".lit")) part.classList.remove("lit");
      if (found === undefined) return;
      for (const part of view.querySelectorAll(`[data-id="${CSS.escape(found)}"]`)) part.classList.add("lit");
      const row = $("round-plan").querySelector(".lit");
      if (WIDE.matches && row && !$("round-plan").contains(event.target)) row.scrollIntoView({ block: "nearest" });
    };
    for (const kind of ["pointerover", "focusin"]) view.addEventListener(kind, light);
    for (const kind of ["pointerleave", "focusout"]) view.addEventListener(kind, () => light({ target: view }));
    // A press on a stop or a block goes to its row.
    const go = (event) => {
      if (event.target.getAttribute("role") === "button" && id(event) !== undefined) this.itinerary.focus(id(event));
    };
    $("round-times").addEventListener("click", go);
    for (const part of [$("round-times"), this.map.svg]) part.addEventListener("keydown", (event) => event.key === "Enter" && go(event));
  }
}

const driven = (routes) => routes.filter((route) => route.visits.some((visit) => visit.kind === "stop"));
