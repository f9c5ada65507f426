// Tests that run on every node, deploy contracts there and look at the reasons of reverts.

import assert from "node:assert/strict";
import { readFileSync } from "node:fs";
import { dirname, join } from "node:path";
import { after, before, describe } from "node:test";
import { fileURLToPath } from "node:url";
import { ContractFactory } from "ethers";
import { compile, projectSources } from "../../compile.mjs";
import { nodes, startNode } from "./nodes.mjs";
import { verifierSourceOf } from "./program.mjs";

const contracts = join(dirname(fileURLToPath(import.meta.url)), "..", "contracts");

/** Gas of transactions that are sent though they will revert: more than any accepted chunk of two headers needs. */
const REVERTING_GAS = 3_000_000n;

/** Runs tests on every node. They are declared in `body`, which gets an object that has the node's parts when they run. */
export function onEveryNode(title, body) {
  for (const name of Object.keys(nodes)) {
    describe(`${title}, on ${name}`, () => {
      const node = {};
      before(async () => Object.assign(node, await startNode(name)));
      after(() => node.stop?.());
      body(node);
    });
  }
}

/** Artifacts of the project's contracts, of the named files beside the tests, and of the named verifiers. */
export function artifactsWith({ testContracts = [], verifiers = [] }) {
  const sources = projectSources();
  for (const name of testContracts) sources[`test/contracts/${name}`] = readFileSync(join(contracts, name), "utf8");
  for (const name of verifiers) sources[`${name}.sol`] = verifierSourceOf(name);
  return compile(sources);
}

/** Deploys a contract and returns it, and the gas that it took as `deploymentGas`. */
export async function deploy(node, { abi, bytecode }, ...args) {
  const contract = await new ContractFactory(abi, bytecode, node.signer).deploy(...args);
  const receipt = await contract.deploymentTransaction().wait();
  return Object.assign(contract, { deploymentGas: receipt.gasUsed });
}

/** Sends a transaction and returns its receipt. */
export async function send(contract, method, ...args) {
  const transaction = await contract[method](...args);
  return transaction.wait();
}

/** The events of a receipt that the contract knows, each as `[name, ...arguments]`. */
export function eventsOf(contract, receipt) {
  const parsed = receipt.logs.map((log) => contract.interface.parseLog(log));
  return parsed.map(({ name, args }) => [name, ...args]);
}

const comparable = (value) => (typeof value === "number" ? BigInt(value) : value);

/** Checks the reason of a failed call: the name of an error of the contract, and its arguments. */
function checkReason(contract, failure, [name, ...args]) {
  assert.equal(failure.code, "CALL_EXCEPTION", failure.stack);
  const reason = failure.data && failure.data !== "0x" ? contract.interface.parseError(failure.data) : null;
  assert.ok(reason, `reverted without a known reason instead of with ${name}: ${failure.data} ${failure.message}`);
  assert.deepEqual([reason.name, ...reason.args], [name, ...args.map(comparable)]);
}

/** Checks that a deployment reverts with an error and its arguments. */
export async function refusesDeployment(node, { abi, bytecode }, args, reason) {
  const factory = new ContractFactory(abi, bytecode, node.signer);
  const { data } = await factory.getDeployTransaction(...args);
  const failure = await node.provider.call({ data }).then(() => assert.fail("was deployed"), (error) => error);
  checkReason({ interface: factory.interface }, failure, reason);
}

/** Checks that a call reverts with an error and its arguments, and that the transaction is reverted in a block as well. */
export async function refuses(contract, method, args, reason) {
  const failure = await contract[method].staticCall(...args).then(() => assert.fail(`${method} was accepted`), (e) => e);
  checkReason(contract, failure, reason);
  const { data } = await contract[method].populateTransaction(...args);
  const request = { to: await contract.getAddress(), data, gasLimit: REVERTING_GAS };
  const transaction = await contract.runner.sendTransaction(request);
  const reverted = await transaction.wait().then(() => assert.fail(`${method} was accepted`), (error) => error);
  assert.equal(reverted.receipt?.status, 0, reverted.stack);
}
