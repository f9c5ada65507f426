// The node is killed and started again, and its chain is reorganised, while chunks are settled.

import assert from "node:assert/strict";
import { test } from "node:test";
import { until } from "./support/mill.mjs";
import { startAnvil, startGeth } from "./support/node.mjs";
import { accepts, checkSettled, chunks, ether, nonceOf, setUp, transactionsOf } from "./support/settlement.mjs";

const CONFIRMATIONS = 2;

/**
 * Changes the chain by `change`, and waits until each of the account's transactions that is undone by that is offered again, or back
 * in the chain since the node has kept it. Returns the transactions that were undone.
 */
async function reorganise(settlement, change) {
  const { node, sent } = settlement;
  const before = await transactionsOf(settlement);
  const fromMs = Date.now();
  await change();
  const undone = [];
  for (const { transaction, receipt } of before) {
    const block = await node.ask("eth_getBlockByNumber", receipt.blockNumber, false);
    if (block?.hash !== receipt.blockHash) undone.push({ nonce: Number(transaction.nonce), block: receipt.blockHash });
  }
  for (const one of undone) {
    await until(`nonce ${one.nonce} is there again\n${settlement.mill.lastLog()}`, async () => {
      one.isOffered = sent.some(({ atMs, transaction }) => atMs >= fromMs && transaction.nonce === one.nonce);
      return one.isOffered || (await nonceOf(settlement)) > one.nonce;
    });
  }
  return undone;
}

/**
 * Number of blocks to undo so that the last `count` of the account's transactions are undone. All but the last of them had their
 * confirmations, since one is sent only after that. One more, as a block may be made meanwhile.
 */
async function depthOf(settlement, count) {
  const { receipt } = (await transactionsOf(settlement)).at(-count);
  return (await settlement.node.head()) - Number(receipt.blockNumber) + 2;
}

/** Undoes confirmed transactions by `undo`, which is given the number of blocks; returns what was undone. */
async function undoConfirmed(settlement, undo) {
  const undone = await undo(await depthOf(settlement, 3));
  assert.ok(undone.length >= 2, "a confirmed transaction is undone");
  return undone;
}

/** Checks the end, and that transactions that were undone are in other blocks now; reports. */
async function checkAfter(t, settlement, undone) {
  const { mill, sent } = settlement;
  const { transactions, spent } = await checkSettled(settlement);
  assert.equal(transactions.length, 16, "each chunk has a transaction of its own");
  for (const { nonce, block } of undone) {
    assert.notEqual(transactions[nonce].receipt.blockHash, block, `nonce ${nonce} is in another block`);
  }
  const offered = undone.filter(({ isOffered }) => isOffered);
  assert.ok(offered.length > 0, "the program offered transactions again");
  assert.ok(mill.messages("undone by a reorganisation").length > 0, "the log says that");
  t.diagnostic(`undone in a block: nonces ${undone.map(({ nonce }) => nonce).join(", ")}; ${offered.length} of ${undone.length} offered `
    + "again, the others put back by the node");
  t.diagnostic(`offers to the node: ${sent.length}; settled transactions: ${transactions.length}; spent: ${ether(spent)}`);
}

test("geth is killed, stopped and set back", async (t) => {
  const node = await startGeth();
  t.after(() => node.stop());
  const settlement = await setUp(t, node, { sink: { confirmations: CONFIRMATIONS } });
  const { mill } = settlement;
  // A killed geth loses its last blocks; not the contract's.
  await node.grows(8);
  const setBack = (depth) => reorganise(settlement, async () => {
    await node.ask("debug_setHead", `0x${((await node.head()) - depth).toString(16)}`);
  });
  const restart = (signal) => reorganise(settlement, async () => {
    await node.kill(signal);
    await node.start();
  });
  mill.start();
  await accepts(settlement, 2);
  const undone = await setBack(2);
  await accepts(settlement, 4);
  undone.push(...await restart("SIGKILL"));
  await accepts(settlement, 6);
  undone.push(...await undoConfirmed(settlement, setBack));
  await accepts(settlement, 8);
  undone.push(...await restart("SIGTERM"));
  await accepts(settlement, 10);
  undone.push(...await undoConfirmed(settlement, setBack));
  await mill.ends();
  await checkAfter(t, settlement, undone);
});

test("anvil's chain is reorganised and rolled back", async (t) => {
  const node = await startAnvil();
  t.after(() => node.stop());
  const settlement = await setUp(t, node, { sink: { confirmations: CONFIRMATIONS } });
  const { mill } = settlement;
  // Other blocks of the same heights, without the transactions.
  const replace = (depth) => reorganise(settlement, () => node.askBetweenBlocks("anvil_reorg", depth, []));
  const rollBack = (depth) => reorganise(settlement, () => node.askBetweenBlocks("anvil_rollback", depth));
  mill.start();
  await accepts(settlement, 2);
  const undone = await replace(2);
  await accepts(settlement, 5);
  undone.push(...await undoConfirmed(settlement, replace));
  await accepts(settlement, 7);
  undone.push(...await undoConfirmed(settlement, rollBack));
  await accepts(settlement, 9);
  // One after the other, faster than a confirmation.
  undone.push(...await replace(CONFIRMATIONS));
  undone.push(...await rollBack(CONFIRMATIONS), ...await replace(CONFIRMATIONS + 2));
  await mill.ends();
  await checkAfter(t, settlement, undone);
});

test("what an earlier process settled is watched when nothing is left to settle", async (t) => {
  const node = await startAnvil();
  t.after(() => node.stop());
  const settlement = await setUp(t, node, { sink: { confirmations: CONFIRMATIONS } });
  const { mill, sent } = settlement;
  mill.start();
  await mill.ends();
  const depth = await depthOf(settlement, 3);
  await node.askBetweenBlocks("anvil_rollback", depth);
  const missing = chunks.length - (await transactionsOf(settlement)).length;
  assert.ok(missing >= 3, "settled transactions are undone while no process runs");
  const offers = sent.length;
  mill.start("--stay");
  await accepts(settlement, chunks.length);
  await mill.kill();
  const { transactions } = await checkSettled(settlement);
  assert.equal(transactions.length, chunks.length);
  t.diagnostic(`undone: ${missing} transactions; offers by the next process: ${sent.length - offers}`);
});
