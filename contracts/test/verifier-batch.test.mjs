// The batch verifiers of `proofmill zkey export-solidity --batch`, over both curves.

import assert from "node:assert/strict";
import { after, before, describe, test } from "node:test";
import { curves } from "./support/curves.mjs";
import { deploy } from "./support/harness.mjs";
import { startNode } from "./support/nodes.mjs";
import { proofmill } from "./support/proofmill.mjs";
import { Random } from "./support/random.mjs";
import { SimulatedKey, withFiles } from "./support/simulated.mjs";
import { accepted, ask, gasOf, neverFalse, printTable, refused, steps } from "./support/verifiers.mjs";

const COUNTS = [1, 2, 4, 8, 16, 32];

/** Random changes of batches for each curve. */
const MUTATIONS = 200;

const replaced = (list, at, value) => list.map((it, index) => (index === at ? value : it));

for (const curve of curves) {
  describe(`a batch verifier over ${curve.name}`, () => {
    const node = {};
    const key = new SimulatedKey(curve, 3);
    const entries = Array.from({ length: 32 }, () => key.prove());
    let contract;
    before(async () => {
      Object.assign(node, await startNode("anvil"));
      contract = await deploy(node, key.artifact("--batch"));
    });
    after(() => node.stop?.());

    const takes = (batch, name) => accepted(contract, "verifyProofs", curve.batchArguments(batch), name);
    const refuses = (batch, name) => refused(contract, "verifyProofs", curve.batchArguments(batch), name);
    /** An entry with another coordinate or input. */
    const withCoordinate = (entry, at, value) => ({ ...entry, coordinates: replaced(entry.coordinates, at, value) });
    const withInput = (entry, at, value) => ({ ...entry, inputs: replaced(entry.inputs, at, value) });

    test("valid batches are taken, of any size; the empty one is not", async () => {
      for (const count of [1, 2, 3, 5, 8, 32]) await takes(entries.slice(0, count), `${count} proofs`);
      await takes([entries[0], entries[0], entries[0]], "the same proof three times");
      await refuses([], "no proofs");
      await accepted(contract, "verifyProof", curve.verifyArguments(entries[0].coordinates, entries[0].inputs), "one alone");
    });

    test("one bad proof is found in every place", async () => {
      const batch = entries.slice(0, 8);
      for (const at of batch.keys()) {
        const entry = batch[at];
        const other = key.prove();
        const bad = { "an input plus 1": withInput(entry, 1, entry.inputs[1] + 1n),
          "another proof's inputs": { ...entry, inputs: other.inputs },
          "another C": { ...entry, coordinates: [...entry.coordinates.slice(0, 6), ...other.coordinates.slice(6)] },
          "A negated": withCoordinate(entry, 1, curve.p - entry.coordinates[1]),
          "C negated": withCoordinate(entry, 7, curve.p - entry.coordinates[7]) };
        for (const [name, it] of Object.entries(bad)) await refuses(replaced(batch, at, it), `${name} at ${at}`);
      }
    });

    test("aliases, points off their curve and outside the subgroup are found in every place", async () => {
      const batch = entries.slice(0, 4);
      const limit = 1n << BigInt(8 * curve.coordinateBytes);
      const [first, second] = [curve.outsideG1(), curve.outsideG2()];
      for (const at of batch.keys()) {
        const entry = batch[at];
        for (const index of entry.inputs.keys()) {
          await refuses(replaced(batch, at, withInput(entry, index, entry.inputs[index] + curve.r)), `input ${index} plus r`);
        }
        for (const [index, value] of entry.coordinates.entries()) {
          await refuses(replaced(batch, at, withCoordinate(entry, index, value + 1n)), `coordinate ${index} off`);
          if (value + curve.p >= limit) continue;
          await refuses(replaced(batch, at, withCoordinate(entry, index, value + curve.p)), `coordinate ${index} plus p`);
        }
        const torsion = { b: entry.points.b.add(curve.timesOrder(second)) };
        const others = [{ b: second }, torsion];
        if (first) {
          for (const element of ["a", "c"]) {
            others.push({ [element]: first }, { [element]: entry.points[element].add(curve.timesOrder(first)) });
          }
        }
        for (const other of others) {
          const coordinates = curve.proofCoordinates({ ...entry.points, ...other });
          await refuses(replaced(batch, at, { ...entry, coordinates }), `outside at ${at}: ${Object.keys(other)}`);
        }
      }
    });

    test("proofs that are exchanged, and faults that cancel out without weights, are found", async () => {
      const batch = entries.slice(0, 4);
      const exchanged = (left, right) => {
        const inputs = batch.map((entry) => entry.inputs);
        [inputs[left], inputs[right]] = [inputs[right], inputs[left]];
        return batch.map((entry, at) => ({ ...entry, inputs: inputs[at] }));
      };
      for (const [left, right] of [[0, 1], [1, 2], [0, 3], [2, 3]]) await refuses(exchanged(left, right), `${left}, ${right}`);
      await takes([batch[2], batch[0], batch[3], batch[1]], "proofs and inputs in another order");
      // The sum of all C is that of the valid batch.
      const shift = curve.G1.BASE.multiply(12345n);
      for (const [left, right] of [[0, 1], [1, 2], [2, 3]]) {
        const shifted = batch.map(({ points, inputs }, at) => {
          const c = at === left ? points.c.add(shift) : at === right ? points.c.add(shift.negate()) : points.c;
          return { coordinates: curve.proofCoordinates({ ...points, c }), inputs };
        });
        await refuses(shifted, `C of ${left} and ${right} shifted`);
      }
      // The sum of all inputs is that of the valid batch.
      const [one, two] = [1, 2].map((at) => batch[at].inputs[0]);
      await refuses([batch[0], withInput(batch[1], 0, one + 1n), withInput(batch[2], 0, two - 1n)], "inputs shifted");
    });

    test("infinity is the neutral element, as in one proof", async () => {
      const zero = (entry, from, to) => ({ ...entry, coordinates: entry.coordinates.map((it, at) => (at >= from && at < to ? 0n : it)) });
      const valid = [key.prove({ a: 0n }), key.prove({ b: 0n }), key.proveWithoutC(), entries[0]];
      await takes(valid, "valid proofs with infinity");
      await takes([...valid].reverse(), "in another order");
      for (const at of [0, 1]) {
        for (const [from, to] of [[0, 2], [2, 6], [6, 8], [0, 8]]) {
          await refuses(replaced(entries.slice(0, 2), at, zero(entries[at], from, to)), `zeros at ${at}: ${from} to ${to}`);
        }
      }
    });

    test("arrays of other lengths are refused", async () => {
      const [proofs, inputs] = curve.batchArguments(entries.slice(0, 2));
      const call = (...args) => ask(contract, "verifyProofs", args);
      assert.equal(await call(proofs, inputs), true);
      for (const given of [[], inputs.slice(1), inputs.slice(0, -1), [...inputs, inputs[0]]]) {
        assert.equal(await call(proofs, given), false);
      }
      if (curve.name === "bls12-381") {
        for (const bytes of ["0x", proofs.slice(0, -2), `${proofs}00`, proofs.slice(0, 2 + 1024)]) {
          assert.equal(await call(bytes, inputs), false);
        }
      } else {
        assert.equal(await call(proofs.slice(1), inputs), false);
      }
    });

    test("`proofmill calldata --batch` is the batch's calldata", () => {
      const batch = entries.slice(0, 3);
      const files = Object.assign({}, ...batch.map((entry, at) => ({ [`${at}.proof.json`]: curve.proofJson(entry.points),
        [`${at}.public.json`]: entry.inputs.map(String) })));
      withFiles(files, (folder) => {
        const pairs = batch.flatMap((_, at) => [`${at}.proof.json`, `${at}.public.json`]);
        const expected = contract.interface.encodeFunctionData("verifyProofs", curve.batchArguments(batch));
        assert.equal(proofmill(["calldata", "--batch", "--abi", ...pairs], folder).trim(), expected);
        const args = JSON.parse(`[${proofmill(["calldata", "--batch", ...pairs], folder)}]`);
        assert.equal(contract.interface.encodeFunctionData("verifyProofs", args), expected);
        const answer = JSON.parse(proofmill(["calldata", "--batch", "--json", ...pairs], folder));
        assert.equal(answer.calldata, expected);
        assert.equal(answer.selector, expected.slice(0, 10));
        proofmill(["calldata", ...pairs], folder, 2);
      });
    });

    test("random changes of a valid batch are never taken", async () => {
      const random = new Random(`batches ${curve.name}`);
      for (let count = 0; count < MUTATIONS; ++count) {
        const batch = entries.slice(0, 1 + random.below(4));
        const at = random.below(batch.length);
        const number = BigInt(`0x${random.bytes32().toString("hex")}`);
        const bad = random.pick([() => withInput(batch[at], random.below(3), number),
          () => withInput(batch[at], random.below(3), number % curve.r),
          () => withCoordinate(batch[at], random.below(8), number),
          () => ({ ...batch[at], coordinates: key.prove().coordinates }),
          () => ({ ...batch[at], coordinates: entries[31 - at].coordinates })])();
        await refuses(replaced(batch, at, bad), `change ${count}`);
      }
    });

    test("a call with too little gas for the precompiles says so, instead of false", async () => {
      const args = curve.batchArguments(entries.slice(0, 3));
      await neverFalse(node, contract, "verifyProofs", args, (enough) => steps(60_000n, enough + 20_000n, 7_000n));
    });

    test("gas", async (t) => {
      const rows = [];
      const [first] = entries;
      const single = await gasOf(node, contract, "verifyProof", curve.verifyArguments(first.coordinates, first.inputs));
      rows.push(["verifyProof", single.execution, single.execution, single.transaction]);
      for (const count of COUNTS) {
        const gas = await gasOf(node, contract, "verifyProofs", curve.batchArguments(entries.slice(0, count)));
        const each = (amount) => amount / BigInt(count);
        rows.push([`verifyProofs, ${count}`, gas.execution, each(gas.execution), each(gas.transaction)]);
        if (count >= 2) assert.ok(gas.execution < BigInt(count) * single.execution, `${count} proofs`);
      }
      printTable(t, [`3 public inputs, ${curve.name}`, "gas", "for each proof", "for each, in a transaction"], rows);
    });
  });
}
