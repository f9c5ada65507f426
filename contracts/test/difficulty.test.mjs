// The difficulty rule, against a model and against known values of Bitcoin Core.

import assert from "node:assert/strict";
import { before, test } from "node:test";
import { artifactsWith, deploy, onEveryNode } from "./support/harness.mjs";
import { bitsOfTarget, retargeted, targetOfBits, workOfBits } from "./support/model.mjs";
import { Random, SEED } from "./support/random.mjs";

const artifacts = artifactsWith({ testContracts: ["DifficultyHarness.sol"] });
const times = (count, make) => Array.from({ length: count }, make);

onEveryNode(`the difficulty rule, seed ${SEED}`, (node) => {
  let harness;
  before(async () => { harness = await deploy(node, artifacts.DifficultyHarness); });

  test("targets and work of compact bits", async () => {
    const random = new Random("targets");
    // Bitcoin Core's cases (bignum_SetCompact), then random ones, half of them with a length that a target may have.
    const bits = [0, 0x00123456, 0x01003456, 0x02000056, 0x03000000, 0x04000000, 0x00923456, 0x01803456, 0x02800056, 0x03800000,
      0x04800000, 0x01123456, 0x01fedcba, 0x02123456, 0x02008000, 0x03123456, 0x04123456, 0x04923456, 0x05009234, 0x20123456,
      0xff123456, 0xff000000, 0x220000ff, 0x22000100, 0x2100ffff, 0x21010000, 0x23000001, 0x1d00ffff, 0x1b0404cb, 0x207fffff];
    for (let count = 0; count < 400; ++count) {
      const length = count % 2 ? random.below(36) : random.below(256);
      bits.push(length * 2 ** 24 + Number(random.number(24)));
    }
    const [targets, works] = await harness.decode(bits);
    assert.deepEqual([...targets], bits.map((it) => targetOfBits(it) ?? 0n));
    assert.deepEqual([...works], bits.map((it) => (targetOfBits(it) === null ? 0n : workOfBits(it))));
    assert.equal(workOfBits(0x1d00ffff), 0x1_0001_0001n);
  });

  test("compact bits of targets", async () => {
    const random = new Random("compact");
    const values = [0n, 1n, 0x7fn, 0x80n, 0xffn, 0x7fffn, 0x8000n, 0x7fffffn, 0x800000n, 0xffffffn, (1n << 256n) - 1n];
    for (let count = 0; count < 400; ++count) values.push(random.number(256));
    assert.deepEqual([...(await harness.encode(values))], values.map((value) => BigInt(bitsOfTarget(value))));
  });

  test("Bitcoin Core's changes of the difficulty", async () => {
    // Of its pow_tests: heights 32256, 2016, 68544 and 46368.
    const cases = [
      [0x1d00ffff, 1261130161, 1262152739, 0x1d00d86a],
      [0x1d00ffff, 1231006505, 1233061996, 0x1d00ffff],
      [0x1c05a3f4, 1279008237, 1279297671, 0x1c0168fd],
      [0x1c387f6f, 1263163443, 1269211443, 0x1d00e1fd],
    ];
    const column = (index) => cases.map((it) => it[index]);
    const next = await harness.retarget(column(0), column(1), column(2));
    assert.deepEqual([...next], column(3).map(BigInt));
  });

  test("random changes of the difficulty", async () => {
    const random = new Random("retarget");
    const limit = targetOfBits(0x1d00ffff);
    const bits = times(400, () => {
      const target = random.number(224);
      return bitsOfTarget(target === 0n ? 1n : target < limit ? target : limit);
    });
    const first = bits.map(() => random.below(2 ** 32));
    // Spans around the bounds of a quarter and of four times two weeks, spans backwards, and any.
    const last = first.map((time, index) => {
      const spans = [302_400, 4_838_400, 1_209_600, 0].map((span) => span - 2 + random.below(5));
      const span = index % 3 ? random.pick(spans) : random.below(6_000_000) - 600_000;
      return Math.min(Math.max(time + span, 0), 2 ** 32 - 1);
    });
    const expected = bits.map((it, index) => BigInt(retargeted(it, first[index], last[index])));
    assert.deepEqual([...(await harness.retarget(bits, first, last))], expected);
  });
});
