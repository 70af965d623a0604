// The events of a transcript as people read them, without a document: items made of events, and the
// part of a long transcript that is held.

import {clean, oneLine} from "./format.js";

// foldEvents makes items of events in their order: {key, seq, upTo, kind, at, turn, …}. A tool's call and its result are one item, and an
// answer takes along the reasoning before it; events that only matter to programs have no item.
export function foldEvents(events) {
  const state = {items: [], calls: new Map(), reasoning: null, questions: new Map()};
  for (const e of events) {
    const fold = Object.hasOwn(folders, e.event_type) && folders[e.event_type];
    if (fold) fold(state, e, e.payload || {});
    else if (!unshown.has(e.event_type)) putItem(state, e, "other", {name: e.event_type, text: jsonText(e.payload)});
  }
  if (state.reasoning) state.items.push(state.reasoning);
  if (state.items.some((item) => item.kind === "end")) for (const item of state.questions.values()) item.answer = item.answer || "none; the thread has ended";
  const last = state.items.findLastIndex((item) => ["answer", "end", "trouble"].includes(item.kind) && item !== state.reasoning);
  return state.items.filter((item, i) => item.kind !== "live" || i > last);
}

const unshown = new Set(["checkpoint", "token_delta", "cognition_request"]);

function itemOf(e, kind, more) {
  return {key: kind + e.seq, seq: e.seq, upTo: e.seq, kind, at: e.timestamp, turn: (e.payload || {}).turn || 0, cut: Boolean(e.cut), ...more};
}

function putItem(state, e, kind, more) {
  const item = itemOf(e, kind, more);
  if (state.reasoning) {
    state.items.push(state.reasoning);
    state.reasoning = null;
  }
  state.items.push(item);
  return item;
}

const folders = {
  thread_started: (s, e, p) => putItem(s, e, "start", {title: "Started", directive: p.directive, model: p.model, warnings: p.warnings || [], facts: p}),
  thread_continued: (s, e, p) => putItem(s, e, "note", {title: "Continues " + p.previous_thread_id, thread: p.previous_thread_id}),
  thread_resumed: (s, e, p) => putItem(s, e, "note", {title: "Resumed as " + p.new_thread_id, thread: p.new_thread_id, text: p.message_preview}),
  thread_handoff: (s, e, p) => putItem(s, e, "end", {title: "Handed over to " + p.new_thread_id, thread: p.new_thread_id, text: outcomeText(p), failed: false}),
  thread_completed: (s, e, p) => putItem(s, e, "end", {title: "Completed", text: outcomeText(p), failed: false}),
  thread_error: (s, e, p) => putItem(s, e, "end", {title: "Failed", text: outcomeText(p), failed: true}),
  thread_cancelled: (s, e, p) => putItem(s, e, "end", {title: "Cancelled", text: outcomeText(p), failed: true}),
  tools_offered: (s, e, p) => putItem(s, e, "folded", {title: (p.tools || []).length + " tools offered", text: (p.tools || []).map((t) => t.name + "\n    " + oneLine(t.description, 300)).join("\n")}),
  system_prompt: (s, e, p) => putItem(s, e, "folded", {title: "System prompt", text: p.text}),
  context_injected: (s, e, p) => putItem(s, e, "folded", {title: "Context: " + (p.item_id || p.of || p.hook_id || ""), text: p.text || "", small: [p.position,
    p.bytes && p.bytes + " bytes"].filter(Boolean).join(", ")}),
  cognition_in: (s, e, p) => putItem(s, e, "in", {title: p.role === "user" ? "To the model" : "Said before", ...blocksOf(p.blocks)}),
  message: (s, e, p) => putItem(s, e, "in", {title: "Message from " + senderOf(p.from), ...blocksOf(p.blocks)}),
  cognition_reasoning: (s, e, p) => {
    if (s.reasoning) s.reasoning = {...s.reasoning, reasoning: s.reasoning.reasoning + "\n" + p.text, upTo: e.seq};
    else s.reasoning = itemOf(e, "answer", {title: "Model", reasoning: p.text, text: "", images: []});
  },
  cognition_out: foldAnswer,
  live: (s, e, p) => putItem(s, e, "live", {title: "Model", live: p, text: ""}),
  tool_call_start: (s, e, p) => s.calls.set(p.call_id, putItem(s, e, "call", {title: p.tool, call: p.call_id, input: p.input, threads: [], done: false})),
  tool_call_result: foldResult,
  child_thread_started: (s, e, p) => {
    const call = s.calls.get(p.call_id);
    if (call) call.threads.push(p.thread_id);
    else putItem(s, e, "note", {title: "Started thread " + p.thread_id, thread: p.thread_id});
  },
  error_classified: (s, e, p) => putItem(s, e, "trouble", {title: "The model's call failed", small: [p.category, p.status && "HTTP " + p.status, p.model].filter(Boolean).join(" \u00b7 "),
    text: p.message, failed: true}),
  retry: (s, e, p) => putItem(s, e, "trouble", {title: "Tries again in " + (p.delay_ms / 1000) + " s", small: [p.model, p.reason].filter(Boolean).join(" \u00b7 "), text: ""}),
  limit_exceeded: (s, e, p) => putItem(s, e, "trouble", {title: "Limit reached: " + p.limit_code, text: p.current_value + " of " + p.current_max, failed: true}),
  question_asked: (s, e, p) => s.questions.set(p.question_id, putItem(s, e, "question", {title: "Asks", text: p.text, small: (p.options || []).join(", "), answer: ""})),
  question_answered: (s, e, p) => {
    const asked = s.questions.get(p.question_id), answer = p.decision + (p.by ? " by " + p.by : "");
    if (asked) Object.assign(asked, {answer, upTo: e.seq});
    else putItem(s, e, "question", {title: "Answered", text: "", answer});
  },
  hook_fired: (s, e, p) => putItem(s, e, p.error ? "trouble" : "folded", {title: "Hook " + p.hook_id + " at " + p.event, small: p.source, text: p.error || p.result || "", failed: Boolean(p.error)}),
  directive_return: (s, e, p) => putItem(s, e, "folded", {title: "Returned outputs", text: jsonText(p.outputs), open: true}),
};

