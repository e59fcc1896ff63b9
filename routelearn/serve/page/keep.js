// The answer as a file: JSON, GeoJSON, CSV, or the map as SVG.

export function text(kind, answer, instance, board) {
  return { json, geojson, csv, svg }[kind](answer, instance, board);
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
  const cell = (value) => (/[",\n\r]/.test(String(value)) ? `"${String(value).replaceAll('"', '""')}"` : String(value));
  const lines = [["route", "position", "id", ...(instance.globe ? ["lat", "lon"] : ["x", "y"])]];
  answer.routes.forEach((route, i) => {
    const visits = answer.depot !== null ? ends(answer, route) : route.stops;
    visits.forEach((id, position) => {
      const stop = at.get(String(id));
      lines.push([i + 1, position + (answer.depot !== null ? 0 : 1), id, stop.a, stop.b]);
    });
  });
  return lines.map((line) => `${line.map(cell).join(",")}\n`).join("");
}

// Styles live in the page's sheet; a file of its own carries the few it needs.
function svg(answer, instance, board) {
  const copy = board.svg.cloneNode(true);
  copy.setAttribute("xmlns", "http://www.w3.org/2000/svg");
  const style = document.createElementNS("http://www.w3.org/2000/svg", "style");
  style.textContent = ".route{fill:none;stroke-width:2.5}.stop{fill:#222;stroke:#fff}.depot{fill:#b3261e}.label{font:11px sans-serif;fill:#666}";
  copy.prepend(style);
  for (const circle of copy.querySelectorAll("[tabindex]")) circle.removeAttribute("tabindex");
  // Other programs know no variables: the lightness of the light theme, on paper.
  return `${new XMLSerializer().serializeToString(copy).replaceAll("var(--lightness, 45%)", "42%")}\n`;
}

export function download(name, type, content) {
  const link = document.createElement("a");
  link.href = URL.createObjectURL(new Blob([content], { type }));
  link.download = name;
  link.click();
  setTimeout(() => URL.revokeObjectURL(link.href), 1000);
}
