// HeaderChain with real proofs of real headers.

import assert from "node:assert/strict";
import { before, test } from "node:test";
import { sha256d } from "../headers.mjs";
import { lastOf, readChunks } from "./support/demo.mjs";
import { artifactsWith, deploy, eventsOf, onEveryNode, refuses, refusesDeployment, send } from "./support/harness.mjs";
import { proofsOf } from "./support/program.mjs";

const GENESIS = { hash: `0x${"0".repeat(64)}`, nextHeight: 0, bits: 0x1d00ffff, time: 1231006505, periodStart: 1231006505 };

/** The expected number of hashes for a header at the easiest target. */
const EASIEST_WORK = 0x1_0001_0001n;

const artifacts = artifactsWith({ testContracts: ["TestOnlyLoneVerifier.sol"], verifiers: ["Verifier2", "Verifier3"] });
const chunks = readChunks(proofsOf("pairs"));
const sha256dOf = (headers, index) => {
  const header = Buffer.from(headers.slice(2), "hex").subarray(80 * index, 80 * (index + 1));
  return `0x${sha256d(header).toString("hex")}`;
};
const changed = (chunk, changes) => ({ ...chunk, ...changes });

onEveryNode("chunks of Bitcoin's first 32 headers", (node) => {
  let verifier;
  let chain;

  before(async () => {
    verifier = await deploy(node, artifacts.Verifier2);
    chain = await deploy(node, artifacts.HeaderChain, verifier, 2, GENESIS);
  });

  test("the chain begins before the genesis block", async () => {
    assert.equal(await chain.tip(), GENESIS.hash);
    assert.equal(await chain.anchor(), GENESIS.hash);
    assert.equal(await chain.slots(), 2n);
    assert.equal(await chain.known(GENESIS.hash), true);
    assert.equal(await chain.isCanonical(GENESIS.hash), true);
    await refuses(chain, "tipHeight", [], ["NoHeaders"]);
    await refuses(chain, "tipOf", [chunks[0].chunk.lastHash], ["UnknownTip", chunks[0].chunk.lastHash]);
  });

  test("each chunk is accepted once and in order", async (t) => {
    t.diagnostic(`gas of deployments: verifier ${verifier.deploymentGas}, HeaderChain ${chain.deploymentGas}`);
    let work = 0n;
    for (const [index, { chunk, first, last }] of chunks.entries()) {
      const next = chunks[index + 1]?.chunk;
      if (next) await refuses(chain, "advance", [next], ["UnknownParent", next.prevHash]);
      const receipt = await send(chain, "advance", chunk);
      t.diagnostic(`gas of headers ${first} to ${last}: ${receipt.gasUsed}`);
      work += 2n * EASIEST_WORK;
      assert.deepEqual(eventsOf(chain, receipt), [
        ["ChunkAccepted", chunk.lastHash, chunk.prevHash, BigInt(first), BigInt(last), ...lastOf(chunk.headers), work],
        ["TipChanged", chunk.lastHash, chunk.prevHash, BigInt(last)],
      ]);
      await refuses(chain, "advance", [chunk], ["AlreadyKnown", chunk.lastHash]);
    }
    const { lastHash, prevHash } = chunks.at(-1).chunk;
    assert.equal(await chain.tipHeight(), 31n);
    assert.equal(await chain.tip(), lastHash);
    const { state, parent } = await chain.tipOf(lastHash);
    const [time] = lastOf(chunks.at(-1).chunk.headers);
    assert.deepEqual([...state], [32n * EASIEST_WORK, 32n, 0x1d00ffffn, time, 1231006505n]);
    assert.equal(parent, prevHash);
    for (const { chunk } of chunks) assert.equal(await chain.isCanonical(chunk.lastHash), true);
    assert.equal(await chain.isCanonical(`0x${"12".repeat(32)}`), false);
  });

  test("all chunks are accepted in one transaction, or none", async (t) => {
    const other = await deploy(node, artifacts.HeaderChain, verifier, 2, GENESIS);
    const all = chunks.map(({ chunk }) => chunk);
    const at = (index, chunk) => all.map((it, place) => (place === index ? chunk : it));
    const refused = (given, reason) => refuses(other, "advanceMany", [given], reason);
    for (const index of [0, 3, 15]) {
      await refused(at(index, changed(all[index], { proof: all[index ^ 1].proof })), ["BadProofs", 16]);
      for (const proof of ["0x", all[index].proof.slice(0, -2), `${all[index].proof}00`]) {
        await refused(at(index, changed(all[index], { proof })), ["BadProof", all[index].lastHash]);
      }
    }
    const [zero, one] = [{ proof: all[1].proof }, { proof: all[0].proof }];
    await refused([changed(all[0], zero), changed(all[1], one), ...all.slice(2)], ["BadProofs", 16]);
    await refused([all[1], all[0]], ["UnknownParent", all[1].prevHash]);
    assert.equal(await other.tip(), GENESIS.hash);
    // Somebody else has the first chunk accepted meanwhile: the others are accepted nevertheless.
    const ahead = await deploy(node, artifacts.HeaderChain, verifier, 2, GENESIS);
    await send(ahead, "advance", all[0]);
    await refuses(ahead, "advanceMany", [[all[0], all[0]]], ["AlreadyKnown", all[0].lastHash]);
    const forged = changed(all[1], { proof: all[0].proof });
    await refuses(ahead, "advanceMany", [[all[0], forged, all[1]]], ["BadProof", all[1].lastHash]);
    await refuses(ahead, "advanceMany", [[all[0], forged, all[2]]], ["BadProofs", 2]);
    // What is passed over is not looked at.
    await send(ahead, "advanceMany", [changed(all[0], { proof: "0x" }), all[1], forged, all[2]]);
    assert.equal((await send(ahead, "advanceMany", [])).logs.length, 0);
    assert.equal(await ahead.tip(), all[2].lastHash);
    const receipt = await send(other, "advanceMany", all);
    t.diagnostic(`gas of 16 chunks in one transaction: ${receipt.gasUsed}, ${receipt.gasUsed / 16n} each`);
    const told = all.flatMap(({ lastHash, prevHash, headers }, index) => [
      ["ChunkAccepted", lastHash, prevHash, BigInt(2 * index), BigInt(2 * index + 1), ...lastOf(headers),
        2n * BigInt(index + 1) * EASIEST_WORK],
      ["TipChanged", lastHash, prevHash, BigInt(2 * index + 1)],
    ]);
    assert.deepEqual(eventsOf(other, receipt), told);
    const few = await deploy(node, artifacts.HeaderChain, verifier, 2, GENESIS);
    for (const [from, to] of [[0, 1], [1, 3], [3, 7], [7, 15]]) {
      const { gasUsed } = await send(few, "advanceMany", all.slice(from, to));
      t.diagnostic(`gas of ${to - from} chunks in one transaction: ${gasUsed}, ${gasUsed / BigInt(to - from)} each`);
    }
    assert.equal(await other.tipHeight(), 31n);
    assert.equal(await other.tip(), await chain.tip());
  });
});

