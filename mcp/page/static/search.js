// Search over threads and what they have said and done.

import {h, dialog, clear, setText} from "./dom.js";
import {oneLine, ago, plural} from "./format.js";
import {stateOf, titleOf} from "./board.js";
import {stateMark} from "./tree.js";
import {fault} from "./form.js";

// openSearch asks for words. Threads on the board are found while one types; transcripts a moment later.
export function openSearch(ctx) {
  const input = h("input", {type: "search", placeholder: "Words in names, directives, transcripts", "aria-label": "Search for", autocomplete: "off", spellcheck: "false",
    role: "combobox", "aria-expanded": "false", "aria-controls": "search-results", "aria-autocomplete": "list"});
  const list = h("div", {id: "search-results", role: "listbox", "aria-label": "Found", class: "found"});
  const note = h("p", {class: "hint", role: "status"}, "Type at least two characters.");
  const box = dialog({title: "Search", wide: true, body: [input, note, list], focus: input, onclose: () => stop()});
  const state = {list, input, note, at: -1, timer: 0, running: null, choose: (key, tab) => {
    box.close();
    ctx.open(key, tab);
  }};
  const stop = () => {
    clearTimeout(state.timer);
    if (state.running) state.running.abort();
  };
  input.addEventListener("input", () => {
    stop();
    showFound(ctx, state, input.value.trim());
  });
  input.addEventListener("keydown", (event) => searchKey(state, event));
  return box;
}

function showFound(ctx, state, words) {
  clear(state.list);
  highlight(state, -1);
  if (words.length < 2) return setText(state.note, "Type at least two characters.");
  const seen = new Set();
  for (const row of ctx.board.rows.values()) {
    if (seen.size >= 20) break;
    const all = [row.name, row.directive, row.thread_id, row.key, row.last_words].join(" ").toLowerCase();
    if (!words.toLowerCase().split(/\s+/).every((word) => all.includes(word))) continue;
    seen.add(row.key);
    addFound(ctx, state, {key: row.key, row, second: row.last_words || row.directive});
  }
  setText(state.note, "Searching transcripts\u2026");
  state.timer = setTimeout(() => searchServer(ctx, state, words, seen), 250);
  return undefined;
}

async function searchServer(ctx, state, words, seen) {
  const running = state.running = new AbortController();
  try {
    const found = await ctx.api.get("search?q=" + encodeURIComponent(words), running.signal);
    for (const one of found.threads || []) {
      const row = ctx.board.find(one.thread_id);
      if (seen.has(one.thread_id) || row && seen.has(row.key)) continue;
      seen.add(row ? row.key : one.thread_id);
      addFound(ctx, state, {key: one.thread_id, row: row || one, second: one.directive});
    }
    for (const one of found.transcripts || found.matches || []) {
      const row = ctx.board.find(one.thread_id);
      addFound(ctx, state, {key: one.thread_id, tab: "transcript", row: row || {thread_id: one.thread_id, name: one.name, directive: one.directive, status: one.status}, second: one.text || one.snippet, turn: one.turn});
    }
    const n = state.list.childElementCount;
    setText(state.note, n === 0 ? "Nothing found." : plural(n, "place") + (found.partial || found.next_cursor ? ", and there may be more" : ""));
  } catch (error) {
    if (running.signal.aborted) return;
    setText(state.note, "");
    state.list.append(fault(error));
  }
}

function addFound(ctx, state, {key, tab, row, second, turn}) {
  const at = state.list.querySelectorAll("[role=option]").length;
  const el = h("div", {role: "option", id: "found-" + at, class: "hit", "aria-selected": "false", onclick: () => state.choose(key, tab)},
    stateMark(stateOf(row)),
    h("span", {class: "name"}, oneLine(titleOf(row), 100)),
    h("span", {class: "when"}, turn ? "turn " + turn : ago(row.updated_at, ctx.skew())),
    h("span", {class: "words"}, oneLine(second, 240)));
  state.list.append(el);
  state.input.setAttribute("aria-expanded", "true");
  if (state.at < 0) highlight(state, 0);
}

function highlight(state, at) {
  const options = [...state.list.querySelectorAll("[role=option]")];
  state.at = options.length === 0 ? -1 : Math.max(0, Math.min(options.length - 1, at));
  options.forEach((el, i) => el.setAttribute("aria-selected", String(i === state.at)));
  if (state.at < 0) {
    state.input.removeAttribute("aria-activedescendant");
    state.input.setAttribute("aria-expanded", "false");
    return;
  }
  state.input.setAttribute("aria-activedescendant", options[state.at].id);
  options[state.at].scrollIntoView({block: "nearest"});
}

function searchKey(state, event) {
  if (event.key === "ArrowDown") highlight(state, state.at + 1);
  else if (event.key === "ArrowUp") highlight(state, state.at - 1);
  else if (event.key === "Enter" && state.at >= 0) state.list.querySelectorAll("[role=option]")[state.at].click();
  else return;
  event.preventDefault();
}
