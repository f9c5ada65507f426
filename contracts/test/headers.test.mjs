// The script that fetches real headers, on the repository's first 32 headers in block files made here, and on
// the Go module itself.

import assert from "node:assert/strict";
import { execFileSync, spawnSync } from "node:child_process";
import { mkdtempSync, readFileSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { test } from "node:test";

import { HEADERS, checkHeaders, headersOfBlockFile, sha256d, targetOf } from "../headers.mjs";

const SCRIPT = join(import.meta.dirname, "../headers.mjs");
const FIRST_32 = readFileSync(
  join(import.meta.dirname, "../../crates/bitcoin/data/bitcoin-mainnet-0-31.hex"), "utf8");

const first32 = () => FIRST_32.trim().split("\n").map((line) => Buffer.from(line, "hex"));

function blockFile(headers, { padding = 64 } = {}) {
  const blocks = headers.map((header, index) => {
    const block = Buffer.concat([header, Buffer.alloc(index, 0xab)]);
    const start = Buffer.alloc(8);
    start.writeUInt32LE(0xd9b4bef9, 0);
    start.writeUInt32LE(block.length, 4);
    return Buffer.concat([start, block]);
  });
  return Buffer.concat([...blocks, Buffer.alloc(padding)]);
}

test("a block file's headers are found and checked", () => {
  for (const padding of [0, 3, 64]) {
    const headers = headersOfBlockFile(blockFile(first32(), { padding }));
    assert.deepEqual(headers, first32());
    checkHeaders(headers);
  }
});

test("damaged block files are refused", () => {
  const whole = blockFile(first32());
  const at = (offset, value) => {
    const copy = Buffer.from(whole);
    copy.writeUInt32LE(value, offset);
    return copy;
  };
  assert.throws(() => headersOfBlockFile(at(0, 0x0709110b)), /offset 0: no block of the main network/);
  assert.throws(() => headersOfBlockFile(at(4, 79)), /a block of 79 bytes does not fit/);
  assert.throws(() => headersOfBlockFile(at(4, 0xffffffff)), /does not fit/);
  assert.throws(() => headersOfBlockFile(whole.subarray(0, 200)), /does not fit/);
  assert.throws(() => headersOfBlockFile(at(whole.length - 4, 7)), /bytes after the last block/);
});

test("headers without work, or in another order, are refused", () => {
  const headers = first32();
  const changed = headers.map((header) => Buffer.from(header));
  changed[31].writeUInt32LE(0, 76);
  assert.throws(() => checkHeaders(changed), /header 31: its hash is above its target/);
  assert.throws(() => checkHeaders([headers[0], headers[2]]), /header 1 does not follow header 0/);
  assert.equal(targetOf(0x1d00ffff), 0xffffn << 208n);
  assert.equal(targetOf(0x02008000), 0x80n);
  assert.throws(() => targetOf(0x1d800000), /no target/);
});

test("the module's headers are Bitcoin's, past the first retargets", () => {
  const folder = mkdtempSync(join(tmpdir(), "proofmill-headers-"));
  try {
    const out = join(folder, "all.hex");
    execFileSync(process.execPath, [SCRIPT, "--out", out], { stdio: "pipe" });
    const text = readFileSync(out, "utf8");
    assert.ok(text.startsWith(FIRST_32));
    const lines = text.trimEnd().split("\n");
    assert.equal(lines.length, HEADERS);
    const hash = sha256d(Buffer.from(lines[HEADERS - 1], "hex")).reverse().toString("hex");
    assert.equal(hash, "00000000b3e750f37fdb42e1018799a9f44b546d393b130b369590a072430a1c");

    execFileSync(process.execPath, [SCRIPT, "--from", "2000", "--count", "32", "--out", out], { stdio: "pipe" });
    assert.deepEqual(readFileSync(out, "utf8").trimEnd().split("\n"), lines.slice(2000, 2032));
  } finally {
    rmSync(folder, { recursive: true });
  }
});

test("wrong arguments are explained", () => {
  for (const [args, message] of [
    [["--from", "14131", "--count", "2", "--out", "x"], /between 0 and 14131/],
    [["--from", "a", "--out", "x"], /between 0 and 14131/],
    [[], /--out FILE is missing/],
  ]) {
    const { status, stderr } = spawnSync(process.execPath, [SCRIPT, ...args], { encoding: "utf8" });
    assert.equal(status, 1);
    assert.match(stderr, message);
  }
});
