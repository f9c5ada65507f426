#!/usr/bin/env node
// Writes headers 0 to 14131 of Bitcoin's main network, or some of them, to a file that `proofmill`'s source
// `headers` reads: one header of 160 hexadecimal digits a line.
//
//     node headers.mjs --from 32 --count 1000 --out headers.hex
//
// They come from a test file of the Go module github.com/btcsuite/btcd (ISC licence), which holds whole blocks.
// Go fetches the module; its checksum and the file's are pinned here. Each header is checked: it follows the one
// before it, and its hash meets its own target. The file crosses the retargets at multiples of 2016 up to 14112;
// the target stays at its limit there, since blocks were slow.

import { execFileSync } from "node:child_process";
import { createHash } from "node:crypto";
import { mkdirSync, readFileSync, renameSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { dirname, join, resolve } from "node:path";
import { parseArgs } from "node:util";
import { fileURLToPath } from "node:url";

const MODULE = "github.com/btcsuite/btcd@v0.26.2";
// Checksum of the module's files, as Go's go.sum has it.
const MODULE_SUM = "h1:hPXzICjUZOsW2JwBLg9nHwGabc/D7pJDlna2vTB/SWI=";
const FILE = "blockchain/testdata/blk_0_to_14131.dat";
const FILE_SHA256 = "2e0e722d5ebe84dbc2155d343ed805cab647cbf3a45c1e3ee39b2175439fdd6e";

/** Number of headers in the file: heights 0 to 14131. */
export const HEADERS = 14132;
/** Bytes of a header. */
export const HEADER_BYTES = 80;

// Bytes with which each block of the main network starts in Bitcoin Core's block files.
const MAGIC = 0xd9b4bef9;
// The most bytes that a block may have (consensus rule without witnesses).
const MAX_BLOCK_BYTES = 1_000_000;

/** SHA-256 twice. */
export function sha256d(bytes) {
  const once = createHash("sha256").update(bytes).digest();
  return createHash("sha256").update(once).digest();
}

/** A header's target, from the compact form in `bits`. */
export function targetOf(bits) {
  const mantissa = BigInt(bits & 0x7fffff);
  const exponent = bits >>> 24;
  if (bits & 0x800000 || exponent > 32) {
    throw new Error(`bits 0x${bits.toString(16)} are no target`);
  }
  return exponent >= 3 ? mantissa << BigInt(8 * (exponent - 3)) : mantissa >> BigInt(8 * (3 - exponent));
}

function numberOf(hash) {
  return BigInt(`0x${Buffer.from(hash).reverse().toString("hex")}`);
}

/**
 * The headers of the blocks in a block file of Bitcoin Core: magic, length, block, and so on. Zero bytes after
 * the last block are padding.
 */
export function headersOfBlockFile(file) {
  const headers = [];
  let offset = 0;
  while (offset + 8 <= file.length) {
    const magic = file.readUInt32LE(offset);
    if (magic === 0) break;
    if (magic !== MAGIC) throw new Error(`offset ${offset}: no block of the main network starts here`);
    const length = file.readUInt32LE(offset + 4);
    if (length < HEADER_BYTES || length > MAX_BLOCK_BYTES || offset + 8 + length > file.length) {
      throw new Error(`offset ${offset}: a block of ${length} bytes does not fit`);
    }
    headers.push(file.subarray(offset + 8, offset + 8 + HEADER_BYTES));
    offset += 8 + length;
  }
  if (file.subarray(offset).some((byte) => byte !== 0)) {
    throw new Error(`offset ${offset}: bytes after the last block`);
  }
  return headers;
}

/** Throws unless each header follows the one before it and its hash meets its own target. */
export function checkHeaders(headers) {
  let previous;
  headers.forEach((header, index) => {
    const hash = sha256d(header);
    if (previous && !header.subarray(4, 36).equals(previous)) {
      throw new Error(`header ${index} does not follow header ${index - 1}`);
    }
    if (numberOf(hash) > targetOf(header.readUInt32LE(72))) {
      throw new Error(`header ${index}: its hash is above its target`);
    }
    previous = hash;
  });
}

/** All headers, fetched from the module proxy (or Go's cache) and checked. */
export function fetchHeaders() {
  let answer;
  try {
    // Outside any module of the caller, so that no go.mod is read or written.
    const out = execFileSync("go", ["mod", "download", "-json", MODULE], {
      cwd: tmpdir(),
      env: { ...process.env, GOFLAGS: "-mod=mod", GO111MODULE: "on" },
      stdio: ["ignore", "pipe", "inherit"],
    });
    answer = JSON.parse(out);
  } catch (error) {
    if (error.code === "ENOENT") throw new Error("go is not there; the headers are in a Go module: https://go.dev/dl");
    throw new Error(`go mod download ${MODULE} failed: ${error.message}`);
  }
  if (answer.Sum !== MODULE_SUM) throw new Error(`${MODULE} has the checksum ${answer.Sum}, not ${MODULE_SUM}`);
  const file = readFileSync(join(answer.Dir, FILE));
  const sum = createHash("sha256").update(file).digest("hex");
  if (sum !== FILE_SHA256) throw new Error(`${FILE} has the SHA-256 ${sum}, not ${FILE_SHA256}`);
  const headers = headersOfBlockFile(file);
  if (headers.length !== HEADERS) throw new Error(`${FILE} has ${headers.length} blocks, not ${HEADERS}`);
  checkHeaders(headers);
  return headers;
}

function main() {
  const { values } = parseArgs({
    options: {
      from: { type: "string", default: "0" },
      count: { type: "string" },
      out: { type: "string" },
    },
  });
  const from = Number(values.from);
  const count = values.count === undefined ? HEADERS - from : Number(values.count);
  if (!Number.isInteger(from) || !Number.isInteger(count) || from < 0 || count < 1 || from + count > HEADERS) {
    throw new Error(`--from and --count must name headers between 0 and ${HEADERS - 1}`);
  }
  if (!values.out) throw new Error("--out FILE is missing");
  const lines = fetchHeaders()
    .slice(from, from + count)
    .map((header) => `${header.toString("hex")}\n`);
  const out = resolve(values.out);
  mkdirSync(dirname(out), { recursive: true });
  // A reader never sees half a file.
  writeFileSync(`${out}.tmp`, lines.join(""));
  renameSync(`${out}.tmp`, out);
  console.log(`headers ${from} to ${from + count - 1} of Bitcoin's main network are in ${values.out}`);
}

if (process.argv[1] && resolve(process.argv[1]) === fileURLToPath(import.meta.url)) {
  try {
    main();
  } catch (error) {
    console.error(`error: ${error.message}`);
    process.exitCode = 1;
  }
}
