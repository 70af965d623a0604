// The layout of a timeline, without a document: lanes of threads, spans in rows that do not overlap, idle time
// folded away, and what is too small to be seen joined. Times are milliseconds since 1970.

const working = new Set(["model", "tool", "hook", "backoff", "start", "end"]);
const mostRows = 10;

// spanNames are the kinds of spans in words, in the order of a legend.
export const spanNames = {
  model: "model call", tool: "tool", hook: "hook", backoff: "back-off", wait: "wait for other threads", queue: "queue", question: "question", approval: "approval",
  start: "start", end: "end",
};

// lanesOf makes a lane of each timeline, in their order: those of threads below stand behind their parent. A span that is open ends now.
export function lanesOf(timelines, now) {
  return timelines.map((t) => laneOf(t, now)).filter((lane) => lane !== null);
}

function laneOf(t, now) {
  const began = Date.parse(t.began);
  if (!Number.isFinite(began)) return null;
  const spans = (t.spans || []).map((s) => {
    const from = began + (s.start_ms || 0);
    const open = s.end_ms === undefined || s.end_ms === null;
    return {...s, from, to: Math.max(from, open ? now : began + s.end_ms), open};
  }).sort((a, b) => a.from - b.from || Number(b.to === b.from) - Number(a.to === a.from) || b.to - a.to);
  for (const [i, s] of spans.entries()) {
    s.worked = workedIn(s, spans, i);
    s.waits = s.worked < (s.to - s.from) * 0.1;
  }
  const rows = packRows(spans);
  const from = spans.reduce((m, s) => Math.min(m, s.from), began);
  const to = spans.reduce((m, s) => Math.max(m, s.to), began + (t.length_ms || 0));
  return {id: t.thread_id, title: t.name || t.directive || t.thread_id, model: t.model || "", depth: t.depth || 0, status: t.status || "", from, to, spans, rows,
    truncated: Boolean(t.truncated), damaged: t.damaged || 0};
}

// workedIn is how long something was done in a span: all of it, without what its call waited for others.
function workedIn(span, spans, at) {
  if (!working.has(span.kind)) return 0;
  const whole = span.busy_ms ?? span.to - span.from;
  if (!span.call_id && span.kind !== "hook") return whole;
  let waited = 0, last = span.from;
  while (at > 0 && spans[at - 1].from === span.from) at--;
  for (; at < spans.length && spans[at].from < span.to; at++) {
    const w = spans[at];
    if (working.has(w.kind) || w.kind === "queue" || (w.call_id && span.call_id && w.call_id !== span.call_id)) continue;
    const from = Math.max(last, w.from), to = Math.min(span.to, w.to);
    waited += Math.max(0, to - from);
    last = Math.max(last, to);
  }
  return Math.max(0, whole - waited);
}

// packRows gives each span (in the order of their beginnings) a row in which nothing else goes on, and returns how many there are.
export function packRows(spans) {
  const ends = [];
  for (const s of spans) {
    let row = ends.findIndex((end) => end <= s.from);
    if (row < 0) row = ends.length < mostRows ? ends.length : mostRows - 1;
    ends[row] = Math.max(ends[row] ?? -Infinity, s.to);
    s.row = row;
  }
  return Math.max(1, ends.length);
}

// busyTimes are the stretches in which at least one thread works, in order and apart.
export function busyTimes(lanes) {
  const all = lanes.flatMap((lane) => lane.spans.filter((s) => !s.waits).map((s) => [s.from, s.to])).sort((a, b) => a[0] - b[0]);
  const merged = [];
  for (const [from, to] of all) {
    const last = merged[merged.length - 1];
    if (last && from <= last[1]) last[1] = Math.max(last[1], to);
    else merged.push([from, to]);
  }
  return merged;
}

