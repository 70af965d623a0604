// Plots: axes in nice numbers, step lines and stacked bars in SVG, and frames that hold a drawing,
// what it shows in words and the same as a table. A drawing is made for the width it has, so that its
// text stays as large as the page's.

import {button, clear, fill, h, setText, svg} from "./dom.js";
import {duration, plural} from "./format.js";

const second = 1000, minute = 60 * second, hour = 60 * minute, day = 24 * hour;
const timeSteps = [
  1, 2, 5, 10, 20, 50, 100, 200, 500, second, 2 * second, 5 * second, 10 * second, 15 * second, 30 * second, minute, 2 * minute, 5 * minute, 10 * minute,
  15 * minute, 30 * minute, hour, 2 * hour, 3 * hour, 6 * hour, 12 * hour, day, 2 * day, 7 * day, 14 * day, 30 * day, 90 * day, 365 * day,
];
const frameCount = {ids: 0};

// plotColours is how many classes c0, c1, … of views.css there are for the parts of a plot.
export const plotColours = 8;

// niceTicks are about so many round numbers from low to high; whole ones where asked.
export function niceTicks(low, high, about = 5, whole = false) {
  if (!Number.isFinite(low) || !Number.isFinite(high)) return [];
  if (high < low) [low, high] = [high, low];
  if (high === low) high = low + (Math.abs(low) || 1);
  const rough = (high - low) / Math.max(1, about);
  const power = 10 ** Math.floor(Math.log10(rough));
  const step = whole && rough <= 1 ? 1 : [1, 2, ...(whole && power < 10 ? [] : [2.5]), 5, 10].find((m) => m * power >= rough * 0.999) * power;
  const ticks = [];
  for (let i = Math.ceil(low / step - 1e-9); i * step <= high + step * 1e-9; i++) ticks.push(Number((i * step).toPrecision(12)));
  return ticks;
}

// elapsedTicks are about so many durations from low to high that people count in, in milliseconds.
export function elapsedTicks(low, high, about = 5) {
  if (!(high > low)) return [low];
  const step = stepFor((high - low) / Math.max(1, about));
  const ticks = [];
  for (let i = Math.ceil(low / step - 1e-9); i * step <= high; i++) ticks.push(i * step);
  return ticks;
}

function stepFor(rough) {
  return timeSteps.find((s) => s >= rough * 0.999) || Math.ceil(rough / (365 * day)) * 365 * day;
}

// linearScale maps from..to onto a..b.
export function linearScale(from, to, a, b) {
  const span = to - from || 1;
  return (v) => a + ((v - from) / span) * (b - a);
}

// dataTable is a table of texts and nodes; columns are {title, number}. Of many rows it shows some, and more when asked.
export function dataTable(caption, columns, rows, most = 200) {
  const body = h("tbody");
  const more = h("p");
  let shown = 0;
  const show = () => {
    const upTo = Math.min(rows.length, shown + most);
    for (; shown < upTo; shown++) {
      body.append(h("tr", null, rows[shown].map((value, i) => h(i === 0 ? "th" : "td", {scope: i === 0 ? "row" : null, class: columns[i].number ? "num" : null}, value))));
    }
    fill(more, shown < rows.length && button("Show " + plural(Math.min(most, rows.length - shown), "more row") + " of " + plural(rows.length - shown, "row"), show, {class: "quiet"}));
  };
  show();
  return h("div", {class: "data-table", tabindex: 0, role: "group", "aria-label": caption},
    h("table", null,
      h("caption", null, caption),
      h("thead", null, h("tr", null, columns.map((c) => h("th", {scope: "col", class: c.number ? "num" : null}, c.title)))),
      body),
    more);
}

