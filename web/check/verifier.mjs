// Opens the page of a real verifier in a browser while proofs come from two sources, one of which sends false ones: their
// verdicts are shown by source, live, the simulator is one link away and asks nobody, and axe finds nothing serious.
// `make page-check` runs it; PROOFMILL is the program, and SCREENSHOTS a folder for pictures.

import assert from "node:assert/strict";
import { spawn } from "node:child_process";
import { mkdtemp, readFile, rm } from "node:fs/promises";
import { request } from "node:http";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { after, before, test } from "node:test";

import { openBrowser, rowsOf as rowsOn, shows as showsOn, withAxe } from "./browser.mjs";

const PROGRAM = process.env.PROOFMILL;
const FIXTURES = join(import.meta.dirname, "../../crates/groth16/tests/fixtures/bn254");
const KIND = "groth16-bn254";
// A build without optimisation derives the points of rollup proofs for a while at its first start.
const START_TIME_MAX_MS = 180_000;

let folder, verifier, address, port, browser, page, proof, statement, key;
const problems = [];
const requested = [];

/** The answer of the verifier's port to a JSON body. */
function ask(path, body) {
  const options = { method: "POST", headers: { "content-type": "application/json", "content-length": Buffer.byteLength(body) } };
  return new Promise((found, failed) => {
    const asked = request(`${port}${path}`, options, async (answer) => {
      const chunks = [];
      for await (const chunk of answer) chunks.push(chunk);
      const text = Buffer.concat(chunks).toString();
      if ([200, 201].includes(answer.statusCode)) found(JSON.parse(text));
      else failed(new Error(`${path}: status ${answer.statusCode}: ${text}`));
    });
    asked.on("error", failed);
    asked.end(body);
  });
}

/** The verdict about a proof of a source. */
async function verify(source, of) {
  const body = JSON.stringify({ kind: KIND, key, source, proof, statement: of });
  return (await ask("/v1/verify", body)).verdict;
}

before(async () => {
  assert.ok(PROGRAM, "PROOFMILL must name the program");
  folder = await mkdtemp(join(tmpdir(), "verifier-check-"));
  const args = ["verifier", "serve", "--state", folder, "--listen", "127.0.0.1:0", "--console", "127.0.0.1:0"];
  verifier = spawn(PROGRAM, args, { cwd: folder, stdio: ["ignore", "ignore", "pipe"] });
  [address, port] = await new Promise((found, failed) => {
    let said = "";
    verifier.stderr.on("data", (bytes) => {
      said += bytes;
      const shown = said.match(/console on http:\/\/([0-9.]+:[0-9]+)\//);
      const taken = said.match(/the verifier takes [^\n]*(http:\/\/127\.0\.0\.1:[0-9]+)/);
      if (shown && taken) found([shown[1], taken[1]]);
    });
    verifier.on("exit", (code) => failed(new Error(`the verifier ended with ${code}: ${said}`)));
  });
  const file = (name) => readFile(join(FIXTURES, name), "utf8");
  [proof, statement] = [JSON.parse(await file("proof.json")), JSON.parse(await file("public.json"))];
  key = (await ask(`/v1/keys?kind=${KIND}`, await file("verification_key.json"))).digest;
  [browser, page] = await openBrowser({ problems, requested });
  await page.goto(`http://${address}/`);
}, { timeout: START_TIME_MAX_MS });

after(async () => {
  await browser?.close();
  verifier?.kill("SIGKILL");
  await rm(folder, { recursive: true, force: true });
});

const rowsOf = (label) => rowsOn(page, `[aria-label="${label}"]`);

test("a verifier without work is shown", async () => {
  await showsOn(page, "without a verdict yet");
  assert.equal(await page.$eval("#link", (it) => it.textContent), "running");
  assert.deepEqual(await rowsOf("Sources"), []);
});

test("false proofs are shown by source, without a reload", async () => {
  const other = ["157", ...statement.slice(1)];
  for (let round = 0; round < 3; round += 1) {
    assert.equal(await verify("honest", statement), "valid");
    assert.equal(await verify("liar", other), "invalid");
  }
  assert.equal(await verify("liar", statement), "valid");
  const counted = () => {
    const row = document.querySelector('[aria-label="Sources"] tbody tr:first-child');
    return row?.textContent.includes("liar") && [...row.cells].slice(1, 5).map((it) => it.textContent).join() === "0,1,3,0";
  };
  await page.waitForFunction(counted, { timeout: 20_000 });
  const [first, second] = await rowsOf("Sources");
  // Name, under way, valid, false, no verdict, and how they are checked: the source with false ones is first.
  assert.match(first[0], /liar/);
  assert.deepEqual(first.slice(1, 5), ["0", "1", "3", "0"]);
  assert.match(first[5], /^apart/);
  assert.match(second[0], /honest/);
  assert.deepEqual(second.slice(1), ["0", "3", "0", "0", "with others"]);
  const colour = await page.$eval('[aria-label="Sources"] tbody tr:first-child .bad', (it) => it.textContent);
  assert.equal(colour, "3");
  const kinds = await rowsOf("Kinds of proofs");
  const kind = kinds.find(([name]) => name === KIND);
  assert.deepEqual([kind[1], kind[4]], ["7", "7"]);
});

test("a source's name is text and no page", async () => {
  const name = "<img src=x onerror=alert(1)>";
  assert.equal(await verify(name, statement), "valid");
  await showsOn(page, name);
  assert.equal(await page.$$eval("#view img", (all) => all.length), 0);
});

test("axe finds nothing serious, in light and in dark, wide and narrow", async () => {
  await withAxe(page, async ({ scheme, width, check }) => {
    await check("the verifier");
    assert.ok(await page.evaluate(() => document.documentElement.scrollWidth <= innerWidth), `${width}: it scrolls sideways`);
    if (process.env.SCREENSHOTS && width === 1200) {
      await page.screenshot({ path: join(process.env.SCREENSHOTS, `console-verifier-${scheme}.png`) });
    }
  });
});

test("the simulator is one link away, works under its policy, and asks nobody", async () => {
  await page.focus("nav a");
  await Promise.all([page.waitForNavigation(), page.keyboard.press("Enter")]);
  assert.equal(page.url(), `http://${address}/simulator`);
  await page.waitForFunction(() => document.querySelectorAll("#result tbody tr").length === 3, { timeout: 20_000 });
  const colours = await page.$eval("form", (it) => getComputedStyle(it).display);
  assert.equal(colours, "grid", "the page's style is refused");
  // A script that another put into the page would not run.
  const ran = await page.evaluate(() => {
    const script = document.createElement("script");
    script.textContent = "globalThis.injected = true";
    document.body.append(script);
    return globalThis.injected === true;
  });
  assert.equal(ran, false);
  problems.splice(0).forEach((problem) => assert.match(problem, /Content Security Policy/));
});

test("axe finds nothing serious in the simulator either", async () => {
  await withAxe(page, ({ check }) => check("the simulator"));
});

test("nothing else was asked for, and nothing went wrong", () => {
  const elsewhere = requested.filter((url) => !url.startsWith(`http://${address}/`) && !url.startsWith("data:"));
  assert.deepEqual(elsewhere, []);
  assert.deepEqual(problems, []);
});
