// The tree of threads: one row a chain, kept by its key. A changed thread redraws its own row only.

import {h, svg, icon, clear, setText} from "./dom.js";
import {oneLine, money, clock, count, ago, duration, percent, plural} from "./format.js";
import {stateOf, titleOf, hasEnded, budgetOf, spendOf, errorOf} from "./board.js";

const shapes = {
  asks: ["M3 1.5h10a2 2 0 0 1 2 2V9a2 2 0 0 1-2 2H8l-3.5 3.5V11H3a2 2 0 0 1-2-2V3.5a2 2 0 0 1 2-2z", "M8 3.7v3M8 8.9v.1"],
  working: ["M8 2a6 6 0 1 1 0 12A6 6 0 0 1 8 2", "M8 6.2a1.8 1.8 0 1 1 0 3.6 1.8 1.8 0 0 1 0-3.6"],
  waiting: ["M8 2a6 6 0 1 1 0 12A6 6 0 0 1 8 2", "M6.2 5.5v5M9.8 5.5v5"],
  stopping: ["M2.5 2.5h11v11h-11z", "M6 6h4v4H6z"],
  starting: ["M8 2a6 6 0 1 1 0 12A6 6 0 0 1 8 2"],
  retries: ["M13.5 8a5.5 5.5 0 1 1-1.7-4", "M13.5 1.5v3h-3"],
  queued: ["M8 2a6 6 0 1 1 0 12A6 6 0 0 1 8 2", "M8 5v3.2l2 1.3"],
  completed: ["M2.5 8.5l3.7 3.7L13.5 4.3"],
  failed: ["M8 1.5L15 14H1z", "M8 6v3.8M8 12v.1"],
  cancelled: ["M2.5 2.5h11v11h-11z", "M5 8h6"],
  continued: ["M3 4l4 4-4 4M8.5 4l4 4-4 4"],
  unknown: ["M8 2a6 6 0 1 1 0 12A6 6 0 0 1 8 2"],
};

// stateMark is the shape of a state, in its colour.
export function stateMark(state) {
  const [outline, ...inner] = shapes[state] || shapes.unknown;
  return svg("svg", {viewBox: "0 0 16 16", width: 16, height: 16, class: "mark mark-" + state, "aria-hidden": "true"},
    svg("path", {d: outline, class: "outline"}), inner.map((d) => svg("path", {d, class: "inner"})));
}

// bar draws a budget: spent, reserved by those below, left. update(budget) changes it.
export function bar() {
  const spent = h("i", {class: "spent"}), reserved = h("i", {class: "reserved"});
  const el = h("span", {class: "bar"}, spent, reserved);
  const width = (part, share) => {
    const wanted = (Math.max(0, Math.min(1, share)) * 100).toFixed(1) + "%";
    if (part.dataset.width !== wanted) {
      part.dataset.width = wanted;
      part.style.setProperty("width", wanted);
    }
  };
  const update = (b) => {
    const used = b ? b.spent / b.limit : 0;
    width(spent, used);
    width(reserved, b ? Math.min(b.reserved / b.limit, 1 - Math.min(1, used)) : 0);
    el.classList.toggle("none", !b);
    el.classList.toggle("near", used >= 0.8 && used < 1);
    el.classList.toggle("over", used >= 1);
  };
  return {el, update};
}

// budgetText says a budget in words.
export function budgetText(b) {
  if (!b) return "no spend limit";
  const held = b.reserved > 0 ? ", " + money(b.reserved) + " reserved" : "";
  return money(b.spent) + " of " + money(b.limit) + " spent" + held + ", " + money(b.left) + " left";
}

// age is how long a row has worked, or how long ago it ended.
function age(row, skew) {
  if (hasEnded(row)) return ago(row.ended_at || row.updated_at, skew);
  const ms = Date.now() + skew - Date.parse(row.created_at);
  return Number.isFinite(ms) ? duration(Math.max(0, Math.floor(ms / 1000) * 1000)) : "";
}

