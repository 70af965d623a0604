// Whether what a thread left can be trusted, in words; its receipt, and its recording to take along.

import {button, clear, fill, h, icon} from "./dom.js";
import {bytes, clock, count, money, oneLine, plural} from "./format.js";
import {saveFile} from "./artifacts.js";
import {fileNameOf} from "./diff.js";
import {jsonText} from "./events.js";
import {loadInto, problemBox} from "./plots.js";
import {threadPath} from "./timeline.js";
import {textBlocks} from "./transcript.js";

const ended = new Set(["completed", "error", "cancelled", "continued", "killed"]);

// damageWords say what a kind of damage is.
export const damageWords = {
  altered: "changed after it was signed", reordered: "a line stands where it cannot", spliced: "a line of another thread", stripped: "lines or signatures are missing",
  truncated: "shorter than it was", foreign: "signed by another key", missing: "a file is missing", unsigned: "not signed", unreadable: "cannot be read",
  rolled_back: "genuine, and older than what the registry knows", ledger_differs: "the ledger has another amount than was signed",
};

// verdictWords is a verdict in sentences: {good, head, facts}.
export function verdictWords(verdict, mode) {
  const t = verdict.transcript || {}, findings = verdict.findings || [];
  const facts = [plural(t.turns || 0, "turn") + " in " + bytes(t.bytes || 0) + " of transcript, with " + plural(t.checkpoints || 0, "signature") + "."];
  if (t.signed_bytes !== undefined) facts.push(bytes(t.signed_bytes) + " of it are signed" + (t.unsigned_bytes ? "; " + bytes(t.unsigned_bytes) + " after the last signature are not yet." : "."));
  if (t.torn_bytes) facts.push(bytes(t.torn_bytes) + " at the end are half a line, which was being written.");
  if (verdict.first_bad_turn) facts.push((verdict.first_bad_turn > 1 ? "Up to turn " + (verdict.first_bad_turn - 1) + " it can be trusted, from " : "From ") + "turn " + verdict.first_bad_turn + " on it cannot be trusted.");
  if (mode === "lenient") facts.push("The project is lenient: what is not signed is let pass.");
  if (findings.length > 0) return {good: false, head: "This thread does not verify: " + plural(findings.length, "thing") + " that should not be.", facts};
  if (!verdict.verified) return {good: false, head: "This thread does not verify.", facts};
  return {good: true, head: "This thread verifies: its files are what it wrote.", facts};
}

const checked = [
  "thread.json carries the signature of this user's key, and says of the thread what the registry says.",
    "Every signature in the transcript holds, and none of its lines is missing, moved or of another thread.",
  "The ledger says that it has spent what the transcript says.", "Its capabilities, its readable copy and its large results are those that were signed for.",
];

// verifyView is the tab.
export function verifyView(ctx) {
  const stop = new AbortController();
  const verdict = h("section", {"aria-label": "Verification"}), receipt = h("div"), proof = h("section", {"aria-label": "Receipt and export"});
  const check = () => loadInto(verdict, () => ctx.api.get(threadPath(ctx.id, "verify"), stop.signal), (answer) => fill(verdict, verdictView(answer, check)));
  check();
  const draw = () => {
    const row = ctx.row() || {}, over = ended.has(row.status) || row.thread_id !== ctx.id;
    fill(proof, h("h2", null, "To take along"),
      h("p", null, "A receipt is a signed summary of a thread that has ended: what it was, was allowed, did and cost. It can be checked without this project, by ", h("code", null,
        "rye-mcp threads verify --receipt FILE"), "."),
      h("p", {class: "button-group"},
        button("Show the receipt", () => showReceipt(ctx, receipt, stop.signal), {disabled: !over}),
        ctx.api.saves && button("Download the receipt", () => saveFile(ctx, threadPath(ctx.id, "receipt"), fileNameOf(ctx.id) + ".receipt.json").catch((error) => fill(receipt, problemBox(error))), {disabled: !over}),
        ctx.api.saves && button("Download the recording", () => saveFile(ctx, threadPath(ctx.id, "export"), fileNameOf(ctx.id) + ".ryetest").catch((error) => fill(receipt, problemBox(error))), {disabled: !over})),
      !over && h("p", {class: "muted"}, "There is none of a thread that still works."),
      h("p", {class: "muted"}, "The recording is the whole thread in one file. ", h("code", null, "rye-mcp replay FILE"), " runs it again without a model."));
  };
  draw();
  let status = (ctx.row() || {}).status;
  const leave = ctx.subscribe(() => {
    const now = (ctx.row() || {}).status;
    if (now === status) return;
    status = now;
    draw();
    check();
  });
  return {el: h("div", {class: "verify-view"}, verdict, proof, receipt), close: () => { stop.abort(); if (typeof leave === "function") leave(); }};
}

function verdictView(answer, again) {
  const verdict = (answer.threads || [])[0];
  if (!verdict) return h("p", {class: "muted"}, "There is nothing to check.");
  const words = verdictWords(verdict, answer.transcript_integrity);
  return [
    h("div", {class: "verdict " + (words.good ? "good" : "broken"), role: "status"}, icon(words.good ? "shield" : "broken"), h("strong", null, words.head)),
    (verdict.findings || []).length > 0 && h("ul", {class: "findings"}, verdict.findings.map((f) => h("li", null, h("span", {class: "mono"}, oneLine(f.file, 200)), ": ",
      damageWords[f.damage] || oneLine(f.damage, 60), f.turn && ", from turn " + f.turn,
      f.line && ", line " + f.line, h("div", {class: "muted"}, oneLine(f.detail, 400))))),
    (verdict.warnings || []).map((w) => h("p", {class: "warn"}, oneLine(w, 400))),
    h("ul", null, words.facts.map((fact) => h("li", null, fact))),
    h("details", null, h("summary", null, "What was checked"), h("ul", null, checked.map((fact) => h("li", null, fact))), answer.signer && h("p", {class: "muted"}, "The key that signs: ",
      h("span", {class: "mono"}, oneLine(answer.signer, 80)))),
    button("Check again", again, {class: "quiet"}),
  ];
}

async function showReceipt(ctx, place, signal) {
  clear(place);
  try {
    const sealed = JSON.parse(await (await ctx.api.raw(threadPath(ctx.id, "receipt"), {signal})).text()), r = sealed.receipt || sealed.payload || sealed;
    const facts = [["Thread", r.thread_id], ["Directive", r.directive], ["SHA-256 of the directive", r.directive_hash], ["Model", r.model], ["Ended as", r.status], ["From",
      clock(r.created_at) + " to " + clock(r.completed_at)],
      ["Turns", r.cost && String(r.cost.turns)], ["Spent", r.cost && money(r.cost.spend)], ["With all below",
        r.tree_spend !== undefined && money(r.tree_spend) + " in " + plural((r.below || []).length + 1, "thread")],
      ["Capabilities", r.capabilities && count(r.capabilities.length)], ["Issued", clock(r.issued_at)], ["Signed by", r.signer && r.signer.fingerprint]].filter(([,
        value]) => typeof value === "string" && value !== "");
    fill(place, h("h2", null, "Receipt"), h("dl", {class: "receipt"}, facts.map(([name, value]) => h("div", null, h("dt", null, name), h("dd", {class: "mono"}, oneLine(value, 200))))),
      h("details", null, h("summary", null, "As it is written"), h("div", {class: "event-text"}, textBlocks(jsonText(sealed)))));
  } catch (error) {
    if (error.name !== "AbortError") fill(place, problemBox(error));
  }
}
