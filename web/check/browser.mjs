// The browser of the checks, a Chromium that the lock file pins, and what they look for in a page.

import assert from "node:assert/strict";
import { createRequire } from "node:module";
import { mkdtemp, readFile, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";

/** A browser, which removes its files when it is closed, and a page whose errors, messages and requests are noted. `args` are
 * further arguments of the browser. */
export async function openBrowser({ problems, requested, args = [] }) {
  // The browser is unpacked into the folder for temporary files.
  const folder = await mkdtemp(join(tmpdir(), "page-check-"));
  process.env.TMPDIR = folder;
  const { default: chromium } = await import("@sparticuz/chromium");
  const { default: puppeteer } = await import("puppeteer-core");
  // The package's own arguments lift the rules between origins, which the console's defence is checked with.
  const own = chromium.args.filter((it) => it !== "--disable-web-security");
  const browser = await puppeteer.launch({
    executablePath: await chromium.executablePath(),
    args: puppeteer.defaultArgs({ args: [...own, ...args], headless: "shell" }),
    headless: "shell",
  });
  const page = await browser.newPage();
  page.on("pageerror", (error) => problems.push(error.message));
  page.on("console", (message) => problems.push(message.text()));
  page.on("request", (request) => requested.push(request.url()));
  const close = async () => {
    await browser.close();
    await rm(folder, { recursive: true, force: true });
  };
  return [{ close, newPage: () => browser.newPage() }, page];
}

/** Waits until an element shows a text. */
export async function shows(page, text, { selector = "#view", timeout = 20_000 } = {}) {
  const there = (where, wanted) => document.querySelector(where)?.textContent.includes(wanted);
  await page.waitForFunction(there, { timeout }, selector, text).catch(async () => {
    const found = await page.$eval("body", (body) => body.textContent);
    assert.fail(`${selector} does not show ${JSON.stringify(text)}: ${found}`);
  });
}

/** Waits until the view is drawn anew. */
export async function redrawn(page) {
  await page.evaluate(() => { globalThis.drawnBefore = document.querySelector("#view").firstElementChild; });
  const isNew = () => document.querySelector("#view").firstElementChild !== globalThis.drawnBefore;
  await page.waitForFunction(isNew, { timeout: 20_000 });
}

/** Has the page's answers at paths that begin with `path` come later by `ms`; as they come, if `ms` is 0. */
export async function delay(page, path, ms) {
  await page.evaluate((slow, time) => {
    globalThis.promptFetch ??= globalThis.fetch;
    const later = async (asked, options) => {
      const answer = await globalThis.promptFetch(asked, options);
      if (asked.startsWith(slow)) await new Promise((done) => setTimeout(done, time));
      return answer;
    };
    globalThis.fetch = time ? later : globalThis.promptFetch;
  }, path, ms);
}

/** The cells of each row of a table's body. */
export function rowsOf(page, table) {
  return page.$$eval(`${table} tbody tr`, (rows) => rows.map((row) => Array.from(row.cells, (cell) => cell.textContent)));
}

/** Visits the page in light and in dark, wide and narrow. A visit is given `check`, which lets axe look for what is serious. */
export async function withAxe(page, visit) {
  const axe = await readFile(createRequire(import.meta.url).resolve("axe-core/axe.min.js"), "utf8");
  // The page's policy forbids scripts that are not its own; evaluating by the debugger is not of the page.
  await page.evaluate(axe);
  for (const scheme of ["light", "dark"]) {
    await page.emulateMediaFeatures([{ name: "prefers-color-scheme", value: scheme }]);
    for (const width of [1200, 380]) {
      await page.setViewport({ width, height: 800 });
      await visit({
        scheme, width, check: async (what) => {
          const found = await page.evaluate(() => globalThis.axe.run());
          const serious = found.violations.filter((it) => ["serious", "critical"].includes(it.impact));
          assert.deepEqual(serious.map((it) => `${it.id}: ${it.nodes[0].html}`), [], `${scheme} ${width} ${what}`);
        },
      });
    }
  }
}
