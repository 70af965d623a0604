// Unified diffs: read into files, hunks and lines, and shown a file at a time.

import {button, fill, h} from "./dom.js";
import {count, cut, oneLine, plural} from "./format.js";

const foldAbove = 120, foldTo = 60, openFiles = 3, mostLines = 20000, mostDrawn = 4000, longestLine = 2000;

// parseDiff reads a unified diff: {files: [{path, from, change, added, removed, binary, mode, hunks: [{header, lines: [{kind, old, now, text}]}], lines}], truncated}.
// What is no diff is left out. It never gives more than most lines.
export function parseDiff(value, most = mostLines) {
  const files = [], out = {files, truncated: false};
  let file = null, hunk = null, old = 0, now = 0, restOld = 0, restNow = 0, lines = 0;
  const begin = (path) => {
    file = {path, from: "", change: "M", added: 0, removed: 0, binary: false, mode: "", hunks: [], lines: 0};
    hunk = null;
    files.push(file);
  };
  for (const line of linesOf(value)) {
    const inside = hunk && (restOld > 0 || restNow > 0);
    if (inside && " +-".includes(line[0] || " ")) {
      const kind = line[0] || " ";
      if (kind !== "+") restOld--;
      if (kind !== "-") restNow--;
      file.added += kind === "+" ? 1 : 0;
      file.removed += kind === "-" ? 1 : 0;
      file.lines++;
      if (++lines > most) out.truncated = true;
      else hunk.lines.push({kind, old: kind === "+" ? 0 : old, now: kind === "-" ? 0 : now, text: line.slice(1)});
      if (kind !== "+") old++;
      if (kind !== "-") now++;
      continue;
    }
    const at = line.startsWith("@@ ") && line.match(/^@@ -(\d+)(?:,(\d+))? \+(\d+)(?:,(\d+))? @@(.*)$/);
    if (at && file) {
      [old, now, restOld, restNow] = [Number(at[1]), Number(at[3]), Number(at[2] ?? 1), Number(at[4] ?? 1)];
      hunk = {header: line, about: at[5].trim(), lines: []};
      file.hunks.push(hunk);
    } else if (line.startsWith("diff --git ")) begin(pathOfGit(line));
    else if (line.startsWith("--- ")) {
      if (!file || file.hunks.length > 0) begin("");
      readName(file, line.slice(4), "from");
    } else if (line.startsWith("+++ ") && file) readName(file, line.slice(4), "path");
    else if (file) readExtended(file, line);
    if (line.startsWith("\\ ") && hunk && hunk.lines.length) hunk.lines[hunk.lines.length - 1].bare = true;
  }
  return out;
}

function* linesOf(value) {
  for (let at = 0; at < value.length;) {
    let end = value.indexOf("\n", at);
    if (end < 0) end = value.length;
    yield value.slice(at, value[end - 1] === "\r" && end > at ? end - 1 : end);
    at = end + 1;
  }
}

function pathOfGit(line) {
  const half = line.slice(11), quoted = half.match(/ "b\/((?:[^"\\]|\\.)*)"$/), middle = (half.length - 1) / 2;
  if (quoted) return unquoted(quoted[1]);
  if (Number.isInteger(middle) && half.slice(2, middle) === half.slice(middle + 3)) return half.slice(2, middle);
  return half.slice(half.lastIndexOf(" b/") + 3);
}

