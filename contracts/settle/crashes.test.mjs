// The program is killed between signing a transaction and its confirmation, again and again.

import assert from "node:assert/strict";
import { test } from "node:test";
import { setTimeout as sleep } from "node:timers/promises";
import { Random } from "../test/support/random.mjs";
import { until } from "./support/mill.mjs";
import { startGeth } from "./support/node.mjs";
import { checkSettled, ether, nonceOf, setUp, transactionsOf } from "./support/settlement.mjs";

/** Kills between a signature and its confirmation. */
const KILLS = 20;

/** Most of them for one transaction, so that they hit transactions from the first to the last. */
const KILLS_EACH = 2;

const CONFIRMATIONS = 3;

/** The phase of the last transaction of the journal. */
async function phaseOf(settlement) {
  const last = settlement.mill.journal().at(-1);
  if (!last) return "nothing signed";
  const placed = (await transactionsOf(settlement)).find(({ transaction }) => Number(transaction.nonce) === last.nonce);
  if (placed) {
    const depth = (await settlement.node.head()) - Number(placed.receipt.blockNumber) + 1;
    return depth < CONFIRMATIONS ? "in a young block" : "confirmed";
  }
  return (await nonceOf(settlement, "pending")) > last.nonce ? "at the node" : "signed, not at the node";
}

test("20 kills between signature and confirmation leave no gap, no repeat and no reverted transaction", async (t) => {
  const node = await startGeth();
  t.after(() => node.stop());
  const settlement = await setUp(t, node, { sink: { confirmations: CONFIRMATIONS } });
  const { mill, sent } = settlement;
  const random = new Random("moments of kills");
  const phases = {};
  const kills = new Map();
  let count = 0;
  while (count < KILLS) {
    mill.start();
    // A transaction that the kills have not ended yet: signed now, or open since the last kill.
    const open = await until("a transaction is signed", async () => {
      assert.ok(mill.isRunning, `all was settled after ${count} kills\n${mill.lastLog()}`);
      const last = mill.journal().at(-1);
      return last && (kills.get(last.nonce) ?? 0) < KILLS_EACH && last;
    });
    // Half of them soon after the signature, the others at any time until the confirmation.
    await sleep(random.below(2) === 0 ? random.below(150) : random.below(1000 * CONFIRMATIONS));
    await mill.kill();
    const phase = await phaseOf(settlement);
    phases[phase] = (phases[phase] ?? 0) + 1;
    kills.set(open.nonce, (kills.get(open.nonce) ?? 0) + 1);
    if (phase !== "confirmed") count += 1;
  }
  mill.start();
  await mill.ends();
  const { transactions, spent } = await checkSettled(settlement);
  assert.equal(transactions.length, 16, "each chunk has a transaction of its own");
  t.diagnostic(`kills by the transaction's phase: ${JSON.stringify(phases)}`);
  t.diagnostic(`offers to the node: ${sent.length}; settled transactions: ${transactions.length}; spent: ${ether(spent)}`);
});
