// The ways to solve an instance: what each is called, and what a request then says. The solver `search` is the search
// alone, which stands there without being one of the solvers.

export function choices(info) {
  return [
    ["both", info.model ? "policy and search" : "search"],
    ["greedy", info.model ? "policy, greedy" : "constructive heuristic"],
    ...(info.model ? [["sample", "policy, best of 128 samples"], ["search", "search alone"]] : []),
    ...info.solvers.filter((name) => name !== "search").map((name) => [`solver:${name}`, name]),
  ];
}

export function options(method, seconds, info) {
  if (method === "greedy") return { seconds: 0, ...(info.model ? { decode: "greedy" } : { policy: false }) };
  if (method === "sample") return { seconds: 0, decode: "sample:128" };
  if (method === "search") return { seconds, policy: false };
  if (method.startsWith("solver:")) return { seconds, solver: method.slice(7) };
  return { seconds };
}

// Fill a list of methods; what was chosen stays where it still can be.
export function offer(select, info, usual) {
  const before = select.value;
  const found = choices(info);
  select.replaceChildren(...found.map(([value, words]) => new Option(words, value)));
  select.value = found.some(([value]) => value === before) ? before : usual;
}
