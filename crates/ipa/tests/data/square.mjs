// What the proofs beside this file are of and what they are made with: a circuit with one constraint,
// barretenberg's program `bb`, and a development reference string on BN254. `make.mjs` makes the proofs
// with it, and `bench/peers/bb/ipa.mjs` has them checked by `bb`.

import { mkdirSync, writeFileSync } from 'node:fs';
import { createRequire } from 'node:module';
import { join } from 'node:path';

import { compile, createFileManager } from '@noir-lang/noir_wasm';

export { Barretenberg, BackendType } from '@aztec/bb.js';

/** Proofs in this folder, `rollup-N.proof`. */
export const PROOFS = 3;
/** Elements of BN254's scalar field in a proof. */
export const FIELD_ELEMENTS = 480;
/** Points of the development reference string: more than the circuit has rows. */
export const BN254_POINTS = 1 << 16;
/** Its secret, which is none: 2^16 + 1, so that a point is 16 doublings and one addition after the last. */
export const TAU_DOUBLINGS = 16;

const CIRCUIT = `fn main(x: Field, y: pub Field) {
    assert(x * x == y);
}
`;
const MANIFEST = `[package]
name = "square"
type = "bin"
authors = [""]

[dependencies]
`;

// === BN254, y² = x³ + 3, in Jacobian coordinates ===

/** Modulus of the curve's coordinates. */
export const Q = 21888242871839275222246405745257275088696311157297823662689037894645226208583n;
/** The residue that is not negative. */
export const mod = (a) => {
  const r = a % Q;
  return r < 0n ? r + Q : r;
};

/** The inverse of a residue other than zero. */
export function inverse(a) {
  let [r0, r1, t0, t1] = [Q, mod(a), 0n, 1n];
  while (r1 !== 0n) {
    const q = r0 / r1;
    [r0, r1] = [r1, r0 - q * r1];
    [t0, t1] = [t1, t0 - q * t1];
  }
  return mod(t0);
}

function double([x, y, z]) {
  const a = mod(x * x);
  const b = mod(y * y);
  const s = mod(4n * x * b);
  const m = 3n * a;
  const x3 = mod(m * m - 2n * s);
  return [x3, mod(m * (s - x3) - 8n * b * b), mod(2n * y * z)];
}

/** The sum with an affine point that is neither this one nor its opposite. */
function addAffine([x, y, z], [u, v]) {
  const zz = mod(z * z);
  const h = mod(u * zz - x);
  const r = mod(v * zz * z - y);
  const hh = mod(h * h);
  const hhh = mod(h * hh);
  const w = mod(x * hh);
  const x3 = mod(r * r - hhh - 2n * w);
  return [x3, mod(r * (w - x3) - y * hhh), mod(z * h)];
}

function affine([x, y, z]) {
  const i = inverse(z);
  const ii = mod(i * i);
  return [mod(x * ii), mod(y * ii * i)];
}

/** Powers of tau times the generator, each point as two big-endian numbers. */
export function referenceString() {
  const bytes = Buffer.alloc(64 * BN254_POINTS);
  let point = [1n, 2n];
  for (let i = 0; i < BN254_POINTS; i++) {
    const hex = point.map((c) => c.toString(16).padStart(64, '0')).join('');
    bytes.write(hex, 64 * i, 'hex');
    let next = [...point, 1n];
    for (let j = 0; j < TAU_DOUBLINGS; j++) next = double(next);
    point = affine(addAffine(next, point));
  }
  return bytes;
}

// === The circuit ===

/** What the proof of number `index` states: x, which it hides, and y, which is public. */
export function inputs(index) {
  const x = index + 3;
  return { x, y: x * x };
}

/** The circuit as `bb` reads it, compiled in a folder, which must be an absolute path. */
export async function compiled(folder) {
  mkdirSync(join(folder, 'src'), { recursive: true });
  writeFileSync(join(folder, 'Nargo.toml'), MANIFEST);
  writeFileSync(join(folder, 'src', 'main.nr'), CIRCUIT);
  const { program } = await compile(createFileManager(folder));
  return program;
}

/** The program `bb` of the installed package. */
export function barretenberg() {
  const main = createRequire(import.meta.url).resolve('@aztec/bb.js');
  const root = main.slice(0, main.lastIndexOf(join('bb.js', 'dest')) + 'bb.js'.length);
  const machine = { x64: 'amd64', arm64: 'arm64' }[process.arch];
  const system = { linux: 'linux', darwin: 'macos' }[process.platform];
  return join(root, 'build', `${machine}-${system}`, 'bb');
}
