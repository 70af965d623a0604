// Two threads beside each other, with what is not the same marked.

import {button, fill, h} from "./dom.js";
import {count, duration, money, oneLine, plural} from "./format.js";
import {jsonText} from "./events.js";
import {entryForm} from "./form.js";
import {loadInto} from "./plots.js";

const mostCells = 1500000, mostSuggested = 4, mostOptions = 300;

// lineDiff says for the lines of two texts which of them both have: [{kind: " ", "-" or "+", text}]. Of texts too long to compare
// so, what is in the middle of them counts as replaced.
export function lineDiff(a, b) {
  const one = a === "" ? [] : a.split("\n"), two = b === "" ? [] : b.split("\n");
  let start = 0, end = 0;
  while (start < one.length && start < two.length && one[start] === two[start]) start++;
  while (end < one.length - start && end < two.length - start && one[one.length - 1 - end] === two[two.length - 1 - end]) end++;
  const out = one.slice(0, start).map((line) => ({kind: " ", text: line}));
  out.push(...middleDiff(one.slice(start, one.length - end), two.slice(start, two.length - end)));
  out.push(...one.slice(one.length - end).map((line) => ({kind: " ", text: line})));
  return out;
}

function middleDiff(one, two) {
  const removed = (lines) => lines.map((line) => ({kind: "-", text: line})), added = (lines) => lines.map((line) => ({kind: "+", text: line}));
  if (one.length * two.length > mostCells) return [...removed(one), ...added(two)];
  const wide = two.length + 1, long = new Uint32Array((one.length + 1) * wide);
  for (let i = one.length - 1; i >= 0; i--) {
    for (let k = two.length - 1; k >= 0; k--) {
      long[i * wide + k] = one[i] === two[k] ? long[(i + 1) * wide + k + 1] + 1 : Math.max(long[(i + 1) * wide + k], long[i * wide + k + 1]);
    }
  }
  const out = [];
  let i = 0, k = 0;
  while (i < one.length && k < two.length) {
    if (one[i] === two[k]) {
      out.push({kind: " ", text: one[i++]});
      k++;
    } else if (long[(i + 1) * wide + k] >= long[i * wide + k + 1]) out.push(...removed([one[i++]]));
    else out.push(...added([two[k++]]));
  }
  return [...out, ...removed(one.slice(i)), ...added(two.slice(k))];
}

// compareRows are the lines of a comparison: {name, a, b, same}, with values as people read them.
export function compareRows(a, b) {
  const rows = [];
  const put = (name, x, y) => (x || y) && rows.push({name, a: x || "\u2013", b: y || "\u2013", same: x === y});
  const both = (name, of) => put(name, of(a), of(b));
  both("State", (s) => s.status);
  both("Directive", (s) => s.directive);
  both("Text of the directive (SHA-256)", (s) => (s.directive_hash || "").slice(0, 16));
  both("Model", (s) => s.model);
  both("Turns", (s) => s.cost && String(s.cost.turns));
  both("Spent", (s) => s.cost && money(s.cost.spend));
  for (const [key, name] of [["input_tokens", "Tokens in"], ["output_tokens", "Tokens out"], ["cache_read_tokens", "Tokens read from cache"], ["cache_write_tokens",
    "Tokens written to cache"]]) both(name, (s) => s.cost && s.cost[key] ? count(s.cost[key]) : "");
  both("From start to end", (s) => s.seconds !== undefined ? duration(s.seconds * 1000) : "");
  both("Failure", (s) => s.error);
  const limits = {turns: "Limit: turns", tokens: "Limit: tokens", spend: "Limit: spend", duration_seconds: "Limit: time", spawns: "Limit: children", depth: "Limit: depth"};
  for (const [key, name] of Object.entries(limits)) both(name, (s) => s.limits && s.limits[key] !== undefined ? limitText(key, s.limits[key]) : "");
  for (const key of keysOf(a.inputs, b.inputs)) both("Input: " + key, (s) => shortValue(ownValue(s.inputs, key)));
  const can = (s) => new Set(s.capabilities || []), mine = can(a), other = can(b);
  if (mine.size || other.size) {
    const only = (x, y) => [...x].filter((c) => !y.has(c));
    rows.push({name: "Capabilities", a: alone(mine, only(mine, other)), b: alone(other, only(other, mine)), same: only(mine, other).length + only(other, mine).length === 0});
  }
  for (const key of keysOf(a.tools, b.tools)) both("Tool: " + key, (s) => usedText(ownValue(s.tools, key)));
  return rows;
}

function alone(all, only) {
  return count(all.size) + (only.length ? "; only here: " + only.slice(0, 12).join(", ") + (only.length > 12 ? ", \u2026" : "") : "");
}

// ownValue is a member of an object that somebody else has named.
function ownValue(object, key) {
  return object && Object.hasOwn(object, key) ? object[key] : undefined;
}

function keysOf(a, b) {
  return [...new Set([...Object.keys(a || {}), ...Object.keys(b || {})])].sort();
}

function limitText(key, value) {
  if (key === "spend") return money(value);
  return key === "duration_seconds" ? duration(value * 1000) : value.toLocaleString("en-US");
}

