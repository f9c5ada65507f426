// Workers: what each offers, has and has done, which get no tasks and why, and the users that are distrusted.

import { pauseActions, pauseOf } from "../actions.js";
import { age, ago, make, table } from "../elements.js";
import { isOperator } from "../session.js";

export function workersView(seen) {
  const { status, workers } = seen;
  const lacks = new Map(status.paused.map((it) => [it.worker, it.reason]));
  const more = status.workers - workers.length;
  return [
    make("h2", {}, `Workers: ${status.workers}`),
    table("Workers", [
      ["Worker", (it) => make("code", {}, it.worker)],
      ["Group", (it) => it.group],
      ["Labels", (it) => it.labels.join(", ") || "-"],
      ["State", (it) => (it.state === "paused" ? (lacks.has(it.worker) ? "out of a resource" : "drained") : it.state)],
      ["Tasks", (it) => String(it.leases), true],
      ["Slots", (it) => `${it.slots_busy} of ${it.slots}`, true],
      ["Busy", (it) => `${it.busy_percent} %`, true],
      ["Heard", (it) => `${age(it.silent_ms)} ago`, true],
      ["Completed", (it) => String(it.completed), true],
      ["Failed", (it) => make("span", { class: it.failed ? "bad" : undefined }, String(it.failed)), true],
      ["Why it gets no tasks", (it) => whyNot(lacks.get(it.worker), pauseOf(status, "worker", it.worker))],
      ...(isOperator() ? [["Actions", (it) => pauseActions(status, "worker", it.worker)]] : []),
    ], workers),
    more > 0 ? make("p", { class: "quiet" }, `and ${more} more`) : null,
    make("p", { class: "quiet" }, "“Busy” is the share of the last five to ten minutes with an assignment. Attempts are counted " +
      "since this coordinator leads."),
    ...listed("Workers wanted", status.scaling, [
      ["Pool", (it) => make("code", {}, it.pool)],
      ["Group", (it) => it.group],
      ["Present", (it) => String(it.present), true],
      ["Wanted", (it) => String(it.wanted), true],
      ["Why", (it) => it.why],
    ]),
    ...listed("Users that have sent a false result", status.distrusted, [
      ["User", (it) => make("code", {}, it.user)],
      ["Result", (it) => it.reason],
    ]),
    ...listed("Hosts of collectors", status.hosts, [
      ["Host", (it) => make("code", {}, it.host)],
      ["Partitions", (it) => String(it.partitions), true],
      ["Verdicts owed", (it) => String(it.owes), true],
    ]),
  ].filter((part) => part !== null);
}

/** Why a worker gets no tasks: what its machine lacks, and the operator who drains it; nothing if it gets some. */
function whyNot(lack, drain) {
  const reasons = [lack && `out of a resource: ${lack}`, drain && `drained by ${drain.by}, ${ago(drain.at_ms)}`];
  return reasons.filter((reason) => reason).join("; ") || undefined;
}

function listed(title, rows, columns) {
  return rows.length ? [make("h2", {}, title), table(title, columns, rows)] : [];
}
