// How forecasts turned out, by model and lead, and where they stand.

import { get } from "./api.js";
import { byId, colour, element, mark, show, table } from "./dom.js";
import { count, instant, percent } from "./format.js";

let health = {};

export async function open() {
  show("accuracy-page");
  document.title = "Accuracy · forecaster";
  await renew();
}

export async function renew() {
  health = await get("dashboard/health");
  redraw();
}

export function redraw() {
  const groups = health.accuracy ?? [];
  byId("dots").replaceChildren(...groups.map(dot), ...(groups.length ? [scale()] : []));
  byId("models").replaceChildren(table(
    [["Signal"], ["Model"], ["Minutes ahead", "right"], ["Peaks at or below", "right"], ["Should be", "right"], ["Error of the median", "right"], ["Forecasts", "right"]],
    groups.map((one) => [one.signal, one.model, one.minutes, percent(one.coverage, 1), percent(one.quantile, 1), percent(one.error_ratio, 1), count(Math.round(one.forecasts))]),
    "No forecast has matured since this process began. That takes lead time and window: some minutes."));
  byId("worst").replaceChildren(table(
    [["Workload"], ["Signal"], ["Error of the median", "right"], ["Peaks at or below", "right"], ["Should be", "right"], ["Forecasts", "right"]],
    (health.worst ?? []).map((one) => [link(one), one.accuracy.signal, percent(one.accuracy.error_ratio), percent(one.accuracy.coverage), percent(one.accuracy.quantile), count(Math.round(one.accuracy.forecasts))]),
    "No workload has five forecasts that have matured."));
  byId("states").replaceChildren(table([["State"], ["Forecast by"], ["Workloads", "right"]], (health.states ?? []).map(([state, forecaster, n]) => [mark(state), forecaster, count(n)]), "No policy asks for a gate."));
  byId("moves").replaceChildren(table([["At, UTC", "when"], ["What"]], (health.moves ?? []).map((one) => [instant(Date.parse(one.at)), one.said]), "None since this process began."));
}

const link = ({ namespace, kind, name }) => element("a", { href: `#/workloads/${[namespace, kind, name].map(encodeURIComponent).join("/")}` }, `${namespace}/${name}`);

/** What the places of the dots mean. */
const scale = () => element("div", { class: "dotline ends", "aria-hidden": "true" }, element("span", {}, "peaks at or below; the tick is what should be"),
  element("span", {}, ...["50 %", "75 %", "100 %"].map((text) => element("i", {}, text))), element("b"));

/** One group on a scale from 50 to 100 %: the tick is what coverage should be, the dot what it is. */
function dot(one) {
  const place = (ratio) => `${Math.min(Math.max((ratio - 0.5) / 0.5, 0), 1) * 100}%`;
  const [tick, dotted, bar] = [element("i", { class: "tick" }), element("u"), element("span", { class: "scale" })];
  tick.style.left = place(one.quantile);
  dotted.style.left = place(one.coverage);
  dotted.style.background = colour(one.coverage < one.quantile - 0.05 ? "shortage" : "forecast");
  bar.append(tick, dotted);
  return element("div", { class: "dotline", title: `${percent(one.coverage, 1)} of ${percent(one.quantile, 1)}` },
    element("span", {}, `${one.signal}, ${one.model}, ${one.minutes} min`), bar, element("b", {}, percent(one.coverage)));
}
