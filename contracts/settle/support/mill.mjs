// `proofmill run` with a workflow that brings emitted chunks of headers to an Ethereum chain.

import { spawn } from "node:child_process";
import { readdirSync, statSync, writeFileSync } from "node:fs";
import { mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { createInterface } from "node:readline";
import { setTimeout as sleep } from "node:timers/promises";
import { programPath } from "../../test/support/program.mjs";

/** How long anything that a test waits for may take, in milliseconds. */
const PATIENCE_MS = 60_000;

/** Waits until `condition` returns something other than false, null and undefined, and returns that. */
export async function until(what, condition, patienceMs = PATIENCE_MS) {
  const end = Date.now() + patienceMs;
  for (;;) {
    const found = await condition();
    if (found || found === 0) return found;
    if (Date.now() > end) throw new Error(`not within ${patienceMs / 1000} seconds: ${what}`);
    await sleep(5);
  }
}

const toml = (fields) => Object.entries(fields).map(([name, value]) => `${name} = ${JSON.stringify(value)}\n`).join("");

/** A workflow in a folder of its own, and the process that runs it. */
export class Mill {
  #folder;
  #child;
  #ended;
  #killer = () => this.#child?.kill("SIGKILL");
  /** Lines of the log of all runs, as objects with `level` and `fields`, oldest first. */
  log = [];

  constructor(folder) {
    this.#folder = folder;
    process.once("exit", this.#killer);
  }

  /**
   * Writes a workflow for `messages`, each with `first`, `last` and the payload's text. `sink` has fields of the sink beside
   * those that every test has; `key` is a private key for its file, unless `sink` names a signer.
   */
  static async create({ messages, key, sink }) {
    const folder = await mkdtemp(join(tmpdir(), "settle-mill-"));
    const lines = messages.map(({ first, last, payload }) => `{"first": ${first}, "last": ${last}, "payload": ${payload}}\n`);
    writeFileSync(join(folder, "chunks.jsonl"), lines.join(""));
    if (key) writeFileSync(join(folder, "key"), `${key}\n`, { mode: 0o600 });
    const fields = { kind: "ethereum", payload: "bitcoin.header-chain", ...(key ? { key_file: "key" } : {}), confirmations: 3,
      poll: "100ms", replace_after: "4s", batch: 1, ...sink };
    const backoff = `backoff = { initial = "200ms", max = "1s" }\n`;
    const text = `name = "settle"\n\n[[source]]\n${toml({ name: "chunks", kind: "jsonl", file: "chunks.jsonl", output: "proofs" })}
[sequencer]\ninput = "proofs"\n\n[[sequencer.sink]]\n${toml(fields)}${backoff}`;
    writeFileSync(join(folder, "workflow.toml"), text);
    return new Mill(folder);
  }

  /** Starts the program, with `options` of `proofmill run` beside those of every test. */
  start(...options) {
    const args = ["run", "workflow.toml", "--state", "state", "--keys", "keys", "--log", "warn,proofmill_settlement=info",
      "--log-format", "json", ...options];
    const child = spawn(programPath(), args, { cwd: this.#folder, stdio: ["ignore", "ignore", "pipe"] });
    createInterface({ input: child.stderr }).on("line", (line) => {
      try {
        this.log.push(JSON.parse(line));
      } catch {
        this.log.push({ level: "ERROR", fields: { message: line } });
      }
    });
    this.#child = child;
    this.#ended = new Promise((done) => child.once("close", (code) => done(code)).once("error", done));
  }

  get isRunning() {
    return this.#child !== undefined && this.#child.exitCode === null && this.#child.signalCode === null;
  }

  /** Ends the process at once. */
  async kill() {
    this.#child.kill("SIGKILL");
    await this.#ended;
  }

  /** Waits until all is settled and the process has ended by itself. */
  async ends(patienceMs = PATIENCE_MS) {
    const late = sleep(patienceMs, "late", { ref: false });
    const status = await Promise.race([this.#ended, late]);
    if (status !== 0) throw new Error(`proofmill run: ${status === "late" ? "has not ended" : `status ${status}`}\n${this.lastLog()}`);
  }

  /** Ends the process and removes the folder. */
  async remove() {
    if (this.isRunning) await this.kill();
    process.removeListener("exit", this.#killer);
    await rm(this.#folder, { recursive: true, force: true });
  }

  /** The transactions' files in the journal, each with the time of its last change; oldest nonce first. */
  journal() {
    const settlement = join(this.#folder, "state", "settlement");
    const found = [];
    for (const account of namesIn(settlement)) {
      for (const name of namesIn(join(settlement, account)).filter((name) => name.endsWith(".tx")).sort()) {
        const stat = statSync(join(settlement, account, name), { bigint: true, throwIfNoEntry: false });
        if (stat) found.push({ nonce: Number.parseInt(name, 10), changed: stat.mtimeNs });
      }
    }
    return found;
  }

  /** Messages of the log with this text in them. */
  messages(text) {
    return this.log.map(({ fields }) => fields).filter(({ message }) => message.includes(text));
  }

  /** Waits for a message of the log with this text in it, after the first `from` ones. */
  says(text, from = 0) {
    const said = () => this.messages(text)[from];
    return until(`the log says "${text}"\n${this.lastLog()}`, said).catch((error) => {
      throw new Error(`${error.message}\n${this.lastLog()}`);
    });
  }

  lastLog() {
    return this.log.slice(-20).map((line) => JSON.stringify(line)).join("\n");
  }
}

function namesIn(folder) {
  try {
    return readdirSync(folder);
  } catch (error) {
    if (error.code === "ENOENT") return [];
    throw error;
  }
}
