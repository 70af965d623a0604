// Elements. Every text goes in as text, cleaned; attributes that carry code or styles are refused.

import {clean} from "./format.js";

const svgSpace = "http://www.w3.org/2000/svg";
const asProperty = new Set(["value", "checked", "selected", "disabled", "open", "indeterminate", "readOnly", "hidden"]);

// text is a text node. What a model could hide in it is made visible.
export function text(value) {
  return document.createTextNode(clean(value));
}

// h makes an HTML element. Attributes: class, on… (functions), dataset and css (objects), properties
// and attributes; true is an attribute without value, false and null leave one out. Kids are
// nodes, texts, lists of these, or nothing.
export function h(tag, attrs, ...kids) {
  return build(document.createElement(tag), attrs, kids);
}

// svg makes an SVG element in the same way.
export function svg(tag, attrs, ...kids) {
  return build(document.createElementNS(svgSpace, tag), attrs, kids);
}

function build(el, attrs, kids) {
  if (attrs) for (const name of Object.keys(attrs)) set(el, name, attrs[name]);
  append(el, kids);
  return el;
}

// set sets one attribute as h does.
export function set(el, name, value) {
  if (typeof value === "function") {
    el.addEventListener(name.replace(/^on/, ""), value);
  } else if (name === "dataset") {
    Object.assign(el.dataset, value);
  } else if (name === "css") {
    for (const key of Object.keys(value)) el.style.setProperty(key, value[key]);
  } else if (asProperty.has(name) && name in el) {
    if (value !== undefined && value !== null) el[name] = value;
  } else if (value === false || value === null || value === undefined) {
    el.removeAttribute(name);
  } else {
    setAttribute(el, name, value === true ? "" : clean(value));
  }
}

function setAttribute(el, name, value) {
  const low = name.toLowerCase();
  if (/^(on|style$|srcdoc$)/.test(low)) throw new TypeError("attribute " + name + " is not allowed");
  if (/^(href|src|action|formaction|xlink:href|poster|data)$/.test(low) && !/^(#|blob:)/.test(value)) {
    throw new TypeError("links lead into the page only");
  }
  if (el.getAttribute(name) !== value) el.setAttribute(name, value);
}

// append adds kids to an element.
export function append(el, kids) {
  for (const kid of kids) {
    if (kid === null || kid === undefined || kid === false || kid === true) continue;
    if (Array.isArray(kid)) append(el, kid);
    else el.append(kid instanceof Node ? kid : text(kid));
  }
  return el;
}

// clear empties an element.
export function clear(el) {
  el.replaceChildren();
  return el;
}

// fill replaces what is in an element.
export function fill(el, ...kids) {
  return append(clear(el), kids);
}

// setText sets the text of an element, and leaves it alone where it is the same.
export function setText(el, value) {
  const wanted = clean(value);
  if (el.textContent !== wanted) el.textContent = wanted;
}

// button makes a button. While a promise of onclick is pending, it is busy and cannot be pressed again.
export function button(label, onclick, attrs) {
  const el = h("button", {type: "button", ...attrs}, label);
  el.addEventListener("click", (event) => {
    if (el.getAttribute("aria-disabled") === "true") return;
    const done = onclick(event);
    if (done && typeof done.then === "function") busyWhile(el, done);
  });
  return el;
}

// busyWhile shows that an element's work goes on. The focus stays where it is.
export async function busyWhile(el, promise) {
  el.setAttribute("aria-busy", "true");
  el.setAttribute("aria-disabled", "true");
  try {
    return await promise;
  } finally {
    el.removeAttribute("aria-busy");
    el.removeAttribute("aria-disabled");
  }
}

// dialog shows a modal dialog and gives it back with close(). Escape closes it, and the focus
// returns to where it was. actions are buttons below the body.
export function dialog({title, body, actions = [], onclose, wide = false, focus}) {
  const heading = h("h2", {id: "dialog-title-" + ++dialogs.count}, title);
  const el = h("dialog", {class: wide ? "dialog wide" : "dialog", "aria-labelledby": heading.id},
    h("header", null, heading, button(icon("close"), () => close(), {class: "quiet icon-only", "aria-label": "Close"})),
    h("div", {class: "dialog-body"}, body),
    actions.length > 0 && h("footer", null, actions));
  const before = document.activeElement;
  const close = () => {
    if (el.open) el.close();
  };
  el.addEventListener("close", () => {
    el.remove();
    if (before && before.isConnected) before.focus();
    if (onclose) onclose();
  });
  document.body.append(el);
  el.showModal();
  if (focus) focus.focus();
  return {el, close};
}

const dialogs = {count: 0};

const paths = {
  close: "M4 4l8 8M12 4l-8 8",
  open: "M6 3.5l4.5 4.5L6 12.5",
  plus: "M8 3v10M3 8h10",
  spend: "M2.5 13.5h11M4.5 13.5v-4M8 13.5v-9M11.5 13.5v-6.5",
  search: "M7 2.8a4.2 4.2 0 1 1 0 8.4 4.2 4.2 0 0 1 0-8.4M10.2 10.2l3.3 3.3",
  back: "M10 3.5L5.5 8l4.5 4.5",
  sun: "M8 5.2a2.8 2.8 0 1 1 0 5.6 2.8 2.8 0 0 1 0-5.6M8 1.2v1.6M8 13.2v1.6M1.2 8h1.6M13.2 8h1.6M3.2 3.2l1.1 1.1M11.7 11.7l1.1 1.1M3.2 12.8l1.1-1.1M11.7 4.3l1.1-1.1",
  moon: "M13 9.6A5.5 5.5 0 0 1 6.4 3a5.5 5.5 0 1 0 6.6 6.6z",
  shield: "M8 1.8l5 1.8v4c0 3.2-2.1 5.4-5 6.6-2.9-1.2-5-3.4-5-6.6v-4zM5.7 8l1.6 1.6 3-3.2",
  broken: "M8 1.8l5 1.8v4c0 3.2-2.1 5.4-5 6.6-2.9-1.2-5-3.4-5-6.6v-4zM6.2 6.2l3.6 3.6M9.8 6.2L6.2 9.8",
  auto: "M8 2.2a5.8 5.8 0 1 1 0 11.6A5.8 5.8 0 0 1 8 2.2M8 2.2v11.6M10.2 3v10M12.2 4.6v6.8",
  rye: "M8 15.5V9.5M8 12.5c-2.6 0-3.5-1.5-3.5-3.3 1.8 0 3.5 1 3.5 3.3c0-2.3 1.7-3.3 3.5-3.3 0 1.8-.9 3.3-3.5 3.3M8 8.5c-2.6 0-3.5-1.5-3.5-3.3C6.3 5.2 8 6.2 8 8.5c0-2.3 1.7-3.3 3.5-3.3 0 1.8-.9 3.3-3.5 3.3M8 4.6C6.7 3.4 6.7 2 8 .6c1.3 1.4 1.3 2.8 0 4",
  keyboard: "M1.5 4.5h13v7h-13zM4 7h.1M6.7 7h.1M9.3 7h.1M12 7h.1M5 9.5h6",
};

// icon draws one of the page's own icons, 16 by 16, in the colour of the text around it.
export function icon(name, label) {
  const el = svg("svg", {viewBox: "0 0 16 16", width: 16, height: 16, class: "icon icon-" + name, "aria-hidden": label ? null : "true", role: label ? "img" : null, "aria-label": label},
    svg("path", {d: paths[name] || "", fill: "none", stroke: "currentColor", "stroke-width": 1.6, "stroke-linecap": "round", "stroke-linejoin": "round"}));
  return el;
}
