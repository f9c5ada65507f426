// The page's frame: which view is shown, and when it is made anew.

import { connect, failure, onChange, overview } from "./live.js";
import { make } from "./elements.js";
import { chainView } from "./views/chain.js";
import { blockView } from "./views/block.js";
import { deadView } from "./views/dead.js";
import { stagesView } from "./views/stages.js";
import { workersView } from "./views/workers.js";

const VIEWS = { "": chainView, stages: stagesView, workers: workersView, dead: deadView, block: blockView };
const view = document.getElementById("view");
let drawing = 0;

function route() {
  const [name, ...rest] = location.hash.replace(/^#\/?/, "").split("/");
  return [VIEWS[name] ?? chainView, name in VIEWS ? name : "", rest];
}

function drawFrame(name) {
  const seen = overview();
  const link = document.getElementById("link");
  const text = failure() ? `no connection: ${failure()}` : seen ? stateOf(seen.status) : "connecting …";
  if (link.textContent !== text) link.textContent = text;
  link.classList.toggle("lost", failure() !== null);
  if (seen) {
    document.getElementById("workflow").textContent = seen.status.workflow;
    document.title = `${seen.status.workflow} · Proofmill`;
  }
  for (const anchor of document.querySelectorAll("nav a")) {
    const isCurrent = anchor.getAttribute("href") === `#/${name}`;
    if (isCurrent) anchor.setAttribute("aria-current", "page");
    else anchor.removeAttribute("aria-current");
  }
}

function stateOf(status) {
  if (status.draining) return "it drains";
  if (status.distrusted.length) return "a user has sent a false result";
  if (status.paused.length) return "workers have paused";
  return "running";
}

/** Draws the view. `isNew`: it was chosen just now, so it gets the focus. */
async function draw(isNew) {
  const [make_, name, rest] = route();
  drawFrame(name);
  if (!overview()) return;
  const number = (drawing += 1);
  let content;
  try {
    content = await make_(overview(), rest);
  } catch (error) {
    content = [make("p", { class: "bad" }, error.message)];
  }
  // A later drawing has begun meanwhile.
  if (number !== drawing) return;
  const focused = isNew ? null : document.activeElement?.getAttribute?.("href");
  view.replaceChildren(...content);
  if (isNew) view.focus({ preventScroll: true });
  else if (focused) view.querySelector(`[href="${CSS.escape(focused)}"]`)?.focus({ preventScroll: true });
}

document.getElementById("find").addEventListener("submit", (event) => {
  event.preventDefault();
  const number = new FormData(event.target).get("block");
  if (/^[0-9]+$/.test(number)) location.hash = `#/block/${number}`;
});
addEventListener("hashchange", () => draw(true));
onChange(() => draw(false));
connect();
draw(false);
