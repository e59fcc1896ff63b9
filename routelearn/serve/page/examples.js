// Examples to begin with: files of the package, and random instances of every problem that the service has.

import { make } from "./dom.js";
import { columns, limits } from "./instance.js";

const STOPS = 30;

const card = (title, words, open) =>
  make("button", { type: "button", className: "card", onclick: open }, make("strong", { textContent: title }), make("span", { textContent: words }));

// What a problem's instances have, in the words of its attributes.
function words(info) {
  const told = [...columns(info), ...limits(info)].map((one) => one.title);
  return `${STOPS} random stops${told.length ? ` with ${told.join(", ")}` : ""}`;
}

// `open.file(example)`, `open.random(problem, n)` load what was chosen.
export function gallery(host, examples, problems, open) {
  host.replaceChildren(
    make("h2", { textContent: "Start with an example" }),
    make("div", { className: "cards files" }, ...examples.map((one) => card(one.title, one.words, () => open.file(one)))),
    make("h3", { textContent: "or random stops" }),
    make("div", { className: "cards" }, ...problems.map((info) => card(info.title, words(info), () => open.random(info.id, STOPS)))),
  );
}