onEveryNode("forged and misplaced chunks", (node) => {
  let chain;
  const [first, second, third] = chunks.map(({ chunk }) => chunk);
  const refused = async (changes, reason) => {
    await refuses(chain, "advance", [changed(second, changes)], reason);
    assert.equal(await chain.tip(), first.lastHash);
  };

  before(async () => {
    const verifier = await deploy(node, artifacts.Verifier2);
    chain = await deploy(node, artifacts.HeaderChain, verifier, 2, GENESIS);
    await send(chain, "advance", first);
  });

  test("another statement than the proof's", async () => {
    await refused({ prevHash: GENESIS.hash }, ["BadProof", second.lastHash]);
    const shown = third.headers;
    await refused({ lastHash: third.lastHash, headers: shown }, ["BadProof", third.lastHash]);
    await refused({ lastHash: third.lastHash }, ["WrongHeader", 0, third.lastHash, second.lastHash]);
    for (const byte of [0, 15, 16, 31]) {
      const hash = Buffer.from(second.lastHash.slice(2), "hex");
      hash[byte] ^= 1;
      const lastHash = `0x${hash.toString("hex")}`;
      await refused({ lastHash }, ["WrongHeader", 0, lastHash, second.lastHash]);
      const other = Buffer.from(second.prevHash.slice(2), "hex");
      other[byte] ^= 0x80;
      const prevHash = `0x${other.toString("hex")}`;
      await refused({ prevHash }, ["UnknownParent", prevHash]);
    }
    await refused({ bits: [0x1d00ffff] }, ["BadProof", second.lastHash]);
  });

  test("bits that the network does not demand", async () => {
    await refused({ bits: [0x1d00fffe, 0x1d00ffff] }, ["WrongBits", 2, 0x1d00ffff, 0x1d00fffe]);
    await refused({ bits: [0x1d00ffff, 0x207fffff] }, ["WrongBits", 3, 0x1d00ffff, 0x207fffff]);
    await refused({ bits: [0x1d00ffff, 0] }, ["WrongBits", 3, 0x1d00ffff, 0]);
  });

  test("no headers, or more than slots", async () => {
    await refused({ bits: [] }, ["BadCount", 0, 2]);
    await refused({ bits: [0x1d00ffff, 0x1d00ffff, 0x1d00ffff] }, ["BadCount", 3, 2]);
    await refused({ bits: [0x1d00ffff, 0x1d00ffff, 0] }, ["BadCount", 3, 2]);
  });

  test("other serialised headers than the last", async () => {
    await refused({ headers: chunks[1].headers }, ["WrongHeadersLength", 80, 160]);
    await refused({ headers: "0x" }, ["WrongHeadersLength", 80, 0]);
    await refused({ headers: second.headers.slice(0, -2) }, ["WrongHeadersLength", 80, 79]);
    await refused({ headers: first.headers }, ["WrongHeader", 0, second.lastHash, first.lastHash]);
  });

  test("another chunk's proof, and proofs of other lengths", async () => {
    const proofs = [first.proof, third.proof, "0x", second.proof.slice(0, -2), `${second.proof}00`,
      `0x${"0".repeat(1024)}`, `0x${"f".repeat(1024)}`];
    for (const proof of proofs) await refused({ proof }, ["BadProof", second.lastHash]);
  });

  test("a byte changed anywhere in the proof", async () => {
    for (let at = 0; at < 512; at += 37) {
      const proof = Buffer.from(second.proof.slice(2), "hex");
      proof[at] ^= 1 << (at % 8);
      await refused({ proof: `0x${proof.toString("hex")}` }, ["BadProof", second.lastHash]);
    }
  });

  test("the chunk itself is accepted after all that", async () => {
    await send(chain, "advance", second);
    assert.equal(await chain.tipHeight(), 3n);
  });
});

