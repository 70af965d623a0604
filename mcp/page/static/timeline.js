// The timeline of a thread and of all below it: what each did when, one lane a thread.

import {button, fill, h, svg} from "./dom.js";
import {clock, count, cut, duration, money, oneLine, plural} from "./format.js";
import {drawnSpans, foldIdle, lanesOf, moved, placeOf, spanNames, timeByKind, timeOf, zoomed} from "./lanes.js";
import {dataTable, elapsedTicks, plotLegend, loadInto, plotFrame} from "./plots.js";

const rowHeight = 16, laneGap = 8, labelHeight = 17, axisHeight = 24, lanesAtOnce = 60;

// timelineView is the tab.
export function timelineView(ctx) {
  const view = {ctx, lanes: [], parts: [], window: null, whole: 1, fold: true, below: true, shown: lanesAtOnce, chosen: null, width: 0, drawing: 0, omitted: 0};
  view.el = h("div", {class: "timeline-view"});
  view.card = h("div", {class: "span-card", role: "status"});
  view.more = h("div");
  view.frame = plotFrame({title: "Timeline", desc: () => describeTime(view), draw: (width, ids) => drawTimeline(view, width, ids), table: () => spanTable(view.lanes), tools: timelineTools(view)});
  loadInto(view.el, () => fetchTimelines(view), (answer) => {
    takeTimelines(view, answer);
    fill(view.el, view.frame.el, view.more, view.card);
    showCard(view, null);
    view.frame.redraw();
  });
  const refresh = refresher(ctx, () => view.lanes.length > 0 && fetchTimelines(view).then((answer) => {
    takeTimelines(view, answer);
    redrawSoon(view);
  }, () => {}));
  return {el: view.el, close: () => { refresh.close(); view.frame.close(); view.closed = true; }};
}

// refresher calls load after changes of the thread, never while it still loads or nobody looks, and the longer
// a load takes, the less often.
export function refresher(ctx, load) {
  let timer = 0, pause = 2000, wanted = false, closed = false;
  const go = async () => {
    timer = 0;
    if (closed || document.visibilityState === "hidden") return;
    wanted = false;
    const began = performance.now();
    await load();
    pause = Math.max(2000, (performance.now() - began) * 5);
    timer = -1;
    if (!closed) timer = setTimeout(() => { timer = 0; if (wanted) go(); }, pause);
  };
  const want = () => {
    wanted = true;
    if (timer === 0) timer = setTimeout(go, 300);
  };
  const stop = ctx.subscribe(want);
  const seen = () => document.visibilityState === "visible" && wanted && want();
  document.addEventListener("visibilitychange", seen);
  return {want, close: () => {
    closed = true;
    clearTimeout(timer);
    document.removeEventListener("visibilitychange", seen);
    if (typeof stop === "function") stop();
  }};
}

// threadPath is the path of something of a thread in the API.
export function threadPath(id, rest) {
  return "threads/" + encodeURIComponent(id) + (rest ? "/" + rest : "");
}

async function fetchTimelines(view) {
  return view.ctx.api.get(threadPath(view.ctx.id, "timeline" + (view.below ? "?tree=1" : "")));
}

// timelinesIn are the timelines of an answer for one thread or for a tree.
export function timelinesIn(answer) {
  return answer.timelines || [answer];
}

function takeTimelines(view, answer) {
  const now = Date.now() + (view.ctx.api.skew || 0);
  view.lanes = lanesOf(timelinesIn(answer), now);
  view.omitted = answer.omitted || 0;
  refold(view);
}

function refold(view) {
  const whole = view.whole, all = !view.window || (view.window[0] <= 0 && view.window[1] >= whole);
  view.parts = foldIdle(view.lanes, view.fold);
  view.whole = view.parts[view.parts.length - 1].upTo;
  view.window = all ? [0, view.whole] : moved(view.window, 0, view.whole);
}

