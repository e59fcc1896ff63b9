// The answer as a file: JSON, GeoJSON, CSV, or the map as SVG.

import { csv as lines } from "./dom.js";
import { columns } from "./instance.js";

export function text(kind, answer, instance, info, map) {
  return { json, geojson, csv, svg }[kind](answer, instance, info, map);
}

const json = (answer) => `${JSON.stringify(answer, null, 2)}\n`;

const places = (instance) => new Map(instance.stops.map((stop) => [String(stop.id), stop]));

// The stops of a route as they are driven: from the depot and, unless the way back counts for nothing, home again.
export const ends = (answer, route) =>
  answer.depot === null ? [...route.stops, route.stops[0]] : [answer.depot, ...route.stops, ...(answer.returns ? [answer.depot] : [])];

// Names of what the stops have beside their places, but for what a visit reveals.
const told = (instance, info) =>
  columns(info).filter((one) => !one.revealed_on_visit).map((one) => one.name).filter((name) => instance.stops.some((stop) => stop.values[name] != null));

// The two files below have what the package writes of a solution (data/solutions.py), under the same names.

// Longitude first, as the format asks.
function geojson(answer, instance, info) {
  const at = places(instance);
  const names = told(instance, info);
  const place = (id) => [at.get(String(id)).b, at.get(String(id)).a];
  const values = (id) => Object.fromEntries(names.map((name) => [name, at.get(String(id)).values[name] ?? null]));
  const given = (route) => Object.fromEntries(Object.entries(route).filter(([, value]) => value != null));
  const feature = (type, coordinates, properties) => ({ type: "Feature", geometry: { type, coordinates }, properties });
  const features = answer.routes.map((route, i) => feature("LineString", ends(answer, route).map(place), { route: i + 1, ...given(route) }));
  if (answer.depot !== null) features.push(feature("Point", place(answer.depot), { id: answer.depot, depot: true }));
  answer.routes.forEach((route, i) => route.stops.forEach((id, k) => features.push(feature("Point", place(id), {
    id, route: i + 1, position: k + 1, ...values(id), ...(route.amounts ? { amount: route.amounts[k] } : {}),
  }))));
  for (const id of answer.unvisited) features.push(feature("Point", place(id), { id, route: null, ...values(id) }));
  return `${JSON.stringify({ type: "FeatureCollection", features }, null, 1)}\n`;
}

// One line for each visit in driving order; position 0 and the last one of a route are the depot.
function csv(answer, instance, info) {
  const at = places(instance);
  const names = told(instance, info);
  const split = answer.routes.some((route) => route.amounts);
  const located = instance.placeless ? [] : instance.globe ? [["lon", "b"], ["lat", "a"]] : [["x", "a"], ["y", "b"]];
  const rows = [["route", "position", "id", ...located.map(([name]) => name), ...names, ...(split ? ["amount"] : [])]];
  const first = answer.depot === null ? 1 : 0;
  answer.routes.forEach((route, i) => (first ? route.stops : ends(answer, route)).forEach((id, k) => {
    const stop = at.get(String(id));
    const values = names.map((name) => [stop.values[name] ?? (String(id) === String(answer.depot) ? 0 : "")].flat(9).join(" "));
    rows.push([i + 1, k + first, id, ...located.map(([, axis]) => stop[axis]), ...values, ...(split ? [route.amounts?.[k - 1] ?? ""] : [])]);
  }));
  return lines(rows);
}

const STYLED = ["fill", "stroke", "stroke-width", "stroke-dasharray", "stroke-linejoin", "stroke-linecap", "opacity", "font-size", "font-family",
  "font-weight", "text-anchor", "paint-order"];

// The map as it is shown. Styles live in the page's sheets, and other programs know neither those nor variables or mixed
// colours: every shape carries its own, as plain numbers.
function svg(answer, instance, info, map) {
  const copy = map.cloneNode(true);
  const pen = document.createElement("canvas").getContext("2d", { willReadFrequently: true });
  const plain = (value) => {
    if (!/^(color|ok|hsl)/.test(value)) return value;
    pen.fillStyle = value;
    pen.fillRect(0, 0, 1, 1);
    return `rgb(${[...pen.getImageData(0, 0, 1, 1).data.slice(0, 3)].join(" ")})`;
  };
  const shapes = [...map.querySelectorAll("*")];
  [...copy.querySelectorAll("*")].forEach((shape, i) => {
    const style = getComputedStyle(shapes[i]);
    const words = shape.dataset.words || "";
    for (const { name } of [...shape.attributes]) if (/^(class|style|tabindex|role|aria-|data-)/.test(name)) shape.removeAttribute(name);
    for (const name of STYLED) shape.setAttribute(name, plain(style.getPropertyValue(name)));
    if (words) shape.append(Object.assign(document.createElementNS(copy.namespaceURI, "title"), { textContent: words }));
  });
  copy.querySelector("g").remove(); // tiles, which are elsewhere
  const { width, height } = map.viewBox.baseVal;
  for (const [name, value] of Object.entries({ xmlns: copy.namespaceURI, width, height, style: `background:${getComputedStyle(map).backgroundColor}` })) copy.setAttribute(name, value);
  for (const name of ["class", "tabindex", "role"]) copy.removeAttribute(name);
  return `${new XMLSerializer().serializeToString(copy)}\n`;
}

export function download(name, type, content) {
  const link = document.createElement("a");
  link.href = URL.createObjectURL(new Blob([content], { type }));
  link.download = name;
  link.click();
  setTimeout(() => URL.revokeObjectURL(link.href), 1000);
}
