// The page: what people do, and what then happens. Drawing, playing, keeping and asking live in their own modules.

import { Failure, get, post, setToken, stream } from "./api.js";
import { Board } from "./board.js";
import { $ } from "./dom.js";
import { gallery } from "./examples.js";
import { bytes, fleet } from "./files.js";
import { clearErrors, drawLimits, drawTable, report } from "./forms.js";
import { guide } from "./guide.js";
import { Instance } from "./instance.js";
import { download, text } from "./keep.js";
import { useTiles } from "./map.js";
import { offer, options } from "./methods.js";
import { Player } from "./player.js";
import { clock, watch } from "./ready.js";
import { RoundView } from "./rounds.js";
import { Scores } from "./scores.js";

const TYPES = { json: "application/json", geojson: "application/geo+json", csv: "text/csv", svg: "image/svg+xml" };

let problems = [];
let instance = new Instance();
let answers = { a: null, b: null };
let step = null; // the step of a construction that is shown
let running = null; // AbortController of a search
let loading = null; // AbortController of stops that are being fetched
let fetched = true; // or, while stops are being fetched, a promise whether they could be
let again = null; // how to read the file that was refused last, once more is said of its vehicles
let started = null; // a promise that the problems are known, or the reason told why not

const UNKNOWN = { attributes: [], solvers: [], model: null }; // until the service has told its problems
const info = () => problems.find((problem) => problem.id === instance.problem) || UNKNOWN;

function seconds() {
  const { valueAsNumber } = $("seconds");
  if (Number.isFinite(valueAsNumber)) return valueAsNumber;
  throw new Failure({ error: "seconds is empty; give a number, 0 for a construction without a search", field: "seconds" }, 0);
}

const boards = {
  a: new Board($("board-a"), "map of stops", {
    place: (a, b) => change(() => instance.add(a, b)),
    move: (index, a, b) => change(() => {
      Object.assign(instance.stops[index], { a, b });
      instance.moved();
    }),
    moved: () => change(() => {}),
    remove: (index) => change(() => instance.remove(index)),
    viewed: (view) => boards.b.map.follow(view),
  }),
  b: new Board($("board-b"), "map of the second method", { viewed: (view) => boards.a.map.follow(view) }),
};

const player = new Player(
  Object.fromEntries(["player", "play", "back", "forward", "scrub", "step", "facts", "bars"].map((name) => [name, $(name)])),
  (shown) => {
    step = shown;
    draw();
  },
);

// A round has a view of its own, in place of the boards.
const view = new RoundView((how) => attempt("round", how), () => {
  running?.abort();
  $("count").textContent = instance.stops.length;
});
const scores = new Scores(() => ({ instance, info: info(), problems }), seconds, attempt);

// ---------------------------------------------------------------------------------------------- showing

function draw() {
  const two = !$("board-b").hidden;
  boards.a.draw(instance, info(), step ? null : answers.a, step, two ? answers.b : null);
  if (two) boards.b.draw(instance, info(), answers.b, null, answers.a, true);
  for (const button of $("downloads").querySelectorAll("[data-kind]")) {
    const placed = button.dataset.kind !== "geojson" || instance.globe;
    button.disabled = !answers.a || !placed;
    button.title = placed ? "" : "GeoJSON needs stops with lat and lon";
  }
  showGuide();
}

const showGuide = () => guide(instance, info(), Boolean(answers.a || step || running));

const say = (words) => ($("say").textContent = words);

// What is being found, and what was found, for stops or limits that no longer hold.
function forget() {
  if (!view.open) running?.abort();
  answers = { a: null, b: null };
  step = null;
  player.close();
  again = null;
  $("linked").textContent = "";
  clearErrors();
}

// The instance changed: answers to the old one go.
function change(how) {
  how();
  forget();
  if (!boards.a.moving) {
    $("problem").value = instance.problem;
    drawLimits(instance, info(), limit);
    drawTable(instance, info(), change);
  }
  $("count").textContent = instance.stops.length;
  scores.offer();
  draw();
}

function limit(name, value) {
  instance.limits[name] = value;
  forget();
  draw();
}

// Whether nothing stood in the way; else it is told.
async function attempt(action, how) {
  await started; // what people do in the first second waits until the problems are known
  clearErrors();
  try {
    await how();
  } catch (error) {
    report(error, action, info());
    return error.name === "AbortError";
  }
  return true;
}

// Stops that are still being fetched when it is asked for are those that are meant.
const attemptFetched = (action, how) => attempt(action, async () => {
  if (await fetched) await how();
});

