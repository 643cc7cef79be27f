// What if: the last hours replayed under other settings while a slider moves; one question is under way, the newest waits.

import { Left, Refused, get } from "./api.js";
import { chart } from "./chart.js";
import { byId, element, table } from "./dom.js";
import { DASH, count, duration, percent, signed } from "./format.js";

const MINUTE = 60000;
const AGAIN_MS = 400;
const SLIDERS = [
  { name: "quantile", title: "Quantile of the peak", min: 0.5, max: 0.99, step: 0.01, say: (value) => percent(value) },
  { name: "target_share", title: "Target of the HPA", min: 0.5, max: 1.5, step: 0.05, say: (value) => value === 1 ? "as it is" : `× ${value.toFixed(2)}` },
  { name: "lead_time", title: "Lead time", say: duration },
  { name: "stabilization", title: "Stabilization window", min: 0, max: 3600, step: 60, say: duration },
  { name: "tolerance", title: "Tolerance", min: 0, max: 0.5, step: 0.01, say: (value) => percent(value) },
  { name: "min_replicas", title: "Least replicas", min: 1, step: 1, say: count },
  { name: "max_replicas", title: "Most replicas", min: 1, step: 1, say: count },
];
const NAMES = { hpa: "HPA alone", now: "Setting of now", changed: "Changed" };

let path = "";
let changes = {};
let asked = null;
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
  button.onclick = () => { button.disabled = true; byId("what-if-said").textContent = "Preparing …"; ask(); };
  const copy = byId("what-if-copy");
  copy.onclick = async () => {
    await navigator.clipboard.writeText(byId("what-if-yaml").textContent).then(() => { copy.textContent = "Copied"; }, () => getSelection().selectAllChildren(byId("what-if-yaml")));
  };
}

/** Asks for the present changes; while an answer is awaited, only the newest question is kept. */
async function ask() {
  if (asked) { waiting = true; return; }
  const [of, query] = [path, new URLSearchParams(Object.entries(changes).map(([name, value]) => [name, String(value)]))];
  asked = performance.now();
  try {
    const found = await get(`dashboard/what-if/${of}?${query}`);
    if (of === path) tell(found);
  } catch (error) {
    if (error instanceof Refused && of === path) refused(error);
    else if (!(error instanceof Left)) throw error;
  } finally {
    asked = null;
  }
  if (waiting && of === path) { waiting = false; ask(); }
}

function refused(error) {
  byId("what-if-open").disabled = false;
  if (error.status === 429) { setTimeout(ask, AGAIN_MS); return; }
  byId("what-if-said").textContent = error.message;
}

function tell(found) {
  const took = performance.now() - asked;
  byId("what-if-open").hidden = true;
  byId("what-if-body").hidden = false;
  if (!byId("what-if-sliders").childElementCount) sliders(found);
  Object.assign(byId("what-if").dataset, { milliseconds: took.toFixed(0), cpu: found.milliseconds });
  byId("what-if-said").textContent = found.settings.gate && !found.acting && changes.gate === undefined
    ? "Its forecast is only watched: neither setting heeds it. Untick the gate to see what it would do."
    : `${duration((Date.parse(found.until) - Date.parse(found.begin)) / 1000)} until the last cycle, replayed in ${found.milliseconds.toFixed(0)} ms with the recommended count as the HPA's floor (${found.targets}).`;
  byId("what-if-yaml").textContent = found.yaml;
  accounts(found.runs);
  draw(found);
}

function sliders({ settings, leads }) {
  const rows = SLIDERS.filter(({ name }) => settings[name] !== null).map((one) => slider(one, settings, leads));
  const gate = element("input", { type: "checkbox", ...(settings.gate ? { checked: "" } : {}) });
  gate.addEventListener("change", () => set("gate", gate.checked, settings.gate));
  const reset = element("button", { type: "button", class: "action" }, "As it is now");
  reset.addEventListener("click", () => { changes = {}; byId("what-if-sliders").replaceChildren(); ask(); });
  byId("what-if-sliders").replaceChildren(...rows, element("label", { class: "check" }, gate, "The forecast must earn its say (gate)"), reset);
}

function slider({ name, title, min, max, step, say }, settings, leads) {
  const now = settings[name];
  const values = name === "lead_time" ? [...new Set([...leads, now])].sort((a, b) => a - b) : null;
  const most = max ?? Math.max(10, 2 * now);
  const range = values ? { min: 0, max: values.length - 1, step: 1, value: values.indexOf(now) } : { min: Math.min(min, now), max: Math.max(most, now), step, value: now };
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
    { label: "setting of now, ready", colour: "capacity", kind: "step", width: 1.5, points: ready.now },
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
