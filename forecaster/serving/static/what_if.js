// What if: the last hours replayed under other settings while a slider moves; one question is under way, the newest waits.

import { Left, Refused, get } from "./api.js";
import { chart } from "./chart.js";
import { byId, element, table } from "./dom.js";
import { DASH, count, duration, percent, signed } from "./format.js";

const MINUTE = 60000;
const AGAIN_MS = 400;
const EVERY_MS = 50;
const FIRST = ["quantile", "target_share", "lead_time"];
const TITLES = { quantile: "Quantile of the peak", target_share: "Target of the HPA", scale_down_stabilization: "Stabilization window" };
const SAY = { ratio: (value) => percent(value), replicas: count, s: duration };
const NAMES = { hpa: "HPA alone", now: "Present settings", changed: "Changed" };

let path = "";
let changes = {};
let moved = 0;
let asking = false;
let waiting = false;

/** Makes the card of a workload ready; nothing is replayed before the reader asks for it. */
export function offer(of, offered, refused) {
  if (of === path && byId("what-if-sliders").childElementCount) return;
  [path, changes, waiting] = [of, {}, false];
  byId("what-if").hidden = false;
  const button = byId("what-if-open");
  button.hidden = !offered;
  byId("what-if-said").textContent = offered ? "" : `Not here: ${refused}.`;
  byId("what-if-body").hidden = true;
  button.onclick = () => { button.disabled = true; byId("what-if-said").textContent = "Preparing …"; moved = performance.now(); ask(); };
  const copy = byId("what-if-copy");
  copy.onclick = async () => {
    await navigator.clipboard.writeText(byId("what-if-yaml").textContent).then(() => { copy.textContent = "Copied"; }, () => getSelection().selectAllChildren(byId("what-if-yaml")));
  };
}

/** Asks for the present changes; while an answer is awaited, only the newest question is kept. */
async function ask() {
  if (asking) { waiting = true; return; }
  asking = true;
  const [of, from, query] = [path, moved, new URLSearchParams(Object.entries(changes).map(([name, value]) => [name, String(value)]))];
  const again = new Promise((ended) => { setTimeout(ended, EVERY_MS); });
  try {
    const found = await get(`dashboard/what-if/${of}?${query}`);
    if (of === path) tell(found, from);
  } catch (error) {
    if (error instanceof Refused && of === path) refused(error);
    else if (!(error instanceof Left)) throw error;
  } finally {
    await again;
    asking = false;
  }
  if (waiting && of === path) { waiting = false; ask(); }
}

function refused(error) {
  byId("what-if-open").disabled = false;
  if (error.status === 429) { setTimeout(ask, AGAIN_MS); return; }
  byId("what-if-said").textContent = error.message;
}

/** Shows an answer; `from` is when the slider came to where it was asked of. */
function tell(found, from) {
  byId("what-if-open").hidden = true;
  byId("what-if-body").hidden = false;
  if (!byId("what-if-sliders").childElementCount) sliders(found);
  byId("what-if-said").textContent = found.settings.gate && !found.acting && changes.gate === undefined
    ? "Its forecast is only watched: neither setting heeds it. Untick the gate to see what it would do."
    : `${duration((Date.parse(found.until) - Date.parse(found.begin)) / 1000)} until the last cycle, replayed with the recommended count as the HPA's floor (${found.targets}).`;
  byId("what-if-yaml").textContent = found.yaml;
  accounts(found.runs);
  draw(found);
  Object.assign(byId("what-if").dataset, { milliseconds: (performance.now() - from).toFixed(0), cpu: found.milliseconds });
}

