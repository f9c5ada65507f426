// Opens the console of a real mill in a Chromium that the lock file pins: blocks that are stuck show why, operators act and
// viewers do not, forged requests are refused, and axe finds nothing serious. `make page-check` runs it; PROOFMILL is the
// program, and SCREENSHOTS a folder for pictures of the views (`make page-screenshots`).

import assert from "node:assert/strict";
import { mkdtemp, rm } from "node:fs/promises";
import { createServer, request } from "node:http";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { after, before, test } from "node:test";

import { delay, openBrowser, redrawn, shows as showsOn, withAxe } from "./browser.mjs";
import { TOKENS, startMill } from "./mill.mjs";

const REBOUND = "rebound.example";
const PATIENCE_MS = 20_000;

let mill, browser, page;
const problems = [];
const requested = [];

before(async () => {
  assert.ok(process.env.PROOFMILL, "PROOFMILL must name the program");
  mill = await startMill(process.env.PROOFMILL);
  const args = [`--host-resolver-rules=MAP ${REBOUND} 127.0.0.1`];
  [browser, page] = await openBrowser({ problems, requested, args });
  await page.goto(`http://${mill.address}/`);
});

after(async () => {
  await browser?.close();
  await mill?.stop();
});

const shows = (text, selector) => showsOn(page, text, { selector, timeout: PATIENCE_MS });

async function open(hash) {
  await page.evaluate((to) => { location.hash = to; }, hash);
}

/** Types into a field that replaces its text. */
async function type(selector, text) {
  await page.waitForSelector(selector, { timeout: PATIENCE_MS });
  await page.focus(selector);
  await page.keyboard.type(text);
}

async function logIn(name) {
  await type("#token", TOKENS[name]);
  await page.keyboard.press("Enter");
  await shows(`${name} (`, "#visitor");
}

/** Presses the button of this name. A redraw may replace it at any moment, so the page itself finds and presses it. */
async function press(name) {
  const find = (wanted) => {
    const button = document.querySelector(`button[aria-label="${CSS.escape(wanted)}"]`);
    button?.click();
    return button !== null;
  };
  await page.waitForFunction(find, { timeout: PATIENCE_MS }, name);
}

/** Presses a button, and the one of the question that follows; waits for the result. */
async function act(name, result) {
  await press(name);
  await page.waitForSelector("dialog[open] button[type=submit]", { timeout: PATIENCE_MS });
  await page.click("dialog[open] button[type=submit]");
  await shows(result, "#result");
}

/** Names of the buttons that act. */
function actionsShown() {
  return page.$$eval("#view button[data-key]", (buttons) => buttons.map((it) => it.getAttribute("aria-label")));
}

/** The status of an answer to a request with these headers. */
function status(path, headers = {}) {
  const [host, port] = mill.address.split(":");
  return new Promise((found, failed) => {
    request({ host, port, path, headers }, (answer) => {
      answer.resume();
      found([answer.statusCode, answer.headers]);
    }).on("error", failed).end();
  });
}

test("a visitor without a token sees nothing of the mill", async () => {
  await shows("Log in");
  assert.equal((await status("/api/events"))[0], 401);
  assert.equal((await status("/api/block/10"))[0], 401);
  await type("#token", "not-a-token-of-theirs");
  await page.keyboard.press("Enter");
  await shows("this is no token of the console");
  // The browser notes the refusals of its requests.
  problems.splice(0).forEach((problem) => assert.match(problem, /401/));
});

test("a viewer sees the chain, cannot act, and is refused", async () => {
  await page.reload();
  await logIn("bob");
  await shows("dead letter");
  assert.equal(await page.$eval("#workflow", (it) => it.textContent), "night");
  const labels = await page.$$eval(".chain a", (links) => links.map((link) => link.getAttribute("aria-label")));
  assert.ok(labels.includes("block 11: dead letter"), labels.join("; "));
  // The source `far` ends with block 5,000, of which the line of blocks shows nothing.
  const figures = await page.$$eval(".figures li", (all) => all.map((it) => [...it.children].map((part) => part.textContent)));
  const [behind] = figures.find(([, name]) => name.startsWith("blocks behind")) ?? [];
  assert.equal(behind, "5001", JSON.stringify(figures));
  assert.ok(figures.some(([, name]) => name === "blocks a minute"), JSON.stringify(figures));
  for (const [hash, text] of [["#/dead", "prove/11/0"], ["#/block/11", "Block 11"], ["#/stages", "Sources"], ["#/workers", "prove-"]]) {
    await open(hash);
    await shows(text);
    assert.deepEqual(await actionsShown(), [], hash);
  }
  assert.equal(await page.$eval("#audit-link", (link) => link.hidden), true);
  // With the session's own number, so that only the role is missing.
  const [code, why] = await page.evaluate(async () => {
    const { csrf } = await (await fetch("/api/session")).json();
    const headers = { "content-type": "application/json", "x-csrf-token": csrf };
    const body = JSON.stringify({ action: "retry", task: "prove/11/0" });
    const answer = await fetch("/api/action", { method: "POST", headers, body });
    return [answer.status, (await answer.json()).error];
  });
  assert.deepEqual([code, why], [403, "bob is a viewer: this needs an operator"]);
  await open("#/dead");
  await shows("prove/11/0");
  problems.splice(0).forEach((problem) => assert.match(problem, /403/));
});

