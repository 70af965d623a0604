// One thread: its state, limits and money, what can be done with it, and the tabs.

import {h, button, icon, clear, fill, setText} from "./dom.js";
import {clean, oneLine, money, count, ago, duration, percent, clock} from "./format.js";
import {stateOf, titleOf, hasEnded, budgetOf, spendOf, errorOf} from "./board.js";
import {stateMark, bar, budgetText, badgesOf} from "./tree.js";
import {makeActions} from "./actions.js";
import {questionCard, questionId, limitNames} from "./ask.js";
import {fault} from "./form.js";

// makeDetail shows the thread with an id: a key of the board, or any thread. It begins with a tab, which is told the
// place it is to show (at).
// The view gives back {el, close, update, tick, showTab, act}.
export function makeDetail(page, {id, tab, at}, tabs) {
  const d = {page, id, row: rowOf(page, id), tabs, tabID: tab, at, open: null, card: null, cardID: "", listeners: new Set()};
  d.ctx = {
    ...page, get id() { return d.shown || (d.row ? d.row.thread_id : d.id); }, get key() { return d.row ? d.row.key : d.id; },
    row: () => d.row, rows: () => [...page.board.rows.values()], gone: () => page.open(""),
    get at() { return d.at; },
    subscribe: (fn) => {
      d.listeners.add(fn);
      return () => d.listeners.delete(fn);
    },
  };
  buildDetail(d);
  if (d.row) begin(d);
  else fetchRow(d);
  return {
    el: d.el, focus: () => d.title.focus(),
    update: (change) => updateDetail(d, change),
    tick: () => tickDetail(d),
    showTab: (name, at) => {
      d.at = at;
      if (at && d.tabID === name) closeTab(d);
      showTab(d, name);
    },
    step: (by) => showTab(d, d.tabs[(d.tabs.findIndex((t) => t.id === d.tabID) + by + d.tabs.length) % d.tabs.length].id, true),
    press: (operation) => Boolean(d.row) && !d.lost && d.actions.press(operation),
    close: () => closeTab(d),
  };
}

// rowOf is the row that shows a thread. An earlier thread of a chain has the row of the chain.
function rowOf(page, id) {
  const found = page.board.find(id);
  if (found) return found;
  for (const row of page.board.rows.values()) if (row.chain && row.chain.includes(id)) return row;
  return null;
}

function buildDetail(d) {
  d.title = h("h1", {tabindex: -1, class: "title"});
  d.mark = h("span", {class: "state"});
  d.word = h("span", {class: "word"});
  d.sub = h("p", {class: "sub"});
  d.badges = h("span", {class: "badges"});
  d.chain = h("div", {class: "chain"});
  d.bar = bar();
  d.facts = h("dl", {class: "standing"});
  d.money = h("p", {class: "money-text"});
  d.asks = h("div", {class: "asks-here"});
  d.trouble = h("div", {class: "trouble"});
  d.actions = makeActions(d.ctx);
  d.tablist = h("div", {role: "tablist", class: "tabs", "aria-label": "What to see of it"});
  d.panel = h("div", {role: "tabpanel", class: "panel", id: "tab-panel"});
  d.news = h("div", {class: "news"});
  d.body = h("div", {class: "detail-body", hidden: true},
    d.asks, d.trouble, h("div", {class: "gauges"}, h("div", {class: "purse"}, d.bar.el, d.money), d.facts),
    d.actions.el, d.actions.place, d.chain, d.news, d.tablist, d.panel);
  d.place = h("div", {class: "refusal"});
  d.gone = h("div", {class: "refusal", role: "status"});
  d.el = h("article", {class: "detail"},
    h("header", null,
      button(icon("back"), () => d.page.open(""), {class: "quiet icon-only back", "aria-label": "Back to all threads"}),
      h("div", {class: "heading"}, h("div", {class: "title-line"}, d.mark, d.title, d.badges), d.sub)),
    d.place, d.gone, d.body);
  d.tablist.addEventListener("keydown", (event) => tabKey(d, event));
}

// fetchRow makes a row of a thread that the board does not show.
async function fetchRow(d) {
  setText(d.title, d.id);
  setText(d.sub, d.page.board.loaded ? "Looking for it\u2026" : "");
  try {
    const all = await d.page.api.get("threads/" + encodeURIComponent(d.id));
    d.row = rowOf(d.page, d.id) || rowFrom(all);
    setText(d.sub, "");
    begin(d);
  } catch (error) {
    if (d.row) return;
    setText(d.sub, "");
    fill(d.place, fault(error), h("p", null, button("Show all threads", () => d.page.open(""), {class: "primary"})));
  }
}

