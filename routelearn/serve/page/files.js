// Files that people choose, and what they say of vehicles beside them, as the service takes them.

import { Failure } from "./api.js";
import { $ } from "./dom.js";

const base64 = (bytes) => {
  let letters = "";
  for (const byte of bytes) letters += String.fromCharCode(byte);
  return btoa(letters);
};

export async function bytes(file) {
  const content = await file.arrayBuffer().catch(() => {
    throw new Failure({ error: `${file.name}: cannot be read; choose a file that is still there, not a folder` }, 0);
  });
  return base64(new Uint8Array(content));
}

// What the service needs to know of the vehicles, where the file does not say.
export async function fleet() {
  const given = {};
  for (const name of ["vehicles", "capacity", "shift", "speed"]) {
    const value = $(`fleet-${name}`).value.trim();
    if (value) given[name] = value;
  }
  const [file] = $("fleet-file").files;
  if (file) given.vehicles_file = { name: file.name, base64: await bytes(file) };
  return given;
}
