// The fleet: every workload on one page.

import { get } from "./api.js";
import { benefit } from "./benefit.js";
import { byId, element, show, total } from "./dom.js";
import { DASH, amount, between, count, counted, money, percent, signed, words } from "./format.js";
import { Rows } from "./rows.js";
import { ACTING, BROKEN, OVER, TIGHT, grouped, is, prepared, selected } from "./selection.js";
import { spark } from "./spark.js";

const CHANGES_SHOWN = 6;
/** What a person has to do for some reasons. */
const CAUSES = {
  failed: "computing failed: the row says how",
  "source-down": "the source does not answer: see Health",
  "no-data": "no sample of a signal: see what its sentence names",
  stale: "samples are too old to act on",
  "no-pods": "pods were asked for and none is ready",
  "no-target": "no HPA and no CPU request says what a pod should carry",
};
let fleet = null;
let rows = null;
let state = new URLSearchParams();

export async function open(_parts, query) {
  state = query;
  document.title = "Fleet · forecaster";
  if (!byId("rows")) {
    show("fleet-page");
    rows?.close();
    rows = new Rows(byId("rows"), makeRow, fillRow, askSentences);
    byId("filters").addEventListener("input", filtersChanged);
    byId("filters").addEventListener("submit", (event) => event.preventDefault());
  }
  await renew();
}

export async function renew() {
  const found = await get("dashboard/fleet");
  if (found !== fleet?.columns) fleet = prepared(found);
  if (!byId("rows")) return;
  byId("cost-head").textContent = priced() ? `Cost a month${found.prices.currency ? `, ${found.prices.currency}` : ""}` : "Requested cores";
  fillFilters();
  benefit(byId("benefit"), found.benefit, found.prices?.currency);
  tellTotals();
  tellCauses();
  tellChanges();
  apply();
}

/** The same once more, in other colours; for paper with the first rows instead of those on the screen. */
export function redraw(paper) {
  rows?.draw(paper);
  rows?.refill();
}

export function pressed(event) {
  if (event.key === "j" || event.key === "ArrowDown") { event.preventDefault(); rows.move(1); }
  if (event.key === "k" || event.key === "ArrowUp") { event.preventDefault(); rows.move(-1); }
}

const priced = () => fleet.columns.prices !== null;

/** Of pods by what they request: money a month where prices are stated, cores otherwise. */
const cost = (value) => priced() ? money(value) : amount(value, "cores");

/** Both amounts where they differ; a dash where none is known. */
const changed = (before, after, known = !Number.isNaN(before)) => !known ? DASH : cost(before) === cost(after) ? cost(before) : `${cost(before)} → ${cost(after)}`;

function apply() {
  const found = selected(fleet, state);
  rows.set(state.get("group") ? grouped(fleet, found) : found);
  byId("count").textContent = `${count(found.length)} of ${count(fleet.size)}`;
  byId("none").hidden = found.length > 0;
}

function filtersChanged() {
  const given = new FormData(byId("filters"));
  state = new URLSearchParams([...given].filter(([, value]) => value));
  history.replaceState(history.state, "", `#/${state.size ? `?${state}` : ""}`);
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
  if (select.length === names.length + 1 && names.every((name, place) => select.options[place + 1].value === name)) return;
  select.replaceChildren(element("option", { value: "" }, all), ...names.map((name) => element("option", { value: name }, words(name))));
}

function tellTotals() {
  const { columns, size, change } = fleet;
  const every = [...Array(size).keys()];
  const before = columns.current.reduce((sum, n) => sum + n, 0);
  const after = every.reduce((sum, row) => sum + columns.current[row] + change[row], 0);
  const states = columns.states.map((state, code) => [state, every.filter((row) => columns.state[row] === code).length]);
  const others = states.filter(([state, n]) => n && state !== ACTING).map(([state, n]) => `${count(n)} ${state}`);
  const number = (name) => every.filter((row) => is[name](fleet, row)).length;
  const [held, measured] = [number("held"), every.some((row) => !Number.isNaN(fleet.load[row]))];
  byId("totals").replaceChildren(
    total("Workloads", count(size), counted(columns.namespaces.length, "namespace")),
    !decided() ? total("Replicas", count(before), "held: none is decided") : total("Replicas", `${count(before)} → ${count(after)}`, after === before ? "no change" : `${signed(after - before)}, ${signed((after - before) * 24)} pod-hours a day`),
    !decided() ? total("To change", DASH, `all ${count(held)} held`) : total("To change", `${count(number("up"))} up, ${count(number("down"))} down`, `${count(number("changed"))} changed in the last hour${held ? `, ${count(held)} held` : ""}`),
    total("Forecasts", states.some(([, n]) => n) ? `${count(states.find(([state]) => state === ACTING)[1])} acting` : DASH, others.join(", ") || (states.some(([, n]) => n) ? "all of them" : "nothing is decided")),
    measured ? total("Load", `${count(number("over"))} over, ${count(number("risk"))} tight`, "above 110 % of the target; peak above 90 % of the pods") : total("Load", DASH, "no demand is known"),
    ...requested(),
  );
}

/** Whether a count is recommended for any workload; without one there is nothing to compare with what is. */
const decided = () => fleet.columns.recommended.some((wanted) => wanted >= 0);

/** By how much what all pods request would change, in words. */
function asRecommended(before, after) {
  if (!before) return "no requests are known";
  return decided() ? `${after >= before ? "+" : "−"}${percent(Math.abs(after / before - 1), 1)} as recommended` : "nothing is recommended";
}

