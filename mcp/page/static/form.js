// Fields, forms in dialogs, and how refusals are shown.

import {h, button, dialog, clear, icon, busyWhile} from "./dom.js";
import {oneLine, clean} from "./format.js";

// field makes a labelled input: {el, input, value(), name}. kind: text, area, number, check, choice, secret.
// value() is undefined for what was left empty.
export function field({name, label, kind = "text", value, required = false, hint = "", choices = [], min, max, step, placeholder, rows = 3, quiet = false}) {
  const id = "field-" + ++fields.count;
  const input = inputOf(kind, {id, name, value, required, choices, min, max, step, placeholder, rows});
  const note = hint ? h("p", {class: "hint", id: id + "-hint"}, hint) : null;
  if (note) input.setAttribute("aria-describedby", note.id);
  const caption = h("label", {for: id}, label, required && kind !== "check" && !quiet ? h("span", {class: "needed"}, " required") : null);
  const el = kind === "check"
    ? h("div", {class: "field check"}, input, caption, note)
    : h("div", {class: "field"}, caption, input, note);
  return {el, input, name, kind, value: () => valueOf(input, kind, choices)};
}

const fields = {count: 0};

function inputOf(kind, {id, name, value, required, choices, min, max, step, placeholder, rows}) {
  const common = {id, name, required: required && kind !== "check"};
  switch (kind) {
    case "area":
      return h("textarea", {...common, rows, css: {"--rows": String(rows)}, placeholder, spellcheck: "true", value: value ?? ""});
    case "number":
      return h("input", {...common, type: "number", inputmode: "decimal", min, max, step: step ?? "any", placeholder, value: value ?? ""});
    case "check":
      return h("input", {...common, type: "checkbox", checked: Boolean(value)});
    case "choice":
      return h("select", common,
        (required && value !== undefined) ? null : h("option", {value: ""}, placeholder || "\u2013"),
        choices.map((choice, i) => h("option", {value: String(i + 1), selected: choice === value}, oneLine(typeof choice === "string" ? choice : JSON.stringify(choice)))));
    case "secret":
      return h("input", {...common, type: "password", autocomplete: "off", spellcheck: "false", value: value ?? ""});
    default:
      return h("input", {...common, type: "text", autocomplete: "off", spellcheck: "false", placeholder, value: value ?? ""});
  }
}

function valueOf(input, kind, choices) {
  if (kind === "check") return input.checked;
  if (input.value === "") return undefined;
  if (kind === "number") return Number(input.value);
  return kind === "choice" ? choices[Number(input.value) - 1] : input.value;
}

// valuesOf collects what was filled in.
function valuesOf(list) {
  const values = {};
  for (const one of list) {
    const value = one.value();
    if (value !== undefined) values[one.name] = value;
  }
  return values;
}

// sentence ends a message as one, so that another can follow it.
export function sentence(message) {
  const said = clean(message).trim();
  return said === "" || /[.!?\u2026:]$/.test(said) ? said : said + ".";
}

// fault shows a refusal: what was wrong, what is valid, what to do.
export function fault(error) {
  const valid = error && (error.valid_decisions || error.valid_limits || error.valid_values);
  return h("div", {class: "fault", role: "alert"}, icon("broken"),
    h("div", null,
      h("p", null, clean(error && error.message || "Something went wrong.")),
      Array.isArray(valid) && h("p", {class: "hint"}, "Valid: " + valid.join(", ")),
      error && error.hint && h("p", {class: "hint"}, clean(error.hint)),
      error && error.try && h("p", {class: "hint"}, "In a terminal: ", h("code", null, clean(error.try))),
      error && error.code && h("p", {class: "hint code"}, clean(error.code))));
}

// entryForm makes a form whose button and Enter check the fields and call send. The browser submits nothing: a frame that
// shows an MCP App need not be allowed to.
export function entryForm(attrs, go, send, ...kids) {
  const checked = (event) => {
    event.preventDefault();
    if (el.reportValidity()) send();
  };
  const el = h("form", {...attrs, onsubmit: (event) => event.preventDefault(), onkeydown: (event) => {
    if (event.key !== "Enter" || event.isComposing) return;
    if (event.ctrlKey || event.metaKey || event.target.matches("input")) checked(event);
  }}, kids);
  go.addEventListener("click", checked);
  return el;
}

// submitter makes a form of fields whose button runs something; what is refused is shown, and the form stays.
export function submitter({fields: list, label, run, danger = false, more = []}) {
  const refusal = h("div", {class: "refusal"});
  const go = h("button", {type: "submit", class: danger ? "danger" : "primary", title: "Ctrl Enter"}, label);
  const send = () => {
    if (go.getAttribute("aria-disabled") === "true") return;
    clear(refusal);
    busyWhile(go, Promise.resolve().then(() => run(valuesOf(list)))).catch((error) => refusal.append(fault(error)));
  };
  const el = entryForm({class: "form"}, go, send, list.map((one) => one.el), more, refusal, h("div", {class: "form-actions"}, go));
  return {el, go, refusal, actions: go.parentElement};
}

// formDialog asks for values in a dialog. When run's promise resolves with nodes, these are shown in place
// of the form; with nothing, the dialog closes. A careful one begins on the button that does nothing.
export function formDialog({title, intro, fields: list = [], label, run, danger, careful = false}) {
  const place = h("div");
  const form = submitter({fields: list, label, danger, run: async (values) => {
    const shown = await run(values);
    if (!shown) return box.close();
    clear(place).append(shown);
    const done = button("Close", () => box.close(), {class: "primary"});
    place.append(h("div", {class: "form-actions"}, done));
    done.focus();
  }});
  const back = button("Back", () => box.close(), {class: "quiet"});
  form.actions.prepend(back);
  if (intro) place.append(h("div", {class: "intro"}, intro));
  place.append(form.el);
  const box = dialog({title, body: place, focus: careful ? back : list.length > 0 ? list[0].input : form.go});
  return {...box, form, place};
}
