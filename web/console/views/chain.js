// Is the chain moving? The next block, what is emitted, and the line of blocks around it.

import { age, ago, counted, deadlineOf, figures, make, marksOf, nameOf } from "../elements.js";

export function chainView(seen) {
  const { status, blocks } = seen;
  const next = status.next_block;
  const last = blocks.filter((it) => it.state === "emitted").at(-1);
  const shown = [
    [next ?? "-", "next to be emitted"],
    behind(seen),
    [seen.blocks_per_minute ?? "-", "blocks a minute"],
    [last ? ago(last.at_ms) : "-", "last emission"],
    [status.live, "live tasks"],
    [status.dead, "dead letters"],
    [status.producers_waiting, "messages wait for room, or for a paused source"],
    [`${status.blocks_met} / ${status.blocks_missed}`, "deadlines met / missed"],
  ];
  return [
    make("h2", {}, "Chain"),
    figures(shown),
    ...stuck(blocks.find((it) => it.block === next)),
    make("h2", { id: "blocks" }, "Blocks"),
    make("ol", { class: "chain", "aria-labelledby": "blocks" }, blocks.map(item)),
    ...gaps(status.gaps),
  ];
}

/** How far the emission is behind: as far as the sources are, or, where none counts blocks, as far as the blocks below show. */
function behind({ status, blocks, has_more: hasMore, behind: ofSources, blocks_per_minute: rate }) {
  const next = status.next_block;
  if (next === null) return ["-", "blocks behind"];
  const highest = blocks.filter((it) => it.state !== "never_seen").at(-1)?.block;
  const shown = highest === undefined ? 0 : Math.max(0, highest + 1 - next);
  const count = Math.max(ofSources ?? 0, shown);
  if (hasMore && count === shown) return [`${count} or more`, "blocks behind"];
  return [count, count && rate ? `blocks behind, ${age((60_000 * count) / rate)} at this rate` : "blocks behind"];
}

function item(it) {
  const shown = [nameOf(it.state), ...marksOf(it)];
  const more = [deadlineOf(it), it.live ? counted(it.live, "live task") : undefined].filter((part) => part !== undefined);
  const label = `block ${it.block}: ${[...shown, ...more].join(", ")}`;
  const late = it.deadline === "missed" ? " late" : "";
  return make("li", {}, make("a", { href: `#/block/${it.block}`, class: it.state + late, "aria-label": label },
    String(it.block), make("small", {}, shown.join(", "))));
}

function stuck(next) {
  if (!next || next.state === "emitted") return [];
  const why = make("a", { href: `#/block/${next.block}` }, `why block ${next.block} waits`);
  return [make("p", {}, `Block ${next.block} is next, and its state is “${nameOf(next.state)}”: `, why)];
}

function gaps(spans) {
  if (!spans.length) return [];
  const text = spans.map(([first, last]) => (first === last ? `${first}` : `${first} to ${last}`)).join(", ");
  return [make("p", { class: "bad" }, `Later blocks have reached the sequencer, and these have not: ${text}.`)];
}
