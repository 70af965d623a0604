// The transcript of a thread, live: a part of it is held, and more is loaded where one reads. The newest is followed until one scrolls up.

import {button, clear, fill, h, setText} from "./dom.js";
import {bytes, clock, count, duration, money, oneLine, plural} from "./format.js";
import {callGlance, cutLines, failureLine, foldEvents, jsonText, makeHeld} from "./events.js";
import {findBar} from "./find.js";
import {problemBox} from "./plots.js";
import {threadPath} from "./timeline.js";

const pageBytes = 200000, nearEdge = 700, chunkSize = 4000, mostChunks = 40, partSize = 60000;

// transcriptView is the tab. ctx.at.seq is the event to begin with; else it begins with the newest.
export function transcriptView(ctx) {
  const view = {
    ctx, held: makeHeld(), rows: new Map(), opened: new Map(), following: true, waiting: [], flushing: 0, busy: false, closed: false, unseen: 0, lastTop: 0,
    stop: new AbortController(),
  };
  view.list = h("div", {class: "transcript-list"});
  view.scroller = h("div", {class: "transcript", tabindex: 0, role: "log", "aria-live": "off", "aria-label": "Transcript"}, view.list);
  view.state = h("p", {class: "transcript-state muted", role: "status"});
  view.damage = h("div");
  view.follow = button("Follow", () => view.following ? unfollow(view) : followAgain(view), {class: "quiet", "aria-pressed": "true"});
  view.find = findBar(view, {show: (seq) => showSeq(view, seq), load: (query) => view.ctx.api.get(transcriptPath(view, query), view.stop.signal)});
  view.reveal = (item, parts, query) => revealParts(view, item, parts, query);
  view.el = h("div", {class: "transcript-view"},
    h("div", {class: "plot-tools transcript-tools"}, view.find.el, h("span", {class: "button-group"},
      button("First", () => showStart(view), {class: "quiet", "aria-label": "Go to the first event"}), button("Last", () => followAgain(view), {class: "quiet",
        "aria-label": "Go to the last event and follow"}), view.follow), view.find.said),
    view.damage, view.scroller, view.state);
  view.scroller.addEventListener("scroll", () => scrolled(view), {passive: true});
  if (ctx.at && ctx.at.seq) showSeq(view, ctx.at.seq);
  else showEnd(view);
  return {el: view.el, focus: () => view.scroller.focus({preventScroll: true}), close: () => {
    view.closed = true;
    view.stop.abort();
    view.find.close();
  }};
}

function transcriptPath(view, query) {
  return threadPath(view.ctx.id, "transcript?" + new URLSearchParams({max: String(pageBytes), ...query}));
}

// loading runs one load at a time, and says what goes wrong.
async function oneLoad(view, load) {
  if (view.busy || view.closed) return;
  view.busy = true;
  view.scroller.setAttribute("aria-busy", "true");
  try {
    await load();
  } catch (error) {
    if (!view.closed && error.name !== "AbortError") fill(view.damage, problemBox(error, () => { clear(view.damage); view.held.pages.length ? scrolled(view) : showEnd(view); }));
  } finally {
    view.busy = false;
    view.scroller.removeAttribute("aria-busy");
  }
}

async function fetchPage(view, query) {
  const page = await view.ctx.api.get(transcriptPath(view, query), view.stop.signal);
  if (page.damaged) fill(view.damage, h("div", {class: "problem"}, h("p", null, plural(page.damaged, "line") + " of this transcript cannot be read."), h("p", {class: "muted"},
    "The tab \u201cVerify\u201d says what can be trusted.")));
  return page;
}

function showEnd(view) {
  return oneLoad(view, async () => {
    const page = await fetchPage(view, {before: "-1"});
    resetHeld(view);
    view.held.before(page);
    view.held.atStart = page.at_start;
    view.held.atEnd = true;
    view.held.newest = Math.max(view.held.newest, page.next || 0);
    setFollowing(view, true);
    drawItems(view);
    toBottom(view);
    followStream(view);
  }).then(() => fillView(view));
}

