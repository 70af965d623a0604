// The flame view: a thread and all below it, as wide as the time or the money that went there.

import {button, fill, h, svg} from "./dom.js";
import {cut, duration, money, oneLine, percent, plural} from "./format.js";
import {lanesOf} from "./lanes.js";
import {dataTable, loadInto, plotFrame} from "./plots.js";
import {refresher, shortModel, spanWord, threadPath, timelinesIn} from "./timeline.js";

const barHeight = 24;

// flameTree makes a tree of lanes: a node {name, kind, id, time, money, count, kids} for each thread, and below it one for its calls of each
// model, its tools, hooks and back-off. Time is time worked: what a thread waits for those below is theirs. A thread
// that continues another stands beside it.
export function flameTree(lanes, top) {
  const roots = [], above = [];
  for (const lane of lanes) {
    const node = threadNode(lane);
    while (above.length > 0 && above[above.length - 1].depth >= lane.depth) above.pop();
    (above.length > 0 ? above[above.length - 1].node.kids : roots).push(node);
    above.push({node, depth: lane.depth});
  }
  if (roots.length === 0) return null;
  return sumFlame(roots.length === 1 ? roots[0] : {name: top || "all", kind: "thread", id: "", ownTime: 0, ownMoney: 0, count: roots.length, kids: roots});
}

function threadNode(lane) {
  const groups = new Map();
  for (const s of lane.spans) {
    if (s.worked <= 0 && !s.spend) continue;
    const name = s.kind === "model" ? s.name || lane.model || "model" : s.name === "rye_execute" && s.detail ? s.detail : s.name || spanWord(s.kind), key = s.kind + "\n" + name;
    const g = groups.get(key) || {name, kind: s.kind, id: "", ownTime: 0, ownMoney: 0, count: 0, failed: 0, kids: []};
    g.ownTime += s.worked;
    g.ownMoney += s.spend || 0;
    g.count += s.count || 1;
    g.failed += s.error ? 1 : 0;
    groups.set(key, g);
  }
  return {name: lane.title, kind: "thread", id: lane.id, ownTime: 0, ownMoney: 0, count: 1, kids: [...groups.values()]};
}

function sumFlame(node) {
  node.time = node.ownTime;
  node.money = node.ownMoney;
  for (const kid of node.kids) {
    sumFlame(kid);
    node.time += kid.time;
    node.money += kid.money;
  }
  return node;
}

// flameLayout gives the bars {node, depth, left, width} of a tree by "time" or "money"; bars narrower than least are left out.
export function flameLayout(root, by, width, least = 1) {
  const bars = [];
  const put = (node, depth, left, wide) => {
    if (wide < least) return;
    bars.push({node, depth, left, width: wide});
    let at = left;
    for (const kid of [...node.kids].sort((a, b) => b[by] - a[by])) {
      const part = node[by] > 0 ? (kid[by] / node[by]) * wide : 0;
      put(kid, depth + 1, at, part);
      at += part;
    }
  };
  if (root[by] > 0) put(root, 0, 0, width);
  return bars;
}

// flameView is the tab.
export function flameView(ctx) {
  const view = {ctx, by: "time", root: null, path: [], chosen: 0, bars: []};
  view.el = h("div", {class: "flame-view"});
  view.card = h("div", {class: "span-card", role: "status"});
  const choice = [["time", "By time worked"], ["money", "By money"]].map(([by, label]) => button(label, () => {
    view.by = by;
    choice.forEach((b, i) => b.setAttribute("aria-pressed", String(["time", "money"][i] === by)));
    redrawFlame(view);
  }, {"aria-pressed": String(by === view.by), class: "quiet"}));
  view.trail = h("nav", {class: "flame-trail", "aria-label": "Zoomed to"});
  view.frame = plotFrame({title: "Where time and money went", desc: () => describeFlame(view), draw: (width, ids) => drawFlame(view, width, ids), table: () => flameTable(view),
    tools: [h("span", {class: "button-group", role: "group", "aria-label": "Width shows"}, choice), view.trail]});
  const load = () => ctx.api.get(threadPath(ctx.id, "timeline?tree=1"));
  const take = (answer) => {
    const lanes = lanesOf(timelinesIn(answer), Date.now() + (ctx.api.skew || 0));
    view.root = flameTree(lanes, ctx.id);
    const names = view.path.map((node) => node.kind + node.id + node.name);
    view.path = [];
    for (const name of names) {
      const next = focusNode(view).kids.find((kid) => kid.kind + kid.id + kid.name === name);
      if (next) view.path.push(next);
      else break;
    }
    redrawFlame(view);
  };
  loadInto(view.el, load, (answer) => {
    fill(view.el, view.frame.el, view.card);
    take(answer);
    fill(view.card, h("p", {class: "muted"}, "Point at a bar to read what it stands for; click it to make it as wide as the view."));
  });
  const refresh = refresher(ctx, () => view.root && load().then(take, () => {}));
  return {el: view.el, close: () => { refresh.close(); view.frame.close(); }};
}