test("an operator pauses a stage and drains a worker", async () => {
  await page.evaluate(() => [...document.querySelectorAll("#visitor button")].at(0).click());
  await logIn("alice");
  await open("#/stages");
  await act("Pause stage wrap", "stage wrap is paused");
  await shows("by alice");
  await open("#/workers");
  await shows("sign-");
  const [drain] = (await actionsShown()).filter((name) => name.startsWith("Drain worker sign"));
  await act(drain, "drains: it gets no further task");
  await shows("drained by alice, ");
  await shows("running, with 1 pause and 1 drain by operators", "#link");
  await mill.write("payload.json", '{"n": "more"}');
  await mill.ask("submit", "--queue", "signs", "--block", "41", "payload.json");
  await mill.ask("submit", "--queue", "wraps", "--block", "31", "payload.json");
  await mill.ask("submit", "--queue", "pairs", "--block", "0", "--last", "9", "payload.json");
  await mill.ask("submit", "--queue", "pairs", "--block", "70", "payload.json");
});

test("each stuck block says why it waits", async () => {
  const reasons = [
    [0, "waits for the sinks, which have not all confirmed it"],
    [10, "waits for the other messages of group"],
    [11, "exited with code 3"],
    [12, 'waits for a worker of group "prove" with gpu: none of 1 has that'],
    [13, "prove/13/0 waits for its result, from"],
    [14, 'prove/14/0 waits for a free worker of group "prove": 1 may run it, all busy'],
    [20, "after 1 failed; the last: "],
    [31, 'waits for stage "wrap" to be resumed: alice paused it'],
    [41, 'waits for another worker of group "sign": alice drains sign-'],
    [52, 'waits for room in queue "narrow", which holds 1 messages'],
    [70, "waits for block 10, the next to be emitted: pairs/10/"],
  ];
  for (const [block, reason] of reasons) {
    await open(`#/block/${block}`);
    await shows(`Block ${block}`);
    await shows(reason);
  }
});

test("pictures of the views", { skip: !process.env.SCREENSHOTS }, async () => {
  const take = (name) => {
    const path = join(process.env.SCREENSHOTS, `console-${name}.webp`);
    return page.screenshot({ path, type: "webp", quality: 80 });
  };
  const scheme = (value) => page.emulateMediaFeatures([{ name: "prefers-color-scheme", value }]);
  await page.setViewport({ width: 1100, height: 640 });
  await scheme("light");
  for (const [name, hash, text] of [["chain", "#/", "Blocks"], ["block", "#/block/31", "Why it waits"], ["stages", "#/stages", "Sources"]]) {
    await open(hash);
    await shows(text);
    await take(name);
  }
  await scheme("dark");
  await open("#/dead");
  await shows("prove/11/0");
  await press("Retry prove/11/0");
  await page.waitForSelector("dialog[open]");
  await take("retry-dark");
  await page.click("dialog[open] button[type=button]");
  await page.setViewport({ width: 390, height: 700 });
  await open("#/block/20");
  await shows("Why it waits");
  await take("phone-dark");
  await page.setViewport({ width: 1200, height: 800 });
  await scheme("light");
});

test("what changes is shown without a reload, and the keyboard leads to a block", async () => {
  await open("#/stages");
  await mill.ask("pause", "source", "wide");
  await shows("by the mill's user");
  await mill.ask("resume", "source", "wide");
  await page.focus("#number");
  await page.keyboard.type("14");
  await page.keyboard.press("Enter");
  await shows("Block 14");
  assert.equal(await page.evaluate(() => document.activeElement.id), "view");
  // Past the header, and in the same view.
  await page.focus(".skip");
  await page.keyboard.press("Enter");
  assert.deepEqual(await page.evaluate(() => [document.activeElement.id, location.hash]), ["view", "#/block/14"]);
  await redrawn(page);
  await shows("Block 14");
});

