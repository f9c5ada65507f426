// The workflow: each stage with what it reads and writes, and what is in it.

import { blockLink, make, table } from "../elements.js";

export function stagesView(seen) {
  const edges = new Map(seen.stages.map((it) => [it.stage, it]));
  const group = (it) => edges.get(it.stage)?.group;
  const count = (name) => (it) => String(it.counters[name]);
  return [make("h2", {}, "Stages"), table("Stages", [
    ["Stage", (it) => make("strong", {}, it.stage)],
    ["Kind", (it) => it.kind + (group(it) ? ` (${group(it)})` : "")],
    ["Reads", (it) => edges.get(it.stage)?.reads.join(", ") || "-"],
    ["Writes", (it) => edges.get(it.stage)?.writes.join(", ") || "-"],
    ["Waiting", (it) => String(it.waiting), true],
    ["Leased", (it) => String(it.leased), true],
    ["Held", (it) => String(it.held), true],
    ["Dead", (it) => String(it.dead), true],
    ["Lowest block", (it) => (it.lowest === null ? "-" : blockLink(it.lowest)), true],
    ["Completed", count("completed"), true],
    ["Failed", count("failed"), true],
    ["Retried", count("retried"), true],
    ["Expired", count("expired"), true],
  ], seen.status.stages)];
}
