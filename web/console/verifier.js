// The page of a verifier: the queue, the batches of each kind of proof, and the verdicts of each source.

import { figures, make, table } from "./elements.js";
import { showService } from "./service.js";

/** Microseconds of `us` for each of `count`, in milliseconds. */
const each = (us, count) => (count ? `${(us / count / 1000).toFixed(2)} ms` : "-");

/** Sizes of batches, such as "2: 17, 8: 3" for 17 batches of up to 2 and 3 of up to 8 proofs. */
const sizesOf = (sizes) => sizes.flatMap((count, log) => (count ? [`${2 ** log}: ${count}`] : [])).join(", ") || "-";

function content(seen) {
  const kinds = Object.entries(seen.kinds).map(([kind, it]) => ({ kind, ...it }));
  const sum = (name) => kinds.reduce((all, it) => all + it[name], 0);
  const more = seen.source_count - seen.sources.length;
  return [
    figures([
      [seen.under_way, "without a verdict yet"],
      [sum("proofs"), "proofs checked"],
      [sum("batches"), "batches"],
      [sum("saved"), "checks saved by batches"],
      [seen.sources.filter((it) => it.apart).length, "sources apart"],
    ]),
    make("h2", {}, "Kinds of proofs"),
    table("Kinds of proofs", [
      ["Kind", (it) => make("strong", {}, it.kind)],
      ["Decoded", (it) => String(it.reductions), true],
      ["Decoding", (it) => each(it.reduce_us, it.reductions), true],
      ["Batches", (it) => String(it.batches), true],
      ["Proofs", (it) => String(it.proofs), true],
      ["Checking a proof", (it) => each(it.check_us, it.proofs), true],
      ["Checks together / alone", (it) => `${it.together} / ${it.alone}`, true],
      ["Screens", (it) => String(it.screens), true],
      ["Batches by most proofs", (it) => sizesOf(it.sizes)],
    ], kinds),
    make("h2", {}, "Sources"),
    table("Sources", [
      ["Source", (it) => make("code", {}, it.source)],
      ["Under way", (it) => String(it.under_way), true],
      ["Valid", (it) => String(it.valid), true],
      ["False", (it) => make("span", { class: it.invalid ? "bad" : undefined }, String(it.invalid)), true],
      ["No verdict", (it) => String(it.unavailable), true],
      ["Checked", (it) => (it.apart ? "apart, after false proofs" : "with others")],
    ], seen.sources),
    more > 0 ? make("p", { class: "quiet" }, `and ${more} more`) : null,
  ].filter((part) => part !== null);
}

showService(content);
