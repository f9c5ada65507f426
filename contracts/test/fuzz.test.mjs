// Calldata of HeaderChain with random bytes changed: nothing but the very same chunks is ever accepted.

import assert from "node:assert/strict";
import { before, test } from "node:test";
import { readChunks } from "./support/demo.mjs";
import { artifactsWith, deploy, onEveryNode, send } from "./support/harness.mjs";
import { proofsOf } from "./support/program.mjs";
import { Random, SEED } from "./support/random.mjs";

/** Calls on each node. */
const CALLS = 400;

const artifacts = artifactsWith({ verifiers: ["Verifier2"] });

/** Changes one to four things in some bytes: bits, bytes, words of zeros or ones, or the length. */
function mutate(bytes, random) {
  let mutated = Buffer.from(bytes);
  for (let count = 1 + random.below(4); count > 0; --count) {
    const at = random.below(mutated.length);
    const word = 4 + 32 * random.below(Math.floor((mutated.length - 4) / 32));
    const changes = [
      () => { mutated[at] ^= 1 << random.below(8); },
      () => { mutated[at] = random.below(256); },
      () => { mutated.fill(random.pick([0, 255]), word, word + 32); },
      () => { mutated.writeUInt32BE(random.below(2048), word + 28); },
      () => { random.bytes32().copy(mutated, word); },
      () => { mutated = mutated.subarray(0, at); },
    ];
    random.pick(changes)();
    if (mutated.length < 40) return mutated;
  }
  return mutated;
}

onEveryNode(`calldata with random changes, seed ${SEED}`, (node) => {
  let chain;
  const chunks = readChunks(proofsOf("changeInside"));
  const { chunk } = chunks[0];

  before(async () => {
    const verifier = await deploy(node, artifacts.Verifier2);
    const anchor = { hash: chunk.prevHash, nextHeight: 2015, bits: 0x1d00ffff, time: 0, periodStart: 1231006505 };
    chain = await deploy(node, artifacts.HeaderChain, verifier, 2, anchor);
  });

  /** Makes changed calls of a function; those that are accepted must have chunks that `check` takes, by their number. */
  async function callChanged(t, data, check) {
    const random = new Random("calldata");
    const request = { to: await chain.getAddress(), from: await node.signer.getAddress(), gasLimit: 3_000_000n };
    const name = chain.interface.getFunction(data.slice(0, 10)).name;
    let same = 0;
    for (let count = 0; count < CALLS; ++count) {
      const mutated = `0x${mutate(Buffer.from(data.slice(2), "hex"), random).toString("hex")}`;
      const answer = await node.provider.call({ ...request, data: mutated }).catch((error) => error);
      if (answer instanceof Error) {
        assert.equal(answer.code, "CALL_EXCEPTION", answer.stack);
        continue;
      }
      // Bytes that no field uses, such as padding, may differ.
      assert.equal(mutated.slice(0, 10), data.slice(0, 10), `call ${count}: ${mutated}`);
      // Solidity takes an argument whose padding is cut off; the decoder here does not.
      const [given] = chain.interface.decodeFunctionData(name, `${mutated}${"00".repeat(32)}`);
      check(given, `call ${count}: ${mutated}`);
      ++same;
    }
    t.diagnostic(`${CALLS} calls of ${name}, of which ${same} were accepted: they changed only what decides nothing`);
    assert.ok(same < CALLS / 4);
  }

  test("nothing else is accepted in a batch", async (t) => {
    const { data } = await chain.advanceMany.populateTransaction(chunks.map(({ chunk: each }) => each));
    const [wanted] = chain.interface.decodeFunctionData("advanceMany", data);
    // The list may be shorter, and a chunk that comes again is passed over.
    await callChanged(t, data, (given, call) => {
      const accepted = [...given].filter(({ lastHash }, index) => given.findIndex((it) => it.lastHash === lastHash) === index);
      assert.deepEqual(accepted, [...wanted].slice(0, accepted.length), call);
    });
    assert.equal(await chain.tip(), chunk.prevHash);
  });

  test("nothing else is accepted alone", async (t) => {
    const { data } = await chain.advance.populateTransaction(chunk);
    const [wanted] = chain.interface.decodeFunctionData("advance", data);
    await callChanged(t, data, (given, call) => assert.deepEqual(given, wanted, call));
    await send(chain, "advance", chunk);
  });
});
