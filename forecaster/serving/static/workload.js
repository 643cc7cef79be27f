// One workload: demand and what was forecast, replicas and what the HPA's formula asks for, and how the count came about.

import { decoded, get } from "./api.js";
import { benefit } from "./benefit.js";
import { chart, repaint } from "./chart.js";
import { byId, element, mark, show, table } from "./dom.js";
import * as looked from "./past.js";
import * as whatIf from "./what_if.js";
import { DASH, amount, count, duration, instant, percent, signed, spoken, words } from "./format.js";

const STEP = 300000;
let path = [];
let page = null;
let signal = "";
let then = null;

export async function open(parts) {
  const another = parts.join("/") !== path.join("/");
  path = parts;
  if (another) { signal = ""; then = null; }
  await renew(true);
}

export async function renew(fresh = false) {
  const address = path.map(encodeURIComponent).join("/");
  page = await get(`dashboard/workloads/${address}`);
  if (fresh || !byId("demand")) show("workload-page");
  page.series = page.series && unpacked(page.series);
  head();
  charts();
  benefit(byId("benefit"), page.benefit, page.currency);
  chain();
  byId("lines").textContent = page.lines.join("\n");
  sizes();
  vpas();
  past();
  whatIf.offer(address, page.what_if, page.what_if_refused);
  lookBack();
}

/** Asks what was forecast in the last half day, and draws it in; the page is there without it. */
async function lookBack() {
  byId("leads").hidden = !page.what_if;
  if (!page.what_if) return drawPast({ refused: page.what_if_refused });
  looked.leads(lookBack);
  const found = await looked.past(path.map(encodeURIComponent).join("/"), signal);
  return found ? drawPast(found) : undefined;
}

function drawPast(found) {
  then = found;
  charts();
  const now = Date.parse(page.published_at);
  looked.outcomes(then, { now, from: now - 12 * 3600000 });
  looked.containers(then, { now, from: now - 12 * 3600000 });
}

export const redraw = () => repaint();

/** Series by name as lists of [ms, value], null where nothing is known. */
function unpacked({ names, until, values }) {
  const floats = new Float32Array(decoded(values).buffer);
  const points = floats.length / names.length;
  const end = Date.parse(until);
  const at = (i) => end - (points - 1 - i) * STEP;
  return Object.fromEntries(names.map((name, k) => [name, Array.from({ length: points }, (_, i) => [at(i), number(floats[k * points + i])])]));
}

const number = (value) => Number.isNaN(value) ? null : value;

function head() {
  const { namespace, kind, name, replicas, autoscaler, mode, forecast } = page.recommendation;
  const main = byId("main");
  main.querySelector(".crumbs span").textContent = `${namespace} / ${kind}`;
  main.querySelector("h1").textContent = name;
  document.title = `${namespace}/${name} · forecaster`;
  const change = replicas.recommended === null ? 0 : replicas.recommended - replicas.now;
  main.querySelector(".verdict").replaceChildren(
    element("b", { class: "big" }, replicas.recommended === null ? `${count(replicas.now)} held` : change ? `${count(replicas.now)} → ${count(replicas.recommended)}` : count(replicas.now)),
    change ? element("em", { class: change > 0 ? "up" : "down" }, signed(change)) : "",
    element("span", {}, `${words(replicas.reason)}: ${replicas.message}`),
    element("span", { class: "states" }, ...(mode ? [`mode ${mode} · `] : []), "forecast ", forecast ? mark(forecast.state) : "not decided", forecast?.why ? `: ${forecast.why}` : ""),
    element("small", {}, autoscaler ? `HPA ${autoscaler}` : replicas.reason === "source-down" ? "HPA not known" : "no HPA"),
  );
}

function charts() {
  const { signals } = page.recommendation;
  const named = [...new Set([...signals.map((one) => one.signal), ...["cpu", "memory"].filter((one) => page.series?.[one]?.some(([, value]) => value !== null))])];
  if (!named.includes(signal)) signal = named[0] ?? "cpu";
  byId("signals").replaceChildren(...(named.length > 1 ? named : []).map((name) => {
    const button = element("button", { type: "button", "aria-pressed": String(name === signal) }, name);
    button.addEventListener("click", () => { signal = name; charts(); lookBack(); });
    return button;
  }));
  const now = Date.parse(page.published_at);
  const from = now - 12 * 3600000;
  const steps = page.outlooks.find((one) => one.signal === signal)?.path?.steps ?? [];
  const to = Math.max(now + 3600000, ...steps.map((step) => Date.parse(step.until)));
  demand({ now, from, to, steps });
  replicas({ now, from, to });
}

