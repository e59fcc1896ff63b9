// The page: what people do, and what then happens. Drawing, playing, keeping and asking live in their own modules.

import { Failure, get, post, setToken, stream } from "./api.js";
import { Board } from "./board.js";
import { columns, Instance, limits, parsed, written } from "./instance.js";
import { download, text } from "./keep.js";
import { Player } from "./player.js";
import { RoundView } from "./rounds.js";

const $ = (id) => document.getElementById(id);
const TYPES = { json: "application/json", geojson: "application/geo+json", csv: "text/csv", svg: "image/svg+xml" };

let problems = [];
let instance = new Instance();
let answers = { a: null, b: null };
let step = null; // the step of a construction that is shown
let running = null; // AbortController of a search
let started = null; // a promise that the problems are known, or the reason told why not

const UNKNOWN = { attributes: [], solvers: [], model: null }; // until the service has told its problems
const info = () => problems.find((problem) => problem.id === instance.problem) || UNKNOWN;

const boards = {
  a: new Board($("board-a"), {
    place: (a, b) => change(() => instance.add(a, b)),
    move: (index, a, b) => {
      Object.assign(instance.stops[index], { a, b });
      instance.moved();
      change(() => {});
    },
    moved: table,
    remove: (index) => change(() => instance.remove(index)),
  }),
  b: new Board($("board-b"), null),
};

const player = new Player(
  Object.fromEntries(["player", "play", "back", "forward", "scrub", "step", "facts", "bars"].map((name) => [name, $(name)])),
  (shown) => {
    step = shown;
    draw();
  },
);

// A round has a view of its own, in place of the boards.
const view = new RoundView($, post, (how) => attempt("round", how));

// ---------------------------------------------------------------------------------------------- showing

function draw() {
  boards.a.draw(instance, info(), step ? null : answers.a, step);
  if (!$("board-b").hidden) boards.b.draw(instance, info(), answers.b, null, answers.a);
  for (const button of $("downloads").querySelectorAll("[data-kind]")) {
    const placed = button.dataset.kind !== "geojson" || instance.globe;
    button.disabled = !answers.a || !placed;
    button.title = placed ? "" : "GeoJSON needs stops with lat and lon";
  }
}

// What is being found, and what was found, for stops or limits that no longer hold.
function forget() {
  if (!view.open) running?.abort();
  answers = { a: null, b: null };
  step = null;
  player.close();
  clearErrors();
}

// The instance changed: answers to the old one go.
function change(how) {
  how();
  forget();
  if (!boards.a.moving) {
    showLimits();
    table();
  }
  $("count").textContent = instance.stops.length;
  draw();
}

function showLimits() {
  $("problem").value = instance.problem;
  $("limits").replaceChildren(
    ...limits(info()).map((one) => {
      const label = Object.assign(document.createElement("label"), { className: "field", title: one.help });
      const type = one.shape.length ? "text" : "number";
      const input = Object.assign(document.createElement("input"), { type, step: "any", id: `limit-${one.name}` });
      input.dataset.field = one.name;
      input.placeholder = one.default ?? "";
      input.value = written(instance.limits[one.name]); // exact until changed
      input.addEventListener("change", () => {
        const value = parsed(one, input.value);
        if (value !== undefined) instance.limits[one.name] = value;
        forget();
        draw();
      });
      label.append(Object.assign(document.createElement("span"), { textContent: one.title }), input);
      return label;
    }),
  );
}

function table() {
  if (!$("details").open) return;
  const attributes = columns(info());
  const names = ["id", ...(instance.globe ? ["lat", "lon"] : ["x", "y"]), ...attributes.map((one) => one.name)];
  const keys = ["id", "a", "b", ...attributes];
  const head = document.createElement("tr");
  head.append(...[...names, ""].map((name) => Object.assign(document.createElement("th"), { textContent: name })));
  const rows = instance.stops.slice(0, 300).map((stop, i) => {
    const row = document.createElement("tr");
    for (const [at, key] of keys.entries()) {
      const value = key.name ? [stop.values[key.name] ?? ""].flat(9).join(" ") : stop[key] ?? "";
      const input = Object.assign(document.createElement("input"), { value, inputMode: key === "id" ? "text" : "decimal" });
      input.ariaLabel = `${names[at]} of stop ${stop.id}`;
      input.addEventListener("change", () => {
        if (key === "id") stop.id = input.value;
        else if (key.name) stop.values[key.name] = parsed(key, input.value) ?? null;
        else if (Number.isFinite(Number(input.value))) stop[key] = Number(input.value);
        if (key === "a" || key === "b") instance.moved();
        change(() => {});
      });
      row.append(Object.assign(document.createElement("td")));
      row.lastChild.append(input);
    }
    const remove = Object.assign(document.createElement("button"), { textContent: "×", type: "button", ariaLabel: `remove ${stop.id}` });
    remove.addEventListener("click", () => change(() => instance.remove(i)));
    row.append(document.createElement("td"));
    row.lastChild.append(remove);
    return row;
  });
  $("table").replaceChildren(head, ...rows);
}

