// The shell: the bar at the top, the list of threads, what asks, and the place where the chosen thing is shown.
// It knows no address and no storage: a router and a memory are given to it (app.js; in the MCP App others).

import {h, button, icon, clear, fill, setText} from "./dom.js";
import {oneLine, money, plural, count} from "./format.js";
import {makeBoard, asking} from "./board.js";
import {makeTree, stateMark, bar} from "./tree.js";
import {makeAsk} from "./ask.js";
import {sentence} from "./form.js";
import {makeDetail} from "./detail.js";
import {makeStart} from "./start.js";
import {openSearch} from "./search.js";
import {makeKeys} from "./keys.js";
import {projectSpend} from "./costs.js";
import {tabs} from "./tabs.js";

const hiddenPollMs = 30000;

// makeShell builds the page of a session in an element.
//   api      get, post, raw, stream, skew, project
//   session  version, read_only, projects, project, operations, now
//   memory   get, set (of this view), chosen, choose (of the person)
//   router   read() → {project, kind: list|thread|start|spend, id, tab}, push(route), replace(route), onChange(fn)
//   tools    further buttons of the bar at the top
//   reload, refused   what to do for another version of the server, and when the token is not accepted
export function makeShell({root, api, session, memory, router, tools = [], reload = () => {}, refused = () => {}}) {
  const page = {api, session, memory, router, tools, reload, refused, board: makeBoard(), view: null, route: null};
  api.project = session.projects && session.projects.length > 1 ? session.project : "";
  keepTime(page, session);
  Object.assign(page, {
    skew: () => api.skew,
    may: (operation) => !session.read_only && (session.operations || []).includes(operation),
    mayStart: () => !session.read_only,
    say: (words) => say(page, words),
    announce: (words) => announce(page, words),
    open: (where, tab, at) => go(page, where, tab, at),
    tabShown: (id, tab) => replaceRoute(page, {...page.route, id, tab}),
    elsewhere: () => page.tree.el.querySelector("[tabindex='0']") || page.main,
  });
  page.tree = makeTree({board: page.board, skew: page.skew, memory, onOpen: (key) => page.open(key)});
  page.ask = makeAsk(page);
  frame(page, root);
  page.keys = makeKeys(bindingsOf(page), () => memory.chosen("keys") !== false);
  page.board.subscribe((change) => boardChanged(page, change));
  setInterval(() => tickPage(page), 1000);
  router.onChange(() => showRoute(page));
  document.addEventListener("visibilitychange", () => watchHidden(page));
  followBoard(page);
  drawFoot(page);
  showRoute(page);
  return page;
}

// brand is the mark of rye-mcp.
export function brand() {
  return h("span", {class: "brand", "aria-hidden": "true"}, icon("rye"));
}

function keepTime(page, session) {
  const now = Date.parse(session.now);
  if (Number.isFinite(now)) page.api.skew = now - Date.now();
}

// frame is what stays: the bar at the top, the list, the place of the view, and what is read out.
function frame(page, root) {
  page.connection = h("span", {class: "connection", role: "status"});
  page.banner = h("div", {class: "banner", hidden: true});
  page.totals = h("div", {class: "totals"});
  page.live = h("div", {class: "visually-hidden", "aria-live": "polite"});
  page.foot = h("p", {class: "hint foot"});
  page.place = h("section", {class: "place", "aria-label": "Chosen thread"});
  page.empty = h("div", {class: "empty", hidden: true});
  page.list = h("section", {class: "list", "aria-label": "Threads of the project"}, h("h1", {class: "visually-hidden"}, "Threads"), page.ask.el, listHead(page),
    h("div", {class: "columns", "aria-hidden": "true"}, ["Thread", "Directive", "Context", "Turns", "Spend", "Time"].map((name) => h("span", null, name))),
    page.tree.el, page.empty, page.foot);
  page.main = h("main", {class: "main", tabindex: -1}, page.list, page.place);
  fill(root, h("a", {href: "#threads", class: "skip", onclick: (event) => {
    event.preventDefault();
    page.tree.focus();
  }}, "To the threads"), topBar(page), page.banner, page.main, page.live);
}

