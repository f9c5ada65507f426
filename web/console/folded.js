// Parts that are folded away, and stay open while the view around them is drawn anew.

import { make } from "./elements.js";

const opened = new Set();

/** A part that opens under a summary; `key` tells it from all others of the page. */
export function folded(key, summary, ...content) {
  const details = make("details", { open: opened.has(key) }, make("summary", { "data-key": `folded ${key}` }, summary), ...content);
  details.addEventListener("toggle", () => (details.open ? opened.add(key) : opened.delete(key)));
  return details;
}
