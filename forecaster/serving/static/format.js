// Amounts, counts and instants as people of the field read them. What is not known is a dash, never 0.

export const DASH = "–";

const digits = (value, count) => value === 0 ? "0" : Math.abs(value) >= 10 ** count ? Math.round(value).toLocaleString("en") : `${Number(value.toPrecision(count))}`;

/** An amount in the unit that fits it, or the one that fits `largest`: all ticks of an axis are of one scale. */
export function amount(value, unit, largest = value) {
  if (value === null || value === undefined || Number.isNaN(value)) return DASH;
  if (value === 0) return "0";
  if (unit === "cores") return largest < 1 ? `${Math.round(value * 1000)}m` : `${digits(value, 3)}`;
  if (unit === "bytes") return bytes(value, largest);
  return unit === "requests/s" ? `${digits(value, 3)}/s` : `${digits(value, 3)} ${unit}`.trim();
}

/** From one amount to another, both in one unit: 0.612 → 1.46 cores. */
export const between = (from, to, unit) => [from, to].map((value) => unit === "cores" && Math.max(from, to) >= 1 && value > 0 && value < 1 ? digits(value, 2) : amount(value, unit)).join(" → ");

/** The same in a sentence, where no column says that it is cores. */
export const spoken = (value, unit) => amount(value, unit) + (unit === "cores" && value >= 1 ? " cores" : "");

function bytes(value, largest) {
  const suffixes = ["", "Ki", "Mi", "Gi", "Ti", "Pi"];
  let power = 0;
  while (largest >= 1024 ** (power + 1) && power < suffixes.length - 1) power += 1;
  return digits(value / 1024 ** power, 3) + suffixes[power];
}

/** Money, in the currency that the settings name. */
export const money = (value) => Number.isNaN(value) ? DASH : value.toLocaleString("en", value < 100 ? { minimumFractionDigits: 2, maximumFractionDigits: 2 } : { maximumFractionDigits: 0 });

export const count = (value) => value === null || value === undefined || value < 0 ? DASH : value.toLocaleString("en");

export const signed = (value) => value > 0 ? `+${value.toLocaleString("en")}` : `−${Math.abs(value).toLocaleString("en")}`;

export const percent = (ratio, places = 0) => ratio === null || ratio === undefined ? DASH : `${(ratio * 100).toFixed(places)} %`;

const two = (number) => String(number).padStart(2, "0");

/** Time of day in UTC, as the explanations have it. */
export function clock(ms) {
  const at = new Date(ms);
  return `${two(at.getUTCHours())}:${two(at.getUTCMinutes())}`;
}

const MONTHS = "Jan Feb Mar Apr May Jun Jul Aug Sep Oct Nov Dec".split(" ");

/** Day and time of day in UTC. */
export const instant = (ms) => `${new Date(ms).getUTCDate()} ${MONTHS[new Date(ms).getUTCMonth()]} ${clock(ms)}`;

export function duration(seconds) {
  if (seconds < 90) return `${Math.round(seconds)} s`;
  if (seconds < 5400) return `${Math.round(seconds / 60)} min`;
  return seconds < 172800 ? `${Math.round(seconds / 3600)} h` : `${Math.round(seconds / 86400)} d`;
}

/** Words of a code such as `no-data`. */
export const words = (code) => code.replaceAll("-", " ");

/** A number of things. */
export const counted = (n, one) => `${count(n)} ${one}${n === 1 ? "" : "s"}`;