function readName(file, name, key) {
  const plain = name.startsWith("\"") ? unquoted(name.replace(/^"|"\s*$/g, "")) : name.replace(/\t.*$/, "");
  const path = plain.replace(/^[ab]\//, "");
  if (plain === "/dev/null") {
    file.change = key === "from" ? "A" : "D";
    if (key === "path" && file.old) file.path = file.old;
  } else if (key === "path") file.path = path;
  else {
    file.old = path;
    file.path = file.path || path;
  }
}

function readExtended(file, line) {
  if (line.startsWith("new file")) file.change = "A";
  else if (line.startsWith("deleted file")) file.change = "D";
  else if (line.startsWith("rename from ")) Object.assign(file, {from: line.slice(12), change: "R"});
  else if (line.startsWith("rename to ")) file.path = line.slice(10);
  else if (line.startsWith("old mode ") || line.startsWith("new mode ")) file.mode = (file.mode ? file.mode + " \u2192 " : "") + line.slice(9);
  else if (line.startsWith("Binary files ") || line.startsWith("GIT binary patch")) file.binary = true;
}

// unquoted is a path that git has written in quotes: bytes in octal are UTF-8.
function unquoted(name) {
  const bytes = [], plain = {n: 10, t: 9, r: 13, a: 7, b: 8, f: 12, v: 11};
  const utf8 = new TextEncoder();
  for (let i = 0; i < name.length; i++) {
    const octal = name[i] === "\\" && name.slice(i + 1).match(/^[0-7]{3}/);
    if (octal) {
      bytes.push(parseInt(octal[0], 8) & 255);
      i += 3;
    } else if (name[i] === "\\") {
      i++;
      bytes.push(...(plain[name[i]] ? [plain[name[i]]] : utf8.encode(name[i] || "")));
    } else {
      const whole = String.fromCodePoint(name.codePointAt(i));
      bytes.push(...utf8.encode(whole));
      i += whole.length - 1;
    }
  }
  return new TextDecoder().decode(new Uint8Array(bytes));
}

// changedPart is where two lines differ: {start, endA, endB}, or null where too little is the same to say so.
export function changedPart(a, b) {
  let start = 0, end = 0;
  const most = Math.min(a.length, b.length);
  while (start < most && a[start] === b[start]) start++;
  while (end < most - start && a[a.length - 1 - end] === b[b.length - 1 - end]) end++;
  if ((start + end) * 3 < Math.max(a.length, b.length)) return null;
  return {start, endA: a.length - end, endB: b.length - end};
}

const changeWords = {A: "added", M: "changed", D: "deleted", R: "renamed"};

// diffView shows a diff. known is what is known of the files beside it, by path: {path, change, lines_added, lines_removed, binary, person}.
export function diffView(value, known = []) {
  const parsed = parseDiff(value), beside = new Map(known.map((f) => [f.path, f]));
  for (const file of parsed.files) {
    const more = beside.get(file.path) || {};
    file.person = more.person || "";
    file.binary = file.binary || Boolean(more.binary);
    if (more.lines_added !== undefined || more.lines_removed !== undefined) Object.assign(file, {added: more.lines_added || 0, removed: more.lines_removed || 0});
    beside.delete(file.path);
  }
  const rest = [...beside.values()].map((f) => ({path: f.path, change: f.change, added: f.lines_added || 0, removed: f.lines_removed || 0, binary: Boolean(f.binary), person: f.person || "",
    hunks: [], lines: 0, absent: !f.binary, mode: "", from: ""}));
  const files = [...parsed.files, ...rest];
  const sum = (key) => files.reduce((total, f) => total + f[key], 0);
  return h("div", {class: "diff"},
    h("p", null, plural(files.length, "file") + ", ", h("span", {class: "plus"}, "+" + count(sum("added"))), " ", h("span", {class: "minus"}, "\u2212" + count(sum("removed")))),
    parsed.truncated && h("p", {class: "warn"}, "This is too much to show: the lines after the first " + count(mostLines) + " are left out."),
    files.map((file, i) => fileView(file, i < openFiles && file.lines <= foldAbove * 3)));
}

// fileView is one file of a diff, which is filled when it is opened.
export function fileView(file, open) {
  const body = h("div", {class: "diff-body"});
  const details = h("details", {class: "diff-file", open},
    h("summary", null, h("span", {class: "mono"}, (file.from ? oneLine(file.from) + " \u2192 " : "") + oneLine(file.path, 300)), " ", h("span", {class: "muted small"},
      changeWords[file.change] || oneLine(file.change)), " ",
      file.binary ? h("span", {class: "muted small"}, "binary") : [h("span", {class: "plus"}, "+" + file.added), " ", h("span", {class: "minus"}, "\u2212" + file.removed)]),
    body);
  const show = () => body.childNodes.length === 0 && fill(body, fileBody(file));
  details.addEventListener("toggle", () => details.open && show());
  if (open) show();
  return details;
}

function fileBody(file) {
  const notes = [file.person && h("p", {class: "warn"}, "Only a person applies this: " + oneLine(file.person, 300)), file.mode && h("p", {class: "muted small"}, "mode " + oneLine(file.mode, 60))];
  if (file.binary) return [notes, h("p", {class: "muted"}, "A binary file: its bytes are not shown.")];
  if (file.absent) return [notes, h("p", {class: "muted"}, "Its lines had no room in this diff.")];
  if (file.hunks.length === 0) return [notes, h("p", {class: "muted"}, "No line has changed.")];
  return [notes, h("div", {class: "diff-lines", tabindex: 0, role: "group", "aria-label": "Changes of " + oneLine(file.path, 120)}, file.hunks.map(hunkView))];
}

function hunkView(hunk) {
  const rows = h("div", {class: "hunk"});
  let shown = 0;
  const more = h("div");
  const show = (upTo) => {
    const end = Math.min(upTo, hunk.lines.length);
    const marks = pairedParts(hunk.lines);
    for (; shown < end; shown++) rows.append(lineView(hunk.lines[shown], marks.get(shown)));
    const left = hunk.lines.length - shown;
    fill(more, left > 0 && button("Show " + plural(Math.min(left, mostDrawn), "more line") + (left > mostDrawn ? " of " + count(left) : ""), () => show(shown + mostDrawn), {class: "quiet"}));
  };
  show(hunk.lines.length > foldAbove ? foldTo : hunk.lines.length);
  return [h("div", {class: "hunk-head mono muted"}, oneLine(hunk.header, 200)), rows, more];
}

// pairedParts finds for lines that replace others what of them has changed.
function pairedParts(lines) {
  const marks = new Map();
  for (let i = 0; i < lines.length;) {
    if (lines[i].kind !== "-") {
      i++;
      continue;
    }
    let minus = i;
    while (minus < lines.length && lines[minus].kind === "-") minus++;
    let plus = minus;
    while (plus < lines.length && lines[plus].kind === "+") plus++;
    for (let k = 0; k < Math.min(minus - i, plus - minus); k++) {
      const part = changedPart(lines[i + k].text, lines[minus + k].text);
      if (!part) continue;
      marks.set(i + k, [part.start, part.endA]);
      marks.set(minus + k, [part.start, part.endB]);
    }
    i = plus;
  }
  return marks;
}

const signWords = {"+": "added", "-": "removed", " ": ""};

function lineView(line, part) {
  const long = line.text.length > longestLine, shown = long ? line.text.slice(0, longestLine) : line.text;
  const code = part && !long ? [shown.slice(0, part[0]), h("mark", null, shown.slice(part[0], part[1])), shown.slice(part[1])] : [shown, long && h("span", {class: "muted"},
    " \u2026 " + count(line.text.length - longestLine) + " more characters")];
  return h("div", {class: "diff-line d-" + ({"+": "plus", "-": "minus"}[line.kind] || "same")},
    h("span", {class: "num", "aria-hidden": "true"}, line.old || ""), h("span", {class: "num", "aria-hidden": "true"}, line.now || ""),
    h("span", {class: "sign", "aria-label": signWords[line.kind] || null, role: signWords[line.kind] ? "img" : null}, line.kind === "-" ? "\u2212" : line.kind), h("code", null, code,
      line.bare && h("span", {class: "muted"}, " (no line break at the end)")));
}

// fileNameOf is a name of plain characters for what is saved.
export function fileNameOf(name, otherwise = "file") {
  return cut(String(name).replace(/[^\w.-]+/g, "-").replace(/^[.-]+/, ""), 120) || otherwise;
}