onEveryNode("a circuit with a slot to spare", (node) => {
  test("a chunk that leaves a slot unused is accepted, with no other number of headers", async (t) => {
    const [first, second] = readChunks(proofsOf("slotUnused")).map(({ chunk }) => chunk);
    assert.equal(second.bits.length, 2);
    const verifier = await deploy(node, artifacts.Verifier3);
    const anchor = changed(GENESIS, { hash: first.prevHash, nextHeight: 1 });
    const chain = await deploy(node, artifacts.HeaderChain, verifier, 3, anchor);
    assert.equal(await chain.tipHeight(), 0n);
    await send(chain, "advance", first);
    const together = await deploy(node, artifacts.HeaderChain, verifier, 3, anchor);
    const more = changed(second, { bits: [...second.bits, 0x1d00ffff] });
    await refuses(together, "advanceMany", [[first, more]], ["BadProofs", 2]);
    await send(together, "advanceMany", [first, second]);
    assert.equal(await together.tipHeight(), 5n);
    await refuses(chain, "advance", [more], ["BadProof", second.lastHash]);
    const receipt = await send(chain, "advance", second);
    t.diagnostic(`gas of a chunk of two headers with three slots: ${receipt.gasUsed}`);
    assert.equal(await chain.tipHeight(), 5n);
  });
});

