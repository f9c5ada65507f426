// Workers: who is there, what each has, who has paused, who is distrusted.

import { make, table } from "../elements.js";

export function workersView(seen) {
  const { status, workers } = seen;
  const paused = new Map(status.paused.map((it) => [it.worker, it.reason]));
  const more = status.workers - workers.length;
  return [
    make("h2", {}, `Workers: ${status.workers}`),
    table("Workers", [
      ["Worker", (it) => make("code", {}, it.worker)],
      ["Group", (it) => it.group],
      ["Tasks", (it) => String(it.leases), true],
      ["Paused", (it) => paused.get(it.worker)],
    ], workers),
    more > 0 ? make("p", { class: "quiet" }, `and ${more} more`) : null,
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

function listed(title, rows, columns) {
  return rows.length ? [make("h2", {}, title), table(title, columns, rows)] : [];
}
