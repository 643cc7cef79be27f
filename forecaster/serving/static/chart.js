// A chart over time on a canvas: lines, steps, bands and shortage, with a cursor that charts of one page share.
//
// A series is {label, colour, kind, points, dash, width, measured}; points are [ms, value] or, of a band, [ms, low, high]; null is a
// gap, which of a measured series is shaded and named, as on the pages of a replay. `shortage` is {demand, capacity}, two lists of points of which what lies between is shaded where demand is more.

import { colour, element } from "./dom.js";
import { clock, instant } from "./format.js";

const PAD = { left: 56, right: 12, top: 12, bottom: 26 };
const HOUR = 3600000;
const KNOWN_BEFORE = new Set(["event", "holiday"]);
const HOLIDAY = 6;
const cursors = new Set();
const stepOf = (spec) => spec.step ?? 300000;

/** Draws into `host` and keeps up with its size. `spec`: series, shortage, spans, marks, format, now, from, to, step, top, label. */
export function chart(host, given) {
  const spec = { ...given, spans: [...given.spans ?? [], ...gaps(given)] };
  host.replaceChildren();
  const canvas = element("canvas", { role: "img", tabindex: "0", "aria-label": spec.label });
  const line = element("div", { class: "cursor", hidden: "" });
  const tip = element("div", { class: "tip", hidden: "" });
  const legend = element("ul", { class: "legend" });
  for (const one of spec.series.filter((one) => one.label)) {
    const mark = element("i", { class: `mark ${one.kind}${one.dash ? " dashed" : ""}` });
    mark.style.color = `var(--${one.colour})`;
    if (one.kind !== "band") mark.style.borderTopWidth = `${one.width ?? 2}px`;
    legend.append(element("li", {}, mark, one.label));
  }
  for (const [kind, label] of new Map((spec.spans ?? []).map((one) => [one.kind, one.label]))) legend.append(element("li", {}, element("i", { class: `mark span ${kind}` }), label));
  if (spec.marks?.length) legend.append(element("li", {}, element("i", { class: "mark news" }), "deploy or OOM kill"));
  if (spec.shortage) legend.append(element("li", {}, element("i", { class: "mark short" }), spec.shortage.label));
  const frame = element("div", { class: "frame" }, canvas, line, tip);
  host.append(frame, legend);
  const view = { host, canvas, line, tip, spec };
  for (const other of cursors) if (!other.canvas.isConnected) cursors.delete(other);
  cursors.add(view);
  const draw = () => paint(view);
  new ResizeObserver(draw).observe(frame);
  frame.addEventListener("pointermove", (event) => point(view, timeAt(view, event.offsetX)));
  frame.addEventListener("pointerleave", () => point(view, null));
  canvas.addEventListener("blur", () => point(view, null));
  canvas.addEventListener("keydown", (event) => {
    const by = { ArrowLeft: -1, ArrowRight: 1 }[event.key];
    if (by) { event.preventDefault(); event.stopPropagation(); point(view, (view.at ?? spec.now) + by * stepOf(spec)); }
  });
}

/** All charts of the page once more, e.g. in other colours. */
export function repaint() {
  for (const view of cursors) if (view.canvas.isConnected) paint(view);
}

/** Stretches in which the measured series has no value. */
function gaps({ series, spans, now }) {
  const measured = series.find((one) => one.measured);
  if (!measured || spans?.some((one) => one.kind === "unknown")) return [];
  const found = [];
  let [begin, last] = [null, null];
  for (const [at, value] of measured.points) {
    const known = value !== null && Number.isFinite(value);
    if (!known && begin === null) begin = last ?? at;
    if (known && begin !== null) { found.push([begin, at]); begin = null; }
    last = at;
  }
  if (begin !== null) found.push([begin, now]);
  return found.map(([from, to]) => ({ from, to, kind: "unknown", label: "not measured", said: "not measured" }));
}

const values = (one) => one.points.flatMap((point) => point.slice(1)).filter((value) => value !== null && Number.isFinite(value));

/** The end of an axis and its step: 1, 2 or 5 times a power of ten, of bytes in the unit of the end; four steps at most. */
export function nice(top, whole, bytes) {
  if (!(top > 0)) return { top: 1, step: 1 };
  const raw = top / 4;
  const unit = bytes ? 1024 ** Math.floor(Math.log(top) / Math.log(1024)) : 1;
  const power = unit * 10 ** Math.floor(Math.log10(raw / unit));
  const step = Math.max([1, 2, 5, 10].find((n) => n * power >= raw) * power, whole ? 1 : 0);
  return { top: Math.ceil(top / step) * step, step };
}

