// The chain's base fee rises above what was offered, above the bound, and falls again.

import assert from "node:assert/strict";
import { test } from "node:test";
import { setTimeout as sleep } from "node:timers/promises";
import { until } from "./support/mill.mjs";
import { startAnvil } from "./support/node.mjs";
import { offersByNonce } from "./support/recorder.mjs";
import { accepts, checkSettled, chunks, ether, setUp } from "./support/settlement.mjs";

const GWEI = 1_000_000_000n;
const MAX_FEE = 100n * GWEI;
const REPLACE_AFTER_MS = 1500;

/** What anvil answers to an offer below the base fee. */
const TOO_LOW = /less than block base fee/;

/** The most offers that may replace each other, each an eighth above the one before, from `first` to the bound. */
function offersMax(first) {
  let count = 1;
  for (let fee = first; fee + (fee + 7n) / 8n <= MAX_FEE; fee += (fee + 7n) / 8n) count += 1;
  return count;
}

/** Checks the offers for one nonce, oldest first. */
function checkOffers(nonce, offers) {
  const [first] = offers.map(({ transaction }) => transaction);
  assert.ok(offers.length <= offersMax(first.maxFeePerGas), `nonce ${nonce}: ${offers.length} offers`);
  for (const [index, { atMs, transaction }] of offers.entries()) {
    const { maxFeePerGas, maxPriorityFeePerGas, to, data, gasLimit, value } = transaction;
    assert.ok(maxFeePerGas <= MAX_FEE && maxPriorityFeePerGas <= maxFeePerGas);
    assert.deepEqual({ to, data, gasLimit, value }, { to: first.to, data: first.data, gasLimit: first.gasLimit, value: 0n });
    if (index === 0) continue;
    const before = offers[index - 1];
    assert.ok(maxFeePerGas * 8n >= before.transaction.maxFeePerGas * 9n, `nonce ${nonce}: an eighth more`);
    assert.ok(maxPriorityFeePerGas * 8n >= before.transaction.maxPriorityFeePerGas * 9n, `nonce ${nonce}: an eighth more`);
    // A first offer that the node does not take is raised at once; every other has its time, here by the recorder's clock.
    const wasRefused = index === 1 && TOO_LOW.test(before.refused ?? "");
    const passedMs = atMs - before.atMs;
    assert.ok(wasRefused || passedMs > REPLACE_AFTER_MS - 500, `nonce ${nonce}: offer ${index + 1} after ${passedMs} ms`);
  }
}

test("fees that spike are followed up to the bound, and no further", async (t) => {
  const node = await startAnvil();
  t.after(() => node.stop());
  const sink = { max_fee_gwei: Number(MAX_FEE / GWEI), replace_after: `${REPLACE_AFTER_MS}ms` };
  const settlement = await setUp(t, node, { sink });
  const { mill, sent } = settlement;
  node.baseFee = 2n * GWEI;
  const offersFor = (nonce) => offersByNonce(sent).get(nonce) ?? [];
  const highest = () => Math.max(-1, ...sent.map(({ transaction }) => transaction.nonce));
  mill.start();
  await accepts(settlement, 2);

  // Above what the first offer allows, and to twenty times that as long as it waits: replaced until it is enough.
  let nonce = highest() + 1;
  await until("the next is offered", () => highest() >= nonce);
  node.baseFee = 20n * GWEI;
  await until("it is replaced", () => offersFor(nonce).length >= 2);
  await accepts(settlement, nonce + 1);
  const followed = offersFor(nonce).length;
  assert.ok(followed <= 3, `${followed} offers follow a spike`);

  // Above the bound while one waits: replaced up to the bound, which is not passed.
  node.baseFee = 2n * GWEI;
  await accepts(settlement, 5);
  nonce = highest() + 1;
  await until("the next is offered", () => highest() >= nonce);
  node.baseFee = 150n * GWEI;
  await sleep(4 * REPLACE_AFTER_MS);
  assert.equal(await settlement.contract.known(chunks[nonce].chunk.lastHash), false, "it is in no block");
  assert.equal(highest(), nonce, "no other is sent meanwhile");
  const stuck = offersFor(nonce).length;
  assert.ok(stuck >= 2, "it is replaced meanwhile");
  node.baseFee = 2n * GWEI;
  await accepts(settlement, nonce + 2);

  // Above the bound when the next would be sent: it is not, and the log says why.
  node.onBlock = (block) => {
    if (block.transactions.length > 0) node.baseFee = 150n * GWEI;
  };
  await until("the fee is high", () => node.baseFee === 150n * GWEI);
  node.onBlock = () => {};
  const { message } = await mill.says("nothing is sent until it falls");
  assert.match(message, /the base fee is 150000000000 wei and `max_fee` 100000000000 wei/);
  const before = sent.length;
  await sleep(3000);
  assert.equal(sent.length, before, "nothing is sent");
  node.baseFee = 60n * GWEI;
  await mill.ends();

  const { transactions, spent } = await checkSettled(settlement);
  assert.equal(transactions.length, 16);
  const byNonce = offersByNonce(sent);
  let bound = 0n;
  for (const [nonce, offers] of byNonce) {
    checkOffers(nonce, offers);
    bound += offers[0].transaction.gasLimit * MAX_FEE;
  }
  assert.equal(byNonce.size, 16);
  const different = [...byNonce.values()].reduce((sum, offers) => sum + offers.length, 0);
  assert.ok(spent <= bound);
  t.diagnostic(`transactions signed: ${different}, of them replacements: ${different - 16}; settled: 16; offers: ${sent.length}`);
  t.diagnostic(`replacements after a spike below the bound: ${followed - 1}; above it: ${stuck - 1}`);
  t.diagnostic(`spent: ${ether(spent)}; bound, gas limits × max_fee: ${ether(bound)}`);
});
