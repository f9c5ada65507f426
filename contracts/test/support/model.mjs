// A model of Bitcoin's difficulty rule in plain arithmetic on integers of any size, written apart from the contract, and made-up
// headers.

import { sha256d } from "../../headers.mjs";

export const LIMIT_BITS = 0x1d00ffff;
export const PERIOD = 2016;
const TWO_WEEKS = 1_209_600n;

/** The target of compact bits, from the bytes of its big-endian form; null for what Bitcoin Core rejects. */
export function targetOfBits(bits) {
  const length = bits >>> 24;
  const digits = Buffer.from([(bits >>> 16) & 0x7f, (bits >>> 8) & 0xff, bits & 0xff]);
  // As a number of `length` bytes, of which those after the third are zero.
  const bytes = Buffer.concat([digits, Buffer.alloc(Math.max(0, length - 3))]);
  const target = BigInt(`0x${bytes.subarray(0, length).toString("hex") || "0"}`);
  return target === 0n || target >= 1n << 256n || (bits >>> 23) % 2 === 1 ? null : target;
}

/** The compact bits of a target: the shortest signed big-endian form, of which the length and the first three bytes are kept. */
export function bitsOfTarget(target) {
  if (target === 0n) return 0;
  let hex = target.toString(16);
  if (hex.length % 2) hex = `0${hex}`;
  if (parseInt(hex.slice(0, 2), 16) >= 0x80) hex = `00${hex}`;
  const length = hex.length / 2;
  return length * 2 ** 24 + parseInt(hex.padEnd(6, "0").slice(0, 6), 16);
}

/** The expected number of hashes for a header with these bits. */
export const workOfBits = (bits) => (1n << 256n) / (targetOfBits(bits) + 1n);

/** The bits after a period of headers with `bits`, whose first and last have these times. */
export function retargeted(bits, first, last) {
  let took = BigInt(last) - BigInt(first);
  if (took * 4n < TWO_WEEKS) took = TWO_WEEKS / 4n;
  if (took > TWO_WEEKS * 4n) took = TWO_WEEKS * 4n;
  const next = (targetOfBits(bits) * took) / TWO_WEEKS;
  const limit = targetOfBits(LIMIT_BITS);
  return bitsOfTarget(next < limit ? next : limit);
}

/** A made-up header that follows another one. It has no work: no proof can be made for it. */
export class MadeHeader {
  constructor(prevHash, time, bits, random) {
    this.time = time;
    this.bits = bits;
    this.bytes = Buffer.concat([Buffer.from([2, 0, 0, 0]), prevHash, random.bytes32(), Buffer.alloc(12)]);
    this.bytes.writeUInt32LE(time, 68);
    this.bytes.writeUInt32LE(bits, 72);
    this.hash = sha256d(this.bytes);
  }
}
