// What a project has spent: over time, and by directive, model and day; its turns and errors beside.

import {button, fill, h, icon, svg} from "./dom.js";
import {count, money, oneLine, percent, plural} from "./format.js";
import {barPlot, dataTable, loadInto, plotColours, plotFrame} from "./plots.js";

const spans = [["24h", "24 hours"], ["7d", "7 days"], ["30d", "30 days"], ["90d", "90 days"], ["all", "All time"]];
const keysOfCosts = [["directive", "directive"], ["model", "model"], ["day", "day"]];
const measures = [["spend", "Spend over time", money], ["turns", "Turns over time", count], ["errors", "Threads that failed over time", count]];
const mostCostBars = 90;

// costBars makes bars of one measure of a series: {label, title, parts}. Of many buckets those next to each other become one.
export function costBars(series, measure, most = mostCostBars) {
  const at = series.at || [], size = Math.max(1, Math.ceil(at.length / most)), bars = [];
  for (let i = 0; i < at.length; i += size) {
    const end = Math.min(at.length, i + size), parts = Object.create(null);
    for (const line of series.lines) {
      let sum = 0;
      for (let k = i; k < end; k++) sum += line[measure][k] || 0;
      if (sum > 0) parts[line.key] = sum;
    }
    bars.push({label: bucketLabel(at[i], series.bucket), title: bucketLabel(at[i], series.bucket, true) + (end - i > 1 ? " to " + bucketLabel(at[end - 1], series.bucket, true) : ""), parts});
  }
  return bars;
}

// bucketLabel names a stretch of time by its beginning. The server was told our zone, and its times are in it.
export function bucketLabel(at, bucket, long = false) {
  const day = at.slice(0, 10), time = at.slice(11, 16);
  if (bucket === "hour") return long ? day + " " + time : time;
  if (long) return bucket === "week" ? "Week of " + day : day;
  return day.slice(5);
}

// projectSpend is the view of what a project has spent: {el, close}.
export function projectSpend(ctx) {
  const view = {ctx, stop: new AbortController(), since: "30d", by: "directive", series: null, counter: 0};
  view.place = h("div");
  view.totals = h("dl", {class: "facts"});
  view.rows = h("section", {"aria-label": "Sums"});
  view.plots = measures.map(([measure, title, format]) => plotFrame({title, desc: () => describeCosts(view, measure, format), draw: (width, ids) => drawCosts(view, measure, format, width,
    ids), table: () => costsTable(view, measure, title, format)}));
  const select = h("select", {onchange: (e) => { view.since = e.target.value; load(); }}, spans.map(([value, name]) => h("option", {value, selected: value === view.since}, name)));
  const choice = keysOfCosts.map(([by, name]) => button("By " + name, () => {
    view.by = by;
    choice.forEach((b, i) => b.setAttribute("aria-pressed", String(keysOfCosts[i][0] === by)));
    load();
  }, {class: "quiet", "aria-pressed": String(by === view.by)}));
  const load = () => loadInto(view.place, () => loadCosts(view), (answer) => {
    if (!answer) return;
    view.series = answer.series;
    fill(view.place, view.totals, view.plots.map((plot) => plot.el), view.rows);
    fillTotals(view, answer.table);
    view.plots.forEach((plot) => plot.redraw());
    fill(view.rows, h("h2", null, "Sums by " + view.by), answer.table.covers && h("p", {class: "muted"}, oneLine(answer.table.covers, 400)), sumsTable(view, answer.table));
  });
  load();
  const el = h("section", {class: "costs-view", "aria-label": "What this project spends"},
    h("header", {class: "plot-tools"}, ctx.open && button(icon("back"), () => ctx.open(""), {class: "quiet icon-only back", "aria-label": "Back to all threads"}), h("h1", {tabindex: -1},
      "Spend"), h("label", {class: "check"}, "Time ", select), h("span", {class: "button-group", role: "group", "aria-label": "Tell apart"}, choice), button("Refresh", load, {class: "quiet"})), view.place);
  return {el, focus: () => el.querySelector("h1").focus(), close: () => { view.stop.abort(); view.plots.forEach((plot) => plot.close()); }};
}

// loadCosts loads both answers; of a choice that was changed meanwhile nothing.
async function loadCosts(view) {
  const mine = ++view.counter, ask = (path, by) => view.ctx.api.get(path + "?" + new URLSearchParams({since: view.since, tz: String(-new Date().getTimezoneOffset()), zone: Intl.DateTimeFormat().resolvedOptions().timeZone ?? "", ...(by ? {by} : {})}), view.stop.signal);
  const [table, series] = await Promise.all([ask("costs", view.by), ask("costs/over-time", view.by === "day" ? "" : view.by)]);
  if (mine !== view.counter) return null;
  dropEmpty(series);
  if (series.lines.length === 0 || view.by === "day") series.lines = [{...series.total, key: "all"}];
  return {table, series};
}

