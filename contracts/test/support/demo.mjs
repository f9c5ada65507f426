// What `proofmill demo` makes: proofs of the first 32 headers of Bitcoin's main chain, in chunks of two.

import { readFileSync, readdirSync } from "node:fs";
import { join } from "node:path";
import { PERIOD } from "./model.mjs";
import { proofHex, proofPoints } from "./points.mjs";

/** Bytes of a chunk proof before the proof itself: magic and version. */
const PROOF_AT = 12;

/** Bytes of a compressed proof. */
const PROOF_BYTES = 192;

/** The first height of a difficulty period in the heights from `first` to `last`, other than 0; null if there is none. */
export function changeIn(first, last) {
  const change = last - (last % PERIOD);
  return change > 0 && change >= first ? change : null;
}

/** The headers that a chunk shows, of all its headers: see the contract's struct `Chunk`. */
export function shownOf(headers, first, last) {
  const change = changeIn(first, last);
  const from = change === null ? last : Math.max(change - 1, first);
  return headers.subarray(80 * (from - first));
}

/** A chunk as `HeaderChain` takes it, from the JSON that the demo emits for it, with its raw headers beside it. */
export function readChunk(path) {
  const emitted = JSON.parse(readFileSync(path, "utf8"));
  const encoded = Buffer.from(emitted.proof, "hex");
  const points = proofPoints(encoded.subarray(PROOF_AT, PROOF_AT + PROOF_BYTES).toString("hex"));
  const statement = encoded.subarray(PROOF_AT + PROOF_BYTES);
  const bits = Array.from({ length: statement.readUInt32LE(64) }, (_, index) => statement.readUInt32LE(68 + 4 * index));
  const chunk = {
    prevHash: `0x${statement.subarray(0, 32).toString("hex")}`,
    lastHash: `0x${statement.subarray(32, 64).toString("hex")}`,
    bits,
    proof: proofHex(points),
    headers: `0x${shownOf(Buffer.from(emitted.headers, "hex"), emitted.first, emitted.last).toString("hex")}`,
  };
  return { chunk, points, first: emitted.first, last: emitted.last, headers: `0x${emitted.headers}` };
}

/** Time and root of the transactions of the last of some serialised headers, as the contract's event has them. */
export function lastOf(headers) {
  const last = Buffer.from(headers.slice(2), "hex").subarray(-80);
  return [BigInt(last.readUInt32LE(68)), `0x${last.subarray(36, 68).toString("hex")}`];
}

/** The chunks in a folder of emitted proofs, in the chain's order. */
export function readChunks(folder) {
  const files = readdirSync(folder).filter((name) => name.endsWith(".json")).sort();
  return files.map((name) => readChunk(join(folder, name)));
}

/** The public inputs of a chunk's statement for a circuit of so many slots, in the key's order. */
export function publicInputs({ prevHash, lastHash, bits }, slots) {
  const halves = (hash) => {
    const reversed = Buffer.from(hash.slice(2), "hex").reverse().toString("hex");
    return [BigInt(`0x${reversed.slice(32)}`), BigInt(`0x${reversed.slice(0, 32)}`)];
  };
  const padded = Array.from({ length: slots }, (_, index) => BigInt(bits[index] ?? 0));
  return [...halves(prevHash), ...halves(lastHash), BigInt(bits.length), ...padded];
}
