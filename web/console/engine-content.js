// What pages show of an engine: memory by owner, keys by tier, stages, devices, jobs, and the drawing of recent work.

import { draw } from "./drawing.js";
import { ago, counted, figures, lasted, make, table } from "./elements.js";

// Time between two drawings of recent work, which changes with every event, milliseconds.
const DRAWING_EVERY = 5000;
const UNITS = ["B", "KiB", "MiB", "GiB", "TiB"];

/** The drawing of recent work that the server offers at `path`: its picture, and `renew`, which fetches it when it is old. */
export function drawingOf(path) {
  const alt = "Timeline of recent partitions: the tables of jobs have the same";
  const picture = make("img", { class: "timeline", alt, src: path });
  let drawn = Date.now();
  const renew = () => {
    if (Date.now() - drawn < DRAWING_EVERY) return;
    drawn = Date.now();
    picture.src = `${path}?${drawn}`;
  };
  return { picture, renew };
}

export function bytes(count) {
  let unit = 0;
  while (count >= 1024 && unit < UNITS.length - 1) [count, unit] = [count / 1024, unit + 1];
  return `${unit ? count.toFixed(1) : count} ${UNITS[unit]}`;
}

function ownerOf(use, circuits) {
  const { key, partition } = use.owner ?? {};
  if (key !== undefined) return `key of ${circuits.find((it) => it.id === key)?.name ?? key}`;
  if (partition) return `partition ${partition.partition} of job ${partition.job.slice(0, 8)}`;
  return "registration of a circuit";
}

/** The share of the time since the status before, over `workers`, in percent. */
function busy(now, past, window, workers) {
  return `${Math.min(100, (100 * (now - (past ?? 0))) / window / workers).toFixed(0)} %`;
}

/** A bar of the budget: each owner's share of all bytes. */
function budgetBar(budget) {
  let x = 0;
  const shares = budget.owners.map((use) => {
    const width = (1000 * use.bytes) / budget.total;
    const kind = use.owner?.key !== undefined ? "leased" : "runs";
    x += width;
    return draw("rect", { x: (x - width).toFixed(1), y: 0, width: width.toFixed(1), height: 18, class: kind });
  });
  const label = `${bytes(budget.used)} of ${bytes(budget.total)} are reserved; the table below has the owners`;
  return make("div", { class: "waterfall budget" },
    draw("svg", { viewBox: "0 0 1000 18", preserveAspectRatio: "none", role: "img", "aria-label": label }, shares));
}

function jobs(title, rows) {
  return [make("h2", {}, title), rows.length ? table(title, [
    ["Job", (it) => make("code", {}, it.id.slice(0, 12))],
    ["Client", (it) => it.client],
    ["Priority", (it) => it.priority],
    ["State", (it) => make("span", { class: it.state === "failed" ? "bad" : undefined }, it.state)],
    ["Proven", (it) => `${it.proven} of ${it.partitions}`, true],
    ["Circuits", (it) => it.circuits.join(", ")],
    ["Accepted", (it) => ago(it.submitted_ms)],
    ["Took", (it) => (it.ended_ms && it.started_ms ? lasted(it.ended_ms - it.started_ms) : "-"), true],
    ["Failure", (it) => it.failure || "-"],
  ], rows) : make("p", {}, "There are none.")];
}

/**
 * What a page shows of an engine. `before`: its status before, for the share of its time that each stage and device has
 * worked since; null if there is none. `drawing`: the picture of recent work.
 */
export function engineContent(seen, before, drawing) {
  const { budget, counts } = seen;
  const past = before && before.uptime_us < seen.uptime_us && before.started_ms === seen.started_ms ? before : null;
  const window = Math.max(1, seen.uptime_us - (past?.uptime_us ?? 0));
  const broken = seen.devices.filter((it) => it.broken);
  return [
    figures([
      [seen.jobs.length, "jobs under way"],
      [counts.done, "done"],
      [counts.failed, "failed"],
      [`${counts.cancelled} / ${counts.expired}`, "cancelled / expired"],
      [counts.retries, "partitions tried again"],
      [budget.evictions, "keys evicted"],
    ]),
    make("h2", {}, `Memory: ${bytes(budget.used)} of ${bytes(budget.total)}`),
    make("p", { class: "quiet" }, `${bytes(budget.peak)} at most; ${counted(budget.waiting, "request")} for ${bytes(budget.waiting_bytes)} wait`),
    budgetBar(budget),
    table("Owners of memory", [
      ["Owner", (it) => ownerOf(it, seen.circuits)],
      ["Memory", (it) => bytes(it.bytes), true],
    ], budget.owners),
    make("h2", {}, "Keys"),
    table("Keys", [
      ["Circuit", (it) => make("strong", {}, it.name)],
      ["Curve", (it) => it.curve],
      ["Variables", (it) => String(it.variables), true],
      ["Tier", (it) => it.tier + (it.loading ? ", loading" : it.pinned ? ", pinned" : "")],
      ["Holds", (it) => bytes(it.bytes), true],
      ["When hot", (it) => bytes(it.hot_bytes), true],
      ["A proof takes", (it) => bytes(it.work_bytes), true],
      ["Users", (it) => String(it.users), true],
      ["Proofs", (it) => String(it.proofs), true],
    ], seen.circuits),
    make("h2", {}, "Stages"),
    table("Stages", [
      ["Stage", (it) => it.stage],
      ["Busy", (it) => `${it.busy} of ${it.workers}`, true],
      ["Queued", (it) => String(it.queued), true],
      ["Ended", (it) => String(it.ended), true],
      ["Worked", (it) => busy(it.busy_us, past?.stages.find((of) => of.stage === it.stage)?.busy_us, window, it.workers), true],
    ], seen.stages),
    make("h2", {}, "Devices"),
    table("Devices", [
      ["Device", (it) => it.name],
      ["Now", (it) => (it.broken ? "broken" : it.busy ? "busy" : "idle")],
      ["Worked", (it) => busy(it.busy_us, past?.devices.find((of) => of.name === it.name)?.busy_us, window, 1), true],
      ["Partitions", (it) => String(it.products), true],
      ["Failures", (it) => String(it.failures), true],
      ["Suspected", (it) => String(it.suspected), true],
    ], seen.devices),
    ...broken.map((it) => make("p", { class: "bad" }, `${it.name} is not used any more: ${it.broken}`)),
    ...jobs("Jobs under way", seen.jobs),
    ...jobs("Jobs that ended", seen.recent),
    make("h2", {}, "Recent work"),
    make("div", { class: "scroll", tabindex: "0", role: "region", "aria-label": "Recent work" }, drawing.picture),
  ];
}