function paint(view) {
  const { canvas, spec } = view;
  const ratio = Math.min(devicePixelRatio || 1, 2);
  const [width, height] = [canvas.clientWidth, canvas.clientHeight];
  if (!width) return;
  [canvas.width, canvas.height] = [width * ratio, height * ratio];
  const draw = canvas.getContext("2d");
  draw.setTransform(ratio, 0, 0, ratio, 0, 0);
  const scale = spec.top ? { top: spec.top, step: spec.top / 4 } : nice(Math.max(0, ...spec.series.flatMap(values)) * 1.06, spec.whole, spec.bytes);
  const x = (ms) => PAD.left + ((ms - spec.from) / (spec.to - spec.from)) * (width - PAD.left - PAD.right);
  const y = (value) => height - PAD.bottom - (value / scale.top) * (height - PAD.top - PAD.bottom);
  Object.assign(view, { x, y, width, height });
  axes(draw, view, scale);
  draw.save();
  draw.beginPath();
  draw.rect(PAD.left, 0, width - PAD.left - PAD.right, height);
  draw.clip();
  for (const one of spec.spans ?? []) shade(draw, view, one);
  for (const one of spec.series.filter((one) => one.kind === "band")) band(draw, view, one);
  if (spec.shortage) shortage(draw, view);
  for (const one of spec.series.filter((one) => one.kind !== "band")) path(draw, view, one);
  draw.restore();
  if (spec.from < spec.now && spec.now < spec.to) upright(draw, view, spec.now, "now");
  for (const one of spec.marks ?? []) mark(draw, view, one);
}

/** A stretch of time in the back: hatched where something is not as it was measured, even where something was known beforehand. */
function shade(draw, { x, height, spec }, { from, to, kind }) {
  const [left, right] = [Math.max(x(from), PAD.left), Math.min(x(to), x(spec.to))];
  if (right <= left) return;
  draw.save();
  draw.beginPath();
  draw.rect(left, PAD.top, Math.max(right - left, 2), height - PAD.top - PAD.bottom);
  draw.clip();
  draw.fillStyle = colour(KNOWN_BEFORE.has(kind) ? "event" : "shade");
  if (kind === "holiday") draw.fillRect(left, height - PAD.bottom - HOLIDAY, right - left, HOLIDAY);
  else draw.fillRect(left, PAD.top, Math.max(right - left, 2), height);
  if (!KNOWN_BEFORE.has(kind)) hatch(draw, left, right, height, kind === "unknown" ? 1 : -1);
  draw.restore();
}

function hatch(draw, left, right, height, lean) {
  draw.strokeStyle = colour("axis");
  draw.lineWidth = 1;
  draw.beginPath();
  for (let at = left - height; at < right + height; at += 7) {
    draw.moveTo(at, lean > 0 ? height : 0);
    draw.lineTo(at + height, lean > 0 ? 0 : height);
  }
  draw.stroke();
}

/** A triangle on the axis. */
function mark(draw, { x, height, spec }, { at }) {
  if (at < spec.from || at > spec.to) return;
  const [middle, foot] = [x(at), height - PAD.bottom];
  draw.fillStyle = colour("ink");
  draw.beginPath();
  draw.moveTo(middle, foot - 9);
  draw.lineTo(middle - 5, foot);
  draw.lineTo(middle + 5, foot);
  draw.fill();
}

function axes(draw, { x, y, width, height, spec }, { top, step }) {
  draw.font = `12px ${getComputedStyle(document.body).fontFamily}`;
  draw.lineWidth = 1;
  draw.textBaseline = "middle";
  draw.textAlign = "right";
  for (let value = 0; value <= top * 1.0001; value += step) {
    draw.strokeStyle = colour(value ? "grid" : "axis");
    draw.beginPath();
    draw.moveTo(PAD.left, Math.round(y(value)) + 0.5);
    draw.lineTo(width - PAD.right, Math.round(y(value)) + 0.5);
    draw.stroke();
    draw.fillStyle = colour("faint");
    draw.fillText(spec.format(value, top), PAD.left - 8, y(value));
  }
  draw.textAlign = "center";
  draw.textBaseline = "alphabetic";
  const hours = (spec.to - spec.from) / HOUR;
  const every = [0.25, 0.5, 1, 2, 3, 6, 12].find((n) => hours / n <= Math.max(3, width / 90)) * HOUR;
  for (let at = Math.ceil(spec.from / every) * every; at <= spec.to; at += every) draw.fillText(clock(at), Math.min(x(at), width - 24), height - 8);
}

