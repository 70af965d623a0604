// Starting a directive: pick one, fill in its inputs, see what it has cost so far, run it.

import {h, button, icon, fill, setText} from "./dom.js";
import {clean, oneLine, money, count, plural} from "./format.js";
import {field, fault, submitter} from "./form.js";
import {limitFields, limitsGiven} from "./actions.js";

// makeStart shows the directives of the project, or the form of one of them.
export function makeStart(page, id) {
  const title = h("h1", {tabindex: -1, class: "title"}, "Start a directive");
  const body = h("div", {class: "start-body"}, h("p", {class: "hint"}, "Reading\u2026"));
  const el = h("article", {class: "detail start"}, h("header", null,
    button(icon("back"), () => page.open(id ? "start" : ""), {class: "quiet icon-only back", "aria-label": id ? "Back to all directives" : "Back to all threads"}),
    h("div", {class: "heading"}, title)), body);
  const stopped = new AbortController();
  const show = id ? showDirective : showDirectives;
  show(page, {title, body, signal: stopped.signal}, id).catch((error) => {
    if (!stopped.signal.aborted) fill(body, fault(error));
  });
  return {el, focus: () => (body.querySelector("input, select, textarea") || title).focus(), update() {}, tick() {}, close: () => stopped.abort()};
}

async function showDirectives(page, view) {
  const {directives = []} = await page.api.get("directives", view.signal);
  if (directives.length === 0) return fill(view.body, noDirectives());
  const search = h("input", {type: "search", placeholder: "Filter", "aria-label": "Filter directives", autocomplete: "off", spellcheck: "false"});
  const list = h("div", {class: "spaces"}), costs = new Map();
  const note = h("p", {class: "hint", role: "status"});
  const parts = h("input", {type: "checkbox", id: "show-parts", onchange: () => draw()});
  const draw = () => {
    const words = search.value.toLowerCase().split(/\s+/).filter(Boolean);
    const offered = directives.filter((one) => parts.checked || !one.part);
    const found = offered.filter((one) => words.every((word) => [one.id, one.description, one.category, one.space].join(" ").toLowerCase().includes(word)));
    fill(list, spaces.map(([space, label]) => {
      const here = found.filter((one) => one.space === space);
      return here.length > 0 && h("section", {"aria-label": label}, h("h2", null, label),
        h("ul", {class: "directives"}, here.map((one) => h("li", null, directiveButton(page, one, costs.get(one.id))))));
    }));
    setText(note, found.length === offered.length ? plural(found.length, "directive") : found.length + " of " + plural(offered.length, "directive"));
  };
  search.addEventListener("input", draw);
  draw();
  fill(view.body, h("p", {class: "hint"}, "A directive says what a model is to do, with which tools, and within which limits."), search, note, list,
    directives.some((one) => one.part) && h("div", {class: "field check"}, parts, h("label", {for: "show-parts"}, "Also those that others are made of")));
  costsByDirective(page, view.signal).then((found) => {
    if (view.signal.aborted || found.size === 0) return;
    for (const [id, cost] of found) costs.set(id, cost);
    draw();
  });
  search.focus();
  return undefined;
}

const spaces = [["project", "Of this project"], ["user", "Yours"], ["system", "Part of rye-mcp"]];

function directiveButton(page, one, cost) {
  return button([
    h("span", {class: "name"}, oneLine(one.id, 120)),
    one.problem && h("span", {class: "badge badge-broken"}, icon("broken"), "cannot be started"),
    h("span", {class: "words"}, oneLine(one.problem || one.description, 240)),
    h("span", {class: "when"}, costSoFar(cost)),
  ], () => page.open("start/" + one.id), {class: "directive"});
}

function noDirectives() {
  return h("div", {class: "empty"},
    h("h2", null, "There are no directives yet"),
    h("p", null, "A directive is a Markdown file in ", h("code", null, ".ai/directives/"), ". In a terminal:"),
    h("pre", null, "rye-mcp init\nrye-mcp run"));
}

// costsByDirective tells what directives have cost until now; where that cannot be had, nothing.
async function costsByDirective(page, signal) {
  try {
    const {rows = []} = await page.api.get("costs?by=directive", signal);
    return new Map(rows.map((one) => [one.key, one]));
  } catch {
    return new Map();
  }
}