function timelineTools(view) {
  const check = (label, key, after) => h("label", {class: "check"}, h("input", {type: "checkbox", checked: view[key], onchange: (e) => { view[key] = e.target.checked; after(); }}), label);
  return [
    check("Fold idle time", "fold", () => { view.window = null; refold(view); view.frame.redraw(); }),
    check("Threads below", "below", async () => { takeTimelines(view, await fetchTimelines(view)); view.window = null; refold(view); view.frame.redraw(); }),
    h("span", {class: "button-group"},
      button("\u2212", () => zoomBy(view, 2), {"aria-label": "Show more time", class: "quiet"}),
      button("+", () => zoomBy(view, 0.5), {"aria-label": "Show less time, larger", class: "quiet"}),
      button("All", () => { view.window = [0, view.whole]; redrawSoon(view); }, {"aria-label": "Show all time", class: "quiet"})),
  ];
}

function describeTime(view) {
  if (view.lanes.length === 0) return "Nothing has happened yet.";
  const first = Math.min(...view.lanes.map((l) => l.from)), last = Math.max(...view.lanes.map((l) => l.to));
  const sums = Object.entries(timeByKind(view.lanes)).filter(([, ms]) => ms >= 1).sort((a, b) => b[1] - a[1]).slice(0, 5);
  const folded = view.parts.filter((p) => p.folded).reduce((sum, p) => sum + p.to - p.from, 0);
  return plural(view.lanes.length, "thread") + " in " + duration(last - first) + ": " + sums.map(([kind, ms]) => spanWord(kind) + " " + duration(ms)).join(", ") + "." +
    (folded ? " " + duration(folded) + " in which nobody worked are folded (hatched)." : "") + (view.omitted ? " " + plural(view.omitted, "more thread") + " not drawn." : "") +
    (view.lanes.some((l) => l.truncated) ? " Of some threads spans next to each other are drawn as one." : "") + (view.lanes.some((l) => l.damaged) ? " Some lines of transcripts could not be read." : "");
}

// spanWord is a kind of span in words.
export function spanWord(kind) {
  return spanNames[kind] || kind;
}

function redrawSoon(view) {
  if (view.drawing || view.closed) return;
  view.drawing = requestAnimationFrame(() => {
    view.drawing = 0;
    view.frame.redraw();
  });
}

function zoomBy(view, factor, place) {
  view.window = zoomed(view.window, place ?? chosenPlace(view), factor, view.whole);
  redrawSoon(view);
}

function chosenPlace(view) {
  const middle = (view.window[0] + view.window[1]) / 2;
  if (!view.chosen) return middle;
  const p = placeOf(view.parts, (view.chosen.span.from + view.chosen.span.to) / 2);
  return p >= view.window[0] && p <= view.window[1] ? p : middle;
}

function drawTimeline(view, width, ids) {
  if (view.lanes.length === 0) return h("p", {class: "muted"}, "Nothing has happened yet.");
  view.width = width;
  const [a, b] = view.window;
  const px = (time) => ((placeOf(view.parts, time) - a) / (b - a)) * width;
  const lanes = view.lanes.slice(0, view.shown);
  let top = axisHeight;
  for (const lane of lanes) {
    lane.top = top;
    top += labelHeight + lane.rows * rowHeight + laneGap;
  }
  fill(view.more, view.lanes.length > view.shown && button("Draw " + plural(Math.min(lanesAtOnce, view.lanes.length - view.shown), "more thread"),
    () => { view.shown += lanesAtOnce; view.frame.redraw(); }, {class: "quiet"}));
  const chart = svg("svg", {width, height: top, viewBox: "0 0 " + width + " " + top, class: "chart timeline", role: "application", tabindex: 0,
    "aria-roledescription": "timeline", "aria-labelledby": ids.labelledby, "aria-describedby": ids.describedby});
  view.chart = chart;
  chart.append(hatchPattern(), timeAxis(view, width, top), ...lanes.map((lane) => drawLane(lane, px, width)), ...foldBands(view, width, top), ...lanes.map((lane) => laneName(lane, width)));
  view.mark = svg("rect", {class: "chosen", visibility: "hidden", rx: 3});
  chart.append(view.mark);
  markChosen(view, px);
  view.px = px;
  listenTimeline(view, chart, lanes);
  const kinds = new Set(view.lanes.flatMap((lane) => lane.spans.map((s) => s.kind)));
  return h("div", null, plotLegend(Object.keys(spanNames).filter((k) => kinds.has(k)).map((k) => ({name: spanNames[k], cls: "k-" + k}))), chart,
    h("p", {class: "muted keys-hint"}, "Arrow keys go from span to span and from thread to thread, + and \u2212 zoom, 0 shows all, Page Up and Page Down move, Enter opens. Drag to move; Ctrl and the wheel zoom."));
}