test("redraws take away no press, no focus, no selection and no scrolling", async () => {
  await open("#/stages");
  await page.setViewport({ width: 380, height: 700 });
  const button = 'button[aria-label="Pause stage prove"]';
  await page.waitForSelector(button, { timeout: PATIENCE_MS });
  // The page finds the element itself, since a redraw may come between two messages to it.
  const look = (at, selector = button) => page.evaluate(`(${at})(document.querySelector(${JSON.stringify(selector)}))`);
  await look((it) => {
    it.closest(".scroll").scrollLeft = 40;
    it.scrollIntoView({ block: "center", inline: "nearest" });
  });
  await redrawn(page);
  const [x, y, scrolled] = await look((it) => {
    const box = it.getBoundingClientRect();
    return [box.x + box.width / 2, box.y + box.height / 2, it.closest(".scroll").scrollLeft];
  });
  assert.ok(scrolled > 0, "the table is back at its first column");
  await page.mouse.move(x, y);
  await page.mouse.down();
  await look((it) => { it.isTheSame = true; });
  // Longer than the time between two overviews.
  await new Promise((later) => setTimeout(later, 1200));
  assert.equal(await look((it) => it.isTheSame), true, "what is pressed was replaced");
  await page.mouse.up();
  await page.waitForSelector("dialog[open]", { timeout: PATIENCE_MS });
  await page.keyboard.press("Escape");
  await page.waitForFunction(() => document.querySelector("dialog") === null);
  assert.equal(await page.evaluate(() => document.activeElement.dataset.key), "action Pause stage prove");
  await page.setViewport({ width: 1200, height: 800 });
  await look((it) => it.focus(), "[aria-label=Graph]");
  await redrawn(page);
  assert.equal(await page.evaluate(() => document.activeElement.getAttribute("aria-label")), "Graph");
  // Nothing is drawn anew while text is selected, and the page says so.
  await page.evaluate(() => getSelection().selectAllChildren(document.querySelector("#view h2")));
  await shows("the view stands still", "#link");
  await look((it) => { it.isTheSame = true; }, "#view h2");
  await new Promise((later) => setTimeout(later, 1200));
  assert.equal(await look((it) => it.isTheSame, "#view h2"), true);
  await page.evaluate(() => getSelection().removeAllRanges());
  await page.waitForFunction(() => !document.querySelector("#view h2").isTheSame, { timeout: PATIENCE_MS });
});

test("an answer that takes longer than the next overview is shown", async () => {
  await delay(page, "/api/block/", 1500);
  await open("#/block/12");
  await shows("Block 12");
  await redrawn(page);
  await delay(page, "/api/block/", 0);
});

test("questions that cost the mill work are not asked with each overview", async () => {
  const asked = (path) => requested.filter((url) => url.includes(path)).length;
  await open("#/dead");
  await type("#filter", "prove/11");
  await page.keyboard.press("Enter");
  await shows("Show all");
  await shows("prove/11/0");
  await open("#/audit");
  await shows("wide");
  for (const [hash, path] of [["#/audit", "/api/audit"], ["#/dead", "/api/dead?text="]]) {
    await open(hash);
    await redrawn(page);
    const before = asked(path);
    for (let drawing = 0; drawing < 4; drawing += 1) await redrawn(page);
    assert.ok(asked(path) - before <= 1, `${path}: ${asked(path) - before}`);
  }
  await press("Show all");
  await shows("Retry all");
});

test("a page that is hidden holds no connection, and goes on when it is in sight", async () => {
  const streams = () => requested.filter((url) => url.endsWith("/api/events")).length;
  const hide = (isHidden) => page.evaluate((value) => {
    Object.defineProperty(document, "hidden", { configurable: true, value });
    document.dispatchEvent(new Event("visibilitychange"));
  }, isHidden);
  await open("#/stages");
  await shows("Sources");
  await redrawn(page);
  const before = streams();
  await hide(true);
  await page.$eval("#view h2", (it) => { it.isTheSame = true; });
  // Longer than ten overviews, and than the time after which ages are drawn anew.
  await new Promise((later) => setTimeout(later, 6000));
  assert.equal(await page.$eval("#view h2", (it) => it.isTheSame), true);
  await hide(false);
  await redrawn(page);
  await redrawn(page);
  assert.equal(streams(), before + 1);
  assert.match(await page.$eval("#link", (it) => it.textContent), /^running/);
});

