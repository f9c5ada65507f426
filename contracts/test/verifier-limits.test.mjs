// What `proofmill zkey export-solidity` writes at its limits, and what it refuses.

import assert from "node:assert/strict";
import { readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { after, before, describe, test } from "node:test";
import { curves } from "./support/curves.mjs";
import { deploy } from "./support/harness.mjs";
import { startNode } from "./support/nodes.mjs";
import { proofmill } from "./support/proofmill.mjs";
import { SimulatedKey, withFiles } from "./support/simulated.mjs";
import { accepted, neverFalse, steps } from "./support/verifiers.mjs";

/** The most public inputs of a contract, by curve: `inputs_max` in crates/solidity. */
const INPUTS_MAX = { bn254: 201, "bls12-381": 120 };

/** The most bytes of a contract's code: EIP-170. */
const CODE_BYTES_MAX = 24_576;

describe("contracts at their limits", () => {
  const node = {};
  before(async () => Object.assign(node, await startNode("anvil")));
  after(() => node.stop?.());

  for (const curve of curves) {
    test(`${curve.name}: the largest contract fits, and is right`, async (t) => {
      const key = new SimulatedKey(curve, INPUTS_MAX[curve.name]);
      const artifact = key.artifact("--batch");
      const bytes = (artifact.deployedBytecode.length - 2) / 2;
      t.diagnostic(`${key.inputs} public inputs: ${bytes} bytes of code`);
      assert.ok(bytes <= CODE_BYTES_MAX);
      const contract = await deploy(node, artifact);
      const [one, two] = [key.prove(), key.prove()];
      await accepted(contract, "verifyProof", curve.verifyArguments(one.coordinates, one.inputs));
      await accepted(contract, "verifyProofs", curve.batchArguments([one, two]));
    });

    test(`${curve.name}: many proofs with many inputs are never called invalid for lack of gas`, async (t) => {
      const key = new SimulatedKey(curve, 69);
      const contract = await deploy(node, key.artifact("--batch"));
      for (const count of [8, 64]) {
        const args = curve.batchArguments(Array.from({ length: count }, () => key.prove()));
        const limitsOf = (enough) => [...steps(60n, 103n, 2n)].map((percent) => (enough * percent) / 100n);
        const { enough, taken } = await neverFalse(node, contract, "verifyProofs", args, limitsOf);
        t.diagnostic(`${count} proofs: ${enough} gas is enough; ${taken} of 22 limits were`);
      }
    });

    test(`${curve.name}: keys without a contract are refused, and nothing is written`, () => {
      const good = new SimulatedKey(curve, 1).json();
      const many = new SimulatedKey(curve, INPUTS_MAX[curve.name] + 1).json();
      const cases = { many, none: { ...good, nPublic: 0, IC: good.IC.slice(0, 1) },
        degenerate: { ...good, vk_delta_2: good.vk_gamma_2 },
        unbound: { ...good, IC: [good.IC[0], ["0", "1", "0"]] },
        offCurve: { ...good, vk_alpha_1: ["1", "1", "1"] },
        alias: { ...good, vk_alpha_1: [`${BigInt(good.vk_alpha_1[0]) + curve.p}`, ...good.vk_alpha_1.slice(1)] } };
      for (const [name, json] of Object.entries(cases)) {
        withFiles({ "vk.json": json }, (folder) => {
          proofmill(["zkey", "export-solidity", "vk.json", "v.sol"], folder, 1);
          assert.throws(() => readFileSync(join(folder, "v.sol")), { code: "ENOENT" }, name);
        });
      }
    });
  }

  test("names are checked, and only our own contracts are replaced", () => {
    withFiles({ "vk.json": new SimulatedKey(curves[0], 1).json() }, (folder) => {
      const exported = (args, status) => proofmill(["zkey", "export-solidity", "vk.json", "v.sol", ...args], folder, status);
      for (const name of ["", "1a", "a b", "contract", "uint256", "a{}"]) exported(["--name", name], 2);
      exported(["--name", "One"]);
      exported(["--name", "Two"]);
      assert.match(readFileSync(join(folder, "v.sol"), "utf8"), /^contract Two \{$/m);
      writeFileSync(join(folder, "v.sol"), "contract Mine {}\n");
      exported([], 2);
      assert.equal(readFileSync(join(folder, "v.sol"), "utf8"), "contract Mine {}\n");
      exported(["--force"]);
    });
  });
});
