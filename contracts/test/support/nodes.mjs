// Ethereum nodes for the tests: anvil, from npm, and geth's developer chain. Each is a process of its own on a free port of
// the loopback interface, with a private folder for its data, and ends with the test.

import { spawn } from "node:child_process";
import { existsSync } from "node:fs";
import { mkdtemp, rm } from "node:fs/promises";
import { createServer } from "node:net";
import { createRequire } from "node:module";
import { tmpdir } from "node:os";
import { dirname, join } from "node:path";
import { setTimeout as sleep } from "node:timers/promises";
import { fileURLToPath } from "node:url";
import { JsonRpcProvider } from "ethers";

const contracts = join(dirname(fileURLToPath(import.meta.url)), "..", "..");

/** Gas of a block, and so of a transaction: what geth's default is raised to for the largest calls of the tests. */
const BLOCK_GAS = 60_000_000;

/** How long a node may take to answer its first request, in milliseconds. */
const START_MS = 30_000;

/** Ports below those that systems give to outgoing connections, one of which could have a free port before the node has. */
const PORTS = { first: 10_000, count: 22_000 };

let portsTried = process.pid * 1_009;

/** A TCP port of the loopback interface that nothing listened on just now, and that no other call returned. */
export async function freePort() {
  for (;;) {
    const port = PORTS.first + (portsTried++ % PORTS.count);
    const server = createServer();
    const free = await new Promise((resolve) =>
      server.once("error", () => resolve(false)).listen(port, "127.0.0.1", () => resolve(true)));
    if (!free) continue;
    await new Promise((resolve) => server.close(resolve));
    return port;
  }
}

/** The binary of the npm package, started without the package's wrapper, which a signal would not reach through. */
function anvilProgram() {
  const require = createRequire(import.meta.url);
  const arch = { x64: "amd64", arm64: "arm64" }[process.arch] ?? process.arch;
  return require.resolve(`@foundry-rs/anvil-${process.platform}-${arch}/bin/anvil`);
}

export function gethProgram() {
  const program = process.env.GETH ?? join(contracts, "bin", "geth");
  if (!existsSync(program)) throw new Error(`geth is not at ${program}: run \`make geth\`, or name one in GETH`);
  return program;
}

/** The nodes that every test runs on, by name: the program, and its arguments for a port and a data folder. */
export const nodes = {
  anvil: {
    program: anvilProgram,
    arguments: async (port) => ["--host", "127.0.0.1", "--port", `${port}`, "--hardfork", "prague", "--gas-limit",
      `${BLOCK_GAS}`, "--no-request-size-limit"],
  },
  geth: {
    program: gethProgram,
    arguments: async (port, folder) => ["--dev", "--dev.gaslimit", `${BLOCK_GAS}`, "--datadir", folder, "--http",
      "--http.addr", "127.0.0.1", "--http.port", `${port}`, "--http.api", "eth,net,web3,debug", "--authrpc.addr", "127.0.0.1",
      "--authrpc.port", `${await freePort()}`, "--port", "0", "--nodiscover", "--maxpeers", "0", "--ipcdisable",
      "--rpc.gascap", `${BLOCK_GAS}`],
  },
};

/**
 * Starts a node and waits until it answers.
 *
 * Returns its `name`, a `provider` and a `signer` with funds, and `stop`, which ends it and removes its data.
 */
export async function startNode(name) {
  const folder = await mkdtemp(join(tmpdir(), `contracts-${name}-`));
  const port = await freePort();
  const child = spawn(nodes[name].program(), await nodes[name].arguments(port, folder), { cwd: folder });
  let output = "";
  for (const stream of [child.stdout, child.stderr]) {
    stream.on("data", (data) => { output = (output + data).slice(-4000); });
  }
  const ended = new Promise((resolve) => child.once("close", resolve).once("error", resolve));
  const kill = () => child.kill("SIGKILL");
  process.once("exit", kill);
  const url = `http://127.0.0.1:${port}`;
  const provider = new JsonRpcProvider(url, undefined, { cacheTimeout: -1, pollingInterval: 20 });
  const stop = async () => {
    provider.destroy();
    kill();
    await ended;
    process.removeListener("exit", kill);
    await rm(folder, { recursive: true, force: true });
  };
  try {
    await waitUntilReady(url, child, ended);
  } catch (error) {
    await stop();
    throw new Error(`${name} ${error.message}; its last output:\n${output}`);
  }
  return { name, url, provider, signer: await provider.getSigner(0), stop };
}

export async function waitUntilReady(url, child, ended) {
  const body = JSON.stringify({ jsonrpc: "2.0", id: 1, method: "eth_chainId", params: [] });
  const until = Date.now() + START_MS;
  while (Date.now() < until) {
    if (child.exitCode !== null) throw new Error(`ended with status ${child.exitCode}`);
    const headers = { "content-type": "application/json" };
    const answer = await fetch(url, { method: "POST", headers, body }).catch(() => null);
    if (answer?.ok) return;
    await Promise.race([sleep(100), ended]);
  }
  throw new Error(`did not answer within ${START_MS / 1000} seconds`);
}
