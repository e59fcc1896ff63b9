// The stops on the page, the limits beside them, and how they become a request or a link. What a stop or an instance
// has beside its place, the service says: the attributes of its problems.

export const columns = (info) => info.attributes.filter((one) => one.of === "stop");
export const limits = (info) => info.attributes.filter((one) => one.of !== "stop");

export const size = (one) => one.shape.reduce((all, length) => all * length, 1);

// The value of an attribute as people write it in a field, also with a decimal comma: a number, or several; null for an
// empty field, undefined for anything else.
export function parsed(one, text) {
  const parts = text.trim().split(/[\s;/|]+/).filter(Boolean);
  if (!parts.length) return null;
  const numbers = parts.map((part) => Number(/^[+-]?\d+,\d+$/.test(part) ? part.replace(",", ".") : part));
  if (!numbers.every(Number.isFinite) || numbers.length !== size(one)) return undefined;
  return one.shape.length ? numbers : numbers[0];
}

export const written = (value) => (value == null ? "" : [value].flat(9).map((one) => Number(one.toPrecision(6))).join(" "));

const round = (value) => Number(value.toPrecision(7));

export class Instance {
  constructor(problem) {
    this.problem = problem;
    this.stops = []; // {id, a, b, values}; a, b: x, y or lat, lon; values: attributes by name
    this.globe = false;
    this.depot = 0;
    this.matrix = null;
    this.metric = null; // TSPLIB's name for how lengths between coords are rounded
    this.limits = {};
    this.notes = []; // what the service says of the file
  }

  // Fields of a request (or of /stops and /random), with what they do not say left empty.
  static from(fields, problems, problem) {
    const made = new Instance(fields.problem || problem);
    const matrix = fields.matrix || null;
    made.globe = Boolean(fields.latlon);
    const count = (fields.coords || fields.latlon || matrix).length;
    const places = fields.latlon || fields.coords || circle(count); // a matrix alone has no places: a ring shows it
    made.placeless = !fields.latlon && !fields.coords;
    made.stops = places.map(([a, b], i) => ({ id: fields.ids ? fields.ids[i] : i, a, b, values: {} }));
    for (const one of problems.flatMap((info) => info.attributes)) {
      if (fields[one.name] == null) continue;
      if (one.of === "stop") made.stops.forEach((stop, i) => (stop.values[one.name] = fields[one.name][i]));
      else made.limits[one.name] = fields[one.name];
    }
    made.depot = fields.depot || 0;
    made.matrix = matrix;
    made.metric = fields.metric || null;
    made.notes = fields.notes || [];
    return made;
  }

  add(a, b) {
    const taken = new Set(this.stops.map((stop) => String(stop.id)));
    let id = this.stops.length;
    while (taken.has(String(id))) id += 1;
    this.stops.push({ id, a, b, values: {} });
    this.moved();
  }

  remove(index) {
    this.stops.splice(index, 1);
    if (this.depot >= index && this.depot > 0) this.depot -= 1;
    this.moved();
  }

  // Places changed: lengths that were given for the old ones no longer hold.
  moved() {
    this.matrix = null;
    this.placeless = false;
  }

  // The values of a random instance, for whatever the problem needs and nobody has given.
  complete(info, random) {
    const size = Math.max(1e-9, ...["a", "b"].map((axis) => span(this.stops.map((stop) => stop[axis]))));
    const scale = (one, value) => {
      if (!["length", "time"].includes(one.unit)) return value;
      const times = size * (this.globe ? 111 : 1); // kilometres in a degree
      return Array.isArray(value) ? value.map((part) => round(part * times)) : round(value * times);
    };
    const home = info.has_depot ? [this.depot] : [];
    const order = [...home, ...this.stops.map((_, i) => i).filter((i) => !home.includes(i))];
    for (const one of info.attributes.filter(({ name }) => random[name] != null)) {
      if (one.of !== "stop") this.limits[one.name] ??= scale(one, random[one.name]);
      else order.forEach((i, node) => (this.stops[i].values[one.name] ??= scale(one, random[one.name][node])));
    }
  }

  fields(info) {
    const fields = { problem: this.problem };
    if (!this.placeless) fields[this.globe ? "latlon" : "coords"] = this.stops.map((stop) => [stop.a, stop.b]);
    if (this.matrix) fields.matrix = this.matrix;
    else if (this.metric) fields.metric = this.metric;
    // Those of other problems, too: the service says that they are not used.
    for (const name of new Set(this.stops.flatMap((stop) => Object.keys(stop.values)))) {
      const values = this.stops.map((stop) => stop.values[name] ?? null);
      if (values.some((value) => value !== null)) fields[name] = values;
    }
    for (const { name } of limits(info)) if (this.limits[name] != null) fields[name] = this.limits[name];
    fields.ids = this.stops.map((stop) => stop.id);
    if (this.depot) fields.depot = this.depot;
    if (this.notes.length) fields.notes = this.notes;
    return fields;
  }

  toLink(info) {
    const bytes = new TextEncoder().encode(JSON.stringify(this.fields(info)));
    const text = btoa(Array.from(bytes, (byte) => String.fromCharCode(byte)).join(""));
    return `${location.origin}${location.pathname}#${text.replaceAll("+", "-").replaceAll("/", "_").replaceAll("=", "")}`;
  }

  static fromLink(hash, problems) {
    const text = atob(hash.replace(/^#/, "").replaceAll("-", "+").replaceAll("_", "/"));
    const bytes = Uint8Array.from(text, (letter) => letter.charCodeAt(0));
    const made = Instance.from(JSON.parse(new TextDecoder().decode(bytes)), problems, problems[0].id);
    if (!made.stops.length || !made.stops.every((stop) => Number.isFinite(stop.a) && Number.isFinite(stop.b))) throw new Error("no places");
    return made;
  }
}

const span = (values) => (values.length ? Math.max(...values) - Math.min(...values) : 0);

const circle = (count) =>
  Array.from({ length: count }, (_, i) => [
    round(0.5 + 0.45 * Math.cos((2 * Math.PI * i) / count)), round(0.5 + 0.45 * Math.sin((2 * Math.PI * i) / count)),
  ]);
