// Why is this block not emitted? Its live tasks with the reason of each, its dead letters, and its history.

import { blockActions, taskActions } from "../actions.js";
import { ago, counted, deadlineOf, lasted, make, marksOf, nameOf, table, when } from "../elements.js";
import { get } from "../session.js";
import { deadLetters } from "./dead.js";
import { blockGraph } from "./graph.js";
import { waterfall } from "./waterfall.js";

export async function blockView(seen, [number]) {
  const status = await get(`/api/block/${number}`);
  const facts = [status.at_ms ? `last change ${ago(status.at_ms)}` : "no change is remembered"];
  facts.push(...[deadlineOf(status), ...marksOf(status)].filter((fact) => fact !== undefined));
  return [
    make("h2", {}, `Block ${status.block}: ${nameOf(status.state)}`),
    make("p", { class: "quiet" }, facts.join(", ")),
    status.note ? make("p", {}, status.note) : null,
    blockActions(status),
    ...blockGraph(seen.stages, status),
    ...reasons(status.tasks, status.live),
    ...(status.dead_letters.length ? [make("h2", {}, "Dead letters"), deadLetters(status.dead_letters)] : []),
    ...waterfall(status),
    ...history(status.history),
  ].filter((part) => part !== null);
}

const phaseOf = ({ phase }) => (phase === "leased" ? "in work" : phase);

function reasons(tasks, live) {
  if (!tasks.length) return [];
  const more = live - tasks.length;
  const one = (task) => make("li", { class: "why" }, make("code", {}, task.task), ` waits for ${task.waits_for}`,
    make("small", {}, `${phaseOf(task)}, accepted ${ago(task.accepted_ms)}, ${counted(task.failed_attempts, "failed attempt")}`), taskActions(task) ?? "");
  return [make("h2", {}, "Why it waits"), make("ul", { class: "reasons" }, tasks.map(one)),
    more > 0 ? make("p", { class: "quiet" }, `and ${more} more tasks`) : null];
}

function history(entries) {
  if (!entries.length) return [];
  const failures = (it) => (it.step?.failures ?? []).map((failure) =>
    make("div", { class: "bad" }, `attempt ${failure.attempt} by ${failure.worker}, ${lasted(failure.ran_ms)}: ${failure.reason}`));
  return [make("h2", {}, "History"), table("History", [
    ["When", (it) => when(it.at_ms)],
    ["What", (it) => it.what.replaceAll("_", " ")],
    ["Task", (it) => (it.step ? make("code", {}, it.step.task) : `blocks ${it.first} to ${it.last}`)],
    ["By", (it) => it.step?.workers.map((by) => by.worker).join(", ") || "-"],
    ["Waited", (it) => lasted(it.step?.waited_ms), true],
    ["Leased", (it) => lasted(it.step?.leased_ms), true],
    ["Ran", (it) => lasted(it.step?.ran_ms), true],
    ["Details", (it) => make("div", {}, it.reason, failures(it), it.places.join(", "))],
  ], [...entries].reverse())];
}
