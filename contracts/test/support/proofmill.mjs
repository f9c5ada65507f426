// The program under test, and the tools of circom, as processes.

import { spawnSync } from "node:child_process";
import { existsSync } from "node:fs";
import { dirname, join, resolve } from "node:path";
import { fileURLToPath } from "node:url";

const repository = join(dirname(fileURLToPath(import.meta.url)), "..", "..", "..");

/** The folder with circom's circuits and tools. */
export const circomFolder = join(repository, "crates", "cli", "tests", "circom");

/** Runs a program in a folder and returns what it printed; fails unless it ends with `status`. */
function run(program, args, folder, status = 0) {
  const ran = spawnSync(program, args, { cwd: folder, encoding: "utf8", maxBuffer: 1 << 28 });
  if (ran.error) throw ran.error;
  if (ran.status !== status) {
    throw new Error(`${program} ${args.join(" ")}: status ${ran.status} instead of ${status}\n${ran.stdout}${ran.stderr}`);
  }
  return ran.stdout;
}

/** Runs the debug build of Proofmill, or the program named in PROOFMILL. */
export function proofmill(args, folder, status) {
  const program = resolve(process.env.PROOFMILL ?? join(repository, "target", "debug", "proofmill"));
  if (!existsSync(program)) {
    throw new Error(`there is no program at ${program}: run \`cargo build -p proofmill\`, or name one in PROOFMILL`);
  }
  return run(program, args, folder, status);
}

function tool(script, args, folder) {
  const path = join(circomFolder, "node_modules", script);
  if (!existsSync(path)) throw new Error(`circom and snarkjs are not installed: run \`make interop-tools\` (no ${path})`);
  return run(process.execPath, [path, ...args], folder);
}

/** Runs the circom compiler. */
export const circom = (args, folder) => tool("circom2/cli.js", args, folder);

/** Runs snarkjs. */
export const snarkjs = (args, folder) => tool("snarkjs/build/cli.cjs", args, folder);