function hatchPattern() {
  return svg("defs", null, svg("pattern", {id: "timeline-hatch", width: 6, height: 6, patternUnits: "userSpaceOnUse", patternTransform: "rotate(45)"},
    svg("rect", {width: 6, height: 6, class: "hatch-ground"}), svg("line", {x1: 0, x2: 0, y1: 0, y2: 6, class: "hatch-line"})));
}

function timeAxis(view, width, height) {
  const began = view.parts[0].from, [a, b] = view.window;
  const g = svg("g", {class: "axis", "aria-hidden": "true"});
  const about = Math.max(2, width / 95), per = (b - a) / about;
  let free = -Infinity;
  for (const part of view.parts) {
    if (part.folded || part.upTo < a || part.at > b) continue;
    const from = timeOf(view.parts, Math.max(a, part.at)) - began, to = timeOf(view.parts, Math.min(b, part.upTo)) - began;
    const most = Math.max(1, (Math.min(b, part.upTo) - Math.max(a, part.at)) / per);
    for (const t of elapsedTicks(from, to, most)) {
      const x = ((placeOf(view.parts, began + t) - a) / (b - a)) * width, label = t === 0 ? "0" : duration(t);
      if (x < free || x > width - 6) continue;
      free = x + label.length * 6.4 + 14;
      g.append(svg("line", {x1: x, x2: x, y1: axisHeight - 6, y2: height, class: "grid"}), svg("text", {x: Math.min(x + 3, width - label.length * 6.4), y: 12}, label));
    }
  }
  return g;
}

function drawLane(lane, px, width) {
  return svg("g", {class: "lane"}, svg("line", {x1: 0, x2: width, y1: lane.top - laneGap / 2, y2: lane.top - laneGap / 2, class: "lane-line"}),
    drawnSpans(lane.spans, px, width).map((d) => drawSpan(d, lane, width)));
}

function laneName(lane, width) {
  const left = Math.min(6, lane.depth) * 10;
  const name = (lane.depth ? "\u2514 " : "") + oneLine(lane.title) + (lane.title === lane.id ? "" : " \u00b7 " + oneLine(lane.id));
  return svg("text", {x: left, y: lane.top + 12, class: "lane-name"}, cut(name, Math.max(8, Math.floor((width - left) / 7))));
}

function drawSpan(d, lane, width) {
  const left = Math.max(-2, d.left), right = Math.min(width + 2, d.right), wide = Math.max(1.5, right - left);
  const y = lane.top + labelHeight + d.row * rowHeight;
  const one = d.spans.length === 1 ? d.spans[0] : null;
  const rect = svg("rect", {x: left.toFixed(1), y, width: wide.toFixed(1), height: rowHeight - 3, rx: wide > 5 ? 3 : 0,
    class: "span k-" + d.kind + (d.error ? " failed" : "") + (one && one.open ? " open" : "")});
  if (!one || wide < 34) return rect;
  const name = (one.error ? "\u2715 " : "") + oneLine(spanTitle(one));
  return svg("g", null, rect, svg("text", {x: (Math.max(0, left) + 4).toFixed(1), y: y + rowHeight - 6.5, class: "span-name k-" + d.kind, "aria-hidden": "true"}, cut(name, Math.max(1,
    Math.floor((wide - 6) / 6.3)))));
}

