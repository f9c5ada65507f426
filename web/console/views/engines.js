// The engines that the mill's stages use: which of them answer, and all about one.

import { make, table } from "../elements.js";
import { bytes, drawingOf, engineContent } from "../engine-content.js";
import { streamOf } from "../live.js";

/** The engines, which are asked while somebody listens. */
export const engines = streamOf("/api/engines");

// By the engine's place: the drawing of recent work, and the last two statuses.
const drawings = new Map();
const statuses = new Map();

export function enginesView(_, [place]) {
  const seen = engines.overview();
  const lost = engines.failure() ? [make("p", { class: "bad" }, `The engines are not shown as they are now: ${engines.failure()}`)] : [];
  if (!seen) return [make("h2", {}, "Engines"), ...lost, make("p", {}, "Waiting for their answers …")];
  const rows = seen.engines.map((it, at) => ({ ...it, at }));
  const one = rows[place];
  return one ? [...lost, ...oneEngine(one)] : [make("h2", {}, `Engines: ${rows.length}`), ...lost, overviewOf(rows)];
}

function overviewOf(rows) {
  const of = (name) => (it) => (it.status ? name(it.status) : "-");
  return table("Engines", [
    ["Engine", (it) => make("a", { href: `#/engines/${it.at}` }, make("code", {}, it.address))],
    ["Stages", (it) => it.stages.join(", ") || "-"],
    ["State", stateOf],
    ["Memory", of(({ budget }) => `${bytes(budget.used)} of ${bytes(budget.total)}`), true],
    ["Keys hot", of(({ circuits }) => `${circuits.filter((it) => it.tier === "hot").length} of ${circuits.length}`), true],
    ["Devices", of(({ devices }) => `${devices.filter((it) => !it.broken).length} of ${devices.length}`), true],
    ["Jobs under way", of(({ jobs }) => String(jobs.length)), true],
    ["Done", of(({ counts }) => String(counts.done)), true],
    ["Failed", of(({ counts }) => String(counts.failed)), true],
  ], rows);
}

function stateOf(it) {
  if (it.failure) return make("span", { class: "bad" }, `does not answer: ${it.failure}`);
  if (!it.status) return "is being asked";
  return it.status.draining ? "drains" : "answers";
}

function oneEngine(it) {
  const head = [
    make("p", {}, make("a", { href: "#/engines" }, "All engines")),
    make("h2", {}, "Engine ", make("code", {}, it.address)),
    make("p", {}, `Used by ${it.stages.join(", ") || "no stage"}; `, stateOf(it)),
  ];
  if (!it.status) return head;
  if (!drawings.has(it.at)) drawings.set(it.at, drawingOf(`/api/engines/${it.at}/timeline.svg`));
  const drawing = drawings.get(it.at);
  if (!engines.failure()) drawing.renew();
  const known = statuses.get(it.at);
  // The view is also drawn when the mill has changed and the engine has not.
  const [before] = known?.[1].uptime_us === it.status.uptime_us ? known : statuses.set(it.at, [known?.[1] ?? null, it.status]).get(it.at);
  return [...head, ...engineContent(it.status, before, drawing)];
}
