// OrderedSettlement with real proofs of a small circuit (support/batch-circuit.mjs) that has a batch's public inputs.

import assert from "node:assert/strict";
import { before, test } from "node:test";
import { AbiCoder, Wallet, keccak256 } from "ethers";
import { artifactsWith, deploy, eventsOf, onEveryNode, refuses, refusesDeployment, send } from "./support/harness.mjs";
import { proveBatch } from "./support/program.mjs";

const FIRST = 7n;
const root = (number) => keccak256(`0x${"00".repeat(31)}${number.toString(16).padStart(2, "0")}`);
const artifacts = artifactsWith({ verifiers: ["BatchVerifier"] });
const ZERO = `0x${"0".repeat(40)}`;

/** The digest that OrderedSettlement documents. */
function digestOf(chainId, contract, { number, previousRoot, newRoot, dataHash }) {
  const types = ["uint256", "address", "uint64", "bytes32", "bytes32", "bytes32"];
  return keccak256(AbiCoder.defaultAbiCoder().encode(types, [chainId, contract, number, previousRoot, newRoot, dataHash]));
}

/** A batch with its proof. `changes` are made before it is proven. */
async function prove(settlement, number, changes = {}) {
  const { chainId } = await settlement.runner.provider.getNetwork();
  const batch = { number, previousRoot: root(number), newRoot: root(number + 1n), dataHash: root(number + 100n), ...changes };
  const digest = digestOf(changes.chainId ?? chainId, changes.contract ?? await settlement.getAddress(), batch);
  const [high, low] = [digest.slice(2, 34), digest.slice(34)].map((half) => BigInt(`0x${half}`));
  return { ...batch, proof: proveBatch(high, low), digest };
}