/** What all pods request, now and as recommended; of those that state it. */
function requested() {
  const { columns, size, change } = fleet;
  const sums = [[0, 0], [0, 0]];
  for (let row = 0; row < size; row += 1) {
    for (const place of [0, 1]) {
      if (columns.request[row][place] === null) continue;
      sums[place][0] += columns.request[row][place] * columns.current[row];
      sums[place][1] += columns.resized[row][place] * (columns.current[row] + change[row]);
    }
  }
  const text = (unit, [before, after]) => !before ? DASH : decided() ? between(before, after, unit) : amount(before, unit);
  return [...spent(), total("Requested cores", text("cores", sums[0]), asRecommended(...sums[0])), total("Requested memory", text("bytes", sums[1]), asRecommended(...sums[1]))];
}

/** Money a month of all pods whose requests are known, where prices are stated. */
function spent() {
  if (!priced()) return [];
  const known = [...Array(fleet.size).keys()].filter((row) => !Number.isNaN(fleet.cost[0][row]));
  const [before, after] = fleet.cost.map((column) => known.reduce((sum, row) => sum + column[row], 0));
  const unknown = before && decided() && fleet.size > known.length ? `; ${count(fleet.size - known.length)} without both requests` : "";
  const text = !known.length ? DASH : decided() ? `${money(before)} → ${money(after)}` : money(before);
  return [total(byId("cost-head").textContent, text, `${asRecommended(before, after)}${unknown}`)];
}

/** The largest changes of the last hour. */
function tellChanges() {
  const { columns, size } = fleet;
  const moved = (row) => columns.recommended[row] - columns.hour_ago[row];
  const found = [...Array(size).keys()].filter((row) => is.changed(fleet, row)).sort((a, b) => Math.abs(moved(b)) - Math.abs(moved(a)));
  byId("changed").hidden = !found.length;
  byId("changes").replaceChildren(...found.slice(0, CHANGES_SHOWN).map((row) => element("li", {},
    element("a", { href: address(row) }, columns.name[row]), ` ${count(columns.hour_ago[row])} → ${count(columns.recommended[row])}`)),
    found.length > CHANGES_SHOWN ? element("li", {}, element("a", { href: "#/?show=changed" }, `${count(found.length - CHANGES_SHOWN)} more`)) : "");
}

const address = (row) => {
  const { columns } = fleet;
  return `#/workloads/${[columns.namespaces[columns.namespace[row]], columns.kinds[columns.kind[row]], columns.name[row]].map(encodeURIComponent).join("/")}`;
};

function tellCauses() {
  const { columns } = fleet;
  const counts = new Map();
  for (const code of columns.reason) counts.set(columns.reasons[code], (counts.get(columns.reasons[code]) ?? 0) + 1);
  const found = BROKEN.filter((reason) => counts.has(reason));
  const short = fleet.risk.filter((one) => one > 1).length;
  byId("first").hidden = !found.length && !short;
  byId("causes").replaceChildren(...found.map((reason) => element("li", {},
    element("a", { href: `#/?reason=${reason}` }, element("b", {}, `${count(counts.get(reason))} ${words(reason)}`)), " ", CAUSES[reason])),
    short ? element("li", {}, element("a", { href: "#/?show=risk" }, element("b", {}, `${count(short)} may run short`)), ": the coming peak is above what the pods carry") : "");
}

function makeRow() {
  const one = byId("fleet-row").content.firstElementChild.cloneNode(true);
  one.parts = Object.fromEntries(["who b", "who small", "spark", "amounts", "load u", "load small", "count b", "count em", "cost", "risk", "say", "why"]
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
  one.href = address(item);
  parts["who b"].textContent = columns.name[item];
  parts["who small"].textContent = `${namespace} · ${kind}`;
  spark(parts.spark, fleet.spark.subarray(item * columns.spark_size, (item + 1) * columns.spark_size));
  parts.amounts.textContent = between(columns.measured[item], columns.peak[item], unit);
  parts["load u"].style.width = `${Math.min(load[item] || 0, 1.5) / 1.5 * 100}%`;
  parts["load u"].className = load[item] > OVER ? "over" : "";
  parts["load small"].textContent = Number.isNaN(load[item]) ? DASH : percent(load[item]);
  parts["count b"].textContent = recommended < 0 ? `${count(columns.current[item])} held` : change[item] ? `${count(columns.current[item])} → ${count(recommended)}` : count(recommended);
  parts["count em"].textContent = change[item] ? signed(change[item]) : "";
  parts["count em"].className = change[item] > 0 ? "up" : "down";
  parts.cost.textContent = changed(fleet.cost[0][item], fleet.cost[1][item]);
  const risk = fleet.risk[item];
  parts.risk.textContent = Number.isNaN(risk) ? DASH : `${risk > 1 ? "above" : risk > TIGHT ? "tight" : "low"} ${percent(risk)}`;
  parts.risk.className = `risk right ${risk > 1 ? "bad" : ""}`;
  const state = columns.states[columns.state[item]] ?? "";
  parts.say.textContent = [columns.modes[columns.mode[item]], state].filter(Boolean).join(" · ");
  parts.say.className = `say state ${state.replace(" ", "-")}`;
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
  parts["who small"].textContent = `${counted(members.length, "workload")}`;
  parts["count b"].textContent = moved ? `${count(before)} → ${count(before + moved)}` : count(before);
  parts["count em"].textContent = moved ? signed(moved) : "";
  parts["count em"].className = moved > 0 ? "up" : "down";
  const known = members.filter((row) => !Number.isNaN(fleet.cost[0][row]));
  parts.cost.textContent = changed(...fleet.cost.map((column) => known.reduce((all, row) => all + column[row], 0)), known.length);
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
