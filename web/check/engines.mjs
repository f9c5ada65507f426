// Opens the console of a real mill whose stage uses engines: one that answers, with a token, and one that is not there. Both
// are shown, the first as its own page shows it; the token never reaches the page, and axe finds nothing serious. `make
// page-check` runs it; PROOFMILL is the program, and SCREENSHOTS a folder for pictures.

import assert from "node:assert/strict";
import { spawn } from "node:child_process";
import { mkdtemp, readFile, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { after, before, test } from "node:test";

import { openBrowser, rowsOf as rowsOn, shows as showsOn, withAxe } from "./browser.mjs";

const PROGRAM = process.env.PROOFMILL;
const FIXTURES = join(import.meta.dirname, "../../crates/groth16/tests/fixtures/bn254");
const TOKEN = "the-mills-token-0123456789";

let folder, address, browser, page, engine;
const children = [];
const problems = [];
const requested = [];
const answers = [];

/** Starts the program; gives what `found` finds in what it says. */
function start(args, found) {
  const child = spawn(PROGRAM, args, { cwd: folder, stdio: ["ignore", "ignore", "pipe"] });
  children.push(child);
  const said = new Promise((done, failed) => {
    let text = "";
    child.stderr.on("data", (bytes) => {
      text += bytes;
      const match = text.match(found);
      if (match) done(match[1]);
    });
    child.on("exit", (code) => failed(new Error(`proofmill ${args.join(" ")} ended with ${code}: ${text}`)));
  });
  return { child, said };
}

const CONSOLE = /console on (http:\/\/[0-9.]+:[0-9]+\/)/;

before(async () => {
  assert.ok(PROGRAM, "PROOFMILL must name the program");
  folder = await mkdtemp(join(tmpdir(), "engines-check-"));
  await writeFile(join(folder, "tokens"), `mill ${TOKEN} operator\n`, { mode: 0o600 });
  const serve = ["engine", "serve", "--circuits", `multiplier=${join(FIXTURES, "circuit.zkey")}`, "--budget", "1GiB",
    "--allow-insecure-key", "--listen", "127.0.0.1:0", "--tokens", "tokens"];
  engine = start(serve, /the engine answers[^\n]*(127\.0\.0\.1:[0-9]+)/);
  const there = `http://${await engine.said}`;
  // The payload of a task is its witness, in base64; the second is none.
  const witness = (await readFile(join(FIXTURES, "witness.wtns"))).toString("base64");
  await writeFile(join(folder, "blocks.jsonl"), [1, 2].map((block) =>
    `${JSON.stringify({ block, payload: block === 1 ? witness : "none" })}\n`).join(""));
  await writeFile(join(folder, "mill.toml"), `name = "engines"
[[source]]
name = "blocks"
kind = "jsonl"
file = "blocks.jsonl"
output = "blocks"
[[dispatcher]]
name = "prove"
input = "blocks"
executor = { kind = "engine", circuit = "multiplier", endpoints = ["${there}", "unix:nobody.sock"], token = "tokens" }
`);
  address = await start(["run", "mill.toml", "--stay", "--console", "127.0.0.1:0"], CONSOLE).said;
  [browser, page] = await openBrowser({ problems, requested });
  page.on("response", async (response) => {
    // A stream has no end, and is read by the page alone.
    if (/\/api\/(?!engines|events)/.test(response.url())) answers.push(await response.text().catch(() => ""));
  });
  await page.goto(address);
});

after(async () => {
  await browser?.close();
  for (const child of children) child.kill("SIGKILL");
  await rm(folder, { recursive: true, force: true });
});

const shows = (text, more) => showsOn(page, text, { timeout: 30_000, ...more });
const rowsOf = (label) => rowsOn(page, `[aria-label="${label}"]`);

async function open(hash) {
  await page.evaluate((to) => { location.hash = to; }, hash);
}

test("engines are asked once their view is open, and each says whether it answers", async () => {
  await page.waitForFunction(() => document.getElementById("engines-link").hidden === false, { timeout: 20_000 });
  assert.deepEqual(requested.filter((url) => url.includes("/api/engines")), []);
  await open("#/engines");
  await shows("does not answer");
  await page.waitForFunction(() => document.querySelector('[aria-label="Engines"] tbody tr')?.cells[2].textContent === "answers",
    { timeout: 20_000 });
  const [first, second] = await rowsOf("Engines");
  assert.match(first[0], /^http:\/\/127\.0\.0\.1:/);
  assert.deepEqual([first[1], first[2]], ["prove", "answers"]);
  assert.match(first[3], /of 1\.0 GiB$/);
  assert.match(second[0], /nobody\.sock$/);
  assert.match(second[2], /^does not answer: no engine answers at unix:/);
});

test("one engine is shown as its own page shows it", async () => {
  await page.focus('[aria-label="Engines"] a');
  await page.keyboard.press("Enter");
  await shows("Used by prove; answers");
  const [key] = await rowsOf("Keys");
  assert.equal(key[0], "multiplier");
  assert.deepEqual((await rowsOf("Stages")).map((row) => row[0]), ["witness", "evaluate", "prove", "finish", "verify"]);
  await shows("of 1.0 GiB");
  await page.waitForFunction(() => document.querySelector("img.timeline")?.naturalWidth > 0, { timeout: 20_000 });
  assert.equal(await page.$eval("#engines-link", (it) => it.getAttribute("aria-current")), "page");
});

test("axe finds nothing serious, in light and in dark, wide and narrow", async () => {
  await withAxe(page, async ({ scheme, width, check }) => {
    for (const [hash, text] of [["#/engines", "does not answer"], ["#/engines/0", "Used by prove"], ["#/engines/1", "Used by prove"]]) {
      await open(hash);
      await shows(text);
      await check(hash);
      assert.ok(await page.evaluate(() => document.documentElement.scrollWidth <= innerWidth), `${hash} ${width}: it scrolls sideways`);
      if (process.env.SCREENSHOTS && width === 1200) {
        await page.screenshot({ path: join(process.env.SCREENSHOTS, `console-engines-${hash.at(-1)}-${scheme}.png`) });
      }
    }
  });
  await page.setViewport({ width: 1200, height: 800 });
});

test("neither the token nor the place of its file reaches the page", async () => {
  const content = await page.content();
  const seen = await page.evaluate(async () => {
    const answer = await fetch("/api/engines");
    const reader = answer.body.getReader();
    const { value } = await reader.read();
    await reader.cancel();
    return new TextDecoder().decode(value);
  });
  assert.match(seen, /"address"/);
  for (const text of [content, seen, ...answers]) {
    assert.ok(!text.includes(TOKEN));
    assert.ok(!text.includes("tokens"), text.slice(0, 500));
  }
});

test("a dead engine does not delay the page", async () => {
  engine.child.kill("SIGSTOP");
  await open("#/engines");
  // Its last answer is shown until it is late.
  await shows("Engines: 2");
  await open("#/");
  const began = Date.now();
  await open("#/stages");
  await shows("Sources");
  assert.ok(Date.now() - began < 2_000);
  await open("#/engines");
  await shows("does not answer: no answer within");
  engine.child.kill("SIGCONT");
  await page.waitForFunction(() => document.querySelector('[aria-label="Engines"] tbody tr')?.cells[2].textContent === "answers",
    { timeout: 30_000 });
});

test("nothing else was asked for, and nothing went wrong", () => {
  const elsewhere = requested.filter((url) => !url.startsWith(address) && !url.startsWith("data:"));
  assert.deepEqual(elsewhere, []);
  assert.deepEqual(problems, []);
});
