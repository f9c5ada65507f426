// The circuit that stands for a rollup's in the tests of OrderedSettlement: two public inputs, the halves of a batch's digest, and
// their product as the only private variable. A rollup's circuit would compute the digest from its state transition; for the
// contract the number of public inputs and their meaning are what counts. Its files are in circom's formats.

import { bls12_381 } from "@noble/curves/bls12-381";

const ORDER = bls12_381.fields.Fr.ORDER;
const SCALAR_BYTES = 32;

/** Integers as little-endian bytes, each given with its number of bytes. */
function littleEndian(...numbers) {
  return Buffer.concat(numbers.map(([value, bytes]) => {
    const big = Buffer.from(BigInt(value).toString(16).padStart(2 * bytes, "0"), "hex");
    return big.reverse();
  }));
}

/** A container of iden3's formats: magic, version, and numbered sections. */
function container(magic, version, sections) {
  const parts = [Buffer.from(magic, "ascii"), littleEndian([version, 4], [sections.length, 4])];
  for (const [index, body] of sections.entries()) parts.push(littleEndian([index + 1, 4], [body.length, 8]), body);
  return Buffer.concat(parts);
}

/** The circuit as a `.r1cs` file. Wires: one, high half, low half, product. */
export function circuitFile() {
  const wires = 4;
  const header = littleEndian([SCALAR_BYTES, 4], [ORDER, SCALAR_BYTES], [wires, 4], [0, 4], [2, 4], [1, 4], [wires, 8], [1, 4]);
  const wire = (index) => littleEndian([1, 4], [index, 4], [1, SCALAR_BYTES]);
  const labels = littleEndian(...[0, 1, 2, 3].map((label) => [label, 8]));
  return container("r1cs", 1, [header, Buffer.concat([wire(1), wire(2), wire(3)]), labels]);
}

/** The witness for two public inputs, as a `.wtns` file. */
export function witnessFile(high, low) {
  const values = [1n, high, low, (high * low) % ORDER];
  const header = littleEndian([SCALAR_BYTES, 4], [ORDER, SCALAR_BYTES], [values.length, 4]);
  return container("wtns", 2, [header, littleEndian(...values.map((value) => [value, SCALAR_BYTES]))]);
}
