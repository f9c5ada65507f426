// The page's frame: which view is shown, and when it is made anew.

import { connect, disconnect, failure, onChange, overview, whileInSight } from "./live.js";
import { counted, make } from "./elements.js";
import { redrawing } from "./redraw.js";
import { isOperator, loadSession, logOut, visitor } from "./session.js";
import { auditView } from "./views/audit.js";
import { chainView } from "./views/chain.js";
import { blockView } from "./views/block.js";
import { deadView } from "./views/dead.js";
import { engines, enginesView } from "./views/engines.js";
import { loginView } from "./views/login.js";
import { partsView } from "./views/parts.js";
import { stagesView } from "./views/stages.js";
import { workersView } from "./views/workers.js";

const VIEWS = {
  "": chainView, stages: stagesView, parts: partsView, engines: enginesView, workers: workersView, dead: deadView, block: blockView,
  audit: auditView,
};
// Time until the server is asked again who the visitor is, milliseconds.
const RETRY_MS = 2000;
const view = document.getElementById("view");
// Number of views that were chosen, the present one included; the number of the one that is being drawn, if one is; whether there is
// news that this drawing lacks.
let [turn, underWay, again] = [0, null, false];
// Nothing is drawn before it is known who the visitor is.
let isBegun = false;
const { redraw, stillness } = redrawing(view, () => draw(false));

function route() {
  const [name, ...rest] = location.hash.replace(/^#\/?/, "").split("/");
  return [VIEWS[name] ?? chainView, name in VIEWS ? name : "", rest];
}

function drawVisitor() {
  const { name, role, may_log_in: mayLogIn } = visitor();
  const text = name ? `${name} (${role})` : mayLogIn ? "Log in" : "";
  const place = document.getElementById("visitor");
  document.getElementById("audit-link").hidden = !isOperator();
  if (place.dataset.drawn === text) return;
  place.dataset.drawn = text;
  if (!name) {
    place.replaceChildren(mayLogIn ? make("a", { href: "#/login" }, text) : "");
    return;
  }
  const out = make("button", { type: "button" }, "Log out");
  out.addEventListener("click", () => logOut().then(begin));
  place.replaceChildren(`${text} `, out);
}

function drawFrame(name) {
  drawVisitor();
  const seen = overview();
  const link = document.getElementById("link");
  const text = linkText(seen);
  if (link.textContent !== text) link.textContent = text;
  link.classList.toggle("lost", visitor().may_look && failure() !== null);
  if (seen) {
    document.getElementById("workflow").textContent = seen.status.workflow;
    document.title = `${seen.status.workflow} · Proofmill`;
    document.getElementById("parts-link").hidden = !seen.steps;
    document.getElementById("engines-link").hidden = !seen.engines;
  }
  for (const anchor of document.querySelectorAll("nav a")) {
    const isCurrent = anchor.getAttribute("href") === `#/${name}`;
    if (isCurrent) anchor.setAttribute("aria-current", "page");
    else anchor.removeAttribute("aria-current");
  }
}

function linkText(seen) {
  // What was seen before somebody logged out says nothing about now.
  if (!visitor().may_look) return "not logged in";
  if (failure()) return `no connection: ${failure()}`;
  return seen ? stateOf(seen.status) + stillness() : "connecting …";
}

function stateOf(status) {
  if (status.draining) return "the mill drains";
  if (status.distrusted.length) return "a user has sent a false result";
  if (status.paused.length) return "workers out of a resource";
  // Those of workers are drains.
  const drains = status.pauses.filter((it) => it.kind === "worker").length;
  const pauses = status.pauses.length - drains;
  const of = [pauses && counted(pauses, "pause"), drains && counted(drains, "drain")].filter((part) => part);
  return of.length ? `running, with ${of.join(" and ")} by operators` : "running";
}

/**
 * Draws the view. `isNew`: it was chosen just now, so it gets the focus. A drawing that waits for an answer is finished before the next
 * begins; it is dropped if another view is chosen meanwhile.
 */
async function draw(isNew) {
  if (!isBegun) return;
  if (isNew) turn += 1;
  const [contentOf, name, rest] = route();
  drawFrame(name);
  listenToEngines(name === "engines" && !isLogin() && !document.hidden);
  if (isLogin()) {
    [turn, underWay] = [turn + 1, null];
    // A login that is under way is not drawn anew.
    if (isNew || !view.querySelector("#token")) showLogin();
    return;
  }
  if (!overview()) return;
  if (underWay === turn) {
    again = true;
    return;
  }
  const mine = turn;
  [underWay, again] = [mine, false];
  let content;
  try {
    content = await contentOf(overview(), rest, isNew);
  } catch (error) {
    // While the link is lost, which the frame says, what was known before is more than why nothing can be known.
    content = failure() && !isNew ? null : [make("p", { class: "bad" }, error.message)];
  }
  if (mine !== turn) return;
  underWay = null;
  if (content) redraw(content, { isNew });
  if (again) draw(false);
}

/** Engines are asked only while their view is open. */
function listenToEngines(isOpen) {
  if (!isOpen) engines.disconnect();
  else if (!engines.isConnected()) engines.connect();
}

function isLogin() {
  const { may_look: mayLook, may_log_in: mayLogIn } = visitor();
  return !mayLook || (mayLogIn && /^#\/login/.test(location.hash));
}

function showLogin() {
  const [, ...rest] = location.hash.replace(/^#\/?/, "").split("/");
  const token = /^#\/login/.test(location.hash) ? rest : [];
  view.replaceChildren(...loginView(begin, token));
  view.querySelector("#token").focus({ preventScroll: true });
}

/** Begins as the present visitor. */
async function begin() {
  while (!(await loadSession().catch(() => null))) await new Promise((later) => setTimeout(later, RETRY_MS));
  isBegun = true;
  if (/^#\/login/.test(location.hash) && visitor().name) history.replaceState(null, "", "#/");
  listen();
  draw(true);
}

/** Listens to the mill while the visitor may look and the page is in sight. */
function listen() {
  if (visitor().may_look && !document.hidden) connect();
  else disconnect();
}

// Its address would be that of another view.
document.querySelector(".skip").addEventListener("click", (event) => {
  event.preventDefault();
  view.focus();
});
document.getElementById("find").addEventListener("submit", (event) => {
  event.preventDefault();
  const number = new FormData(event.target).get("block");
  if (/^[0-9]+$/.test(number)) location.hash = `#/block/${number}`;
});
onChange(async () => {
  draw(false);
  if (!failure()) return;
  // The session may have ended; the page then asks for a token. A server that is gone says nothing about it.
  const session = await loadSession().catch(() => null);
  if (!session || session.may_look) return;
  disconnect();
  draw(false);
});
engines.onChange(() => draw(false));
addEventListener("hashchange", () => draw(true));
whileInSight({
  enter() {
    listen();
    draw(false);
  },
  stay: () => draw(false),
  leave() {
    disconnect();
    engines.disconnect();
  },
});
begin();