function rowFrom(all) {
  const s = all.status || {}, b = s.budget;
  return {
    key: s.thread_id, thread_id: s.resolved_thread_id || s.thread_id, parent: s.parent_id, kind: all.thread && all.thread.kind || "directive",
    directive: s.directive, name: s.name, status: s.status, queued: s.queued, model: s.model, worker: s.worker, limits: s.limits, unread: s.unread_messages,
    turns: s.cost && s.cost.turns, tokens: s.token_count, spend: s.cost && s.cost.spend, tree_spend: b ? b.tree_spend : undefined,
    budget: b ? {limit: b.max, spent: b.actual, reserved: b.reserved, left: b.remaining} : undefined,
    last_words: s.last_text, error: s.error, changes: s.changes, created_at: s.created_at, updated_at: s.updated_at, verified: "unknown",
  };
}

function begin(d) {
  clear(d.place);
  d.body.hidden = false;
  d.shown = d.row.chain && d.row.chain.includes(d.id) && d.id !== d.row.thread_id && d.id !== d.row.key ? d.id : "";
  d.newest = d.row.thread_id;
  drawDetail(d);
  drawTabs(d);
  showTab(d, d.tabs.some((t) => t.id === d.tabID) ? d.tabID : d.tabs[0].id);
}

function updateDetail(d, change) {
  const row = rowOf(d.page, d.id);
  if (!row) {
    if (d.row && change.gone.has(d.row.key)) lookAgain(d);
    return;
  }
  const fresh = !d.row;
  if (d.lost) found(d);
  d.row = row;
  if (fresh) return begin(d);
  if (!change.changed.has(row.key)) return;
  drawDetail(d);
  for (const fn of [...d.listeners]) fn(row);
}

// lookAgain tells a thread that the board shows no more from one that is no more.
async function lookAgain(d) {
  try {
    await d.page.api.get("threads/" + encodeURIComponent(d.row.thread_id));
  } catch (error) {
    if (error.status === 404 && !rowOf(d.page, d.id)) lose(d);
  }
}

// lose shows that a thread was deleted elsewhere: nothing of it goes on, and nothing can be done with it.
function lose(d) {
  d.lost = true;
  closeTab(d);
  d.body.hidden = true;
  setText(d.sub, "");
  clear(d.mark);
  clear(d.badges);
  fill(d.gone, h("p", null, "This thread was deleted."), h("p", null, button("Back to all threads", () => d.page.open(""), {class: "primary"})));
}

function found(d) {
  d.lost = false;
  d.state = "";
  clear(d.gone);
  d.body.hidden = false;
  showTab(d, d.tabID);
}

function drawDetail(d) {
  const row = d.row, state = stateOf(row), budget = budgetOf(row);
  if (d.state !== state) clear(d.mark).append(stateMark(state));
  d.state = state;
  d.el.dataset.state = state;
  setText(d.title, oneLine(titleOf(row), 200));
  drawSub(d, row, state);
  fill(d.badges, badgesOf(row).map(([name, label, title]) => h("span", {class: "badge badge-" + name, title}, name === "verified" ? [icon("shield"), "verified"] : label)));
  d.bar.update(budget);
  setText(d.money, !budget ? money(spendOf(row)) + " spent" : hasEnded(row) ? money(spendOf(row)) + " of " + money(budget.limit) + " spent" : budgetText(budget));
  drawFacts(d, row);
  drawTrouble(d, row);
  drawQuestion(d, row);
  drawChain(d, row);
  d.actions.update(row);
}

function drawSub(d, row, state) {
  const time = hasEnded(row) ? ago(row.ended_at || row.updated_at, d.page.skew()) : "for " + duration(Math.max(0, Math.floor((Date.now() + d.page.skew() - Date.parse(row.created_at)) / 1000) * 1000));
  const parts = [state + " " + time];
  if (row.name && row.directive) parts.push(row.directive);
  if (row.model) parts.push(row.model);
  if (row.worker) parts.push("worker " + row.worker);
  setText(d.sub, parts.map((part) => oneLine(part, 100)).join(" \u00b7 "));
  d.sub.title = "Began " + clock(row.created_at) + (row.ended_at ? ", ended " + clock(row.ended_at) : "");
}

// drawFacts shows what is used of each limit, and how full the context is.
function drawFacts(d, row) {
  const limits = row.limits || {}, used = {turns: row.turns, tokens: row.tokens};
  const list = [];
  for (const name of ["turns", "tokens"]) {
    if (used[name] === undefined && limits[name] === undefined) continue;
    list.push(fact(limitNames[name][0], used[name] || 0, limits[name], limitNames[name][1]));
  }
  if (limits.duration_seconds > 0) list.push(h("div", null, h("dt", null, "Time limit"), h("dd", null, duration(limits.duration_seconds * 1000))));
  const c = row.context;
  if (c && c.used > 0) list.push(fact("Context", c.used, c.window, count, c.window ? percent(c.used / c.window) : ""));
  list.push(h("div", {class: "wide"}, h("dt", null, "Thread"), h("dd", null, h("code", {class: "id"}, row.thread_id), copyButton(d.ctx, row.thread_id))));
  const now = JSON.stringify([used, limits, c, row.thread_id]);
  if (d.facted === now) return;
  d.facted = now;
  fill(d.facts, list);
}

