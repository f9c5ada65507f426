// Ethereum nodes with a block every second or less, which a test may kill, start again and reorganise.

import { spawn } from "node:child_process";
import { mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { setTimeout as sleep } from "node:timers/promises";
import { JsonRpcProvider } from "ethers";
import { freePort, gethProgram, nodes, waitUntilReady } from "../../test/support/nodes.mjs";

/** Gas of a block: that of Ethereum's main chain. */
const BLOCK_GAS = 60_000_000;

/** How long geth may take to write its state when it is told to end, in milliseconds. */
const STOP_MS = 20_000;

/** Asks a node by JSON-RPC. */
export async function ask(url, method, params = []) {
  const body = JSON.stringify({ jsonrpc: "2.0", id: 1, method, params });
  const answer = await fetch(url, { method: "POST", headers: { "content-type": "application/json" }, body });
  const { result, error } = await answer.json();
  if (error) throw new Error(`${method}: ${error.message}`);
  return result;
}

/** A node's process on a port and with a folder of its own, both of which stay when it is started again. */
class Node {
  #program;
  #arguments;
  #child;
  #ended;
  #output = "";
  #killer = () => this.#child?.kill("SIGKILL");

  constructor(program, args, folder, port) {
    this.#program = program;
    this.#arguments = args;
    this.folder = folder;
    this.url = `http://127.0.0.1:${port}`;
    process.once("exit", this.#killer);
  }

  async start() {
    const child = spawn(this.#program, this.#arguments, { cwd: this.folder, stdio: ["ignore", "pipe", "pipe"] });
    for (const stream of [child.stdout, child.stderr]) {
      stream.on("data", (data) => { this.#output = (this.#output + data).slice(-4000); });
    }
    this.#child = child;
    this.#ended = new Promise((done) => child.once("close", done).once("error", done));
    try {
      await waitUntilReady(this.url, child, this.#ended);
    } catch (error) {
      await this.stop();
      throw new Error(`${this.#program} ${error.message}; its last output:\n${this.#output}`);
    }
  }

  /** Ends the process, by a signal that lets it write its state, or at once by SIGKILL. Its data stays. */
  async kill(signal) {
    const killer = setTimeout(this.#killer, STOP_MS);
    this.#child.kill(signal);
    await this.#ended;
    clearTimeout(killer);
  }

  /** Ends the process and removes its data. */
  async stop() {
    this.provider?.destroy();
    await this.kill("SIGKILL");
    process.removeListener("exit", this.#killer);
    await rm(this.folder, { recursive: true, force: true });
  }

  ask(method, ...params) {
    return ask(this.url, method, params);
  }

  /** Number of the last block. */
  async head() {
    return Number(await this.ask("eth_blockNumber"));
  }

  /** Waits until the chain has so many blocks more. */
  async grows(blocks) {
    const until = (await this.head()) + blocks;
    while ((await this.head()) < until) await sleep(50);
  }

  async connect() {
    const chainId = Number(await this.ask("eth_chainId"));
    this.provider = new JsonRpcProvider(this.url, chainId, { staticNetwork: true, cacheTimeout: -1, pollingInterval: 50 });
    this.signer = await this.provider.getSigner(0);
    this.chainId = chainId;
    return this;
  }
}

/**
 * Geth's developer chain, with a block each second.
 *
 * Every state is on disk, so that a killed node comes back with the blocks that it had, and can go back to any of them.
 */
export async function startGeth() {
  const folder = await mkdtemp(join(tmpdir(), "settle-geth-"));
  const port = await freePort();
  const args = ["--dev", "--dev.period", "1", "--dev.gaslimit", `${BLOCK_GAS}`, "--datadir", folder, "--state.scheme", "hash",
    "--gcmode", "archive", "--http", "--http.addr", "127.0.0.1", "--http.port", `${port}`, "--http.api",
    "eth,net,web3,debug,txpool", "--authrpc.addr", "127.0.0.1", "--authrpc.port", `${await freePort()}`, "--port", "0",
    "--nodiscover", "--maxpeers", "0", "--ipcdisable"];
  const node = new Node(gethProgram(), args, folder, port);
  await node.start();
  return node.connect();
}

/** Anvil, whose blocks are made by the test: one every `periodMs`, with the base fee `baseFee`, which may be changed. */
class Anvil extends Node {
  periodMs = 250;
  /** Base fee of the next blocks, in wei. */
  baseFee = 1_000_000_000n;
  /** Called with each new block. */
  onBlock = () => {};
  #mining;
  #ends = false;
  #turn = Promise.resolve();

  /** Asks while no block is made: a reorganisation beside that leaves anvil without some of its blocks. */
  askBetweenBlocks(method, ...params) {
    return this.#alone(() => this.ask(method, ...params));
  }

  #alone(action) {
    const done = this.#turn.then(action);
    this.#turn = done.catch(() => {});
    return done;
  }

  mine() {
    const hex = () => `0x${this.baseFee.toString(16)}`;
    this.#mining = (async () => {
      while (!this.#ends) {
        await this.#alone(async () => {
          await this.ask("anvil_setNextBlockBaseFeePerGas", hex());
          await this.ask("evm_mine");
        });
        await this.onBlock(await this.ask("eth_getBlockByNumber", "latest", false));
        await sleep(this.periodMs);
      }
    })();
    // Reported by `stop`.
    this.#mining.catch(() => {});
  }

  async stop() {
    this.#ends = true;
    try {
      await this.#mining;
    } finally {
      await super.stop();
    }
  }
}

export async function startAnvil() {
  const folder = await mkdtemp(join(tmpdir(), "settle-anvil-"));
  const port = await freePort();
  const args = ["--host", "127.0.0.1", "--port", `${port}`, "--hardfork", "prague", "--gas-limit", `${BLOCK_GAS}`,
    "--no-request-size-limit", "--no-mining"];
  const node = new Anvil(nodes.anvil.program(), args, folder, port);
  await node.start();
  await node.connect();
  node.mine();
  return node;
}
