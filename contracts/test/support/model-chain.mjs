// A model of HeaderChain over made-up headers: what it must accept and what it must then know.

import { LIMIT_BITS, MadeHeader, PERIOD, retargeted, workOfBits } from "./model.mjs";

/** What the stub of the verifier accepts. */
export const STUB_PROOF = `0x01${"00".repeat(511)}`;

export const hex = (bytes) => `0x${Buffer.from(bytes).toString("hex")}`;

/** A model of a HeaderChain after an anchor before a change of the difficulty, whose header is made up as well. */
export class ModelChain {
  constructor(random, nextHeight, bits = LIMIT_BITS) {
    this.random = random;
    const start = 1_300_000_000;
    // The first header of a period has the period's time.
    const age = nextHeight % PERIOD === 1 ? 0 : random.below(2_000_000);
    const header = new MadeHeader(random.bytes32(), start + age, bits, random);
    this.anchor = { hash: hex(header.hash), nextHeight, bits, time: header.time, periodStart: start };
    this.nodes = [{ header, nextHeight, work: 0n, periodStart: start, parent: null, hash: this.anchor.hash }];
    this.best = this.nodes[0];
  }

  /** A chunk after a known node: the chunk as HeaderChain takes it, and the node that it would add. */
  extend(parent, count) {
    let { nextHeight, periodStart, work } = parent;
    const run = [parent.header];
    let changeAt = null;
    for (; run.length <= count; ++nextHeight) {
      const before = run.at(-1);
      const changes = nextHeight > 0 && nextHeight % PERIOD === 0;
      const bits = changes ? retargeted(before.bits, periodStart, before.time) : before.bits;
      const header = new MadeHeader(before.hash, before.time + this.random.below(900), bits, this.random);
      if (changes) {
        changeAt = run.length;
        periodStart = header.time;
      }
      work += workOfBits(bits);
      run.push(header);
    }
    // run[0] is the parent's header, which the chunk does not have.
    const shown = changeAt === null ? run.slice(-1) : run.slice(Math.max(changeAt - 1, 1));
    const header = run.at(-1);
    const chunk = {
      prevHash: parent.hash,
      lastHash: hex(header.hash),
      bits: run.slice(1).map((it) => it.bits),
      proof: STUB_PROOF,
      headers: hex(Buffer.concat(shown.map((it) => it.bytes))),
    };
    return { chunk, node: { header, nextHeight, work, periodStart, parent, hash: chunk.lastHash } };
  }

  /** Takes a node that HeaderChain accepted. Returns whether the best chain changes. */
  take(node) {
    this.nodes.push(node);
    const better = node.work > this.best.work;
    if (better) this.best = node;
    return better;
  }

  /** Hashes of the ends of chunks in the best chain. */
  canonical() {
    const hashes = new Set();
    for (let node = this.best; node; node = node.parent) hashes.add(node.hash);
    return hashes;
  }
}
