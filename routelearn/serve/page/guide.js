// What to do next, beside the map: examples for an empty one, else what is still missing.

import { $, make, plural } from "./dom.js";
import { missing } from "./forms.js";

// `busy`: an answer, a construction or a search is shown instead.
export function guide(instance, info, busy) {
  const count = instance.stops.length;
  $("gallery").hidden = busy || count > 0;
  $("guide").hidden = busy || !count;
  if ($("guide").hidden) return;
  const needs = missing(instance, info);
  const title = make("h2", { textContent: plural(count, "stop") });
  if (!needs.length) {
    const words = count < 2 ? "A route needs at least 2: click on the map." : "Press Solve for a route, or watch the policy choose the stops one by one.";
    $("guide").replaceChildren(title, make("p", { textContent: words }));
    return;
  }
  const words = `Still needed: ${needs.join(", ")}. Give them in the fields and the table of stops, or take values as random instances have them.`;
  const fill = make("button", { type: "button", textContent: "Example values", onclick: () => $("example").click() });
  $("guide").replaceChildren(title, make("p", { textContent: words }), fill);
}
