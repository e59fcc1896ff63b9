// What is printed of a round: for each vehicle a sheet with its map and its visits, for the driver.

import { colour, make, show } from "./dom.js";
import { MapView } from "./map.js";
import { planned, short, summary, windows } from "./plan.js";

const SIZE = [680, 360]; // of a sheet's map, in pixels
const HEADS = ["", "stop", "arrives", "leaves", "open", "load", "so far"];

export function sheets(host, answer, round, fleet, unit, name) {
  host.replaceChildren(...answer.drawing.routes.map((route, r) => {
    const columns = [...new Set(route.visits.flatMap((visit) => Object.keys(visit.columns || {})))];
    const head = make("tr", {}, ...[...HEADS, ...columns, "done"].map((textContent) => make("th", { textContent })));
    let number = 0;
    const rows = route.visits.map((visit) => {
      const stop = visit.kind === "stop";
      if (stop) number += 1;
      const open = visit.stop === null ? "" : windows(answer, visit.stop).map((one) => one.words).join(", ");
      const cells = [
        stop ? number : "", stop ? visit.id : `${visit.kind} ${visit.id}`, visit.kind === "start" ? "" : short(visit.arrival[1]),
        visit.kind === "end" ? "" : short(visit.departure[1]), open, show(visit.load), `${show(visit.distance_so_far, 3)}${unit}`,
        ...columns.map((column) => visit.columns?.[column] ?? ""), stop ? "☐" : "",
      ];
      return make("tr", {}, ...cells.map((textContent) => make("td", { textContent })));
    });
    const map = make("div");
    const title = make("h2", { textContent: route.label });
    title.style.setProperty("--colour", colour(r));
    const broken = (answer.violations || []).filter((one) => one.route === r + 1).map((one) => make("p", { className: "wrong", textContent: one.words }));
    new MapView(map, `map of ${route.label}`, {}, SIZE).draw(planned(answer, round, r), true);
    return make("section", { className: "sheet" }, title, make("p", { textContent: `${name} · ${summary(answer, fleet, unit, r)}` }), ...broken, map,
      make("table", {}, make("thead", {}, head), make("tbody", {}, ...rows)));
  }));
}
