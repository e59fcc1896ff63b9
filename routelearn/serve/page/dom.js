// What all modules of the page share: making elements, writing numbers, the colours of routes.

export const $ = (id) => document.getElementById(id);
export const WIDE = matchMedia("(min-width: 1100px)"); // lists stand beside the map, and scroll by themselves

export function make(tag, properties = {}, ...children) {
  const { data = {}, ...rest } = properties;
  const made = Object.assign(document.createElement(tag), rest);
  Object.assign(made.dataset, data);
  made.append(...children);
  return made;
}

export function element(tag, attributes = {}, ...children) {
  const made = document.createElementNS("http://www.w3.org/2000/svg", tag);
  for (const [name, value] of Object.entries(attributes)) made.setAttribute(name, value);
  made.append(...children);
  return made;
}

export const show = (value, digits = 5) =>
  value == null ? "" : Array.isArray(value) ? value.map((one) => show(one, digits)).join(" / ") : Number(value.toPrecision(digits)).toLocaleString("en");

export const plural = (count, word) => `${count} ${word}${count === 1 ? "" : "s"}`;

// The sheet has twelve colours for each theme; further routes take them again, mixed with the ink.
const COLOURS = 12;
export function colour(route) {
  const own = `var(--route-${route % COLOURS})`;
  const turn = Math.floor(route / COLOURS) % 3;
  return turn ? `color-mix(in srgb, ${own} ${100 - 30 * turn}%, var(--ink))` : own;
}

// What a spreadsheet would run as a formula gets an apostrophe, as in the package's own tables (data/csv_file.py).
const FORMULA = /^'*(?:[=@\t\r]|[+-](?![\d\s().,/+-]*(?:[eE][+-]?\d+)?$))/;
const cell = (value) => {
  const text = typeof value === "string" && FORMULA.test(value) ? `'${value}` : String(value);
  return /[",\n\r]/.test(text) ? `"${text.replaceAll('"', '""')}"` : text;
};
export const csv = (lines) => lines.map((line) => `${line.map(cell).join(",")}\n`).join("");
