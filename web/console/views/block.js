// Why is this block not emitted? Its live tasks with the reason of each, its dead letters, and its history.

import { ago, lasted, make, table } from "../elements.js";
import { block } from "../live.js";
import { deadLetters } from "./dead.js";

export async function blockView(_seen, [number]) {
  const status = await block(number);
  const facts = [status.at_ms ? `last change ${ago(status.at_ms)}` : "no change is remembered"];
  if (status.deadline) facts.push(`deadline ${status.deadline}`);
  if (status.stale) facts.push("stale");
  return [
    make("h2", {}, `Block ${status.block}: ${status.state.replaceAll("_", " ")}`),
    make("p", { class: "quiet" }, facts.join(", ")),
    status.note ? make("p", {}, status.note) : null,
    ...reasons(status.tasks),
    ...(status.dead_letters.length ? [make("h2", {}, "Dead letters"), deadLetters(status.dead_letters)] : []),
    ...history(status.history),
  ].filter((part) => part !== null);
}

function reasons(tasks) {
  if (!tasks.length) return [];
  const one = (task) => make("li", { class: "why" }, make("code", {}, task.task), ` waits for ${task.waits_for}`,
    make("small", {}, `${task.phase}, accepted ${ago(task.accepted_ms)}, ${task.failed_attempts} failed attempts`));
  return [make("h2", {}, "Why it waits"), make("ul", { class: "reasons" }, tasks.map(one))];
}

function history(entries) {
  if (!entries.length) return [];
  const failures = (it) => (it.step?.failures ?? []).map((failure) =>
    make("div", { class: "bad" }, `attempt ${failure.attempt} by ${failure.worker}, ${lasted(failure.ran_ms)}: ${failure.reason}`));
  return [make("h2", {}, "History"), table("History", [
    ["When", (it) => ago(it.at_ms)],
    ["What", (it) => it.what.replaceAll("_", " ")],
    ["Task", (it) => (it.step ? make("code", {}, it.step.task) : `blocks ${it.first} to ${it.last}`)],
    ["By", (it) => it.step?.workers.map((by) => by.worker).join(", ") || "-"],
    ["Waited", (it) => lasted(it.step?.waited_ms), true],
    ["Leased", (it) => lasted(it.step?.leased_ms), true],
    ["Ran", (it) => lasted(it.step?.ran_ms), true],
    ["Details", (it) => make("div", {}, it.reason, failures(it), it.places.join(", "))],
  ], [...entries].reverse())];
}