function focusNode(view) {
  return view.path[view.path.length - 1] || view.root;
}

function redrawFlame(view) {
  fill(view.trail, view.path.length > 0 && [button("All", () => { view.path = []; redrawFlame(view); }, {class: "quiet"}),
    view.path.map((node, i) => button(cut(oneLine(node.name), 30), () => { view.path = view.path.slice(0, i + 1); redrawFlame(view); }, {class: "quiet",
      "aria-current": i === view.path.length - 1 ? "true" : null}))]);
  view.frame.redraw();
}

function flameWorth(view, node) {
  return view.by === "time" ? duration(node.time) : money(node.money);
}

function describeFlame(view) {
  if (!view.root) return "Nothing has happened yet.";
  return "All in all " + duration(view.root.time) + " of work and " + money(view.root.money) + ". " +
    (view.by === "time" ? "Width is time worked; waiting for threads below is not counted, and threads that work at once are added up." : "Width is money spent.") + " Each bar stands below what it is a part of.";
}

function drawFlame(view, width, ids) {
  const root = view.root && focusNode(view);
  if (!root || root[view.by] <= 0) return h("p", {class: "muted"}, view.by === "money" ? "Nothing has been spent here." : "No work has been recorded yet.");
  view.bars = flameLayout(root, view.by, width, 1);
  view.chosen = Math.min(view.chosen, view.bars.length - 1);
  const height = (Math.max(...view.bars.map((b) => b.depth)) + 1) * barHeight + 2;
  const chart = svg("svg", {width, height, viewBox: "0 0 " + width + " " + height, class: "chart flame", role: "application", tabindex: 0, "aria-roledescription": "flame view",
    "aria-labelledby": ids.labelledby, "aria-describedby": ids.describedby});
  view.bars.forEach((bar, i) => chart.append(flameBar(view, bar, i)));
  view.mark = svg("rect", {class: "chosen", visibility: "hidden", rx: 3});
  chart.append(view.mark);
  chart.addEventListener("keydown", (e) => flameKey(view, e));
  chart.addEventListener("focus", () => chooseBar(view, view.chosen));
  view.chart = chart;
  return h("div", null, chart, h("p", {class: "muted keys-hint"}, "Arrow keys go from bar to bar, Enter makes one as wide as the view, Backspace goes back."));
}

function flameBar(view, bar, i) {
  const {node} = bar, y = bar.depth * barHeight;
  const g = svg("g", {class: "flame-bar"}, svg("rect", {x: bar.left.toFixed(1), y, width: Math.max(0.5, bar.width - 1).toFixed(1), height: barHeight - 2, rx: bar.width > 6 ? 3 : 0,
    class: "span k-" + node.kind + (node.failed && node.failed >= node.count ? " failed" : "")}));
  if (bar.width > 40) {
    const label = (node.failed ? "\u2715 " : "") + oneLine(node.kind === "model" ? shortModel(node.name) : node.name) + "  " + flameWorth(view, node);
    g.append(svg("text", {x: (bar.left + 5).toFixed(1), y: y + 15, class: "span-name k-" + node.kind, "aria-hidden": "true"}, cut(label, Math.floor((bar.width - 8) / 6.6))));
  }
  g.addEventListener("pointerenter", () => chooseBar(view, i));
  g.addEventListener("click", () => enterBar(view, i));
  return g;
}

