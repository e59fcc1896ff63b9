// The fields beside the map: limits of the instance, the table of its stops, and errors where they belong.

import { Failure } from "./api.js";
import { $, make } from "./dom.js";
import { columns, limits, parsed, written } from "./instance.js";

const SHOWN = 300; // rows of the table

// `changed(name, value)` when a limit is given.
export function drawLimits(instance, info, changed) {
  $("limits").replaceChildren(...limits(info).map((one) => {
    const input = make("input", {
      type: one.shape.length ? "text" : "number", step: "any", id: `limit-${one.name}`, placeholder: one.default ?? "",
      value: written(instance.limits[one.name]), data: { field: one.name }, // exact until changed
    });
    input.addEventListener("change", () => changed(one.name, parsed(one, input.value)));
    return make("label", { className: "field", title: one.help }, make("span", { textContent: one.title }), input);
  }));
}

// `change(how)` changes the instance.
export function drawTable(instance, info, change) {
  if (!$("details").open) return;
  const attributes = columns(info);
  const names = ["id", ...(instance.globe ? ["lat", "lon"] : ["x", "y"]), ...attributes.map((one) => one.name)];
  const keys = ["id", "a", "b", ...attributes];
  const set = (stop, key, text) => {
    if (key === "id") stop.id = text;
    else if (key.name) stop.values[key.name] = parsed(key, text) ?? null;
    else if (Number.isFinite(Number(text))) stop[key] = Number(text);
    if (key === "a" || key === "b") instance.moved();
  };
  const head = make("tr", {}, ...names.map((textContent) => make("th", { textContent, scope: "col" })), make("td"));
  const rows = instance.stops.slice(0, SHOWN).map((stop, i) => {
    const cells = keys.map((key, at) => {
      const value = key.name ? [stop.values[key.name] ?? ""].flat(9).join(" ") : stop[key] ?? "";
      const input = make("input", { value, inputMode: key === "id" ? "text" : "decimal", ariaLabel: `${names[at]} of stop ${stop.id}` });
      input.addEventListener("change", () => change(() => set(stop, key, input.value)));
      return make("td", {}, input);
    });
    const remove = make("button", { textContent: "×", type: "button", ariaLabel: `remove ${stop.id}` });
    remove.addEventListener("click", () => change(() => instance.remove(i)));
    return make("tr", {}, ...cells, make("td", {}, remove));
  });
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
  const input = document.querySelector(`[data-field="${CSS.escape(field)}"]`) || (field === "seconds" ? $("seconds") : null);
  const stops = ["coords", "latlon", "matrix", "ids", "depot", ...columns(info).map((one) => one.name)].includes(field);
  const place = input?.closest("fieldset") || document.querySelector(`[data-errors="${stops ? "stops" : action}"]`);
  input?.setAttribute("aria-invalid", "true");
  const line = make("p", { className: "error", textContent: error.message, role: "alert" });
  place.append(line);
  line.scrollIntoView({ block: "nearest" });
}
