#!/usr/bin/env node
// Starts an Ethereum development node and runs `proofmill demo --settle` on it:
//
//     node demo.mjs PROOFMILL [arguments of proofmill demo]
//
// The node is geth with a block each second; its data is kept beside the demo's state, so that the demo goes on where it was,
// whatever was killed. `GETH` names another geth.

import { spawn } from "node:child_process";
import { rmSync } from "node:fs";
import { mkdir } from "node:fs/promises";
import { join, resolve } from "node:path";
import process, { argv, env, exit, stderr } from "node:process";
import { freePort, gethProgram, waitUntilReady } from "./test/support/nodes.mjs";

/** The demo's state directory, unless another one is named. */
const STATE = join(".proofmill", "demo-settle");

/** Gas of a block: that of Ethereum's main chain. */
const BLOCK_GAS = 60_000_000;

/** How long geth may take to write its state when it is told to end, in milliseconds. */
const STOP_MS = 20_000;

async function startGeth(port, folder) {
  await mkdir(folder, { recursive: true, mode: 0o700 });
  // With every state on disk a killed node comes back with the blocks that it had.
  const child = spawn(gethProgram(), ["--dev", "--dev.period", "1", "--dev.gaslimit", `${BLOCK_GAS}`, "--datadir", folder,
    "--state.scheme", "hash", "--gcmode", "archive", "--http", "--http.addr", "127.0.0.1", "--http.port", `${port}`,
    "--authrpc.addr", "127.0.0.1", "--authrpc.port", `${await freePort()}`, "--port", "0", "--nodiscover", "--maxpeers", "0",
    "--ipcdisable"], { stdio: ["ignore", "pipe", "pipe"], detached: true });
  let output = "";
  for (const stream of [child.stdout, child.stderr]) {
    stream.on("data", (data) => { output = (output + data).slice(-4000); });
  }
  const ended = new Promise((done) => child.once("close", done).once("error", done));
  try {
    await waitUntilReady(`http://127.0.0.1:${port}`, child, ended);
  } catch (error) {
    child.kill("SIGKILL");
    throw new Error(`geth ${error.message}; its last output:\n${output}`);
  }
  const stop = async () => {
    const killer = setTimeout(() => child.kill("SIGKILL"), STOP_MS);
    child.kill("SIGTERM");
    await ended;
    clearTimeout(killer);
  };
  return { stop, kill: () => child.kill("SIGTERM") };
}

async function main() {
  const [program, ...rest] = argv.slice(2);
  if (!program) throw new Error("usage: node demo.mjs PROOFMILL [arguments of proofmill demo]");
  const named = rest.indexOf("--state");
  const state = named < 0 ? STATE : rest[named + 1];
  const chain = `${resolve(state)}-chain`;
  if (rest.includes("--fresh")) rmSync(chain, { recursive: true, force: true });
  const port = await freePort();
  stderr.write("starting geth, an Ethereum node with a block each second\n");
  const geth = await startGeth(port, chain);
  process.on("exit", geth.kill);
  const solc = join(import.meta.dirname, "node_modules", ".bin", "solcjs");
  const given = named < 0 ? ["--state", STATE] : [];
  const demo = spawn(program, ["demo", "--settle", `http://127.0.0.1:${port}`, "--solc", solc, ...given, ...rest],
    { stdio: "inherit", env });
  // Ctrl-C reaches the demo by itself; the node must outlive it.
  process.on("SIGINT", () => {});
  process.on("SIGTERM", () => demo.kill("SIGTERM"));
  const status = await new Promise((done, failed) => demo.once("close", (code) => done(code ?? 1)).once("error", failed));
  await geth.stop();
  return status;
}

main().then(exit, (error) => {
  stderr.write(`error: ${error.message}\n`);
  exit(1);
});
