// Several chunks in one transaction.

import assert from "node:assert/strict";
import { test } from "node:test";
import { startAnvil } from "./support/node.mjs";
import { checkSettled, setUp } from "./support/settlement.mjs";

test("several chunks go into one transaction, for less gas", async (t) => {
  const node = await startAnvil();
  t.after(() => node.stop());
  const each = {};
  for (const batch of [1, 4, 16]) {
    const settlement = await setUp(t, node, { sink: { batch, confirmations: 1 } });
    settlement.mill.start();
    await settlement.mill.ends();
    const { transactions, gas } = await checkSettled(settlement);
    const least = Math.ceil(16 / batch);
    assert.ok(transactions.length >= least && (batch === 1 || transactions.length < 16), `${transactions.length} transactions`);
    if (batch === 1) assert.equal(transactions.length, 16);
    each[batch] = gas / 16n;
    t.diagnostic(`batch = ${batch}: ${transactions.length} transactions, ${gas / 16n} gas for each chunk`);
  }
  assert.ok(each[4] < each[1] && each[16] <= each[4]);
});
