// A score board: chosen methods over a few instances, one after the other, and what each of them reached.

import { Failure, get, post } from "./api.js";
import { $, csv, make, plural, show } from "./dom.js";
import { Instance } from "./instance.js";
import { download } from "./keep.js";
import { choices, options } from "./methods.js";

const FIRST = ["both", "greedy"]; // ticked until somebody chooses
const DRAWN = 2 ** 31;
const MOST = 50; // instances of one run
const ALIKE = 1e-4; // percent: sums in another order

export class Scores {
  // `now()`: {instance, info, problems}, what is on the page; `seconds()` of a search.
  constructor(now, seconds, attempt) {
    Object.assign(this, { now, seconds, results: [], running: null });
    $("scores").addEventListener("toggle", () => this.offer());
    $("scores-which").addEventListener("change", () => this.offer());
    $("scores-run").addEventListener("click", () => attempt("scores", () => this.#run()));
    $("scores-stop").addEventListener("click", () => this.running?.abort());
    $("scores-save").addEventListener("click", () => download("scores.csv", "text/csv", this.csv()));
  }

  // The methods of the problem, as boxes to tick.
  offer() {
    if (!$("scores").open) return;
    const { info } = this.now();
    const ticked = this.#ticked().filter((value) => choices(info).some(([known]) => known === value));
    $("scores-methods").replaceChildren(...choices(info).map(([value, words]) => {
      const checked = (ticked.length ? ticked : FIRST).includes(value);
      return make("label", { className: "tick" }, make("input", { type: "checkbox", value, checked }), ` ${words}`);
    }));
    $("scores-current").disabled = this.now().instance.stops.length < 2;
    if ($("scores-current").disabled) $("scores-which").value = "random";
    $("scores-drawn").hidden = $("scores-which").value === "current";
  }

  #ticked() {
    return [...$("scores-methods").querySelectorAll("input:checked")].map((box) => box.value);
  }

  async #instances(info, signal) {
    const { instance, problems } = this.now();
    if ($("scores-which").value === "current") return [instance.fields(info)];
    const [count, n] = [$("scores-count"), $("scores-n")].map((input) => Math.max(1, Math.floor(Number(input.value)) || 1));
    if (count > MOST) throw new Failure({ error: `${count} instances; at most ${MOST} are possible here` }, 0);
    const seed = Math.floor(Math.random() * DRAWN);
    const drawn = Array.from({ length: count }, (_, i) => get(`random?problem=${info.id}&n=${n}&seed=${(seed + i) % DRAWN}`, signal));
    return (await Promise.all(drawn)).map((fields) => Instance.from(fields, problems, info.id).fields(info));
  }

  async #run() {
    const [{ info }, seconds] = [this.now(), this.seconds()];
    const names = new Map(choices(info));
    const methods = this.#ticked();
    if (!methods.length) throw new Failure({ error: "tick at least one method for the score board" }, 0);
    this.running?.abort();
    const mine = (this.running = new AbortController());
    const { signal } = mine;
    const instances = await this.#instances(info, signal);
    Object.assign(this, { results: methods.map((value) => ({ value, words: names.get(value), found: [] })), info });
    $("scores-stop").disabled = false;
    this.#show();
    $("scores").scrollIntoView({ block: "nearest" });
    try {
      for (const [i, fields] of instances.entries()) {
        for (const row of this.results) {
          $("scores-status").textContent = `Instance ${i + 1} of ${instances.length}: ${row.words}`;
          row.found.push(await this.#one(fields, options(row.value, seconds, info), signal));
          this.#show();
        }
      }
      const what = `${plural(instances.length, "instance")} of ${info.id} with ${plural(instances[0].ids.length, "stop")}`;
      $("scores-status").textContent = `Done: ${plural(this.results.length, "method")} over ${what}.`;
    } catch (error) {
      if (this.running === mine) $("scores-status").textContent = error.name === "AbortError" ? "Stopped." : "";
      throw error;
    } finally {
      if (this.running === mine) $("scores-stop").disabled = true; // otherwise a newer run has it
    }
  }

  // A method that cannot do this instance says so in its row; the others go on.
  async #one(fields, asked, signal) {
    try {
      const { objective, seconds } = await post("solve", { ...fields, ...asked }, signal);
      return { objective, seconds };
    } catch (error) {
      if (!(error instanceof Failure) || error.status !== 422) throw error;
      return { failed: error.message };
    }
  }

  // Per method: means over the instances that it did, and the mean gap to the best that any method found there.
  #rows() {
    const count = Math.max(...this.results.map((row) => row.found.length));
    const better = this.info.maximise ? Math.max : Math.min;
    const best = Array.from({ length: count }, (_, i) =>
      better(...this.results.map((row) => row.found[i]?.objective).filter((value) => value !== undefined)));
    const mean = (values) => values.reduce((sum, value) => sum + value, 0) / values.length;
    return this.results.map((row) => {
      const done = row.found.map((one, i) => ({ ...one, gap: (100 * Math.abs(one.objective - best[i])) / (Math.abs(best[i]) || 1) }));
      const good = done.filter((one) => one.failed === undefined);
      const failed = done.find((one) => one.failed !== undefined)?.failed;
      const told = good.length ? { objective: mean(good.map((o) => o.objective)), gap: mean(good.map((o) => o.gap)), seconds: mean(good.map((o) => o.seconds)) } : null;
      return { ...row, done, failed, told, won: good.filter((one) => one.gap < ALIKE).length };
    });
  }

  #show() {
    const rows = this.#rows();
    const least = Math.min(...rows.filter((row) => row.told).map((row) => row.told.gap));
    const heads = ["method", this.info.maximise ? "prize" : "cost", "gap to the best", "best in", "seconds"];
    const head = make("tr", {}, ...heads.map((textContent) => make("th", { textContent, scope: "col" })));
    const lines = rows.map((row) => {
      const best = row.told?.gap < least + ALIKE;
      const cells = row.told
        ? [show(row.told.objective), `${row.told.gap.toFixed(2)} %`, `${row.won} of ${row.done.length}`, row.told.seconds.toFixed(2)]
        : [row.failed || "…", "", "", ""];
      return make("tr", { className: best ? "best" : "", title: row.failed || "" },
        make("th", { scope: "row", textContent: `${row.words}${best ? " ★" : ""}` }), ...cells.map((textContent) => make("td", { textContent })));
    });
    $("scores-table").replaceChildren(make("thead", {}, head), make("tbody", {}, ...lines));
    $("scores-save").disabled = false;
  }

  csv() {
    const lines = [["problem", "instance", "method", this.info.maximise ? "prize" : "cost", "gap_percent", "seconds", "error"]];
    for (const row of this.#rows()) {
      row.done.forEach((one, i) => lines.push(
        [this.info.id, i + 1, row.words, one.objective ?? "", one.failed ? "" : one.gap.toFixed(4), one.seconds ?? "", one.failed ?? ""]));
    }
    return csv(lines);
  }
}
