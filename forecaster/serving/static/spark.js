// Sparklines: one byte a point, as the fleet has them. 0 is not known, 1 is nothing, 255 the largest value of the row.

import { colour } from "./dom.js";

const PAST = 36;

let box = null;
addEventListener("resize", () => { box = null; });

/** Draws the bytes of a row: past demand as a line, the forecast band as an area. All canvases are of one size. */
export function spark(canvas, bytes) {
  box ??= { width: canvas.clientWidth || 180, height: canvas.clientHeight || 36, ratio: Math.min(devicePixelRatio || 1, 2) };
  const { width, height, ratio } = box;
  const draw = canvas.getContext("2d");
  if (canvas.width !== width * ratio || canvas.height !== height * ratio) [canvas.width, canvas.height] = [width * ratio, height * ratio];
  draw.setTransform(ratio, 0, 0, ratio, 0, 0);
  draw.clearRect(0, 0, width, height);
  draw.lineWidth = 1;
  if (!bytes.length) return;
  const ahead = (bytes.length - PAST) / 2;
  const x = (i) => 1 + (i / (PAST + ahead - 1)) * (width - 2);
  const y = (byte) => height - 2 - ((byte - 1) / 254) * (height - 5);
  band(draw, bytes, ahead, x, y);
  draw.strokeStyle = colour("axis");
  draw.beginPath();
  draw.moveTo(x(PAST - 0.5), 2);
  draw.lineTo(x(PAST - 0.5), height - 2);
  draw.stroke();
  draw.strokeStyle = colour("demand");
  draw.lineWidth = 1.5;
  draw.lineJoin = "round";
  draw.beginPath();
  let open = false;
  for (let i = 0; i < PAST; i += 1) {
    if (!bytes[i]) { open = false; continue; }
    if (open) draw.lineTo(x(i), y(bytes[i])); else draw.moveTo(x(i), y(bytes[i]));
    open = true;
  }
  draw.stroke();
}

function band(draw, bytes, ahead, x, y) {
  const points = [...Array(ahead).keys()].filter((i) => bytes[PAST + i] && bytes[PAST + ahead + i]);
  if (points.length < 2) return;
  draw.beginPath();
  for (const i of points) draw.lineTo(x(PAST + i), y(bytes[PAST + ahead + i]));
  for (const i of points.reverse()) draw.lineTo(x(PAST + i), y(bytes[PAST + i]));
  draw.closePath();
  draw.fillStyle = colour("band");
  draw.fill();
}
