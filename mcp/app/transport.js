// The app in its frame: what the page asks its server, the app asks its host, in JSON-RPC over postMessage
// (MCP Apps, 2026-01-26). There is no network here, so that streams are asked for again and again.

import {fill, h} from "./dom.js";
import {makeShell} from "./shell.js";

const pollMs = 2000;

// makeHost speaks with the host of the frame.
function makeHost() {
  const waiting = new Map(), heard = new Map();
  let last = 0;
  const send = (message) => window.parent.postMessage({jsonrpc: "2.0", ...message}, "*");
  window.addEventListener("message", (event) => {
    const message = event.data;
    if (event.source !== window.parent || !message || message.jsonrpc !== "2.0") return;
    if (message.method !== undefined) {
      if (message.id !== undefined) send({id: message.id, result: {}}); // ping, ui/resource-teardown
      if (heard.has(message.method)) heard.get(message.method)(message.params || {});
      return;
    }
    const asked = waiting.get(message.id);
    if (!asked) return;
    waiting.delete(message.id);
    if (message.error) asked.reject(hostFault("host", message.error.message || "The host refused."));
    else asked.resolve(message.result || {});
  });
  return {
    ask: (method, params) => new Promise((resolve, reject) => {
      waiting.set(++last, {resolve, reject});
      send({id: last, method, params});
    }),
    tell: (method, params) => send({method, params}),
    on: (method, fn) => heard.set(method, fn),
  };
}

function hostFault(code, message, hint, more) {
  return Object.assign(new Error(message), {...more, code, hint});
}

// makeAppApi is the page's API through tools that only the app calls.
function makeAppApi(host) {
  const api = {project: "", skew: 0, saves: false}; // hosts let no frame save files
  const call = async (name, args) => {
    const result = await host.ask("tools/call", {name, arguments: args});
    const answer = result.structuredContent || JSON.parse((result.content || []).map((part) => part.text || "").join("") || "{}");
    if (answer.status === undefined) throw hostFault(answer.code || "host", answer.error || "The host gave no answer.", answer.hint);
    if (answer.status < 400) return answer;
    let fault = {};
    try {
      fault = JSON.parse(answer.text).error || {};
    } catch {
      // not of our API: the status says all there is
    }
    const {code, message, hint, ...more} = fault;
    throw hostFault(code || "http_" + answer.status, message || "The server answered " + answer.status + ".", hint, {...more, status: answer.status});
  };
  const look = (path) => call("rye_app_look", {path});
  api.get = async (path) => JSON.parse((await look(path)).text);
  api.post = async (path, body = {}) => JSON.parse((await call("rye_app_act", {path, body})).text || "null");
  api.raw = async (path) => {
    const answer = await look(path);
    const bytes = answer.base64 === undefined ? answer.text || "" : Uint8Array.from(atob(answer.base64), (c) => c.charCodeAt(0));
    return new Response(bytes, {headers: {"Content-Type": answer.type}});
  };
  api.blob = async (path) => (await api.raw(path)).blob();
  api.text = async (path) => (await look(path)).text || "";
  api.stream = (path, onLine, signal, onState = () => {}) => pollPath(api, path, onLine, signal, onState);
  return api;
}

// pollPath asks for what a stream would send. A path that is a function names what is known by then.
async function pollPath(api, path, onLine, signal, onState) {
  onState("connecting", {});
  for (let live = false; !signal.aborted;) {
    try {
      const asked = (typeof path === "function" ? path() : path).replace(/([?&])stream=1(&|$)/, "$1").replace(/[?&]$/, "");
      const line = await api.get(asked);
      if (signal.aborted) return;
      if (!live) onState("live", {});
      live = true;
      if (onLine(line) === "end") return onState("ended", {});
    } catch (error) {
      if (error.status && error.status < 500) return onState("refused", {error});
      live = false;
      onState("waiting", {error, retryAt: Date.now() + pollMs});
    }
    await new Promise((resolve) => setTimeout(resolve, pollMs));
  }
}

// remember keeps things for as long as the frame is there.
function remember() {
  const kept = new Map();
  const get = (name) => (kept.has(name) ? kept.get(name) : null);
  const set = (name, value) => kept.set(name, value);
  return {get, set, chosen: get, choose: set};
}

// routes keeps what is shown; going back is the page's own button.
function routes() {
  let route = {project: "", kind: "list", id: "", tab: ""};
  const set = (next) => {
    route = {...route, project: "", ...next};
  };
  return {read: () => route, push: set, replace: set, onChange: () => {}};
}

function themed(context) {
  if (context.theme === "light" || context.theme === "dark") document.documentElement.dataset.theme = context.theme;
}

async function startApp() {
  const root = document.getElementById("app");
  const host = makeHost();
  host.on("ui/notifications/host-context-changed", themed);
  try {
    const begun = await host.ask("ui/initialize", {
      protocolVersion: "2026-01-26", appInfo: {name: "rye", version: "1"}, appCapabilities: {availableDisplayModes: ["inline", "fullscreen"]},
    });
    themed(begun.hostContext || {});
    host.tell("ui/notifications/initialized", {});
    const api = makeAppApi(host);
    const session = await api.get("session");
    makeShell({root, api, session, memory: remember(), router: routes()});
    const sized = new ResizeObserver(() => host.tell("ui/notifications/size-changed", {height: Math.max(480, root.scrollHeight)}));
    sized.observe(root);
  } catch (error) {
    fill(root, h("main", {class: "notice"}, h("p", {role: "alert"}, "The board cannot be shown: " + error.message)));
  }
}

startApp();
