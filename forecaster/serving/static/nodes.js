// Node pools over the coming day: what will be requested and used, how many nodes that takes, and what keeps room warm.

import { get } from "./api.js";
import { chart, repaint } from "./chart.js";
import { byId, element, show, table, total } from "./dom.js";
import { amount, count, counted, duration, instant, percent } from "./format.js";

const STEP = 900000;
const AMOUNTS = [["cpu", "CPU", "cores", "cpu_cores"], ["memory", "Memory", "bytes", "memory_bytes"]];
let ahead = {};

export async function open() {
  show("nodes-page");
  document.title = "Nodes · forecaster";
  await renew();
}

export async function renew() {
  const found = await get("dashboard/nodes");
  if (found.at && found.at === ahead.at && byId("pools").hasChildNodes()) return;
  ahead = found;
  const pools = ahead.pools ?? [];
  byId("nodes-said").textContent = pools.length ? `As ${instant(Date.parse(ahead.at))} UTC saw them; ${ahead.refused ? `as they are: ${ahead.refused}` : `sums at ${percent(ahead.quantile)} of the joint forecast of all workloads`}.` : `Nothing is known of nodes: ${ahead.refused ?? "no cycle has ended"}.`;
  byId("totals").hidden = !pools.length;
  totals(pools);
  byId("pools").replaceChildren(...pools.map(card));
  for (const figure of byId("pools").querySelectorAll("figure")) figure.draw();
  pressure(ahead.memory_pressure ?? []);
  const lost = ahead.workloads_without_a_node ?? [];
  byId("unplaced").textContent = lost.length ? `On no known node: ${lost.slice(0, 20).join(", ")}${lost.length > 20 ? ` and ${count(lost.length - 20)} more` : ""}.` : "";
}

export const redraw = () => repaint();

const sum = (pools, of) => pools.reduce((found, pool) => found + of(pool), 0);

function totals(pools) {
  const [nodes, needed] = [sum(pools, (pool) => pool.nodes), sum(pools, (pool) => pool.nodes_needed)];
  const share = (name) => {
    const [requested, room] = [sum(pools, (pool) => pool.requested[name]), sum(pools, (pool) => pool.allocatable[name])];
    return [`${amount(requested, name === "cpu_cores" ? "cores" : "bytes")} of ${amount(room, name === "cpu_cores" ? "cores" : "bytes")}`, room ? `${percent(requested / room)} of what can be requested` : ""];
  };
  byId("totals").replaceChildren(
    total("Nodes", nodes === needed ? count(nodes) : `${count(nodes)} → ${count(needed)}`, ahead.refused ? "now" : needed > nodes ? `${count(needed - nodes)} more at the peak of the day` : "enough for the coming day"),
    total("Requested cores", ...share("cpu_cores")),
    total("Requested memory", ...share("memory_bytes")),
    ahead.refused ? "" : total("Headroom", count(sum(ahead.headroom ?? [], (one) => one.replicas)), "placeholder pods that would keep room warm"),
  );
}

function card(pool) {
  if (!pool.windows.length) return present(pool);
  const room = (ahead.headroom ?? []).find((one) => one.pool === pool.pool);
  const more = pool.nodes_needed - pool.nodes;
  const needs = [1, more].map((least) => pool.windows.find((one) => one.new_nodes >= least)).filter((one, i, all) => one && one !== all[i - 1]);
  return element("section", { class: "card pool" },
    element("div", { class: "cardhead" }, element("h2", {}, pool.pool), element("p", { class: more > 0 ? "bad" : "soft" },
      more > 0 ? [counted(pool.nodes, "node"), ...needs.map((one) => `${count(pool.nodes + one.new_nodes)} needed from ${instant(Date.parse(one.begin))}`)].join(", ") : `${counted(pool.nodes, "node")}, enough`)),
    element("div", { class: "multiples" }, ...AMOUNTS.map((of) => figure(pool, of))),
    element("details", {}, element("summary", {}, "Window by window"), windows(pool)),
    room ? element("p", { class: "lead" }, `Headroom: ${count(room.replicas)} placeholder pods (${room.reason}).`) : null,
  );
}

