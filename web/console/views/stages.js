// The workflow: its graph with what goes through it, and each stage with what it reads and writes, and what is in it.

import { pauseActions, pauseOf } from "../actions.js";
import { ago, blockLink, counted, make, since, table } from "../elements.js";
import { isOperator } from "../session.js";
import { drawnGraph } from "./graph.js";

export function stagesView(seen) {
  const edges = new Map(seen.stages.map((it) => [it.stage, it]));
  const group = (it) => edges.get(it.stage)?.group;
  const count = (name) => (it) => String(it.counters[name]);
  const actions = (kind, name) => pauseActions(seen.status, kind, name);
  const sources = seen.sources.length ? [make("h2", {}, "Sources"), table("Sources", [
    ["Source", (it) => make("strong", {}, it.source)],
    ["Writes", (it) => it.writes],
    ["Paused", (it) => pausedText(seen.status, "source", it.source)],
    ...(isOperator() ? [["Actions", (it) => actions("source", it.source)]] : []),
  ], seen.sources)] : [];
  return [make("h2", {}, "Workflow"), flow(seen), make("h2", {}, "Stages"), table("Stages", [
    ["Stage", (it) => make("strong", {}, it.stage)],
    ["Kind", (it) => it.kind + (group(it) ? ` (${group(it)})` : "")],
    ["Paused", (it) => pausedText(seen.status, "stage", it.stage)],
    ...(isOperator() ? [["Actions", (it) => (it.kind === "collector" ? null : actions("stage", it.stage))]] : []),
    ["Reads", (it) => edges.get(it.stage)?.reads.join(", ") || "-"],
    ["Writes", (it) => edges.get(it.stage)?.writes.join(", ") || "-"],
    ["A minute", (it) => String(flowOf(seen, it.stage)?.accepted_per_minute ?? "-"), true],
    ["Oldest", (it) => since(it.oldest_ms), true],
    ["Waiting", (it) => String(it.waiting), true],
    ["In work", (it) => String(it.leased), true],
    ["Held", (it) => String(it.held), true],
    ["Dead", (it) => String(it.dead), true],
    ["Lowest block", (it) => (it.lowest === null ? "-" : blockLink(it.lowest)), true],
    ["Completed", count("completed"), true],
    ["Failed", count("failed"), true],
    ["Retried", count("retried"), true],
    ["Expired", count("expired"), true],
  ], seen.status.stages), ...sources];
}

const flowOf = (seen, name) => seen.flows[seen.status.stages.findIndex((it) => it.stage === name)];

/** The graph: before each stage what waits for it, its rate and the age of the oldest; in it what is worked on. */
function flow(seen) {
  const sources = seen.sources.map(({ source, writes }) =>
    ({ stage: source, reads: [], writes: [writes], state: pauseOf(seen.status, "source", source) ? "waiting" : "nothing", text: "source" }));
  const stages = seen.status.stages.map((it, at) => {
    const { reads, writes } = seen.stages.find((edge) => edge.stage === it.stage);
    const { accepted_per_minute: rate } = seen.flows[at];
    const inside = [[it.leased, "in work"], [it.held, "held"], [it.dead, "dead"]].filter(([count]) => count);
    return {
      stage: it.stage, reads, writes, state: stateOf(seen.status, it),
      text: inside.map(([count, name]) => `${count} ${name}`).join(", ") || "nothing in work",
      onEdges: [`${counted(it.waiting, "task")} ${it.waiting === 1 ? "waits" : "wait"}`,
        [rate === null ? null : `${rate}/min`, it.oldest_ms === null ? null : since(it.oldest_ms)].filter((part) => part !== null).join(", ")],
    };
  });
  return drawnGraph([...sources, ...stages], "The workflow with what goes through it; the table below has the same");
}

function stateOf(status, stage) {
  if (stage.dead) return "dead";
  if (pauseOf(status, "stage", stage.stage)) return "waiting";
  if (stage.leased) return "running";
  return stage.waiting ? "waiting" : "nothing";
}

/** Who has paused it, and when; nothing if nobody has. */
function pausedText(status, kind, name) {
  const pause = pauseOf(status, kind, name);
  return pause && `by ${pause.by}, ${ago(pause.at_ms)}`;
}
