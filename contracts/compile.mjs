// Compiles the contracts with solc, pinned in package.json.
//
//     node compile.mjs                  src/ to artifacts/NAME.json, with `abi`, `bytecode` and `deployedBytecode`,
//                                       and the ABIs that the program is built with to abi/
//     node compile.mjs OUT FILE.sol…    other files to another folder

import { mkdirSync, readFileSync, readdirSync, writeFileSync } from "node:fs";
import { createRequire } from "node:module";
import { basename, dirname, join, resolve } from "node:path";
import { argv, exit } from "node:process";
import { fileURLToPath } from "node:url";

const here = dirname(fileURLToPath(import.meta.url));

/** Settings of every contract: the deployed code is the same wherever and whenever it is compiled. */
const settings = {
  evmVersion: "prague",
  optimizer: { enabled: true, runs: 1_000_000 },
  metadata: { bytecodeHash: "none", appendCBOR: false },
  outputSelection: { "*": { "*": ["abi", "evm.bytecode.object", "evm.deployedBytecode.object"] } },
};

/** The project's contracts by their names in imports, such as "src/HeaderChain.sol". */
export function projectSources() {
  const names = readdirSync(join(here, "src")).filter((name) => name.endsWith(".sol"));
  return Object.fromEntries(names.map((name) => [`src/${name}`, readFileSync(join(here, "src", name), "utf8")]));
}

/** Compiles sources, by their names in imports, and returns artifacts by the contracts' names. A warning is an error. */
export function compile(sources) {
  const require = createRequire(import.meta.url);
  const solc = require("solc");
  const contents = Object.entries(sources).map(([name, content]) => [name, { content }]);
  const input = { language: "Solidity", sources: Object.fromEntries(contents), settings };
  const output = JSON.parse(solc.compile(JSON.stringify(input)));
  if (output.errors?.length) throw new Error(output.errors.map((error) => error.formattedMessage).join("\n"));
  const artifacts = {};
  for (const [source, contracts] of Object.entries(output.contracts)) {
    for (const [name, { abi, evm }] of Object.entries(contracts)) {
      if (artifacts[name]) throw new Error(`${source}: there is another contract called ${name}; rename one of them`);
      artifacts[name] = { abi, bytecode: `0x${evm.bytecode.object}`, deployedBytecode: `0x${evm.deployedBytecode.object}` };
    }
  }
  return artifacts;
}

/** The contracts whose calls the program makes; their ABIs are in abi/, since it is built without a compiler of contracts. */
export const CALLED = ["HeaderChain", "OrderedSettlement"];

/** The text of an ABI's file: an entry on each line. */
export function abiText(abi) {
  return `[\n${abi.map((entry) => `  ${JSON.stringify(entry)}`).join(",\n")}\n]\n`;
}

/** Writes artifacts as NAME.json to a folder. */
export function writeArtifacts(artifacts, folder) {
  mkdirSync(folder, { recursive: true });
  for (const [name, artifact] of Object.entries(artifacts)) {
    writeFileSync(join(folder, `${name}.json`), `${JSON.stringify(artifact)}\n`);
  }
}

if (argv[1] && resolve(argv[1]) === fileURLToPath(import.meta.url)) {
  const [folder = join(here, "artifacts"), ...files] = argv.slice(2);
  const given = files.map((file) => [basename(file), readFileSync(file, "utf8")]);
  try {
    const artifacts = compile(files.length ? Object.fromEntries(given) : projectSources());
    writeArtifacts(artifacts, folder);
    for (const name of files.length ? [] : CALLED) {
      writeFileSync(join(here, "abi", `${name}.json`), abiText(artifacts[name].abi));
    }
    for (const [name, { deployedBytecode }] of Object.entries(artifacts)) {
      const bytes = (deployedBytecode.length - 2) / 2;
      if (bytes > 0) console.log(`${name}: ${bytes} bytes`);
    }
  } catch (error) {
    console.error(`error: ${error.message}`);
    exit(1);
  }
}