function topBar(page) {
  const {session} = page;
  const projects = session.projects || [];
  const choose = projects.length > 1 && h("select", {"aria-label": "Project", onchange: (event) => changeProject(page, event.target.value)},
    projects.map((one) => h("option", {value: one.name, selected: one.name === session.project, title: one.path}, oneLine(one.name, 60))));
  return h("header", {class: "top"},
    h("a", {href: "#/", class: "home", "aria-label": "All threads", onclick: (event) => {
      event.preventDefault();
      page.open("");
    }}, brand()),
    choose || h("span", {class: "project", title: projects[0] && projects[0].path}, oneLine(session.project || "", 60)),
    session.read_only && h("span", {class: "badge", title: "This address shows, and changes nothing"}, "look only"),
    page.totals, page.connection,
    h("nav", {"aria-label": "Page"},
      page.mayStart() && button([icon("plus"), h("span", {class: "label"}, "Start")], () => page.open("start"), {class: "primary", title: "Start a directive (n)", "aria-label": "Start a directive"}),
      button([icon("spend"), h("span", {class: "label"}, "Spend")], () => page.open("spend"), {class: "quiet", title: "What was spent (s)", "aria-label": "Spend"}),
      button([icon("search"), h("span", {class: "label"}, "Search")], () => openSearch(page), {class: "quiet", title: "Search (/)", "aria-label": "Search"}),
      page.tools,
      button(icon("keyboard"), () => showHelp(page), {class: "quiet icon-only", "aria-label": "Keys and signs", title: "Keys and signs (?)"})));
}

const filterNames = [["all", "All"], ["asks", "Asking"], ["working", "Working"], ["failed", "Failed"], ["ended", "Ended"]];

function listHead(page) {
  const input = h("input", {type: "search", placeholder: "Filter", "aria-label": "Filter threads", autocomplete: "off", spellcheck: "false",
    oninput: () => page.tree.setFilter({text: input.value.trim()}) || drawFoot(page)});
  input.addEventListener("keydown", (event) => {
    if (event.key === "ArrowDown" || event.key === "Enter") {
      event.preventDefault();
      page.tree.focus();
    }
  });
  page.filter = input;
  const chips = h("div", {class: "chips", role: "group", "aria-label": "Which threads"}, filterNames.map(([state, label]) => button(label, (event) => {
    for (const chip of chips.children) chip.setAttribute("aria-pressed", String(chip === event.currentTarget));
    page.tree.setFilter({state});
    drawFoot(page);
  }, {class: "chip", "aria-pressed": String(state === "all")})));
  page.head = h("div", {class: "list-head"}, chips, input);
  return page.head;
}

// followBoard follows the board of the chosen project until another is chosen.
function followBoard(page) {
  if (page.following) page.following.abort();
  const following = page.following = new AbortController();
  const path = () => "board?stream=1" + (page.board.version ? "&since=" + encodeURIComponent(page.board.version) : "");
  page.api.stream(path, (sent) => {
    if (!following.signal.aborted) page.board.apply(sent);
  }, following.signal, (state, more) => connectionIs(page, state, more));
}

// watchHidden looks now and then while the page is hidden, so that its title says what asks.
function watchHidden(page) {
  clearInterval(page.poll);
  if (document.visibilityState !== "hidden") return;
  page.poll = setInterval(() => {
    page.api.get("board" + (page.board.version ? "?since=" + encodeURIComponent(page.board.version) : "")).then(page.board.apply, () => {});
  }, hiddenPollMs);
}

function boardChanged(page, change) {
  page.tree.update(change);
  page.ask.update();
  drawTotals(page);
  drawFoot(page);
  if (page.view && page.view.update) page.view.update(change);
  const shown = page.route && page.route.kind === "thread" && page.board.find(page.route.id);
  page.ask.mark(shown ? shown.key : "");
  if (shown && page.tree.selected !== shown.key) page.tree.reveal(shown.key);
}