function showStart(view) {
  unfollow(view);
  return oneLoad(view, async () => {
    const page = await fetchPage(view, {after: "0"});
    resetHeld(view);
    takeAfter(view, page);
    view.held.atStart = true;
    drawItems(view);
    view.scroller.scrollTop = 0;
  }).then(() => fillView(view));
}

// showSeq shows the part of the transcript around an event, and gives the item that has it.
async function showSeq(view, seq) {
  unfollow(view);
  const has = () => view.items && view.items.findLast((item) => item.seq <= seq);
  if (!(view.held.pages.length && seq >= view.held.first() && seq <= view.held.last())) {
    await oneLoad(view, async () => {
      const page = await fetchPage(view, {after: String(seq - 1)});
      resetHeld(view);
      takeAfter(view, page);
      view.held.atStart = seq <= 1;
      if (!view.held.atStart) {
        const above = await fetchPage(view, {before: String(seq)});
        view.held.before(above);
        view.held.atStart = above.at_start;
      }
      drawItems(view);
    });
  }
  const item = has(), row = item && view.rows.get(item.key);
  if (row) {
    view.scroller.scrollTop = Math.max(0, row.el.offsetTop - view.scroller.clientHeight / 4);
    view.lastTop = view.scroller.scrollTop;
  }
  return row ? {item, row} : null;
}

function takeAfter(view, page) {
  view.held.after(page);
  view.held.atEnd = Boolean(page.at_end);
  if (view.held.atEnd) followStream(view);
}

function resetHeld(view) {
  view.held.clear();
  view.rows.clear();
  view.opened.clear();
  view.waiting.length = 0;
  clear(view.list);
}

// followStream takes what is written from now on. There is one stream, from the end that was known when it was opened.
function followStream(view) {
  if (view.streaming || view.closed) return;
  view.streaming = true;
  view.held.newest = Math.max(view.held.newest, view.held.last());
  const onLine = (line) => {
    const events = line.events || (line.seq ? [line] : []);
    for (const e of events) {
      if (e.seq <= view.held.newest) continue;
      view.held.newest = e.seq;
      view.waiting.push(e);
    }
    if (view.waiting.length && !view.flushing) view.flushing = requestAnimationFrame(() => flushEvents(view));
    if (line.ended) return "end";
  };
  const onState = (state, more) => {
    view.connection = state;
    view.problem = more && more.error;
    showState(view);
  };
  view.ctx.api.stream(() => transcriptPath(view, {after: String(view.held.newest), stream: "1"}), onLine, view.stop.signal, onState);
}

// flush puts what has come into the page, once a frame.
function flushEvents(view) {
  view.flushing = 0;
  if (view.closed) return;
  const events = view.waiting;
  view.waiting = [];
  if (!view.held.atEnd) {
    view.unseen += events.filter((e) => e.event_type !== "token_delta").length;
    return showState(view);
  }
  if (!view.following && view.held.pages.length >= 6) {
    view.held.atEnd = false;
    view.unseen += events.length;
    return showState(view);
  }
  const live = view.live && view.rows.get(view.live.key);
  if (view.held.after({events}) && live) drawLive(view, live, view.live);
  else drawItems(view);
  if (view.following) toBottom(view);
  else view.unseen += events.filter((e) => e.event_type !== "token_delta").length;
  showState(view);
}

function showState(view) {
  const waits = view.connection === "waiting" && "The connection is lost; it is tried again.";
  const refused = view.connection === "refused" && "The transcript cannot be followed: " + (view.problem ? view.problem.message : "");
  const last = view.held.newest || view.held.last();
  setText(view.state, [waits || refused, last && "Event " + exact(view.held.first()) + " to " + exact(view.held.last()) + " of " + exact(last),
    view.unseen > 0 && !view.following && plural(view.unseen, "new event") + " below"].filter(Boolean).join(" \u00b7 "));
}

function exact(n) {
  return n.toLocaleString("en-US");
}

function setFollowing(view, on) {
  view.following = on;
  if (on) view.unseen = 0;
  view.follow.setAttribute("aria-pressed", String(on));
  showState(view);
}

function unfollow(view) {
  setFollowing(view, false);
}

function followAgain(view) {
  if (!view.held.atEnd) return showEnd(view);
  setFollowing(view, true);
  toBottom(view);
}