// plotFrame is a figure {el, redraw, close}. draw(width) returns the drawing, table() the same as a table, which is
// made when somebody asks for it. tools are controls beside the switch.
export function plotFrame({title, desc, draw, table, tools = []}) {
  const holder = h("div", {class: "plot-holder"});
  const words = h("p", {class: "plot-desc", id: "plot-desc-" + ++frameCount.ids});
  const heading = h("h2", {id: "plot-title-" + frameCount.ids}, title);
  let asTable = false, width = 0, closed = false;
  const toggle = button("As a table", () => {
    asTable = !asTable;
    toggle.setAttribute("aria-pressed", String(asTable));
    redraw();
  }, {class: "quiet", "aria-pressed": "false"});
  const el = h("figure", {class: "plot", "aria-labelledby": heading.id},
    h("figcaption", null, heading, words), h("div", {class: "plot-tools"}, tools, toggle), holder);
  const redraw = () => {
    if (closed) return;
    setText(words, typeof desc === "function" ? desc() : desc);
    if (asTable) return void fill(holder, table());
    if (width <= 0) return;
    const focused = holder.contains(document.activeElement);
    fill(holder, draw(width, {labelledby: heading.id, describedby: words.id}));
    const chart = focused && holder.querySelector("svg[tabindex]");
    if (chart) chart.focus({preventScroll: true});
  };
  const watch = new ResizeObserver((entries) => {
    const now = Math.floor(entries[0].contentRect.width);
    if (now === width || now <= 0) return;
    width = now;
    if (!asTable) redraw();
  });
  watch.observe(holder);
  return {el, redraw, close: () => { closed = true; watch.disconnect(); }};
}

// plotLegend names the parts of a plot beside their colours.
export function plotLegend(entries) {
  return h("ul", {class: "legend"}, entries.map((e) => h("li", null, plotSwatch(e.cls), e.name, e.value ? h("span", {class: "muted"}, " " + e.value) : null)));
}

function plotSwatch(cls) {
  return svg("svg", {width: 12, height: 12, "aria-hidden": "true", class: "swatch"}, svg("rect", {width: 12, height: 12, rx: 2, class: cls}));
}

// stepPath is the path of values that hold until the next one, from the first point to the end.
export function stepPath(points, x, y, end) {
  if (points.length === 0) return "";
  let d = "M" + round1(x(points[0].x)) + " " + round1(y(points[0].y));
  for (let i = 1; i < points.length; i++) d += "H" + round1(x(points[i].x)) + "V" + round1(y(points[i].y));
  return d + "H" + round1(x(Math.max(end, points[points.length - 1].x)));
}

function round1(v) {
  return Math.round(v * 10) / 10;
}

// thinPoints leaves at most so many points of a step line: in each stretch the first, the last, the lowest and the highest.
export function thinPoints(points, most = 1200) {
  if (points.length <= most) return points;
  const size = Math.ceil(points.length / Math.max(1, Math.floor(most / 4)));
  const kept = [];
  for (let i = 0; i < points.length; i += size) {
    const part = points.slice(i, i + size);
    let low = part[0], high = part[0];
    for (const p of part) {
      if (p.y < low.y) low = p;
      if (p.y > high.y) high = p;
    }
    kept.push(...[...new Set([part[0], low, high, part[part.length - 1]])].sort((a, b) => a.x - b.x));
  }
  return kept;
}

// valueAt is what a step line stands at; null before its first point.
export function valueAt(points, x) {
  let low = 0, high = points.length;
  while (low < high) {
    const mid = (low + high) >> 1;
    if (points[mid].x <= x) low = mid + 1;
    else high = mid;
  }
  return low === 0 ? null : points[low - 1].y;
}

// stepPlot draws step lines over time. series are {name, cls, points: [{x, y}]}, limit is {value, name} or nothing. It can be read with the arrow keys.
export function stepPlot({series, limit, formatY, width, height = 220, end, ids}) {
  const all = series.flatMap((s) => s.points);
  const from = Math.min(...series.map((s) => s.points.length ? s.points[0].x : Infinity));
  const to = Math.max(end ?? -Infinity, ...series.map((s) => s.points.length ? s.points[s.points.length - 1].x : -Infinity), from + 1);
  const highest = all.reduce((m, p) => Math.max(m, p.y), 0);
  const limitFits = limit && limit.value > 0 && highest >= limit.value * 0.08;
  const top = Math.max(highest, limitFits ? limit.value : 0) * 1.06 || 1;
  const yTicks = niceTicks(0, top, 4);
  const box = plotBox(width, height, yTicks.map(formatY));
  const x = linearScale(from, to, box.left, box.right), y = linearScale(0, top, box.bottom, box.top);
  const root = plotRoot(width, height, ids);
  root.append(axisY(yTicks, y, formatY, box), axisX(xTicks(from, to, box), x, box));
  series.forEach((s, i) => {
    const d = stepPath(thinPoints(s.points), x, y, to);
    if (i === 0 && d) root.append(svg("path", {d: d + "V" + box.bottom + "H" + round1(x(s.points[0].x)) + "Z", class: "area " + s.cls}));
    root.append(svg("path", {d, class: "line " + s.cls}));
  });
  if (limitFits) {
    root.append(svg("line", {x1: box.left, x2: box.right, y1: round1(y(limit.value)), y2: round1(y(limit.value)), class: "limit"}),
      svg("text", {x: box.right, y: round1(y(limit.value)) + 14, "text-anchor": "end", class: "limit-label"}, limit.name));
  } else if (limit && limit.value > 0) {
    root.append(svg("text", {x: box.right, y: box.top + 4, "text-anchor": "end", class: "limit-label"}, limit.name + " \u2191"));
  }
  return readablePlot(root, {xs: [...new Set(all.map((p) => p.x))].sort((a, b) => a - b), x, box,
    words: (at) => duration(at - from) + ": " + series.map((s) => (series.length > 1 ? s.name + " " : "") + formatY(valueAt(s.points, at) ?? 0)).join(", ")});
}