function foldAnswer(s, e, p) {
  const before = s.reasoning;
  s.reasoning = null;
  const blocks = blocksOf(p.blocks);
  putItem(s, e, "answer", {
    title: "Model", ...blocks, reasoning: blocks.reasoning || (before ? before.reasoning : ""), seq: before ? before.seq : e.seq, key: "answer" + e.seq, model: p.model, usage: p.usage, spend: p.spend,
    stop: p.stop_reason, answerSeq: e.seq,
  });
}

function foldResult(s, e, p) {
  const result = {text: p.text || "", failed: Boolean(p.is_error), ms: p.duration_ms, spend: p.spend, images: p.images || [], seq: e.seq, cut: Boolean(e.cut)};
  const call = s.calls.get(p.call_id);
  if (call && !call.done) Object.assign(call, {result, done: true, failed: result.failed, upTo: e.seq});
  else putItem(s, e, "call", {title: p.tool, call: p.call_id, input: undefined, threads: p.ended || [], result, done: true, failed: result.failed});
}

function blocksOf(blocks) {
  const all = Array.isArray(blocks) ? blocks : [];
  const of = (...types) => all.filter((b) => types.includes(b.type)).map((b) => b.text || "").join("\n");
  return {text: of("text"), reasoning: of("reasoning", "thinking"), images: all.flatMap((b) => b.images || []), calls: all.filter((b) => b.type === "tool_use").length};
}

function senderOf(from) {
  if (!from) return "somebody";
  return from.name ? from.kind + " " + from.name : from.kind;
}

function outcomeText(p) {
  const o = p.outcome || {};
  if (o.error) return [o.error.message, o.error.code && "(" + o.error.code + ")"].filter(Boolean).join(" ");
  return o.result || (o.outputs ? jsonText(o.outputs) : "");
}

// jsonText is a value as indented JSON; a text stays what it is.
export function jsonText(value) {
  if (value === undefined || value === null) return "";
  return typeof value === "string" ? value : JSON.stringify(value, null, 2);
}

const telling = ["path", "file_path", "file", "item_id", "url", "command", "cmd", "pattern", "query", "name", "operation", "thread_id", "key", "topic"];

// callGlance is what matters most of the input of a tool's call, in one line.
export function callGlance(input, max = 140) {
  let value = input;
  if (typeof value === "string") {
    try {
      value = JSON.parse(value);
    } catch {
      return oneLine(input, max);
    }
  }
  if (value === null || typeof value !== "object") return oneLine(value, max);
  const inner = value.parameters && typeof value.parameters === "object" ? value.parameters : {};
  const first = telling.filter((k) => typeof value[k] === "string").map((k) => value[k]);
  const second = telling.filter((k) => typeof inner[k] === "string").map((k) => inner[k]);
  const words = [...first.slice(0, 1), ...second.slice(0, 2)];
  if (words.length === 0) words.push(...Object.entries({...value, ...inner}).filter(([, v]) => ["string", "number", "boolean"].includes(typeof v)).slice(0, 3).map(([k, v]) => k + "=" + v));
  return oneLine(words.join("  "), max);
}

