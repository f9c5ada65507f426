// barretenberg's check of Grumpkin inner-product arguments, as a peer of `proofmill-bench ipa`: the time
// that `bb` itself counts for the argument of a `noir-rollup` proof.
//
//   (cd crates/ipa/tests/data && npm ci)        # once: `bb` and the compiler, of pinned versions
//   node bench/peers/bb/ipa.mjs [--threads N] [--batch N]
//
// The last line of the output is `{"ms": [...]}`: milliseconds of N checks one after another in one process
// (`--batch`, 1 where it is not given), on `--threads` threads (1). Each is the mean of at least
// CHECKS_MIN checks, times N.
//
// What is checked: the three proofs in crates/ipa/tests/data, which our own part of the comparison checks
// as well. Their points on BN254 are of a development reference string, whose secret tau everybody knows.
// `bb` checks a proof's pairing before its inner-product argument, with the point [tau]_2 of Aztec's
// ceremony. That point is compiled into it: a `bn254_g2.dat` is not read, and `SrsInitSrs` of its API
// refuses any other point. So this script writes a copy of the installed `bb` in which the point's 128
// bytes are those of the development string's [tau]_2. Nothing else in the copy is changed, and the pairing
// is a check of its own: no instruction of the inner-product argument knows of that point. The copy
// accepts forged proofs (whoever knows tau makes them), so it is of no use but for measuring: it stays in
// the folder `prepared`, which git ignores.
//
// What is timed: `bb`'s counter `IPA::reduce_verify` (`BB_BENCH=1`), which is the whole check of an argument,
// from reading its transcript to the last comparison. Reading the points from disk, sumcheck and pairing
// are outside. `bb` runs as a server, as bb.js runs it, so that all checks but the first are of a process
// that is warm.

