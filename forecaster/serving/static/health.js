// The computing process: what it reads, what its last cycles cost, what it decided and how it is set.

import { get, put } from "./api.js";
import { byId, colour, element, show, table, total } from "./dom.js";
import { DASH, clock, count, counted, duration, instant, words } from "./format.js";

const VERDICTS = { scale: "count decided", hold: "held" };
const SURE_MS = 4000;
const STEPS_SHOWN = 4;
const OTHERS = "other steps";
let health = {};
let now = {};
let writing = {};

export async function open() {
  show("health-page");
  document.title = "Health · forecaster";
  await renew();
}

export async function renew() {
  [health, now, writing] = await Promise.all([get("dashboard/health"), get("dashboard/now"), get("dashboard/writing")]);
  redraw();
}

export function redraw() {
  const cycles = health.cycles ?? [];
  const seconds = (cycle) => Object.values(cycle.steps).reduce((sum, one) => sum + one, 0);
  const failed = cycles.flatMap((cycle) => cycle.failures.map((text) => [instant(Date.parse(cycle.at)), text]));
  byId("totals").replaceChildren(
    total("Table", now.stale ? "stale" : now.down ? "held: no source answers" : now.note ? "recorded" : "fresh", now.note ? instant(Date.parse(now.published_at)) : `${duration(now.age_seconds)} old`),
    total("Last cycle", cycles.length ? `${seconds(cycles[0]).toFixed(2)} s` : DASH, `of ${duration(now.interval_seconds)}`),
    total("Failures", cycles.length ? count(failed.length) : DASH, cycles.length ? `in ${counted(cycles.length, "cycle")}` : "no cycle has ended yet"),
    total("Version", now.version, health.since ? `since ${instant(Date.parse(health.since))}` : ""),
  );
  byId("sources").replaceChildren(table([["Signal"], ["Workloads", "right"], ["Newest sample", "right"], ["Incomplete"]],
    (health.sources ?? []).map((one) => [one.signal, count(one.workloads), one.age_seconds === null ? "none" : `${duration(one.age_seconds)} old`, causes(one.incomplete)]), now.down || (cycles.length ? "No signal was read in the last cycle." : "No cycle has ended yet.")));
  writes();
  bars(cycles, seconds, now.interval_seconds);
  byId("failures").replaceChildren(failed.length ? table([["At, UTC", "when"], ["What failed"]], failed.slice(0, 20), "") : "");
  byId("verdicts").replaceChildren(table([["Verdict"], ["Reason"], ["Workloads", "right"]], (health.verdicts ?? []).map(([verdict, reason, n]) => [VERDICTS[verdict], words(reason), count(n)]), "No cycle has ended yet."));
  replicas();
  configuration(health.settings ?? []);
}

/** Which replica computes what is seen here, and which one writes. */
function replicas() {
  const lines = [now.follows ? "This replica copies what another one computes, and serves it." : "One replica: it computes and serves."];
  if (writing.lease) lines.push(writing.fault ? `The Lease ${writing.lease} cannot be read: ${writing.fault}` : writing.holder ? `${writing.holder} leads: it holds the Lease ${writing.lease}${writing.renewed_at ? `, renewed ${instant(Date.parse(writing.renewed_at))}` : ""}.` : `No replica holds the Lease ${writing.lease}.`);
  byId("leader").replaceChildren(...lines.map((line) => element("p", {}, line)));
}

/** Settings that are stated, with where; the others folded away. */
function configuration(settings) {
  const code = (text) => element("code", {}, text);
  const stated = settings.filter((one) => one.origin !== "default");
  const defaults = settings.filter((one) => one.origin === "default");
  byId("settings").replaceChildren(table([["Setting"], ["Value"], ["Stated in"]], stated.map((one) => [code(one.path), code(one.value), one.origin]), settings.length ? "All settings are the default." : "Nothing is told of the settings."));
  byId("defaults").parentElement.hidden = !defaults.length;
  byId("defaults").replaceChildren(table([["Setting"], ["Value"]], defaults.map((one) => [code(one.path), code(one.value)]), "None."));
}

