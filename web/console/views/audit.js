// What operators have done: who, what, when, and with which result.

import { keptAnswer } from "../answers.js";
import { make, table, when } from "../elements.js";

const ask = keptAnswer();

export async function auditView(_seen, _rest, isNew) {
  const entries = await ask("/api/audit", { isNew });
  if (!entries.length) return [make("h2", {}, "Audit log"), make("p", {}, "Nothing has been done yet.")];
  return [make("h2", {}, "Audit log"), table("Audit log", [
    ["When", (it) => when(it.at_ms)],
    ["Who", (it) => it.who],
    ["By", (it) => it.via],
    ["What", (it) => it.action],
    ["Of", (it) => make("code", {}, it.target)],
    ["Result", (it) => make("span", { class: it.done === false ? "bad" : undefined }, it.result ?? "has begun, and not ended")],
  ], entries)];
}
