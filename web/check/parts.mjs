// Opens the console of real mills whose blocks are cut into parts: the parts by step, how long they take, and the step that
// everything waits for, live; and axe finds nothing serious. `make page-check` runs it; PROOFMILL is the program, and
// SCREENSHOTS a folder for pictures.

import assert from "node:assert/strict";
import { spawn } from "node:child_process";
import { once } from "node:events";
import { mkdtemp, readFile, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { after, before, test } from "node:test";

import { openBrowser, rowsOf as rowsOn, shows as showsOn, withAxe } from "./browser.mjs";

const PROGRAM = process.env.PROOFMILL;
const WORKFLOW = `name = "cut"
[defaults]
r_max = 0
[[source]]
name = "blocks"
kind = "jsonl"
file = "blocks.jsonl"
output = "blocks"
[[dispatcher]]
name = "split"
input = "blocks"
output = "parts"
fan_out = true
executor = { kind = "process", program = "./split.sh" }
[[dispatcher]]
name = "prove"
input = "parts"
output = "proofs"
workers = 4
executor = { kind = "process", program = "./prove.sh" }
[[collector]]
name = "gather"
inputs = ["proofs"]
output = "gathered"
strategy = { kind = "match", k = 4, group_by = "/block" }
[[dispatcher]]
name = "join"
input = "gathered"
output = "joined"
executor = { kind = "process", program = "./join.sh" }
[sequencer]
input = "joined"
start = 5
directory = "emitted"
`;
const ARGUMENTS = `#!/bin/sh
here=$(dirname "$0")
while [ $# -gt 0 ]; do
  case $1 in --input-path) input=$2;; --output-path) output=$2;; esac
  shift 2
done
`;
const FILES = {
  "cut.toml": [WORKFLOW],
  "blocks.jsonl": [[5, 6].map((block) => `${JSON.stringify({ block, payload: { block } })}\n`).join("")],
  // Four parts: two pass at once, one waits until it is let go, one fails while the file \`repaired\` is not there.
  "split.sh": [`${ARGUMENTS}
block=$(tr -dc 0-9 <"$input")
printf '[{"block":%s,"n":"a"},{"block":%s,"n":"b"},{"block":%s,"n":"waits"},{"block":%s,"n":"fails"}]' $block $block $block $block >"$output"
`, 0o755],
  "prove.sh": [`${ARGUMENTS}
case "$(cat "$input")" in
  *fails*) test -e "$here/repaired" || { echo "no luck" >&2; exit 3; };;
  *waits*) until test -e "$here/go"; do sleep 0.2; done;;
esac
cp "$input" "$output"
`, 0o755],
  "join.sh": [`${ARGUMENTS}
until test -e "$here/joins"; do sleep 0.2; done
cp "$input" "$output"
`, 0o755],
};

let folder, browser, page;
const mills = [];
const problems = [];
const requested = [];

const write = (name, text, mode) => writeFile(join(folder, name), text, { mode });

/** Runs a command of the program to its end. */
async function ask(...words) {
  const asked = spawn(PROGRAM, words, { cwd: folder, stdio: ["ignore", "ignore", "inherit"] });
  assert.deepEqual(await once(asked, "exit"), [0, null], `proofmill ${words.join(" ")}`);
}

/** Starts a mill; gives the console's address. */
async function run(...args) {
  const mill = spawn(PROGRAM, ["run", ...args, "--stay", "--console", "127.0.0.1:0"], { cwd: folder, stdio: ["ignore", "ignore", "pipe"] });
  mills.push(mill);
  return new Promise((found, failed) => {
    let said = "";
    mill.stderr.on("data", (bytes) => {
      said += bytes;
      const match = said.match(/console on (http:\/\/[0-9.]+:[0-9]+\/)/);
      if (match) found(match[1]);
    });
    mill.on("exit", (code) => failed(new Error(`the mill ended with ${code}: ${said}`)));
  });
}

before(async () => {
  assert.ok(PROGRAM, "PROOFMILL must name the program");
  folder = await mkdtemp(join(tmpdir(), "parts-check-"));
  for (const [name, [text, mode]] of Object.entries(FILES)) await write(name, text, mode);
  [browser, page] = await openBrowser({ problems, requested });
  await page.goto(`${await run("cut.toml")}#/parts`);
});

after(async () => {
  await browser?.close();
  for (const mill of mills) mill.kill("SIGKILL");
  await rm(folder, { recursive: true, force: true });
});

const shows = (text) => showsOn(page, text, { timeout: 60_000 });

/** The row of a step of block 5, by column: step, now, waiting, in work, held, done, dead, took, median, longest. */
async function step(name, block = 5) {
  const rows = await rowsOn(page, `[aria-label="Steps of block ${block}"]`);
  return rows.find((row) => row[0] === name);
}

/** Waits until a step's numbers are these: waiting, in work, held, done, dead. */
async function counts(name, wanted, block = 5) {
  const are = (label, step, numbers) => {
    const rows = [...document.querySelectorAll(`[aria-label="${label}"] tbody tr`)];
    const row = rows.find((it) => it.cells[0].textContent === step);
    return row && numbers.every((number, at) => row.cells[2 + at].textContent === String(number));
  };
  await page.waitForFunction(are, { timeout: 60_000 }, `Steps of block ${block}`, name, wanted)
    .catch(async () => assert.fail(`${name} has not ${wanted}: ${await step(name, block)}`));
}

test("the steps are in the order of the graph, with their parts", async () => {
  await counts("prove", [0, 1, 0, 2, 1]);
  await counts("gather", [0, 0, 2, 0, 0]);
  const rows = await rowsOn(page, '[aria-label="Steps of block 5"]');
  assert.deepEqual(rows.map((row) => row[0]), ["split", "prove", "gather", "join", "sequencer"]);
  assert.deepEqual(rows.map((row) => row[1]), ["done", "all wait for it", "begun", "not begun", "not begun"]);
  assert.equal(await page.$eval("#parts-link", (it) => it.hidden), false);
  assert.equal(await page.$eval("#parts-link", (it) => it.getAttribute("aria-current")), "page");
});

test("it says what everything waits for, and which part is slowest", async () => {
  await shows("Everything waits for prove: 2 parts left, 2 done. Its slowest part in work is 0~2, for ");
  await shows(" at prove-");
  const [took, median, longest] = (await step("prove")).slice(7);
  assert.match(took, /^[0-9.]+ (ms|s)$/);
  assert.match(median, /^about [0-9.]+ (ms|s)$/);
  assert.match(longest, /^[0-9.]+ (ms|s): 0~[01]$/);
});

test("axe finds nothing serious, in light and in dark, wide and narrow", async () => {
  await withAxe(page, async ({ scheme, width, check }) => {
    await check("parts");
    assert.ok(await page.evaluate(() => document.documentElement.scrollWidth <= innerWidth), `${width}: it scrolls sideways`);
    if (process.env.SCREENSHOTS && width === 1200) {
      await page.screenshot({ path: join(process.env.SCREENSHOTS, `console-parts-${scheme}.png`) });
    }
  });
  await page.setViewport({ width: 1200, height: 800 });
});

test("the next step becomes the one that everything waits for, and a block that is emitted leaves", async () => {
  await write("go", "");
  await counts("prove", [0, 0, 0, 3, 1]);
  await shows("Dead letters hold it up.");
  await write("repaired", "");
  await ask("dlq", "retry", "prove/5/0~3");
  await counts("join", [0, 1, 0, 0, 0]);
  await shows("Everything waits for join: 1 part left, 0 done.");
  assert.equal((await step("prove"))[1], "done");
  await write("joins", "");
  await page.waitForFunction(() => !document.querySelector('[aria-label="Steps of block 5"]'), { timeout: 60_000 });
  await counts("prove", [0, 0, 0, 3, 1], 6);
});

test("a proof of a circuit in parts is shown by step", async () => {
  await ask("partition", "setup", "squarings", "--parts", "7", "-o", "keys");
  await write("secret", Buffer.alloc(32, 7));
  await ask("partition", "prove", "keys", "--witness", "secret", "--proof", "far.proof", "--public", "far.json", "--workflow", "far.toml");
  // Workers that prove refuse the keys, which are of another partition, so the proof stops at a known step.
  const [before, after] = (await readFile(join(folder, "far.toml"), "utf8")).split('prover = "partition.prove"');
  await write("far.toml", `${before}prover = "partition.prove"${after.replace(/partition = "[0-9a-f]+"/, `partition = "${"0".repeat(64)}"`)}`);
  const address = await run("far.toml", "--state", "far");
  await page.goto(`${address}#/parts`);
  await counts("prove", [0, 0, 0, 0, 7], 0);
  const rows = await rowsOn(page, '[aria-label="Steps of block 0"]');
  assert.deepEqual(rows.map((row) => row[0]), ["trace", "commit", "committed", "challenge", "prove", "proved", "aggregate", "sequencer"]);
  assert.deepEqual((await step("commit", 0)).slice(2, 7), ["0", "0", "0", "7", "0"]);
  await shows("Everything waits for prove: 7 parts left, 0 done. Dead letters hold it up.");
});

test("nothing went wrong", () => {
  assert.deepEqual(problems, []);
  assert.deepEqual(requested.filter((url) => !url.startsWith("http://127.0.0.1:") && !url.startsWith("data:")), []);
});