function upright(draw, { x, height }, at, label) {
  draw.strokeStyle = colour("axis");
  draw.lineWidth = 1;
  draw.setLineDash([2, 3]);
  draw.beginPath();
  draw.moveTo(Math.round(x(at)) + 0.5, PAD.top);
  draw.lineTo(Math.round(x(at)) + 0.5, height - PAD.bottom);
  draw.stroke();
  draw.setLineDash([]);
  draw.fillStyle = colour("faint");
  draw.textAlign = "right";
  draw.fillText(label, x(at) - 4, PAD.top + 8);
}

/** Goes along points, a stretch without gaps after the other. */
function trace(draw, { x, y }, points, step, column = 1) {
  let before = null;
  for (const point of points) {
    const value = point[column];
    if (value === null || !Number.isFinite(value)) { before = null; continue; }
    if (before === null) {
      draw.moveTo(x(point[0]) - 1, y(value));  // a lone point between two gaps is a short dash
      draw.lineTo(x(point[0]), y(value));
    }
    else {
      if (step) draw.lineTo(x(point[0]), y(before));
      draw.lineTo(x(point[0]), y(value));
    }
    before = value;
  }
}

function path(draw, view, one) {
  draw.strokeStyle = colour(one.colour);
  draw.lineWidth = one.width ?? 2;
  draw.lineJoin = "round";
  draw.setLineDash(one.dash ?? []);
  draw.beginPath();
  trace(draw, view, one.points, one.kind === "step");
  draw.stroke();
  draw.setLineDash([]);
}

function band(draw, { x, y }, one) {
  const there = one.points.filter(([, low, high]) => Number.isFinite(low) && Number.isFinite(high) && low !== null);
  draw.beginPath();
  for (const [at, , high] of there) draw.lineTo(x(at), y(high));
  for (const [at, low] of [...there].reverse()) draw.lineTo(x(at), y(low));
  draw.closePath();
  draw.fillStyle = colour(one.colour);
  draw.fill();
}

/** What lies below the demand, seen through windows above the capacity. */
function shortage(draw, view) {
  const { x, y, spec } = view;
  const { demand, capacity } = spec.shortage;
  const room = new Map(capacity);
  const area = new Path2D();
  draw.save();
  draw.beginPath();
  for (let i = 1; i < demand.length; i += 1) {
    const [[from, first], [to, second]] = [demand[i - 1], demand[i]];
    const level = room.get(from) ?? null;
    if (first === null || second === null || level === null) continue;
    draw.rect(x(from), 0, x(to) - x(from), y(level));
    area.moveTo(x(from), y(0));
    for (const [at, value] of [[from, first], [to, second]]) area.lineTo(x(at), y(value));
    area.lineTo(x(to), y(0));
  }
  draw.clip();
  draw.fillStyle = colour("shortage");
  draw.fill(area);
  draw.restore();
}

const timeAt = ({ spec, width }, offset) => spec.from + ((offset - PAD.left) / (width - PAD.left - PAD.right)) * (spec.to - spec.from);

/** Moves the cursor of every chart of the page to a time; null takes it away. */
function point(from, at) {
  for (const view of cursors) {
    const { spec } = view;
    view.at = at === null ? null : Math.min(Math.max(Math.round(at / stepOf(spec)) * stepOf(spec), spec.from), spec.to);
    view.line.hidden = view.tip.hidden = view.at === null || !view.x;
    if (!view.line.hidden) place(view, view === from);
  }
}

function place(view, speaks) {
  const { spec, at, line, tip, x, width } = view;
  line.style.transform = `translateX(${x(at)}px)`;
  const rows = spec.series.filter((one) => one.label).map((one) => {
    const found = one.points.find(([time]) => Math.abs(time - at) <= stepOf(spec) / 2);
    if (!found || found[1] === null || !Number.isFinite(found[1])) return null;
    const text = one.kind === "band" ? `${spec.format(found[1])} to ${spec.format(found[2])}` : spec.format(found[1]);
    return element("li", {}, element("span", {}, one.label), element("b", {}, text));
  });
  const told = [...(spec.spans ?? []).filter((one) => one.from <= at && at <= one.to), ...(spec.marks ?? []).filter((one) => Math.abs(one.at - at) <= 2 * stepOf(spec))];
  tip.replaceChildren(element("p", {}, `${instant(at)} UTC`), element("ul", {}, ...rows), ...told.map((one) => element("p", { class: "told" }, one.said)));
  tip.hidden = !speaks && !rows.some(Boolean);
  tip.style.transform = x(at) > width / 2 ? `translateX(calc(${x(at)}px - 100% - 12px))` : `translateX(${x(at) + 12}px)`;
}