// makeTree returns the tree of a board. onOpen(key) is called for the row that a person chooses.
export function makeTree({board, skew, onOpen, memory}) {
  const tree = {
    board, skew, onOpen, views: new Map(), order: [], active: "", selected: "",
    opened: new Map(memory.get("opened") || []), filter: {text: "", state: "all"},
  };
  tree.el = h("div", {role: "tree", class: "tree", id: "threads", "aria-label": "Threads"});
  tree.remember = () => memory.set("opened", [...tree.opened].slice(-500));
  tree.el.addEventListener("pointerdown", (event) => { tree.pressed = event; });
  tree.el.addEventListener("click", (event) => clicked(tree, event));
  tree.el.addEventListener("keydown", (event) => pressed(tree, event));
  tree.el.addEventListener("focusin", (event) => {
    const row = event.target.closest("[role=treeitem]");
    if (row) activate(tree, row.dataset.key);
  });
  tree.update = (change) => updateTree(tree, change);
  tree.redraw = () => arrange(tree);
  tree.tick = () => tick(tree);
  tree.setFilter = (filter) => {
    Object.assign(tree.filter, filter);
    arrange(tree);
  };
  tree.select = (key) => select(tree, key);
  tree.move = (step) => {
    const here = tree.el.contains(document.activeElement) ? step : 0;
    moveTo(tree, Math.max(0, Math.min(tree.order.length - 1, indexOf(tree) + here)));
  };
  tree.ends = (last) => moveTo(tree, last ? tree.order.length - 1 : 0);
  tree.focus = () => moveTo(tree, Math.max(0, indexOf(tree)));
  tree.toggleAll = (open) => {
    for (const key of board.kids.keys()) if (key !== "") tree.opened.set(key, open);
    tree.remember();
    arrange(tree);
  };
  tree.reveal = (key) => reveal(tree, key);
  return tree;
}

function updateTree(tree, change) {
  for (const key of change.gone) tree.opened.delete(key);
  if (change.structure || filtering(tree)) return arrange(tree, change.changed);
  for (const key of change.changed) {
    const view = tree.views.get(key);
    if (view) draw(tree, view);
  }
}

function filtering(tree) {
  return tree.filter.text !== "" || tree.filter.state !== "all";
}

// isOpen decides once whether a row with others below begins opened: where something below still works.
function isOpen(tree, key) {
  if (!tree.opened.has(key)) tree.opened.set(key, tree.board.rows.size <= 30 || activeBelow(tree, key, 0));
  return tree.opened.get(key);
}

function activeBelow(tree, key, depth) {
  return depth < 50 && (tree.board.kids.get(key) || []).some((kid) => !hasEnded(tree.board.rows.get(kid)) || activeBelow(tree, kid, depth + 1));
}

const filters = {
  all: () => true,
  asks: (row) => Boolean(row.asks),
  working: (row) => !hasEnded(row) || Boolean(row.retry_at),
  failed: (row) => row.status === "error",
  ended: hasEnded,
};

// wanted are the keys that a filter leaves, with those above them; null without a filter.
function wanted(tree) {
  if (!filtering(tree)) return null;
  const found = new Map();
  const words = tree.filter.text.toLowerCase().split(/\s+/).filter(Boolean);
  for (const [key, row] of tree.board.rows) {
    const all = [row.name, row.directive, row.thread_id, row.key, row.model, stateOf(row), row.last_words, errorOf(row)].join(" ").toLowerCase();
    if (!filters[tree.filter.state](row) || !words.every((word) => all.includes(word))) continue;
    found.set(key, true);
    for (let up = row.parent; up && tree.board.rows.has(up) && !found.has(up); up = tree.board.rows.get(up).parent) found.set(up, false);
  }
  return found;
}

// listing is the visible rows from above: {key, level, at, of, kids, open, dim}.
function listing(tree) {
  const only = wanted(tree), list = [], seen = new Set();
  const walk = (above, level) => {
    const keys = (tree.board.kids.get(above) || []).filter((key) => !seen.has(key) && (!only || only.has(key)));
    keys.forEach((key, i) => {
      seen.add(key);
      const kids = (tree.board.kids.get(key) || []).length > 0;
      const open = kids && (only ? true : isOpen(tree, key));
      list.push({key, level, at: i + 1, of: keys.length, kids, open, dim: Boolean(only) && !only.get(key)});
      if (open) walk(key, level + 1);
    });
  };
  walk("", 1);
  return list;
}

// arrange puts the rows in their order, and moves only those that are not in their place.
function arrange(tree, changed) {
  tree.order = listing(tree);
  const visible = new Set(tree.order.map((place) => place.key));
  for (const [key, view] of tree.views) {
    if (visible.has(key)) continue;
    view.el.remove();
    tree.views.delete(key);
  }
  let next = tree.el.firstElementChild;
  for (const place of tree.order) {
    let view = tree.views.get(place.key);
    const fresh = !view;
    if (fresh) tree.views.set(place.key, view = makeRow(place.key));
    settle(view, place);
    if (fresh || !changed || changed.has(place.key)) draw(tree, view);
    if (view.el === next) next = next.nextElementSibling;
    else tree.el.insertBefore(view.el, next);
  }
  if (!visible.has(tree.active)) tree.active = tree.order.length > 0 ? tree.order[0].key : "";
  tabStop(tree);
}

