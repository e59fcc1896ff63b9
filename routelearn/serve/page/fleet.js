// The vehicles of a round as a table to edit.

import { make } from "./dom.js";
import { short } from "./plan.js";

// Those that the table always shows.
const USUAL = ["id", "number", "capacity", "shift", "fixed_cost", "distance_cost", "time_cost", "max_duration", "skills"];

export const vehicles = (round) => (Array.isArray(round.vehicles) ? round.vehicles : []);

export function draw(table, round) {
  const fleet = vehicles(round);
  const again = () => draw(table, round);
  const names = [...new Set([...USUAL, ...fleet.flatMap(Object.keys)])].filter((name) => !["breaks"].includes(name));
  const head = make("tr", {}, ...names.map((name) => make("th", { textContent: name.replaceAll("_", " "), scope: "col" })), make("td"));
  const rows = fleet.map((vehicle, v) => {
    const cells = names.map((name) => {
      const text = name === "shift" && Array.isArray(vehicle[name]) ? vehicle[name].map((moment) => short(String(moment ?? ""))).join("-") : [vehicle[name] ?? ""].flat().join(", ");
      const input = make("input", { value: text, ariaLabel: `${name} of ${vehicle.id}` });
      input.style.minWidth = `${String(text).length + 3}ch`;
      input.addEventListener("change", () => set(vehicle, name, input.value.trim()));
      return make("td", {}, input);
    });
    const remove = make("button", { type: "button", textContent: "×", ariaLabel: `remove ${vehicle.id}` });
    remove.addEventListener("click", () => {
      fleet.splice(v, 1);
      again();
    });
    return make("tr", {}, ...cells, make("td", {}, remove));
  });
  const add = make("button", { type: "button", textContent: "Add a vehicle" });
  add.addEventListener("click", () => {
    fleet.push({ ...(fleet.at(-1) || {}), id: `vehicle ${fleet.length + 1}` });
    round.vehicles = fleet;
    again();
  });
  table.replaceChildren(head, ...rows, make("tr", {}, make("td", { colSpan: names.length + 1 }, add)));
}

// Numbers stay numbers, lists stay lists; the service says what it cannot read.
function set(vehicle, name, text) {
  const value = (part) => (part !== "" && Number.isFinite(Number(part)) ? Number(part) : part);
  if (text === "") delete vehicle[name];
  else if (name === "shift") vehicle[name] = text;
  else vehicle[name] = text.includes(",") ? text.split(",").map((part) => value(part.trim())) : name === "id" ? text : value(text);
}
