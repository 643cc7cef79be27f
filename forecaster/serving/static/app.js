// Which page is shown, how old its table is, light or dark. Pages are modules: `open(parts, query)` fills the page, `renew()`
// asks for what is newer, `redraw(paper)` draws the same again.

import { Left, Refused, get, leave } from "./api.js";
import { byId, element, forgetColours } from "./dom.js";
import { duration, instant } from "./format.js";
import * as accuracy from "./accuracy.js";
import * as fleet from "./fleet.js";
import * as health from "./health.js";
import * as nodes from "./nodes.js";
import * as workload from "./workload.js";

const PAGES = { "": fleet, accuracy, health, nodes, workloads: workload };
const POLL_MS = 5000;
let page = null;
let refused = false;
let table = null;
let before;
const places = new Map();
history.scrollRestoration = "manual";

/** A part of an address; one that is spelled wrong names nothing. */
function named(part) {
  try {
    return decodeURIComponent(part);
  } catch {
    return part;
  }
}

/** `#/workloads/shop/Deployment/web?x=y` as parts and query. */
function route() {
  const [path, query = ""] = location.hash.replace(/^#\/?/, "").split("?");
  return { parts: path.split("/").map(named), query: new URLSearchParams(query) };
}

/** Shows what the address names; a reader who comes back finds the page where it was left. */
async function open(event) {
  if (event?.oldURL) places.set(event.oldURL, scrollY);
  const place = history.state?.visited && places.get(location.href);
  const { parts, query } = route();
  const next = Object.hasOwn(PAGES, parts[0]) ? PAGES[parts[0]] : fleet;
  leave();
  const stays = next === page && next === fleet;
  page = next;
  for (const link of document.querySelectorAll("nav a")) {
    if (link.dataset.page === (parts[0] || "fleet")) link.setAttribute("aria-current", "page");
    else link.removeAttribute("aria-current");
  }
  await shown(() => page.open(parts.slice(1), query));
  if (!stays) window.scrollTo(0, place || 0);
  history.replaceState({ visited: true }, "");
}

/** Runs what fills the page; a refusal is said in its place. */
async function shown(fill) {
  try {
    await fill();
    refused = false;
  } catch (error) {
    if (error instanceof Left) return;
    if (!(error instanceof Refused)) throw error;
    refused = true;
    byId("main").replaceChildren(element("p", { class: "empty" }, error.message));
  }
}

/** Asks whether there is another table, or are pictures of it, which follow it; if so, the page renews itself. */
async function look() {
  const asked = page;
  try {
    const now = await get("dashboard/now", true);
    tellAge(now);
    const another = now.published_at !== table?.published_at || now.drawn_at !== table?.drawn_at;
    table = now;
    if (another && page && page === asked) await (refused ? open() : shown(() => page.renew()));
  } catch (error) {
    if (error instanceof Left) return;
    if (!(error instanceof Refused)) throw error;
    byId("age").replaceChildren(element("b", { class: "bad" }, error.waits ? "Nothing is decided yet" : error.message));
  }
}

function tellAge(now) {
  const old = now.age_seconds < 0 ? "from the future: a clock is wrong" : `${duration(now.age_seconds)} old`;
  const when = now.note ? instant(Date.parse(now.published_at)) : `${now.stale ? "stale, " : ""}${old}`;
  const said = now.down ? `held: no source answers, ${when}` : when;
  const late = now.stale && !now.down && !now.note && `Nothing was published since ${instant(Date.parse(now.published_at))} UTC: what is shown is of then`;
  const told = [now.down, late, now.note, now.fault].filter(Boolean);
  byId("age").replaceChildren(element("span", { class: now.stale || now.down ? "bad dot" : "good dot", title: `table of ${now.published_at}` }, said));
  byId("report").hidden = !now.reported_at;
  byId("note").hidden = !told.length;
  byId("note").textContent = told.join(" · ");
  byId("note").classList.toggle("bad", Boolean(now.down || late || now.fault));
  document.body.classList.toggle("late", Boolean(now.down || late));
}

function switchTheme() {
  const dark = matchMedia("(prefers-color-scheme: dark)").matches;
  const next = (document.documentElement.dataset.theme ?? (dark ? "dark" : "light")) === "dark" ? "light" : "dark";
  document.documentElement.dataset.theme = next;
  localStorage.setItem("theme", next);
  repaint();
}

function repaint(paper = false) {
  forgetColours();
  page?.redraw(paper);
}

/** Paper is light, whatever the screen is. */
function toPaper() {
  before = document.documentElement.dataset.theme;
  document.documentElement.dataset.theme = "light";
  repaint(true);
}

function fromPaper() {
  if (before) document.documentElement.dataset.theme = before;
  else delete document.documentElement.dataset.theme;
  repaint();
}

function pressed(event) {
  if (event.metaKey || event.ctrlKey || event.altKey || event.target.matches("input, select, textarea")) {
    if (event.key === "Escape") event.target.blur();
    return;
  }
  const search = document.querySelector("input[type=search]");
  if (event.key === "/" && search) { event.preventDefault(); search.focus(); }
  else if (event.key === "t") switchTheme();
  else if (event.key === "?") byId("keys").showModal();
  else if (byId("keys").open) return;
  else if (event.key === "Escape" && page !== fleet) history.length > 1 ? history.back() : location.assign("#/");
  else page?.pressed?.(event);
}

addEventListener("hashchange", open);
addEventListener("keydown", pressed);
matchMedia("(prefers-color-scheme: dark)").addEventListener("change", () => repaint());
addEventListener("beforeprint", toPaper);
addEventListener("afterprint", fromPaper);
byId("theme").addEventListener("click", switchTheme);
document.addEventListener("visibilitychange", () => { if (!document.hidden) look(); });
setInterval(() => { if (!document.hidden) look(); }, POLL_MS);
look().finally(open);  // what a page is filled with later is not older than what was seen then
