// Makes the real proofs that the tests of this crate check: barretenberg's `noir-rollup` proofs of a
// circuit with one constraint, `rollup-N.proof` beside this file.
//
//   npm ci && npm run make
//
// Nothing is downloaded after `npm ci`: barretenberg derives the Grumpkin points itself, and the
// BN254 points, for the part of the proof that is not the inner-product argument, are powers of a
// number that everybody knows. Such a proof convinces nobody of the circuit's statement; its
// inner-product argument is as good as any other.

import { execFileSync } from 'node:child_process';
import { mkdtempSync, mkdirSync, writeFileSync, readFileSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { dirname, join } from 'node:path';
import { fileURLToPath } from 'node:url';

import { Noir } from '@noir-lang/noir_js';

import { BN254_POINTS, FIELD_ELEMENTS, PROOFS, barretenberg, compiled, inputs, referenceString } from './square.mjs';

const here = dirname(fileURLToPath(import.meta.url));

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
      const { witness } = await noir.execute(inputs(number));
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
