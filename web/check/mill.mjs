// A mill with blocks that are stuck for many reasons, for the checks of the console.

import { spawn } from "node:child_process";
import { once } from "node:events";
import { mkdtemp, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";

/** Tokens of an operator and of a viewer. */
export const TOKENS = { alice: "alices-token-0123456789", bob: "bobs-token-0123456789" };

const source = (name) => `[[source]]
name = "${name}"
kind = "jsonl"
file = "${name}.jsonl"
output = "${name}"
`;

const WORKFLOW = `name = "night"
[defaults]
r_max = 0
${["blocks", "flaky", "wraps", "signs", "wide"].map(source).join("")}
[[source]]
name = "far"
kind = "range"
start = 5000
end = 5000
output = "far"
[[queue]]
name = "narrow"
q_max = 1
[[dispatcher]]
name = "prove"
input = "blocks"
output = "proofs"
executor = { kind = "process", program = "./prove.sh" }
[[dispatcher]]
name = "try"
input = "flaky"
r_max = 9
backoff = { initial = "10m", max = "10m", factor = 1.0, jitter = 0.0 }
executor = { kind = "process", program = "./prove.sh" }
[[dispatcher]]
name = "wrap"
input = "wraps"
executor = { kind = "process", program = "./prove.sh" }
[[dispatcher]]
name = "sign"
input = "signs"
executor = { kind = "process", program = "./prove.sh" }
[[dispatcher]]
name = "widen"
input = "wide"
output = "narrow"
executor = { kind = "process", program = "./prove.sh" }
[[dispatcher]]
name = "narrow"
input = "narrow"
executor = { kind = "process", program = "./sleep.sh" }
[[dispatcher]]
name = "reach"
input = "far"
executor = { kind = "process", program = "./prove.sh" }
[[collector]]
name = "pairs"
inputs = ["proofs"]
output = "pairs"
strategy = { kind = "sequential", n = 2 }
[sequencer]
input = "pairs"
directory = "emitted"
[[sequencer.sink]]
kind = "exec"
program = "./take.sh"
backoff = { initial = "500ms", max = "500ms", factor = 1.0, jitter = 0.0 }
`;

// Payloads say what happens: some fail until the file `repaired` is there, some take ten minutes.
const PROVE = `#!/bin/sh
while [ $# -gt 0 ]; do
  case $1 in --input-path) input=$2;; --output-path) output=$2;; esac
  shift 2
done
case "$(cat "$input")" in
  *fails*) test -e "$(dirname "$0")/repaired" || { echo "no luck" >&2; exit 3; };;
  *sleeps*) sleep 600;;
esac
cp "$input" "$output"
`;

const FILES = {
  "night.toml": [WORKFLOW],
  "tokens": [`alice ${TOKENS.alice} operator\nbob ${TOKENS.bob} viewer\n`, 0o600],
  "prove.sh": [PROVE, 0o755],
  "sleep.sh": ["#!/bin/sh\nsleep 600\n", 0o755],
  // The sink takes nothing until it is open.
  "take.sh": ['#!/bin/sh\ntest -e "$(dirname "$0")/open"\n', 0o755],
  "blocks.jsonl": [lines([
    { block: 10, payload: { n: 10 } },
    { block: 11, payload: { n: "fails" } },
    { block: 12, requires: ["gpu"], payload: { n: 12 } },
    { block: 13, payload: { n: "sleeps" } },
    { block: 14, payload: { n: 14 } },
  ])],
  "flaky.jsonl": [lines([{ block: 20, payload: { n: "fails" } }])],
  "wraps.jsonl": [lines([{ block: 30, payload: { n: "sleeps" } }])],
  "signs.jsonl": [lines([{ block: 40, payload: { n: 40 } }])],
  "wide.jsonl": [lines([50, 51, 52, 53].map((block) => ({ block, payload: { n: block } })))],
};

function lines(of) {
  return of.map((it) => `${JSON.stringify(it)}\n`).join("");
}

/** A mill that runs, with its folder, the console's address, `ask`, which runs a command of the program, `askIn`, which does in another
 * folder, and `signal`, which sends its process a signal. */
export async function startMill(program) {
  const folder = await mkdtemp(join(tmpdir(), "console-check-"));
  const write = (name, text, mode) => writeFile(join(folder, name), text, { mode });
  for (const [name, [text, mode]] of Object.entries(FILES)) await write(name, text, mode);
  const args = ["run", "night.toml", "--stay", "--console", "127.0.0.1:0", "--console-tokens", "tokens"];
  const child = spawn(program, args, { cwd: folder, stdio: ["ignore", "ignore", "pipe"] });
  const address = await new Promise((found, failed) => {
    let said = "";
    child.stderr.on("data", (bytes) => {
      said += bytes;
      const match = said.match(/console on http:\/\/([0-9.]+:[0-9]+)\//);
      if (match) found(match[1]);
    });
    child.on("exit", (code) => failed(new Error(`the mill ended with ${code}: ${said}`)));
  });
  const askIn = async (cwd, ...words) => {
    const asked = spawn(program, words, { cwd, stdio: ["ignore", "ignore", "inherit"] });
    const [code] = await once(asked, "exit");
    if (code !== 0) throw new Error(`proofmill ${words.join(" ")} ended with ${code}`);
  };
  const ask = (...words) => askIn(folder, ...words);
  const stop = async () => {
    child.kill("SIGKILL");
    await rm(folder, { recursive: true, force: true });
  };
  const signal = (name) => child.kill(name);
  return { folder, address, ask, askIn, write, signal, stop };
}
