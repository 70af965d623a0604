// The files of a thread: what it has changed in its workspace, and its large results.

import {button, fill, h} from "./dom.js";
import {bytes, clock, count, oneLine, plural} from "./format.js";
import {diffView, fileNameOf} from "./diff.js";
import {dataTable, loadInto, problemBox} from "./plots.js";
import {threadPath} from "./timeline.js";
import {textBlocks} from "./transcript.js";
import {loadWritten, writtenView} from "./written.js";

const mostRead = 512 * 1024, mostShown = 64 * 1024;

// filesView is the tab.
export function filesView(ctx) {
  const stop = new AbortController();
  const changes = h("section", {"aria-label": "Changes"}), results = h("section", {"aria-label": "Large results"});
  loadInto(changes, () => loadChanges(ctx, stop.signal), (diff) => fill(changes, h("h2", null, "Changes"), changesOf(ctx, diff, stop.signal)));
  loadInto(results, () => ctx.api.get(threadPath(ctx.id, "artifacts"), stop.signal), (answer) => fill(results, h("h2", null, "Large results"), artifactList(ctx, answer.artifacts || [], stop.signal)));
  return {el: h("div", {class: "files-view"}, changes, results), close: () => stop.abort()};
}

// loadChanges is the diff of a thread's workspace or, where it has none, what its transcript says that it wrote.
async function loadChanges(ctx, signal) {
  const {thread} = await ctx.api.get(threadPath(ctx.id), signal);
  if (thread && !thread.workspace) return {written: await loadWritten(ctx, signal)};
  return loadDiff(ctx, signal);
}

async function loadDiff(ctx, signal, offset = 0) {
  try {
    return await ctx.api.get(threadPath(ctx.id, "diff" + (offset ? "?offset=" + offset : "")), signal);
  } catch (error) {
    if (error.code === "unsupported" || error.code === "not_found") return {none: error.message, hint: error.hint};
    throw error;
  }
}

function changesOf(ctx, diff, signal) {
  if (diff.written) return writtenView(diff.written);
  if (diff.none) return [h("p", null, oneLine(diff.none, 300)), diff.hint && h("p", {class: "muted"}, oneLine(diff.hint, 300))];
  const place = h("div"), value = diff.diff || "";
  const more = diff.next_offset ? button("Load more of the diff", async () => {
    const next = await loadDiff(ctx, signal, diff.next_offset);
    fill(place, changesOf(ctx, {...diff, diff: value + (next.diff || ""), next_offset: next.next_offset}, signal));
  }, {class: "quiet"}) : null;
  const lists = [["outside_project", "Outside of the project, never applied"], ["repositories_left_out", "Repositories that are left out"], ["ignored_left_out", "Ignored by git, never applied"]].map(([key, title]) => diff[key] && diff[key].length > 0 &&
    h("details", null, h("summary", null, title + " (" + count(diff[key].length) + ")"), h("ul", null, diff[key].map((p) => h("li", {class: "mono"}, oneLine(p, 300))))));
  return fill(place,
    diff.workspace_of && h("p", {class: "muted"}, "It works in the workspace of " + oneLine(diff.workspace_of) + "."),
    diff.applied_at && h("p", {class: "muted"}, "What had changed by " + clock(diff.applied_at) + " has been applied."),
    diff.note && !diff.next_offset && h("p", null, oneLine(diff.note, 300)),
    (value || (diff.files && diff.files.length > 0)) && diffView(value, diff.files || []),
    diff.more_files > 0 && h("p", {class: "warn"}, plural(diff.more_files, "more file") + " not named here."),
    more, lists);
}