function toBottom(view) {
  view.scroller.scrollTop = view.scroller.scrollHeight;
  view.lastTop = view.scroller.scrollTop;
}

function scrolled(view) {
  const {scrollTop, scrollHeight, clientHeight} = view.scroller, rest = scrollHeight - clientHeight - scrollTop;
  if (view.following && scrollTop < view.lastTop - 2 && rest > 30) unfollow(view);
  else if (!view.following && view.held.atEnd && rest < 4 && scrollTop > view.lastTop) setFollowing(view, true);
  view.lastTop = scrollTop;
  fillView(view);
}

// fillView loads what is needed for what is looked at.
function fillView(view) {
  if (view.busy || view.closed || view.held.pages.length === 0) return;
  const {scrollTop, scrollHeight, clientHeight} = view.scroller;
  if (!view.held.atStart && scrollTop < nearEdge) return oneLoad(view, () => loadMore(view, "before"));
  if (!view.held.atEnd && scrollHeight - clientHeight - scrollTop < nearEdge) return oneLoad(view, () => loadMore(view, "after"));
}

async function loadMore(view, way) {
  const before = way === "before";
  const page = await fetchPage(view, before ? {before: String(view.held.first())} : {after: String(view.held.last())});
  if (before) {
    view.held.before(page);
    view.held.atStart = page.at_start || (page.events.length === 0 && !page.first);
    if (!view.held.atEnd) setFollowing(view, false);
  } else {
    takeAfter(view, page);
    view.held.newest = Math.max(view.held.newest, view.held.last());
  }
  drawItems(view);
  setTimeout(() => fillView(view), 0);
}

// draw brings the rows to what is held. What stands at the top of the view stays there.
function drawItems(view) {
  const anchor = view.following ? null : anchorOf(view);
  view.items = foldEvents(view.held.events());
  view.live = view.items.length && view.items[view.items.length - 1].kind === "live" ? view.items[view.items.length - 1] : null;
  const wanted = new Set(view.items.map((item) => item.key));
  for (const [key, row] of view.rows) {
    if (wanted.has(key)) continue;
    row.el.remove();
    view.rows.delete(key);
    for (const name of view.opened.keys()) if (name.startsWith(key + "/")) view.opened.delete(name);
  }
  let at = view.list.firstChild;
  for (const item of view.items) {
    const row = rowFor(view, item);
    if (row.el === at) at = at.nextSibling;
    else view.list.insertBefore(row.el, at);
  }
  if (view.items.length === 0) fill(view.list, h("p", {class: "muted"}, "Nothing has been written yet."));
  else if (at) while (at) {
    const next = at.nextSibling;
    at.remove();
    at = next;
  }
  if (anchor && anchor.el.isConnected) view.scroller.scrollTop = anchor.el.offsetTop - anchor.by;
  view.lastTop = view.scroller.scrollTop;
  view.find.marked();
  showState(view);
}

function anchorOf(view) {
  const top = view.scroller.scrollTop;
  for (const item of view.items || []) {
    const row = view.rows.get(item.key);
    if (row && row.el.offsetTop + row.el.offsetHeight > top) return {el: row.el, by: row.el.offsetTop - top};
  }
  return null;
}

function rowFor(view, item) {
  const state = [item.upTo, item.done, item.answer, (item.threads || []).length].join();
  let row = view.rows.get(item.key);
  if (!row) {
    row = {el: h("article", {class: "event"}), state: null, shown: 0};
    view.rows.set(item.key, row);
  }
  if (item.kind === "live") drawLive(view, row, item);
  else if (row.state !== state) {
    row.state = state;
    row.item = item;
    drawRow(view, row, item);
  }
  return row;
}

function drawRow(view, row, item) {
  row.el.className = "event e-" + item.kind + (item.failed ? " failed" : "");
  row.el.dataset.seq = item.seq;
  const redraw = () => drawRow(view, row, item);
  fill(row.el, headOf(view, item), bodyOf(view, item, redraw));
}

