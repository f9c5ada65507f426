// HeaderChain over chains that part from each other, and over changes of the difficulty that change the bits.
//
// No real proof can be made for such chains, which somebody would have to mine: the headers here are made up, without work, and
// TestOnlyVerifierStub takes the verifier's place. Everything else is the contract's own.

import assert from "node:assert/strict";
import { before, test } from "node:test";
import { artifactsWith, deploy, eventsOf, onEveryNode, refuses, send } from "./support/harness.mjs";
import { sha256d } from "../headers.mjs";
import { lastOf } from "./support/demo.mjs";
import { workOfBits } from "./support/model.mjs";
import { ModelChain, hex } from "./support/model-chain.mjs";
import { Random, SEED } from "./support/random.mjs";

const artifacts = artifactsWith({ testContracts: ["TestOnlyVerifierStub.sol"] });
const SLOTS = 8;

/** Compares everything that the contract knows with the model. */
async function compare(chain, model) {
  assert.equal(await chain.tip(), model.best.hash);
  assert.equal(await chain.tipHeight(), BigInt(model.best.nextHeight - 1));
  const canonical = model.canonical();
  for (const node of model.nodes) {
    const { state, parent } = await chain.tipOf(node.hash);
    const { nextHeight, header, periodStart } = node;
    const numbers = [nextHeight, header.bits, header.time, periodStart].map(BigInt);
    assert.deepEqual([...state], [node.work, ...numbers]);
    assert.equal(parent, node.parent?.hash ?? `0x${"0".repeat(64)}`);
    assert.equal(await chain.isCanonical(node.hash), canonical.has(node.hash));
  }
}

