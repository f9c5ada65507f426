// Dead letters: by reason, a filter, and what brings each back.

import { buttons, deadActions, downloadBundle, retryAll } from "../actions.js";
import { keptAnswer } from "../answers.js";
import { blockLink, blockOf, make, table, when } from "../elements.js";
import { isOperator } from "../session.js";

// Most characters of a filter that is made from a reason (the mill takes 256 bytes), and most reasons that are listed.
const [FILTER_MAX, REASONS_MAX] = [60, 12];

// The text that selects letters, and the text in its field, which may be on its way to become the next.
let [filter, typed] = ["", ""];

const ask = keptAnswer();

export async function deadView(seen, _rest, isNew) {
  const all = seen.status.dead;
  if (!all) return [make("h2", {}, "Dead letters"), make("p", {}, "There are none.")];
  // The filter may change before the answer comes, and all that is drawn must be of one.
  const text = filter;
  const found = text ? await selected(text, all, isNew) : { total: all, letters: seen.dead };
  return [make("h2", {}, `Dead letters: ${all}`), filterForm(text), ...content(text, found)].filter((part) => part !== null);
}

function content(text, { total, letters, refused }) {
  if (refused) return [make("p", { class: "bad" }, refused)];
  const more = total - letters.length;
  return [
    total ? buttons(retryAll(text, total), text ? null : downloadBundle()) : null,
    ...byReason(letters, more),
    letters.length ? deadLetters(letters) : make("p", {}, "None has this text."),
    more > 0 ? make("p", { class: "quiet" }, `and ${more} more: proofmill dlq list`) : null,
  ];
}

/** The reasons with their numbers of letters, each a filter; reasons that differ in numbers only are one. */
function byReason(letters, more) {
  const groups = new Map();
  for (const { reason } of letters) {
    const shape = reason.replace(/\d+/g, "…");
    const parts = reason.split(/\d+/).map((part) => part.trim());
    const text = parts.reduce((longest, part) => (part.length > longest.length ? part : longest));
    const group = groups.get(shape) ?? { shape, text: [...text].slice(0, FILTER_MAX).join(""), count: 0 };
    groups.set(shape, { ...group, count: group.count + 1 });
  }
  if (groups.size < 2) return [];
  const rows = [...groups.values()].sort((a, b) => b.count - a.count).slice(0, REASONS_MAX);
  const choose = ({ text, shape }) => {
    const button = make("button", { type: "button", "aria-label": `Show only ${shape}`, "data-key": `reason ${shape}` }, "Filter");
    button.addEventListener("click", () => setFilter(text));
    return button;
  };
  return [table(more > 0 ? `Reasons of the first ${letters.length}` : "Reasons", [
    ["Letters", (it) => String(it.count), true],
    ["Reason", (it) => it.shape],
    ["Show only these", choose],
  ], rows)];
}

function showAll() {
  const button = make("button", { type: "button", "aria-label": "Show all", "data-key": "show all" }, "Show all");
  button.addEventListener("click", () => setFilter(""));
  return button;
}

function setFilter(text) {
  [filter, typed] = [text, text];
  dispatchEvent(new HashChangeEvent("hashchange"));
}

/** The letters that a text selects, for which the mill reads all of them; or why there is no answer. */
async function selected(text, all, isNew) {
  try {
    return await ask(`/api/dead?text=${encodeURIComponent(text)}`, { mark: all, isNew });
  } catch (error) {
    return { refused: error.message };
  }
}

/** The form of the filter; `text` is the one that the letters below have. */
function filterForm(text) {
  const field = make("input", { id: "filter", type: "search", maxlength: "200", value: typed });
  const form = make("form", { class: "filter" }, make("label", { for: "filter" }, "Text in the task or the reason"), field,
    make("button", { id: "filter-apply" }, "Filter"), text ? showAll() : null);
  field.addEventListener("input", () => { typed = field.value; });
  form.addEventListener("submit", (event) => {
    event.preventDefault();
    setFilter(field.value);
  });
  return form;
}

/** The table of some dead letters. */
export function deadLetters(letters) {
  return table("Dead letters", [
    ["Block", (it) => blockLink(blockOf(it.task)), true],
    ["Task", (it) => make("code", {}, it.task)],
    ["Attempts", (it) => String(it.attempts), true],
    ["Since", (it) => when(it.at_ms)],
    ["Reason", (it) => it.reason],
    isOperator() ? ["Actions", deadActions] : ["To bring it back", (it) => make("code", {}, `proofmill dlq retry ${it.task}`)],
  ], letters);
}