function headOf(view, item) {
  const small = [item.turn && item.kind !== "in" && "turn " + item.turn, item.small, item.model, item.spend && money(item.spend),
    item.usage && count(item.usage.output_tokens) + " tokens out"].filter(Boolean).map((s) => oneLine(s, 120)).join(" \u00b7 ");
  return h("header", null,
    h("strong", null, (item.failed ? "\u2715 " : "") + oneLine(item.title, 120)),
    item.kind === "call" && h("span", {class: "glance mono"}, callGlance(item.input)),
    item.kind === "call" && callState(item),
    h("span", {class: "muted small"}, small),
    h("span", {class: "muted small event-at"}, clock(item.at).slice(11), " #" + item.seq));
}

function callState(item) {
  if (!item.done) return h("span", {class: "muted"}, "running\u2026");
  return h("span", {class: item.failed ? "bad" : "muted"}, [item.failed && "failed", item.result.ms !== undefined && duration(item.result.ms), bytes(item.result.text.length)].filter(Boolean).join(", "));
}

function bodyOf(view, item, redraw) {
  const links = (item.threads || []).concat(item.thread || []).map((id) => view.ctx.open && button("Open " + oneLine(id, 80), () => view.ctx.open(id), {class: "quiet"}));
  switch (item.kind) {
  case "call":
    return [item.failed && !view.opened.get(item.key + "/result") && h("p", {class: "bad mono"}, failureLine(item.result.text)), links,
      foldable(view, item, "input", "Input", jsonText(item.input), false, redraw), item.result && foldable(view, item, "result", "Result", item.result.text, false, redraw, item.result), imagesOf(item.result)];
  case "answer":
    return [foldable(view, item, "reasoning", "Reasoning", item.reasoning, false, redraw), textPart(view, item, "text", item.text, redraw, {seq: item.answerSeq, cut: item.cut}),
      imagesOf(item), item.stop && !["end", "tool_use"].includes(item.stop) && h("p", {class: "muted small"}, "stopped: " + item.stop)];
  case "folded": case "other":
    return foldable(view, item, "text", "Show", item.text, Boolean(item.open), redraw);
  case "start":
    return [h("p", null, oneLine(item.directive), " with ", oneLine(item.model)), item.warnings.map((w) => h("p", {class: "warn"}, oneLine(w, 400))), foldable(view, item, "facts",
      "Limits and capabilities", jsonText({limits: item.facts.limits, capabilities: item.facts.capabilities}), false, redraw)];
  case "question":
    return [textPart(view, item, "text", item.text, redraw), item.answer ? h("p", null, h("strong", null, "Answer: "), oneLine(item.answer)) : h("p", {class: "warn"}, "waits for an answer")];
  default:
    return [textPart(view, item, "text", item.text, redraw), imagesOf(item), links];
  }
}

// foldable is a part that is there as a button with its size until it is opened.
function foldable(view, item, name, title, value, open, redraw, source = item) {
  if (!value) return null;
  const key = item.key + "/" + name, shown = view.opened.get(key) ?? open;
  const toggle = button(title + (shown ? "" : " (" + bytes(value.length) + (source.cut ? " or more" : "") + ")"), () => {
    view.opened.set(key, !shown);
    redraw();
    view.rows.get(item.key).el.querySelector("[data-part=\"" + name + "\"]").focus({preventScroll: true});
  }, {class: "fold", "aria-expanded": String(shown), dataset: {part: name}});
  return h("div", {class: "foldable"}, toggle, shown && textPart(view, item, name, value, redraw, source));
}

// textPart shows the beginning of a text, all of it when asked, and a text that the server has cut as a whole from the server.
function textPart(view, item, name, value, redraw, source = item) {
  if (!value) return null;
  const key = item.key + "/" + name + "/all", level = view.opened.get(key) || 0;
  const whole = typeof level === "string" ? level : value, parts = typeof level === "string" ? view.opened.get(key + "/n") || 1 : level;
  const limit = name === "text" && item.kind === "answer" ? [60, 6000] : name === "text" ? [12, 1200] : [30, 3000];
  const begin = parts === 0 ? cutLines(whole, ...limit) : {text: whole.slice(0, parts * partSize), all: whole.length <= parts * partSize};
  const grow = () => {
    if (typeof level === "string") view.opened.set(key + "/n", parts + 1);
    else view.opened.set(key, level + 1);
    redraw();
  };
  const load = async () => {
    const event = await view.ctx.api.get(threadPath(view.ctx.id, "events/" + (source.seq || item.seq)), view.stop.signal);
    view.opened.set(key, wholeText(event, name) || value);
    redraw();
  };
  return h("div", {class: "event-text"}, textBlocks(begin.text),
    !begin.all && button("Show more (" + bytes(whole.length - begin.text.length) + ")", grow, {class: "quiet"}),
    begin.all && source.cut && typeof level !== "string" && button("Load the whole text", load, {class: "quiet"}));
}