/** Demand of the signal, its forecast, what the ready pods carry; shaded where demand was more than that. */
function demand({ now, from, to, steps }) {
  const item = page.recommendation.signals.find((one) => one.signal === signal);
  const unit = item?.unit ?? { cpu: "cores", memory: "bytes", requests: "requests/s" }[signal] ?? "";
  const measured = page.series?.[signal] ?? [];
  const latest = item?.measured_at ? [[Date.parse(item.measured_at), item.measured]].filter(([at]) => at > (measured.at(-1)?.[0] ?? 0)) : [];
  const pods = page.series?.pods ?? [];
  const request = page.recommendation.resources.now[{ cpu: "cpu_request_cores", memory: "memory_request_bytes" }[signal]];
  const capacity = request ? pods.map(([at, ready]) => [at, ready === null ? null : ready * request]) : [];
  const first = page.recommendation.signals.find((one) => one.target);
  const lead = (page.recommendation.lead_time?.seconds ?? 0) * 1000;
  const said = first?.signal === signal ? (page.series?.peak ?? []).map(([at, value]) => [Math.round((at + lead) / STEP) * STEP, value]) : [];
  const before = then?.signal === signal ? looked.series(then, !page.series) : [];
  const quantiles = steps.map((step) => [Date.parse(step.until), Object.fromEntries(step.quantiles.map((one) => [one.quantile, one.value]))]);
  const ahead = item?.forecast;
  const series = [
    { label: "forecast, 10 to 90 %", colour: "band", kind: "band", points: quantiles.map(([at, of]) => [at, of[0.1], of[0.9]]) },
    { label: "forecast, median", colour: "forecast", kind: "line", dash: [4, 3], points: quantiles.map(([at, of]) => [at, of[0.5]]) },
    ...before,
    before.length ? null : { label: `peak as forecast ${lead ? `${duration(lead / 1000)} before` : "then"}`, colour: "forecast", kind: "step", width: 1, points: said },
    { label: "capacity (ready pods × request)", colour: "capacity", kind: "step", width: 1.5, points: capacity },
    { label: "demand", colour: "demand", kind: "line", measured: true, points: [...measured, ...latest] },
    ahead ? { label: `decided by: peak at ${percent(ahead.quantile)}`, colour: "forecast", kind: "line", width: 4, points: [[Date.parse(ahead.begin), ahead.peak], [Date.parse(ahead.until), ahead.peak]] } : null,
  ].filter((one) => one && one.points.some(([, value]) => value !== null && value !== undefined));
  byId("signal-title").textContent = `Demand: ${[signal, unit].join(", ")}`;
  if (!series.length) return byId("demand").replaceChildren(element("p", { class: "empty" }, "No history of this signal is known yet."));
  const room = new Map(capacity);
  const short = measured.some(([at, value]) => value !== null && room.get(at) !== null && value > room.get(at));
  const shortage = short ? { label: "shortage", demand: measured, capacity } : null;
  return chart(byId("demand"), { series, shortage, ...looked.around(then?.signal === signal ? then : null), now, from, to, bytes: unit === "bytes", format: (value, top) => amount(value, unit, top), label: `${signal} of ${page.recommendation.name}: demand, forecast and capacity over time` });
}

function replicas({ now, from, to }) {
  const decided = page.recommendation.replicas;
  const series = [
    { label: "HPA's formula on measured demand", colour: "capacity", kind: "step", dash: [3, 3], width: 1.5, points: page.series?.reactive ?? [] },
    ...looked.plain(then),
    { label: "ready pods", colour: "demand", kind: "step", measured: true, points: [...(page.series?.pods ?? []).map(([at, ready]) => [at, ready])] },
    { label: "recommended", colour: "forecast", kind: "step", points: [...(page.series?.recommended ?? []), [now, decided.recommended]] },
  ].filter((one) => one.points.some(([, value]) => value !== null));
  if (!series.length) return byId("replicas").replaceChildren(element("p", { class: "empty" }, "Nothing is known of its pods yet."));
  return chart(byId("replicas"), { series, now, from, to, whole: true, format: (value) => count(Math.round(value)), label: `Replicas of ${page.recommendation.name}: ready, recommended and reactive` });
}