function shortValue(value) {
  return value === undefined ? "" : oneLine(typeof value === "string" ? value : JSON.stringify(value), 300);
}

function usedText(used) {
  if (!used || !used.calls) return "";
  return plural(used.calls, "call") + (used.failed ? ", " + used.failed + " failed" : "");
}

// compareView is the tab. ctx.at.with is the thread to compare with.
export function compareView(ctx) {
  const stop = new AbortController(), view = {ctx};
  view.place = h("div");
  view.list = h("datalist", {id: "compare-threads"});
  view.input = h("input", {type: "text", list: view.list.id, autocomplete: "off", spellcheck: "false", placeholder: "id of a thread", maxlength: 300});
  view.quick = h("span", {class: "button-group"});
  const go = (id) => {
    const other = (id || view.input.value).trim();
    view.input.value = other;
    if (other) loadInto(view.place, () => ctx.api.get("compare?" + new URLSearchParams({a: ctx.id, b: other}), stop.signal), (answer) => fill(view.place, comparison(ctx, answer)));
  };
  const submit = h("button", {type: "submit"}, "Compare");
  const form = entryForm({class: "compare-form"}, submit, () => go(), h("label", null, "Compare with ", view.input), view.list, submit, view.quick);
  const offer = () => offerThreads(view, go);
  offer();
  view.input.addEventListener("focus", offer);
  if (ctx.at && ctx.at.with) go(ctx.at.with);
  return {el: h("div", {class: "compare-view"}, form, view.place), close: () => stop.abort(), focus: () => view.input.focus()};
}

// offerThreads offers those of the same directive first.
function offerThreads(view, go) {
  const {ctx} = view, own = ctx.row() || {};
  const links = (own.chain || []).filter((id) => id !== ctx.id).map((id) => ({thread_id: id, name: "the same task", directive: own.directive}));
  const rows = ctx.rows ? ctx.rows().filter((row) => row.thread_id !== ctx.id && row.kind !== "set") : [];
  const alike = rows.filter((row) => row.directive === own.directive);
  const all = [...links, ...alike, ...rows.filter((row) => row.directive !== own.directive)];
  fill(view.list, all.slice(0, mostOptions).map((row) => h("option", {value: row.thread_id}, oneLine(row.name || row.directive, 80))));
  fill(view.quick, [...links, ...alike].slice(0, mostSuggested).map((row) => button(oneLine(row.thread_id, 48), () => go(row.thread_id), {class: "quiet"})));
}

function comparison(ctx, {a, b}) {
  const rows = compareRows(a, b), differ = rows.filter((row) => !row.same).length;
  const name = (s, letter) => [letter + ": ", s.thread_id === ctx.id || !ctx.open ? oneLine(s.thread_id, 80) : button(oneLine(s.thread_id, 80), () => ctx.open(s.thread_id), {class: "quiet"})];
  return [
    h("p", null, differ === 0 ? "Nothing of this differs." : plural(differ, "line") + " of " + rows.length + " differ; they are marked with \u2260."),
    [a, b].map((s, i) => s.damaged && h("p", {class: "warn"}, "What is known of " + "AB"[i] + " cannot be trusted: " + oneLine(s.damaged, 300))),
    h("div", {class: "data-table", tabindex: 0, role: "group", "aria-label": "Comparison"}, h("table", {class: "compare"},
      h("thead", null, h("tr", null, h("th", {scope: "col"}, "What"), h("th", {scope: "col"}, name(a, "A")), h("th", {scope: "col"}, name(b, "B")))),
      h("tbody", null, rows.map((row) => h("tr", {class: row.same ? null : "differs"}, h("th", {scope: "row"}, !row.same && h("span", {class: "differ-mark", role: "img",
        "aria-label": "differs"}, "\u2260 "), oneLine(row.name, 120)), h("td", null, oneLine(row.a, 400)), h("td", null, oneLine(row.b, 400))))))),
    outputsOf(a, b),
  ];
}

function outputsOf(a, b) {
  const keys = keysOf(a.outputs, b.outputs);
  const parts = keys.map((key) => ["Output: " + key, jsonText(ownValue(a.outputs, key)), jsonText(ownValue(b.outputs, key))]);
  if (a.result || b.result) parts.push(["Result", a.result || "", b.result || ""]);
  if (parts.length === 0) return h("p", {class: "muted"}, "Neither has given a result.");
  return parts.map(([title, one, two]) => h("section", null, h("h2", null, oneLine(title, 120)), one === two ? h("p", {class: "muted"}, "The same in both.") : marked(one, two)));
}

function marked(one, two) {
  return h("div", {class: "diff-lines", tabindex: 0, role: "group", "aria-label": "Lines of A and B"}, lineDiff(one, two).slice(0, 2000).map((line) =>
    h("div", {class: "diff-line two d-" + ({"+": "plus", "-": "minus"}[line.kind] || "same")}, h("span", {class: "sign"}, {"-": "A", "+": "B"}[line.kind] || ""), h("code", null, line.text))));
}