onEveryNode("the main network's first change of the difficulty, at 2016", (node) => {
  let verifier;
  before(async () => { verifier = await deploy(node, artifacts.Verifier2); });
  const begin = ({ chunk, first }) =>
    deploy(node, artifacts.HeaderChain, verifier, 2, changed(GENESIS, { hash: chunk.prevHash, nextHeight: first, time: 0 }));
  const time = (headers, index) => BigInt(Buffer.from(headers.slice(2), "hex").readUInt32LE(80 * index + 68));

  test("inside a chunk, with the headers from the one before", async (t) => {
    const [across, next] = readChunks(proofsOf("changeInside"));
    assert.deepEqual([across.first, across.last], [2015, 2016]);
    assert.equal(across.chunk.headers, across.headers);
    const chain = await begin(across);
    const refused = (headers, reason) => refuses(chain, "advance", [changed(across.chunk, { headers })], reason);
    await refused("0x", ["WrongHeadersLength", 160, 0]);
    await refused(across.headers.slice(0, -2), ["WrongHeadersLength", 160, 159]);
    await refused(`${across.headers}00`, ["WrongHeadersLength", 160, 161]);
    const receipt = await send(chain, "advance", across.chunk);
    t.diagnostic(`gas of a chunk across the change: ${receipt.gasUsed}`);
    await send(chain, "advance", next.chunk);
    assert.equal(await chain.tipHeight(), 2018n);
    const { state } = await chain.tipOf(next.chunk.lastHash);
    const [last] = lastOf(next.headers);
    assert.deepEqual([...state], [4n * EASIEST_WORK, 2019n, 0x1d00ffffn, last, time(across.headers, 1)]);
  });

  test("between two chunks, by the time of the header before, which is known", async () => {
    const [before, after] = readChunks(proofsOf("changeBetween"));
    assert.deepEqual([after.first, after.last], [2016, 2017]);
    assert.equal(after.chunk.headers, after.headers);
    const chain = await begin(before);
    await send(chain, "advance", before.chunk);
    const refused = (given, reason) => refuses(chain, "advance", [changed(after.chunk, { headers: given })], reason);
    await refused(`0x${after.headers.slice(2 + 160)}`, ["WrongHeadersLength", 160, 80]);
    const [named] = [after.headers.slice(2 + 160 + 8, 2 + 160 + 72)];
    const late = Buffer.from(after.headers.slice(2), "hex");
    late.writeUInt32LE(late.readUInt32LE(68) + 1, 68);
    const lateHex = `0x${late.toString("hex")}`;
    await refused(lateHex, ["WrongHeader", 0, `0x${named}`, sha256dOf(lateHex, 0)]);
    await send(chain, "advance", after.chunk);
    const { state } = await chain.tipOf(after.chunk.lastHash);
    assert.equal(state.periodStart, time(after.headers, 0));
  });
});

onEveryNode("deployments", (node) => {
  test("anchors and circuits that cannot be are refused", async () => {
    const verifier = await deploy(node, artifacts.Verifier2);
    const refused = (args, reason) => refusesDeployment(node, artifacts.HeaderChain, args, reason);
    const nobody = "0x00000000000000000000000000000000000000aa";
    await refused([nobody, 2, GENESIS], ["NoVerifier", "0x00000000000000000000000000000000000000AA"]);
    // A verifier that does not verify several proofs at once.
    const alone = await deploy(node, artifacts.TestOnlyLoneVerifier);
    await refused([alone, 2, GENESIS], ["NoVerifier", await alone.getAddress()]);
    await refused([verifier, 0, GENESIS], ["BadSlots", 0]);
    await refused([verifier, 1025, GENESIS], ["BadSlots", 1025]);
    await refused([verifier, 2, changed(GENESIS, { nextHeight: 1 })], ["BadAnchor"]);
    await refused([verifier, 2, changed(GENESIS, { time: 1231006506 })], ["BadAnchor"]);
    await refused([verifier, 2, changed(GENESIS, { periodStart: 1231006506 })], ["BadAnchor"]);
    await refused([verifier, 2, changed(GENESIS, { bits: 0x1c00ffff })], ["BadAnchor"]);
    const first = { hash: chunks[0].chunk.lastHash, nextHeight: 2017, time: 1231006506 };
    await refused([verifier, 2, changed(GENESIS, first)], ["BadAnchor"]);
    await refused([verifier, 2, changed(GENESIS, { hash: chunks[0].chunk.lastHash })], ["BadAnchor"]);
    await refused([verifier, 2, changed(GENESIS, { bits: 0x1d010000 })], ["BadAnchor"]);
    await refused([verifier, 2, changed(GENESIS, { bits: 0x1e0000ff })], ["BadAnchor"]);
    for (const bits of [0, 0x1d800000, 0x1d80ffff, 0xff123456, 0x01003456]) {
      await refused([verifier, 2, changed(GENESIS, { bits })], ["InvalidBits", bits]);
    }
  });
});