onEveryNode(`chains that part, seed ${SEED}`, (node) => {
  let stub;
  before(async () => { stub = await deploy(node, artifacts.TestOnlyVerifierStub); });
  const begin = (model, slots = SLOTS) => deploy(node, artifacts.HeaderChain, stub, slots, model.anchor);

  test("random chunks over a change of the difficulty", async () => {
    for (let round = 0; round < 4; ++round) {
      const random = new Random(`tree ${round}`);
      // Bits far below the limit, so that a change has an effect in both directions.
      const model = new ModelChain(random, 2016 * 17 - 1 - random.below(12), 0x1b0404cb);
      const chain = await begin(model);
      for (let step = 0; step < 20;) {
        // In every other round several in a transaction, with branches, and with some that are known.
        const count = round % 2 ? 1 + random.below(6) : 1;
        const [group, expected] = [[], []];
        for (let index = 0; index < count; ++index, ++step) {
          const parent = random.below(3) ? model.nodes.at(-1) : random.pick(model.nodes);
          const { chunk, node: added } = model.extend(parent, 1 + random.below(SLOTS));
          const previous = model.best;
          const height = BigInt(added.nextHeight - 1);
          const heights = [BigInt(parent.nextHeight), height];
          expected.push(["ChunkAccepted", added.hash, parent.hash, ...heights, ...lastOf(chunk.headers), added.work]);
          if (model.take(added)) expected.push(["TipChanged", added.hash, previous.hash, height]);
          group.push(chunk);
          if (count > 1 && random.below(3) === 0) group.push(random.pick(group));
        }
        const receipt = await (count > 1 ? send(chain, "advanceMany", group) : send(chain, "advance", group[0]));
        assert.deepEqual(eventsOf(chain, receipt), expected);
      }
      await compare(chain, model);
    }
  });

  test("only strictly more work changes the tip", async () => {
    const model = new ModelChain(new Random("more work"), 2016 * 9);
    const chain = await begin(model);
    const accept = async ({ chunk, node: added }) => {
      await send(chain, "advance", chunk);
      return [added, model.take(added)];
    };
    const root = model.nodes[0];
    const [first] = await accept(model.extend(root, 4));
    const [, sameWork] = await accept(model.extend(root, 4));
    assert.equal(sameWork, false);
    const [shorter] = await accept(model.extend(root, 2));
    await compare(chain, model);
    assert.equal(await chain.tip(), first.hash);
    const [, longer] = await accept(model.extend(shorter, 3));
    assert.equal(longer, true);
    await compare(chain, model);
    assert.equal(await chain.isCanonical(first.hash), false);
    // Of the same height, so that no step back is needed to tell.
    const [, , sibling] = model.nodes;
    assert.equal(await chain.isAncestor(first.hash, sibling.hash, 0), false);
  });

  test("a shorter chain with more work replaces a longer one", async () => {
    const random = new Random("harder");
    const model = new ModelChain(random, 2015, 0x1c05a3f4);
    const chain = await begin(model);
    const root = model.nodes[0];
    // One chain gets easier after the change, by a slow period, and the other one harder.
    const branch = (time) => {
      const { chunk, node: added } = model.extend(root, 1);
      added.header.time = time;
      added.header.bytes.writeUInt32LE(time, 68);
      return { chunk, node: added };
    };
    for (const [time, count] of [[root.periodStart + 4_838_400, 8], [root.periodStart + 302_400, 2]]) {
      const last = branch(time);
      const hash = hex(sha256d(last.node.header.bytes));
      Object.assign(last.node, { hash });
      last.node.header.hash = sha256d(last.node.header.bytes);
      last.chunk.lastHash = hash;
      last.chunk.headers = hex(last.node.header.bytes);
      await send(chain, "advance", last.chunk);
      model.take(last.node);
      const { chunk, node: added } = model.extend(last.node, count);
      await send(chain, "advance", chunk);
      assert.equal(model.take(added), true);
    }
    assert.equal(await chain.tipHeight(), 2017n);
    await compare(chain, model);
    const [easy, hard] = [model.nodes[2], model.nodes[4]].map(({ header }) => header.bits);
    assert.equal(workOfBits(hard) > 15n * workOfBits(easy), true);
  });

  test("after a change the bits are exactly the rule's", async () => {
    const model = new ModelChain(new Random("exact"), 2016 * 5 - 2, 0x1b0404cb);
    const chain = await begin(model);
    const { chunk } = model.extend(model.nodes[0], 5);
    const [before, after] = [chunk.bits[1], chunk.bits[2]];
    assert.notEqual(before, after);
    for (const index of [2, 3, 4]) {
      for (const given of [after + 1, after - 1, before]) {
        const bits = chunk.bits.map((it, at) => (at === index ? given : it));
        await refuses(chain, "advance", [{ ...chunk, bits }], ["WrongBits", 2016 * 5 - 2 + index, after, given]);
      }
    }
    const early = chunk.bits.map((it, at) => (at === 1 ? after : it));
    await refuses(chain, "advance", [{ ...chunk, bits: early }], ["WrongBits", 2016 * 5 - 1, before, after]);
    await refuses(chain, "advance", [{ ...chunk, headers: "0x" }], ["WrongHeadersLength", 320, 0]);
    await refuses(chain, "advance", [{ ...chunk, proof: "0x" }], ["BadProof", chunk.lastHash]);
    await send(chain, "advance", chunk);
  });

  test("every header of a change is bound to the chunk's last hash", async () => {
    const model = new ModelChain(new Random("bound"), 2016 * 5 - 1, 0x1b0404cb);
    const chain = await begin(model);
    const { chunk } = model.extend(model.nodes[0], 4);
    const headers = Buffer.from(chunk.headers.slice(2), "hex");
    for (let at = 0; at < headers.length; at += 9) {
      const changed = Buffer.from(headers);
      changed[at] ^= 1 << (at % 8);
      const given = { ...chunk, headers: hex(changed) };
      const failure = await chain.advance.staticCall(given).then(() => assert.fail("accepted"), (error) => error);
      const { name, args } = chain.interface.parseError(failure.data);
      assert.deepEqual([name, args.index], ["WrongHeader", BigInt(Math.floor(at / 80))]);
    }
    await send(chain, "advance", chunk);
  });

  test("a circuit of 1,024 slots crosses two changes in chunks of 1,024", async (t) => {
    const model = new ModelChain(new Random("long"), 2016 * 3 - 1023, 0x1b0404cb);
    const chain = await begin(model, 1024);
    for (const count of [1024, 1024, 1024]) {
      const { chunk, node: added } = model.extend(model.nodes.at(-1), count);
      const receipt = await send(chain, "advance", chunk);
      model.take(added);
      t.diagnostic(`gas of 1,024 headers with a stub of the verifier, ${chunk.headers.length / 2 - 1} bytes of headers: ` +
        `${receipt.gasUsed}`);
    }
    await compare(chain, model);
  });

  test("a walk along the chain is bounded", async () => {
    const model = new ModelChain(new Random("walk"), 100);
    const chain = await begin(model);
    const chunks = [];
    for (let count = 0; count < 6; ++count) {
      const { chunk, node: added } = model.extend(model.nodes.at(-1), 1);
      chunks.push(chunk);
      model.take(added);
    }
    await send(chain, "advanceMany", chunks);
    const { hash } = model.anchor;
    await refuses(chain, "isAncestor", [hash, chunks[5].lastHash, 5], ["TooFarBack", hash, 5]);
    assert.equal(await chain.isAncestor(hash, chunks[5].lastHash, 6), true);
    assert.equal(await chain.isAncestor(hash, hash, 0), true);
    assert.equal(await chain.isAncestor(chunks[5].lastHash, hash, 0), false);
    const unknown = hex(Buffer.alloc(32, 7));
    assert.equal(await chain.isAncestor(unknown, hash, 0), false);
    assert.equal(await chain.isAncestor(hash, unknown, 0), false);
    await compare(chain, model);
  });
});
