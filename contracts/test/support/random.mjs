// Random numbers that are the same in each run for the same seed, so that a failure can be seen again. Set SEED for others.

import { createHash } from "node:crypto";

/** The seed of this run. */
export const SEED = process.env.SEED ?? "proofmill";

/** A source of random numbers for one purpose. */
export class Random {
  #name;
  #count = 0;

  constructor(name) {
    this.#name = name;
  }

  /** 32 random bytes. */
  bytes32() {
    return createHash("sha256").update(`${SEED} ${this.#name} ${this.#count++}`).digest();
  }

  /** A random number of 1 to `bits` bits, with all lengths equally likely. */
  number(bits) {
    const length = 1 + this.below(bits);
    return BigInt(`0x${this.bytes32().toString("hex")}`) & ((1n << BigInt(length)) - 1n);
  }

  /** A random integer from 0 to, not including, `bound`. */
  below(bound) {
    return this.bytes32().readUIntBE(0, 6) % bound;
  }

  /** One of the values. */
  pick(values) {
    return values[this.below(values.length)];
  }
}
