// What can be done with a thread. Nothing is shown as done before the server has said so.

import {h, button, icon, clear} from "./dom.js";
import {clean, oneLine, money, count, bytes, plural} from "./format.js";
import {stateOf, hasEnded, titleOf, below} from "./board.js";
import {field, fault, formDialog} from "./form.js";
import {stateMark} from "./tree.js";
import {limitNames} from "./ask.js";

// Each action: [operation, label, when it is there, what it does, look]. The order is that of the buttons.
const actions = [
  ["steer_thread", "Tell it something", (row) => !hasEnded(row) && row.kind === "directive", steer, "primary"],
  ["resume_thread", "Resume", (row) => hasEnded(row) && row.kind === "directive", resume, "primary"],
  ["handoff_thread", "Hand over", (row) => row.status === "running" && row.kind === "directive", handOver],
  ["fork_thread", "Fork", (row) => row.kind === "directive" && row.status !== "created", fork],
  ["rename_thread", "Rename", () => true, rename],
  ["", "Export", hasEnded, exportThread],
  ["cancel_thread", "Cancel", (row) => !hasEnded(row) || Boolean(row.retry_at), (ctx, row) => halt(ctx, row, "cancel_thread"), "warn"],
  ["kill_thread", "Kill", (row) => !hasEnded(row), (ctx, row) => halt(ctx, row, "kill_thread"), "quiet warn"],
  ["delete_thread", "Delete\u2026", () => true, remove, "quiet warn"],
];

// makeActions returns the buttons of one thread. update(row) puts up those that make sense now.
export function makeActions(ctx) {
  const el = h("div", {class: "actions", role: "group", "aria-label": "Actions"});
  const place = h("div", {class: "refusal"});
  let shown = "";
  const update = (row) => {
    const now = actions.filter(([operation, , when]) => (operation === "" ? ctx.api.saves : ctx.may(operation)) && when(row));
    const names = now.map(([, label]) => label).join();
    if (names === shown) return;
    shown = names;
    const focused = el.contains(document.activeElement) ? document.activeElement.textContent : "";
    clear(el);
    for (const [, label, , run, look] of now) {
      el.append(button(label, () => attempt(() => run(ctx, ctx.row())), {class: look || ""}));
    }
    if (focused) ([...el.children].find((b) => b.textContent === focused) || el.firstElementChild || el).focus();
  };
  const attempt = async (run) => {
    clear(place);
    try {
      await run();
    } catch (error) {
      place.append(fault(error));
    }
  };
  const press = (operation) => {
    const found = actions.find(([name, , when]) => name === operation && ctx.may(name) && when(ctx.row()));
    if (found) attempt(() => found[3](ctx, ctx.row()));
    return Boolean(found);
  };
  return {el, place, update, press};
}

const call = (ctx, operation, body) => ctx.api.post("call/" + operation, body);

function steer(ctx, row) {
  formDialog({
    title: "Tell it something", label: "Send",
    intro: "It reads this before its next turn, as an instruction of yours.",
    fields: [
      field({name: "message", label: "Message", kind: "area", rows: 5, required: true}),
      field({name: "interrupt", label: "Interrupt what it is doing now", kind: "check", hint: "Its running model call or tool is stopped, so that it reads this at once."}),
    ],
    run: async ({message, interrupt}) => {
      const done = await call(ctx, "steer_thread", {thread_id: row.thread_id, message, ...(interrupt ? {interrupt} : {})});
      ctx.say("Sent");
      return done.read_when ? h("p", null, "Sent. It is read: " + oneLine(done.read_when) + ".") : undefined;
    },
  });
}

function resume(ctx, row) {
  formDialog({
    title: "Resume", label: "Resume",
    intro: "A new thread goes on with the same conversation, under the limits that it began with.",
    fields: [field({name: "message", label: "What it should do next", kind: "area", rows: 5, required: true}), ...limitFields(row.limits)],
    run: async (values) => {
      const done = await call(ctx, "resume_thread", {thread_id: row.thread_id, message: values.message, ...limitsGiven(values)});
      ctx.say("Resumed");
      ctx.open(done.new_thread_id);
    },
  });
}

