// The keyboard: single keys and pairs that do something, except while somebody writes.

import {h, dialog} from "./dom.js";

// makeKeys listens for keys. bindings: [{keys: ["j", "ArrowDown"], label, run}]; "g b" is g, then b. run
// returns false where there is nothing to do. enabled() says whether single keys are on at all.
export function makeKeys(bindings, enabled) {
  let first = "", since = 0;
  const find = (name) => bindings.find((one) => one.keys.includes(name));
  const onKey = (event) => {
    if (event.defaultPrevented || event.ctrlKey || event.metaKey || event.altKey || event.isComposing) return;
    if (document.querySelector("dialog[open]") || isWriting(event.target)) return;
    if (event.key !== "Escape" && !enabled()) return;
    const pair = first && Date.now() - since < 1500 ? find(first + " " + event.key) : undefined;
    first = "";
    const found = pair || find(event.key);
    if (found) {
      if (found.run() !== false) event.preventDefault();
    } else if (bindings.some((one) => one.keys.some((name) => name.startsWith(event.key + " ")))) {
      first = event.key;
      since = Date.now();
    }
  };
  document.addEventListener("keydown", onKey);
  return {help: (more) => helpDialog(bindings, more), stop: () => document.removeEventListener("keydown", onKey)};
}

function isWriting(el) {
  return el instanceof HTMLElement && (el.isContentEditable || /^(INPUT|TEXTAREA|SELECT)$/.test(el.tagName) && !/^(checkbox|radio|button|submit)$/.test(el.type));
}

const keyNames = {ArrowDown: "\u2193", ArrowUp: "\u2191", ArrowLeft: "\u2190", ArrowRight: "\u2192", Escape: "Esc", Enter: "\u21b5"};

// helpDialog lists the keys, and more below them.
function helpDialog(bindings, more) {
  return dialog({title: "Keys and signs", wide: true, body: [
    h("dl", {class: "keys"}, bindings.filter((one) => one.label).map((one) => h("div", null,
      h("dt", null, one.keys.map((name, i) => [i > 0 && " or ", name.split(" ").map((key, j) => [j > 0 && " then ", h("kbd", null, keyNames[key] || key)])])),
      h("dd", null, one.label)))),
    more,
  ]});
}