function makeRow(key) {
  const part = (name, ...kids) => h("span", {class: name}, ...kids);
  const v = {key, said: {}, caret: part("caret"), mark: part("state"), name: part("name"), kindOf: part("directive-of"), badges: part("badges"), word: part("word"), words: part("words"),
    context: part("context-share"), contextFill: h("i"), turns: part("turns"), spent: part("spent-text"), age: part("age"), bar: bar()};
  v.el = h("div", {role: "treeitem", class: "row", tabindex: -1, dataset: {key}},
    v.caret, v.mark,
    part("what", part("line", v.name, v.badges), part("line second", v.word, v.words)), v.kindOf,
    h("span", {class: "context", title: "Share of the model's context window in use"}, part("gauge", v.contextFill), unseenLabel("context"), v.context),
    h("span", {class: "turns-cell", title: "Turns"}, unseenLabel("turns"), v.turns),
    part("money", unseenLabel("spent"), v.spent, v.bar.el), v.age);
  return v;
}

// unseenLabel names a number for those who hear it.
function unseenLabel(name) {
  return h("span", {class: "visually-hidden"}, name + " ");
}

// settle tells a row where it stands.
function settle(view, place) {
  const now = [place.level, place.at, place.of, place.kids, place.open, place.dim].join();
  if (view.place === now) return;
  view.place = now;
  const el = view.el;
  el.setAttribute("aria-level", place.level);
  el.setAttribute("aria-posinset", place.at);
  el.setAttribute("aria-setsize", place.of);
  if (place.kids) el.setAttribute("aria-expanded", place.open);
  else el.removeAttribute("aria-expanded");
  el.style.setProperty("--level", Math.min(place.level - 1, 12));
  el.classList.toggle("dim", place.dim);
  clear(view.caret);
  if (place.kids) view.caret.append(icon("open"));
}

// draw brings one row up to its data. What reads the same is not touched.
function draw(tree, v) {
  const row = tree.board.get(v.key);
  if (!row) return;
  const state = stateOf(row), budget = budgetOf(row);
  differs(v, "state", state, () => {
    clear(v.mark).append(stateMark(state));
    v.el.dataset.state = state;
  });
  put(v, "name", oneLine(titleOf(row), 120));
  put(v, "kindOf", oneLine(row.directive, 80));
  put(v, "word", state);
  put(v, "words", wordsOf(row));
  drawBadges(v, row);
  drawNumbers(v, row, budget);
  put(v, "age", age(row, tree.skew()));
}

function drawNumbers(v, row, budget) {
  const c = row.context, share = c && c.window > 0 ? c.used / c.window : NaN;
  put(v, "context", Number.isFinite(share) ? percent(share) : "");
  differs(v, "fill", Number.isFinite(share) ? Math.min(100, share * 100).toFixed(0) + "%" : "none", (fill) => {
    v.contextFill.parentElement.classList.toggle("none", fill === "none");
    v.contextFill.style.setProperty("width", fill === "none" ? "0" : fill);
    v.contextFill.classList.toggle("near", share >= 0.8);
  });
  const most = row.limits && row.limits.turns;
  put(v, "turns", row.turns || most ? count(row.turns || 0) + (most && !hasEnded(row) ? "/" + count(most) : "") : "");
  const spent = budget && !hasEnded(row) ? budget.spent : spendOf(row);
  put(v, "spent", hasEnded(row) || !budget ? money(spent) : money(spent) + " / " + money(budget.limit));
  v.bar.update(hasEnded(row) ? null : budget);
}

// wordsOf is the one line that says most about a row now.
function wordsOf(row) {
  if (row.asks && row.question) return oneLine(row.question.text);
  if (row.damaged && row.damaged.length > 0) return oneLine(row.damaged[0]);
  if (row.retry_at) return "Tried again " + clock(row.retry_at) + ": " + oneLine(errorOf(row));
  if (row.error) return oneLine(errorOf(row));
  return oneLine(row.last_words);
}

function drawBadges(v, row) {
  const list = badgesOf(row);
  differs(v, "badges", JSON.stringify(list), () => {
    clear(v.badges);
    for (const [name, label, title] of list) v.badges.append(badge(name, label, title));
  });
}

function badge(name, label, title) {
  return h("span", {class: "badge badge-" + name, title},
    name === "verified" ? icon("shield", "verified") : name === "broken" ? icon("broken") : null, label);
}

// badgesOf lists what else there is to see of a row: [kind, label, explanation].
export function badgesOf(row) {
  const list = [], chain = row.links || 1;
  if (row.kind === "set") list.push(["set", entriesText(row), "A set: one directive for each item of a list"]);
  if (row.kind === "tool") list.push(["tool", "tool", "A tool that runs in the background"]);
  if (chain > 1) list.push(["chain", "\u00d7" + chain, chain + " threads, one after the other, that do one piece of work"]);
  if (row.verified === "yes") list.push(["verified", "", "Verified: what it left is what was signed"]);
  if (row.verified === "no") list.push(["broken", "not verified", "What it left is not what was signed"]);
  if (row.unread > 0) list.push(["unread", plural(row.unread, "message") + " unread", "Messages to it that it has not read"]);
  if (row.damaged && row.damaged.length > 0) list.push(["broken", "damaged", row.damaged.join("; ")]);
  if (row.changes) {
    const files = plural((row.changes.added || 0) + (row.changes.modified || 0) + (row.changes.deleted || 0), "file");
    list.push(row.applied ? ["changes", files + " applied", "What it has changed in its workspace was applied"] : ["changes", files + " changed", "It has changed files in its workspace"]);
  }
  return list;
}