// limitFields ask for limits, with those that hold as placeholders.
export function limitFields(limits, names = ["turns", "spend", "duration_seconds"]) {
  return names.map((name) => field({
    name: "limit." + name, kind: "number", min: 0, step: name === "spend" || name === "duration_seconds" ? "any" : 1,
    label: "Limit: " + limitNames[name][0].toLowerCase() + ({spend: ", in US dollars", duration_seconds: ", in seconds"}[name] || ""),
    placeholder: limits && limits[name] !== undefined ? String(limits[name]) : "as configured",
  }));
}

// limitsGiven is {limits} of a form's values, or nothing where none was given.
export function limitsGiven(values) {
  const limits = {};
  for (const [name, value] of Object.entries(values)) if (name.startsWith("limit.")) limits[name.slice(6)] = value;
  return Object.keys(limits).length > 0 ? {limits} : {};
}

function fork(ctx, row) {
  formDialog({
    title: "Fork", label: "Fork",
    intro: "A copy of the thread goes on by itself. This one is left as it is.",
    fields: [
      field({name: "at_turn", label: "After turn", kind: "number", min: 1, step: 1, placeholder: row.turns ? "the last, " + row.turns : "the last"}),
      field({name: "message", label: "What the copy should do", kind: "area", rows: 4}),
      field({name: "name", label: "Name of the copy"}),
    ],
    run: async (values) => {
      const done = await call(ctx, "fork_thread", {thread_id: row.thread_id, ...values});
      ctx.say("Forked");
      ctx.open(done.thread_id);
    },
  });
}

function rename(ctx, row) {
  formDialog({
    title: "Rename", label: "Rename",
    fields: [field({name: "name", label: "Name", value: row.name || "", required: true})],
    run: async ({name}) => {
      await call(ctx, "rename_thread", {thread_id: row.thread_id, name});
      ctx.say("Renamed");
    },
  });
}

function handOver(ctx, row) {
  formDialog({
    title: "Hand over", label: "Hand over",
    intro: "A new thread with an empty context goes on with the work, told what this one has done.",
    fields: [field({name: "summary", label: "What the next thread is told", kind: "area", rows: 6, hint: "Left empty, the thread writes it itself."})],
    run: async (values) => {
      const done = await call(ctx, "handoff_thread", {thread_id: row.thread_id, ...values});
      ctx.say("Asked to hand over");
      return h("p", null, done.approval ? "It asks first whether it may." : "It hands over after its present turn.");
    },
  });
}

async function exportThread(ctx, row) {
  const answer = await ctx.api.raw("threads/" + encodeURIComponent(row.thread_id) + "/export?chain=1");
  saveAs(await answer.blob(), row.thread_id.replace(/[^\w.-]+/g, "_") + ".ryetest");
  ctx.say("Exported");
}

// saveAs gives bytes to the browser as a download.
function saveAs(blob, name) {
  const url = URL.createObjectURL(blob);
  const link = h("a", {href: url, download: name, hidden: true});
  document.body.append(link);
  link.click();
  link.remove();
  setTimeout(() => URL.revokeObjectURL(url), 60000);
}

function halt(ctx, row, operation) {
  const kill = operation === "kill_thread";
  const living = below(ctx.board, row.key).filter((one) => !hasEnded(one)).length;
  formDialog({
    title: kill ? "Kill" : "Cancel", label: (kill ? "Kill " : "Cancel ") + plural(living + 1, "thread"), danger: true,
    intro: [
      h("p", null, h("b", null, oneLine(titleOf(row), 100)), living > 0 ? " and " + plural(living, "thread") + " below it." : ""),
      h("p", {class: "hint"}, kill ? "The processes are ended at once. What they were writing may be lost." : "Each is stopped where it is and keeps what it has done. It can be resumed."),
    ],
    run: async () => {
      const done = await call(ctx, operation, {thread_ids: [row.thread_id]});
      ctx.say(kill ? "Killed" : "Cancelled");
      return receipts(ctx, done);
    },
  });
}

const ways = {
  already_ended: "had ended", not_started: "was not started", not_retried: "is not tried again", interrupted: "interrupted", terminated: "terminated", killed: "killed",
  asked_elsewhere: "asked, on another machine",
};

