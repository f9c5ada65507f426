// What the tests need from Proofmill itself: real proofs of real headers, and the verifier contract of their key.
//
// `node test/support/program.mjs` makes it, in artifacts/test/, and `npm test` runs that first. It is made again when the
// program has changed. The program is the debug build, or the one named in PROOFMILL.

import { spawnSync } from "node:child_process";
import { existsSync, mkdirSync, mkdtempSync, readFileSync, readdirSync, rmSync, statSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { dirname, join, resolve } from "node:path";
import { argv } from "node:process";
import { fileURLToPath } from "node:url";
import { fetchHeaders } from "../../headers.mjs";
import { circuitFile, witnessFile } from "./batch-circuit.mjs";
import { proofHex, proofPointsOfJson } from "./points.mjs";

const contracts = join(dirname(fileURLToPath(import.meta.url)), "..", "..");
const folder = join(contracts, "artifacts", "test");

/** Runs of `proofmill demo`, by name. Without `heights`, over the first 32 headers of Bitcoin's main chain. */
const RUNS = {
  // 16 chunks, which fill their circuit.
  pairs: { slots: 2 },
  // Two chunks, of which the last leaves a slot unused.
  slotUnused: { slots: 3, heights: [1, 5] },
  // Two chunks, with the first change of the difficulty before the second chunk.
  changeBetween: { slots: 2, heights: [2014, 2017] },
  // Two chunks, with the first change of the difficulty inside the first.
  changeInside: { slots: 2, heights: [2015, 2018] },
};

/** The folder of a run's emitted proofs. */
export const proofsOf = (run) => join(folder, run, "proofs");

/** Names of the verifier contracts: for circuits of two and of three headers, and for the circuit of batches. */
export const VERIFIERS = ["Verifier2", "Verifier3", "BatchVerifier"];

/** The Solidity source of a verifier contract, one of `VERIFIERS`. */
export const verifierSourceOf = (name) => readFileSync(join(folder, `${name}.sol`), "utf8");

/** A proof of the circuit of batches for the halves of a digest, as `IGroth16Verifier` takes it. */
export function proveBatch(high, low) {
  const scratch = mkdtempSync(join(tmpdir(), "contracts-proof-"));
  try {
    const [witness, proof, inputs] = ["batch.wtns", "proof.json", "public.json"].map((name) => join(scratch, name));
    writeFileSync(witness, witnessFile(high, low));
    run(programPath(), ["prove", "--engine", "off", join(folder, "batch.zkey"), witness, proof, inputs]);
    return proofHex(proofPointsOfJson(JSON.parse(readFileSync(proof, "utf8"))));
  } finally {
    rmSync(scratch, { recursive: true, force: true });
  }
}

/** The program under test: the debug build, or the one named in PROOFMILL. */
export function programPath() {
  const path = resolve(process.env.PROOFMILL ?? join(contracts, "..", "target", "debug", "proofmill"));
  if (!existsSync(path)) {
    throw new Error(`there is no program at ${path}: run \`cargo build -p proofmill\`, or name one in PROOFMILL`);
  }
  return path;
}

/** Runs the program; what it printed is shown if it fails. */
function run(program, args) {
  const { status, error, stdout, stderr } = spawnSync(program, args, { encoding: "utf8" });
  if (error) throw error;
  if (status !== 0) throw new Error(`${program} ${args.join(" ")} failed with status ${status}:\n${stdout}${stderr}`);
}

/** Has the program write the verifier contract of a key. */
function exportVerifier(program, key, name) {
  run(program, ["zkey", "export-solidity", key, join(folder, `${name}.sol`), "--name", name, "--batch"]);
}

/** Makes what is not there. */
function prepare() {
  const program = programPath();
  const { mtimeMs, size } = statSync(program);
  const stamp = join(folder, "made-by");
  const now = `${program} ${size} ${mtimeMs} --batch ${JSON.stringify(RUNS)}\n`;
  if (existsSync(stamp) && readFileSync(stamp, "utf8") === now) return;
  rmSync(folder, { recursive: true, force: true });
  mkdirSync(folder, { recursive: true });
  const keys = join(folder, "keys");
  let headers;
  for (const [name, { slots, heights }] of Object.entries(RUNS)) {
    console.log(`proving headers for the tests: ${name}`);
    const args = ["demo", "--chunk", `${slots}`, "--state", join(folder, name), "--keys", keys];
    if (heights) {
      const [first, last] = heights;
      headers ??= fetchHeaders();
      const file = join(folder, `${name}.bin`);
      writeFileSync(file, Buffer.concat(headers.slice(first, last + 1)));
      args.push("--headers", file, "--start", `${first}`);
    }
    run(program, args);
  }
  for (const slots of [2, 3]) {
    const key = readdirSync(keys).find((file) => file.startsWith(`header-chain-${slots}-`) && file.endsWith(".vk"));
    exportVerifier(program, join(keys, key), `Verifier${slots}`);
  }
  const circuit = join(folder, "batch.r1cs");
  const batchKey = join(folder, "batch.zkey");
  writeFileSync(circuit, circuitFile());
  run(program, ["setup", "--output", batchKey, circuit]);
  exportVerifier(program, batchKey, "BatchVerifier");
  writeFileSync(stamp, now);
}

if (argv[1] && resolve(argv[1]) === fileURLToPath(import.meta.url)) prepare();