// spanTitle is what a span is called where there is little room: a call of rye_execute by what it runs.
export function spanTitle(s) {
  if (s.kind === "model") return shortModel(s.name);
  if (s.detail && (s.kind === "tool" || s.kind === "wait")) return s.name && s.name !== "rye_execute" ? s.name + " " + s.detail : s.detail;
  return s.name || spanWord(s.kind);
}

// shortModel is the name of a model without its provider.
export function shortModel(name) {
  return name ? name.slice(name.lastIndexOf("/") + 1) : "model";
}

function foldBands(view, width, height) {
  const [a, b] = view.window;
  return view.parts.filter((p) => p.folded && p.upTo > a && p.at < b).map((p) => {
    const left = ((p.at - a) / (b - a)) * width, wide = Math.max(2, ((p.upTo - p.at) / (b - a)) * width), label = "\u22ef " + duration(p.to - p.from);
    return svg("g", {class: "fold"}, svg("title", null, duration(p.to - p.from) + " folded: nobody worked"), svg("rect", {x: left, y: axisHeight - 6, width: wide,
      height: height - axisHeight + 6, fill: "url(#timeline-hatch)"}),
      wide > label.length * 6.6 ? svg("text", {x: left + wide / 2, y: height - 6, "text-anchor": "middle"}, label)
        : wide > 13 ? svg("text", {transform: "translate(" + (left + wide / 2 + 4) + " " + (height - 8) + ") rotate(-90)"}, label) : null);
  });
}

function listenTimeline(view, chart, lanes) {
  const at = (e) => e.clientX - chart.getBoundingClientRect().left;
  const place = (x) => view.window[0] + (x / view.width) * (view.window[1] - view.window[0]);
  chart.addEventListener("keydown", (e) => timelineKey(view, e));
  chart.addEventListener("focus", () => view.chosen || chooseSpan(view, view.lanes[0], view.lanes[0].spans[0]));
  chart.addEventListener("wheel", (e) => {
    const zooms = e.ctrlKey || e.metaKey || e.altKey;
    if (!zooms && Math.abs(e.deltaX) <= Math.abs(e.deltaY)) return;
    e.preventDefault();
    if (zooms) return zoomBy(view, Math.exp(Math.max(-1, Math.min(1, e.deltaY / 120)) * 0.35), place(at(e)));
    view.window = moved(view.window, (e.deltaX / view.width) * (view.window[1] - view.window[0]), view.whole);
    redrawSoon(view);
  }, {passive: false});
  listenPointers(view, chart, lanes, at, place);
}

// listenPointers: one pointer moves the time, two zoom it, and one that only hovers or taps chooses a span. The pointers are kept in
// the view, because a drawing does not live as long as a gesture.
function listenPointers(view, chart, lanes, at, place) {
  view.pointers = view.pointers || new Map();
  chart.addEventListener("pointerdown", (e) => {
    if (e.button > 0) return;
    view.pointers.set(e.pointerId, {x: e.clientX, moved: 0});
    const move = (ev) => dragTimeline(view, ev, place);
    const up = (ev) => {
      if (ev.pointerId !== e.pointerId) return;
      view.pointers.delete(ev.pointerId);
      removeEventListener("pointermove", move);
      removeEventListener("pointerup", up);
      removeEventListener("pointercancel", up);
    };
    addEventListener("pointermove", move);
    addEventListener("pointerup", up);
    addEventListener("pointercancel", up);
    hoverSpan(view, lanes, at(e), e.clientY - chart.getBoundingClientRect().top);
  });
  chart.addEventListener("pointermove", (e) => view.pointers.size === 0 && hoverSpan(view, lanes, at(e), e.clientY - chart.getBoundingClientRect().top));
  chart.addEventListener("dblclick", (e) => zoomBy(view, 0.4, place(at(e))));
}

