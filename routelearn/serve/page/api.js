// The service as functions: every failure is a Failure with the one line and the field of its body. Paths are relative
// to the page, which may stand anywhere.

export class Failure extends Error {
  constructor(body, status) {
    super(body.error || `the service answered ${status}`);
    Object.assign(this, { field: body.field || null, limit: body.limit || null, status });
  }
}

let token = sessionStorage.getItem("token") || "";
export function setToken(value) {
  token = value;
  sessionStorage.setItem("token", value);
}

async function request(path, body, signal, accept) {
  const headers = { ...(accept ? { accept } : {}), ...(token ? { authorization: `Bearer ${token}` } : {}) };
  const options = { headers, signal };
  if (body !== undefined) {
    Object.assign(options, { method: "POST", body: JSON.stringify(body) });
    headers["content-type"] = "application/json";
  }
  let response;
  try {
    response = await fetch(path, options);
  } catch (error) {
    if (error.name === "AbortError") throw error;
    throw new Failure({ error: "the service cannot be reached; see whether it runs, and try again" }, 0);
  }
  if (!response.ok) throw new Failure(await response.json().catch(() => ({})), response.status);
  return response;
}

// An answer that broke off on its way.
function lost(error) {
  throw error.name === "AbortError" ? error : new Failure({ error: "the connection to the service was lost; see whether it runs, and try again" }, 0);
}

export const get = async (path, signal) => (await request(path, undefined, signal)).json().catch(lost);
export const post = async (path, body, signal) => (await request(path, body, signal)).json().catch(lost);
// The answer as a file of another type than JSON.
export const file = async (path, body, accept) => (await request(path, body, undefined, accept)).text().catch(lost);

// What /healthz tells, also while it answers 503; null if it cannot be asked.
export const health = async () => {
  try {
    return await (await fetch("healthz")).json();
  } catch {
    return null;
  }
};

// Server-sent events of a POST: `hear(answer)` for each better one and the last, in order.
export async function stream(path, body, hear, signal) {
  const reader = (await request(path, body, signal)).body.pipeThrough(new TextDecoderStream()).getReader();
  let [text, whole] = ["", false];
  for (;;) {
    const { value, done } = await reader.read().catch(lost);
    if (done && !whole) lost(new Error("no event `done`"));
    if (done) return;
    text += value;
    let end;
    while ((end = text.indexOf("\n\n")) >= 0) {
      const lines = text.slice(0, end).split("\n");
      text = text.slice(end + 2);
      const event = lines.find((line) => line.startsWith("event: "));
      const data = lines.find((line) => line.startsWith("data: "));
      if (!event || !data) continue;
      const answer = JSON.parse(data.slice(6));
      if (event.slice(7) === "failed") throw new Failure(answer, 503);
      whole = event.slice(7) === "done";
      hear(answer);
    }
  }
}
