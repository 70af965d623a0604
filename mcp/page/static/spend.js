// What a thread and all below it spent over time, against the limit, and the tokens of its turns.

import {fill, h} from "./dom.js";
import {count, duration, money, percent} from "./format.js";
import {barPlot, dataTable, plotLegend, loadInto, plotFrame, stepPlot, valueAt} from "./plots.js";
import {refresher, threadPath, timelinesIn} from "./timeline.js";

const tokenKinds = {input: "input", cache_read: "read from cache", cache_write: "written to cache", output: "output"};
const mostBars = 60;

// spendSeries are the step lines of a thread alone and with all below it, and when the last of it was known.
export function spendSeries(answer) {
  const lanes = timelinesIn(answer), own = lanes[0];
  if (!own) return {series: [], began: 0, end: 0};
  const began = Date.parse(answer.began || own.began), shift = Date.parse(own.began) - began;
  const points = (list, offset) => [{x: began, y: 0}, ...(list || []).map((p) => ({x: began + offset + p.ms, y: p.spend}))];
  const series = [{name: "this thread", cls: "c0", points: points(own.spend, shift)}];
  if (answer.timelines && lanes.length > 1) series.unshift({name: "with all below", cls: "c1", points: points(answer.spend, 0)});
  return {series, began, end: began + (answer.length_ms || 0)};
}

// turnTokens are the tokens of each turn as bars; of many turns those next to each other become one.
export function turnTokens(spans, most = mostBars) {
  const turns = new Map();
  for (const s of spans || []) {
    if (s.kind !== "model" || !s.tokens) continue;
    const sum = turns.get(s.turn || 0) || {};
    for (const key of Object.keys(tokenKinds)) sum[key] = (sum[key] || 0) + (s.tokens[key] || 0);
    turns.set(s.turn || 0, sum);
  }
  const all = [...turns].sort((a, b) => a[0] - b[0]), size = Math.max(1, Math.ceil(all.length / most)), bars = [];
  for (let i = 0; i < all.length; i += size) {
    const some = all.slice(i, i + size), parts = {};
    for (const [key, name] of Object.entries(tokenKinds)) parts[name] = some.reduce((sum, [, tokens]) => sum + (tokens[key] || 0), 0);
    const first = some[0][0], last = some[some.length - 1][0];
    bars.push({label: String(first), title: first === last ? "Turn " + first : "Turns " + first + " to " + last, parts});
  }
  return bars;
}

// spendView is the tab.
export function spendView(ctx) {
  const view = {ctx, answer: null};
  view.el = h("div", {class: "spend-view"});
  view.facts = h("dl", {class: "facts"});
  view.money = plotFrame({title: "Spend over time", desc: () => describeSpend(view), draw: (width, ids) => drawSpend(view, width, ids), table: () => spendTable(view)});
  view.tokens = plotFrame({title: "Tokens of each turn", desc: "What each call of the model read and wrote, of this thread alone.", draw: (width, ids) => drawTokens(view, width, ids),
    table: () => tokenTable(view)});
  const load = () => ctx.api.get(threadPath(ctx.id, "timeline?tree=1"));
  const take = (answer) => {
    view.answer = answer;
    fillFacts(view);
    view.money.redraw();
    view.tokens.redraw();
  };
  loadInto(view.el, load, (answer) => {
    fill(view.el, view.facts, view.money.el, view.tokens.el);
    take(answer);
  });
  const refresh = refresher(ctx, () => view.answer && load().then(take, () => {}));
  return {el: view.el, close: () => { refresh.close(); view.money.close(); view.tokens.close(); }};
}

function spendLimit(view) {
  const row = view.ctx.row() || {};
  const budget = row.budget || {};
  return budget.limit ?? (row.limits && row.limits.spend);
}

function spentNow(view) {
  return spendSeries(view.answer).series.map((s) => ({name: s.name, value: s.points[s.points.length - 1].y}));
}

function fillFacts(view) {
  const row = view.ctx.row() || {}, budget = row.budget || {};
  const facts = spentNow(view).map((s) => ["Spent, " + s.name, money(s.value)]);
  if (budget.reserved && !row.ended_at) facts.push(["Reserved below", money(budget.reserved)]);
  if (budget.left !== undefined && !row.ended_at) facts.push(["Left", money(budget.left)]);
  if (spendLimit(view) !== undefined) facts.push(["Limit", money(spendLimit(view))]);
  if (row.turns) facts.push(["Turns", row.limits && row.limits.turns ? row.turns + " of " + row.limits.turns : String(row.turns)]);
  fill(view.facts, facts.map(([name, value]) => h("div", null, h("dt", null, name), h("dd", null, value))));
}

function describeSpend(view) {
  if (!view.answer) return "";
  const [most] = spentNow(view), limit = spendLimit(view);
  if (!most || most.value <= 0) return "Nothing has been spent yet" + (limit ? " of " + money(limit) + "." : ".");
  return money(most.value) + " so far" + (limit ? ", " + percent(most.value / limit) + " of the limit of " + money(limit) + "." : ".");
}

function drawSpend(view, width, ids) {
  if (!view.answer) return h("p");
  const {series, end} = spendSeries(view.answer), limit = spendLimit(view);
  const open = !view.answer.ended;
  return h("div", null, series.length > 1 && legendOf(series),
    stepPlot({series, limit: limit ? {value: limit, name: "limit " + money(limit)} : null, formatY: money, width, end: open ? Math.max(end, Date.now() + (view.ctx.api.skew || 0)) : end, ids}));
}

function legendOf(series) {
  return plotLegend(series.map((s) => ({name: s.name, cls: s.cls, value: money(s.points[s.points.length - 1].y)})));
}

function spendTable(view) {
  const {series, began} = spendSeries(view.answer || {});
  const times = [...new Set(series.flatMap((s) => s.points.map((p) => p.x)))].sort((a, b) => a - b);
  return dataTable("Spend over time", [{title: "After"}, ...series.map((s) => ({title: s.name, number: true}))],
    times.map((t) => [duration(t - began), ...series.map((s) => money(valueAt(s.points, t) ?? 0))]));
}

function ownBars(view) {
  const [own] = view.answer ? timelinesIn(view.answer) : [];
  return turnTokens(own && own.spans);
}

function drawTokens(view, width, ids) {
  const bars = ownBars(view);
  if (bars.length === 0) return h("p", {class: "muted"}, "No call of the model has been answered yet.");
  return barPlot({bars, keys: Object.values(tokenKinds), classes: ["c0", "c7", "c5", "c1"], whole: true, formatY: count, width, ids});
}

function tokenTable(view) {
  return dataTable("Tokens of each turn", [{title: "Turn"}, ...Object.values(tokenKinds).map((title) => ({title, number: true}))],
    ownBars(view).map((bar) => [bar.title, ...Object.values(tokenKinds).map((name) => bar.parts[name].toLocaleString("en-US"))]));
}
