// What asks: questions of threads with the time that is left, and the buttons that answer them.

import {h, button, clear, setText} from "./dom.js";
import {clean, oneLine, left, money, count, duration, plural} from "./format.js";
import {asking, titleOf} from "./board.js";
import {stateMark} from "./tree.js";
import {field, fault} from "./form.js";

const answers = {
  raise: ["Raise", "It goes on under new limits."],
  finish: ["Finish", "One last turn, to return what it has."],
  stop: ["Stop", "It ends here."],
  go_on: ["Go on", "It goes on, and tries again what failed."],
  accept: ["Approve", "It may."],
  decline: ["Decline", "It may not."],
};

const limitByCode = {turns_exceeded: "turns", tokens_exceeded: "tokens", spend_exceeded: "spend", duration_exceeded: "duration_seconds"};

// limitNames are the limits as people read them, with their units.
export const limitNames = {
  turns: ["Turns", (n) => count(n)], tokens: ["Tokens", (n) => count(n)], spend: ["Spend", money],
  duration_seconds: ["Time", (n) => duration(n * 1000)], spawns: ["Children", (n) => count(n)], depth: ["Levels below", (n) => count(n)],
};

const unitLabels = {turns: "turns", tokens: "tokens", spend: "US dollars", duration_seconds: "seconds", spawns: "children", depth: "levels"};

// makeAsk returns the list of what asks, nearest deadline first. It is not there while nothing asks. While the pointer is
// over it nothing in it moves: a second click shall not meet the button of another question.
export function makeAsk(ctx) {
  const heading = h("h2", {id: "asks-title", tabindex: -1});
  const list = h("div", {class: "ask-list", onpointerleave: () => update()});
  const el = h("section", {class: "asks", "aria-labelledby": "asks-title", hidden: true}, heading, list);
  const cards = new Map();
  const update = () => {
    const rows = asking(ctx.board), now = new Map();
    for (const row of rows) {
      const id = questionId(row);
      now.set(id, cards.get(id) || fresh(row));
    }
    const focused = el.contains(document.activeElement) && document.activeElement !== heading;
    const gone = [...cards].filter(([id]) => !now.has(id)).map(([, card]) => card.el);
    cards.clear();
    for (const [id, card] of now) cards.set(id, card);
    if (list.matches(":hover")) holdPlaces(list, gone, cards.values());
    else putInOrder(list, [...cards.values()].map((card) => card.el));
    el.hidden = list.childElementCount === 0;
    setText(heading, rows.length === 0 ? "Answered" : plural(rows.length, "thread asks", "threads ask") + " you");
    if (focused && !el.contains(document.activeElement)) (el.hidden ? ctx.elsewhere() : heading).focus();
  };
  const fresh = (row) => {
    ctx.announce(oneLine(titleOf(row), 80) + " asks: " + oneLine(row.question.text, 160));
    return questionCard(ctx, row, {titled: true});
  };
  // The question of the thread that is shown beside the list stands there.
  const mark = (key) => {
    for (const card of cards.values()) card.el.classList.toggle("is-open", card.key === key);
  };
  const tick = () => {
    for (const card of cards.values()) card.tick();
  };
  const focus = () => {
    const first = list.querySelector("button, input, textarea");
    if (first) first.focus();
    return Boolean(first);
  };
  return {el, update, tick, focus, mark};
}

// putInOrder makes elements the children of a list, in their order, and moves none that is in its place.
function putInOrder(list, els) {
  for (const child of [...list.children]) if (!els.includes(child)) child.remove();
  let at = list.firstElementChild;
  for (const el of els) {
    if (el === at) at = at.nextElementSibling;
    else list.insertBefore(el, at);
  }
}

// holdPlaces leaves the room of cards that go empty, and puts those that come behind all others.
function holdPlaces(list, gone, cards) {
  for (const el of gone) {
    const room = h("div", {class: "ask-room", "aria-hidden": "true"});
    room.style.setProperty("height", el.offsetHeight + "px");
    el.replaceWith(room);
  }
  for (const card of cards) if (card.el.parentElement !== list) list.append(card.el);
}

// questionId tells one question from the next of the same thread.
export function questionId(row) {
  const q = row.question;
  return row.key + " " + (q.id || q.deadline_at + q.text);
}

// questionCard shows a question with the time it has, and what can be answered.
export function questionCard(ctx, row, {titled = false} = {}) {
  const q = row.question;
  const time = h("p", {class: "deadline"});
  const refusal = h("div", {class: "refusal"});
  const el = h("article", {class: "ask", "aria-label": oneLine(titleOf(row), 80) + " asks"});
  if (titled) {
    el.append(h("header", null, stateMark("asks"),
      button(oneLine(titleOf(row), 100), () => ctx.open(row.key), {class: "linkish", title: "Show this thread"}), time));
  }
  el.append(h("p", {class: "question"}, clean(q.text)));
  if (!titled) el.append(time);
  if (ctx.may("approve_thread")) el.append(answersOf(ctx, row, refusal, titled), refusal);
  const tick = () => setText(time, deadlineText(q, ctx.skew()));
  tick();
  return {el, tick, key: row.key};
}

