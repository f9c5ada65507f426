// Contracts over BN254 beside those of snarkjs: each takes the calldata of the other's tool, for circuits of circom with 1, 8
// and 32 public inputs, and ours takes less gas. Over BLS12-381, which snarkjs has no contract for, its proofs are taken too.

import assert from "node:assert/strict";
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { after, before, describe, test } from "node:test";
import { compile } from "../compile.mjs";
import { curves } from "./support/curves.mjs";
import { deploy } from "./support/harness.mjs";
import { startNode } from "./support/nodes.mjs";
import { circom, proofmill, snarkjs } from "./support/proofmill.mjs";
import { accepted, ask, gasOf, printTable, refused } from "./support/verifiers.mjs";

const [bn254, bls12381] = curves;
const COUNTS = [1, 8, 32];

/** A circuit with so many public inputs, each multiplied by a secret. */
const circuit = (count) => `pragma circom 2.1.6;
template Products() {
  signal input public_inputs[${count}];
  signal input secret;
  signal products[${count}];
  for (var i = 0; i < ${count}; i++) products[i] <== public_inputs[i] * secret;
}
component main { public [public_inputs] } = Products();
`;

/** Makes a circuit's files in a folder: a key of Proofmill, a witness and a proof of snarkjs, a proof of Proofmill. */
function makeFiles(folder, curve, count) {
  writeFileSync(join(folder, "c.circom"), circuit(count));
  circom(["c.circom", "--r1cs", "--wasm", "--prime", curve.snarkjsName], folder);
  const input = { public_inputs: Array.from({ length: count }, (_, at) => `${(at + 3) ** 7}`), secret: "41" };
  writeFileSync(join(folder, "input.json"), JSON.stringify(input));
  proofmill(["setup", "c.r1cs", "-o", "c.zkey"], folder);
  snarkjs(["wtns", "calculate", "c_js/c.wasm", "input.json", "c.wtns"], folder);
  snarkjs(["groth16", "prove", "c.zkey", "c.wtns", "theirs.json", "public.json"], folder);
  proofmill(["prove", "--engine", "off", "c.zkey", "c.wtns", "ours.json", "public.json"], folder);
}

/** The arguments that a text of calldata without brackets around it has. */
const parsed = (text) => JSON.parse(`[${text.trim()}]`);

const readJson = (folder, name) => JSON.parse(readFileSync(join(folder, name), "utf8"));

describe("contracts and calldata of snarkjs and ours", () => {
  const node = {};
  const folders = new Map();
  before(async () => {
    Object.assign(node, await startNode("anvil"));
    for (const curve of curves) {
      for (const count of COUNTS) {
        const folder = mkdtempSync(join(tmpdir(), "contracts-snarkjs-"));
        folders.set(`${curve.name} ${count}`, folder);
        makeFiles(folder, curve, count);
      }
    }
  });
  after(async () => {
    for (const folder of folders.values()) rmSync(folder, { recursive: true, force: true });
    await node.stop?.();
  });

  async function both(count) {
    const folder = folders.get(`bn254 ${count}`);
    snarkjs(["zkey", "export", "solidityverifier", "c.zkey", "theirs.sol"], folder);
    proofmill(["zkey", "export-solidity", "c.zkey", "ours.sol"], folder);
    const [theirs, ours] = ["theirs.sol", "ours.sol"].map((name) => {
      const source = readFileSync(join(folder, name), "utf8");
      return deploy(node, compile({ [name]: source }).Groth16Verifier);
    });
    return { folder, theirs: await theirs, ours: await ours };
  }

  for (const count of COUNTS) {
    test(`bn254, ${count} public inputs: either calldata on either contract`, async () => {
      const { folder, theirs, ours } = await both(count);
      for (const proof of ["theirs.json", "ours.json"]) {
        const text = snarkjs(["zkey", "export", "soliditycalldata", "public.json", proof], folder);
        const printed = proofmill(["calldata", proof, "public.json"], folder);
        assert.equal(printed.trim(), text.trim());
        for (const contract of [theirs, ours]) await accepted(contract, "verifyProof", parsed(text), proof);

        const data = proofmill(["calldata", proof, "public.json", "--abi"], folder).trim();
        assert.equal(data, ours.interface.encodeFunctionData("verifyProof", parsed(text)));
        for (const contract of [theirs, ours]) {
          const answer = await node.provider.call({ to: await contract.getAddress(), data });
          assert.equal(BigInt(answer), 1n);
        }
      }
    });

    test(`bls12-381, ${count} public inputs: proofs of snarkjs and ours`, async () => {
      const folder = folders.get(`bls12-381 ${count}`);
      proofmill(["zkey", "export-solidity", "c.zkey", "ours.sol", "--name", "Ours"], folder);
      const source = readFileSync(join(folder, "ours.sol"), "utf8");
      const contract = await deploy(node, compile({ "ours.sol": source }).Ours);
      const inputs = readJson(folder, "public.json");
      for (const proof of ["theirs.json", "ours.json"]) {
        const args = parsed(proofmill(["calldata", proof, "public.json"], folder));
        const coordinates = bls12381.proofCoordinates(bls12381.proofOfJson(readJson(folder, proof)));
        const [bytes, words] = bls12381.verifyArguments(coordinates, inputs);
        assert.deepEqual([args[0], args[1].map(BigInt)], [bytes, words.map(BigInt)]);
        await accepted(contract, "verifyProof", args, proof);
        const data = proofmill(["calldata", proof, "public.json", "--abi"], folder).trim();
        assert.equal(data, contract.interface.encodeFunctionData("verifyProof", args));
      }
    });
  }

  test("bn254: gas is at most that of snarkjs, and less from 8 public inputs on", async (t) => {
    const rows = [];
    for (const count of COUNTS) {
      const { folder, theirs, ours } = await both(count);
      const args = parsed(proofmill(["calldata", "ours.json", "public.json"], folder));
      const [theirGas, ourGas] = [await gasOf(node, theirs, "verifyProof", args), await gasOf(node, ours, "verifyProof", args)];
      assert.ok(ourGas.transaction <= theirGas.transaction, `${count} inputs`);
      if (count >= 8) assert.ok(ourGas.transaction < theirGas.transaction, `${count} inputs`);
      rows.push([count, theirGas.execution, ourGas.execution, theirs.deploymentGas, ours.deploymentGas]);
    }
    printTable(t, ["public inputs", "snarkjs", "ours", "deploy snarkjs'", "deploy ours"], rows);
  });

  test("bn254: an A that is not reduced, which snarkjs' contract takes, is refused by ours", async () => {
    const { folder, theirs, ours } = await both(1);
    const [a, b, c, inputs] = parsed(proofmill(["calldata", "ours.json", "public.json"], folder));
    // Their contract computes (q - y) mod q modulo 2^256 first, so a y above q has another meaning than its residue.
    const y = (BigInt(a[1]) + (1n << 256n)) % bn254.p;
    let alias = y;
    while (alias < bn254.p) alias += bn254.p;
    assert.ok(alias < 1n << 256n);
    assert.equal(await ask(theirs, "verifyProof", [[a[0], alias], b, c, inputs]), true);
    await refused(ours, "verifyProof", [[a[0], alias], b, c, inputs], "an alias of A");
  });
});