import { chmodSync, copyFileSync, existsSync, mkdirSync, mkdtempSync, readFileSync } from 'node:fs';
import { renameSync, rmSync, writeFileSync } from 'node:fs';
import { execFileSync } from 'node:child_process';
import { dirname, join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { parseArgs } from 'node:util';

/** Fewest checks for a figure: the first, in a process that is not warm, is to weigh little. */
const CHECKS_MIN = 5;
/** How long `bb` may take to print its counters after it was told to end. */
const COUNTERS_MS = 10_000;
/** The counter of a whole check. */
const COUNTER = 'IPA::reduce_verify';
/** What `bb` says of a proof whose pairing holds and whose inner-product argument does not. */
const ARGUMENT_REFUSED = 'verification failed at IPA check';
/** The settings that `-t noir-rollup` stands for. */
const NOIR_ROLLUP = {
  ipaAccumulation: true,
  oracleHashType: 'poseidon2',
  disableZk: false,
  optimizedSolidityVerifier: false,
};

const here = dirname(fileURLToPath(import.meta.url));
const data = join(here, '../../../crates/ipa/tests/data');
/** What is prepared, in a folder for each version of bb.js. */
const prepared = join(here, 'prepared');

/** What is wrong, for whoever runs this: it is printed without a trace. */
class Failure extends Error {}

// === Points of BN254's second group, whose coordinates are pairs (c0, c1) for c0 + c1·i ===

const GENERATOR = [
  [
    0x1800deef121f1e76426a00665e5c4479674322d4f75edadd46debd5cd992f6edn,
    0x198e9393920d483a7260bfb731fb5d25f1aa493335a9e71297e485b7aef312c2n,
  ],
  [
    0x12c85ea5db8c6deb4aab71808dcb408fe3d1e7690c43d37b4ce6cc0166fa7daan,
    0x090689d0585ff075ec9e99ad690c3395bc4b313370b38ef355acdadcd122975bn,
  ],
];
/** [tau]_2 of Aztec's ceremony, as `bb` has it and as Ethereum's verifiers of its proofs have it. */
const CEREMONY = [
  [
    0x0118c4d5b837bcc2bc89b5b398b5974e9f5944073b32078b7e231fec938883b0n,
    0x260e01b251f6f1c7e7ff4e580791dee8ea51d87a358e038b4efe30fac09383c1n,
  ],
  [
    0x22febda3c0c0632a56475b4214e5615e11e6dd3f96e6cea2854a87d4dacc5e55n,
    0x04fc6369f7110fe3d25156c1bb9a72859cf2a04641f99ba4ee413c80da6a5fe4n,
  ],
];

/** A point as `bb` has it: x and y, c0 before c1, 32 big-endian bytes each. */
function bytes(point) {
  return Buffer.from(point.flat().map((c) => c.toString(16).padStart(64, '0')).join(''), 'hex');
}

/** The development string's [tau]_2. */
function developmentPoint({ mod, inverse, TAU_DOUBLINGS }) {
  const minus = (a, b) => [mod(a[0] - b[0]), mod(a[1] - b[1])];
  const times = (a, b) => [mod(a[0] * b[0] - a[1] * b[1]), mod(a[0] * b[1] + a[1] * b[0])];
  const over = (a, b) => {
    const i = inverse(b[0] * b[0] + b[1] * b[1]);
    return times(a, [mod(b[0] * i), mod(-b[1] * i)]);
  };
  /** The third point of the line with this slope through two points, with its ordinate's sign changed. */
  const third = (slope, [x, y], [u]) => {
    const w = minus(minus(times(slope, slope), x), u);
    return [w, minus(times(slope, minus(x, w)), y)];
  };
  let point = GENERATOR;
  for (let i = 0; i < TAU_DOUBLINGS; i++) {
    const [x, y] = point;
    point = third(over(times([3n, 0n], times(x, x)), times([2n, 0n], y)), point, point);
  }
  const slope = over(minus(point[1], GENERATOR[1]), minus(point[0], GENERATOR[0]));
  return third(slope, point, GENERATOR);
}

// === What is prepared once ===

async function packages() {
  if (process.platform !== 'linux') {
    throw new Failure(`${process.platform}: the changed copy of bb runs on Linux only (macOS asks for its signature)`);
  }
  try {
    return await import(join(data, 'square.mjs'));
  } catch (error) {
    if (error.code !== 'ERR_MODULE_NOT_FOUND') throw error;
    throw new Failure(`packages are missing; run \`npm ci\` in crates/ipa/tests/data first (${error.message})`);
  }
}

/** The copy of `bb` with the development string's point. */
function copyBarretenberg(original, copy, point) {
  if (!existsSync(original)) throw new Failure(`${original}: not there; bb.js has no bb for this machine`);
  copyFileSync(original, copy);
  const program = readFileSync(copy);
  const ceremony = bytes(CEREMONY);
  const at = program.indexOf(ceremony);
  if (at < 0 || program.indexOf(ceremony, at + 1) >= 0) {
    throw new Failure(`${original}: [tau]_2 of the ceremony is to be there once; is it another version of bb?`);
  }
  point.copy(program, at);
  writeFileSync(copy, program);
  chmodSync(copy, 0o755);
}

/** A folder with `bb`, `points/` and the circuit's key `vk`: made if it is not there. */
async function prepare(square) {
  const original = square.barretenberg();
  const { version } = JSON.parse(readFileSync(join(dirname(original), '../../package.json'), 'utf8'));
  const folder = join(prepared, version);
  if (existsSync(folder)) return folder;
  console.log('preparing: development points, the circuit and its key, a copy of bb with the development [tau]_2');
  mkdirSync(prepared, { recursive: true });
  const work = mkdtempSync(join(prepared, 'unfinished-'));
  try {
    const points = join(work, 'points');
    mkdirSync(points);
    writeFileSync(join(points, 'bn254_g1.dat'), square.referenceString());
    const circuit = join(work, 'circuit.json');
    writeFileSync(circuit, JSON.stringify(await square.compiled(join(work, 'square'))));
    copyBarretenberg(original, join(work, 'bb'), bytes(developmentPoint(square)));
    execFileSync(original, ['write_vk', '-t', 'noir-rollup', '-c', points, '-b', circuit, '-o', work], {
      stdio: ['ignore', 'ignore', 'inherit'],
    });
    await refusesFalseArgument(square, work);
    renameSync(work, folder);
    return folder;
  } finally {
    rmSync(work, { recursive: true, force: true });
  }
}

/** The copy is to check the argument, and not to accept whatever comes. */
async function refusesFalseArgument(square, folder) {
  const [altered] = proofs(square, 1);
  // The last element is the upper half of the folded coefficient, which only the last equation reads.
  altered.proof.at(-1)[31] ^= 1;
  const { verdicts, lines } = await session(square, folder, 1, [altered]);
  if (verdicts[0] || !lines.some((line) => line.includes(ARGUMENT_REFUSED))) {
    throw new Failure(`bb does not refuse a false argument as such:\n${lines.join('\n')}`);
  }
}

// === Checks ===

/** So many proofs with their public inputs, in elements: those of the repository in turn. */
function proofs({ PROOFS, inputs }, count) {
  return Array.from({ length: count }, (_, i) => {
    const number = i % PROOFS;
    const proof = readFileSync(join(data, `rollup-${number}.proof`));
    const y = Buffer.from(inputs(number).y.toString(16).padStart(64, '0'), 'hex');
    return { proof: elements(proof), publicInputs: elements(y) };
  });
}

function elements(buffer) {
  return Array.from({ length: buffer.length / 32 }, (_, i) => new Uint8Array(buffer.subarray(32 * i, 32 * (i + 1))));
}

/** Checks proofs in one process of `bb`: a verdict for each, and what it printed. */
async function session({ Barretenberg, BackendType }, folder, threads, claims) {
  const lines = [];
  let counted;
  const counters = new Promise((resolve) => (counted = resolve));
  const logger = (line) => {
    lines.push(line.replace(/\x1b\[[0-9;]*m/g, ''));
    // The last line of the counters.
    if (line.includes('Total:')) counted(true);
  };
  // bb.js hands its environment to bb.
  Object.assign(process.env, { BB_BENCH: '1', CRS_PATH: join(folder, 'points') });
  const bb = await Barretenberg.new({
    backend: BackendType.NativeUnixSocket,
    bbPath: join(folder, 'bb'),
    threads,
    logger,
  });
  try {
    const verificationKey = readFileSync(join(folder, 'vk'));
    const verdicts = [];
    for (const claim of claims) {
      const { verified } = await bb.circuitVerify({ verificationKey, ...claim, settings: NOIR_ROLLUP });
      verdicts.push(verified);
    }
    await bb.shutdown({});
    const late = new Promise((resolve) => setTimeout(resolve, COUNTERS_MS, false).unref());
    if (!(await Promise.race([counters, late]))) {
      throw new Failure(`bb printed no counters:\n${lines.join('\n')}`);
    }
    return { verdicts, lines };
  } finally {
    await bb.destroy();
  }
}

/** Mean milliseconds of a check, from a line such as `└─ IPA::reduce_verify [2] 95 % 951.0ms (135.85 ms x 7)`. */
function meanMilliseconds(lines, checks) {
  const line = lines.find((line) => line.includes(COUNTER));
  const [, mean, count] = line?.match(/\(([\d.]+) ms x (\d+)\)/) ?? [];
  if (Number(count) !== checks) {
    throw new Failure(`bb's counter ${COUNTER} is to tell of ${checks} checks, and is: ${line}`);
  }
  return Number(mean);
}

// === Arguments ===

function number(value, name) {
  if (!/^[1-9]\d{0,3}$/.test(value)) throw new Failure(`--${name} ${value}: a number from 1 to 9999`);
  return Number(value);
}

async function main() {
  const { values } = parseArgs({
    options: { threads: { type: 'string', default: '1' }, batch: { type: 'string', default: '1' } },
  });
  const threads = number(values.threads, 'threads');
  const batch = number(values.batch, 'batch');
  const square = await packages();
  const folder = await prepare(square);
  const checks = Math.max(batch, CHECKS_MIN);
  const { verdicts, lines } = await session(square, folder, threads, proofs(square, checks));
  if (verdicts.includes(false)) throw new Failure(`bb refuses a real proof:\n${lines.join('\n')}`);
  console.log(JSON.stringify({ ms: [batch * meanMilliseconds(lines, checks)] }));
}

try {
  await main();
  // A process of bb that has ended may keep a socket of bb.js, and so this process, alive.
  process.exit(0);
} catch (error) {
  console.error(error instanceof Failure ? `error: ${error.message}` : error);
  process.exit(1);
}
