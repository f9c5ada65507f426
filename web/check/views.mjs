// Opens blocks in the console of a real mill in a browser: the workflow's graph with the state of a block, the waterfall of its
// attempts, and the ends of the streams of those that failed. `make page-check` runs it; PROOFMILL is the program, and SCREENSHOTS
// a folder for pictures.

import assert from "node:assert/strict";
import { spawn } from "node:child_process";
import { mkdtemp, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { after, before, test } from "node:test";

import { openBrowser, redrawn, rowsOf as rowsOn, shows as showsOn, withAxe } from "./browser.mjs";

const PROGRAM = process.env.PROOFMILL;
const WORKFLOW = `name = "day"
[defaults]
r_max = 2
backoff = { initial = "100ms", max = "200ms" }
[[source]]
name = "blocks"
kind = "jsonl"
file = "blocks.jsonl"
output = "blocks"
[[dispatcher]]
name = "prove"
input = "blocks"
output = "proofs"
workers = 2
executor = { kind = "process", program = "./prove.sh" }
[[dispatcher]]
name = "verify"
input = "proofs"
output = "verified"
executor = { kind = "process", program = "./prove.sh" }
[sequencer]
input = "verified"
directory = "emitted"
[deadline]
slot = "3s"
`;
// Block 0 passes, block 1 always fails, block 2 is in work for as long as the check takes.
const SCRIPT = `#!/bin/sh
while [ $# -gt 0 ]; do
  case $1 in --input-path) input=$2;; --output-path) output=$2;; esac
  shift 2
done
case "$(cat "$input")" in *fails*) echo "the witness does not satisfy constraint 7" >&2; exit 3;; *sleeps*) sleep 600;; esac
cp "$input" "$output"
`;
const BLOCKS = [{ n: 0 }, { n: "fails" }, { n: "sleeps" }].map((payload, block) => ({ block, payload }));

let folder, mill, browser, page;
const problems = [];
const requested = [];

before(async () => {
  assert.ok(PROGRAM, "PROOFMILL must name the program");
  folder = await mkdtemp(join(tmpdir(), "views-check-"));
  await writeFile(join(folder, "day.toml"), WORKFLOW);
  await writeFile(join(folder, "prove.sh"), SCRIPT, { mode: 0o755 });
  await writeFile(join(folder, "blocks.jsonl"), BLOCKS.map((it) => `${JSON.stringify(it)}\n`).join(""));
  const args = ["run", "day.toml", "--stay", "--console", "127.0.0.1:0"];
  mill = spawn(PROGRAM, args, { cwd: folder, stdio: ["ignore", "ignore", "pipe"] });
  const address = await new Promise((found, failed) => {
    let said = "";
    mill.stderr.on("data", (bytes) => {
      said += bytes;
      const match = said.match(/console on (http:\/\/[0-9.]+:[0-9]+\/)/);
      if (match) found(match[1]);
    });
    mill.on("exit", (code) => failed(new Error(`the mill ended with ${code}: ${said}`)));
  });
  [browser, page] = await openBrowser({ problems, requested });
  await page.goto(address);
});

after(async () => {
  await browser?.close();
  mill?.kill("SIGKILL");
  await rm(folder, { recursive: true, force: true });
});

const shows = (text) => showsOn(page, text, { timeout: 30_000 });

async function openBlock(block, text) {
  await page.evaluate((to) => { location.hash = to; }, `#/block/${block}`);
  await shows(`Block ${block}`);
  await shows(text);
}

const nodes = () => page.$$eval(".graph .node", (all) => all.map((it) =>
  [it.querySelector(".name").textContent, it.getAttribute("class").split(" ").at(-1)]));
const bars = (kind) => page.$$eval(`.waterfall svg .${kind}`, (all) => all.map((it) => Number(it.getAttribute("width"))));
const rowsOf = (label) => rowsOn(page, `[aria-label="${label}"]`);

test("a block that is done is done at every stage, with its workers", async () => {
  await openBlock(0, "emitted");
  assert.deepEqual(await nodes(), [["prove", "done"], ["verify", "done"], ["sequencer", "done"]]);
  assert.equal(await page.$$eval(".graph .edge", (edges) => edges.length), 2);
  const attempts = await rowsOf("Attempts");
  assert.deepEqual(attempts.map((row) => row[0]).sort(), ["prove/0/0", "verify/0/0"]);
  assert.ok(attempts.every((row) => /^(prove|verify)-/.test(row[2]) && row[6] === "completed"), JSON.stringify(attempts));
  assert.ok((await bars("runs")).every((width) => width > 0));
});

test("each failed attempt has its exit and the end of its streams, which stays open", async () => {
  await openBlock(1, "Dead letters");
  assert.deepEqual((await nodes())[0], ["prove", "dead"]);
  const attempts = await rowsOf("Attempts");
  assert.deepEqual(attempts.map((row) => [row[1], row[5]]), [["3", "3"], ["2", "3"], ["1", "3"]]);
  assert.equal((await bars("failed")).length, 3);
  const before = await page.$eval("#view details pre", (pre) => pre.checkVisibility());
  assert.equal(before, false);
  await page.click("[aria-label=Attempts] summary");
  // The first of three, each of which leads to another attempt's streams.
  await page.focus("[aria-label=Attempts] summary");
  await redrawn(page);
  const [isSummary, isFirst] = await page.evaluate(() => [document.activeElement.tagName === "SUMMARY",
    document.activeElement === document.querySelector("[aria-label=Attempts] summary")]);
  assert.deepEqual([isSummary, isFirst], [true, true]);
  await page.evaluate(() => { globalThis.drawnBefore = document.querySelector("#view h2"); });
  // Another view, and back: all is drawn anew.
  await page.evaluate(() => { location.hash = "#/workers"; });
  await shows("Workers");
  await openBlock(1, "the witness does not satisfy constraint 7");
  const [isNew, isOpen] = await page.evaluate(() => [document.querySelector("#view h2") !== globalThis.drawnBefore,
    document.querySelector("[aria-label=Attempts] pre").checkVisibility()]);
  assert.deepEqual([isNew, isOpen], [true, true]);
});

test("the workflow's graph says what waits at each stage, its rate and the age of the oldest", async () => {
  await page.evaluate(() => { location.hash = "#/stages"; });
  await shows("Workflow");
  const texts = await page.$$eval(".graph .flow", (all) => all.map((it) => it.textContent));
  // Every stage that another leads to has two lines.
  assert.ok(texts.length >= 4 && texts.length % 2 === 0, JSON.stringify(texts));
  assert.ok(texts.some((text) => /^\d+ tasks? waits?$/.test(text)), JSON.stringify(texts));
  await page.waitForFunction(() => [...document.querySelectorAll(".graph .flow")].some((it) => /\/min/.test(it.textContent)));
  const [prove] = (await rowsOf("Stages")).filter((row) => row[0] === "prove");
  assert.match(prove.join("|"), /\d+ (s|min)\|/);
});

test("each worker says what it does, how busy it is, and when it was heard", async () => {
  await page.evaluate(() => { location.hash = "#/workers"; });
  await shows("Workers");
  const rows = await rowsOf("Workers");
  const working = rows.filter((row) => row[3] === "working");
  assert.equal(working.length, 1, JSON.stringify(rows));
  assert.match(working[0].join("|"), /\|working\|1\|1 of \d+\|\d+ %\|\d+ s ago\|\d+\|\d+\|/);
  const failed = rows.map((row) => Number(row[9])).reduce((a, b) => a + b, 0);
  assert.equal(failed, 3, JSON.stringify(rows));
});

test("a block of which a worker has a task is in work at its stage, and its bar grows", async () => {
  await openBlock(2, "is under way");
  assert.deepEqual((await nodes()).map(([, state]) => state), ["running", "nothing", "nothing"]);
  const table = await page.$$eval('[aria-label="Stages of this block"] tbody tr', (rows) => rows.map((row) => row.cells[3].textContent));
  assert.deepEqual(table, ["in work", "nothing", "nothing"]);
  // The time that it has lasted, in seconds, is the length of its bar.
  const lasted = async () => Number((await rowsOf("Attempts"))[0][4].replace(/ s$/, ""));
  await page.waitForFunction(() => document.querySelector("[aria-label=Attempts] tbody tr").cells[4].textContent.endsWith(" s"));
  const before = await lasted();
  assert.ok(before > 0);
  const isLonger = (than) => Number.parseFloat(document.querySelector("[aria-label=Attempts] tbody tr").cells[4].textContent) > than;
  await page.waitForFunction(isLonger, { timeout: 20_000 }, before);
  const [began] = (await rowsOf("Attempts")).map((row) => row[3]);
  assert.match(began, /\d+:\d+.*, \d+ (s|min) ago$/);
  assert.ok((await bars("runs")).every((width) => width > 0));
});

test("a block that is late is marked in the chain and in its view", async () => {
  await page.evaluate(() => { location.hash = "#/"; });
  await shows("Blocks");
  const link = '.chain a[href="#/block/2"]';
  await page.waitForFunction((at) => document.querySelector(at)?.classList.contains("late"), { timeout: 30_000 }, link);
  const [label, small] = await page.$eval(link, (it) => [it.getAttribute("aria-label"), it.querySelector("small").textContent]);
  assert.equal(label, "block 2: running, late, deadline missed, 1 live task");
  assert.equal(small, "running, late");
  await shows("messages wait for room, or for a paused source");
  await openBlock(2, "deadline missed, late");
});

test("axe finds nothing serious, in light and in dark, wide and narrow", async () => {
  await withAxe(page, async ({ scheme, width, check }) => {
    for (const [block, text] of [[0, "emitted"], [1, "constraint 7"], [2, "is under way"]]) {
      await openBlock(block, text);
      await check(block);
      if (process.env.SCREENSHOTS && width === 1200) {
        await page.screenshot({ path: join(process.env.SCREENSHOTS, `console-block-${block}-${scheme}.png`), fullPage: true });
      }
    }
  });
});

test("nothing went wrong", () => {
  assert.deepEqual(problems, []);
});
