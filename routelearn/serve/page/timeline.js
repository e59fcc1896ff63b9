// The hours of a plan: a line for each vehicle, a block for each visit, and the windows of the stop that is pointed at.

import { colour, element, show } from "./dom.js";
import { about, windows, wrong } from "./plan.js";

const [NAME, TALL, HEAD] = [92, 30, 24];
const STEPS = [300, 900, 1800, 3600, 7200, 14400, 28800, 86400, 172800];

export function draw(chart, answer) {
  const { routes, clock } = answer.drawing;
  const moments = routes.flatMap((route) => route.visits.flatMap((visit) => [visit.arrival[0], visit.departure[0]])).filter((at) => at !== null);
  chart.replaceChildren();
  const wide = chart.clientWidth || 600;
  if (!moments.length) return;
  const [first, last] = [Math.min(...moments), Math.max(...moments)];
  const high = HEAD + TALL * routes.length;
  const at = (time) => NAME + ((Math.min(Math.max(time, first), last) - first) / (last - first || 1)) * (wide - NAME - 16);
  chart.setAttribute("viewBox", `0 0 ${wide} ${high}`);
  chart.style.height = `${high}px`;
  const most = Math.max(2, Math.floor((wide - NAME) / 60));
  const step = clock ? STEPS.find((size) => (last - first) / size <= most) || 604800 : (last - first || 1) / Math.min(6, most);
  const pad = (value) => String(Math.floor(value)).padStart(2, "0");
  for (let time = Math.ceil(first / step) * step; time <= last; time += step) {
    const words = clock ? `${pad((time / 3600) % 24)}:${pad((time / 60) % 60)}` : show(time, 3);
    chart.append(
      element("line", { x1: at(time), x2: at(time), y1: HEAD - 6, y2: high, class: "tick" }),
      element("text", { x: at(time), y: 12, "text-anchor": "middle", class: "hour" }, words),
    );
  }
  routes.forEach((route, r) => chart.append(line(answer, route, r, at, [first, last])));
}

function line(answer, route, r, at, [first, last]) {
  const made = element("g", { class: "time-line" });
  const middle = HEAD + r * TALL + TALL / 2;
  const bar = (kind, from, to, high, k = null) => {
    if (from === null || to === null || to < from) return;
    const box = element("rect", { class: kind, x: at(from), y: middle - high / 2, width: Math.max(2, at(to) - at(from)), height: high, rx: Math.min(3, high / 2) });
    if (kind !== "break") box.style.fill = colour(r);
    made.append(box);
    if (k === null) return;
    const visit = route.visits[k];
    for (const [name, value] of Object.entries({ tabindex: 0, role: "button", "aria-label": about(answer, r, k).join(", "), "data-id": visit.id })) box.setAttribute(name, value);
    box.append(element("title", {}, about(answer, r, k).join("\n")));
    if (wrong(answer, r, k).length) box.classList.add("wrong");
  };
  made.append(element("text", { x: 0, y: middle + 4, class: "name" }, route.label.length > 13 ? `${route.label.slice(0, 12)}…` : route.label));
  route.visits.forEach((visit, k) => {
    if (k) bar("drive", route.visits[k - 1].departure[0], visit.arrival[0], 3);
    if (visit.kind === "start" || visit.kind === "end") return;
    bar("wait", visit.arrival[0], visit.start[0], 10);
    bar(visit.kind === "stop" ? "visit" : "break", visit.start[0], visit.departure[0], 16, visit.kind === "stop" ? k : null);
    if (visit.stop === null) return;
    for (const { low, high } of windows(answer, visit.stop)) {
      const [from, to] = [low ?? first, high ?? last];
      const open = element("rect", { class: "window", "data-id": visit.id, x: at(from), y: middle + 10, width: Math.max(0, at(to) - at(from)), height: 3, rx: 1.5 });
      open.style.fill = colour(r);
      made.append(open);
    }
  });
  return made;
}