function drawTotals(page) {
  const t = page.board.totals, asks = asking(page.board).length;
  const part = (state, n, label) => n > 0 && h("span", {class: "total", title: label}, stateMark(state), count(n), h("span", {class: "label"}, " " + label));
  const now = JSON.stringify([t, asks]);
  if (page.totalled !== now) {
    page.totalled = now;
    fill(page.totals, part("asks", asks, "asking"), part("working", Math.max(0, (t.working || 0) - asks), "working"), part("queued", t.queued || 0, "queued"),
      h("span", {class: "total", title: "Spent by the threads on this page"}, money(t.spend || 0), h("span", {class: "label"}, " spent")),
      t.reserved > 0 && h("span", {class: "total wide-only", title: "Held for threads that work, and not spent"}, money(t.reserved), h("span", {class: "label"}, " reserved")));
  }
  document.title = (asks > 0 ? "(" + asks + ") " : "") + (page.session.project ? oneLine(page.session.project, 40) + " \u00b7 " : "") + "rye";
}

// drawFoot says below the rows what is not among them.
function drawFoot(page) {
  const board = page.board, none = board.loaded && board.rows.size === 0;
  page.empty.hidden = !none;
  page.list.classList.toggle("is-empty", none);
  if (none && page.empty.childElementCount === 0) fill(page.empty, emptyState(page));
  const missing = board.loaded && !none && page.tree.order.length === 0 ? "No thread is like that." : "";
  const reading = board.loaded ? "" : "Reading the threads\u2026";
  setText(page.foot, reading || missing || (board.omitted > 0 ? plural(board.omitted, "older thread") + " not shown. Search finds " + (board.omitted === 1 ? "it." : "them.") : ""));
}

function emptyState(page) {
  return [
    brand(),
    h("h2", null, "No threads yet"),
    h("p", null, "A thread is one run of a directive: a model at work, with limits on its turns, its time and its money. It shows up here as soon as it is started."),
    page.mayStart() && h("p", null, button([icon("plus"), "Start a directive"], () => page.open("start"), {class: "primary"})),
    h("p", {class: "hint"}, "Or let the model in your editor start one, or in a terminal: ", h("code", null, "rye-mcp run")),
  ];
}

function connectionIs(page, state, {error, retryAt} = {}) {
  const known = {live: ["live", "Live"], connecting: ["connecting", "Connecting\u2026"], paused: ["connecting", "Paused"]}[state];
  page.retryAt = state === "waiting" ? retryAt : 0;
  if (state === "live" && page.lost) backAgain(page);
  if (known) {
    if (state === "connecting" && page.lost) return;
    showConnection(page, ...known);
    return;
  }
  page.lost = true;
  showConnection(page, "gone", state === "refused" ? "Not connected" : "Connection lost");
  if (state === "refused") {
    fill(page.banner, h("p", {role: "alert"}, h("b", null, error.status === 401 ? "This address is not valid any more. " : "The server refuses. "), sentence(error.message), " ", sentence(error.hint || "")),
      error.status !== 401 && button("Try again", () => followBoard(page), {class: "small"}));
    if (error.status === 401) page.refused();
    page.banner.hidden = false;
  } else {
    showLost(page, error);
  }
}

function showConnection(page, name, label) {
  if (page.connection.dataset.state === name) return;
  page.connection.dataset.state = name;
  fill(page.connection, h("i", {"aria-hidden": "true"}), h("span", {class: "label"}, label));
  page.connection.title = label;
}

function showLost(page, error) {
  if (!page.lostNote) {
    page.lostNote = h("span", {class: "retry"});
    fill(page.banner, h("p", {role: "alert"}, h("b", null, "Connection lost. "), error ? sentence(error.message) + " " : "", "What is shown may be old. "), page.lostNote,
      button("Try now", () => followBoard(page), {class: "small"}));
  }
  page.banner.hidden = false;
  tickPage(page);
}