onEveryNode("batches", (node) => {
  let verifier;
  let owner;
  before(async () => {
    verifier = await deploy(node, artifacts.BatchVerifier);
    owner = await node.signer.getAddress();
  });
  const begin = () => deploy(node, artifacts.OrderedSettlement, verifier, owner, FIRST, root(FIRST));

  test("are accepted in order, each once", async (t) => {
    const settlement = await begin();
    t.diagnostic(`gas of deployments: verifier ${verifier.deploymentGas}, OrderedSettlement ${settlement.deploymentGas}`);
    const batches = [];
    for (let number = FIRST; number < FIRST + 4n; ++number) batches.push(await prove(settlement, number));
    for (const [index, batch] of batches.entries()) {
      const next = batches[index + 1];
      if (next) await refuses(settlement, "submit", [next], ["NotNext", batch.number, next.number]);
      assert.equal(await settlement.settled(batch.number), false);
      assert.equal(await settlement.submit.staticCall(batch), true);
      const receipt = await send(settlement, "submit", batch);
      t.diagnostic(`gas of batch ${batch.number}: ${receipt.gasUsed}`);
      assert.deepEqual(eventsOf(settlement, receipt), [["BatchSettled", batch.number, batch.newRoot, batch.digest]]);
      assert.equal(await settlement.settled(batch.number), true);
      assert.equal(await settlement.stateRoot(), batch.newRoot);
      assert.equal(await settlement.nextBatch(), batch.number + 1n);
      assert.equal(await settlement.digestOf(batch.number), batch.digest);
    }
    assert.equal(await settlement.settled(FIRST - 1n), false);
    await refuses(settlement, "submit", [await prove(settlement, FIRST - 1n)], ["NotNext", FIRST + 4n, FIRST - 1n]);
  });

  test("that were accepted change nothing when they come again, and may not change", async () => {
    const settlement = await begin();
    const [first, second] = [await prove(settlement, FIRST), await prove(settlement, FIRST + 1n)];
    await send(settlement, "submit", first);
    await send(settlement, "submit", second);
    for (const again of [first, second, { ...first, proof: "0x" }, await prove(settlement, FIRST)]) {
      assert.equal(await settlement.submit.staticCall(again), false);
      const receipt = await send(settlement, "submit", again);
      assert.equal(receipt.logs.length, 0);
    }
    assert.equal(await settlement.stateRoot(), second.newRoot);
    for (const changes of [{ newRoot: root(1n) }, { previousRoot: root(1n) }, { dataHash: root(1n) }]) {
      const other = await prove(settlement, FIRST, changes);
      await refuses(settlement, "submit", [other], ["Conflict", FIRST, first.digest, other.digest]);
    }
  });

  test("are bound to their content, contract and chain by the proof", async () => {
    const settlement = await begin();
    const batch = await prove(settlement, FIRST);
    const refused = (given) => refuses(settlement, "submit", [given], ["BadProof", FIRST]);
    await refused({ ...batch, newRoot: root(1n) });
    await refused({ ...batch, dataHash: root(1n) });
    await refused({ ...batch, proof: (await prove(settlement, FIRST + 1n)).proof });
    await refused({ ...batch, proof: (await prove(settlement, FIRST, { chainId: 1n })).proof });
    await refused({ ...batch, proof: (await prove(settlement, FIRST, { contract: owner })).proof });
    for (const proof of ["0x", `${batch.proof}00`, batch.proof.slice(0, -2)]) await refused({ ...batch, proof });
    const wrongRoot = await prove(settlement, FIRST, { previousRoot: root(1n) });
    await refuses(settlement, "submit", [wrongRoot], ["WrongRoot", FIRST, root(FIRST), root(1n)]);
    assert.equal(await settlement.nextBatch(), FIRST);
    await send(settlement, "submit", batch);
  });

  test("may come several at once, all or none, with some that were accepted before", async (t) => {
    const settlement = await begin();
    const batches = [];
    for (let number = FIRST; number < FIRST + 5n; ++number) batches.push(await prove(settlement, number));
    const withProof = (proof, at = 3) => batches.map((batch, index) => (index === at ? { ...batch, proof } : batch));
    await refuses(settlement, "submitMany", [withProof(batches[2].proof)], ["BadProofs", 5]);
    await refuses(settlement, "submitMany", [withProof(`${batches[3].proof}00`)], ["BadProof", FIRST + 3n]);
    await refuses(settlement, "submitMany", [withProof("0x", 4)], ["BadProof", FIRST + 4n]);
    await refuses(settlement, "submitMany", [[batches[0], batches[2]]], ["NotNext", FIRST + 1n, FIRST + 2n]);
    assert.equal(await settlement.nextBatch(), FIRST);
    await send(settlement, "submit", batches[0]);
    const alone = withProof(batches[2].proof, 1).slice(0, 2);
    await refuses(settlement, "submitMany", [alone], ["BadProof", FIRST + 1n]);
    assert.equal(await settlement.submitMany.staticCall(batches.slice(0, 2)), 1n);
    assert.equal(await settlement.submitMany.staticCall(batches), 4n);
    const receipt = await send(settlement, "submitMany", batches);
    t.diagnostic(`gas of 4 new batches and an old one at once: ${receipt.gasUsed}`);
    const told = batches.slice(1).map(({ number, newRoot, digest }) => ["BatchSettled", number, newRoot, digest]);
    assert.deepEqual(eventsOf(settlement, receipt), told);
    assert.equal(await settlement.nextBatch(), FIRST + 5n);
    assert.equal(await settlement.submitMany.staticCall(batches), 0n);
    assert.equal(await settlement.submitMany.staticCall([]), 0n);
    const [next, other] = [await prove(settlement, FIRST + 5n), await prove(settlement, FIRST + 5n, { newRoot: root(1n) })];
    await refuses(settlement, "submitMany", [[next, other]], ["Conflict", next.number, next.digest, other.digest]);
    assert.equal(await settlement.submitMany.staticCall([batches[4], next, { ...next, proof: "0x" }]), 1n);
  });

  test("wait while the contract is paused, which only the owner does", async () => {
    const settlement = await begin();
    const [first, second] = [await prove(settlement, FIRST), await prove(settlement, FIRST + 1n)];
    await send(settlement, "submit", first);
    const stranger = await fund(node);
    const asStranger = settlement.connect(stranger);
    await refuses(asStranger, "pause", [], ["NotOwner", stranger.address]);
    await refuses(settlement, "unpause", [], ["NotPaused"]);
    assert.deepEqual(eventsOf(settlement, await send(settlement, "pause")), [["Paused", owner]]);
    await refuses(settlement, "pause", [], ["IsPaused"]);
    await refuses(asStranger, "unpause", [], ["NotOwner", stranger.address]);
    await refuses(settlement, "submit", [second], ["IsPaused"]);
    await refuses(settlement, "submitMany", [[first, second]], ["IsPaused"]);
    assert.equal(await settlement.submit.staticCall(first), false);
    assert.deepEqual(eventsOf(settlement, await send(settlement, "unpause")), [["Unpaused", owner]]);
    await send(asStranger, "submit", second);
    assert.equal(await settlement.nextBatch(), FIRST + 2n);
  });

  test("ownership changes hands in two steps", async () => {
    const settlement = await begin();
    const [next, stranger] = [await fund(node), await fund(node)];
    const refused = (signer, method, args, reason) => refuses(settlement.connect(signer), method, args, reason);
    await refused(stranger, "transferOwnership", [stranger.address], ["NotOwner", stranger.address]);
    await refused(next, "acceptOwnership", [], ["NotPendingOwner", next.address]);
    const offered = await send(settlement, "transferOwnership", next.address);
    assert.deepEqual(eventsOf(settlement, offered), [["OwnershipOffered", owner, next.address]]);
    assert.equal(await settlement.owner(), owner);
    await refused(stranger, "acceptOwnership", [], ["NotPendingOwner", stranger.address]);
    await send(settlement, "transferOwnership", ZERO);
    await refused(next, "acceptOwnership", [], ["NotPendingOwner", next.address]);
    await send(settlement, "transferOwnership", next.address);
    const accepted = await send(settlement.connect(next), "acceptOwnership");
    assert.deepEqual(eventsOf(settlement, accepted), [["OwnershipTransferred", owner, next.address]]);
    assert.deepEqual([await settlement.owner(), await settlement.pendingOwner()], [next.address, ZERO]);
    await refuses(settlement, "pause", [], ["NotOwner", owner]);
    await refused(next, "acceptOwnership", [], ["NotPendingOwner", next.address]);
    await send(settlement.connect(next), "pause");
  });

  test("contracts without a verifier or an owner are not deployed", async () => {
    const refused = (args, reason) => refusesDeployment(node, artifacts.OrderedSettlement, args, reason);
    await refused([owner, owner, FIRST, root(FIRST)], ["NoVerifier", owner]);
    await refused([verifier, ZERO, FIRST, root(FIRST)], ["NoOwner"]);
  });
});

/** A new account with funds on a node. */
async function fund(node) {
  const wallet = Wallet.createRandom(node.provider);
  await (await node.signer.sendTransaction({ to: wallet.address, value: 10n ** 18n })).wait();
  return wallet;
}
