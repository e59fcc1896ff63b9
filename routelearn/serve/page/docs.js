// The service's own description, readable, with a box to try each request. Addresses are relative to the page's.

const make = (tag, text, parent) => {
  const made = document.createElement(tag);
  if (text !== undefined) made.textContent = text;
  parent?.append(made);
  return made;
};

const dark = localStorage.getItem("theme") || (matchMedia("(prefers-color-scheme: dark)").matches ? "dark" : "light");
document.documentElement.dataset.theme = dark;

const api = await (await fetch("openapi.json")).json();
const resolve = (schema) => (schema?.$ref ? api.components.schemas[schema.$ref.split("/").at(-1)] : schema);
const kind = (schema) =>
  schema.$ref ? schema.$ref.split("/").at(-1)
    : schema.anyOf ? schema.anyOf.map(kind).join(" | ")
      : schema.type === "array" ? `[${schema.items ? kind(schema.items) : "..."}]` : schema.type || "any";

for (const [path, methods] of Object.entries(api.paths)) {
  for (const [method, call] of Object.entries(methods)) {
    const box = make("fieldset", undefined, document.getElementById("paths"));
    make("legend", `${method.toUpperCase()} ${path}`, box);
    make("p", call.description || call.summary, box);
    const schema = resolve(call.requestBody?.content["application/json"].schema);
    const bodies = schema ? (schema.oneOf || schema.anyOf || [schema]).map(resolve) : []; // some paths take several kinds
    const table = make("table", undefined, make("div", undefined, box));
    table.parentNode.className = "scroll";
    const fields = schema ? bodies.flatMap((body) => Object.entries(body.properties)) : (call.parameters || []).map((p) => [p.name, p.schema]);
    for (const [name, field] of fields) {
      const row = make("tr", undefined, table);
      for (const cell of [name, kind(field), field.description || ""]) make("td", cell, row).style.textAlign = "left";
    }
    make("p", `Answers: ${Object.entries(call.responses).map(([code, r]) => `${code} ${r.description}`).join("; ")}`, box).className = "hint";
    const input = make(schema ? "textarea" : "input", undefined, box);
    input.value = schema ? JSON.stringify(bodies[0].examples?.[0] || {}, null, 1) : path.slice(1);
    if (schema) input.rows = 6;
    input.ariaLabel = `request for ${path}`;
    const button = make("button", "Try", box);
    const answer = make("pre", undefined, box);
    answer.className = "scroll";
    button.addEventListener("click", async () => {
      const token = sessionStorage.getItem("token");
      const headers = { ...(schema ? { "content-type": "application/json" } : {}), ...(token ? { authorization: `Bearer ${token}` } : {}) };
      const response = await fetch(schema ? path.slice(1) : input.value || "./", { method: method.toUpperCase(), headers, body: schema ? input.value : undefined });
      answer.textContent = `${response.status}\n${(await response.text()).slice(0, 4000)}`;
    });
  }
}