function dragTimeline(view, e, place) {
  const p = view.pointers.get(e.pointerId);
  if (!p) return;
  const by = e.clientX - p.x, others = [...view.pointers].filter(([id]) => id !== e.pointerId).map(([, o]) => o.x);
  p.moved += Math.abs(by);
  if (others.length > 0) {
    const before = Math.max(20, Math.abs(p.x - others[0])), after = Math.max(20, Math.abs(e.clientX - others[0]));
    const middle = (e.clientX + others[0]) / 2 - view.chart.getBoundingClientRect().left;
    p.x = e.clientX;
    return zoomBy(view, before / after, place(middle));
  }
  if (p.moved < 5) return;
  p.x = e.clientX;
  view.window = moved(view.window, (-by / view.width) * (view.window[1] - view.window[0]), view.whole);
  redrawSoon(view);
}

function hoverSpan(view, lanes, x, y) {
  const lane = lanes.find((l) => y >= l.top && y < l.top + labelHeight + l.rows * rowHeight + laneGap);
  if (!lane) return;
  const row = Math.floor((y - lane.top - labelHeight) / rowHeight);
  const hit = lane.spans.filter((s) => s.row === row).map((s) => ({s, far: Math.max(view.px(s.from) - x, x - view.px(s.to), 0)})).sort((p, q) => p.far - q.far)[0];
  if (hit && hit.far < 4) chooseSpan(view, lane, hit.s);
}

function timelineKey(view, e) {
  if (e.ctrlKey || e.metaKey || e.altKey) return;
  const part = (view.window[1] - view.window[0]) * 0.7;
  const does = {
    ArrowLeft: () => stepSpan(view, -1), ArrowRight: () => stepSpan(view, 1), ArrowUp: () => stepLane(view, -1), ArrowDown: () => stepLane(view, 1),
    Home: () => stepSpan(view, -Infinity), End: () => stepSpan(view, Infinity), "+": () => zoomBy(view, 0.5), "=": () => zoomBy(view, 0.5), "-": () => zoomBy(view, 2),
    "0": () => { view.window = [0, view.whole]; redrawSoon(view); }, PageUp: () => { view.window = moved(view.window, -part, view.whole); redrawSoon(view); },
    PageDown: () => { view.window = moved(view.window, part, view.whole); redrawSoon(view); }, Enter: () => openChosen(view),
  }[e.key];
  if (!does) return;
  e.preventDefault();
  e.stopPropagation();
  does();
}

function stepSpan(view, by) {
  const lane = view.chosen ? currentLane(view) : view.lanes[0];
  const at = view.chosen ? lane.spans.findIndex((s) => s.from === view.chosen.span.from && s.row === view.chosen.span.row) : -1;
  const next = Math.max(0, Math.min(lane.spans.length - 1, at + by));
  if (lane.spans.length > 0) chooseSpan(view, lane, lane.spans[next], true);
}

function stepLane(view, by) {
  const lanes = view.lanes.slice(0, view.shown);
  let at = lanes.indexOf(currentLane(view)) + by;
  while (lanes[at] && lanes[at].spans.length === 0) at += by;
  const lane = lanes[at];
  if (!lane) return;
  const t = view.chosen ? view.chosen.span.from : lane.from;
  chooseSpan(view, lane, lane.spans.reduce((best, s) => Math.abs(s.from - t) < Math.abs(best.from - t) ? s : best), true);
}

function currentLane(view) {
  return (view.chosen && view.lanes.find((l) => l.id === view.chosen.id)) || view.lanes[0];
}

function chooseSpan(view, lane, span, follow = false) {
  if (!span) return;
  view.chosen = {id: lane.id, span};
  showCard(view, lane);
  if (follow) {
    const from = placeOf(view.parts, span.from), to = placeOf(view.parts, span.to), [a, b] = view.window;
    if (to < a || from > b) {
      view.window = moved(view.window, (from + Math.min(to, from + b - a)) / 2 - (a + b) / 2, view.whole);
      redrawSoon(view);
    }
  }
  if (view.px) markChosen(view, view.px);
}