// foldIdle maps time to places, both in milliseconds: stretches {from, to, at, upTo, folded}. Idle time that
// is long beside the work becomes short, and says so.
export function foldIdle(lanes, fold = true) {
  const from = Math.min(...lanes.map((lane) => lane.from)), to = Math.max(...lanes.map((lane) => lane.to), from + 1);
  if (lanes.length === 0 || !Number.isFinite(from)) return [{from: 0, to: 1, at: 0, upTo: 1, folded: false}];
  const busy = busyTimes(lanes);
  const work = busy.reduce((sum, [a, b]) => sum + b - a, 0);
  const least = Math.max(2000, work * 0.15);
  const gaps = [];
  let last = from;
  for (const [a, b] of [...busy, [to, to]]) {
    if (fold && a - last > least) gaps.push([last, a]);
    last = Math.max(last, b);
  }
  const folded = gaps.reduce((sum, [a, b]) => sum + b - a, 0);
  const seen = Math.max(1, to - from - folded);
  const short = gaps.length ? Math.max(1, seen * Math.min(0.06, 0.4 / gaps.length)) : 0;
  return stretches(from, to, gaps, short);
}

function stretches(from, to, gaps, short) {
  const out = [];
  let t = from, at = 0;
  const put = (upTo, folded) => {
    if (upTo <= t) return;
    const wide = folded ? short : upTo - t;
    out.push({from: t, to: upTo, at, upTo: at + wide, folded});
    at += wide;
    t = upTo;
  };
  for (const [a, b] of gaps) {
    put(a, false);
    put(b, true);
  }
  put(to, false);
  return out;
}

// placeOf is where a time stands, timeOf what time stands at a place.
export function placeOf(parts, time) {
  const p = parts.find((part) => time <= part.to) || parts[parts.length - 1];
  const share = (time - p.from) / (p.to - p.from || 1);
  return p.at + Math.max(0, Math.min(1, share)) * (p.upTo - p.at);
}

export function timeOf(parts, place) {
  const p = parts.find((part) => place <= part.upTo) || parts[parts.length - 1];
  const share = (place - p.at) / (p.upTo - p.at || 1);
  return p.from + Math.max(0, Math.min(1, share)) * (p.to - p.from);
}

// drawnSpans are the spans of a lane that are to be seen, as {row, kind, left, right, spans}; neighbours of one kind
// that are smaller than a point of the screen become one. px maps a time to the screen.
export function drawnSpans(spans, px, width) {
  const out = [], open = new Map();
  for (const s of spans) {
    const left = px(s.from), right = px(s.to);
    if (right < 0 || left > width) continue;
    const key = s.row + s.kind + (s.error ? "!" : "");
    const before = open.get(key);
    if (before && right - left < 1.5 && left - before.right < 1 && (before.spans.length > 1 || before.right - before.left < 1.5)) {
      before.right = Math.max(before.right, right);
      before.spans.push(s);
      continue;
    }
    const one = {row: s.row, kind: s.kind, error: s.error, left, right, spans: [s]};
    open.set(key, one);
    out.push(one);
  }
  return out;
}

// zoomed is the window [a, b] of 0..whole that shows factor times as much, with the place p where it was.
export function zoomed([a, b], p, factor, whole) {
  const least = Math.min(whole, Math.max(1, whole / 20000));
  const wide = Math.min(whole, Math.max(least, (b - a) * factor));
  const share = (p - a) / (b - a || 1);
  return moved([p - share * wide, p - share * wide + wide], 0, whole);
}

// moved is a window that is moved, and stays within 0..whole.
export function moved([a, b], by, whole) {
  const wide = Math.min(whole, b - a);
  const from = Math.max(0, Math.min(whole - wide, a + by));
  return [from, from + wide];
}

// timeByKind is how long the spans of all lanes lasted, by kind.
export function timeByKind(lanes) {
  const sums = {};
  for (const lane of lanes) for (const s of lane.spans) sums[s.kind] = (sums[s.kind] || 0) + s.to - s.from;
  return sums;
}