// backAgain is for a server that answers again: it may be another one, of another version.
async function backAgain(page) {
  page.lost = false;
  page.lostNote = null;
  clear(page.banner);
  page.banner.hidden = true;
  page.say("Connected again");
  try {
    const session = await page.api.get("session");
    keepTime(page, session);
    if (session.version === page.session.version && session.read_only === page.session.read_only) return;
    fill(page.banner, h("p", {role: "status"}, "The server is another version now. "), button("Load the page again", () => page.reload(), {class: "small"}));
    page.banner.hidden = false;
  } catch {
    // the stream says what is wrong
  }
}

function tickPage(page) {
  page.ask.tick();
  if (page.view && page.view.tick) page.view.tick();
  if (page.lostNote) setText(page.lostNote, page.retryAt > Date.now() ? "Trying again in " + Math.ceil((page.retryAt - Date.now()) / 1000) + "\u202fs. " : "Trying\u2026 ");
  page.ticks = (page.ticks || 0) + 1;
  if (page.ticks % 5 === 0 && document.visibilityState === "visible") page.tree.tick();
}

// say has words read out, and shows them for a moment.
function say(page, words) {
  announce(page, words);
  for (const old of document.querySelectorAll(".toast")) old.remove();
  const note = h("div", {class: "toast", "aria-hidden": "true"}, words);
  (document.querySelector("dialog[open]") || document.body).append(note);
  setTimeout(() => note.remove(), 3000);
}

// announce has words read out. What is said within a moment is said together.
function announce(page, words) {
  page.unsaid = page.unsaid ? page.unsaid + ". " + words : words;
  clearTimeout(page.saying);
  setText(page.live, "");
  page.saying = setTimeout(() => {
    setText(page.live, oneLine(page.unsaid, 600));
    page.unsaid = "";
  }, 120);
}

// go shows another thing: "" the list, "start", "start/ID", "spend", else a thread.
function go(page, where, tab = "", at = undefined) {
  const route = where === "" ? {kind: "list"} : where === "spend" ? {kind: "spend"}
    : where === "start" || where.startsWith("start/") ? {kind: "start", id: where.slice(6)} : {kind: "thread", id: where};
  page.router.push({project: page.api.project, id: "", ...route, tab});
  showRoute(page, true, at);
}

function replaceRoute(page, route) {
  page.route = route;
  page.router.replace({...route, project: page.api.project});
}

// showRoute shows what the address says.
function showRoute(page, byHand = false, at = undefined) {
  const route = page.router.read();
  if (route.project && page.api.project && route.project !== page.api.project) return changeProject(page, route.project, true);
  const before = page.route;
  if (before && before.kind === route.kind && before.id === route.id && page.view) {
    page.route = {...route, tab: route.tab || before.tab};
    if (route.tab && page.view.showTab) page.view.showTab(route.tab, at);
    return undefined;
  }
  if (page.view) page.view.close();
  page.route = route;
  page.view = viewOf(page, {...route, at});
  fill(page.place, page.view ? page.view.el : h("div", {class: "hint nothing"}, "Choose a thread to see what it does."));
  document.body.classList.toggle("has-view", Boolean(page.view));
  const row = route.kind === "thread" ? page.board.find(route.id) : null;
  if (row) page.tree.reveal(row.key);
  else page.tree.select("");
  page.ask.mark(row ? row.key : "");
  if (byHand || before) focusView(page, before);
  return undefined;
}

// focusView moves the focus into what was opened, and back to the row where it was closed.
function focusView(page, before) {
  if (page.view) return page.view.focus();
  const row = before && before.kind === "thread" && page.board.find(before.id);
  if (row) page.tree.select(row.key);
  page.tree.selected = "";
  return page.tree.focus();
}

