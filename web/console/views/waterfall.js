// A block's attempts on one axis of time: when each task waited, was leased, ran, and failed; and the table of attempts.

import { draw } from "../drawing.js";
import { lasted, make, table, when } from "../elements.js";
import { folded } from "../folded.js";

// Most tasks that are drawn; the history below has the others.
const ROWS_MAX = 60;
// Units of the axis, and the least width of a bar on it.
const [AXIS, LEAST] = [1000, 3];
// Height of a row, and of the bars of waiting, which the others are so told from without colours.
const [ROW, WAITS] = [14, 4];
const LEGEND = [
  ["waits", "waits (thin)"],
  ["leased", "leased: the input is fetched, the result reported"],
  ["runs", "runs"],
  ["records", "its end is recorded"],
  ["failed", "attempt that failed"],
];

/** The waterfall and the attempts of a block. */
export function waterfall(status, now = Date.now()) {
  const rows = [...ended(status), ...status.dead_letters.map(dead), ...status.tasks.map((it) => live(it, now))];
  if (!rows.length) return [];
  rows.sort((a, b) => a.from - b.from || a.task.localeCompare(b.task));
  const from = Math.min(...rows.map((row) => row.from));
  const to = Math.max(from + 1, ...rows.map((row) => row.to));
  const more = rows.length - ROWS_MAX;
  const attempts = rows.flatMap((row) => row.attempts);
  return [
    make("h2", {}, "Attempts"),
    make("div", { class: "waterfall", role: "img", "aria-label": "Timeline of the tasks; the table of attempts has the same" },
      rows.slice(0, ROWS_MAX).map((row) => line(row, from, to)),
      make("div", { class: "row axis" }, make("span", {}), make("span", {}, make("span", {}, new Date(from).toLocaleString()),
        make("span", {}, `${lasted(to - from)} later`)))),
    make("ul", { class: "legend" }, LEGEND.map(([kind, text]) => make("li", { class: kind }, text))),
    more > 0 ? make("p", { class: "quiet" }, `and ${more} more tasks`) : null,
    ...(attempts.length ? [attemptsTable(attempts)] : []),
  ];
}

function line(row, from, to) {
  const scale = AXIS / (to - from);
  const bars = row.bars.filter((bar) => bar.to >= bar.from).map((bar) => {
    const width = Math.max(LEAST, (bar.to - bar.from) * scale);
    const x = Math.min(AXIS - width, (bar.from - from) * scale);
    const height = bar.kind === "waits" ? WAITS : ROW;
    return draw("rect", { x: x.toFixed(1), y: (ROW - height) / 2, width: width.toFixed(1), height, class: bar.kind },
      draw("title", {}, `${row.task} ${bar.title}: ${lasted(bar.to - bar.from)}`));
  });
  return make("div", { class: "row" }, make("code", {}, row.task),
    draw("svg", { viewBox: `0 0 ${AXIS} ${ROW}`, preserveAspectRatio: "none" }, bars));
}

const bar = (kind, title, from, to) => ({ kind, title, from, to });

const failedBars = (failures) => failures.map((it) =>
  bar("failed", `attempt ${it.number ?? it.attempt} failed`, it.at_ms - (it.wall_ms ?? it.ran_ms), it.at_ms));

const failedAttempts = (task, failures) => failures.map((it) => ({
  task, number: it.number ?? it.attempt, worker: it.worker, from: it.at_ms - (it.wall_ms ?? it.ran_ms),
  lasted: it.wall_ms ?? it.ran_ms, result: it.reason, failed: true, exit: it.exit, stdout: it.stdout, stderr: it.stderr,
}));

// Tasks that have ended, from the history. Of a task that is a dead letter now, the letter says more.
function ended(status) {
  const letters = new Set(status.dead_letters.map((it) => it.task));
  const steps = status.history.filter((it) => it.step && !(it.what === "died" && letters.has(it.step.task)));
  return steps.map(({ step, at_ms: to, what }) => {
    const from = step.accepted_ms;
    const begun = from + step.waited_ms;
    const bars = [bar("waits", "waited", from, begun), ...failedBars(step.failures)];
    if (step.leased_ms !== null) {
      bars.push(bar("leased", "was leased", begun, to), bar("runs", "ran", Math.max(begun, to - (step.ran_ms ?? 0)), to));
    }
    const recorded = to + (step.recorded_ms ?? 0);
    if (recorded > to) bars.push(bar("records", "was recorded", to, recorded));
    const done = step.workers.map((by) => ({ task: step.task, number: by.attempt, worker: by.worker, from: begun,
      lasted: step.ran_ms, result: what.replaceAll("_", " ") }));
    return { task: step.task, from, to: recorded, bars, attempts: [...failedAttempts(step.task, step.failures), ...done] };
  });
}

function dead(it) {
  const bars = [bar("waits", "waited", it.accepted_ms, it.at_ms), ...failedBars(it.failures)];
  return { task: it.task, from: it.accepted_ms, to: it.at_ms, bars, attempts: failedAttempts(it.task, it.failures) };
}

function live(it, now) {
  const bars = [bar("waits", "waits", it.accepted_ms, now), ...failedBars(it.failures),
    ...it.workers.map((by) => bar("runs", `is at ${by.worker}`, by.since_ms ?? now, now))];
  const running = it.workers.map((by) => ({ task: it.task, number: by.attempt, worker: by.worker, from: by.since_ms,
    lasted: now - by.since_ms, result: it.phase === "recording" ? "its result is being recorded" : "is under way" }));
  return { task: it.task, from: it.accepted_ms, to: now, bars, attempts: [...failedAttempts(it.task, it.failures), ...running] };
}

function attemptsTable(attempts) {
  attempts.sort((a, b) => b.from - a.from);
  return table("Attempts", [
    ["Task", (it) => make("code", {}, it.task)],
    ["Attempt", (it) => String(it.number), true],
    ["Worker", (it) => make("code", {}, it.worker)],
    ["Began", (it) => when(it.from)],
    ["Lasted", (it) => lasted(it.lasted), true],
    ["Exit", (it) => (it.exit === undefined || it.exit === null ? "-" : String(it.exit)), true],
    ["Result", (it) => make("div", { class: it.failed ? "bad" : undefined }, it.result, streams(it))],
  ], attempts);
}

function streams(it) {
  const texts = [["standard error", it.stderr], ["standard output", it.stdout]].filter(([, text]) => text);
  return texts.map(([name, text]) => folded(`${it.task} ${it.number} ${name}`, `end of its ${name}`,
    make("pre", { tabindex: "0", "aria-label": `${name} of attempt ${it.number} at ${it.task}`, role: "region" }, text)));
}
