// The board as this page knows it: rows by key, patches applied, and how a row reads.

// makeBoard returns an empty board. apply takes what the server sends and says what has changed.
export function makeBoard() {
  const board = {rows: new Map(), kids: new Map(), totals: {}, version: "", at: "", omitted: 0, loaded: false};
  const listeners = new Set();
  board.subscribe = (fn) => {
    listeners.add(fn);
    return () => listeners.delete(fn);
  };
  board.get = (key) => board.rows.get(key);
  board.find = (id) => board.rows.get(id) || newestWith(board, id);
  board.apply = (sent) => {
    const change = takeIn(board, sent);
    for (const fn of [...listeners]) fn(change);
    return change;
  };
  board.reset = () => {
    board.rows.clear();
    Object.assign(board, {version: "", loaded: false, totals: {}, omitted: 0});
    relate(board);
  };
  return board;
}

function newestWith(board, id) {
  for (const row of board.rows.values()) if (row.thread_id === id) return row;
  return undefined;
}

// takeIn applies a whole board or a patch: {changed, gone: sets of keys, structure: whether rows came, went or moved}.
function takeIn(board, sent) {
  const change = {changed: new Set(), gone: new Set(), structure: false, whole: Boolean(sent.whole)};
  const had = board.rows;
  if (sent.whole) board.rows = new Map();
  for (const row of sent.rows || []) {
    const before = had.get(row.key);
    board.rows.set(row.key, row);
    if (!before || before.parent !== row.parent) change.structure = true;
    if (!before || !sent.whole || !same(before, row)) change.changed.add(row.key);
  }
  for (const key of sent.whole ? had.keys() : sent.gone || []) {
    if (sent.whole ? board.rows.has(key) : !board.rows.delete(key)) continue;
    change.gone.add(key);
    change.structure = true;
  }
  if (!board.loaded) change.structure = true;
  board.loaded = true;
  board.version = sent.version;
  board.at = sent.at || board.at;
  board.totals = sent.totals || board.totals;
  board.omitted = sent.omitted || 0;
  if (change.structure) relate(board);
  return change;
}

function same(a, b) {
  return JSON.stringify(a) === JSON.stringify(b);
}

// relate lists the keys below each key, the newest first. Roots, and rows whose parent is not on the board, are below "".
function relate(board) {
  const kids = new Map([["", []]]);
  for (const row of board.rows.values()) {
    const above = row.parent && row.parent !== row.key && board.rows.has(row.parent) ? row.parent : "";
    if (!kids.has(above)) kids.set(above, []);
    kids.get(above).push(row.key);
  }
  const time = (key) => Date.parse(board.rows.get(key).created_at) || 0;
  for (const keys of kids.values()) keys.sort((a, b) => time(b) - time(a) || (a < b ? -1 : 1));
  board.kids = kids;
}

// below lists the rows below a key, nearest first; the key itself is not among them.
export function below(board, key) {
  const found = [], seen = new Set([key]);
  for (let queue = [...(board.kids.get(key) || [])]; queue.length > 0;) {
    const next = queue.shift();
    if (seen.has(next)) continue;
    seen.add(next);
    found.push(board.rows.get(next));
    queue = queue.concat(board.kids.get(next) || []);
  }
  return found;
}

// asking lists the rows that wait for an answer, the nearest deadline first.
export function asking(board) {
  const rows = [];
  for (const row of board.rows.values()) if (row.asks && row.question) rows.push(row);
  return rows.sort((a, b) => (Date.parse(a.question.deadline_at) || Infinity) - (Date.parse(b.question.deadline_at) || Infinity));
}

const stateWords = {created: "starting", running: "working", completed: "completed", error: "failed", cancelled: "cancelled", continued: "continued"};

// stateOf is how a row stands, in one of a few words that have a shape and a colour each.
export function stateOf(row) {
  if (row.asks) return "asks";
  if (row.stopping && !hasEnded(row)) return "stopping";
  if (row.queued) return "queued";
  if (row.waits && row.status === "running") return "waiting";
  if (row.retry_at) return "retries";
  return stateWords[row.status] || row.status || "unknown";
}

// hasEnded reports whether a row does no more.
export function hasEnded(row) {
  return ["completed", "error", "cancelled", "continued"].includes(row.status);
}

// titleOf is what a row is called: its name, else its directive, else its id.
export function titleOf(row) {
  return row.name || row.directive || row.thread_id || row.key;
}

// budgetOf is the money of a row and everything below it; null without a limit.
export function budgetOf(row) {
  const b = row.budget;
  if (!b || !(b.limit > 0)) return null;
  const spent = Math.max(0, b.spent || 0), reserved = Math.max(0, b.reserved || 0);
  return {limit: b.limit, spent, reserved, left: b.left === undefined ? Math.max(0, b.limit - spent - reserved) : b.left};
}

// spendOf is what a row has cost with its chain and everything below it.
export function spendOf(row) {
  return row.tree_spend ?? row.spend ?? 0;
}

// errorOf is why a row did not complete; "" where it did, or works.
export function errorOf(row) {
  if (!row.error) return "";
  return typeof row.error === "string" ? row.error : row.error.message || row.error.code || "";
}
