// Every key is the key of a visible control: what it shows is what it does.

import { all, find } from "./page.js";

const NAMES = { " ": "Space" };
const typing = (target) => target.matches("input, textarea, select");
const shown = (control) => control.getClientRects().length > 0 && !control.disabled;

export function nameOf(event) {
  const key = NAMES[event.key] ?? event.key;
  return key.length === 1 ? key.toLowerCase() : key;
}

// `more`: what a form does with keys that no control has; returns whether it did
export function listen(more) {
  document.addEventListener("keydown", (event) => {
    // with Alt only arrows are ours
    if ((event.altKey && !event.key.startsWith("Arrow")) || event.metaKey || typing(event.target)) return;
    const key = nameOf(event);
    const own = event.target.closest("button, a, summary");
    if (own && ["Enter", "Space"].includes(key)) return;
    if (!event.ctrlKey && !event.altKey && press(key, event)) return;
    if (more?.(key, event)) event.preventDefault();
  });
  // Space must not press again what was clicked last; a keyboard's click keeps its focus
  document.addEventListener("click", (event) => {
    const home = find("#item:not([hidden])");
    if (event.pointerType && home && event.target.closest("#item button, footer button")) {
      home.focus({ preventScroll: true });
    }
  });
}

function press(key, event) {
  const control = all("[data-key]").find((one) => one.dataset.key.split(" ").includes(key) && shown(one));
  if (!control) return false;
  event.preventDefault();
  // a key held down must not decide again and again
  if (event.repeat && !["+", "-", "="].includes(key)) return true;
  if (typing(control)) {
    control.focus();
    return true;
  }
  const pressed = new CustomEvent("press", { bubbles: true, cancelable: true, detail: event.shiftKey });
  if (control.dispatchEvent(pressed)) control.click();
  return true;
}