/** Which replica writes, what was written, and the pause. */
function writes() {
  byId("writing-card").hidden = !writing.lease && !(health.acting ?? []).length;
  const acts = (health.acting ?? []).flatMap((one) => [
    ...one.writes.map(([change, outcome, n]) => [one.name, `${words(change)}: ${words(outcome)}`, count(n)]),
    ...Object.entries(one.states).map(([state, n]) => [one.name, words(state), count(n)]),
  ]);
  const said = writing.fault || (writing.lease ? `${writing.paused ? "Paused. Nothing is written." : "Writes go on."} ${writing.holder ? `${writing.holder} holds the Lease ${writing.lease}` : `no replica holds the Lease ${writing.lease}`}${writing.paused_by ? `; ${writing.paused ? "paused" : "resumed"} by ${writing.paused_by}` : ""}.` : "");
  const button = element("button", { type: "button", class: "action" }, writing.paused ? "Resume writes" : "Pause all writes");
  button.addEventListener("click", () => confirmed(button));
  byId("writing").replaceChildren(element("p", { class: writing.paused ? "lead bad" : "lead" }, said), writing.lease && !writing.fault ? button : "", element("p", { class: "lead", id: "writing-said", role: "status" }),
    table([["Actuator"], ["In the last cycle"], ["Objects", "right"]], acts, "Nothing was written, and nothing is held."));
}

/** The second press within some seconds counts. */
async function confirmed(button) {
  if (!button.dataset.sure) {
    button.dataset.sure = "1";
    button.textContent = writing.paused ? "Press again to resume" : "Press again to pause";
    setTimeout(() => { delete button.dataset.sure; button.textContent = writing.paused ? "Resume writes" : "Pause all writes"; }, SURE_MS);
    return;
  }
  try {
    writing = await put("dashboard/pause", { paused: !writing.paused });
    writes();
  } catch (error) {
    byId("writing-said").textContent = error.message;
  }
}

const causes = (parts) => Object.entries(parts).map(([cause, n]) => `${count(n)} ${cause}`).join(", ") || "all complete";

/** A bar a cycle, made of its costliest steps and the others, and what each shade is. */
function bars(cycles, seconds, interval) {
  const top = Math.max(...cycles.map(seconds), 0.001);
  const named = costliest(cycles);
  const parts = [...named, OTHERS];
  const shade = (i) => 1 - 0.72 * (i / (parts.length - 1));
  const of = (cycle) => named.map((name) => cycle.steps[name] ?? 0);
  const rest = (cycle) => seconds(cycle) - of(cycle).reduce((sum, one) => sum + one, 0);
  const chart = element("div", { class: "bars", role: "img", "aria-label": `Seconds of the last ${cycles.length} cycles, ${top.toFixed(2)} at most` });
  for (const cycle of [...cycles].reverse()) {
    const bar = element("div", { title: `${clock(Date.parse(cycle.at))} UTC: ${Object.entries(cycle.steps).map(([name, s]) => `${name} ${s.toFixed(3)} s`).join(", ")}` });
    [...of(cycle), rest(cycle)].forEach((s, i) => {
      const part = painted("i", cycle.failures.length ? "shortage" : "demand", shade(i));
      part.style.height = `${(s / top) * 100}%`;
      bar.append(part);
    });
    chart.append(bar);
  }
  const marks = parts.map((name, i) => [name, "demand", shade(i)]);
  if (cycles.some((one) => one.failures.length)) marks.push(["a cycle with failures", "shortage", 1]);
  const legend = element("ul", { class: "legend" }, ...marks.map(([name, of, shade]) => element("li", {}, painted("span", of, shade, "mark step"), name)));
  const costly = cycles.length ? Object.entries(cycles[0].steps).sort(([, a], [, b]) => b - a).slice(0, 5).map(([name, s]) => `${name} ${s.toFixed(2)} s`).join(" · ") : "";
  byId("cycles").replaceChildren(chart, cycles.length ? legend : "", element("p", { class: "lead" }, cycles.length ? `The last one: ${costly}. The tallest bar is ${top.toFixed(2)} s of ${duration(interval)}.` : "No cycle has ended yet."));
}

function painted(tag, of, shade, kind) {
  const one = element(tag, { class: kind });
  one.style.background = colour(of);
  one.style.opacity = shade;
  return one;
}

/** Steps by what they cost in all of these cycles. */
function costliest(cycles) {
  const sums = new Map();
  for (const cycle of cycles) for (const [name, s] of Object.entries(cycle.steps)) sums.set(name, (sums.get(name) ?? 0) + s);
  return [...sums].sort(([, a], [, b]) => b - a).slice(0, STEPS_SHOWN).map(([name]) => name);
}