// failureLine is the first line of a failed result that says something.
export function failureLine(text, max = 160) {
  const all = clean(text);
  const found = all.match(/"(?:message|error)"\s*:\s*"((?:[^"\\]|\\.)*)"/);
  return oneLine(found ? found[1].replace(/\\n/g, " ").replace(/\\"/g, "\"") : all.split("\n").find((line) => line.trim() !== "") || "", max);
}

const pageEvents = 1500, pageText = 300000, liveText = 200000;

// makeHeld holds a part of a transcript: pages of events next to each other, at most so many. What is streamed of an answer becomes one
// event of the type live, until the answer is there.
export function makeHeld(mostPages = 8) {
  const held = {pages: [], atStart: false, atEnd: false, newest: 0};
  held.events = () => held.pages.flatMap((page) => page.events);
  held.first = () => held.pages.length ? held.pages[0].first : 0;
  held.last = () => held.pages.length ? held.pages[held.pages.length - 1].last : 0;
  held.clear = () => Object.assign(held, {pages: [], atStart: false, atEnd: false});
  held.before = (page) => {
    if (page.events.length) held.pages.unshift(pageOf(page.events));
    if (held.pages.length && page.first) held.pages[0].first = Math.min(held.pages[0].first, page.first);
    while (held.pages.length > mostPages) {
      held.pages.pop();
      held.atEnd = false;
    }
  };
  // after takes a page behind those that are held; it tells whether nothing but the end of a streamed answer changed.
  held.after = (page) => {
    let onlyLive = page.events.length > 0;
    for (const e of page.events) {
      if (e.seq <= held.last()) continue;
      onlyLive = takeEvent(held, e) && onlyLive;
    }
    if (held.pages.length && page.next) held.pages[held.pages.length - 1].last = Math.max(held.last(), page.next);
    while (held.pages.length > mostPages) {
      held.pages.shift();
      held.atStart = false;
      onlyLive = false;
    }
    return onlyLive;
  };
  return held;
}

function pageOf(events) {
  const page = {events: [], first: events[0].seq, last: events[events.length - 1].seq, size: 0};
  for (const e of events) addEvent(page, e);
  return page;
}

function takeEvent(held, e) {
  let page = held.pages[held.pages.length - 1];
  if (!page || page.events.length >= pageEvents || page.size >= pageText) {
    page = {events: [], first: e.seq, last: e.seq, size: 0};
    const live = held.pages.length && endingLive(held.pages[held.pages.length - 1].events);
    if (live) {
      held.pages[held.pages.length - 1].events.pop();
      page.events.push(live);
    }
    held.pages.push(page);
  }
  page.last = e.seq;
  return addEvent(page, e);
}

function endingLive(events) {
  const last = events[events.length - 1];
  return last && last.event_type === "live" ? last : null;
}

// add puts an event on a page, and tells whether it only lengthened the live text at its end.
function addEvent(page, e) {
  const live = endingLive(page.events), p = e.payload || {};
  if (e.event_type === "token_delta") {
    if (live && live.payload.turn === p.turn) {
      lengthen(live.payload, p);
      return true;
    }
    if (live) page.events.pop();
    const payload = {turn: p.turn, text: "", reasoning: "", tool: "", bytes: 0, dropped: 0, seen: 0};
    lengthen(payload, p);
    page.events.push({seq: e.seq, event_type: "live", timestamp: e.timestamp, payload});
    return false;
  }
  if (live && (e.event_type === "cognition_out" || e.event_type === "cognition_request" || e.event_type.startsWith("thread_"))) page.events.pop();
  page.events.push(e);
  page.size += sizeOf(e.payload, 0);
  return false;
}

function lengthen(payload, p) {
  if (p.type === "tool_use") {
    if (p.text) payload.tool = p.text;
    payload.bytes += p.bytes || 0;
    return;
  }
  const name = p.type === "text" || !p.type ? "text" : "reasoning";
  payload[name] += p.text || "";
  payload.seen += (p.text || "").length;
  if (payload[name].length > 2 * liveText) {
    payload.dropped += payload[name].length - liveText;
    payload[name] = payload[name].slice(-liveText);
  }
}

// sizeOf is about how many characters of text a value has.
function sizeOf(value, depth) {
  if (typeof value === "string") return value.length;
  if (value === null || typeof value !== "object" || depth > 6) return 8;
  let sum = 0;
  for (const key in value) sum += key.length + sizeOf(value[key], depth + 1);
  return sum;
}

// cutLines is the beginning of a text: at most so many lines and characters, and whether that is all.
export function cutLines(text, lines = 12, chars = 1200) {
  let at = -1;
  for (let i = 0; i < lines; i++) {
    at = text.indexOf("\n", at + 1);
    if (at < 0) break;
  }
  const end = Math.min(at < 0 ? text.length : at, chars);
  return end >= text.length ? {text, all: true} : {text: text.slice(0, end), all: false};
}
