// Opens the console of a real mill in a Chromium that the lock file pins: blocks that are stuck show why, what is emitted moves
// the page, axe finds nothing serious, and requests of other hosts and other pages are refused. `make page-check` runs it;
// PROOFMILL is the program, and SCREENSHOTS a folder for pictures of the views.

import assert from "node:assert/strict";
import { spawn } from "node:child_process";
import { createRequire } from "node:module";
import { once } from "node:events";
import { mkdtemp, readFile, rm, writeFile } from "node:fs/promises";
import { request } from "node:http";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { after, before, test } from "node:test";

import { openBrowser } from "./browser.mjs";

const PROGRAM = process.env.PROOFMILL;
const WORKFLOW = `name = "night"
[defaults]
r_max = 0
[[source]]
name = "blocks"
kind = "jsonl"
file = "blocks.jsonl"
output = "blocks"
[[dispatcher]]
name = "prove"
input = "blocks"
output = "proofs"
executor = { kind = "process", program = "./prove.sh" }
[[collector]]
name = "pairs"
inputs = ["proofs"]
output = "pairs"
strategy = { kind = "sequential", n = 2 }
[sequencer]
input = "pairs"
directory = "emitted"
`;
// Block 1 fails for good, block 2 needs a label that no worker has, block 3 is in work for a minute.
const SCRIPT = `#!/bin/sh
while [ $# -gt 0 ]; do
  case $1 in --input-path) input=$2;; --output-path) output=$2;; esac
  shift 2
done
case "$(cat "$input")" in *fails*) echo "no luck" >&2; exit 3;; *sleeps*) sleep 60;; esac
cp "$input" "$output"
`;
const BLOCKS = [
  { block: 0, payload: { n: 0 } },
  { block: 1, payload: { n: "fails" } },
  { block: 2, requires: ["gpu"], payload: { n: 2 } },
  { block: 3, payload: { n: "sleeps" } },
  { block: 4, payload: { n: 4 } },
];

let folder, mill, address, browser, page;
const problems = [];
const requested = [];

