// The stops on the page, the limits beside them, and how they become a request or a link.

export const COLUMNS = ["demand", "prize", "penalty", "real_prize"];
export const LIMITS = ["capacity", "max_length", "min_prize"];

const round = (value) => Number(value.toPrecision(7));

export class Instance {
  constructor() {
    this.problem = "tsp";
    this.stops = []; // {id, a, b, demand, prize, penalty, real_prize}; a, b: x, y or lat, lon
    this.globe = false;
    this.depot = 0;
    this.matrix = null;
    this.metric = null; // TSPLIB's name for how lengths between coords are rounded
    this.limits = {};
    this.notes = []; // what the service says of the file
  }

  // Fields of a request (or of /stops and /random), with what they do not say left empty.
  static from(fields) {
    const made = new Instance();
    const matrix = fields.matrix || null;
    made.globe = Boolean(fields.latlon);
    made.problem = fields.problem || guess(fields);
    const count = (fields.coords || fields.latlon || matrix).length;
    const places = fields.latlon || fields.coords || circle(count); // a matrix alone has no places: a ring shows it
    made.placeless = !fields.latlon && !fields.coords;
    made.stops = places.map(([a, b], i) => {
      const stop = { id: fields.ids ? fields.ids[i] : i, a, b };
      for (const name of COLUMNS) if (fields[name]) stop[name] = fields[name][i];
      return stop;
    });
    for (const name of LIMITS) if (fields[name] != null) made.limits[name] = fields[name];
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
    this.stops.push({ id, a, b });
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

  // Values that the problem needs and nobody has given yet.
  complete(info) {
    const size = Math.max(1e-9, ...["a", "b"].map((axis) => span(this.stops.map((stop) => stop[axis]))));
    this.stops.forEach((stop, i) => {
      const home = i === this.depot;
      const values = {
        demand: 1 + ((i * 7) % 9), prize: round((1 + ((i * 37) % 100)) / 100), penalty: round(size / 8),
        real_prize: round((1 + ((i * 53) % 100)) / 100),
      };
      for (const name of COLUMNS) {
        if (info.needs.includes(name) && stop[name] == null) stop[name] = home ? 0 : values[name];
      }
    });
    const total = (name) => this.stops.reduce((sum, stop) => sum + (stop[name] || 0), 0);
    const unit = this.globe ? 111 : 1; // kilometres in a degree
    const values = {
      capacity: Math.max(10, ...this.stops.map((stop) => stop.demand || 0), Math.ceil(total("demand") / 4)),
      max_length: round(size * unit * 2), min_prize: round(total("prize") / 2) || 1,
    };
    for (const name of LIMITS) if (info.needs.includes(name) && this.limits[name] == null) this.limits[name] = values[name];
  }

  fields(info) {
    const fields = { problem: this.problem };
    if (!this.placeless) fields[this.globe ? "latlon" : "coords"] = this.stops.map((stop) => [stop.a, stop.b]);
    if (this.matrix) fields.matrix = this.matrix;
    else if (this.metric) fields.metric = this.metric;
    for (const name of COLUMNS) {
      if (info.needs.includes(name) && !(name === "prize" && this.problem === "op-const")) {
        fields[name] = this.stops.map((stop) => stop[name] ?? 0);
      }
    }
    for (const name of LIMITS) if (info.needs.includes(name) && this.limits[name] != null) fields[name] = this.limits[name];
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

  static fromLink(hash) {
    const text = atob(hash.replace(/^#/, "").replaceAll("-", "+").replaceAll("_", "/"));
    return Instance.from(JSON.parse(new TextDecoder().decode(Uint8Array.from(text, (letter) => letter.charCodeAt(0)))));
  }
}

const span = (values) => (values.length ? Math.max(...values) - Math.min(...values) : 0);

const circle = (count) =>
  Array.from({ length: count }, (_, i) => [
    round(0.5 + 0.45 * Math.cos((2 * Math.PI * i) / count)), round(0.5 + 0.45 * Math.sin((2 * Math.PI * i) / count)),
  ]);

function guess(fields) {
  if (fields.demand) return "cvrp";
  if (fields.penalty) return fields.real_prize ? "spctsp" : "pctsp";
  if (fields.max_length != null) return fields.prize ? "op-unif" : "op-const";
  return fields.prize ? "op-unif" : "tsp";
}
