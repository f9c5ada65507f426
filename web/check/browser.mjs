// The browser of the checks: a Chromium that the lock file pins.

import { mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";

/** A browser, which removes its files when it is closed, and a page whose errors, messages and requests are noted. */
export async function openBrowser({ problems, requested }) {
  // The browser is unpacked into the folder for temporary files.
  const folder = await mkdtemp(join(tmpdir(), "page-check-"));
  process.env.TMPDIR = folder;
  const { default: chromium } = await import("@sparticuz/chromium");
  const { default: puppeteer } = await import("puppeteer-core");
  const browser = await puppeteer.launch({
    executablePath: await chromium.executablePath(),
    args: puppeteer.defaultArgs({ args: chromium.args, headless: "shell" }),
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
  return [{ close }, page];
}
