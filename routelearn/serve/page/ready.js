// Waiting: whether the service can answer yet and what it still loads, and how long a search has run.

import { health } from "./api.js";
import { $ } from "./dom.js";

const PAUSE = 1000; // milliseconds between two questions
const LANES = { construct: "the policies' models", short: "the short searches", long: "the long searches" };

let starting = false;

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

// Seconds since the search began, so that waiting looks like waiting.
export function clock() {
  const began = performance.now();
  const tell = () => {
    const passed = ((performance.now() - began) / 1000).toFixed(0);
    $("status").textContent = `${starting ? "waiting for the service to start" : "searching"}, ${passed} s`;
  };
  tell();
  const timer = setInterval(tell, 500);
  return () => {
    clearInterval(timer);
    $("status").textContent = "";
  };
}