// ---------------------------------------------------------------------------------------------- solving

function methods() {
  const able = problems.filter((problem) => problem.model).map((problem) => problem.id);
  $("no-model").hidden = Boolean(info().model);
  $("no-model").textContent =
    `No trained model ships for ${instance.problem} yet, so there is no policy to watch; Solve searches without one. ` +
    `Problems with a model: ${able.join(", ") || "none"}.`;
  $("think").disabled = $("think-mode").disabled = !info().model;
  offer($("method-a"), info(), "both");
  offer($("method-b"), info(), "greedy");
  scores.offer();
}

async function run(which, signal) {
  const method = $(`method-${which}`);
  boards[which].method = method.selectedOptions[0].textContent;
  const hear = (answer) => {
    answers[which] = answer;
    draw();
  };
  await stream("solve/stream", { ...instance.fields(info()), ...options(method.value, seconds(), info()) }, hear, signal);
}

function enough() {
  if (instance.stops.length >= 2) return;
  throw new Failure({ error: "a route needs at least 2 stops: click on the map, or press Random", field: "coords" }, 0);
}

// One search at a time: a new one ends the old one, and Stop ends it early.
async function searching(how, told) {
  running?.abort();
  const mine = (running = new AbortController());
  $("stop").disabled = false;
  const rest = clock();
  say("Searching.");
  try {
    await how(mine.signal);
    say(told());
  } catch (error) {
    if (running === mine) say(error.name === "AbortError" ? `Stopped. ${told()}` : ""); // what failed is told beside
    throw error;
  } finally {
    rest();
    if (running === mine) {
      running = null;
      $("stop").disabled = true;
      showGuide();
    }
  }
}

async function solve() {
  if (view.open) {
    await searching((signal) => view.solve(seconds(), signal), () => $("round-title").textContent);
    return;
  }
  enough();
  player.close();
  step = null;
  answers = { a: null, b: null };
  compare();
  const which = ["a", ...($("compare").checked ? ["b"] : [])];
  await searching((signal) => Promise.all(which.map((one) => run(one, signal))), () => which.map((one) => boards[one].caption.textContent).join("; "));
}

async function think() {
  enough();
  running?.abort();
  const { signal } = (running = new AbortController());
  $("stop").disabled = true;
  const sample = Boolean($("think-mode").value);
  const fields = { ...instance.fields(info()), sample, seed: sample ? Math.floor(Math.random() * 2 ** 31) : 0 };
  try {
    const thoughts = await post("think", fields, signal);
    const index = new Map(instance.stops.map((stop, i) => [String(stop.id), i]));
    player.load(thoughts, thoughts.ids.map((id) => index.get(String(id))));
  } finally {
    if (running?.signal === signal) running = null;
  }
}

function compare() {
  $("method-b").disabled = $("second").hidden = $("board-b").hidden = !$("compare").checked;
  $("boards").classList.toggle("two", $("compare").checked);
  draw();
}

// ---------------------------------------------------------------------------------------------- loading

// Fetch stops. What people do last counts: whatever was being fetched before is given up.
function load(how) {
  const mine = (fetched = attempt("stops", () => {
    loading?.abort();
    loading = new AbortController();
    return how(loading.signal);
  }));
  return mine.finally(() => fetched === mine && (fetched = true));
}

// The service reads the file, as the command line does: `content` is its text, or its bytes in base64.
async function read(name, content, given, signal) {
  const fields = await post("stops", { name, ...content, ...given }, signal);
  if (fields.round) {
    running?.abort();
    view.show(name, fields.round, fields.notes || [], fields.unit);
    return;
  }
  use(Instance.from(fields, problems, instance.problem));
  if (fields.unclear) throw new Failure({ error: fields.unclear, field: "coords" }, 0);
}

function use(found) {
  view.close();
  change(() => (instance = found));
  methods();
}

const random = (problem, n, signal) => get(`random?problem=${problem}&n=${n}&seed=${Math.floor(Math.random() * 2 ** 31)}`, signal);

// One file that was chosen or dropped.
const open = (files) => load(async (signal) => {
  if (files.length > 1) throw new Failure({ error: "several files; open the stops first, vehicles have a field of their own", field: "coords" }, 0);
  await readFile(files[0].name, { base64: await bytes(files[0]) }, signal);
});

// With what the fields beside it say of the vehicles.
async function readFile(name, content, signal) {
  again = (later) => readFile(name, content, later);
  await read(name, content, await fleet(), signal);
  again = null;
}

