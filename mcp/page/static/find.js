// Find in a transcript: in what is held first, and then by asking the server where else.

import {button, h, setText} from "./dom.js";
import {clean} from "./format.js";
import {jsonText} from "./events.js";

const mostRanges = 1000;

// itemParts are the texts of an item by the name of the part that shows them.
export function itemParts(item) {
  return {
    title: item.title || "", text: item.text || "", reasoning: item.reasoning || "", input: item.input === undefined ? "" : jsonText(item.input), result: item.result ? item.result.text : "",
    answer: item.answer || "",
  };
}

// partsWith are the names of the parts of an item that have a text, whatever its case.
export function partsWith(item, query) {
  const low = query.toLowerCase();
  return Object.entries(itemParts(item)).filter(([, value]) => value.toLowerCase().includes(low)).map(([name]) => name);
}

// findBar is {el, said, close, marked}. source shows an event by its number, and loads events that have a text.
export function findBar(view, source) {
  const bar = {query: "", at: null, busy: false, pending: 0};
  bar.input = h("input", {type: "search", "aria-label": "Find in this transcript", placeholder: "Find\u2026", maxlength: 200, spellcheck: "false", autocomplete: "off"});
  bar.said = h("span", {class: "muted small", role: "status"});
  const go = (way) => {
    const query = bar.input.value.trim();
    if (!query || bar.busy) return undefined;
    if (query !== bar.query) Object.assign(bar, {query, at: null});
    bar.busy = true;
    return findStep(view, source, bar, way).catch((error) => error.name !== "AbortError" && setText(bar.said, error.message)).finally(() => { bar.busy = false; });
  };
  bar.input.addEventListener("keydown", (e) => {
    if (e.key === "Enter") {
      e.preventDefault();
      go(e.shiftKey ? -1 : 1);
    } else if (e.key === "Escape" && bar.input.value) {
      e.stopPropagation();
      bar.input.value = "";
      forgetFind(bar);
    }
  });
  bar.input.addEventListener("input", () => bar.input.value.trim() === "" && forgetFind(bar));
  bar.el = h("span", {class: "find-bar", role: "search"}, bar.input, button("\u2191", () => go(-1), {"aria-label": "Find the one before", class: "quiet"}), button("\u2193", () => go(1),
    {"aria-label": "Find the next one", class: "quiet"}));
  bar.marked = () => {
    if (!bar.query || bar.pending) return;
    bar.pending = requestAnimationFrame(() => {
      bar.pending = 0;
      markFound(view, bar);
    });
  };
  bar.close = () => forgetFind(bar);
  return bar;
}

function forgetFind(bar) {
  Object.assign(bar, {query: "", at: null});
  setText(bar.said, "");
  if (globalThis.CSS && CSS.highlights) {
    CSS.highlights.delete("find");
    CSS.highlights.delete("find-current");
  }
}

// step goes to the next place (way 1) or the one before (way -1). Where nothing was found yet, it begins at what is looked at.
async function findStep(view, source, bar, way) {
  const items = view.items || [];
  let i = bar.at ? items.findIndex((item) => item.key === bar.at.key) : -1;
  if (i >= 0) {
    const ranges = rangesIn(view.rows.get(items[i].key).el, bar.query), next = bar.at.nth + way;
    if (next >= 0 && next < ranges.length) return findArrive(view, bar, items[i], next);
    i += way;
  } else {
    i = lookedAt(view, items, way);
  }
  for (; i >= 0 && i < items.length; i += way) {
    if (items[i].kind !== "live" && partsWith(items[i], bar.query).length > 0) return findArrive(view, bar, items[i], way > 0 ? 0 : Infinity);
  }
  return findFurther(view, source, bar, way);
}

function lookedAt(view, items, way) {
  const top = view.scroller.scrollTop, bottom = top + view.scroller.clientHeight;
  const seen = (item) => {
    const row = view.rows.get(item.key);
    return row && row.el.offsetTop + row.el.offsetHeight > top && row.el.offsetTop < bottom;
  };
  return way > 0 ? Math.max(0, items.findIndex(seen)) : items.findLastIndex(seen);
}

async function findFurther(view, source, bar, way) {
  const {held} = view;
  if (way > 0 ? held.atEnd : held.atStart) return void setText(bar.said, bar.at ? "No further place." : way > 0 ? "Not found from here on." : "Not found before.");
  setText(bar.said, "Looking\u2026");
  let from = way > 0 ? held.last() : held.first();
  for (;;) {
    const page = await source.load(way > 0 ? {after: String(from), q: bar.query} : {before: String(from), q: bar.query});
    const found = way > 0 ? page.events[0] : page.events[page.events.length - 1];
    if (found) {
      const shown = await source.show(found.seq);
      if (shown) return findArrive(view, bar, shown.item, way > 0 ? 0 : Infinity);
      return void setText(bar.said, "");
    }
    const next = way > 0 ? page.next : page.first;
    if ((way > 0 ? page.at_end : page.at_start) || !next || next === from) return void setText(bar.said, bar.at ? "No further place." : "Not found.");
    from = next;
  }
}

// arrive opens the parts of an item that have the text, and shows the nth place.
function findArrive(view, bar, item, nth) {
  view.reveal(item, partsWith(item, bar.query), bar.query);
  const row = view.rows.get(item.key), ranges = rangesIn(row.el, bar.query);
  bar.at = {key: item.key, nth: Math.max(0, Math.min(ranges.length - 1, nth))};
  const range = ranges[bar.at.nth], box = view.scroller.getBoundingClientRect();
  const place = range ? range.getBoundingClientRect() : row.el.getBoundingClientRect();
  if (place.top < box.top + 40 || place.bottom > box.bottom - 40) view.scroller.scrollTop += place.top - box.top - box.height / 3;
  setText(bar.said, ranges.length > 1 ? "Place " + (bar.at.nth + 1) + " of " + ranges.length + " in event " + item.seq : "In event " + item.seq + (ranges.length === 0 ? ", in a part that is not loaded" : ""));
  markFound(view, bar);
}

function markFound(view, bar) {
  if (!globalThis.CSS || !CSS.highlights || !bar.query) return;
  const all = rangesIn(view.list, bar.query);
  CSS.highlights.set("find", new Highlight(...all));
  const row = bar.at && view.rows.get(bar.at.key), current = row && rangesIn(row.el, bar.query)[bar.at.nth];
  if (current) {
    const one = new Highlight(current);
    one.priority = 1;
    CSS.highlights.set("find-current", one);
  } else CSS.highlights.delete("find-current");
}

// rangesIn are the places of a text in an element, whatever its case.
export function rangesIn(el, query) {
  const low = clean(query).toLowerCase(), ranges = [];
  const walk = document.createTreeWalker(el, NodeFilter.SHOW_TEXT);
  for (let node = walk.nextNode(); node && ranges.length < mostRanges; node = walk.nextNode()) {
    const value = node.data.toLowerCase();
    if (value.length !== node.data.length) continue;
    for (let at = value.indexOf(low); at >= 0 && ranges.length < mostRanges; at = value.indexOf(low, at + low.length)) {
      const range = new Range();
      range.setStart(node, at);
      range.setEnd(node, at + low.length);
      ranges.push(range);
    }
  }
  return ranges;
}