/** A pool of which nothing is forecast. */
function present(pool) {
  const share = ([, title, unit, key]) => element("p", {}, element("b", {}, title), ` ${amount(pool.requested[key], unit)} of ${amount(pool.allocatable[key], unit)} requested, ${percent(pool.requested[key] / pool.allocatable[key])}`);
  return element("section", { class: "card pool" }, element("div", { class: "cardhead" }, element("h2", {}, pool.pool), element("p", { class: "soft" }, `${counted(pool.nodes, "node")}`)), ...AMOUNTS.map(share));
}

/** Requested and used beside what the nodes of now have; a window further ahead is longer. */
function figure(pool, [name, title, unit, key]) {
  const host = element("div", { class: "chart small" });
  const [now, to] = [Date.parse(ahead.at), Date.parse(pool.windows.at(-1)?.until ?? ahead.at)];
  const points = (of) => pool.windows.flatMap((one) => {
    const [from, until] = [Date.parse(one.begin), Date.parse(one.until)];
    return Array.from({ length: Math.max(1, Math.round((until - from) / STEP)) }, (_, i) => [from + i * STEP, of(one)]);
  });
  const requested = points((one) => one[`requested_${key}`].value);
  const room = requested.map(([at]) => [at, pool.allocatable[key]]);
  const draw = () => chart(host, {
    series: [
      { label: "allocatable", colour: "capacity", kind: "line", width: 1.5, points: room },
      { label: "used", colour: "demand", kind: "step", points: points((one) => one[`used_${key}`].value) },
      { label: "requested", colour: "forecast", kind: "step", points: requested },
    ],
    shortage: requested.some(([, value]) => value > pool.allocatable[key]) ? { label: "more than the nodes have", demand: requested, capacity: room } : null,
    now, from: now, to, step: STEP, bytes: unit === "bytes", format: (value, top) => amount(value, unit, top), label: `${pool.pool}: ${name} requested and used over the coming day`,
  });
  return Object.assign(element("figure", {}, element("figcaption", {}, element("b", {}, title), ` ${amount(pool.requested[key], unit)} of ${amount(pool.allocatable[key], unit)} requested now`), host), { draw });
}

const from = (at) => duration((Date.parse(at) - Date.parse(ahead.at)) / 1000).replace("0 s", "now");

function windows(pool) {
  const between = (one, unit) => `${amount(one.value, unit)} (${amount(one.if_independent, unit)} to ${amount(one.if_all_at_once, unit)})`;
  return table([["Ahead", "when"], ["Cores requested", "right"], ["Cores used", "right"], ["Memory requested", "right"], ["Memory used", "right"], ["New nodes", "right"], ["Pods without a place", "right"]],
    pool.windows.map((one) => [`${from(one.begin)} to ${from(one.until)}`, between(one.requested_cpu_cores, "cores"), amount(one.used_cpu_cores.value, "cores"), between(one.requested_memory_bytes, "bytes"), amount(one.used_memory_bytes.value, "bytes"), count(one.new_nodes), count(one.pods_that_no_node_takes)]), "Nothing is forecast of it.");
}

function pressure(nodes) {
  const some = nodes.filter((one) => one.risk > 0);
  byId("pressure-card").hidden = !some.length;
  byId("pressure").replaceChildren(table([["Node"], ["Used now", "right"], ["95 % ahead", "right"], ["Free", "right"], ["Risk", "right"], ["Evicted first"]],
    some.map((one) => [one.node, amount(one.used_now_bytes, "bytes"), amount(one.used_p95_bytes, "bytes"), amount(one.free_bytes, "bytes"), percent(one.risk), one.evicted_first.join(", ")]), ""));
}
