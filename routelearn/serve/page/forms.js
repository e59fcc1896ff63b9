// The fields beside the map: limits of the instance, the table of its stops, and errors where they belong.

import { Failure } from "./api.js";
import { $, make } from "./dom.js";
import { columns, limits, parsed, size, written } from "./instance.js";

const SHOWN = 300; // rows of the table
const PLACE = { name: "coords", shape: [] };
const needed = (one) => (size(one) === 1 ? "a number is" : `${size(one)} numbers are`);

// What is typed for an attribute is `taken(value)`. What cannot be read is told, and the field goes back to what it
// held: what is shown is what counts.
function hear(input, one, called, taken, info) {
  let before = input.value;
  input.addEventListener("change", () => {
    clearErrors();
    const value = parsed(one, input.value);
    if (value !== undefined && !(value === null && one === PLACE)) {
      before = input.value;
      taken(value);
      return;
    }
    report(new Failure({ error: `${called} is '${input.value}'; ${needed(one)} needed, so it stays ${before || "empty"}`, field: one.name }, 0), "problem", info);
    input.value = before;
  });
}

// `changed(name, value)` when a limit is given.
export function drawLimits(instance, info, changed) {
  $("limits").replaceChildren(...limits(info).map((one) => {
    const input = make("input", {
      inputMode: "decimal", id: `limit-${one.name}`, placeholder: one.default ?? "", value: written(instance.limits[one.name]),
      data: { field: one.name }, // exact until changed
    });
    hear(input, one, one.title, (value) => changed(one.name, value), info);
    return make("label", { className: "field", title: one.help }, make("span", { textContent: one.title }), input);
  }));
}

// `change(how)` changes the instance.
export function drawTable(instance, info, change) {
  if (!$("details").open) return;
  const places = [["a", instance.globe ? "lat" : "x"], ["b", instance.globe ? "lon" : "y"]];
  const attributes = columns(info);
  const names = ["id", ...places.map(([, name]) => name), ...attributes.map((one) => one.name)];
  const head = make("tr", {}, ...names.map((textContent) => make("th", { textContent, scope: "col" })), make("td"));
  const rows = instance.stops.slice(0, SHOWN).map((stop, i) => {
    const field = (name, value, inputMode) => make("input", { value, inputMode, ariaLabel: `${name} of stop ${stop.id}` });
    const number = (one, name, value, taken) => {
      const input = field(name, value, "decimal");
      hear(input, one, `${name} of stop ${stop.id}`, (given) => change(() => taken(given)), info);
      return input;
    };
    const id = field("id", stop.id, "text");
    id.addEventListener("change", () => change(() => (stop.id = id.value)));
    const inputs = [
      id,
      ...places.map(([axis, name]) => number(PLACE, name, stop[axis], (given) => {
        stop[axis] = given;
        instance.moved();
      })),
      ...attributes.map((one) => number(one, one.name, [stop.values[one.name] ?? ""].flat(9).join(" "), (given) => (stop.values[one.name] = given))),
    ];
    const remove = make("button", { textContent: "×", type: "button", ariaLabel: `remove ${stop.id}` });
    remove.addEventListener("click", () => change(() => instance.remove(i)));
    return make("tr", {}, ...inputs.map((input) => make("td", {}, input)), make("td", {}, remove));
  });
  const more = instance.stops.length - SHOWN;
  if (more > 0) rows.push(make("tr", {}, make("td", { colSpan: names.length + 1, className: "hint", textContent: `and ${more} more, which are on the map` })));
  $("table").replaceChildren(head, ...rows);
}

// What the problem needs and nobody has given: nothing is invented.
export function missing(instance, info) {
  const customers = instance.stops.filter((_, i) => !info.has_depot || i !== instance.depot);
  return info.attributes.filter((one) => one.required).flatMap((one) => {
    if (one.of !== "stop") return instance.limits[one.name] == null ? [one.title] : [];
    const count = customers.filter((stop) => stop.values[one.name] == null).length;
    return count ? [`${one.title} of ${count === 1 ? "a stop" : `${count} stops`}`] : [];
  });
}

export function clearErrors() {
  for (const line of document.querySelectorAll(".error")) line.remove();
  for (const input of document.querySelectorAll("[aria-invalid]")) input.removeAttribute("aria-invalid");
}

// An error stands beside the field it is about, or with the action that met it.
export function report(error, action, info) {
  if (error.name === "AbortError") return;
  if (!(error instanceof Failure)) throw error;
  if (error.status === 401) $("token-row").hidden = false;
  const field = (error.field || "").split(".")[0];
  const named = action === "stops" && document.querySelector(`#files [data-field="${CSS.escape(field)}"]`);
  const input = named || document.querySelector(`[data-field="${CSS.escape(field)}"]`) || (field === "seconds" ? $("seconds") : null);
  if (named) $("files").open = true;
  const stops = ["coords", "latlon", "matrix", "ids", "depot", ...columns(info).map((one) => one.name)].includes(field);
  const place = input?.closest("fieldset") || document.querySelector(`[data-errors="${stops ? "stops" : action}"]`);
  input?.setAttribute("aria-invalid", "true");
  const line = make("p", { className: "error", textContent: error.message, role: "alert" });
  place.append(line);
  line.scrollIntoView({ block: "nearest" });
}