// revealParts opens parts of an item as far as a text goes that is looked for.
function revealParts(view, item, parts, query) {
  const row = view.rows.get(item.key), low = query.toLowerCase();
  for (const name of parts) {
    const value = {text: item.text, reasoning: item.reasoning, input: jsonText(item.input), result: item.result && item.result.text}[name];
    if (!value) continue;
    view.opened.set(item.key + "/" + name, true);
    const key = item.key + "/" + name + "/all", at = value.toLowerCase().indexOf(low);
    if (typeof view.opened.get(key) !== "string") view.opened.set(key, Math.max(view.opened.get(key) || 0, Math.ceil((at + low.length) / partSize)));
  }
  if (row.item) drawRow(view, row, row.item);
}

function wholeText(event, name) {
  const p = (event.event || event).payload || {};
  if (name === "input") return jsonText(p.input);
  if (name === "reasoning" && p.text === undefined) return (p.blocks || []).filter((b) => b.type === "reasoning").map((b) => b.text).join("\n");
  if (p.blocks) return p.blocks.filter((b) => b.type === "text").map((b) => b.text).join("\n");
  return p.text ?? p.message ?? jsonText(p.outputs ?? p.outcome ?? p);
}

// textBlocks are the parts of a long text, each laid out on its own.
export function textBlocks(value) {
  const blocks = [];
  for (let at = 0; at < value.length;) {
    let end = Math.min(value.length, at + chunkSize);
    if (end < value.length) {
      const line = value.lastIndexOf("\n", end);
      if (line > at) end = line + 1;
      else if (/[\ud800-\udbff]/.test(value[end - 1])) end--;
    }
    blocks.push(h("div", {class: "text-block"}, value.slice(at, end).replace(/\n$/, "")));
    at = end;
  }
  return blocks;
}

function imagesOf(source) {
  if (!source || !source.images || source.images.length === 0) return null;
  return h("ul", {class: "images"}, source.images.map((image) => h("li", null, "Image, " + oneLine(image.media_type || "unknown type"), h("span", {class: "muted mono"}, " " + oneLine(image.ref || "", 16)))));
}

// drawLive adds what has come of an answer that is being written; it never draws again what is there.
function drawLive(view, row, item) {
  const {live} = item;
  if (row.state !== "live") {
    row.state = "live";
    row.el.className = "event e-live";
    row.seen = {text: 0, reasoning: 0};
    row.head = h("span", {class: "muted small"});
    row.parts = {reasoning: h("div", {class: "event-text reasoning", hidden: true}), text: h("div", {class: "event-text"})};
    fill(row.el, h("header", null, h("strong", null, "Model"), row.head), row.parts.reasoning, row.parts.text);
  }
  setText(row.head, "writes\u2026 " + (live.tool ? "call of " + oneLine(live.tool, 60) + ", " + bytes(live.bytes) : plural(live.seen, "character")));
  for (const name of ["reasoning", "text"]) {
    const value = live[name];
    if (value.length < row.seen[name]) {
      clear(row.parts[name]);
      row.seen[name] = 0;
    }
    let fresh = value.slice(row.seen[name]);
    if (!fresh) continue;
    row.seen[name] = value.length;
    row.parts[name].hidden = false;
    if (fresh.length > chunkSize * mostChunks) fresh = fresh.slice(-chunkSize * mostChunks);
    appendLive(row.parts[name], fresh);
  }
}

function appendLive(el, fresh) {
  const last = el.lastChild;
  if (last && last.textContent.length + fresh.length < chunkSize) last.append(h("span", null, fresh));
  else el.append(...textBlocks(fresh));
  while (el.childNodes.length > mostChunks) el.firstChild.remove();
  if (last && last.childNodes.length > 60) setText(last, last.textContent);
}
