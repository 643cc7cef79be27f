// The last half day of a workload: what was forecast at a lead of choice, how it turned out, what lies on the axis.

import { Left, Refused, get } from "./api.js";
import { chart } from "./chart.js";
import { byId, element } from "./dom.js";
import { amount, duration, percent } from "./format.js";

const LEADS = [0, 300, 600, 900, 1800, 3600];
const HOUR = 3600000;
const AGAIN_MS = 800;

let chosen = 0;
let newest = 0;

/** Half a day of one signal, or why not; null where something else is asked for meanwhile. Asks again while it is busy. */
export async function past(of, signal) {
  const turn = newest += 1;
  for (;;) {
    try {
      const found = await get(`dashboard/past/${of}?${new URLSearchParams({ signal, lead: chosen })}`);
      return turn === newest ? found : null;
    } catch (error) {
      if (error instanceof Left || turn !== newest) return null;
      if (!(error instanceof Refused)) throw error;
      if (error.status !== 429) return { refused: error.message };
      await new Promise((go) => { setTimeout(go, AGAIN_MS); });
    }
  }
}

/** Buttons with the leads; `changed` is called after another one was chosen. */
export function leads(changed) {
  byId("leads").replaceChildren(element("span", {}, "forecast before"), ...LEADS.map((lead) => {
    const button = element("button", { type: "button", "aria-pressed": String(lead === chosen) }, lead ? duration(lead) : "lead time");
    button.addEventListener("click", () => { chosen = lead; leads(changed); changed(); });
    return button;
  }));
}

/** The series of what was forecast then; `alone` with what came of it, where the page has no history of its own. */
export function series(found, alone = false) {
  const { forecast } = found ?? {};
  if (!forecast) return [];
  const at = (i) => Date.parse(forecast.begin) + i * forecast.step_seconds * 1000;
  const before = `forecast ${duration(forecast.lead_seconds)} before`;
  return [
    { label: `${before}, 10 to 90 %`, colour: "band", kind: "band", points: forecast.low.map((low, i) => [at(i), low, forecast.high[i]]) },
    { label: `${before}, ${percent(forecast.quantile)}`, colour: "forecast", kind: "line", width: 1, points: forecast.peak.map((value, i) => [at(i), value]) },
    ...alone ? [{ label: "the peak that came", colour: "demand", kind: "line", points: forecast.actual.map((value, i) => [at(i), value]) }] : [],
  ];
}

/** What the HPA alone would have asked for in the last hours. */
export function plain(found) {
  if (!found?.plain) return [];
  const begin = Date.parse(found.plain.begin);
  return [{ label: "plain HPA, replayed alone", colour: "ink", kind: "step", dash: [2, 3], width: 1.5, points: found.plain.asked.map((asked, i) => [begin + i * 300000, asked]) }];
}

const TITLES = { masked: "masked", unknown: "not measured", event: "event", holiday: "public holiday" };

/** What is shaded, and what stands on the axis. */
export function around(found) {
  const spans = (found?.spans ?? []).map((one) => ({ from: Date.parse(one.begin), to: Date.parse(one.until), kind: one.kind, label: TITLES[one.kind], said: one.said }));
  const marks = (found?.news ?? []).map((one) => ({ at: Date.parse(one.at), said: one.said }));
  return { spans, marks };
}

/** Coverage and error hour by hour. */
export function outcomes(found, { now, from }) {
  const host = byId("outcomes");
  const hours = found?.hours ?? [];
  if (!hours.some((one) => one.coverage !== null)) {
    host.replaceChildren(element("p", { class: "empty" }, found?.refused ? `Not here: ${found.refused}.` : "No process is there that looks back."));
    return;
  }
  const points = (name) => hours.flatMap((one) => [[Date.parse(one.begin), one[name]], [Date.parse(one.begin) + HOUR, one[name]]]);
  const { quantile } = found.forecast;
  chart(host, {
    series: [
      { label: `peaks at or below the forecast ${percent(quantile)}`, colour: "forecast", kind: "step", points: points("coverage") },
      { label: "as many as should be", colour: "capacity", kind: "line", dash: [4, 3], width: 1.5, points: [[from, quantile], [now, quantile]] },
      { label: "error of the median", colour: "demand", kind: "step", points: points("error") },
    ],
    now, from, to: now, top: 1, format: (value) => percent(value), label: "Coverage and error of the forecasts by hour",
  });
}

/** Usage of each container beside what it requests and may have. */
export function containers(found, { now, from }) {
  const some = (found?.containers ?? []).filter((one) => one.usage.some((value) => value !== null));
  byId("containers-card").hidden = !some.length;
  byId("containers").replaceChildren(...some.map((one) => {
    const host = element("div", { class: "chart small" });
    const figure = element("figure", {}, element("figcaption", {}, element("b", {}, one.name || "pod"), ` ${one.resource}, ${one.unit}`), host);
    return Object.assign(figure, { draw: () => container(host, one, now, from) });
  }));
  for (const figure of byId("containers").children) figure.draw();
}

function container(host, one, now, from) {
  const until = Date.parse(one.until);
  const usage = one.usage.map((value, i) => [until - (one.usage.length - 1 - i) * 300000, value]);
  const level = (value) => value === null ? [] : [[from, value], [now, value]];
  const over = one.request !== null && usage.some(([, value]) => value !== null && value > one.request);
  chart(host, {
    series: [
      { label: "limit", colour: "shortage", kind: "line", dash: [4, 3], width: 1.5, points: level(one.limit) },
      { label: "request", colour: "capacity", kind: "line", width: 1.5, points: level(one.request) },
      { label: "hottest pod", colour: "demand", kind: "line", measured: true, points: usage },
    ].filter((line) => line.points.length),
    shortage: over ? { label: "above the request", demand: usage, capacity: usage.map(([at]) => [at, one.request]) } : null,
    now, from, to: now, bytes: one.unit === "bytes", format: (value, top) => amount(value, one.unit, top), label: `${one.name || "pod"}: ${one.resource} beside request and limit`,
  });
}
