// The computing process: what it reads, what its last cycles cost, what it decided and how it is set.

import { get } from "./api.js";
import { byId, colour, element, show, table, total } from "./dom.js";
import { DASH, clock, count, duration, instant, words } from "./format.js";

let health = {};
let now = {};

export async function open() {
  show("health-page");
  document.title = "Health · forecaster";
  await renew();
}

export async function renew() {
  [health, now] = await Promise.all([get("dashboard/health"), get("dashboard/now")]);
  redraw();
}

export function redraw() {
  const cycles = health.cycles ?? [];
  const seconds = (cycle) => Object.values(cycle.steps).reduce((sum, one) => sum + one, 0);
  const failed = cycles.flatMap((cycle) => cycle.failures.map((text) => [instant(Date.parse(cycle.at)), text]));
  byId("totals").replaceChildren(
    total("Table", now.stale ? "stale" : now.note ? "recorded" : "fresh", now.note ? instant(Date.parse(now.published_at)) : `${duration(now.age_seconds)} old`),
    total("Last cycle", cycles.length ? `${seconds(cycles[0]).toFixed(2)} s` : DASH, `of ${duration(now.interval_seconds)}`),
    total("Failures", count(failed.length), `in ${count(cycles.length)} cycles`),
    total("Version", now.version, health.since ? `since ${instant(Date.parse(health.since))}` : ""),
  );
  byId("sources").replaceChildren(table([["Signal"], ["Workloads", "right"], ["Newest sample", "right"], ["Incomplete"]],
    (health.sources ?? []).map((one) => [one.signal, count(one.workloads), one.age_seconds === null ? "none" : `${duration(one.age_seconds)} old`, causes(one.incomplete)]), "No cycle has ended yet."));
  bars(cycles, seconds, now.interval_seconds);
  byId("failures").replaceChildren(failed.length ? table([["At, UTC", "when"], ["What failed"]], failed.slice(0, 20), "") : "");
  byId("verdicts").replaceChildren(table([["Verdict"], ["Reason"], ["Workloads", "right"]], (health.verdicts ?? []).map(([verdict, reason, n]) => [verdict, words(reason), count(n)]), "No cycle has ended yet."));
  byId("settings").replaceChildren(table([["Setting"], ["Value"]], Object.entries(health.settings ?? {}).map(([path, value]) => [element("code", {}, path), element("code", {}, value)]), "All settings are the default."));
}

const causes = (parts) => Object.entries(parts).map(([cause, n]) => `${count(n)} ${cause}`).join(", ") || "all complete";

/** A bar a cycle, made of its steps; the tallest step of each is named. */
function bars(cycles, seconds, interval) {
  const top = Math.max(...cycles.map(seconds), 0.001);
  const names = [...new Set(cycles.flatMap((cycle) => Object.keys(cycle.steps)))];
  const shade = (i) => 0.35 + 0.65 * (1 - i / Math.max(names.length - 1, 1));
  const chart = element("div", { class: "bars", role: "img", "aria-label": `Seconds of the last ${cycles.length} cycles, ${top.toFixed(2)} at most` });
  for (const cycle of [...cycles].reverse()) {
    const bar = element("div", { title: `${clock(Date.parse(cycle.at))} UTC: ${Object.entries(cycle.steps).map(([name, s]) => `${name} ${s.toFixed(3)} s`).join(", ")}` });
    names.forEach((name, i) => {
      const part = element("i");
      part.style.height = `${((cycle.steps[name] ?? 0) / top) * 100}%`;
      part.style.background = colour(cycle.failures.length ? "shortage" : "demand");
      part.style.opacity = shade(i);
      bar.append(part);
    });
    chart.append(bar);
  }
  const costly = cycles.length ? Object.entries(cycles[0].steps).sort(([, a], [, b]) => b - a).slice(0, 5).map(([name, s]) => `${name} ${s.toFixed(2)} s`).join(" · ") : "";
  byId("cycles").replaceChildren(chart, element("p", { class: "lead" }, cycles.length ? `The last one: ${costly}. The tallest bar is ${top.toFixed(2)} s of ${duration(interval)}.` : "No cycle has ended yet."));
}
