// The page's API: JSON with a bearer token, and streams of lines. The MCP App puts another
// transport in the place of this file.

const beatMs = 15000;
const backOffMs = [300, 1000, 2000, 4000, 8000, 15000];

// makeApi returns {get, post, raw, text, stream, skew, project}. The token is sent with every request;
// onRefused is told when it is not (or no longer) accepted.
export function makeApi({token, project = "", onRefused = () => {}}) {
  const api = {project, skew: 0, saves: true};
  const where = (path) => {
    const url = "/ui/api/" + path;
    return api.project ? url + (url.includes("?") ? "&" : "?") + "project=" + encodeURIComponent(api.project) : url;
  };
  const send = async (path, init = {}) => {
    const headers = {Authorization: "Bearer " + token, ...init.headers};
    let answer;
    try {
      answer = await fetch(where(path), {...init, headers, credentials: "omit", cache: "no-store", redirect: "error", referrerPolicy: "no-referrer"});
    } catch (cause) {
      if (init.signal && init.signal.aborted) throw cause;
      throw failure("unreachable", "The server does not answer.", "Is `rye-mcp ui` still running?");
    }
    if (answer.ok) return answer;
    const error = await faultOf(answer);
    if (answer.status === 401) onRefused(error);
    throw error;
  };
  api.get = async (path, signal) => (await send(path, {signal})).json();
  api.post = async (path, body = {}, signal) => (await send(path, {
    method: "POST", body: JSON.stringify(body), headers: {"Content-Type": "application/json"}, signal,
  })).json();
  api.raw = (path, {signal} = {}) => send(path, {signal});
  api.text = async (path, signal) => (await send(path, {signal})).text();
  api.stream = (path, onLine, signal, onState = () => {}) => follow(api, send, path, onLine, signal, onState);
  return api;
}

// exchange gives a one-time code for a token.
export async function exchange(code) {
  const answer = await fetch("/ui/api/exchange", {
    method: "POST", body: JSON.stringify({code}), headers: {"Content-Type": "application/json"}, credentials: "omit", cache: "no-store", redirect: "error",
  });
  if (!answer.ok) throw await faultOf(answer);
  return (await answer.json()).token;
}

// failure is an Error as the API answers them: code, message, hint.
export function failure(code, message, hint, more) {
  return Object.assign(new Error(message), {...more, code, hint});
}

async function faultOf(answer) {
  let fault = {};
  try {
    fault = (await answer.json()).error || {};
  } catch {
    // not of our API: the status says all there is
  }
  if (typeof fault === "string") fault = {message: fault};
  const {code, message, hint, ...more} = fault;
  return failure(code || "http_" + answer.status, message || "The server answered " + answer.status + ".", hint, {...more, status: answer.status});
}

// follow reads a stream of JSON lines until it is told to stop. A path that is a function is asked for anew
// with every connection. States: connecting, live, paused (the page is hidden: browsers share six connections among
// all pages of a server), waiting {retryAt, error}, refused {error}, ended.
// A stream that ends is opened again; onLine may return "end" to close it.
async function follow(api, send, path, onLine, signal, onState) {
  for (let tries = 0; !signal.aborted; tries++) {
    if (document.visibilityState === "hidden") {
      onState("paused", {});
      await untilShown(signal);
      if (signal.aborted) return;
    }
    onState("connecting", {});
    let error = null, lines = 0;
    const connection = whileShown(signal);
    try {
      const done = await readLines(api, send, typeof path === "function" ? path() : path, (line) => {
        if (lines++ === 0) onState("live", {});
        return line.beat === undefined ? onLine(line) : beaten(api, line);
      }, connection.signal);
      if (done) return onState("ended", {});
    } catch (e) {
      error = e.code ? e : failure("unreachable", "The connection has ended.", "");
    } finally {
      connection.release();
    }
    if (signal.aborted) return;
    if (connection.hidden()) continue;
    if (error && error.status && error.status < 500 && error.status !== 429 && error.status !== 408) return onState("refused", {error});
    if (lines > 0) tries = 0;
    const pause = backOffMs[Math.min(tries, backOffMs.length - 1)] * (0.8 + Math.random() * 0.4);
    onState("waiting", {error, retryAt: Date.now() + pause});
    await restFor(pause, signal);
  }
}

// whileShown is a signal that is aborted with another one, or when the page is hidden.
function whileShown(signal) {
  const both = new AbortController();
  let hid = false;
  const stop = () => both.abort();
  const seen = () => {
    if (document.visibilityState !== "hidden") return;
    hid = true;
    both.abort();
  };
  signal.addEventListener("abort", stop, {once: true});
  document.addEventListener("visibilitychange", seen);
  return {
    signal: both.signal, hidden: () => hid,
    release() {
      signal.removeEventListener("abort", stop);
      document.removeEventListener("visibilitychange", seen);
    },
  };
}

function untilShown(signal) {
  return new Promise((resolve) => {
    const done = () => {
      if (!signal.aborted && document.visibilityState === "hidden") return;
      signal.removeEventListener("abort", done);
      document.removeEventListener("visibilitychange", done);
      resolve();
    };
    signal.addEventListener("abort", done);
    document.addEventListener("visibilitychange", done);
  });
}

function beaten(api, line) {
  const now = Date.parse(line.beat);
  if (Number.isFinite(now)) api.skew = now - Date.now();
}

// readLines reads one connection. It gives up on one that is silent for longer than two beats.
async function readLines(api, send, path, onLine, signal) {
  const silent = new AbortController();
  const stop = () => silent.abort();
  if (signal.aborted) stop();
  signal.addEventListener("abort", stop, {once: true});
  let watch = setTimeout(stop, beatMs * 2.5);
  const alive = () => {
    clearTimeout(watch);
    watch = setTimeout(stop, beatMs * 2.5);
  };
  try {
    const answer = await send(path, {signal: silent.signal, headers: {Accept: "application/x-ndjson"}});
    const reader = answer.body.getReader();
    const decoder = new TextDecoder();
    let rest = "";
    for (;;) {
      const {done, value} = await reader.read();
      if (done) return false;
      alive();
      const lines = (rest + decoder.decode(value, {stream: true})).split("\n");
      rest = lines.pop();
      for (const line of lines) {
        if (line.trim() === "") continue;
        const parsed = JSON.parse(line);
        if (parsed.error && Object.keys(parsed).length === 1) throw failure(parsed.error.code, parsed.error.message, parsed.error.hint);
        if (onLine(parsed) === "end") {
          reader.cancel().catch(() => {});
          return true;
        }
      }
    }
  } finally {
    clearTimeout(watch);
    signal.removeEventListener("abort", stop);
  }
}

// restFor waits, or until the signal; when the network is back it ends at once.
function restFor(ms, signal) {
  return new Promise((resolve) => {
    const done = () => {
      clearTimeout(timer);
      signal.removeEventListener("abort", done);
      removeEventListener("online", done);
      resolve();
    };
    const timer = setTimeout(done, ms);
    signal.addEventListener("abort", done, {once: true});
    addEventListener("online", done);
  });
}
