// The verifier contract that Proofmill writes for a key over BLS12-381, with real proofs and what is close to them.

import assert from "node:assert/strict";
import { before, test } from "node:test";
import { bls12_381 } from "@noble/curves/bls12-381";
import { publicInputs, readChunks } from "./support/demo.mjs";
import { artifactsWith, deploy, onEveryNode } from "./support/harness.mjs";
import { BASE_ORDER, G1, G2, SCALAR_ORDER, elementHex, g1Hex, g2Hex, proofHex } from "./support/points.mjs";
import { proofsOf } from "./support/program.mjs";

const { Fp, Fp2 } = bls12_381.fields;
const artifacts = artifactsWith({ verifiers: ["Verifier2", "Verifier3"] });
const [{ chunk, points }, other] = readChunks(proofsOf("pairs"));
const inputs = publicInputs(chunk, 2);

/** Gas of a call that may meet a precompile's refusal, which takes all that it is given. */
const CALL_GAS = 2_000_000n;

/** Multiplies by the order of the subgroup, which the library's own multiplication refuses. */
function timesOrder(point) {
  let product = point.is0() ? point : point.add(point.negate());
  for (const bit of SCALAR_ORDER.toString(2)) {
    product = product.add(product);
    if (bit === "1") product = product.add(point);
  }
  return product;
}

/** The first point with a small x on a curve, which is outside the subgroup. */
function pointOutside(group, field, b) {
  for (let count = 1n; ; ++count) {
    const x = field === Fp ? count : Fp2.create({ c0: count, c1: 1n });
    const square = field.add(field.mul(field.mul(x, x), x), b);
    try {
      const point = group.fromAffine({ x, y: field.sqrt(square) });
      if (!timesOrder(point).is0()) return point;
    } catch {
      // Not a square: the next x.
    }
  }
}

const outside1 = pointOutside(G1, Fp, 4n);
const outside2 = pointOutside(G2, Fp2, Fp2.create({ c0: 4n, c1: 4n }));
/** Points of the curves whose order divides the cofactor: a pairing without a subgroup check does not see them. */
const torsion1 = timesOrder(outside1);
const torsion2 = timesOrder(outside2);

