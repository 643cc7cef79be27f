// The fleet: every workload on one page. Columns come as they are in the table; this file counts, filters and sorts them.

import { decoded, get } from "./api.js";
import { byId, element, show, total } from "./dom.js";
import { DASH, amount, count, percent, signed, words } from "./format.js";
import { Rows } from "./rows.js";
import { spark } from "./spark.js";

const FORECAST = ["has its say", "watched", "none"];
const BROKEN = ["failed", "source-down", "no-data", "stale", "no-pods", "no-target"];
/** Reasons for which a person has something to do, the worst first, and what that is. */
const CAUSES = {
  failed: "computing failed: the row says how",
  "source-down": "the source does not answer: see Health",
  "no-data": "no sample of a signal: see what its sentence names",
  stale: "samples are too old to act on",
  "no-pods": "pods were asked for and none is ready",
  "no-target": "no HPA and no CPU request says what a pod should carry",
};
const OVER = 1.1;
/** The HPA's tolerance. */
let fleet = null;
let rows = null;
let state = new URLSearchParams();

export async function open(_parts, query) {
  state = query;
  if (!byId("rows")) {
    show("fleet-page");
    rows?.close();
    rows = new Rows(byId("rows"), makeRow, fillRow, askSentences);
    byId("filters").addEventListener("input", filtersChanged);
    byId("filters").addEventListener("submit", (event) => event.preventDefault());
    addEventListener("beforeprint", () => rows.draw(true));
  }
  await renew();
}

export async function renew() {
  const found = await get("dashboard/fleet");
  if (found !== fleet?.columns) fleet = prepared(found);
  if (!byId("rows")) return;
  fillFilters();
  tellTotals();
  tellCauses();
  apply();
}

export function pressed(event) {
  if (event.key === "j" || event.key === "ArrowDown") { event.preventDefault(); rows.move(1); }
  if (event.key === "k" || event.key === "ArrowUp") { event.preventDefault(); rows.move(-1); }
}

/** What is derived once a table: load of the target, change, need. */
function prepared(columns) {
  const size = columns.name.length;
  const load = new Float64Array(size).fill(NaN);
  const change = new Int32Array(size);
  const need = new Float64Array(size);
  for (let row = 0; row < size; row += 1) {
    const room = columns.pod[row] * columns.current[row];
    if (columns.measured[row] !== null && room > 0) load[row] = columns.measured[row] / room;
    if (columns.recommended[row] >= 0) change[row] = columns.recommended[row] - columns.current[row];
    const broken = BROKEN.indexOf(columns.reasons[columns.reason[row]]);
    need[row] = broken >= 0 ? 100 - broken : Math.max(0, change[row] / Math.max(columns.current[row], 1)) + (load[row] > OVER ? load[row] : 0);
  }
  const search = columns.name.map((name, row) => `${columns.namespaces[columns.namespace[row]]}/${name}`.toLowerCase());
  return { columns, load, change, need, search, spark: decoded(columns.spark), sentences: new Map(), size };
}

const is = {
  up: (row) => fleet.change[row] > 0,
  down: (row) => fleet.change[row] < 0,
  held: (row) => fleet.columns.recommended[row] < 0,
  over: (row) => fleet.load[row] > OVER,
  acts: (row) => fleet.columns.forecast[row] === 0,
  changed: (row) => fleet.columns.hour_ago[row] >= 0 && fleet.columns.recommended[row] >= 0 && fleet.columns.hour_ago[row] !== fleet.columns.recommended[row],
};

const ORDERS = {
  "": (a, b) => fleet.need[b] - fleet.need[a] || a - b,
  name: (a, b) => a - b,
  change: (a, b) => Math.abs(fleet.change[b]) - Math.abs(fleet.change[a]) || a - b,
  replicas: (a, b) => fleet.columns.current[b] - fleet.columns.current[a] || a - b,
  load: (a, b) => (fleet.load[b] || -1) - (fleet.load[a] || -1) || a - b,
};

/** The rows that pass the filters, in their order; with a header before each namespace where they are grouped. */
function selected() {
  const { columns, size, search } = fleet;
  const q = (state.get("q") ?? "").toLowerCase();
  const namespace = columns.namespaces.indexOf(state.get("namespace") ?? "");
  const reason = columns.reasons.indexOf(state.get("reason") ?? "");
  const only = is[state.get("show")] ?? (() => true);
  const found = [];
  for (let row = 0; row < size; row += 1) {
    if (q && !search[row].includes(q)) continue;
    if (namespace >= 0 && columns.namespace[row] !== namespace) continue;
    if (reason >= 0 && columns.reason[row] !== reason) continue;
    if (only(row)) found.push(row);
  }
  return found.sort(ORDERS[state.get("sort") ?? ""] ?? ORDERS[""]);
}

function grouped(found) {
  const groups = new Map();
  for (const row of found) {
    const key = fleet.columns.namespace[row];
    if (!groups.has(key)) groups.set(key, []);
    groups.get(key).push(row);
  }
  return [...groups].sort(([a], [b]) => a - b).flatMap(([key, members]) => [{ group: fleet.columns.namespaces[key], members }, ...members]);
}

function apply() {
  const found = selected();
  rows.set(state.get("group") ? grouped(found) : found);
  byId("count").textContent = `${count(found.length)} of ${count(fleet.size)}`;
  byId("none").hidden = found.length > 0;
}

function filtersChanged() {
  const given = new FormData(byId("filters"));
  state = new URLSearchParams([...given].filter(([, value]) => value));
  history.replaceState(null, "", `#/${state.size ? `?${state}` : ""}`);
  apply();
}

