// The page in a browser: its token, its session, its address, and what it remembers.

import {h, button, icon, clear, fill} from "./dom.js";
import {clean} from "./format.js";
import {makeApi, exchange} from "./api.js";
import {sentence} from "./form.js";
import {makeShell, brand} from "./shell.js";

// memory keeps small things for this browser tab, and what a person has chosen for the next one.
const memory = {
  get: (name) => read(sessionStorage, name),
  set: (name, value) => write(sessionStorage, name, value),
  chosen: (name) => read(localStorage, name),
  choose: (name, value) => write(localStorage, name, value),
};

function read(storage, name) {
  try {
    return JSON.parse(storage.getItem("rye." + name));
  } catch {
    return null;
  }
}

function write(storage, name, value) {
  try {
    storage.setItem("rye." + name, JSON.stringify(value));
  } catch {
    // storage that is full or forbidden: the page works without
  }
}

// takeSecret takes the token or code out of the address before anything else can see it there.
function takeSecret() {
  const given = new URLSearchParams(location.hash.replace(/^#/, ""));
  const token = given.get("token"), code = given.get("code");
  if (token === null && code === null) return {};
  history.replaceState(null, "", location.pathname);
  return {token, code};
}

async function startPage() {
  setTheme(memory.chosen("theme") || "system");
  const root = document.getElementById("app");
  addEventListener("hashchange", () => takeNew(root));
  const given = takeSecret();
  let token = given.token || memory.get("token");
  try {
    if (given.code) token = await exchange(given.code);
  } catch (error) {
    token = memory.get("token"); // a page that is loaded again has its token already
    if (!token) return notice(root, "This address is used up", sentence(error.message), error.hint);
  }
  if (!token) return notice(root, "This page needs its whole address", "Open the address that the server printed when it was started: it ends in #token=\u2026", "Or start it again: rye-mcp ui");
  memory.set("token", token);
  return connect(root, token);
}

// takeNew is for a new address in a page that is open already, which changes the fragment only.
async function takeNew(root) {
  const {token, code} = takeSecret();
  if (!token && !code) return;
  try {
    memory.set("token", code ? await exchange(code) : token);
    location.reload();
  } catch (error) {
    notice(root, "This address is used up", sentence(error.message), error.hint);
  }
}

async function connect(root, token) {
  const project = routeOf(location.hash).project || memory.get("project") || "";
  const api = makeApi({token, project});
  for (let wait = 500; ; wait = Math.min(wait * 2, 10000)) {
    try {
      let session;
      try {
        session = await api.get("session");
      } catch (error) {
        if (!api.project || error.status !== 404 && error.status !== 400) throw error;
        api.project = ""; // of an earlier address
        session = await api.get("session");
      }
      return run(root, api, session);
    } catch (error) {
      if (error.status === 401 || error.status === 403) {
        memory.set("token", null);
        return notice(root, "This address is not valid any more", sentence(error.message), error.hint || "A new one is printed with every start of: rye-mcp ui");
      }
      notice(root, "The server does not answer", sentence(error.message) + " Trying again\u2026", error.hint);
      await new Promise((resolve) => setTimeout(resolve, wait));
    }
  }
}

function notice(root, title, message, hint) {
  fill(root, h("main", {class: "notice"}, brand(), h("h1", null, title), h("div", {role: "alert"}, h("p", null, message), hint && h("p", {class: "hint"}, clean(hint)))));
}

// run shows the page of a session.
function run(root, api, session) {
  let page = null;
  const theme = button(icon("sun"), () => page.say("Colours: " + nextTheme(theme)), {class: "quiet icon-only"});
  nameTheme(theme);
  page = makeShell({
    root, api, session, memory, router, tools: [theme], reload: () => location.reload(), refused: () => memory.set("token", null),
  });
}

// router keeps in the fragment what is shown, so that going back works and an address can be kept. It never has the token.
const router = {
  read: () => routeOf(location.hash),
  push: (route) => {
    const hash = hashOf(route);
    if (hash !== location.hash) history.pushState(null, "", hash);
  },
  replace: (route) => history.replaceState(null, "", hashOf(route)),
  onChange: (fn) => {
    addEventListener("popstate", fn);
    addEventListener("hashchange", () => /^#(token|code)=/.test(location.hash) || fn());
  },
};

// routeOf reads the fragment: #/t/ID/TAB, #/start/ID, #/spend, each after #/p/PROJECT where there are several.
function routeOf(hash) {
  const parts = hash.replace(/^#\/?/, "").split("/").map(decoded).filter((part) => part !== "");
  let project = "";
  if (parts[0] === "p") project = parts.splice(0, 2)[1] || "";
  const [kind, ...rest] = parts;
  if (kind === "t" && rest.length > 0) return {project, kind: "thread", id: rest[0], tab: rest[1] || ""};
  if (kind === "start") return {project, kind: "start", id: rest.join("/"), tab: ""};
  if (kind === "spend") return {project, kind: "spend", id: "", tab: ""};
  return {project, kind: "list", id: "", tab: ""};
}

function decoded(part) {
  try {
    return decodeURIComponent(part);
  } catch {
    return part;
  }
}

function hashOf({project, kind, id, tab}) {
  const code = (value) => value.split("/").map(encodeURIComponent).join("/");
  const before = project ? "#/p/" + encodeURIComponent(project) : "#";
  switch (kind) {
    case "thread": return before + "/t/" + encodeURIComponent(id) + (tab ? "/" + encodeURIComponent(tab) : "");
    case "start": return before + "/start" + (id ? "/" + code(id) : "");
    case "spend": return before + "/spend";
    default: return before + "/";
  }
}

function setTheme(theme) {
  if (theme === "system") delete document.documentElement.dataset.theme;
  else document.documentElement.dataset.theme = theme;
}

function nextTheme(el) {
  const themes = ["system", "light", "dark"];
  const next = themes[(themes.indexOf(memory.chosen("theme") || "system") + 1) % themes.length];
  memory.choose("theme", next);
  setTheme(next);
  nameTheme(el);
  return next;
}

function nameTheme(el) {
  const theme = memory.chosen("theme") || "system";
  clear(el).append(icon({system: "auto", light: "sun", dark: "moon"}[theme]));
  el.setAttribute("aria-label", "Colours: " + theme + ". Change");
  el.title = "Colours: " + theme;
}

startPage();
