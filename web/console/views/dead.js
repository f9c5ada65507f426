// Dead letters, with the command that brings each back.

import { ago, blockLink, blockOf, make, table } from "../elements.js";

export function deadView(seen) {
  if (!seen.dead.length) return [make("h2", {}, "Dead letters"), make("p", {}, "There are none.")];
  const more = seen.status.dead - seen.dead.length;
  return [
    make("h2", {}, `Dead letters: ${seen.status.dead}`),
    deadLetters(seen.dead),
    more > 0 ? make("p", { class: "quiet" }, `and ${more} more: proofmill dlq list`) : null,
  ].filter((part) => part !== null);
}

/** The table of some dead letters. */
export function deadLetters(letters) {
  return table("Dead letters", [
    ["Block", (it) => blockLink(blockOf(it.task)), true],
    ["Task", (it) => make("code", {}, it.task)],
    ["Attempts", (it) => String(it.attempts), true],
    ["Since", (it) => ago(it.at_ms)],
    ["Reason", (it) => it.reason],
    ["To bring it back", (it) => make("code", {}, `proofmill dlq retry ${it.task}`)],
  ], letters);
}