function fact(label, used, limit, show, note = "") {
  const share = limit > 0 ? Math.min(1, used / limit) : NaN;
  const gauge = Number.isFinite(share) ? h("span", {class: "gauge", "aria-hidden": "true"}, h("i", {class: share >= 0.8 ? "near" : "", css: {width: (share * 100).toFixed(0) + "%"}})) : null;
  return h("div", null, h("dt", null, label), h("dd", null, show(used), limit > 0 ? " / " + show(limit) : "", note && " (" + note + ")", gauge));
}

function copyButton(ctx, value) {
  if (!navigator.clipboard) return null;
  return button("Copy", async () => {
    await navigator.clipboard.writeText(value);
    ctx.say("Copied");
  }, {class: "quiet small", "aria-label": "Copy the thread's id"});
}

function drawTrouble(d, row) {
  const lines = [...(row.damaged || []), errorOf(row), ...(row.warnings || [])].filter(Boolean);
  const now = lines.join("\n");
  if (d.troubled === now) return;
  d.troubled = now;
  fill(d.trouble, (row.damaged || []).map((line) => h("p", {class: "bad"}, icon("broken"), clean(line))),
    errorOf(row) && h("p", {class: "bad"}, icon("broken"), clean(errorOf(row)), row.error.code && h("span", {class: "hint code"}, " ", row.error.code)),
    (row.warnings || []).map((line) => h("p", {class: "warning"}, clean(line))));
}

function drawQuestion(d, row) {
  const id = row.asks && row.question ? questionId(row) : "";
  if (id === d.cardID) return;
  d.cardID = id;
  d.card = id ? questionCard(d.ctx, row) : null;
  fill(d.asks, d.card && d.card.el);
}

// drawChain lets a person look at the threads of a chain one by one.
function drawChain(d, row) {
  const ids = row.chain || [], now = ids.join() + d.ctx.id;
  if (d.chained === now) return;
  d.chained = now;
  const first = (row.links || ids.length) - ids.length;
  fill(d.chain, ids.length > 1 && [
    h("span", {class: "hint"}, row.links + " threads, one after the other: "),
    ids.map((id, i) => button(String(first + i + 1), () => lookAt(d, id), {class: "link-of", "aria-pressed": String(id === d.ctx.id), title: id, "aria-label": "Thread " + (first + i + 1) + " of " + row.links})),
  ]);
  if (d.newest && row.thread_id !== d.newest && d.open) offerNewest(d, row);
}

function lookAt(d, id) {
  d.shown = id === d.row.thread_id ? "" : id;
  d.newest = d.row.thread_id;
  clear(d.news);
  drawChain(d, d.row);
  const tab = d.tabID;
  closeTab(d);
  showTab(d, tab);
}

// offerNewest says that the thread that is shown has been continued, and leaves a reader where he is.
function offerNewest(d, row) {
  d.shown = d.shown || d.newest;
  d.newest = row.thread_id;
  fill(d.news, h("p", {role: "status"}, "A new thread goes on with this work. ", button("Show it", () => lookAt(d, row.thread_id), {class: "primary small"})));
}

function drawTabs(d) {
  fill(d.tablist, d.tabs.map((tab) => h("button", {
    type: "button", role: "tab", id: "tab-" + tab.id, class: "tab", "aria-controls": "tab-panel", "aria-selected": "false", tabindex: -1,
    onclick: () => showTab(d, tab.id, true),
  }, tab.title)));
}

function showTab(d, id, told = false) {
  const tab = d.tabs.find((one) => one.id === id);
  if (!tab || !d.row || d.lost || d.open && d.tabID === id) return;
  closeTab(d);
  d.tabID = id;
  for (const el of d.tablist.children) {
    const chosen = el.id === "tab-" + id;
    el.setAttribute("aria-selected", String(chosen));
    el.setAttribute("tabindex", chosen ? 0 : -1);
    if (chosen) el.scrollIntoView({block: "nearest", inline: "nearest"});
  }
  d.panel.setAttribute("aria-labelledby", "tab-" + id);
  try {
    d.open = tab.make(d.ctx);
    fill(d.panel, d.open.el);
  } catch (error) {
    d.open = {close() {}};
    fill(d.panel, fault(error));
  }
  d.at = undefined;
  if (told) d.page.tabShown(d.id, id);
}

function closeTab(d) {
  if (d.open) d.open.close();
  d.open = null;
  clear(d.panel);
}

function tabKey(d, event) {
  const at = d.tabs.findIndex((tab) => tab.id === d.tabID);
  const to = {ArrowRight: at + 1, ArrowLeft: at - 1, Home: 0, End: d.tabs.length - 1}[event.key];
  if (to === undefined || event.ctrlKey || event.altKey || event.metaKey) return;
  event.preventDefault();
  event.stopPropagation();
  const next = d.tabs[(to + d.tabs.length) % d.tabs.length];
  showTab(d, next.id, true);
  d.tablist.querySelector("#tab-" + next.id).focus();
}

function tickDetail(d) {
  if (!d.row || d.lost) return;
  drawSub(d, d.row, stateOf(d.row));
  if (d.card) d.card.tick();
}
