// What a thread wrote into files without a workspace of its own: its transcript tells. What stood in a file before is only
// known where the thread itself had written it.

import {fill, h} from "./dom.js";
import {bytes, count, plural} from "./format.js";
import {fileView} from "./diff.js";
import {lineDiff} from "./compare.js";
import {threadPath} from "./timeline.js";

const mostPages = 30, mostWhole = 40;

// writingCalls are the calls of tools that write files, with their results: {seq, turn, input, result, cut}; failed ones are left out.
export function writingCalls(events) {
  const calls = new Map(), done = [];
  for (const e of events) {
    const p = e.payload || {};
    if (e.event_type === "tool_call_start") {
      const found = writes(p);
      if (found) calls.set(p.call_id, {seq: e.seq, turn: p.turn, cut: Boolean(e.cut), ...found});
    } else if (e.event_type === "tool_call_result" && calls.has(p.call_id)) {
      const call = calls.get(p.call_id);
      calls.delete(p.call_id);
      if (!p.is_error) done.push({...call, result: objectOf(p.text)});
    }
  }
  return done;
}

function writes(p) {
  const input = objectOf(p.input);
  if (/file_system_(write|edit_lines)$/.test(p.tool)) return {edits: p.tool.endsWith("lines"), input};
  if (/^rye\/file-system\/(write|edit_lines)$/.test(input.item_id || "")) return {edits: input.item_id.endsWith("lines"), input: objectOf(input.parameters)};
  return null;
}

function objectOf(value) {
  if (typeof value === "string") {
    try {
      value = JSON.parse(value);
    } catch {
      return {};
    }
  }
  return value !== null && typeof value === "object" ? value : {};
}

// writtenFiles makes of writing calls the files that they wrote, as a diff has them: a hunk for each call.
export function writtenFiles(calls) {
  const files = new Map();
  for (const call of calls) {
    if (call.edits) {
      edited(fileAt(files, call.input.path), call);
      continue;
    }
    const list = Array.isArray(call.input.files) && call.input.files.length > 0 ? call.input.files : [call.input];
    const created = new Set((call.result.files || []).filter((f) => f.created).map((f) => f.path));
    for (const one of list) if (typeof one.path === "string") wrote(fileAt(files, one.path), call, one, created.has(one.path));
  }
  return [...files.values()].filter((file) => file.path);
}

function fileAt(files, path) {
  const name = typeof path === "string" ? path : "";
  if (!files.has(name)) files.set(name, {path: name, from: "", change: "M", added: 0, removed: 0, binary: false, mode: "", person: "", hunks: [], lines: 0, now: null});
  return files.get(name);
}

function wrote(file, call, one, created) {
  const content = typeof one.content === "string" ? one.content : "", appends = (one.mode || call.input.mode) === "append";
  const lines = lineDiff(appends || file.now === null ? "" : file.now, content.replace(/\n$/, ""));
  if (created && file.hunks.length === 0) file.change = "A";
  const how = appends ? "added at the end" : created ? "new" : file.now === null ? "written as a whole; what stood there before is not known" : "written again";
  addHunk(file, call, how + ", " + bytes(content.length), lines);
  file.now = appends ? (file.now === null ? null : file.now + "\n" + content.replace(/\n$/, "")) : content.replace(/\n$/, "");
}

function edited(file, call) {
  file.now = null;
  const parts = Array.isArray(call.result.changed) ? call.result.changed : [], changes = Array.isArray(call.input.changes) ? call.input.changes : [];
  changes.forEach((change, i) => {
    const part = parts[i] || {}, text = typeof change.new_content === "string" ? change.new_content : "";
    const lines = text === "" ? [] : text.replace(/\n$/, "").split("\n").map((line) => ({kind: "+", text: line}));
    addHunk(file, call, (lines.length ? "lines replaced" : "lines deleted") + (part.start_line ? " at line " + part.start_line : ""), lines, part.start_line);
  });
}

function addHunk(file, call, how, lines, from = 1) {
  let old = from, now = from;
  const numbered = lines.map((line) => ({...line, old: line.kind === "+" ? 0 : old++, now: line.kind === "-" ? 0 : now++}));
  file.hunks.push({header: "Turn " + call.turn + ": " + how, about: "", lines: numbered});
  file.added += lines.filter((l) => l.kind === "+").length;
  file.removed += lines.filter((l) => l.kind === "-").length;
  file.lines += lines.length;
}

// loadWritten reads from the transcript what a thread wrote.
export async function loadWritten(ctx, signal) {
  const events = new Map();
  let all = true;
  for (const q of ["file_system", "file-system"]) {
    let after = 0, pages = 0;
    for (; pages < mostPages; pages++) {
      const page = await ctx.api.get(threadPath(ctx.id, "transcript?" + new URLSearchParams({after: String(after), max: "1000000", q})), signal);
      for (const e of page.events) if (e.event_type.startsWith("tool_call_")) events.set(e.seq, e);
      if (page.at_end || !page.next || page.next === after) break;
      after = page.next;
    }
    all = all && pages < mostPages;
  }
  let whole = 0;
  for (const [seq, e] of events) {
    if (!e.cut || e.event_type !== "tool_call_start" || !writes(e.payload || {})) continue;
    if (++whole > mostWhole) all = false;
    else events.set(seq, await ctx.api.get(threadPath(ctx.id, "events/" + seq), signal));
  }
  return {files: writtenFiles(writingCalls([...events.values()].sort((a, b) => a.seq - b.seq))), all};
}

// writtenView shows the files that a thread wrote.
export function writtenView({files, all}) {
  if (files.length === 0) return h("p", {class: "muted"}, "It wrote no file with the file tools. What commands wrote stands in no transcript.");
  const sum = (key) => files.reduce((total, f) => total + f[key], 0);
  return fill(h("div", {class: "diff"}),
    h("p", null, plural(files.length, "file") + ", ", h("span", {class: "plus"}, "+" + count(sum("added"))), " ", h("span", {class: "minus"}, "\u2212" + count(sum("removed")))),
    h("p", {class: "muted"}, "It works in the project itself. This is what it wrote with the file tools, by its transcript: what commands wrote, and what stood in a file before, is not known."),
    !all && h("p", {class: "warn"}, "It wrote more than is shown here."),
    files.map((file, i) => fileView(file, i < 3 && file.lines <= 360)));
}