before(async () => {
  assert.ok(PROGRAM, "PROOFMILL must name the program");
  folder = await mkdtemp(join(tmpdir(), "console-check-"));
  await writeFile(join(folder, "night.toml"), WORKFLOW);
  await writeFile(join(folder, "prove.sh"), SCRIPT, { mode: 0o755 });
  await writeFile(join(folder, "blocks.jsonl"), BLOCKS.map((it) => `${JSON.stringify(it)}\n`).join(""));
  const args = ["run", "night.toml", "--stay", "--console", "127.0.0.1:0"];
  mill = spawn(PROGRAM, args, { cwd: folder, stdio: ["ignore", "ignore", "pipe"] });
  address = await new Promise((found, failed) => {
    let said = "";
    mill.stderr.on("data", (bytes) => {
      said += bytes;
      const match = said.match(/console on http:\/\/([0-9.]+:[0-9]+)\//);
      if (match) found(match[1]);
    });
    mill.on("exit", (code) => failed(new Error(`the mill ended with ${code}: ${said}`)));
  });
  [browser, page] = await openBrowser({ problems, requested });
  await page.goto(`http://${address}/`);
});

after(async () => {
  await browser?.close();
  mill?.kill("SIGKILL");
  await rm(folder, { recursive: true, force: true });
});

/** Waits until the view shows a text. */
async function shows(text) {
  const there = (wanted) => document.getElementById("view").textContent.includes(wanted);
  await page.waitForFunction(there, { timeout: 20_000 }, text).catch(async () => {
    const found = await page.$eval("#view", (view) => view.textContent);
    assert.fail(`the page does not show ${JSON.stringify(text)}: ${found}`);
  });
}

async function open(hash) {
  await page.evaluate((to) => { location.hash = to; }, hash);
}

/** The status of an answer to a request with these headers. */
function status(path, headers = {}) {
  const [host, port] = address.split(":");
  return new Promise((found, failed) => {
    request({ host, port, path, headers }, (answer) => {
      answer.resume();
      found([answer.statusCode, answer.headers]);
    }).on("error", failed).end();
  });
}

test("the chain shows its blocks and the one that is next", async () => {
  await shows("Block 0 is next");
  await shows("dead letter");
  assert.equal(await page.$eval("#workflow", (it) => it.textContent), "night");
  const labels = await page.$$eval(".chain a", (links) => links.map((link) => link.getAttribute("aria-label")));
  assert.ok(labels.includes("block 1: dead letter"), labels.join("; "));
});

test("each stuck block says why it waits", async () => {
  const reasons = [
    [0, 'waits for the other messages of group "0": block 1 of queue "proofs"'],
    [1, "exited with code 3"],
    [2, 'prove/2/0 waits for a worker of group "prove" with gpu: none of 1 has that'],
    [3, "prove/3/0 waits for its result, from"],
    [4, 'prove/4/0 waits for a free worker of group "prove": 1 may run it, all busy'],
  ];
  for (const [block, reason] of reasons) {
    await open(`#/block/${block}`);
    await shows(`Block ${block}`);
    await shows(reason);
  }
});

test("stages, workers and dead letters are listed", async () => {
  await open("#/stages");
  await shows("collector");
  await open("#/workers");
  await shows("prove-");
  await open("#/dead");
  await shows("proofmill dlq retry prove/1/0");
});

test("what changes is shown without a reload", async () => {
  await open("#/dead");
  await shows("prove/1/0");
  const dropped = spawn(PROGRAM, ["dlq", "drop", "prove/1/0"], { cwd: folder, stdio: "ignore" });
  assert.deepEqual(await once(dropped, "exit"), [0, null]);
  await shows("There are none.");
});

test("the block field and the keyboard lead to a block", async () => {
  await page.focus("#number");
  await page.keyboard.type("4");
  await page.keyboard.press("Enter");
  await shows("Block 4");
  assert.equal(await page.evaluate(() => document.activeElement.id), "view");
});

test("axe finds nothing serious, in light and in dark, wide and narrow", async () => {
  const axe = await readFile(createRequire(import.meta.url).resolve("axe-core/axe.min.js"), "utf8");
  // The page's policy forbids scripts that are not its own; evaluating by the debugger is not of the page.
  await page.evaluate(axe);
  for (const scheme of ["light", "dark"]) {
    await page.emulateMediaFeatures([{ name: "prefers-color-scheme", value: scheme }]);
    for (const width of [1200, 380]) {
      await page.setViewport({ width, height: 800 });
      for (const hash of ["#/", "#/block/2", "#/stages", "#/workers", "#/dead"]) {
        await open(hash);
        await shows({ "#/": "Chain", "#/block/2": "Block 2", "#/stages": "Stages", "#/workers": "Workers", "#/dead": "Dead" }[hash]);
        const found = await page.evaluate(() => globalThis.axe.run());
        const serious = found.violations.filter((it) => ["serious", "critical"].includes(it.impact));
        assert.deepEqual(serious.map((it) => `${it.id}: ${it.nodes[0].html}`), [], `${scheme} ${width} ${hash}`);
        if (process.env.SCREENSHOTS && width === 1200) {
          const name = `console-${hash.replace(/[#/]+/g, "-")}-${scheme}.png`;
          await page.screenshot({ path: join(process.env.SCREENSHOTS, name) });
        }
      }
    }
  }
});

test("other hosts, other pages and other methods are refused, and answers are protected", async () => {
  const [own, headers] = await status("/");
  assert.equal(own, 200);
  assert.match(headers["content-security-policy"], /default-src 'none'/);
  assert.equal(headers["x-content-type-options"], "nosniff");
  assert.equal((await status("/", { host: "rebound.example:80" }))[0], 403);
  assert.equal((await status("/api/block/0", { origin: "http://evil.example" }))[0], 403);
  assert.equal((await status("/api/events", { "sec-fetch-site": "cross-site" }))[0], 403);
  assert.equal((await status("/../Cargo.toml"))[0], 404);
  assert.equal((await status("/api/block/x"))[0], 400);
});

test("nothing else was asked for, and nothing went wrong", () => {
  const elsewhere = requested.filter((url) => !url.startsWith(`http://${address}/`) && !url.startsWith("data:"));
  assert.deepEqual(elsewhere, []);
  assert.deepEqual(problems, []);
});