// ----------------------------------------------------------------------------------------------- errors

function clearErrors() {
  for (const line of document.querySelectorAll(".error")) line.remove();
  for (const input of document.querySelectorAll("[aria-invalid]")) input.removeAttribute("aria-invalid");
}

// An error stands beside the field it is about, or with the action that met it.
function report(error, action) {
  if (error.name === "AbortError") return;
  if (!(error instanceof Failure)) throw error;
  if (error.status === 401) $("token-row").hidden = false;
  const field = (error.field || "").split(".")[0];
  const input = document.querySelector(`[data-field="${field}"]`) || (field === "seconds" ? $("seconds") : null);
  const stops = ["coords", "latlon", "matrix", "ids", "depot", ...columns(info()).map((one) => one.name)].includes(field);
  const place = input?.closest("fieldset") || document.querySelector(`[data-errors="${stops ? "stops" : action}"]`);
  input?.setAttribute("aria-invalid", "true");
  const line = Object.assign(document.createElement("p"), { className: "error", textContent: error.message, role: "alert" });
  place.append(line);
}

async function attempt(action, how) {
  await started; // what people do in the first second waits until the problems are known
  clearErrors();
  try {
    await how();
  } catch (error) {
    report(error, action);
  }
}

// ---------------------------------------------------------------------------------------------- solving

function methods() {
  const built = info().model ? "greedy" : "heuristic";
  const choices = [
    ["both", info().model ? "policy and search" : "search"],
    ["greedy", info().model ? "policy, greedy" : "constructive heuristic"],
    ...(built === "greedy" ? [["sample", "policy, best of 128 samples"], ["search", "search alone"]] : []),
    ...info().solvers.map((name) => [`solver:${name}`, name]),
  ];
  const able = problems.filter((problem) => problem.model).map((problem) => problem.id);
  $("no-model").hidden = Boolean(info().model);
  $("no-model").textContent =
    `No trained model ships for ${instance.problem} yet, so there is no policy to watch; Solve searches without one. ` +
    `Problems with a model: ${able.join(", ") || "none"}.`;
  $("think").disabled = $("think-mode").disabled = !info().model;
  for (const id of ["method-a", "method-b"]) {
    const before = $(id).value;
    $(id).replaceChildren(...choices.map(([value, words]) => new Option(words, value)));
    $(id).value = choices.some(([value]) => value === before) ? before : id === "method-a" ? "both" : "greedy";
  }
}

function options(method) {
  const seconds = Number($("seconds").value) || 0;
  if (method === "greedy") return { seconds: 0, ...(info().model ? { decode: "greedy" } : { policy: false }) };
  if (method === "sample") return { seconds: 0, decode: "sample:128" };
  if (method === "search") return { seconds, policy: false };
  if (method.startsWith("solver:")) return { seconds, solver: method.slice(7) };
  return { seconds };
}

async function run(which, signal) {
  const method = $(`method-${which}`);
  boards[which].method = method.selectedOptions[0].textContent;
  const hear = (event, body) => {
    if (event === "failed") throw new Failure(body, 503);
    answers[which] = body;
    draw();
  };
  await stream("solve/stream", { ...instance.fields(info()), ...options(method.value) }, hear, signal);
}

function enough() {
  if (instance.stops.length >= 2) return;
  throw new Failure({ error: "a route needs at least 2 stops: click on the map, or press Random", field: "coords" }, 0);
}

// Seconds since the search began, so that waiting looks like waiting.
function clock() {
  const began = performance.now();
  const tell = () => ($("status").textContent = `searching, ${((performance.now() - began) / 1000).toFixed(0)} s`);
  tell();
  const timer = setInterval(tell, 500);
  return () => {
    clearInterval(timer);
    $("status").textContent = "";
  };
}

async function solve() {
  if (view.open) return solveRound();
  enough();
  running?.abort();
  running = new AbortController();
  const { signal } = running;
  player.close();
  step = null;
  answers = { a: null, b: null };
  $("stop").disabled = false;
  $("board-b").hidden = !$("compare").checked;
  draw();
  const rest = clock();
  try {
    await Promise.all(["a", ...($("compare").checked ? ["b"] : [])].map((which) => run(which, signal)));
  } finally {
    rest();
    if (running?.signal === signal) $("stop").disabled = true;
  }
}

async function solveRound() {
  running?.abort();
  running = new AbortController();
  const { signal } = running;
  $("stop").disabled = false;
  const rest = clock();
  try {
    await view.solve(Number($("seconds").value) || 0, signal);
  } finally {
    rest();
    if (running?.signal === signal) $("stop").disabled = true;
  }
}

// What the service needs to know of the vehicles, where the file does not say.
async function fleet() {
  const given = {};
  for (const name of ["vehicles", "capacity", "shift", "speed"]) {
    const text = $(`fleet-${name}`).value.trim();
    if (text) given[name] = text;
  }
  const [file] = $("fleet-file").files;
  if (file) given.vehicles_file = { name: file.name, base64: base64(new Uint8Array(await file.arrayBuffer())) };
  return given;
}