test("a filter that is refused says why, and its field stays", async () => {
  await open("#/dead");
  await page.waitForSelector("#filter", { timeout: PATIENCE_MS });
  // 200 characters, 400 bytes.
  await page.evaluate(() => {
    const field = document.querySelector("#filter");
    field.value = "é".repeat(200);
    field.form.requestSubmit();
  });
  await shows("a filter has at most 256 bytes");
  assert.equal(await page.$eval("#filter", (it) => it.value.length), 200);
  await press("Show all");
  await shows("Retry all");
  problems.splice(0).forEach((problem) => assert.match(problem, /400/));
});

test("axe finds nothing serious, in light and in dark, wide and narrow", async () => {
  const views = {
    "#/": "Chain", "#/block/12": "Block 12", "#/stages": "Sources", "#/workers": "Workers", "#/dead": "prove/11/0", "#/audit": "Audit log",
    "#/login": "Log in",
  };
  await withAxe(page, async ({ width, check }) => {
    for (const [hash, text] of Object.entries(views)) {
      await open(hash);
      await shows(text);
      await check(hash);
    }
    await open("#/dead");
    await press("Drop prove/11/0");
    await page.waitForSelector("dialog[open]");
    await check("a question");
    // What cannot be undone does not have the focus, which goes back to the button.
    assert.equal(await page.evaluate(() => document.activeElement.textContent), "Leave it");
    await page.keyboard.press("Escape");
    await page.waitForFunction(() => document.querySelector("dialog") === null);
    assert.equal(await page.evaluate(() => document.activeElement.dataset.key), "action Drop prove/11/0");
    assert.ok(await page.evaluate(() => document.documentElement.scrollWidth <= innerWidth), `${width}: it scrolls sideways`);
  });
  await page.setViewport({ width: 1200, height: 800 });
});

test("pages of others cannot act with the operator's session", async () => {
  const attack = `<!doctype html><form id="f" method="post" enctype="text/plain" action="http://${mill.address}/api/action">
    <input name='{"action":"cancel","target":"all","x":"' value='"}'></form><button onclick="f.submit()">Win</button>`;
  const server = createServer((_, answer) => answer.writeHead(200, { "content-type": "text/html" }).end(attack));
  await new Promise((listening) => server.listen(0, "127.0.0.1", listening));
  const { port } = server.address();
  const other = await browser.newPage();
  try {
    // Another port of this host, to which the browser sends the cookie too, and another host.
    for (const host of ["127.0.0.1", "localhost"]) {
      await other.goto(`http://${host}:${port}/`);
      await Promise.all([other.waitForNavigation(), other.click("button")]);
      assert.match(await other.$eval("body", (body) => body.textContent), /answers its own pages only/, host);
      await other.goto(`http://${host}:${port}/`);
      const read = await other.evaluate((address) =>
        fetch(`http://${address}/api/session`, { credentials: "include" }).then(() => "read", () => "refused"), mill.address);
      assert.equal(read, "refused", host);
    }
    const [, consolePort] = mill.address.split(":");
    const rebound = await other.goto(`http://${REBOUND}:${consolePort}/`);
    assert.equal(rebound.status(), 403);
    assert.match(await rebound.text(), /the Host header has another name/);
  } finally {
    await other.close();
    server.close();
    await page.bringToFront();
  }
  const number = await page.evaluate(async () => {
    const headers = { "content-type": "application/json", "x-csrf-token": "0".repeat(64) };
    const body = JSON.stringify({ action: "cancel", target: "all" });
    return (await fetch("/api/action", { method: "POST", headers, body })).status;
  });
  assert.equal(number, 403);
  problems.splice(0).forEach((problem) => assert.match(problem, /403/));
  await open("#/block/14");
  await shows("prove/14/0 waits for");
});

test("a dead letter is downloaded from the page, and fails in an empty folder as it did here", async () => {
  const client = await page.createCDPSession();
  await client.send("Browser.setDownloadBehavior", { behavior: "allow", downloadPath: mill.folder, eventsEnabled: true });
  const saved = new Promise((done) => client.on("Browser.downloadProgress", (at) => at.state === "completed" && done()));
  await open("#/dead");
  await press("Download prove/11/0");
  await page.waitForSelector("dialog[open] input[name=programs]", { timeout: PATIENCE_MS });
  await page.click("dialog[open] input[name=programs]");
  await page.click("dialog[open] button[type=submit]");
  await shows("prove-11-0.bundle has", "#result");
  await saved;
  const fresh = await mkdtemp(join(tmpdir(), "replay-check-"));
  try {
    await mill.askIn(fresh, "dlq", "replay", join(mill.folder, "prove-11-0.bundle"));
  } finally {
    await rm(fresh, { recursive: true });
  }
});

