// Elements. Text goes in as text: a hostile name is a strange name and nothing more.

export const byId = (id) => document.getElementById(id);

/** An element with attributes and children; a child that is a string is text. */
export function element(tag, attributes = {}, ...children) {
  const one = document.createElement(tag);
  for (const [name, value] of Object.entries(attributes)) {
    if (value !== undefined && value !== null) one.setAttribute(name, value);
  }
  one.append(...children.filter((child) => child !== null && child !== undefined).map((child) => typeof child === "number" ? String(child) : child));
  return one;
}

/** Puts the content of a template into the page. */
export function show(template) {
  byId("main").replaceChildren(byId(template).content.cloneNode(true));
}

/** A table; columns are [title, class], rows are lists of cells. Says `nothing` where there are none. */
export function table(columns, rows, nothing) {
  if (!rows.length) return element("p", { class: "empty" }, nothing);
  const heads = columns.map(([title, kind]) => element("th", { class: kind, scope: "col" }, title));
  const body = rows.map((cells) => element("tr", {}, ...cells.map((cell, i) => element("td", { class: columns[i][1] }, cell))));
  return element("div", { class: "scroll", tabindex: "0" }, element("table", {}, element("thead", {}, element("tr", {}, ...heads)), element("tbody", {}, ...body)));
}

export const total = (title, value, more) => element("div", {}, element("dt", {}, title), element("dd", {}, value, more ? element("small", {}, more) : null));

/** The state of a forecast: its word, in its colour. */
export const mark = (state) => element("b", { class: `state ${state.replace(" ", "-")}` }, state);

const probe = document.createElement("span");
let known = {};

/** The value of a colour of the style sheet, for a canvas. */
export function colour(name) {
  if (!probe.isConnected) { probe.hidden = true; document.body.append(probe); }
  if (!known[name]) {
    probe.style.color = `var(--${name})`;
    known[name] = getComputedStyle(probe).color;
  }
  return known[name];
}

/** After another theme was chosen. */
export function forgetColours() { known = {}; }