// receipts shows how each thread was stopped and what it had cost.
function receipts(ctx, done) {
  const list = done.receipts || [];
  const sum = list.reduce((all, one) => all + (one.spend || 0), 0);
  return h("div", null,
    h("p", null, done.success ? "All have ended." : "Not all have ended.", " Spent: " + money(sum) + "."),
    h("div", {class: "scroll", tabindex: 0, role: "group", "aria-label": "Receipts"}, h("table", {class: "receipt-table"},
      h("thead", null, h("tr", null, ["Thread", "State", "How", "Spent"].map((name) => h("th", {scope: "col"}, name)))),
      h("tbody", null, list.map((one) => {
        const row = ctx.board.find(one.thread_id);
        return h("tr", null,
          h("th", {scope: "row"}, row ? oneLine(titleOf(row), 60) : one.thread_id),
          h("td", null, stateMark(stateOf({status: one.status})), " ", stateOf({status: one.status})),
          h("td", null, one.error ? clean(one.error) : ways[one.how] || one.how),
          h("td", {class: "number"}, money(one.spend || 0)));
      })))));
}

// remove shows what would go before anything does.
async function remove(ctx, row) {
  const plan = await planOf(ctx, row, false);
  const living = (plan.living || []).length, force = living > 0 || Boolean(plan.blocked);
  formDialog({
    title: "Delete", danger: true, careful: true, label: (living > 0 ? "Stop and delete " : "Delete ") + plural(plan.threads, "thread"),
    intro: deletionPlan(ctx, row, plan),
    fields: force ? [field({name: "force", kind: "check", required: true, label: living > 0 ? "Also " + plural(living, "thread") + " that still " + (living === 1 ? "works" : "work") : "Delete it all the same"})] : [],
    run: async (values) => {
      if (force && !values.force) throw Object.assign(new Error("Nothing was deleted."), {hint: "Tick the box above the button to go on."});
      if (force) { // what is agreed to with force must have been shown with it
        const again = await planOf(ctx, row, true);
        if (again.threads !== plan.threads) throw Object.assign(new Error("Nothing was deleted: what would go has changed."), {hint: "Close this and look again at what would go."});
      }
      const done = await call(ctx, "delete_thread", {thread_id: row.thread_id, confirm: true, ...(force ? {force: true} : {})});
      if (done.dry_run) throw Object.assign(new Error("Nothing was deleted: what would go has changed."), {hint: "Close this and look again at what would go."});
      ctx.say("Deleted");
      ctx.gone();
      const rest = (done.kept || []).map((line) => h("li", null, clean(line)));
      return rest.length > 0 ? h("div", null, h("p", null, "Deleted. This could not be removed:"), h("ul", null, rest)) : undefined;
    },
  });
}

function planOf(ctx, row, force) {
  return ctx.api.post("threads/" + encodeURIComponent(row.thread_id) + "/plan-delete", force ? {force} : {});
}

function deletionPlan(ctx, row, plan) {
  const ids = plan.thread_ids || [], more = plan.threads - ids.length;
  return [
    h("p", null, h("b", null, oneLine(titleOf(row), 100)), plan.threads > 1 ? ", its chain and all below it: " : ": ",
      plural(plan.threads, "thread") + ", " + bytes(plan.bytes || 0) + "."),
    plan.with && plan.with.length > 0 && h("p", null, "With " + plan.with.map((w) => oneLine(w)).join(", ") + "."),
    plan.spend > 0 && h("p", {class: "hint"}, money(plan.spend) + " that they have cost stays in every sum."),
    plan.blocked && h("p", {class: "warning"}, icon("broken"), " ", clean(plan.blocked)),
    plan.threads > 1 && h("details", null, h("summary", null, "Which"),
      h("ul", {class: "ids scroll", tabindex: 0, "aria-label": "What would go"}, ids.map((id) => {
        const one = ctx.board.find(id);
        return h("li", null, one ? oneLine(titleOf(one), 60) + " " : "", h("code", null, id));
      }), more > 0 && h("li", null, "and " + count(more) + " more"))),
  ];
}

