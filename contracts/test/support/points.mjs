// Points of BLS12-381 in the encoding of EIP-2537, from those that Proofmill's proofs and keys hold.

import { bls12_381 } from "@noble/curves/bls12-381";

const G1 = bls12_381.G1.ProjectivePoint;
const G2 = bls12_381.G2.ProjectivePoint;

/** The order of the base field. */
export const BASE_ORDER = bls12_381.fields.Fp.ORDER;

/** The order of the scalar field. */
export const SCALAR_ORDER = bls12_381.fields.Fr.ORDER;

/** A number as 64 bytes, big-endian, in hex: EIP-2537's element of the base field. */
export const elementHex = (number) => number.toString(16).padStart(128, "0");

/** A point of the first group as 128 bytes in hex; infinity is all zeros. */
export function g1Hex(point) {
  if (point.is0()) return "0".repeat(256);
  const { x, y } = point.toAffine();
  return elementHex(x) + elementHex(y);
}

/** A point of the second group as 256 bytes in hex; infinity is all zeros. */
export function g2Hex(point) {
  if (point.is0()) return "0".repeat(512);
  const { x, y } = point.toAffine();
  return [x.c0, x.c1, y.c0, y.c1].map(elementHex).join("");
}

/** A, B and C of a compressed proof of 192 bytes, given in hex. */
export function proofPoints(compressed) {
  return {
    a: G1.fromHex(compressed.slice(0, 96)),
    b: G2.fromHex(compressed.slice(96, 288)),
    c: G1.fromHex(compressed.slice(288, 384)),
  };
}

/** A point of the first group in snarkjs' JSON, which is affine. */
export const g1Point = ([x, y]) => G1.fromAffine({ x: BigInt(x), y: BigInt(y) });

/** A point of the second group in snarkjs' JSON, which is affine. */
export function g2Point([x, y]) {
  const element = ([c0, c1]) => ({ c0: BigInt(c0), c1: BigInt(c1) });
  return G2.fromAffine({ x: element(x), y: element(y) });
}

/** A, B and C of a proof in snarkjs' JSON. */
export const proofPointsOfJson = (proof) => ({ a: g1Point(proof.pi_a), b: g2Point(proof.pi_b), c: g1Point(proof.pi_c) });

/** A proof as `IGroth16Verifier` takes it. */
export const proofHex = ({ a, b, c }) => `0x${g1Hex(a)}${g2Hex(b)}${g1Hex(c)}`;

export { G1, G2 };