function entriesText(row) {
  const e = row.entries;
  return e ? (e.completed || 0) + "/" + (e.items || 0) + " done" + (e.failed ? ", " + e.failed + " failed" : "") : "set";
}

function put(view, name, value) {
  differs(view, name, value, () => setText(view[name], value));
}

function differs(view, name, value, then) {
  if (view.said[name] === value) return;
  view.said[name] = value;
  then(value);
}

function tick(tree) {
  const skew = tree.skew();
  for (const view of tree.views.values()) {
    const row = tree.board.get(view.key);
    if (row) put(view, "age", age(row, skew));
  }
}

function indexOf(tree) {
  return tree.order.findIndex((place) => place.key === tree.active);
}

function activate(tree, key) {
  if (tree.active === key) return;
  tree.active = key;
  tabStop(tree);
}

// tabStop lets Tab reach one row: the one that was used last.
function tabStop(tree) {
  if (tree.stop && tree.stop !== tree.active) {
    const old = tree.views.get(tree.stop);
    if (old) old.el.setAttribute("tabindex", -1);
  }
  const view = tree.views.get(tree.active);
  if (view) view.el.setAttribute("tabindex", 0);
  tree.stop = tree.active;
}

function moveTo(tree, index) {
  const place = tree.order[index];
  if (!place) return;
  activate(tree, place.key);
  const el = tree.views.get(place.key).el;
  el.focus({preventScroll: true});
  el.scrollIntoView({block: "nearest"});
}

function select(tree, key) {
  const old = tree.views.get(tree.selected), now = tree.views.get(key);
  if (old && old !== now) old.el.removeAttribute("aria-selected");
  tree.selected = key;
  if (!now) return;
  now.el.setAttribute("aria-selected", "true");
  activate(tree, key);
}

// reveal opens what is above a row.
function reveal(tree, key) {
  let moved = false, row = tree.board.get(key);
  for (let steps = 0; row && steps < 100; steps++) {
    row = tree.board.get(row.parent);
    if (row && !isOpen(tree, row.key)) {
      tree.opened.set(row.key, true);
      moved = true;
    }
  }
  if (moved) arrange(tree);
  select(tree, key);
}

function spread(tree, key, wide) {
  const place = tree.order.find((p) => p.key === key);
  if (!place || !place.kids || place.open === wide) return false;
  tree.opened.set(key, wide);
  tree.remember();
  arrange(tree, new Set());
  return true;
}

// meant is what a person has clicked. Rows can move while the button is down: it is what it was pressed on then.
function meant(tree, event) {
  const before = tree.pressed;
  const still = before && Math.hypot(before.clientX - event.clientX, before.clientY - event.clientY) < 5;
  return event.target === tree.el && still ? before.target : event.target;
}

function clicked(tree, event) {
  const target = meant(tree, event), el = target.closest("[role=treeitem]");
  if (!el || !el.isConnected) return;
  const key = el.dataset.key;
  if (target.closest(".caret") && el.hasAttribute("aria-expanded")) {
    spread(tree, key, el.getAttribute("aria-expanded") !== "true");
    return;
  }
  tree.onOpen(key);
}

function pressed(tree, event) {
  if (event.ctrlKey || event.metaKey || event.altKey) return;
  const act = treeKeys[event.key];
  if (!act) return;
  event.preventDefault();
  event.stopPropagation();
  act(tree, tree.active);
}

const treeKeys = {
  ArrowDown: (tree) => tree.move(1),
  ArrowUp: (tree) => tree.move(-1),
  Home: (tree) => tree.ends(false),
  End: (tree) => tree.ends(true),
  PageDown: (tree) => tree.move(10),
  PageUp: (tree) => tree.move(-10),
  Enter: (tree, key) => tree.onOpen(key, true),
  " ": (tree, key) => tree.onOpen(key, true),
  "*": (tree) => tree.toggleAll(true),
  ArrowRight: (tree, key) => spread(tree, key, true) || tree.move((tree.board.kids.get(key) || []).length > 0 ? 1 : 0),
  ArrowLeft: (tree, key) => {
    if (spread(tree, key, false)) return;
    const row = tree.board.get(key);
    const index = tree.order.findIndex((place) => row && place.key === row.parent);
    if (index >= 0) moveTo(tree, index);
  },
};
