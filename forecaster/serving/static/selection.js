// Which rows of a fleet are shown, and in which order.

import { decoded } from "./api.js";

/** State of a forecast that has its say. */
export const ACTING = "acting";
/** Reasons for which a person has something to do, the worst first. */
export const BROKEN = ["failed", "source-down", "no-data", "stale", "no-pods", "no-target"];
/** Load of the target beyond which an HPA acts: its tolerance. */
export const OVER = 1.1;
/** Share of what the pods carry that the coming peak stays below with 95 %, from which on it is tight. */
export const TIGHT = 0.9;

const HOURS_A_MONTH = 730;
const GIB = 2 ** 30;

/** A pod's money a month by what it requests; without prices its cores. NaN where a request is not known. */
function costOf([cores, bytes], prices) {
  if (cores === null || (prices && bytes === null)) return NaN;
  return prices ? (cores * prices.core_hour + bytes / GIB * prices.gib_hour) * HOURS_A_MONTH : cores;
}

/** What is derived once a table: load of the target, change, need. */
export function prepared(columns) {
  const size = columns.name.length;
  const load = new Float64Array(size).fill(NaN);
  const change = new Int32Array(size);
  const need = new Float64Array(size);
  const risk = new Float64Array(size).fill(NaN);
  const cost = [new Float64Array(size).fill(NaN), new Float64Array(size).fill(NaN)];
  for (let row = 0; row < size; row += 1) {
    const room = columns.pod[row] * columns.current[row];
    if (columns.measured[row] !== null && room > 0) load[row] = columns.measured[row] / room;
    if (columns.recommended[row] >= 0) change[row] = columns.recommended[row] - columns.current[row];
    const after = columns.current[row] + change[row];
    // What is not applied carries nothing: sizes are those that pods have, and in mode observe so are counts.
    const pods = columns.modes[columns.mode[row]] === "observe" ? columns.current[row] : after;
    const [request] = columns.request[row];
    const carried = columns.signals[columns.shown[row]] === "cpu" && request ? request : columns.pod[row];
    if (columns.high[row] !== null && carried && pods > 0) risk[row] = columns.high[row] / (carried * pods);
    [cost[0][row], cost[1][row]] = [columns.current[row] * costOf(columns.request[row], columns.prices), after * costOf(columns.resized[row], columns.prices)];
    const broken = BROKEN.indexOf(columns.reasons[columns.reason[row]]);
    need[row] = broken >= 0 ? 100 - broken : Math.max(0, change[row] / Math.max(columns.current[row], 1)) + (load[row] > OVER ? load[row] : 0) + (risk[row] > 1 ? risk[row] : 0);
  }
  const search = columns.name.map((name, row) => `${columns.namespaces[columns.namespace[row]]}/${name}`.toLowerCase());
  return { columns, load, change, need, risk, cost, search, spark: decoded(columns.spark), sentences: new Map(), size };
}

export const is = {
  up: (fleet, row) => fleet.change[row] > 0,
  down: (fleet, row) => fleet.change[row] < 0,
  held: (fleet, row) => fleet.columns.recommended[row] < 0,
  over: (fleet, row) => fleet.load[row] > OVER,
  risk: (fleet, row) => fleet.risk[row] > TIGHT,
  acts: (fleet, row) => fleet.columns.states[fleet.columns.state[row]] === ACTING,
  changed: (fleet, row) => fleet.columns.hour_ago[row] >= 0 && fleet.columns.recommended[row] >= 0 && fleet.columns.hour_ago[row] !== fleet.columns.recommended[row],
};

const ORDERS = {
  "": (fleet, a, b) => fleet.need[b] - fleet.need[a] || a - b,
  name: (_fleet, a, b) => a - b,
  change: (fleet, a, b) => Math.abs(fleet.change[b]) - Math.abs(fleet.change[a]) || a - b,
  replicas: (fleet, a, b) => fleet.columns.current[b] - fleet.columns.current[a] || a - b,
  risk: (fleet, a, b) => (fleet.risk[b] || -1) - (fleet.risk[a] || -1) || a - b,
  cost: (fleet, a, b) => (fleet.cost[0][b] || -1) - (fleet.cost[0][a] || -1) || a - b,
  load: (fleet, a, b) => (fleet.load[b] || -1) - (fleet.load[a] || -1) || a - b,
};

/** The rows that pass the filters, in their order. */
export function selected(fleet, state) {
  const { columns, size, search } = fleet;
  const q = (state.get("q") ?? "").toLowerCase();
  const namespace = columns.namespaces.indexOf(state.get("namespace") ?? "");
  const reason = columns.reasons.indexOf(state.get("reason") ?? "");
  const only = is[state.get("show")] ?? (() => true);
  const found = [];
  for (let row = 0; row < size; row += 1) {
    if (q && !search[row].includes(q)) continue;
    if (state.has("namespace") && columns.namespace[row] !== namespace) continue;
    if (state.has("reason") && columns.reason[row] !== reason) continue;
    if (only(fleet, row)) found.push(row);
  }
  const order = ORDERS[state.get("sort") ?? ""] ?? ORDERS[""];
  return found.sort((a, b) => order(fleet, a, b));
}

/** With a header before each namespace. */
export function grouped(fleet, found) {
  const groups = new Map();
  for (const row of found) {
    const key = fleet.columns.namespace[row];
    if (!groups.has(key)) groups.set(key, []);
    groups.get(key).push(row);
  }
  return [...groups].sort(([a], [b]) => a - b).flatMap(([key, members]) => [{ group: fleet.columns.namespaces[key], members }, ...members]);
}