test("a retry from the page emits the block, and the audit log says who did it", async () => {
  await mill.write("repaired", "");
  await mill.write("open", "");
  await open("#/block/13");
  await act("Cancel prove/13/0", "task prove/13/0: stopped");
  await open("#/dead");
  await shows("Show only these");
  const reasons = await page.$$eval("[aria-label=Reasons] tbody tr", (found) => found.map((row) => row.cells[1].textContent));
  const cancelled = reasons.find((reason) => reason.startsWith("cancelled"));
  await press(`Show only ${cancelled}`);
  await page.waitForFunction(() => document.querySelector("#filter")?.value.startsWith("cancelled"), { timeout: PATIENCE_MS });
  await shows("Retry all 1");
  await page.waitForFunction(() => document.querySelectorAll("[aria-label='Dead letters'] tbody tr").length === 1);
  await press("Show all");
  await act("Retry prove/11/0", "prove/11/0 is back in its queue");
  await open("#/block/20");
  await act("Run now try/20/0", "try/20/0 runs as soon as a worker is free");
  await shows("finished");
  await open("#/block/11");
  await shows("Block 11: emitted");
  await open("#/stages");
  await act("Resume stage wrap", "stage wrap goes on");
  await open("#/dead");
  await type("#filter", "prove/13");
  await page.keyboard.press("Enter");
  await act("Retry all 1", "1 dead letter is back in its queue");
  await open("#/audit");
  await shows("Retry".toLowerCase());
  const rows = await page.$$eval("#view tbody tr", (found) => found.map((row) => [...row.cells].slice(1, 5).map((it) => it.textContent)));
  const has = (...wanted) => assert.ok(rows.some((row) => wanted.every((text, at) => row[at] === text)), JSON.stringify([wanted, rows]));
  has("alice", "console", "retry", "prove/11/0");
  has("alice", "console", "bundle", "prove/11/0, with programs");
  has("alice", "console", "pause", "stage wrap");
  has("the mill's user", "command", "pause", "source wide");
  assert.equal(rows.at(-1)[2], "pause");
});

test("whoever logs out sees nothing more", async () => {
  // The answer to a question that is under way comes when nobody may see it any more.
  await delay(page, "/api/block/", 1500);
  const asked = page.waitForRequest((it) => it.url().endsWith("/api/block/12"), { timeout: PATIENCE_MS });
  await open("#/block/12");
  await asked;
  await page.evaluate(() => [...document.querySelectorAll("#visitor button")].at(0).click());
  await shows("Log in");
  await new Promise((later) => setTimeout(later, 2500));
  assert.ok(await page.$("#token"), "the form for logging in is not shown any more");
  assert.equal(await page.$eval("#link", (it) => it.textContent), "not logged in");
  await delay(page, "/api/block/", 0);
  const answer = await page.evaluate(async () => (await fetch("/api/audit")).status);
  assert.equal(answer, 401);
  problems.splice(0).forEach((problem) => assert.match(problem, /401/));
});

test("other hosts, other pages and other methods are refused, and answers are protected", async () => {
  const [own, headers] = await status("/");
  assert.equal(own, 200);
  assert.match(headers["content-security-policy"], /default-src 'none'/);
  assert.equal(headers["x-content-type-options"], "nosniff");
  assert.equal((await status("/", { host: `${REBOUND}:80` }))[0], 403);
  assert.equal((await status("/api/session", { origin: "http://evil.example" }))[0], 403);
  assert.equal((await status("/api/session", { "sec-fetch-site": "cross-site" }))[0], 403);
  assert.equal((await status("/../Cargo.toml"))[0], 404);
});

test("nothing else was asked for, and nothing went wrong", () => {
  const elsewhere = requested.filter((url) => !url.startsWith(`http://${mill.address}/`) && !url.startsWith("data:"));
  assert.deepEqual(elsewhere, []);
  assert.deepEqual(problems, []);
});

test("a mill that is silent, and one that is gone, are said not to answer", async () => {
  await logIn("bob");
  await open("#/");
  await shows("Blocks");
  mill.signal("SIGSTOP");
  await showsOn(page, "no connection: the console has been silent for 25 s", { selector: "#link", timeout: 40_000 });
  mill.signal("SIGCONT");
  await page.waitForFunction(() => document.getElementById("link").textContent.startsWith("running"), { timeout: PATIENCE_MS });
  mill.signal("SIGKILL");
  await shows("no connection: the console does not answer", "#link");
});
