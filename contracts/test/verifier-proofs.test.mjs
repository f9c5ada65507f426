// The contracts that `proofmill zkey export-solidity` writes, over both curves and with 1, 8 and 32 public inputs: what they
// take and what they refuse. The proofs are simulated, see `support/simulated.mjs`.

import assert from "node:assert/strict";
import { after, before, describe, test } from "node:test";
import { compile } from "../compile.mjs";
import { curves } from "./support/curves.mjs";
import { deploy } from "./support/harness.mjs";
import { startNode } from "./support/nodes.mjs";
import { proofmill } from "./support/proofmill.mjs";
import { Random } from "./support/random.mjs";
import { SimulatedKey, withFiles } from "./support/simulated.mjs";
import { accepted, ask, gasOf, neverFalse, printTable, refused, steps } from "./support/verifiers.mjs";

const COUNTS = [1, 8, 32];

/** Random changes of calldata for each curve. */
const MUTATIONS = 300;

const names = ["A.x", "A.y", "B.0", "B.1", "B.2", "B.3", "C.x", "C.y"];

/** The list with one element replaced. */
const replaced = (list, at, value) => list.map((it, index) => (index === at ? value : it));

for (const curve of curves) {
  describe(`a contract over ${curve.name}`, () => {
    const node = {};
    const keys = COUNTS.map((count) => new SimulatedKey(curve, count));
    const contracts = [];
    before(async () => {
      Object.assign(node, await startNode("anvil"));
      for (const key of keys) contracts.push(await deploy(node, key.artifact()));
    });
    after(() => node.stop?.());

    /** The first key, its contract, one of its proofs, and functions that call the contract. */
    const one = (at = 0) => {
      const [key, contract] = [keys[at], contracts[at]];
      const proof = key.prove();
      const args = (coordinates, inputs = proof.inputs) => curve.verifyArguments(coordinates, inputs);
      return { key, contract, proof, ...proof, args,
        takes: (coordinates, inputs, name) => accepted(contract, "verifyProof", args(coordinates, inputs), name),
        refuses: (coordinates, inputs, name) => refused(contract, "verifyProof", args(coordinates, inputs), name) };
    };

    test("valid proofs are taken, and not for other inputs", async () => {
      for (const at of keys.keys()) {
        const { key, coordinates, inputs, takes, refuses } = one(at);
        await takes(coordinates, inputs, "valid");
        for (const index of inputs.keys()) {
          await refuses(coordinates, replaced(inputs, index, (inputs[index] + 1n) % curve.r), `input ${index} plus 1`);
        }
        await refuses(key.prove().coordinates, inputs, "another proof");
        const extreme = Array.from({ length: key.inputs }, (_, index) => (index % 2 ? 0n : curve.r - 1n));
        await takes(key.prove({ inputs: extreme }).coordinates, extreme, "inputs 0 and r - 1");
        await takes(key.prove({ inputs: extreme.map(() => 0n) }).coordinates, extreme.map(() => 0n), "zero inputs");
      }
    });

    test("inputs that are not below r are refused", async () => {
      for (const at of keys.keys()) {
        const { key, coordinates, inputs, refuses } = one(at);
        for (const index of inputs.keys()) {
          for (let alias = inputs[index] + curve.r; alias < 1n << 256n; alias += curve.r) {
            await refuses(coordinates, replaced(inputs, index, alias), `an alias of input ${index}`);
          }
        }
        const zeros = inputs.map(() => 0n);
        const { coordinates: forZeros } = key.prove({ inputs: zeros });
        await refuses(forZeros, replaced(zeros, 0, curve.r), "r for 0");
        await refuses(coordinates, replaced(inputs, 0, (1n << 256n) - 1n), "all ones");
      }
    });

    test("every coordinate counts, and must be below p", async () => {
      const { coordinates, inputs, refuses } = one();
      const limit = 1n << BigInt(8 * curve.coordinateBytes);
      for (const [at, name] of names.entries()) {
        const value = coordinates[at];
        for (const [what, other] of [["plus 1", value + 1n], ["plus p", value + curve.p], ["zero", 0n], ["p", curve.p],
          ["negated", curve.p - value], ["all ones", limit - 1n], ["with the first bit", value + limit / 2n]]) {
          if (other < limit) await refuses(replaced(coordinates, at, other), inputs, `${name} ${what}`);
        }
      }
    });

    test("points in other places, and points that are not on their curve, are refused", async () => {
      const { coordinates, inputs, refuses } = one();
      const [ax, ay, b0, b1, b2, b3, cx, cy] = coordinates;
      await refuses([cx, cy, b0, b1, b2, b3, ax, ay], inputs, "A and C exchanged");
      await refuses([ax, ay, b1, b0, b3, b2, cx, cy], inputs, "the parts of B exchanged");
      await refuses([ay, ax, b0, b1, b2, b3, cx, cy], inputs, "x and y of A exchanged");
      await refuses([1n, 1n, b0, b1, b2, b3, cx, cy], inputs, "A off its curve");
      await refuses([ax, ay, 1n, 1n, 1n, 1n, cx, cy], inputs, "B off its curve");
      await refuses([ax, ay, b0, b1, b2, b3, 1n, 1n], inputs, "C off its curve");
    });

    test("points outside the subgroup are refused", async () => {
      const { points, inputs, refuses } = one();
      const [first, second] = [curve.outsideG1(), curve.outsideG2()];
      const cases = { "B outside": { ...points, b: second }, "B by torsion": { ...points, b: points.b.add(curve.timesOrder(second)) } };
      if (first) {
        const torsion = curve.timesOrder(first);
        for (const element of ["a", "c"]) {
          cases[`${element} outside`] = { ...points, [element]: first };
          cases[`${element} by torsion`] = { ...points, [element]: points[element].add(torsion) };
        }
      }
      for (const [name, proof] of Object.entries(cases)) {
        assert.ok(!proof.b.is0());
        await refuses(curve.proofCoordinates(proof), inputs, name);
      }
    });

    test("infinity is the neutral element: the equation decides, in the contract and in `proofmill verify`", async () => {
      const { key, points, inputs, takes, refuses } = one();
      const [zero1, zero2] = [curve.G1.ZERO, curve.G2.ZERO];
      for (const proof of [{ ...points, a: zero1 }, { ...points, b: zero2 }, { ...points, c: zero1 },
        { a: zero1, b: zero2, c: zero1 }]) {
        await refuses(curve.proofCoordinates(proof), inputs, "infinity in a proof's place");
      }
      for (const proof of [key.prove({ a: 0n }), key.prove({ b: 0n }), key.prove({ a: 0n, b: 0n }), key.proveWithoutC()]) {
        await takes(proof.coordinates, proof.inputs, "a valid proof with infinity");
        const args = ["verify", "--vk", "vk.json", "proof.json", "public.json"];
        withFiles(key.files(proof), (folder) => proofmill(args, folder));
      }
    });

    test("a proof made anew from another is valid for the same inputs only", async () => {
      const { key, points, inputs, takes, refuses } = one();
      const factor = key.scalar();
      const again = { a: points.a.multiply(curve.Fr.inv(factor)), b: points.b.multiply(factor), c: points.c };
      await takes(curve.proofCoordinates(again), inputs, "rescaled");
      const negated = { a: points.a.negate(), b: points.b.negate(), c: points.c };
      await takes(curve.proofCoordinates(negated), inputs, "negated");
      await refuses(curve.proofCoordinates({ ...points, a: points.a.negate() }), inputs, "A negated");
      await refuses(curve.proofCoordinates(again), key.scalars(1), "other inputs");
    });

    test("random changes of a valid call are never taken", async (t) => {
      const random = new Random(`mutations ${curve.name}`);
      const { contract, coordinates, inputs, args } = one(1);
      const data = contract.interface.encodeFunctionData("verifyProof", args(coordinates));
      const good = Buffer.from(data.slice(2), "hex");
      const to = await contract.getAddress();
      const call = (bytes) => node.provider.call({ to, data: `0x${bytes.toString("hex")}`, gasLimit: 3_000_000n });
      assert.equal(BigInt(await call(good)), 1n);
      let [refusals, reverts] = [0, 0];
      for (let count = 0; count < MUTATIONS; ++count) {
        const changed = mutated(good, random);
        const answer = await call(changed).catch((error) => {
          assert.equal(error.code, "CALL_EXCEPTION", error.stack);
          return null;
        });
        if (answer === null) reverts += 1;
        else if (BigInt(answer) === 0n) refusals += 1;
        else assert.fail(`taken: ${changed.toString("hex")}`);
      }
      assert.equal(inputs.length, 8);
      t.diagnostic(`${refusals} answered false, ${reverts} reverted while decoding`);
    });

    test("a call with too little gas for the precompiles says so, instead of false", async (t) => {
      const { contract, args, coordinates } = one(1);
      const limitsOf = (enough) => steps(40_000n, enough + 20_000n, 3_000n);
      const { taken, starved, outOfGas } = await neverFalse(node, contract, "verifyProof", args(coordinates), limitsOf);
      t.diagnostic(JSON.stringify({ taken, starved, outOfGas }));
      assert.ok(starved > 0);
    });

    test("with the gas that its comment names a false proof is answered false", async () => {
      for (const at of keys.keys()) {
        const { key, contract, coordinates, args } = one(at);
        const [, limit] = /give this call a limit, of about (\d+) gas/.exec(key.source().replaceAll(/\s*\/\/\/\s*/g, " "));
        const data = contract.interface.encodeFunctionData("verifyProof", args(replaced(coordinates, 0, 1n)));
        const bytes = Buffer.from(data.slice(2), "hex");
        const calldata = bytes.reduce((sum, byte) => sum + (byte === 0 ? 4n : 16n), 0n);
        const gasLimit = BigInt(limit) + 21_000n + calldata;
        const answer = await node.provider.call({ to: await contract.getAddress(), data, gasLimit });
        assert.equal(BigInt(answer), 0n);
      }
    });

    test("where there are no precompiles no proof is valid", async () => {
      const key = keys[0];
      // As on a chain without them: calls of empty accounts, which succeed and return nothing.
      const absent = key.source("--batch").replaceAll(/( private constant [A-Z0-9_]+ = 0x)(0[678bcf];)/g, "$1ff$2");
      assert.equal(absent.match(/ = 0xff0.;/g).length, 3);
      const contract = await deploy(node, compile({ "Verifier.sol": absent }).Verifier);
      const proof = key.prove();
      await refused(contract, "verifyProof", curve.verifyArguments(proof.coordinates, proof.inputs));
      await refused(contract, "verifyProofs", curve.batchArguments([proof, key.prove()]));
    });

    test("gas", async (t) => {
      const rows = [];
      for (const [at, count] of COUNTS.entries()) {
        const { contract, args, coordinates } = one(at);
        const gas = await gasOf(node, contract, "verifyProof", args(coordinates));
        rows.push([count, gas.execution, gas.transaction, contract.deploymentGas]);
      }
      printTable(t, [`public inputs, ${curve.name}`, "verifyProof", "in a transaction", "deploy"], rows);
    });

    if (curve.name === "bls12-381") {
      test("other lengths are refused", async () => {
        const { contract, coordinates, inputs } = one(1);
        const proof = curve.hex(coordinates);
        const call = (hex, given = inputs) => ask(contract, "verifyProof", [`0x${hex}`, given]);
        assert.equal(await call(proof), true);
        for (const hex of ["", proof.slice(2), `${proof}00`, proof + proof]) assert.equal(await call(hex), false);
        for (const given of [[], inputs.slice(1), [...inputs, 0n]]) assert.equal(await call(proof, given), false);
      });
    }
  });
}

/** A copy with one to three random changes behind the selector: bits, bytes, words exchanged or set. */
function mutated(good, random) {
  const changed = Buffer.from(good);
  do {
    for (let left = 1 + random.below(3); left > 0; --left) {
      const at = 4 + random.below(changed.length - 4);
      const word = 4 + 32 * random.below((changed.length - 4) / 32);
      const other = 4 + 32 * random.below((changed.length - 4) / 32);
      const changes = [() => { changed[at] ^= 1 << random.below(8); }, () => { changed[at] = random.below(256); },
        () => { changed.copy(changed, word, other, other + 32); }, () => { changed.fill(0, word, word + 32); },
        () => { random.bytes32().copy(changed, word); }];
      random.pick(changes)();
    }
  } while (changed.equals(good));
  return changed;
}