/** The decision step by step, as numbers on the left and the reason on the right. */
function chain() {
  const { replicas: decided, signals, clamps, lead_time: lead } = page.recommendation;
  const steps = [step(count(decided.now), "there are", "what the workload asks for now")];
  for (const one of signals) {
    if (!one.target) { steps.push(step(DASH, one.signal, one.note)); continue; }
    steps.push(step(count(one.reactive_replicas), `${one.signal} measured`, one.measured === null ? one.note : `${spoken(one.measured, one.unit)}; target ${one.target}`));
    if (one.forecast) steps.push(step(count(one.forecast_replicas), `${one.signal} forecast`, `the peak from ${one.forecast.begin.slice(11, 16)} to ${one.forecast.until.slice(11, 16)} is at or below ${spoken(one.forecast.peak, one.unit)} with ${percent(one.forecast.quantile)} (${one.forecast.model})`));
    if (one.note) steps.push(step(DASH, "note", one.note));
  }
  if (lead && signals.some((one) => one.forecast)) steps.push(step(duration(lead.seconds), "lead time", lead.origin));
  for (const clamp of clamps) steps.push(step(`${count(clamp.before)} → ${count(clamp.after)}`, words(clamp.rule), clamp.why));
  const last = decided.recommended === null ? `${count(decided.now)} held` : count(decided.recommended);
  steps.push(step(last, words(decided.reason), decided.message, decided.recommended === null ? "last held" : "last"));
  byId("chain").replaceChildren(...steps);
}

const step = (value, title, why, kind) => element("li", { class: kind }, element("b", {}, value), element("span", {}, title), element("p", {}, why));

function sizes() {
  const { resources } = page.recommendation;
  const named = resources.containers.length ? resources.containers : [{ name: "pod", now: resources.now, recommended: resources.recommended }];
  const cell = (of, name) => of ? amount(of[name], name.startsWith("cpu") ? "cores" : "bytes") : DASH;
  const rows = named.flatMap((one) => ["cpu_request_cores", "cpu_limit_cores", "memory_request_bytes", "memory_limit_bytes"].map((name) => [one.name || "pod", words(name.split("_").slice(0, 2).join("-")), cell(one.now, name), cell(one.recommended, name)]));
  byId("sizes").replaceChildren(table([["Container"], ["Amount"], ["Now", "right"], ["Recommended", "right"]], rows, ""), element("p", { class: "lead" }, `${words(resources.reason)}: ${resources.message}`));
}

/** What VPAs of the cluster recommend, by container: beside ours, or why it is not known. */
function vpas() {
  const { vpas: found, unknown, read_at: at } = page.beside;
  byId("vpas").replaceChildren(...found.map((one) => vpa(one, at)), unknown ? element("p", { class: "lead" }, `What a VPA recommends is not known: ${unknown}.`) : "");
}

function vpa(one, at) {
  const head = element("h3", {}, `VPA ${one.name}`);
  const mode = `updateMode ${one.update_mode}, as of ${instant(Date.parse(at))} UTC`;
  if (!one.containers.length) return element("div", { class: "vpa" }, head, element("p", { class: "lead" }, `${mode}. It recommends nothing yet${one.message ? `: ${one.message}` : ""}.`));
  const rows = one.containers.flatMap(({ container, ...of }) => [["cpu_request_cores", "cores"], ["memory_request_bytes", "bytes"]].map(([name, unit]) =>
    [container, words(name.split("_").slice(0, 2).join("-")), ...["target", "lower_bound", "upper_bound"].map((bound) => amount(of[bound][name], unit))]));
  return element("div", { class: "vpa" }, head, element("p", { class: "lead" }, `${mode}.`),
    table([["Container"], ["Amount"], ["Target", "right"], ["Lower bound", "right"], ["Upper bound", "right"]], rows, ""));
}

function past() {
  byId("decisions").replaceChildren(table([["At, UTC", "when"], ["Count", "right"], ["Why"]],
    page.decisions.map((one) => [instant(Date.parse(one.at)), one.replicas === null ? "held" : count(one.replicas), `${words(one.reason)}: ${one.message}`]), "Nothing has changed since it is known."));
  byId("accuracy").replaceChildren(table([["Signal"], ["Forecasts", "right"], ["Peaks at or below", "right"], ["Should be", "right"], ["Error of the median", "right"]],
    page.accuracy.map((one) => [one.signal, count(Math.round(one.forecasts)), percent(one.coverage), percent(one.quantile), percent(one.error_ratio)]), "This process has not scored a forecast of its own yet; the hours above are forecast anew from the history."));
}
