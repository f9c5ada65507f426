// Makes the real proofs that the tests of this crate check: barretenberg's `noir-rollup` proofs of a
// circuit with one constraint, `rollup-N.proof` beside this file.
//
//   npm install && npm run make
//
// Nothing is downloaded after `npm install`: barretenberg derives the Grumpkin points itself, and the
// BN254 points, for the part of the proof that is not the inner-product argument, are powers of a
// number that everybody knows. Such a proof convinces nobody of the circuit's statement; its
// inner-product argument is as good as any other.

import { execFileSync } from 'node:child_process';
import { mkdtempSync, mkdirSync, writeFileSync, readFileSync, rmSync } from 'node:fs';
import { createRequire } from 'node:module';
import { tmpdir } from 'node:os';
import { dirname, join } from 'node:path';
import { fileURLToPath } from 'node:url';

import { compile, createFileManager } from '@noir-lang/noir_wasm';
import { Noir } from '@noir-lang/noir_js';

const PROOFS = 3;
const FIELD_ELEMENTS = 480;
/** Points of the development reference string: more than the circuit has rows. */
const BN254_POINTS = 1 << 16;
/** Its secret, which is none: 2^16 + 1, so that a point is 16 doublings and one addition after the last. */
const TAU_DOUBLINGS = 16;

const here = dirname(fileURLToPath(import.meta.url));

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

const Q = 21888242871839275222246405745257275088696311157297823662689037894645226208583n;
const mod = (a) => {
  const r = a % Q;
  return r < 0n ? r + Q : r;
};

function inverse(a) {
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
function referenceString() {
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

// === The circuit and its proofs ===

async function compiled(folder) {
  mkdirSync(join(folder, 'src'), { recursive: true });
  writeFileSync(join(folder, 'Nargo.toml'), MANIFEST);
  writeFileSync(join(folder, 'src', 'main.nr'), CIRCUIT);
  const { program } = await compile(createFileManager(folder));
  return program;
}

function barretenberg() {
  const main = createRequire(import.meta.url).resolve('@aztec/bb.js');
  const root = main.slice(0, main.lastIndexOf(join('bb.js', 'dest')) + 'bb.js'.length);
  const machine = { x64: 'amd64', arm64: 'arm64' }[process.arch];
  const system = { linux: 'linux', darwin: 'macos' }[process.platform];
  return join(root, 'build', `${machine}-${system}`, 'bb');
}

async function main() {
  const work = mkdtempSync(join(tmpdir(), 'rollup-proofs-'));
  try {
    const points = join(work, 'points');
    mkdirSync(points);
    console.log(`making ${BN254_POINTS} development points on BN254`);
    writeFileSync(join(points, 'bn254_g1.dat'), referenceString());

    const program = await compiled(join(work, 'square'));
    const circuit = join(work, 'circuit.json');
    writeFileSync(circuit, JSON.stringify(program));
    const noir = new Noir(program);
    for (let number = 0; number < PROOFS; number++) {
      const x = number + 3;
      const { witness } = await noir.execute({ x, y: x * x });
      const witnessFile = join(work, 'witness.gz');
      writeFileSync(witnessFile, witness);
      execFileSync(
        barretenberg(),
        ['prove', '-t', 'noir-rollup', '--write_vk', '-c', points, '-b', circuit, '-w', witnessFile, '-o', work],
        { stdio: 'inherit' },
      );
      const proof = readFileSync(join(work, 'proof'));
      if (proof.length !== 32 * FIELD_ELEMENTS) {
        throw new Error(`a proof of ${proof.length} bytes: expected ${FIELD_ELEMENTS} field elements`);
      }
      writeFileSync(join(here, `rollup-${number}.proof`), proof);
    }
    console.log(`wrote ${PROOFS} proofs`);
  } finally {
    rmSync(work, { recursive: true });
  }
}

await main();
