// Blocks that are cut into parts: the parts by step, how long each step takes, and the step that everything waits for.

import { blockLink, counted, lasted, make, table } from "../elements.js";

export function partsView(seen) {
  const { blocks, has_more: hasMore } = seen.steps ?? { blocks: [], has_more: false };
  if (!blocks.length) return [make("h2", {}, "Parts"), make("p", {}, "No block is in work.")];
  return [
    make("h2", {}, "Parts"),
    ...blocks.flatMap(blockSteps),
    hasMore ? make("p", { class: "quiet" }, "and higher blocks: only the lowest in work are shown") : null,
  ].filter((part) => part !== null);
}

function blockSteps({ block, steps, critical }) {
  const now = steps[critical];
  return [
    make("h3", {}, "Block ", blockLink(block)),
    now ? waitsFor(now) : null,
    table(`Steps of block ${block}`, [
      ["Step", (it) => make("strong", {}, it.stage)],
      ["Now", (it) => (it === now ? "all wait for it" : stateOf(it))],
      ["Waiting", (it) => String(it.counts.waiting), true],
      ["In work", (it) => String(it.counts.leased), true],
      ["Held", (it) => String(it.counts.held), true],
      ["Done", (it) => String(it.done), true],
      ["Dead", (it) => make("span", { class: it.counts.dead ? "bad" : undefined }, String(it.counts.dead)), true],
      ["Took", (it) => lasted(tookOf(it)), true],
      ["Median of a part", (it) => (it.median_ms === null ? "-" : `about ${lasted(it.median_ms)}`), true],
      ["Longest part", (it) => (it.slowest ? make("span", {}, `${lasted(it.slowest.took_ms)}: `, make("code", {}, it.slowest.part)) : "-"), true],
    ], steps),
  ].filter((part) => part !== null);
}

// What is said of a step of this kind of which no worker has a part.
const IDLE = {
  dispatcher: "No worker has a part of it.",
  collector: "Its group is not complete.",
  sequencer: "It is being emitted, or waits for lower blocks.",
};

const leftOf = ({ live, counts }) => live + counts.dead;

function stateOf(step) {
  if (leftOf(step)) return step.counts.leased ? "in work" : "begun";
  return step.done ? "done" : "not begun";
}

/** How long a step took, or has taken until now; null before it has begun. */
function tookOf(step) {
  if (step.began_ms === null) return null;
  const to = leftOf(step) || step.ended_ms === null ? Date.now() : step.ended_ms;
  return Math.max(0, to - step.began_ms);
}

/** The step that everything waits for, and the part of it that does so for longest. */
function waitsFor(step) {
  const { counts, oldest } = step;
  const slow = oldest
    ? [" Its slowest part in work is ", make("code", {}, oldest.part), `, for ${lasted(Math.max(0, Date.now() - oldest.since_ms))} at ${oldest.worker}.`]
    : [counts.dead ? " Dead letters hold it up." : ` ${IDLE[step.kind]}`];
  return make("p", { class: counts.dead || !oldest ? "why" : "why now" }, "Everything waits for ", make("strong", {}, step.stage),
    `: ${counted(leftOf(step), "part")} left, ${step.done} done.`, slow);
}