function plotBox(width, height, labels) {
  const wide = Math.max(...labels.map((l) => l.length), 3) * 7 + 10;
  return {left: Math.min(wide, width / 3), right: width - 8, top: 12, bottom: height - 26};
}

function plotRoot(width, height, ids) {
  return svg("svg", {width, height, viewBox: "0 0 " + width + " " + height, class: "chart", role: "img", "aria-labelledby": ids.labelledby, "aria-describedby": ids.describedby});
}

function xTicks(from, to, box) {
  const about = Math.max(2, Math.floor((box.right - box.left) / 90));
  return elapsedTicks(0, to - from, about).map((t) => ({at: from + t, label: t === 0 ? "0" : duration(t)}));
}

function axisY(ticks, y, format, box) {
  return svg("g", {class: "axis", "aria-hidden": "true"}, ticks.map((t) => [
    svg("line", {x1: box.left, x2: box.right, y1: round1(y(t)), y2: round1(y(t)), class: t === 0 ? "base" : "grid"}),
    svg("text", {x: box.left - 6, y: round1(y(t)) + 4, "text-anchor": "end"}, format(t)),
  ]));
}

function axisX(ticks, x, box) {
  let free = -Infinity;
  return svg("g", {class: "axis", "aria-hidden": "true"}, ticks.map((t) => {
    const at = round1(x(t.at)), wide = t.label.length * 6.6;
    const anchor = at < box.left + wide / 2 ? "start" : at > box.right - wide / 2 ? "end" : "middle";
    const left = anchor === "start" ? at : anchor === "end" ? at - wide : at - wide / 2;
    if (left < free) return null;
    free = left + wide + 8;
    return [svg("line", {x1: at, x2: at, y1: box.bottom, y2: box.bottom + 4, class: "base"}), svg("text", {x: at, y: box.bottom + 18, "text-anchor": anchor}, t.label)];
  }));
}

// readablePlot lets people read a plot value by value, with the pointer and as a slider with the arrow keys.
function readablePlot(root, {xs, x, box, words}) {
  const out = h("output", {class: "plot-reading"}, "\u00a0");
  if (xs.length === 0) return h("div", null, root, out);
  const mark = svg("line", {y1: box.top, y2: box.bottom, class: "mark", visibility: "hidden"});
  root.append(mark);
  root.setAttribute("role", "slider");
  root.setAttribute("tabindex", "0");
  root.setAttribute("aria-valuemin", "1");
  root.setAttribute("aria-valuemax", String(xs.length));
  let at = xs.length - 1;
  const show = (i, seen = true) => {
    at = Math.max(0, Math.min(xs.length - 1, i));
    const px = String(round1(x(xs[at])));
    mark.setAttribute("x1", px);
    mark.setAttribute("x2", px);
    mark.setAttribute("visibility", seen ? "visible" : "hidden");
    root.setAttribute("aria-valuenow", String(at + 1));
    root.setAttribute("aria-valuetext", words(xs[at]));
    setText(out, words(xs[at]));
  };
  show(at, false);
  root.addEventListener("keydown", (e) => {
    const step = {ArrowLeft: at - 1, ArrowDown: at - 1, ArrowRight: at + 1, ArrowUp: at + 1, PageUp: at + 10, PageDown: at - 10, Home: 0, End: xs.length - 1}[e.key];
    if (step === undefined) return;
    e.preventDefault();
    e.stopPropagation();
    show(step);
  });
  root.addEventListener("pointermove", (e) => show(nearestIndex(xs, x, e.clientX - root.getBoundingClientRect().left)));
  root.addEventListener("pointerleave", () => show(at, document.activeElement === root));
  root.addEventListener("blur", () => mark.setAttribute("visibility", "hidden"));
  return h("div", null, root, out);
}

