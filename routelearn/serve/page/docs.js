// The service's own description, readable, with a box to try each request. Addresses are relative to the page's.

const make = (tag, content, parent) => {
  const made = document.createElement(tag);
  made.append(...[content ?? []].flat());
  parent?.append(made);
  return made;
};

// Words in which `names` stand in backticks.
const words = (text) => text.split("`").map((part, i) => (i % 2 ? make("code", part) : part));

const dark = localStorage.getItem("theme") || (matchMedia("(prefers-color-scheme: dark)").matches ? "dark" : "light");
document.documentElement.dataset.theme = dark;

const api = await (await fetch("openapi.json")).json();
document.getElementById("about").textContent = api.info.description;
const token = document.getElementById("token");
token.value = sessionStorage.getItem("token") || "";
token.addEventListener("input", () => sessionStorage.setItem("token", token.value));

const between = (parts, words) => parts.flatMap((part, i) => (i ? [words, ...part] : part));

// A schema's type as text and links to the schemas that it names.
function type(schema) {
  if (schema.$ref) {
    const name = schema.$ref.split("/").at(-1);
    const link = make("a", name);
    link.href = `#schema-${name}`;
    return [link];
  }
  const several = schema.anyOf || schema.oneOf || schema.prefixItems;
  if (several) return between(several.map(type), schema.prefixItems ? ", " : " or ");
  if (schema.enum || "const" in schema) return [(schema.enum || [schema.const]).map((value) => JSON.stringify(value)).join(", ")];
  if (schema.contentSchema) return ["JSON text of ", ...type(schema.contentSchema)];
  if (schema.type === "array") return ["list of ", ...type(schema.items || {})];
  if (typeof schema.additionalProperties === "object") return ["object of ", ...type(schema.additionalProperties)];
  return [schema.type || "any"];
}

function bounds(schema) {
  const known = { minimum: "at least", maximum: "at most", minLength: "characters from", maxLength: "characters up to", minItems: "entries from", maxItems: "entries up to" };
  return [schema, ...(schema.anyOf || [])].flatMap((one) => Object.entries(known).filter(([key]) => key in one).map(([key, words]) => `${words} ${one[key]}`));
}

// Rows of [name, schema, required, description].
function fields(rows, parent) {
  const table = make("table", undefined, parent);
  for (const [name, schema, required, description] of rows) {
    const row = make("tr", undefined, table);
    make("th", make("code", name), row).scope = "row";
    make("td", type(schema), row);
    const given = required ? "required" : "default" in schema ? `default ${JSON.stringify(schema.default)}` : "optional";
    make("td", [given, ...bounds(schema)].join("; "), row);
    make("td", words(description || ""), row);
  }
}

const properties = (schema) =>
  Object.entries(schema.properties || {}).map(([name, field]) => [name, field, (schema.required || []).includes(name), field.description]);

// What a content has, by media type; a stream's events after it.
const contents = (content) =>
  between(Object.entries(content || {}).map(([media, one]) => [`${media}: `, ...(one.itemSchema ? ["events ", ...type(one.itemSchema)] : type(one.schema || {}))]), "; ");

function operation(path, method, call) {
  const box = make("fieldset", undefined, document.getElementById("paths"));
  make("legend", `${method.toUpperCase()} ${path}`, box);
  for (const paragraph of call.description.split("\n\n")) make("p", words(paragraph), box);
  make("p", `Operation ${call.operationId}${call.security ? "; needs a token where the service asks for one" : ""}`, box).className = "hint";
  if (call.parameters) fields(call.parameters.map((one) => [one.name, one.schema, one.required, one.description || one.schema.description]), box);
  const body = call.requestBody?.content["application/json"];
  if (body) make("p", ["Body: ", ...type(body.schema)], box);
  const answers = make("table", undefined, box);
  for (const [status, answer] of Object.entries(call.responses).sort()) {
    const row = make("tr", undefined, answers);
    make("th", status, row).scope = "row";
    make("td", words(answer.description), row);
    make("td", contents(answer.content), row);
  }
  attempt(box, path, method, body);
}

// The box to try a request, with the description's examples to begin from.
function attempt(box, path, method, body) {
  const input = make(body ? "textarea" : "input", undefined, box);
  input.ariaLabel = `request for ${method.toUpperCase()} ${path}`;
  input.value = path.slice(1);
  if (body) {
    input.rows = 4;
    const choice = make("select");
    input.before(choice);
    choice.ariaLabel = `example for ${path}`;
    for (const name of Object.keys(body.examples)) make("option", name, choice);
    const show = () => { input.value = JSON.stringify(body.examples[choice.value].value); };
    choice.addEventListener("change", show);
    show();
  }
  const button = make("button", "Try", box);
  const answer = make("pre", undefined, box);
  button.addEventListener("click", async () => {
    const headers = { ...(body ? { "content-type": "application/json" } : {}), ...(token.value ? { authorization: `Bearer ${token.value}` } : {}) };
    try {
      const response = await fetch(body ? path.slice(1) : input.value || "./", { method: method.toUpperCase(), headers, body: body ? input.value : undefined });
      answer.textContent = `${response.status}\n${(await response.text()).slice(0, 4000)}`;
    } catch {
      answer.textContent = "the service cannot be reached; see whether it runs, and try again";
    }
  });
}

for (const [path, methods] of Object.entries(api.paths)) {
  for (const [method, call] of Object.entries(methods)) operation(path, method, call);
}
for (const [name, schema] of Object.entries(api.components.schemas).sort()) {
  const section = make("section", undefined, document.getElementById("schemas"));
  section.id = `schema-${name}`;
  make("h3", name, section);
  if (schema.description) make("p", words(schema.description), section);
  fields(properties(schema), section);
}
