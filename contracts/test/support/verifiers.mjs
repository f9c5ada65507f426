// Calls of verifier contracts, and what they cost.

import assert from "node:assert/strict";

/** Gas of a call that may meet a precompile's refusal, which takes all that it is given. */
const CALL_GAS = 3_000_000n;

/** The answer of a view function of a contract. */
export const ask = (contract, method, args) => contract[method](...args, { gasLimit: CALL_GAS });

/** Checks that a call is answered `false`. */
export async function refused(contract, method, args, name) {
  assert.equal(await ask(contract, method, args), false, name);
}

/** Checks that a call is answered `true`. */
export async function accepted(contract, method, args, name) {
  assert.equal(await ask(contract, method, args), true, name);
}

/**
 * Calls a view function about valid proofs with each limit of gas that `limitsOf` gives for the limit that is enough: none may be
 * answered `false`. Returns the limit that is enough, and how many calls were answered, reverted with `NotEnoughGas`, and ran out
 * of gas.
 */
export async function neverFalse(node, contract, method, args, limitsOf) {
  const request = { to: await contract.getAddress(), data: contract.interface.encodeFunctionData(method, args) };
  const enough = await node.provider.estimateGas(request);
  const answers = { enough, taken: 0, starved: 0, outOfGas: 0 };
  for (const gasLimit of limitsOf(enough)) {
    const answer = await node.provider.call({ ...request, gasLimit }).catch((error) => error);
    if (typeof answer === "string") {
      assert.equal(BigInt(answer), 1n, `answered false with ${gasLimit} gas`);
      answers.taken += 1;
    } else if (answer.data && contract.interface.parseError(answer.data)?.name === "NotEnoughGas") {
      answers.starved += 1;
    } else {
      answers.outOfGas += 1;
    }
  }
  assert.ok(answers.taken > 0);
  return answers;
}

/** Numbers from `from` in steps of `step`, below `end`. */
export function* steps(from, end, step) {
  for (let number = from; number < end; number += step) yield number;
}

/**
 * Gas of a transaction that calls a view function: `transaction` in all, and `execution` without the 21,000 of every
 * transaction and without its calldata, which is what another contract pays for the call.
 */
export async function gasOf(node, contract, method, args) {
  await accepted(contract, method, args, "measured");
  const request = await contract[method].populateTransaction(...args, { gasLimit: 10_000_000n });
  const receipt = await (await node.signer.sendTransaction(request)).wait();
  const bytes = Buffer.from(request.data.slice(2), "hex");
  const calldata = bytes.reduce((sum, byte) => sum + (byte === 0 ? 4n : 16n), 0n);
  return { transaction: receipt.gasUsed, execution: receipt.gasUsed - 21_000n - calldata };
}

/** Prints a table of a test as Markdown. */
export function printTable(t, header, rows) {
  const line = (cells) => `| ${cells.join(" | ")} |`;
  const shown = (cell) => (typeof cell === "bigint" ? cell.toLocaleString("en") : `${cell}`);
  t.diagnostic(line(header));
  t.diagnostic(line(header.map(() => "---")));
  for (const row of rows) t.diagnostic(line(row.map(shown)));
}
