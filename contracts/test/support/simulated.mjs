// Verifying keys whose secrets are known, with their contracts.
//
// With the secrets a proof of any public inputs can be computed without a circuit: whatever A and B are,
// C = (A * B - alpha * beta - L * gamma) / delta solves the verification equation. So tests have keys with any number of
// inputs, hundreds of proofs, and valid proofs that no prover makes, such as one whose A is at infinity.

import { mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { compile } from "../../compile.mjs";
import { proofmill } from "./proofmill.mjs";
import { Random } from "./random.mjs";

/** A verifying key with `inputs` public inputs whose secrets are known, and proofs under it. */
export class SimulatedKey {
  constructor(curve, inputs) {
    this.curve = curve;
    this.inputs = inputs;
    this.random = new Random(`simulated ${curve.name} ${inputs}`);
    for (const secret of ["alpha", "beta", "gamma", "delta"]) this[secret] = this.scalar();
    this.instance = this.scalars(inputs + 1);
  }

  /** A random scalar that is not zero. */
  scalar() {
    return (BigInt(`0x${this.random.bytes32().toString("hex")}`) % (this.curve.r - 1n)) + 1n;
  }

  scalars(count) {
    return Array.from({ length: count }, () => this.scalar());
  }

  g1(scalar) {
    return this.curve.multiply(this.curve.G1.BASE, scalar);
  }

  g2(scalar) {
    return this.curve.multiply(this.curve.G2.BASE, scalar);
  }

  /** The logarithm of alpha * beta + L * gamma for these inputs. */
  #target(inputs) {
    const l = inputs.reduce((sum, input, at) => sum + input * this.instance[at + 1], this.instance[0]);
    return this.alpha * this.beta + l * this.gamma;
  }

  /** The valid proof of `inputs` whose A and B have these logarithms: `{ points, coordinates, inputs }`. */
  prove({ inputs = this.scalars(this.inputs), a = this.scalar(), b = this.scalar() } = {}) {
    const { Fr } = this.curve;
    const c = Fr.div(Fr.create(a * b - this.#target(inputs)), this.delta);
    const points = { a: this.g1(a), b: this.g2(b), c: this.g1(c) };
    return { points, coordinates: this.curve.proofCoordinates(points), inputs };
  }

  /** A valid proof whose C is at infinity. */
  proveWithoutC() {
    const { Fr } = this.curve;
    const [inputs, b] = [this.scalars(this.inputs), this.scalar()];
    return this.prove({ inputs, a: Fr.div(Fr.create(this.#target(inputs)), b), b });
  }

  /** The key as snarkjs writes it, without the pairing of alpha and beta, which nothing reads. */
  json() {
    const { curve } = this;
    const g1 = (scalar) => curve.pointJson(this.g1(scalar));
    const g2 = (scalar) => curve.pointJson(this.g2(scalar));
    return { protocol: "groth16", curve: curve.snarkjsName, nPublic: this.inputs, vk_alpha_1: g1(this.alpha),
      vk_beta_2: g2(this.beta), vk_gamma_2: g2(this.gamma), vk_delta_2: g2(this.delta), IC: this.instance.map(g1) };
  }

  /** The source of the contract that `proofmill zkey export-solidity` writes for the key. */
  source(...options) {
    return withFiles({ "vk.json": this.json() }, (folder) => {
      proofmill(["zkey", "export-solidity", "vk.json", "Verifier.sol", "--name", "Verifier", ...options], folder);
      return readFileSync(join(folder, "Verifier.sol"), "utf8");
    });
  }

  /** The compiled contract. */
  artifact(...options) {
    return compile({ "Verifier.sol": this.source(...options) }).Verifier;
  }

  /** The files of a proof for Proofmill's commands. */
  files({ points, inputs }) {
    return { "vk.json": this.json(), "proof.json": this.curve.proofJson(points), "public.json": inputs.map(String) };
  }
}

/** Calls `use` with a folder that has these JSON files, and removes it. */
export function withFiles(files, use) {
  const folder = mkdtempSync(join(tmpdir(), "contracts-verifier-"));
  try {
    for (const [name, content] of Object.entries(files)) writeFileSync(join(folder, name), JSON.stringify(content));
    return use(folder);
  } finally {
    rmSync(folder, { recursive: true, force: true });
  }
}
