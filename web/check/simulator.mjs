// Opens docs/verifier-simulator.html in a Chromium that the lock file pins, and reads it as a person
// would: its figures must agree with Aztec's published ones, and its counts of checks with ours, within 15 %.
// `make page-check` runs it.

import assert from "node:assert/strict";
import { join } from "node:path";
import { after, before, test } from "node:test";
import { pathToFileURL } from "node:url";

import { openBrowser, rowsOf as rowsOn } from "./browser.mjs";

const PAGE = pathToFileURL(join(import.meta.dirname, "../../docs/verifier-simulator.html")).href;
const MOST_PERCENT = 15;

// Cores, proofs, wall time in milliseconds and proofs a second, as Aztec's page on its pull request 21823 has
// them; kept apart from the page's own copy.
const PUBLISHED = [
  [1, 1, 185, 5.4], [2, 2, 229, 8.7], [2, 6, 285, 21.1],
  [4, 4, 153, 26.1], [4, 12, 217, 55.3], [4, 16, 236, 67.9],
  [6, 6, 127, 47.3], [6, 12, 154, 77.8], [6, 18, 187, 96.5], [6, 24, 270, 89.0], [6, 30, 308, 97.3],
  [8, 8, 114, 69.9], [8, 16, 146, 109.3], [8, 24, 260, 92.3],
];

let browser, page;
const problems = [];
const requested = [];

before(async () => {
  [browser, page] = await openBrowser({ problems, requested });
  await page.goto(PAGE);
});

after(() => browser?.close());

// The texts of a table's cells.
const rowsOf = (id) => rowsOn(page, `#${id}`);

function assertNear(found, wanted, what) {
  const percent = (found / wanted - 1) * 100;
  assert.ok(Math.abs(percent) <= MOST_PERCENT, `${what}: ${found} beside ${wanted}: ${percent.toFixed(1)} %`);
}

// Types a number into a field, as from a keyboard.
async function type(id, text) {
  await page.focus(`#${id}`);
  await page.keyboard.down("Control");
  await page.keyboard.press("a");
  await page.keyboard.up("Control");
  await page.keyboard.type(text);
}

test("the simulation of Aztec's service agrees with Aztec's table", async () => {
  const rows = await rowsOf("aztec");
  assert.equal(rows.length, PUBLISHED.length);
  for (const [place, [cores, proofs, wall, perSecond]] of PUBLISHED.entries()) {
    const row = rows[place].map(parseFloat);
    assert.deepEqual([row[0], row[1], row[2], row[5]], [cores, proofs, wall, perSecond]);
    assertNear(row[3], wall, `${proofs} proofs on ${cores} cores`);
    assertNear(row[6], perSecond, `proofs a second, ${proofs} on ${cores} cores`);
    assert.ok(Math.abs(row[4] - (row[3] / wall - 1) * 100) < 1, `the difference that is shown: ${row[4]} %`);
  }
});

// How many checks a stream with bad proofs takes hardly depends on how busy the machine was. Times do, and the
// batches of valid proofs with them: these are told, and not required.
test("the simulation of ours makes the checks that were counted", async (context) => {
  const rows = await rowsOf("ours");
  assert.ok(rows.length >= 8, `${rows.length} rows`);
  for (const row of rows) {
    const [kind, threads, proofs, bad, , , wall] = row;
    const what = `${kind}, ${proofs} proofs, ${bad} bad, ${threads} threads`;
    const [counted, simulated] = [parseFloat(row[7]), parseFloat(row[8])];
    if (bad !== "0") assertNear(simulated, counted, `checks of ${what}`);
    context.diagnostic(`${what}: the simulated time differs by ${wall}, one by one's by ${row[11]}`);
  }
});

test("the search for bad proofs takes the checks that it claims", async () => {
  const rows = await rowsOf("bisection");
  assert.deepEqual(rows.map((row) => row[0]), ["1 bad in 8", "2 bad in 8", "1 bad in 16"]);
  for (const row of rows) {
    const [published, fewest, mean, most, ours, together] = row.slice(1).map((text) => parseFloat(text.replace("about ", "")));
    assert.ok(fewest <= published && published <= most && mean <= most, row.join(", "));
    assert.ok(ours < mean && together < ours, row.join(", "));
  }
  // One sum finds one bad proof, which is then checked alone.
  assert.deepEqual(rows[2].slice(5), ["2.0", "1.0"]);
});

test("settings are changed by the keyboard, and mistakes are named", async () => {
  await page.select("#subject", await page.$eval("#subject", (list) => list.options[0].value));
  await type("proofs", "18");
  await type("batch", "18");
  await type("cores", "6");
  const good = await rowsOf("result");
  assert.deepEqual(good.map((row) => row[0]), ["Proofmill's rules", "Aztec's rules", "one by one"]);
  assertNear(parseFloat(good[1][1]), 187, "Aztec's default settings");
  assert.ok(parseFloat(good[0][1]) < parseFloat(good[1][1]));

  await type("bad", "50");
  const half = await rowsOf("result");
  assert.ok(parseFloat(half[1][1]) > parseFloat(good[1][1]), "bad proofs cost bisection");
  await page.keyboard.press("Tab");
  assert.equal(await page.evaluate(() => document.activeElement.id), "rate");

  await type("cores", "0");
  assert.match(await page.$eval("#problem", (line) => line.textContent), /^Cores/);
  assert.deepEqual(await rowsOf("result"), []);
  await type("cores", "2");
  assert.equal(await page.$eval("#problem", (line) => line.textContent), "");
  assert.equal((await rowsOf("result")).length, 3);
});

test("every field has a label, and both colour schemes are there", async () => {
  assert.ok(await page.$$eval("input, select", (fields) => fields.length > 0 && fields.every((field) => field.labels.length === 1)));
  const colours = [];
  for (const value of ["light", "dark"]) {
    await page.emulateMediaFeatures([{ name: "prefers-color-scheme", value }]);
    colours.push(await page.$eval("body", (body) => getComputedStyle(body).backgroundColor));
  }
  assert.notEqual(colours[0], colours[1]);
});

test("the page is one file without errors", () => {
  assert.deepEqual(problems, []);
  assert.deepEqual(requested.filter((url) => !url.startsWith("data:")), [PAGE]);
});
