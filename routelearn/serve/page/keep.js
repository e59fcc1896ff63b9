// The answer as a file: JSON, GeoJSON, CSV, or the map as SVG.

import { csv as lines } from "./dom.js";

export function text(kind, answer, instance, map) {
  return { json, geojson, csv, svg }[kind](answer, instance, map);
}

const json = (answer) => `${JSON.stringify(answer, null, 2)}\n`;

const places = (instance) => new Map(instance.stops.map((stop) => [String(stop.id), stop]));

// The stops of a route as they are driven: from the depot and, unless the way back counts for nothing, home again.
export const ends = (answer, route) =>
  answer.depot === null ? [...route.stops, route.stops[0]] : [answer.depot, ...route.stops, ...(answer.returns ? [answer.depot] : [])];

// Longitude first, as the format asks.
function geojson(answer, instance) {
  const at = places(instance);
  const place = (id) => [at.get(String(id)).b, at.get(String(id)).a];
  const feature = (type, coordinates, properties) => ({ type: "Feature", geometry: { type, coordinates }, properties });
  const features = answer.routes.flatMap((route, i) => [
    feature("LineString", ends(answer, route).map(place), { route: i + 1, length: route.length, load: route.load }),
    ...route.stops.map((id, position) => feature("Point", place(id), { id, route: i + 1, position: position + 1 })),
  ]);
  if (answer.depot !== null) features.push(feature("Point", place(answer.depot), { id: answer.depot, depot: true }));
  for (const id of answer.unvisited) features.push(feature("Point", place(id), { id, route: null }));
  return `${JSON.stringify({ type: "FeatureCollection", features }, null, 1)}\n`;
}

function csv(answer, instance) {
  const at = places(instance);
  const rows = [["route", "position", "id", ...(instance.globe ? ["lat", "lon"] : ["x", "y"])]];
  answer.routes.forEach((route, i) => {
    const visits = answer.depot !== null ? ends(answer, route) : route.stops;
    visits.forEach((id, position) => {
      const stop = at.get(String(id));
      rows.push([i + 1, position + (answer.depot !== null ? 0 : 1), id, stop.a, stop.b]);
    });
  });
  return lines(rows);
}

const STYLED = ["fill", "stroke", "stroke-width", "stroke-dasharray", "stroke-linejoin", "stroke-linecap", "opacity", "font-size", "font-family",
  "font-weight", "text-anchor", "paint-order"];

// The map as it is shown. Styles live in the page's sheets, and other programs know neither those nor variables or mixed
// colours: every shape carries its own, as plain numbers.
function svg(answer, instance, map) {
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