// dropEmpty leaves out the time before anything happened, and keeps a week of buckets at least.
export function dropEmpty(series, least = 7) {
  const first = series.total.threads.findIndex((n, i) => n > 0 || series.total.spend[i] > 0), from = Math.min(first < 0 ? Infinity : first, series.at.length - least);
  if (from <= 0) return series;
  series.at = series.at.slice(from);
  for (const line of new Set([...series.lines, series.total])) for (const [name] of measures) line[name] = line[name].slice(from);
  return series;
}

function fillTotals(view, table) {
  const t = table.total, tokens = t.input_tokens + t.output_tokens + t.cache_read_tokens + t.cache_write_tokens;
  const facts = [["Spent", money(t.spend)], ["Threads", count(t.threads)], ["Failed", count(t.errors)], ["Cancelled", count(t.cancelled)], ["Turns", count(t.turns)], ["Tokens", count(tokens)]];
  if (t.turns > 0) facts.push(["A turn costs", money(t.spend / t.turns)]);
  fill(view.totals, facts.map(([name, value]) => h("div", null, h("dt", null, name), h("dd", null, value))));
}

function sumOf(series, measure) {
  return series.total[measure].reduce((a, b) => a + b, 0);
}

function describeCosts(view, measure, format) {
  if (!view.series) return "";
  const sum = sumOf(view.series, measure), [most] = [...view.series.lines].sort((a, b) => lineSum(b, measure) - lineSum(a, measure));
  if (sum === 0) return measure === "errors" ? "No thread has failed in this time." : "Nothing in this time.";
  return format(sum) + " in all" + (view.series.lines.length > 1 && most ? "; most by " + oneLine(most.key, 80) + " with " + format(lineSum(most, measure)) + " (" + percent(lineSum(most,
    measure) / sum) + ")." : ".");
}

function lineSum(line, measure) {
  return line[measure].reduce((a, b) => a + b, 0);
}

// drawCosts draws with the same colours in each plot: the lines come with the dearest first.
function drawCosts(view, measure, format, width, ids) {
  if (!view.series || sumOf(view.series, measure) === 0) return h("p", {class: "muted"}, "Nothing to draw.");
  const keys = view.series.lines.map((line) => line.key), fits = keys.length <= plotColours;
  const bars = costBars(view.series, measure, Math.max(12, Math.min(mostCostBars, Math.floor(width / 8))));
  return barPlot({bars, keys: fits ? keys : keys.slice(0, plotColours - 1), rest: fits ? [] : keys.slice(plotColours - 1), whole: measure !== "spend", formatY: format, width, ids,
    height: measure === "spend" ? 240 : 170});
}

function costsTable(view, measure, title, format) {
  const {series} = view;
  return dataTable(title, [{title: "From"}, ...series.lines.map((line) => ({title: oneLine(line.key, 60), number: true}))],
    costBars(series, measure, Infinity).map((bar) => [bar.title, ...series.lines.map((line) => bar.parts[line.key] ? format(bar.parts[line.key]) : "\u2013")]));
}

function sumsTable(view, table) {
  const most = table.rows.reduce((m, row) => Math.max(m, row.spend), 0) || 1;
  const rows = table.rows.map((row) => [
    oneLine(row.key, 200), money(row.spend), shareBar(row.spend / most, percent(row.spend / (table.total.spend || 1))), count(row.threads), row.errors ? h("span", {class: "bad"},
      count(row.errors)) : "0", count(row.cancelled), count(row.turns),
    count(row.input_tokens + row.cache_read_tokens + row.cache_write_tokens), count(row.output_tokens)]);
  if (rows.length === 0) return h("p", {class: "muted"}, "No thread was started in this time.");
  return dataTable("Sums by " + view.by + (table.others ? "; the last line is " + plural(table.others, "more") : ""), [
    {title: view.by === "day" ? "Day" : view.by === "model" ? "Model" : "Directive"}, {title: "Spent", number: true}, {title: "Share"}, {title: "Threads", number: true}, {title: "Failed",
      number: true}, {title: "Cancelled", number: true},
    {title: "Turns", number: true}, {title: "Tokens in", number: true}, {title: "Tokens out", number: true}], rows);
}

function shareBar(share, words) {
  return h("span", {class: "share"}, svg("svg", {width: 60, height: 10, "aria-hidden": "true"}, svg("rect", {width: Math.max(1, Math.round(60 * Math.max(0, Math.min(1, share)))), height: 10,
    rx: 2, class: "c0"})), " " + words);
}
