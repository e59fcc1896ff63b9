// A construction played step by step: what the decoder sees, and what it chooses.

import { make } from "./dom.js";

const PACE = 450; // milliseconds a step

export class Player {
  constructor(parts, show) {
    this.parts = parts; // elements: player, play, back, forward, scrub, step, facts, bars
    this.show = show; // draws a step, or null for none
    this.timer = null;
    parts.play.addEventListener("click", () => (this.timer ? this.pause() : this.play()));
    parts.back.addEventListener("click", () => this.go(this.at - 1));
    parts.forward.addEventListener("click", () => this.go(this.at + 1));
    parts.scrub.addEventListener("input", () => {
      this.pause();
      this.go(Number(parts.scrub.value));
    });
  }

  // `order`: node number -> index of the stop on the page.
  load(thoughts, order) {
    Object.assign(this, { thoughts, order });
    this.parts.player.hidden = false;
    this.parts.scrub.max = thoughts.steps.length - 1;
    this.go(0);
  }

  close() {
    this.pause();
    this.thoughts = null;
    this.parts.player.hidden = true;
  }

  play() {
    if (this.at >= this.thoughts.steps.length - 1) this.go(0);
    this.parts.play.textContent = "Pause";
    this.timer = setInterval(() => (this.at >= this.thoughts.steps.length - 1 ? this.pause() : this.go(this.at + 1)), PACE);
  }

  pause() {
    clearInterval(this.timer);
    this.timer = null;
    this.parts.play.textContent = "Play";
  }

  go(index) {
    const { steps, ids } = this.thoughts;
    this.at = Math.min(Math.max(index, 0), steps.length - 1);
    this.parts.scrub.value = this.at;
    const step = steps[this.at];
    const before = steps.slice(0, this.at).map((other) => other.chosen);
    const built = this.thoughts.answer.depot !== null ? [0, ...before] : before;
    const share = (100 * step.probabilities[step.chosen]).toFixed(1);
    this.parts.step.textContent = `Step ${this.at + 1} of ${steps.length}: chooses ${ids[step.chosen]} (${share} %)`;
    const left = Object.entries(step.remaining).map(([name, value]) => [`${name} left`, tidy(value)]);
    this.parts.facts.replaceChildren(...facts([...left, ["travelled", tidy(step.cost)], ["masked", step.masked.length]]));
    const best = step.probabilities.map((value, node) => [value, node]).filter(([value]) => value > 0);
    best.sort((one, other) => other[0] - one[0]);
    this.parts.bars.replaceChildren(
      ...best.slice(0, 6).map(([value, node]) => bar(ids[node], value, node === step.chosen)), ...reasons(step, ids));
    this.show({ ...step, built, order: this.order });
  }
}

const tidy = (value) => Number(value.toPrecision(4));

const facts = (pairs) =>
  pairs.flatMap(([name, value]) => [
    make("dt", { textContent: name.replace("prize to collect left", "prize to collect") }), make("dd", { textContent: value }),
  ]);

function bar(name, value, taken) {
  const fill = make("i");
  fill.style.width = `${100 * value}%`;
  const number = `${(100 * value).toFixed(1)} %`;
  return make("div", { className: taken ? "bar taken" : "bar" },
    make("span", { textContent: name }), make("span", {}, fill), make("span", { textContent: number }));
}

// Why nodes are masked, other than that they were visited.
const reasons = (step, ids) =>
  step.masked.filter(([, why]) => why !== "visited").slice(0, 4).map(([node, why]) =>
    make("div", { className: "hint", textContent: `${ids[node]} masked: ${why}` }));
