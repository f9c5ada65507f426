// Is the chain moving? The next block, what is emitted, and the line of blocks around it.

import { ago, counted, figures, make } from "../elements.js";

const nameOf = (state) => ({ never_seen: "not seen", dead: "dead letter" })[state] ?? state.replaceAll("_", " ");

export function chainView(seen) {
  const { status, blocks } = seen;
  const next = status.next_block;
  const highest = blocks.filter((it) => it.state !== "never_seen").at(-1)?.block;
  const last = blocks.filter((it) => it.state === "emitted").at(-1);
  const rate = seen.emitted_per_minute;
  const behind = next === null || highest === undefined ? null : Math.max(0, highest + 1 - next);
  const shown = [
    [next ?? "-", "next to be emitted"],
    [behind ?? "-", behind && rate ? `blocks in work, ${(behind / rate).toFixed(1)} min at this rate` : "blocks in work"],
    [rate ?? "-", "emitted a minute"],
    [last ? ago(last.at_ms) : "-", "last emission"],
    [status.live, "live tasks"],
    [status.dead, "dead letters"],
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

function item(it) {
  const live = it.live ? `, ${counted(it.live, "live task")}` : "";
  const label = `block ${it.block}: ${nameOf(it.state)}${live}`;
  return make("li", {}, make("a", { href: `#/block/${it.block}`, class: it.state, "aria-label": label },
    String(it.block), make("small", {}, nameOf(it.state))));
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