function fillFilters() {
  const form = byId("filters");
  options(form.elements.namespace, "All namespaces", fleet.columns.namespaces);
  const there = new Set(fleet.columns.reason);
  options(form.elements.reason, "All reasons", fleet.columns.reasons.filter((_, code) => there.has(code)));
  for (const field of form.elements) {
    if (field.type === "checkbox") field.checked = state.has(field.name);
    else if (field.name && document.activeElement !== field) field.value = state.get(field.name) ?? "";
  }
}

function options(select, all, names) {
  if (select.length === names.length + 1) return;
  select.replaceChildren(element("option", { value: "" }, all), ...names.map((name) => element("option", { value: name }, words(name))));
}

function tellTotals() {
  const { columns, size, change } = fleet;
  const every = [...Array(size).keys()];
  const before = columns.current.reduce((sum, n) => sum + n, 0);
  const after = every.reduce((sum, row) => sum + columns.current[row] + change[row], 0);
  const number = (name) => every.filter(is[name]).length;
  byId("totals").replaceChildren(
    total("Workloads", count(size), `${count(columns.namespaces.length)} namespaces`),
    total("Replicas", `${count(before)} → ${count(after)}`, after === before ? "no change" : signed(after - before)),
    total("To go up, down", `${count(number("up"))}, ${count(number("down"))}`, `${count(number("changed"))} changed in the last hour`),
    total("Forecast has its say", count(number("acts")), `${count(columns.publishes.filter(Boolean).length)} published`),
    total("Over target", count(number("over")), "more than 10 %"),
  );
}

function tellCauses() {
  const { columns } = fleet;
  const counts = new Map();
  for (const code of columns.reason) counts.set(columns.reasons[code], (counts.get(columns.reasons[code]) ?? 0) + 1);
  const found = BROKEN.filter((reason) => counts.has(reason));
  byId("first").hidden = !found.length;
  byId("causes").replaceChildren(...found.map((reason) => element("li", {},
    element("a", { href: `#/?reason=${reason}` }, element("b", {}, `${count(counts.get(reason))} ${words(reason)}`)), " ", CAUSES[reason])));
}

function makeRow() {
  const one = byId("fleet-row").content.firstElementChild.cloneNode(true);
  one.parts = Object.fromEntries(["who b", "who small", "spark", "amounts", "load u", "load small", "count b", "count em", "say", "why"]
    .map((path) => [path, one.querySelector(`.${path}`)]));
  return one;
}

function fillRow(one, item) {
  one.classList.toggle("group", typeof item === "object");
  if (typeof item === "object") return fillGroup(one, item);
  const { columns, load, change } = fleet;
  const parts = one.parts;
  const [namespace, kind] = [columns.namespaces[columns.namespace[item]], columns.kinds[columns.kind[item]]];
  const [unit, recommended] = [columns.units[columns.shown[item]], columns.recommended[item]];
  one.href = `#/workloads/${[namespace, kind, columns.name[item]].map(encodeURIComponent).join("/")}`;
  parts["who b"].textContent = columns.name[item];
  parts["who small"].textContent = `${namespace} · ${kind} · ${columns.publishes[item] ? "publish" : "observe"}`;
  spark(parts.spark, fleet.spark.subarray(item * columns.spark_size, (item + 1) * columns.spark_size));
  parts.amounts.textContent = `${amount(columns.measured[item], unit)} → ${amount(columns.peak[item], unit)}`;
  parts["load u"].style.width = `${Math.min(load[item] || 0, 1.5) / 1.5 * 100}%`;
  parts["load u"].className = load[item] > OVER ? "over" : "";
  parts["load small"].textContent = Number.isNaN(load[item]) ? DASH : percent(load[item]);
  parts["count b"].textContent = recommended < 0 ? `${count(columns.current[item])} held` : change[item] ? `${count(columns.current[item])} → ${count(recommended)}` : count(recommended);
  parts["count em"].textContent = change[item] ? signed(change[item]) : "";
  parts["count em"].className = change[item] > 0 ? "up" : "down";
  parts.say.textContent = FORECAST[columns.forecast[item]];
  parts.say.className = `say f${columns.forecast[item]}`;
  const sentence = fleet.sentences.get(item) ?? words(columns.reasons[columns.reason[item]]);
  parts.why.textContent = parts.why.title = sentence;
  return undefined;
}

function fillGroup(one, { group, members }) {
  const parts = one.parts;
  const [before, moved] = [members.reduce((sum, row) => sum + fleet.columns.current[row], 0), members.reduce((sum, row) => sum + fleet.change[row], 0)];
  for (const part of Object.values(parts)) if (!(part instanceof HTMLCanvasElement)) part.textContent = "";
  one.href = `#/?namespace=${encodeURIComponent(group)}`;
  parts["who b"].textContent = group;
  parts["who small"].textContent = `${count(members.length)} workloads`;
  parts["count b"].textContent = moved ? `${count(before)} → ${count(before + moved)}` : count(before);
  parts["count em"].textContent = moved ? signed(moved) : "";
  parts["count em"].className = moved > 0 ? "up" : "down";
}

let asking = 0;

/** Sentences of the rows on the screen, once they stand still. */
function askSentences(items) {
  clearTimeout(asking);
  asking = setTimeout(async () => {
    const missing = items.filter((item) => typeof item === "number" && !fleet.sentences.has(item)).slice(0, 100);
    if (!missing.length) return;
    const of = fleet;
    const query = new URLSearchParams({ of: of.columns.published_at, rows: missing.join(",") });
    const said = await get(`dashboard/sentences?${query}`).catch(() => null);
    if (!said?.messages.length || of !== fleet) return;
    missing.forEach((row, i) => of.sentences.set(row, said.messages[i]));
    rows.refill();
  }, 80);
}
