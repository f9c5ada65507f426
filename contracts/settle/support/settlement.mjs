// A light client on a node, an account with funds, the chunks of the demo, and what must be true when they are settled.

import assert from "node:assert/strict";
import { readFileSync, readdirSync } from "node:fs";
import { join } from "node:path";
import { Wallet, formatEther, parseEther } from "ethers";
import { readChunks } from "../../test/support/demo.mjs";
import { artifactsWith, deploy } from "../../test/support/harness.mjs";
import { proofsOf } from "../../test/support/program.mjs";
import { Mill, until } from "./mill.mjs";
import { startRecorder } from "./recorder.mjs";

const GENESIS = { hash: `0x${"0".repeat(64)}`, nextHeight: 0, bits: 0x1d00ffff, time: 1231006505, periodStart: 1231006505 };

/** Funds of the account, in wei. */
const FUNDS = parseEther("10");

const artifacts = artifactsWith({ verifiers: ["Verifier2"] });

/** The 16 chunks of two headers, as the contract takes them. */
export const chunks = readChunks(proofsOf("pairs"));

/** The chunks as messages of a source: `first`, `last` and the payload's text, as `proofmill demo` emitted it. */
export const messages = readdirSync(proofsOf("pairs")).filter((name) => name.endsWith(".json")).sort().map((name, index) => {
  const { first, last } = chunks[index];
  return { first, last, payload: readFileSync(join(proofsOf("pairs"), name), "utf8").trim() };
});

/**
 * Deploys a light client, funds a new account, and writes a workflow whose transactions are recorded. All ends with test `t`.
 *
 * `given.messages` replaces the 16 chunks, `given.sink` adds fields of the sink; `given.signer` is called with the account and
 * returns the address of a server that signs for it.
 */
export async function setUp(t, node, given = {}) {
  const verifier = await deploy(node, artifacts.Verifier2);
  const contract = await deploy(node, artifacts.HeaderChain, verifier, 2, GENESIS);
  const account = Wallet.createRandom();
  await (await node.signer.sendTransaction({ to: account.address, value: FUNDS })).wait();
  const recorder = await startRecorder(node.url);
  t.after(recorder.stop);
  const signer = given.signer && { signer: await given.signer(account), account: account.address };
  const sink = { rpc: recorder.url, contract: await contract.getAddress(), ...given.sink, ...signer };
  const key = signer ? undefined : account.privateKey;
  const mill = await Mill.create({ messages: given.messages ?? messages, key, sink });
  t.after(() => mill.remove());
  return { node, contract, account: account.address, sent: recorder.sent, mill };
}

/** The account's transactions in the chain, oldest first, each with its receipt. */
export async function transactionsOf({ node, account }) {
  const found = [];
  const head = await node.head();
  for (let number = 0; number <= head; ++number) {
    const block = await node.ask("eth_getBlockByNumber", `0x${number.toString(16)}`, true);
    for (const transaction of block.transactions.filter(({ from }) => from === account.toLowerCase())) {
      const receipt = await node.ask("eth_getTransactionReceipt", transaction.hash);
      assert.equal(receipt.blockHash, block.hash, "the receipt is of the chain");
      found.push({ transaction, receipt });
    }
  }
  return found;
}

/** The account's next nonce, by the last block or with what waits. */
export async function nonceOf({ node, account }, block = "latest") {
  return Number(await node.ask("eth_getTransactionCount", account, block));
}

/** Ends of the chunks that the contract has accepted, oldest first. From the receipts: geth's index of logs does not survive kills. */
async function acceptedBy({ node, contract }) {
  const address = (await contract.getAddress()).toLowerCase();
  const { topicHash } = contract.interface.getEvent("ChunkAccepted");
  const found = [];
  const head = await node.head();
  for (let number = 0; number <= head; ++number) {
    const receipts = await node.ask("eth_getBlockReceipts", `0x${number.toString(16)}`);
    const logs = receipts.flatMap((receipt) => receipt.logs);
    const accepted = logs.filter((log) => log.address === address && log.topics[0] === topicHash);
    found.push(...accepted.map((log) => contract.interface.parseLog(log).args.lastHash));
  }
  return found;
}

/** Waits until the contract has accepted the first `count` chunks. */
export function accepts({ contract, mill }, count) {
  return until(`${count} chunks are accepted`, async () => {
    const is = await contract.known(chunks[count - 1].chunk.lastHash);
    if (!is && !mill.isRunning) throw new Error(`proofmill run has ended\n${mill.lastLog()}`);
    return is;
  }).catch((error) => {
    throw new Error(`${error.message}\n${mill.lastLog()}`);
  });
}

/**
 * Checks that each of `expected` chunks, all by default, was accepted once and in order, by as many transactions as the account
 * has nonces, of which none reverted. Returns the transactions, and what they cost.
 */
export async function checkSettled(settlement, expected = chunks) {
  const { node, contract, account } = settlement;
  const ends = expected.map(({ chunk }) => chunk.lastHash);
  assert.deepEqual(await acceptedBy(settlement), ends, "each chunk is accepted once and in order");
  assert.equal(await contract.tip(), ends.at(-1));
  const transactions = await transactionsOf(settlement);
  const effects = transactions.map(({ receipt }) => receipt.logs.length / 2);
  for (const [nonce, { transaction, receipt }] of transactions.entries()) {
    assert.equal(Number(transaction.nonce), nonce, "no nonce is left out");
    assert.equal(receipt.status, "0x1", `the transaction with nonce ${nonce} has not reverted`);
    // Two events for each chunk: it was accepted, and the tip has changed.
    assert.ok(effects[nonce] >= 1, `the transaction with nonce ${nonce} has an effect`);
  }
  assert.equal(effects.reduce((sum, count) => sum + count, 0), ends.length);
  assert.equal(await nonceOf(settlement), transactions.length, "every nonce is that of a transaction that settled");
  assert.equal(await nonceOf(settlement, "pending"), transactions.length, "no transaction waits");
  const spent = transactions.reduce((sum, { receipt }) => sum + BigInt(receipt.gasUsed) * BigInt(receipt.effectiveGasPrice), 0n);
  assert.equal(await node.provider.getBalance(account), FUNDS - spent, "nothing else was paid");
  return { transactions, spent, gas: transactions.reduce((sum, { receipt }) => sum + BigInt(receipt.gasUsed), 0n) };
}

/** Wei, for people. */
export const ether = (wei) => `${wei} wei (${formatEther(wei)} ether)`;
