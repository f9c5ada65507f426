// Opens the console of a real engine in a browser: its key, memory, stages and jobs are shown, live, and axe finds nothing
// serious. `make page-check` runs it; PROOFMILL is the program, and SCREENSHOTS a folder for pictures.

import assert from "node:assert/strict";
import { spawn } from "node:child_process";
import { once } from "node:events";
import { mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { after, before, test } from "node:test";

import { openBrowser, rowsOf as rowsOn, shows as showsOn, withAxe } from "./browser.mjs";

const PROGRAM = process.env.PROOFMILL;
const FIXTURES = join(import.meta.dirname, "../../crates/groth16/tests/fixtures/bn254");

let folder, engine, address, browser, page;
const problems = [];
const requested = [];

before(async () => {
  assert.ok(PROGRAM, "PROOFMILL must name the program");
  folder = await mkdtemp(join(tmpdir(), "engine-check-"));
  const args = ["engine", "serve", "--circuits", `multiplier=${join(FIXTURES, "circuit.zkey")}`, "--budget", "1GiB",
    "--allow-insecure-key", "--console", "127.0.0.1:0"];
  engine = spawn(PROGRAM, args, { cwd: folder, stdio: ["ignore", "ignore", "pipe"] });
  address = await new Promise((found, failed) => {
    let said = "";
    engine.stderr.on("data", (bytes) => {
      said += bytes;
      const match = said.match(/console on http:\/\/([0-9.]+:[0-9]+)\//);
      if (match && said.includes("the engine answers")) found(match[1]);
    });
    engine.on("exit", (code) => failed(new Error(`the engine ended with ${code}: ${said}`)));
  });
  [browser, page] = await openBrowser({ problems, requested });
  await page.goto(`http://${address}/`);
});

after(async () => {
  await browser?.close();
  engine?.kill("SIGKILL");
  await rm(folder, { recursive: true, force: true });
});

const shows = (text) => showsOn(page, text);
const rowsOf = (label) => rowsOn(page, `[aria-label="${label}"]`);

test("the keys, the memory and the stages are shown", async () => {
  await shows("of 1.0 GiB");
  const [key] = await rowsOf("Keys");
  assert.equal(key[0], "multiplier");
  assert.deepEqual((await rowsOf("Stages")).map((row) => row[0]), ["witness", "evaluate", "prove", "finish", "verify"]);
  assert.equal(await page.$eval("#link", (it) => it.textContent), "running");
});

test("a proof is shown without a reload", async () => {
  const args = ["engine", "prove", "multiplier", join(FIXTURES, "witness.wtns"), "-o", "proof.json"];
  const proving = spawn(PROGRAM, args, { cwd: folder, stdio: "ignore" });
  assert.deepEqual(await once(proving, "exit"), [0, null]);
  await page.waitForFunction(() => document.querySelector('[aria-label="Jobs that ended"] tbody tr'), { timeout: 20_000 });
  const [job] = await rowsOf("Jobs that ended");
  assert.equal(job[3], "done");
  const [key] = await rowsOf("Keys");
  assert.deepEqual([key[3], key[8]], ["hot", "1"]);
  const owners = await rowsOf("Owners of memory");
  assert.equal(owners[0][0], "key of multiplier");
});

test("recent work is drawn", async () => {
  const loaded = () => document.querySelector("img.timeline").naturalWidth > 0;
  await page.waitForFunction(loaded, { timeout: 20_000 });
});

test("axe finds nothing serious, in light and in dark, wide and narrow", async () => {
  await withAxe(page, async ({ scheme, width, check }) => {
    await check("the engine");
    if (process.env.SCREENSHOTS && width === 1200) {
      await page.screenshot({ path: join(process.env.SCREENSHOTS, `console-engine-${scheme}.png`) });
    }
  });
});

test("nothing else was asked for, and nothing went wrong", () => {
  const elsewhere = requested.filter((url) => !url.startsWith(`http://${address}/`) && !url.startsWith("data:"));
  assert.deepEqual(elsewhere, []);
  assert.deepEqual(problems, []);
});

test("the page says that the engine is gone", async () => {
  engine.kill("SIGKILL");
  const says = () => document.getElementById("link").textContent.startsWith("no connection");
  await page.waitForFunction(says, { timeout: 20_000 });
});