// costSoFar says what runs of a directive have cost until now.
function costSoFar(cost) {
  if (!cost || !(cost.threads > 0)) return "";
  return plural(cost.threads, "run") + ", " + money((cost.spend || 0) / cost.threads) + " each" + (cost.errors > 0 ? ", " + count(cost.errors) + " failed" : "");
}

async function showDirective(page, view, id) {
  const [one, costs] = await Promise.all([
    page.api.get("directives/" + id.split("/").map(encodeURIComponent).join("/"), view.signal), costsByDirective(page, view.signal),
  ]);
  const spent = costSoFar(costs.get(one.id));
  setText(view.title, oneLine(one.id || id, 200));
  const inputs = (one.inputs || []).map(inputField);
  const limits = limitFields(one.limits);
  const model = field({name: "model", label: "Model", placeholder: one.model || "as configured"});
  const parts = [
    one.description && h("p", {class: "lead"}, clean(one.description)),
    spent && h("p", {class: "hint"}, "So far: " + spent + "."),
    one.problem && h("p", {class: "warning"}, icon("broken"), clean(one.problem)),
  ];
  if (!page.mayStart()) return fill(view.body, parts, h("p", {class: "hint"}, "This address may look only."));
  const keyOf = onceFor();
  const form = submitter({
    label: "Start", fields: inputs,
    more: h("details", {class: "more"}, h("summary", null, "Model and limits"), model.el, limits.map((limit) => limit.el)),
    run: async () => {
      const given = {};
      for (const input of inputs) {
        const value = input.read();
        if (value !== undefined) given[input.name] = value;
      }
      const rest = {};
      for (const limit of limits) if (limit.value() !== undefined) rest[limit.name] = limit.value();
      const asked = {directive: one.id || id, inputs: given, ...(model.value() ? {model: model.value()} : {}), ...limitsGiven(rest)};
      const done = await page.api.post("start", {...asked, request_key: keyOf(asked)});
      page.say("Started");
      page.open(done.thread_id);
    },
  });
  fill(view.body, parts, inputs.length === 0 && h("p", {class: "hint"}, "It takes no inputs."), form.el);
  if (document.activeElement === view.title) (inputs.length > 0 ? inputs[0].input : form.go).focus();
  return undefined;
}

// onceFor gives what is asked twice the same key, so that a second press after a lost answer starts no second thread.
function onceFor() {
  let last = "", key = "";
  return (asked) => {
    const now = JSON.stringify(asked);
    if (now !== last) key = "page-" + Array.from(crypto.getRandomValues(new Uint8Array(12)), (b) => b.toString(16).padStart(2, "0")).join("");
    last = now;
    return key;
  };
}

const fieldKinds = {integer: "number", number: "number", boolean: "check", array: "area", object: "area"};

// inputField is the field of one declared input, with read() for its value in the type that is declared.
function inputField(input) {
  const type = input.type || "string";
  const choices = input.enum || [];
  let kind = input.secret ? "secret" : choices.length > 0 ? "choice" : fieldKinds[type] || (input.file ? "text" : "area");
  // A required choice of yes and no has three answers: yes, no, and none yet.
  if (kind === "check" && input.required && input.default === undefined) kind = "choice";
  const list = kind === "choice" && choices.length === 0 ? [true, false] : choices;
  const structured = type === "array" || type === "object";
  const start = structured && input.default !== undefined ? JSON.stringify(input.default) : input.default;
  const one = field({
    name: input.name, label: input.name, kind, required: Boolean(input.required) && input.default === undefined, value: start,
    choices: list, step: type === "integer" ? 1 : "any", rows: structured ? 3 : 1,
    hint: [input.description, input.file && "The path of a file", structured && "As JSON" + (type === "array" ? ", or one a line" : ""), input.secret && "Kept out of transcripts"].filter(Boolean).map((part) => oneLine(part, 400).replace(/\.$/, "")).join(". "),
  });
  one.read = () => structured ? structure(one, type) : one.kind === "check" && !one.input.checked && input.default === undefined ? undefined : one.value();
  return one;
}

function structure(one, type) {
  const given = one.value();
  if (given === undefined) return undefined;
  try {
    return JSON.parse(given);
  } catch (cause) {
    if (type === "array" && !/^\s*[[{]/.test(given)) return given.split("\n").map((line) => line.trim()).filter(Boolean);
    throw Object.assign(new Error(one.name + " is not JSON."), {hint: cause.message});
  }
}