onEveryNode("the verifier of a key", (node) => {
  let verifier;
  before(async () => { verifier = await deploy(node, artifacts.Verifier2); });
  const verdict = (proof, given = inputs) => verifier.verifyProof(proof, given, { gasLimit: CALL_GAS });
  const refused = async (proof, given, name) => assert.equal(await verdict(proof, given), false, name);

  test("real proofs are valid for their own inputs only", async (t) => {
    const request = await verifier.verifyProof.populateTransaction(chunk.proof, inputs, { gasLimit: CALL_GAS });
    const receipt = await (await node.signer.sendTransaction(request)).wait();
    t.diagnostic(`gas of a transaction that verifies a proof with ${inputs.length} inputs: ${receipt.gasUsed}`);
    for (const it of readChunks(proofsOf("pairs"))) {
      assert.equal(await verdict(it.chunk.proof, publicInputs(it.chunk, 2)), true);
      if (it.chunk.lastHash !== chunk.lastHash) await refused(it.chunk.proof, inputs);
    }
  });

  test("inputs that are changed, not reduced, or of another number", async () => {
    for (const index of inputs.keys()) {
      const withInput = (value) => inputs.map((it, at) => (at === index ? value : it));
      await refused(chunk.proof, withInput(inputs[index] + 1n), `input ${index} plus 1`);
      await refused(chunk.proof, withInput(inputs[index] + SCALAR_ORDER), `input ${index} plus r`);
      await refused(chunk.proof, withInput((1n << 256n) - 1n), `input ${index} of ones`);
      // Congruent statements whose halves would not fit in 128 bits.
      await refused(chunk.proof, withInput(inputs[index] + (1n << 128n)), `input ${index} plus 2^128`);
    }
    const shifted = [inputs[0] + (1n << 128n), inputs[1] - 1n, ...inputs.slice(2)];
    await refused(chunk.proof, shifted.map((it) => (it < 0n ? it + SCALAR_ORDER : it)), "halves of the same hash");
    await refused(chunk.proof, inputs.slice(0, -1), "an input missing");
    await refused(chunk.proof, [...inputs, 0n], "an input too many");
    await refused(chunk.proof, [], "no inputs");
    const count = inputs.map((it, at) => (at === 4 ? 1n : it));
    await refused(chunk.proof, count, "bits beyond the count");
    await refused(chunk.proof, count.map((it, at) => (at === 6 ? 0n : it)), "a header less");
    await refused(other.chunk.proof, inputs, "another chunk's proof");
  });

  test("bits in an unused slot", async () => {
    const spare = await deploy(node, artifacts.Verifier3);
    const last = readChunks(proofsOf("slotUnused"))[1].chunk;
    const good = publicInputs(last, 3);
    assert.deepEqual(good.slice(4), [2n, 0x1d00ffffn, 0x1d00ffffn, 0n]);
    const check = (given) => spare.verifyProof(last.proof, given, { gasLimit: CALL_GAS });
    assert.equal(await check(good), true);
    assert.equal(await check([...good.slice(0, 7), 0x1d00ffffn]), false);
    assert.equal(await check([...good.slice(0, 7), 1n]), false);
  });

  test("proofs of another length", async () => {
    for (const bytes of [0, 1, 511]) await refused(chunk.proof.slice(0, 2 + 2 * bytes), inputs, `${bytes} bytes`);
    await refused(`${chunk.proof}00`, inputs, "513 bytes");
    await refused(`${chunk.proof}${"0".repeat(1024)}`, inputs, "1024 bytes");
  });

  test("coordinates that are not reduced, or do not begin with zeros", async () => {
    const proof = chunk.proof.slice(2);
    for (let at = 0; at < 8; ++at) {
      const element = proof.slice(128 * at, 128 * (at + 1));
      const withElement = (it) => `0x${proof.slice(0, 128 * at)}${it}${proof.slice(128 * (at + 1))}`;
      await refused(withElement(elementHex(BigInt(`0x${element}`) + BASE_ORDER)), inputs, `coordinate ${at} plus p`);
      await refused(withElement(`01${element.slice(2)}`), inputs, `coordinate ${at} with its first byte set`);
      await refused(withElement(`${element.slice(0, 31)}1${element.slice(32)}`), inputs, `coordinate ${at} with byte 15 set`);
      await refused(withElement("0".repeat(128)), inputs, `coordinate ${at} zero`);
    }
  });

  test("points that are not on their curve", async () => {
    const wrongY = (hex) => `${hex.slice(0, -1)}${hex.endsWith("0") ? "1" : "0"}`;
    const [a, b, c] = [g1Hex(points.a), g2Hex(points.b), g1Hex(points.c)];
    await refused(`0x${wrongY(a)}${b}${c}`, inputs, "A");
    await refused(`0x${a}${wrongY(b)}${c}`, inputs, "B");
    await refused(`0x${a}${b}${wrongY(c)}`, inputs, "C");
  });

  test("points outside the subgroup", async () => {
    const { a, b, c } = points;
    assert.equal(torsion1.is0() || torsion2.is0(), false);
    const cases = { "A by torsion": { a: a.add(torsion1), b, c }, "B by torsion": { a, b: b.add(torsion2), c },
      "C by torsion": { a, b, c: c.add(torsion1) }, "A outside": { a: outside1, b, c }, "B outside": { a, b: outside2, c },
      "C outside": { a, b, c: outside1 } };
    for (const [name, proof] of Object.entries(cases)) await refused(proofHex(proof), inputs, name);
  });

  test("points at infinity", async () => {
    const { a, b, c } = points;
    const [zero1, zero2] = [G1.ZERO, G2.ZERO];
    const cases = [{ a: zero1, b, c }, { a, b: zero2, c }, { a, b, c: zero1 }, { a: zero1, b: zero2, c }, { a: zero1, b: zero2,
      c: zero1 }];
    for (const [index, proof] of cases.entries()) await refused(proofHex(proof), inputs, `case ${index}`);
  });

  test("negated and exchanged points", async () => {
    const { a, b, c } = points;
    await refused(proofHex({ a: a.negate(), b, c }), inputs, "A negated");
    await refused(proofHex({ a, b, c: c.negate() }), inputs, "C negated");
    await refused(proofHex({ a: c, b, c: a }), inputs, "A and C exchanged");
  });

  test("a proof made anew from another one is valid for the same inputs: its bytes identify nothing", async () => {
    const { a, b, c } = points;
    assert.equal(await verdict(proofHex({ a: a.negate(), b: b.negate(), c })), true);
    const factor = 12345678901234567890n;
    const inverse = bls12_381.fields.Fr.inv(factor);
    const again = proofHex({ a: a.multiply(inverse), b: b.multiply(factor), c });
    assert.notEqual(again, chunk.proof);
    assert.equal(await verdict(again), true);
  });
});
