// A chunk that does not follow, and signers that sign something else: nothing is sent.

import assert from "node:assert/strict";
import { test } from "node:test";
import { setTimeout as sleep } from "node:timers/promises";
import { Wallet } from "ethers";
import { startAnvil } from "./support/node.mjs";
import { checkSettled, chunks, messages, nonceOf, setUp } from "./support/settlement.mjs";
import { startSigner } from "./support/signer.mjs";

test("a chunk that does not follow is refused with the contract's reason before it costs anything", async (t) => {
  const node = await startAnvil();
  t.after(() => node.stop());
  // The third message claims the third chunk's blocks and has the fourth chunk.
  const wrong = { ...messages[2], payload: messages[3].payload };
  const settlement = await setUp(t, node, { messages: [...messages.slice(0, 2), wrong] });
  const { mill, sent } = settlement;
  mill.start();
  const { message } = await mill.says("emission refused");
  assert.match(message, /would refuse blocks 4 to 5: UnknownParent/);
  assert.ok(message.includes(chunks[3].chunk.prevHash.slice(2)), message);
  const before = sent.length;
  // It is tried again each second.
  await mill.says("emission refused", 2);
  assert.equal(sent.length, before, "nothing is sent");
  await checkSettled(settlement, chunks.slice(0, 2));
  t.diagnostic(message);
});

test("a remote signer signs, and one that signs something else is refused", async (t) => {
  const node = await startAnvil();
  t.after(() => node.stop());
  let signer;
  const settlement = await setUp(t, node, {
    messages: messages.slice(0, 3),
    signer: async (account) => {
      signer = await startSigner(account);
      t.after(signer.stop);
      return signer.url;
    },
  });
  const { mill, sent } = settlement;
  const frauds = [
    ["another receiver", (asked) => ({ ...asked, to: Wallet.createRandom().address })],
    ["another value", (asked) => ({ ...asked, value: 1n })],
    ["another data", (asked) => ({ ...asked, data: `${asked.data}00` })],
    ["another nonce", (asked) => ({ ...asked, nonce: asked.nonce + 1 })],
    ["another chain identifier", (asked) => ({ ...asked, chainId: asked.chainId + 1n })],
    ["another gas limit", (asked) => ({ ...asked, gasLimit: asked.gasLimit + 1n })],
    ["another fee", (asked) => ({ ...asked, maxFeePerGas: asked.maxFeePerGas * 2n })],
    ["another priority fee", (asked) => ({ ...asked, maxPriorityFeePerGas: asked.maxPriorityFeePerGas + 1n })],
  ];
  signer.change = frauds[0][1];
  mill.start();
  for (const [what, change] of frauds) {
    signer.change = change;
    await mill.says(`the signer signed ${what}`);
  }
  signer.change = (asked) => asked;
  signer.wallet = Wallet.createRandom();
  await mill.says("the signer signed another sender");
  await sleep(500);
  assert.deepEqual([sent.length, await nonceOf(settlement), mill.journal().length], [0, 0, 0], "nothing is sent");
  signer.wallet = signer.account;
  await mill.ends();
  const { transactions } = await checkSettled(settlement, chunks.slice(0, 3));
  assert.equal(transactions.length, 3);
  t.diagnostic(`signatures refused: ${mill.messages("the signer signed another").length}; settled afterwards: 3`);
});
