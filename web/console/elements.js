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

/** Time since `atMs`, in words. */
export function ago(atMs) {
  if (atMs === null || atMs === undefined) return "-";
  const seconds = Math.max(0, (Date.now() - atMs) / 1000);
  if (seconds < 90) return `${seconds.toFixed(0)} s ago`;
  if (seconds < 5400) return `${(seconds / 60).toFixed(0)} min ago`;
  if (seconds < 172800) return `${(seconds / 3600).toFixed(0)} h ago`;
  return `${(seconds / 86400).toFixed(0)} days ago`;
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