// The button that was pressed may be gone: the focus goes to what it brought.
function look() {
  if (document.activeElement === document.body || document.activeElement.closest("[hidden]")) (view.open ? view : boards.a).map.svg.focus({ preventScroll: true });
}

const examples = {
  file: (one) => load(async (signal) => {
    await read(one.name, { text: one.text }, one.given, signal);
    if (!view.open) change(() => Object.assign(instance.limits, one.limits));
    look();
  }),
  random: (problem, n) => load(async (signal) => {
    use(Instance.from(await random(problem, n, signal), problems, problem));
    look();
  }),
};

function fromLink() {
  if (location.hash.length < 2) return;
  try {
    use(Instance.fromLink(location.hash, problems));
  } catch {
    report(new Failure({ error: "the link is damaged: it holds no stops", field: "coords" }, 0), "stops", info());
  }
}

// ---------------------------------------------------------------------------------------------- wiring

function wire() {
  const on = (id, kind, how) => $(id).addEventListener(kind, how);
  on("problem", "change", () => {
    loading?.abort();
    change(() => (instance.problem = $("problem").value));
    methods();
  });
  on("random", "click", () => examples.random(instance.problem, Number($("random-n").value)));
  on("example", "click", () => load(async (signal) => {
    const fields = await random(instance.problem, Math.max(2, instance.stops.length - (info().has_depot ? 1 : 0)), signal);
    change(() => instance.complete(info(), fields));
  }));
  on("add", "click", () => change(() => instance.add(...boards.a.map.somewhere())));
  on("clear", "click", () => {
    loading?.abort();
    change(() => (instance = new Instance(instance.problem)));
  });
  on("file", "change", () => {
    const files = [...$("file").files];
    $("file").value = "";
    if (files.length) open(files);
  });
  // A file may be dropped anywhere; fields of files take their own.
  const dropped = (event) => event.dataTransfer.types.includes("Files") && !event.target.closest?.("input[type=file]");
  window.addEventListener("dragover", (event) => dropped(event) && event.preventDefault());
  window.addEventListener("drop", (event) => {
    if (!dropped(event)) return;
    event.preventDefault();
    if (event.dataTransfer.files.length) open([...event.dataTransfer.files]);
  });
  on("read", "click", () => load((signal) => readFile("the text", { text: $("paste").value }, signal)));
  for (const input of $("files").querySelectorAll("[id^=fleet-]")) input.addEventListener("change", () => again && load(again));
  on("details", "toggle", () => drawTable(instance, info(), change));
  on("compare", "change", compare);
  on("solve", "click", () => attemptFetched("solve", solve));
  on("stop", "click", () => running?.abort());
  on("think", "click", () => attemptFetched("think", think));
  on("token", "change", () => {
    setToken($("token").value);
    clearErrors();
    if (!problems.length) started = start();
  });
  on("theme", "click", () => theme(document.documentElement.dataset.theme === "dark" ? "light" : "dark"));
  on("print", "click", () => window.print());
  on("link", "click", async () => {
    const link = instance.toLink(info());
    history.replaceState(null, "", link);
    $("linked").textContent = "The address of this page now reproduces these stops.";
    await navigator.clipboard?.writeText(link).catch(() => {});
  });
  on("downloads", "click", (event) => {
    const { kind } = event.target.dataset;
    if (kind) download(`routes.${kind}`, TYPES[kind], text(kind, answers.a, instance, info(), boards.a.map.svg));
  });
  window.addEventListener("hashchange", fromLink);
  if ($("file").files.length) $("file").dispatchEvent(new Event("change")); // chosen before this script ran
}

function theme(name) {
  document.documentElement.dataset.theme = name;
  localStorage.setItem("theme", name);
}

async function start() {
  const settings = get("page/settings.json").catch(() => ({ tiles: null, examples: [] }));
  try {
    ({ problems } = await get("problems"));
    $("problem").replaceChildren(...problems.map((problem) => new Option(`${problem.title} (${problem.id})`, problem.id)));
    const { tiles, examples: files } = await settings;
    if (tiles) useTiles(tiles);
    gallery($("gallery"), files, problems, examples);
    change(() => (instance.problem ??= problems[0].id));
    methods();
    fromLink();
  } catch (error) {
    report(error, "problem", info());
  }
}

theme(localStorage.getItem("theme") || (matchMedia("(prefers-color-scheme: dark)").matches ? "dark" : "light"));
watch();
started = start();
wire();
draw();