function chooseBar(view, i) {
  const bar = view.bars[i];
  if (!bar) return;
  view.chosen = i;
  const set = {x: bar.left - 0.5, y: bar.depth * barHeight - 0.5, width: Math.max(2, bar.width), height: barHeight - 1, visibility: "visible"};
  for (const [name, value] of Object.entries(set)) view.mark.setAttribute(name, String(value));
  showFlameCard(view);
}

function enterBar(view, i) {
  const bar = view.bars[i];
  if (!bar || bar.node.kids.length === 0) return;
  const way = wayTo(view.root, bar.node);
  view.path = way.slice(1);
  view.chosen = 0;
  redrawFlame(view);
}

// wayTo are the nodes from a root to a node, both with it.
export function wayTo(root, node) {
  if (root === node) return [root];
  for (const kid of root.kids) {
    const way = wayTo(kid, node);
    if (way.length > 0) return [root, ...way];
  }
  return [];
}

function flameKey(view, e) {
  if (e.ctrlKey || e.metaKey || e.altKey) return;
  const at = view.bars[view.chosen];
  const beside = (by) => {
    const row = view.bars.map((b, i) => ({b, i})).filter(({b}) => b.depth === at.depth).sort((p, q) => p.b.left - q.b.left);
    const next = row[row.findIndex(({i}) => i === view.chosen) + by];
    if (next) chooseBar(view, next.i);
  };
  const under = (depth) => {
    const found = view.bars.findIndex((b) => b.depth === depth && (depth < at.depth ? b.left <= at.left + 0.01 && b.left + b.width >= at.left + at.width - 0.01 : b.left >= at.left - 0.01 && b.left < at.left + at.width));
    if (found >= 0) chooseBar(view, found);
  };
  const does = {ArrowLeft: () => beside(-1), ArrowRight: () => beside(1), ArrowDown: () => under(at.depth + 1), ArrowUp: () => under(at.depth - 1),
    Enter: () => enterBar(view, view.chosen), " ": () => enterBar(view, view.chosen), Backspace: () => { view.path = view.path.slice(0, -1); redrawFlame(view); }}[e.key];
  if (!does || !at) return;
  e.preventDefault();
  e.stopPropagation();
  does();
}

function showFlameCard(view) {
  const bar = view.bars[view.chosen];
  if (!bar) return void fill(view.card);
  const {node} = bar, all = view.root[view.by] || 1;
  const lead = node.kind === "thread" ? "thread" : spanWord(node.kind);
  fill(view.card, h("p", null, h("strong", null, lead + ": "), oneLine(node.name), node.kind !== "thread" && node.count > 1 && h("span", {class: "muted"}, " \u00d7 " + node.count),
    node.failed > 0 && h("span", {class: "bad"}, " " + plural(node.failed, "failure"))),
  h("p", null, duration(node.time) + " worked \u00b7 " + money(node.money) + " \u00b7 " + percent(node[view.by] / all) + " of all " + (view.by === "time" ? "time" : "money")),
  node.id && node.id !== view.ctx.id && view.ctx.open && button("Open " + cut(oneLine(node.id), 60), () => view.ctx.open(node.id), {class: "quiet"}));
}

function flameTable(view) {
  const rows = [];
  const put = (node, depth) => {
    rows.push(["\u2003".repeat(Math.min(depth, 8)) + oneLine(node.name), node.kind === "thread" ? "thread" : spanWord(node.kind), String(node.count), duration(node.time), money(node.money),
      percent(node[view.by] / (view.root[view.by] || 1))]);
    for (const kid of [...node.kids].sort((a, b) => b[view.by] - a[view.by])) put(kid, depth + 1);
  };
  if (view.root) put(view.root, 0);
  return dataTable("Where time and money went, each line below what it is a part of", [
    {title: "What"}, {title: "Kind"}, {title: "Count", number: true}, {title: "Worked", number: true}, {title: "Spent", number: true}, {title: "Share", number: true},
  ], rows);
}
