// Elements without HTML from strings: whatever a mill says is text.

/** An element with attributes and children; a child is an element, a text, or nothing. */
export function make(name, attributes = {}, ...children) {
  const element = document.createElement(name);
  for (const [key, value] of Object.entries(attributes)) {
    if (value !== undefined && value !== false) element.setAttribute(key, value === true ? "" : value);
  }
  element.append(...children.flat().filter((child) => child !== undefined && child !== null));
  return element;
}

/** A table; a column is [title, cell of a row, whether it holds numbers]. */
export function table(caption, columns, rows) {
  const kind = (numeric) => (numeric ? { class: "number" } : {});
  const head = columns.map(([title, , numeric]) => make("th", { scope: "col", ...kind(numeric) }, title));
  const body = rows.map((row) =>
    make("tr", {}, columns.map(([, cell, numeric]) => make("td", kind(numeric), cell(row) ?? "-"))));
  return make("div", { class: "scroll", tabindex: "0", role: "region", "aria-label": caption },
    make("table", {}, make("thead", {}, make("tr", {}, head)), make("tbody", {}, body)));
}

/** A list of figures: [value, name]. */
export function figures(pairs) {
  const item = ([value, name]) => make("li", {}, make("strong", {}, String(value)), make("span", {}, name));
  return make("ul", { class: "figures" }, pairs.map(item));
}

/** A link to a block's view. */
export function blockLink(block, text = String(block)) {
  return make("a", { href: `#/block/${block}` }, text);
}

/** The block of a task's id, STAGE/BLOCK/PART. */
export function blockOf(task) {
  return task.split("/").at(-2);
}

// States that have another name here than in the mill's answers.
const NAMES = { never_seen: "not seen", dead: "dead letter" };

/** The state of a block, in words. */
export function nameOf(state) {
  return NAMES[state] ?? state.replaceAll("_", " ");
}

// What is said of a block's deadline.
const DEADLINES = { running: "deadline not passed", met: "deadline met", missed: "deadline missed" };

/** The deadline of a block in words; nothing if it has none, or if it is not remembered. */
export function deadlineOf(block) {
  return DEADLINES[block.deadline];
}

/** What marks a block beside its state: it is late, or was emitted and then taken back. */
export function marksOf(block) {
  return [block.deadline === "missed" ? "late" : null, block.stale ? "stale" : null].filter((mark) => mark !== null);
}

/** Time since `atMs`, in words. */
export function ago(atMs) {
  return atMs === null || atMs === undefined ? "-" : `${age(Date.now() - atMs)} ago`;
}

/** The time from a moment until now, in words. */
export function since(atMs) {
  return atMs === null || atMs === undefined ? "-" : age(Date.now() - atMs);
}

/** The time `atMs`, of the clock here, and how long ago that is. */
export function when(atMs) {
  if (atMs === null || atMs === undefined) return "-";
  const at = new Date(atMs);
  return make("time", { datetime: at.toISOString(), title: at.toISOString() }, `${at.toLocaleString()}, ${ago(atMs)}`);
}

/** An age in milliseconds, in words: seconds to days. */
export function age(ms) {
  if (ms === null || ms === undefined) return "-";
  const seconds = Math.max(0, ms / 1000);
  if (seconds < 90) return `${seconds.toFixed(0)} s`;
  if (seconds < 5400) return `${(seconds / 60).toFixed(0)} min`;
  return seconds < 172800 ? `${(seconds / 3600).toFixed(0)} h` : `${(seconds / 86400).toFixed(0)} days`;
}

/** Milliseconds in words. */
export function lasted(ms) {
  if (ms === null || ms === undefined) return "-";
  return ms < 1000 ? `${ms} ms` : `${(ms / 1000).toFixed(1)} s`;
}

/** A count with its noun. */
export function counted(count, noun) {
  return `${count} ${noun}${count === 1 ? "" : "s"}`;
}
