// Whether the service can answer yet: asks until it can, and says what it waits for.

import { health } from "./api.js";
import { $ } from "./dom.js";

const PAUSE = 1000; // milliseconds between two questions
const LANES = { construct: "the policies' models", short: "the short searches", long: "the long searches" };

export let starting = false;

export async function watch() {
  for (;;) {
    const found = await health();
    starting = found !== null && found.status === "starting";
    $("starting").hidden = !starting;
    if (!starting) return;
    const missing = Object.entries(found.workers).filter(([, { ready }]) => !ready).map(([lane]) => LANES[lane] || lane);
    const words = `The service is starting. It still loads ${missing.join(", ")}; what you ask for now waits for that.`;
    if ($("starting").textContent !== words) $("starting").textContent = words;
    await new Promise((resolve) => setTimeout(resolve, PAUSE));
  }
}