function markChosen(view, px) {
  const lane = view.chosen && currentLane(view);
  if (!lane || lane.id !== view.chosen.id || lane.top === undefined || view.lanes.indexOf(lane) >= view.shown) return;
  const {span} = view.chosen, left = Math.max(-4, px(span.from)), right = Math.min(view.width + 4, px(span.to));
  const set = {x: left - 1.5, y: lane.top + labelHeight + span.row * rowHeight - 1.5, width: Math.max(4, right - left + 3), height: rowHeight,
    visibility: right < -3 || left > view.width + 3 ? "hidden" : "visible"};
  for (const [name, value] of Object.entries(set)) view.mark.setAttribute(name, String(value));
}

function openChosen(view) {
  if (!view.chosen || !view.ctx.open) return;
  const {span, id} = view.chosen;
  if (span.child) view.ctx.open(span.child);
  else if (span.seq) view.ctx.open(id, "transcript", {seq: span.seq});
}

function showCard(view, lane) {
  const s = view.chosen && view.chosen.span;
  view.card.classList.toggle("chosen", Boolean(s && lane));
  if (!s || !lane) return void fill(view.card, h("p", {class: "muted"}, "Point at a span, or go to the drawing with Tab and use the arrow keys, to read what it was."));
  const to = s.child || (lane.id !== view.ctx.id && lane.id);
  const place = s.seq && view.ctx.open && button("Show in the transcript", () => view.ctx.open(lane.id, "transcript", {seq: s.seq}), {class: "quiet"});
  fill(view.card,
    h("p", null, h("strong", null, spanWord(s.kind) + (s.name ? ": " : "")), oneLine(s.name), s.error && h("span", {class: "bad"}, " failed"), h("span", {class: "muted"}, " in " + oneLine(lane.title))),
    h("p", null, spanFacts(s, lane).join(" \u00b7 ")),
    s.detail && h("p", {class: "mono"}, oneLine(s.detail, 300)),
    s.error && h("p", {class: "bad mono"}, oneLine(s.error, 400)),
    h("div", {class: "button-group"}, place, to && view.ctx.open && button("Open " + cut(oneLine(to), 60), () => view.ctx.open(to), {class: "quiet"})));
}

function spanFacts(s, lane) {
  const tokens = s.tokens || {};
  return [
    s.count > 1 && plural(s.count, "span") + " that took " + duration(s.busy_ms) + " together, in", duration(s.to - s.from) + (s.open ? " so far" : ""),
      "from " + clock(s.from) + ", " + duration(s.from - lane.from) + " after its beginning", s.turn && "turn " + s.turn, s.attempt > 1 && "attempt " + s.attempt,
        s.first_ms !== undefined && "first answer after " + duration(s.first_ms), s.spend && money(s.spend),
    tokens.input && count(tokens.input) + " tokens in", tokens.output && count(tokens.output) + " out", tokens.cache_read && count(tokens.cache_read) + " read from cache",
      tokens.cache_write && count(tokens.cache_write) + " written to cache",
  ].filter(Boolean);
}

// spanTable has a row for each span of all lanes, in the order of time.
export function spanTable(lanes) {
  const rows = lanes.flatMap((lane) => lane.spans.map((s) => ({s, lane}))).sort((p, q) => p.s.from - q.s.from).map(({s, lane}) => [
    clock(s.from), oneLine(lane.title), spanWord(s.kind), oneLine(s.name, 80), s.turn ? String(s.turn) : "", duration(s.to - s.from) + (s.open ? " so far" : ""),
      s.spend ? money(s.spend) : "", oneLine(s.error, 120),
  ]);
  return dataTable("What the threads did, in the order of time", [
    {title: "Began"}, {title: "Thread"}, {title: "Kind"}, {title: "What"}, {title: "Turn", number: true}, {title: "Lasted", number: true}, {title: "Spent", number: true}, {title: "Failure"},
  ], rows);
}
