// What helps to read a map: the grid of coordinates, a scale, and where north is.

import { element } from "./dom.js";
import { EARTH } from "./view.js";

// The largest of 1, 2 and 5 times a power of ten that is not above `value`.
function nice(value) {
  const power = 10 ** Math.floor(Math.log10(value));
  return [5, 2, 1].find((times) => times * power <= value) * power;
}

const rounded = (value, step) => Number(value.toFixed(Math.max(0, -Math.floor(Math.log10(step) + 1e-9))));

const compass = (value, [ahead, behind]) => `${Math.abs(value)}° ${value < 0 ? behind : value > 0 ? ahead : ""}`.trim();

function lines(low, high, step) {
  const found = [];
  for (let at = Math.ceil(low / step) * step; at <= high && found.length < 60; at += step) found.push(rounded(at, step));
  return found;
}

export function grid(view, projection, globe) {
  const [wide, high] = view.size;
  const corners = [projection.from(view.world([0, high])), projection.from(view.world([wide, 0]))];
  const [across, up] = globe ? [1, 0] : [0, 1]; // of coordinates: the one that grows to the right, the one that grows upwards
  const step = nice((110 / wide) * (corners[1][across] - corners[0][across]) * 1.6);
  const at = (a, b) => view.pixel(projection.to(across ? [b, a] : [a, b]));
  const parts = [];
  for (const value of lines(corners[0][across], corners[1][across], step)) {
    const [x] = at(value, corners[0][up]);
    parts.push(element("line", { x1: x, x2: x, y1: 0, y2: high }));
    if (x > 150 && x < wide - 60) parts.push(element("text", { x: x + 4, y: high - 6 }, globe ? compass(value, "EW") : String(value)));
  }
  for (const value of lines(corners[0][up], corners[1][up], step)) {
    const [, y] = at(corners[0][across], value);
    parts.push(element("line", { x1: 0, x2: wide, y1: y, y2: y }));
    if (y > 20 && y < high - 50) parts.push(element("text", { x: 6, y: y - 4 }, globe ? compass(value, "NS") : String(value)));
  }
  return parts;
}

// A bar of a round length; metres or kilometres on the globe, at the latitude of the middle.
export function scale(view, projection, globe) {
  const lat = globe ? projection.from(view.centre)[0] : 0;
  const each = (globe ? EARTH * Math.cos((lat * Math.PI) / 180) : 1) / view.scale; // metres or units in a pixel
  const length = nice(120 * each);
  const [x, y, wide] = [14, view.size[1] - 16, length / each];
  const words = !globe ? String(rounded(length, length)) : length >= 1000 ? `${length / 1000} km` : `${rounded(length, length)} m`;
  return [
    element("path", { class: "bar", d: `M${x} ${y - 6}V${y}H${x + wide}V${y - 6}` }),
    element("text", { x: x + wide / 2, y: y - 6, "text-anchor": "middle" }, words),
  ];
}

export function north(view) {
  const [x, y] = [view.size[0] - 24, view.size[1] - 30];
  return [
    element("path", { class: "needle", d: `M${x} ${y - 14}L${x + 6} ${y + 6}L${x} ${y + 2}L${x - 6} ${y + 6}Z` }),
    element("text", { x, y: y + 20, "text-anchor": "middle" }, "N"),
  ];
}