function deadlineText(q, skew) {
  if (!q.deadline_at) return "";
  const rest = left(q.deadline_at, skew);
  const held = q.default ? (answers[q.default] || [q.default])[0].toLowerCase() : "";
  if (!rest) return held ? "Time is up: " + held : "Time is up";
  return held ? rest + " left, then: " + held : rest + " left";
}

function answersOf(ctx, row, refusal, folded) {
  const q = row.question, options = q.options || [];
  const bodies = [], buttons = h("div", {class: "answers"});
  const send = (decision, more) => answer(ctx, row, {decision, ...more}, refusal, buttons);
  const summary = q.kind === "handoff" && options.includes("accept") ? summaryField(ctx, row) : null;
  if (summary) bodies.push(h("details", {open: !folded}, h("summary", null, "What the next thread is told"), summary.el));
  for (const decision of options) {
    const [label, usual] = answers[decision] || [oneLine(decision), ""];
    const means = oneLine(q.means && q.means[decision] || usual);
    if (decision === "raise") {
      const amounts = amountsOf(q);
      bodies.push(amounts.el);
      buttons.append(button(label, () => {
        const limits = amounts.values();
        if (limits) return send(decision, {limits});
        return undefined;
      }, {class: "primary", title: means}));
    } else {
      const more = () => decision === "accept" && summary && summary.changed() ? {summary: summary.input.value} : {};
      buttons.append(button(label, () => send(decision, more()), {class: decision === "accept" || decision === "go_on" ? "primary" : decision === "stop" || decision === "decline" ? "warn" : "", title: means}));
    }
  }
  return h("div", {class: "answer-form"}, bodies, buttons);
}

// answer sends a decision. The card stays until the board says that the thread asks no more.
async function answer(ctx, row, body, refusal, buttons) {
  clear(refusal);
  for (const one of buttons.children) one.setAttribute("aria-disabled", "true");
  try {
    const done = await ctx.api.post("call/approve_thread", {thread_id: row.thread_id, ...body});
    ctx.say("Answered: " + (answers[done.decision] || [done.decision])[0]);
    buttons.parentElement.hidden = true;
    refusal.append(h("p", {class: "hint"}, "Answered: " + (answers[done.decision] || [done.decision])[0].toLowerCase() + ". The thread takes it up."));
  } catch (error) {
    refusal.append(fault(error));
    for (const one of buttons.children) one.removeAttribute("aria-disabled");
  }
}

// amountsOf has an input for the limit that was hit, with a value that goes a good step further.
function amountsOf(q) {
  const now = q.limits || {}, most = q.most || {};
  const hit = limitByCode[q.code];
  const names = hit ? [hit] : Object.keys(now).filter((name) => unitLabels[name]);
  const inputs = names.map((name) => {
    const step = name === "spend" ? "any" : 1;
    const one = field({name, kind: "number", label: "New limit: " + unitLabels[name], value: hit ? further(now[name], most[name], name) : undefined,
      required: Boolean(hit), quiet: true, max: most[name], step, hint: boundsOf(name, now[name], most[name])});
    return one;
  });
  const values = () => {
    const limits = {};
    for (const one of inputs) {
      one.input.setCustomValidity(one.value() <= now[one.name] ? "More than " + limitNames[one.name][1](now[one.name]) : "");
      if (!one.input.reportValidity()) return null;
      if (one.value() !== undefined) limits[one.name] = one.value();
    }
    return limits;
  };
  return {el: h("div", {class: "amounts"}, inputs.map((one) => one.el)), values};
}

function boundsOf(name, now, most) {
  const show = limitNames[name][1], parts = [];
  if (now !== undefined) parts.push("now " + show(now));
  if (most !== undefined) parts.push("at most " + show(most));
  return parts.join(", ");
}

function further(now, most, name) {
  if (!(now > 0)) return undefined;
  const round = name === "spend" ? Math.ceil(now * 150) / 100 : Math.ceil(now * 1.5);
  return most > 0 ? Math.min(round, most) : round;
}

// summaryField holds what a successor would be told, to be read and changed. Where the board has only its
// beginning, the whole is fetched.
function summaryField(ctx, row) {
  const one = field({name: "summary", kind: "area", rows: 8, label: "Change it, or leave it as it is", value: row.question.summary || ""});
  let proposed = one.input.value, touched = false;
  one.input.addEventListener("input", () => {
    touched = true;
  });
  ctx.api.get("threads/" + encodeURIComponent(row.thread_id)).then((all) => {
    const whole = all.question && all.question.summary;
    if (!whole || touched) return;
    one.input.value = whole;
    proposed = one.input.value;
  }, () => {});
  return {el: one.el, input: one.input, changed: () => one.input.value !== proposed};
}