async function think() {
  enough();
  running?.abort();
  running = new AbortController();
  const { signal } = running;
  $("stop").disabled = true;
  const sample = Boolean($("think-mode").value);
  const fields = { ...instance.fields(info()), sample, seed: sample ? Math.floor(Math.random() * 2 ** 31) : 0 };
  const thoughts = await post("think", fields, signal);
  const index = new Map(instance.stops.map((stop, i) => [String(stop.id), i]));
  player.load(thoughts, thoughts.ids.map((id) => index.get(String(id))));
}

// The service reads the file, as the command line does: `content` is its text, or its bytes in base64.
const read = async (name, content) => {
  const fields = await post("stops", { name, ...content, ...(await fleet()) });
  if (fields.round) {
    running?.abort();
    view.show(name, fields.round, fields.notes || []);
    return;
  }
  view.close();
  change(() => (instance = Instance.from(fields, problems, instance.problem)));
  methods();
  if (fields.unclear) throw new Failure({ error: fields.unclear, field: "coords" }, 0);
};

const base64 = (bytes) => {
  let letters = "";
  for (const byte of bytes) letters += String.fromCharCode(byte);
  return btoa(letters);
};

const random = (n) => get(`random?problem=${instance.problem}&n=${n}&seed=${Math.floor(Math.random() * 2 ** 31)}`);

// ---------------------------------------------------------------------------------------------- wiring

function wire() {
  $("problem").addEventListener("change", () => {
    change(() => (instance.problem = $("problem").value));
    methods();
  });
  $("random").addEventListener("click", () =>
    attempt("stops", async () => {
      const fields = await random(Number($("random-n").value));
      change(() => (instance = Instance.from(fields, problems, instance.problem)));
    }),
  );
  $("example").addEventListener("click", () =>
    attempt("stops", async () => {
      const fields = await random(Math.max(2, instance.stops.length));
      change(() => instance.complete(info(), fields));
    }),
  );
  $("add").addEventListener("click", () => {
    const { low, size } = boards.a.frame;
    const [x, y] = [0, 1].map((axis) => Number((low[axis] + Math.random() * size).toPrecision(5)));
    change(() => instance.add(...(instance.globe ? [y, x] : [x, y])));
  });
  $("clear").addEventListener("click", () => change(() => (instance = new Instance(instance.problem))));
  $("file").addEventListener("change", () =>
    attempt("stops", async () => {
      const [file] = $("file").files;
      $("file").value = "";
      if (file) await read(file.name, { base64: base64(new Uint8Array(await file.arrayBuffer())) });
    }),
  );
  $("read").addEventListener("click", () => attempt("stops", () => read("the text", { text: $("paste").value })));
  $("details").addEventListener("toggle", table);
  $("compare").addEventListener("change", () => {
    $("method-b").disabled = $("second").hidden = !$("compare").checked;
    $("board-b").hidden = !$("compare").checked;
    draw();
  });
  $("solve").addEventListener("click", () => attempt("solve", solve));
  $("stop").addEventListener("click", () => running?.abort());
  $("think").addEventListener("click", () => attempt("think", think));
  $("token").addEventListener("change", () => {
    setToken($("token").value);
    clearErrors();
    if (!problems.length) started = start();
  });
  $("theme").addEventListener("click", () => theme(document.documentElement.dataset.theme === "dark" ? "light" : "dark"));
  $("link").addEventListener("click", async () => {
    const link = instance.toLink(info());
    history.replaceState(null, "", link);
    $("linked").textContent = "The address of this page now reproduces these stops.";
    await navigator.clipboard?.writeText(link).catch(() => {});
  });
  $("downloads").addEventListener("click", (event) => {
    const { kind } = event.target.dataset;
    if (kind) download(`routes.${kind}`, TYPES[kind], text(kind, answers.a, instance, boards.a));
  });
  window.addEventListener("hashchange", fromLink);
  if ($("file").files.length) $("file").dispatchEvent(new Event("change")); // chosen before this script ran
}

function theme(name) {
  document.documentElement.dataset.theme = name;
  localStorage.setItem("theme", name);
}

function fromLink() {
  if (location.hash.length < 2) return;
  try {
    const found = Instance.fromLink(location.hash, problems);
    change(() => (instance = found));
    methods();
  } catch {
    report(new Failure({ error: "the link is damaged: it holds no stops", field: "coords" }, 0), "stops");
  }
}

async function start() {
  try {
    ({ problems } = await get("problems"));
    $("problem").replaceChildren(...problems.map((problem) => new Option(`${problem.title} (${problem.id})`, problem.id)));
    change(() => (instance.problem ??= problems[0].id));
    methods();
    fromLink();
  } catch (error) {
    report(error, "problem");
  }
}

theme(localStorage.getItem("theme") || (matchMedia("(prefers-color-scheme: dark)").matches ? "dark" : "light"));
started = start();
wire();
