// Values as people read them. Nothing here touches the document or the network.

const unseen = /[\u0000-\u0008\u000b-\u001f\u007f-\u009f\u00ad\u034f\u061c\u115f\u1160\u17b4\u17b5\u180e\u200b-\u200f\u2028-\u202e\u2060-\u206f\u3164\ufeff\uffa0\ufff9-\ufffb]|[\u{e0000}-\u{e007f}]|[\ud800-\udbff](?![\udc00-\udfff])|(?<![\ud800-\udbff])[\udc00-\udfff]/gu;

// clean makes visible what a text could hide or turn around with: control characters,
// terminal escapes, bidi overrides, characters without width. Line breaks and tabs stay.
export function clean(value) {
  if (value === null || value === undefined) return "";
  return String(value).replace(/\r\n/g, "\n").replace(unseen, shownCode);
}

function shownCode(c) {
  if (c === "\u200d") return c; // joins emoji and letters of some scripts; hides nothing
  const code = c.codePointAt(0);
  if (code < 0x20) return String.fromCodePoint(0x2400 + code);
  if (code === 0x7f) return "\u2421";
  return "\u27e8U+" + code.toString(16).toUpperCase().padStart(4, "0") + "\u27e9";
}

// oneLine is a cleaned text without line breaks, at most max characters long.
export function oneLine(value, max = 200) {
  const line = clean(value).replace(/\s+/g, " ").trim();
  return cut(line, max);
}

// cut shortens a text to max characters and says so with an ellipsis.
export function cut(value, max) {
  const all = Array.from(value);
  return all.length <= max ? value : all.slice(0, Math.max(0, max - 1)).join("") + "\u2026";
}

// money shows US dollars: cents from a dollar on, below that what is needed to see anything.
export function money(dollars) {
  if (!Number.isFinite(dollars)) return "\u2013";
  const n = Math.abs(dollars), sign = dollars < 0 ? "\u2212" : "";
  if (n === 0) return "$0";
  if (n < 0.0001) return sign + "<$0.0001";
  if (n < 0.1) return sign + "$" + n.toFixed(4).replace(/0{1,2}$/, "");
  if (n < 1000) return sign + "$" + n.toFixed(2);
  return sign + "$" + Math.round(n).toLocaleString("en-US");
}

// count shows a number of things: 950, 1.2k, 34k, 5.6M.
export function count(n) {
  if (!Number.isFinite(n)) return "\u2013";
  const abs = Math.abs(n);
  if (abs < 1000) return String(Math.round(n));
  for (const [unit, size] of [["G", 1e9], ["M", 1e6], ["k", 1e3]]) {
    if (abs >= size * 0.9995) {
      const value = n / size;
      return (Math.abs(value) < 9.95 ? value.toFixed(1).replace(/\.0$/, "") : Math.round(value)) + unit;
    }
  }
  return String(Math.round(n));
}

// duration shows milliseconds: 40 ms, 3.2 s, 4 min 10 s, 2 h 5 min, 3 d 4 h.
export function duration(ms) {
  if (!Number.isFinite(ms)) return "\u2013";
  const sign = ms < 0 ? "\u2212" : "";
  ms = Math.abs(ms);
  if (ms < 1000) return sign + Math.round(ms) + "\u202fms";
  const s = ms / 1000;
  if (s < 9.95) return sign + s.toFixed(1).replace(/\.0$/, "") + "\u202fs";
  const total = Math.round(s);
  if (total < 60) return sign + total + "\u202fs";
  if (total < 3600) return sign + pair(total, 60, "min", 1, "s");
  if (total < 86400) return sign + pair(total, 3600, "h", 60, "min");
  return sign + pair(total, 86400, "d", 3600, "h");
}

function pair(total, big, bigName, small, smallName) {
  const rest = Math.floor((total % big) / small);
  return Math.floor(total / big) + "\u202f" + bigName + (rest ? " " + rest + "\u202f" + smallName : "");
}

// ago shows how long before now a time of the server was. skew is how many milliseconds the
// server's clock is ahead of this one.
export function ago(at, skew = 0) {
  const t = Date.parse(at);
  if (!Number.isFinite(t)) return "";
  const s = Math.round((Date.now() + skew - t) / 1000);
  if (s < 0) return "in " + duration(-s * 1000);
  if (s < 5) return "now";
  return roughly(s) + " ago";
}

function roughly(s) {
  if (s < 60) return s + "\u202fs";
  if (s < 3600) return Math.floor(s / 60) + "\u202fmin";
  if (s < 86400) return Math.floor(s / 3600) + "\u202fh";
  return Math.floor(s / 86400) + "\u202fd";
}

// left shows how long there is until a time of the server, to the second; "" when it is past.
export function left(at, skew = 0) {
  const ms = Date.parse(at) - Date.now() - skew;
  if (!Number.isFinite(ms) || ms <= 0) return "";
  return duration(Math.ceil(ms / 1000) * 1000);
}

// clock shows a time of the server in this place's time.
export function clock(at) {
  const d = new Date(at);
  if (Number.isNaN(d.getTime())) return "";
  const two = (n) => String(n).padStart(2, "0");
  return d.getFullYear() + "-" + two(d.getMonth() + 1) + "-" + two(d.getDate()) + " " +
    two(d.getHours()) + ":" + two(d.getMinutes()) + ":" + two(d.getSeconds());
}

// bytes shows a size: 900 B, 1.2 kB, 50 MB.
export function bytes(n) {
  if (!Number.isFinite(n)) return "\u2013";
  if (n < 1000) return n + "\u202fB";
  const short = count(n);
  return short.slice(0, -1) + "\u202f" + short.slice(-1) + "B";
}

// percent shows a share of one.
export function percent(share) {
  if (!Number.isFinite(share)) return "\u2013";
  if (share > 0 && share < 0.01) return "<1%";
  return Math.round(share * 100) + "%";
}

// plural is "1 thread", "2 threads".
export function plural(n, one, many = one + "s") {
  return count(n) + "\u202f" + (n === 1 ? one : many);
}
