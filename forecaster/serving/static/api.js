// The serving process, asked with relative addresses: the page works behind any proxy and prefix.

const known = new Map();

let visit = 0;

/** The answer says why there is none, or there is no answer. */
export class Refused extends Error {
  constructor(message, status = 0, waits = false) { super(message); Object.assign(this, { status, waits }); }
}

/** The reader has gone to another page meanwhile. */
export class Left extends Error {}

/** From now on answers to earlier questions are of no use. */
export function leave() { visit += 1; }

/** JSON of an address; a body that has not changed is not sent again. An answer that `stays` is of use on every page. */
export async function get(path, stays = false) {
  const [of, before] = [visit, known.get(path)];
  const asked = fetch(path, { cache: "no-store", headers: before ? { "If-None-Match": before.etag } : {} });
  const answer = await asked.catch(() => { throw new Refused("The serving process does not answer. Trying again."); });
  const value = answer.status === 304 ? before.value : await answer.json().catch(() => null);
  if (of !== visit && !stays) throw new Left();
  if (!value) throw new Refused(`The serving process does not answer, what is in front of it says ${answer.status} ${answer.statusText}`.trim());
  if (answer.status === 304) return value;
  if (value.waiting) throw new Refused(value.waiting, 0, true);
  if (!answer.ok) throw new Refused([value.detail ?? value.message, value.remedy].filter(Boolean).join(". ") || answer.statusText, answer.status);
  const etag = answer.headers.get("ETag");
  if (etag) { known.clear(); known.set(path, { etag, value }); }
  return value;
}

/** Asks for a change; the header is what pages of other origins cannot send. */
export async function put(path, value) {
  const headers = { "Content-Type": "application/json", "X-Forecaster-Request": "dashboard" };
  const answer = await fetch(path, { method: "PUT", headers, body: JSON.stringify(value) }).catch(() => { throw new Refused("The serving process does not answer."); });
  const found = await answer.json();
  if (!answer.ok) throw new Refused([found.detail ?? found.message, found.remedy].filter(Boolean).join(". ") || answer.statusText, answer.status);
  return found;
}

/** The bytes of a base64 text. */
export function decoded(text) {
  const raw = atob(text);
  const bytes = new Uint8Array(raw.length);
  for (let i = 0; i < raw.length; i += 1) bytes[i] = raw.charCodeAt(i);
  return bytes;
}