function viewOf(page, route) {
  switch (route.kind) {
    case "thread": return makeDetail(page, route, tabs);
    case "start": return makeStart(page, route.id);
    case "spend": return projectSpend(page);
    default: return null;
  }
}

function changeProject(page, name, byRoute = false) {
  page.api.project = name;
  page.memory.set("project", name);
  page.session = {...page.session, project: name};
  if (page.view) page.view.close();
  page.view = null;
  page.route = null;
  page.board.reset();
  if (!byRoute) page.router.push({project: name, kind: "list", id: "", tab: ""});
  const choose = document.querySelector(".top select");
  if (choose) choose.value = name;
  page.tree.redraw();
  page.ask.update();
  followBoard(page);
  showRoute(page);
}

function bindingsOf(page) {
  const inView = (name, ...args) => Boolean(page.view && page.view[name]) && page.view[name](...args);
  return [
    {keys: ["j", "ArrowDown"], label: "Next thread", run: () => page.tree.move(1)},
    {keys: ["k", "ArrowUp"], label: "Thread before", run: () => page.tree.move(-1)},
    {keys: ["Enter"], label: "Open it", run: () => false},
    {keys: ["ArrowRight", "ArrowLeft"], label: "Show or hide what is below it", run: () => false},
    {keys: ["Escape"], label: "Back", run: () => page.route.kind === "list" ? clearFilter(page) : page.open("")},
    {keys: ["/"], label: "Search threads and transcripts", run: () => openSearch(page)},
    {keys: ["f"], label: "Filter the list", run: () => page.filter.focus()},
    {keys: ["n"], label: "Start a directive", run: () => page.mayStart() && page.open("start")},
    {keys: ["s"], label: "What was spent", run: () => page.open("spend")},
    {keys: ["g a"], label: "Go to what asks", run: () => page.ask.focus()},
    {keys: ["g t"], label: "Go to the threads", run: () => page.tree.focus()},
    {keys: ["]"], label: "Next tab of the thread", run: () => inView("step", 1)},
    {keys: ["["], label: "Tab before", run: () => inView("step", -1)},
    {keys: ["m"], label: "Tell the thread something, or resume it", run: () => inView("press", "steer_thread") || inView("press", "resume_thread")},
    {keys: ["x"], label: "Cancel the thread", run: () => inView("press", "cancel_thread")},
    {keys: ["?"], label: "This help", run: () => showHelp(page)},
  ];
}

function clearFilter(page) {
  if (!page.filter.value) return false;
  page.filter.value = "";
  page.tree.setFilter({text: ""});
  drawFoot(page);
  return true;
}

const signs = [
  ["asks", "It waits for your answer, until a deadline"], ["working", "A model or a tool of it is at work"], ["waiting", "It waits for threads below it"],
  ["queued", "It begins when a slot is free"], ["retries", "It has failed and is tried again"], ["completed", "It has ended with a result"], ["failed", "It has ended with an error"], ["cancelled", "It was stopped"],
];

function showHelp(page) {
  const sample = bar();
  sample.update({limit: 1, spent: 0.35, reserved: 0.25});
  const on = h("input", {type: "checkbox", id: "keys-on", checked: page.memory.chosen("keys") !== false, onchange: (event) => page.memory.choose("keys", event.target.checked)});
  page.keys.help([
    h("div", {class: "field check"}, on, h("label", {for: "keys-on"}, "Single keys do something")),
    h("dl", {class: "signs"}, signs.map(([state, means]) => h("div", null, h("dt", null, stateMark(state), " ", state), h("dd", null, means))),
      h("div", null, h("dt", null, sample.el), h("dd", null, "Money: spent, reserved for what is on its way or below, left of the limit")),
      h("div", null, h("dt", null, icon("shield"), " verified"), h("dd", null, "What it left is what was signed"))),
    h("p", {class: "hint"}, "rye-mcp " + oneLine(page.session.version || "", 40)),
  ]);
}