function sliders({ settings, sliders: ranges, leads }) {
  const names = [...new Set([...FIRST, ...Object.keys(ranges)])];
  const rows = names.map((name) => slider(name, settings[name], ranges[name], leads));
  const gate = element("input", { type: "checkbox", ...(settings.gate ? { checked: "" } : {}) });
  gate.addEventListener("change", () => set("gate", gate.checked, settings.gate));
  const reset = element("button", { type: "button", class: "action" }, "Reset");
  reset.addEventListener("click", () => { changes = {}; moved = performance.now(); byId("what-if-sliders").replaceChildren(); ask(); });
  byId("what-if-sliders").replaceChildren(...rows, element("label", { class: "check" }, gate, "The forecast must prove itself (gate)"), reset);
}

/** A slider over a range of values, or, without one, over the lead times there are. */
function slider(name, now, found, leads) {
  const title = TITLES[name] ?? (name[0].toUpperCase() + name.slice(1)).replaceAll("_", " ");
  const say = name === "target_share" ? (value) => value === 1 ? "as it is" : `× ${value.toFixed(2)}` : SAY[found?.[3] ?? "s"] ?? ((value) => `${value} ${found[3]}`);
  const values = found ? null : [...new Set([...leads, now])].sort((a, b) => a - b);
  const [min, max, step] = found ?? [0, values.length - 1, 1];
  const range = { min, max, step, value: values ? values.indexOf(now) : now };
  const input = element("input", { type: "range", name, ...range });
  const shown = element("output", {}, say(now));
  input.addEventListener("input", () => {
    const value = values ? values[Number(input.value)] : Number(input.value);
    const same = Math.abs(value - now) < step / 2 || value === now;
    shown.textContent = say(same ? now : value);
    set(name, value, same ? value : now);
  });
  return element("label", { class: "slider" }, element("span", {}, title), shown, input, element("small", {}, `now ${say(now)}`));
}

function set(name, value, now) {
  moved = performance.now();
  if (value === now) delete changes[name]; else changes[name] = value;
  ask();
}

/** Pod-hours and shortage of the three, the changed one beside the present one. */
function accounts(runs) {
  const beside = (name, of, places) => {
    const by = runs[name][of] - runs.now[of];
    return name === "changed" && Math.abs(by) >= 0.5 * 10 ** -places ? ` (${signed(Number(by.toFixed(places)))})` : "";
  };
  const rows = Object.entries(NAMES).map(([name, title]) => {
    const run = runs[name];
    return [title, `${run.pod_hours.toFixed(1)}${beside(name, "pod_hours", 1)}`, `${run.short_minutes.toFixed(0)} min${beside(name, "short_minutes", 0)}`,
      run.missing_share === null ? DASH : percent(run.missing_share, 2), count(run.changes)];
  });
  byId("what-if-accounts").replaceChildren(table([["Setting"], ["Pod-hours", "right"], ["Short", "right"], ["Unserved", "right"], ["Changes", "right"]], rows, ""));
}

function draw({ begin, until, demand, pod, runs }) {
  const [from, to] = [Date.parse(begin), Date.parse(until)];
  const points = (values) => values.map((value, i) => [from + (i + 1) * MINUTE, value]);
  const needed = points(demand.map((value) => value === null ? null : value / pod));
  const ready = Object.fromEntries(Object.entries(runs).map(([name, run]) => [name, points(run.ready)]));
  const series = [
    { label: "HPA alone, ready", colour: "capacity", kind: "step", dash: [2, 3], width: 1.5, points: ready.hpa },
    { label: "as it is now, ready", colour: "capacity", kind: "step", width: 1.5, points: ready.now },
    { label: "changed, ready", colour: "forecast", kind: "step", points: ready.changed },
    { label: "pods that the demand fills", colour: "demand", kind: "line", points: needed },
  ];
  const short = needed.some(([, value], i) => value !== null && value > ready.changed[i][1]);
  chart(byId("what-if-chart"), {
    series, from, to, now: to, step: MINUTE, format: (value) => Number.isInteger(value) ? count(value) : value.toFixed(1),
    shortage: short ? { label: "shortage, changed", demand: needed, capacity: ready.changed } : null,
    label: "Ready pods of the last hours under three settings, and the pods that the demand fills",
  });
}