function artifactList(ctx, artifacts, signal) {
  if (artifacts.length === 0) return h("p", {class: "muted"}, "It has none. Results of tools that are too large for a conversation are kept here.");
  const reader = h("div", {class: "artifact-reader"});
  const rows = artifacts.map((a) => [
    h("span", {class: "mono"}, oneLine(a.name, 200)), bytes(a.bytes), oneLine(a.media_type || "", 60),
    h("span", {class: "button-group"}, button("Read", () => readArtifact(ctx, a, reader, signal), {class: "quiet", "aria-label": "Read " + oneLine(a.name, 80)}),
      ctx.api.saves && button("Download", () => saveFile(ctx, artifactPath(ctx, a), fileNameOf(a.name)), {class: "quiet", "aria-label": "Download " + oneLine(a.name, 80)})),
  ]);
  return [dataTable("Large results of this thread", [{title: "Name"}, {title: "Size", number: true}, {title: "Kind"}, {title: "What to do"}], rows), reader];
}

function artifactPath(ctx, a) {
  return threadPath(ctx.id, "artifacts/" + encodeURIComponent(a.name));
}

// saveFile downloads something of the API. The token goes in a header, so the browser saves what was fetched.
export async function saveFile(ctx, path, name) {
  try {
    const answer = await ctx.api.raw(path);
    const url = URL.createObjectURL(await answer.blob());
    const link = h("a", {href: url, download: nameIn(answer.headers.get("Content-Disposition")) || name});
    document.body.append(link);
    link.click();
    link.remove();
    setTimeout(() => URL.revokeObjectURL(url), 60000);
    ctx.say("Saved " + link.download);
  } catch (error) {
    ctx.say(error.message);
    throw error;
  }
}

// nameIn is the file name of a Content-Disposition, of plain characters.
export function nameIn(header) {
  const found = /filename="([^"]*)"/.exec(header || "");
  return found ? fileNameOf(found[1], "") : "";
}

// readBegin reads at most so many bytes of an answer, and says whether that is all.
export async function readBegin(answer, most = mostRead) {
  const reader = answer.body.getReader(), parts = [];
  let size = 0;
  for (;;) {
    const {done, value} = await reader.read();
    if (done) break;
    parts.push(value);
    size += value.length;
    if (size > most) {
      await reader.cancel();
      break;
    }
  }
  const all = new Uint8Array(Math.min(size, most));
  let at = 0;
  for (const part of parts) {
    const fits = part.subarray(0, all.length - at);
    all.set(fits, at);
    at += fits.length;
  }
  return {data: all, all: size <= most};
}

// looksBinary says whether bytes are no text: they have a zero byte, or too much that is not UTF-8.
export function looksBinary(data) {
  const begin = data.subarray(0, 8000);
  if (begin.includes(0)) return true;
  const shown = new TextDecoder().decode(begin, {stream: true});
  let bad = 0;
  for (const c of shown) if (c === "\ufffd") bad++;
  return bad > shown.length / 20;
}

async function readArtifact(ctx, a, place, signal) {
  try {
    const {data, all} = await readBegin(await ctx.api.raw(artifactPath(ctx, a), {signal}));
    const head = h("header", null, h("strong", {class: "mono", tabindex: -1}, oneLine(a.name, 200)), " ", button("Close", () => fill(place), {class: "quiet"}));
    if (looksBinary(data)) return void fill(place, head, h("p", null, "These " + bytes(a.bytes) + " are no text. Download it to look at it with another program."));
    const value = new TextDecoder().decode(data);
    const box = h("div", {class: "event-text artifact-text", tabindex: 0, role: "group", "aria-label": "Text of " + oneLine(a.name, 80)});
    let shown = 0;
    const more = h("div");
    const show = () => {
      const next = value.slice(shown, shown + mostShown);
      shown += next.length;
      box.append(...textBlocks(next));
      fill(more, shown < value.length ? button("Show more (" + bytes(value.length - shown) + ")", show, {class: "quiet"}) : !all && h("p", {class: "muted"},
        "This is the beginning. Download it to have all " + bytes(a.bytes) + "."));
    };
    show();
    fill(place, head, box, more);
    head.firstChild.focus();
  } catch (error) {
    if (error.name !== "AbortError") fill(place, problemBox(error, () => readArtifact(ctx, a, place, signal)));
  }
}
