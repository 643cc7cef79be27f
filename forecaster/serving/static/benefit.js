// What the decisions were worth beside the HPA alone: the same four numbers for the fleet and for a workload.

import { element, table } from "./dom.js";
import { count, instant, money, percent } from "./format.js";

const PERIODS = { day: ["Last day", 24], week: ["Last week", 7 * 24] };
const HEADS = [["Period"], ["Policy"], ["Unserved demand", "right"], ["Minutes short", "right"], ["Pod-hours", "right"]];

/** The sentence of the longest period, and the numbers of all of them; the reason where nothing is known. */
export function benefit(host, { periods, unknown }, currency = "") {
  const once = periods.day?.since === periods.week?.since;
  const found = Object.entries(PERIODS).filter(([name]) => periods[name] && !(once && name === "day")).map(([name, whole]) => [titleOf(periods[name], whole), periods[name]]);
  if (!found.length) return host.replaceChildren(element("p", { class: "empty" }, `${unknown[0].toUpperCase()}${unknown.slice(1)}.`));
  const [, longest] = found.at(-1);
  const priced = longest.hpa.money !== null;
  const row = (title, policy, of) => [title, policy, percent(of.unserved_share, 3), count(Math.round(of.short_minutes)), of.pod_hours.toLocaleString("en", { maximumFractionDigits: 1 }), ...priced ? [money(of.money)] : []];
  return host.replaceChildren(
    element("p", { class: `said ${kind(longest.workloads)}` }, longest.said),
    table([...HEADS, ...priced ? [[`Money${currency ? `, ${currency}` : ""}`, "right"]] : []],
      found.flatMap(([title, of]) => [row(title, "HPA alone", of.hpa), row("", "forecaster, as decided", of.forecaster)]), ""),
    element("p", { class: "lead" }, `Decisions from ${instant(Date.parse(longest.since))} to ${instant(Date.parse(longest.until))} UTC, replayed hour by hour on what was measured, as floors of the HPA. Better and worse are at the same pod-hours.`));
}

/** What a period is called: by its hours or days while it is not whole. Sums are of six hours, so a whole one may lack as many. */
const titleOf = ({ since, until }, [title, whole]) => {
  const hours = (Date.parse(until) - Date.parse(since)) / 3.6e6;
  if (hours >= whole - 6) return title;
  return hours < 48 ? `Last ${Math.round(hours)} h` : `Last ${Math.round(hours / 24)} days`;
};

/** The colour of the sentence: that of success only where no workload was worse. */
const kind = ({ better = 0, worse = 0 }) => worse > better ? "worse" : better && !worse ? "better" : "same";