// nearestIndex is the index of the value that is drawn nearest to px.
export function nearestIndex(xs, x, px) {
  let low = 0, high = xs.length - 1;
  while (low < high) {
    const mid = (low + high) >> 1;
    if (x(xs[mid]) < px) low = mid + 1;
    else high = mid;
  }
  return low > 0 && px - x(xs[low - 1]) < x(xs[low]) - px ? low - 1 : low;
}

// barPlot draws stacked bars: {label, title, parts: {key: value}}, with one colour a key.
export function barPlot({bars, keys, rest = [], classes, whole, formatY, width, height = 220, ids}) {
  const cls = (k) => (classes && classes[k]) || "c" + (k % plotColours);
  const names = rest.length ? [...keys, "other"] : keys;
  const stacks = bars.map((bar) => {
    const parts = keys.map((key) => bar.parts[key] || 0);
    if (rest.length) parts.push(rest.reduce((sum, key) => sum + (bar.parts[key] || 0), 0));
    return {...bar, parts, sum: parts.reduce((a, b) => a + b, 0)};
  });
  const top = Math.max(...stacks.map((s) => s.sum), 0) * 1.06 || 1;
  const yTicks = niceTicks(0, top, 4, whole);
  const box = plotBox(width, height, yTicks.map(formatY));
  const y = linearScale(0, top, box.bottom, box.top);
  const room = (box.right - box.left) / Math.max(1, stacks.length);
  const thick = Math.max(1, Math.min(56, room * 0.76));
  const x = (i) => box.left + room * (i + 0.5);
  const root = plotRoot(width, height, ids);
  const every = Math.max(1, Math.ceil(Math.max(...stacks.map((s) => s.label.length), 1) * 7.5 / room));
  root.append(axisY(yTicks, y, formatY, box), axisX(stacks.map((s, i) => ({at: i, label: s.label})).filter((t) => t.at % every === 0), x, box));
  stacks.forEach((s, i) => {
    let base = 0;
    s.parts.forEach((value, k) => {
      if (value <= 0) return;
      const high = y(base + value), low = y(base);
      root.append(svg("rect", {x: round1(x(i) - thick / 2), width: round1(thick), y: round1(high), height: Math.max(0.5, round1(low - high - (base > 0 ? 1 : 0))), class: cls(k)}));
      base += value;
    });
  });
  const words = (i) => stacks[i].title + ": " + formatY(stacks[i].sum) + namedParts(stacks[i].parts, names, formatY);
  return h("div", null, names.length > 1 && plotLegend(names.map((name, k) => ({name, cls: cls(k)}))),
    readablePlot(root, {xs: stacks.map((s, i) => i), x, box, words}));
}

function namedParts(parts, names, format) {
  const some = parts.map((value, k) => ({value, name: names[k]})).filter((p) => p.value > 0).sort((a, b) => b.value - a.value);
  return some.length < 2 ? "" : " \u2014 " + some.slice(0, 4).map((p) => p.name + " " + format(p.value)).join(", ") + (some.length > 4 ? ", \u2026" : "");
}

// loadInto shows what a promise gives, or why it gives nothing and a button to try again.
export async function loadInto(el, load, show) {
  fill(el, h("p", {class: "muted", role: "status"}, "Loading\u2026"));
  try {
    const value = await load();
    clear(el);
    await show(value);
  } catch (error) {
    if (error.name === "AbortError") return;
    fill(el, problemBox(error, () => loadInto(el, load, show)));
  }
}

// problemBox says in words what went wrong, and offers another attempt.
export function problemBox(error, again) {
  return h("div", {class: "problem", role: "alert"}, h("p", null, error.message || "That did not work."), error.hint && h("p", {class: "muted"}, error.hint),
    again && button("Try again", again));
}
