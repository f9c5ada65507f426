// Makes vectors.json: transactions signed by ethers and by viem, which must agree.
// In an empty folder: npm install ethers@6.17.0 viem@2.57.20, copy this file there, node vectors.mjs > vectors.json
import { Transaction, Wallet } from "ethers";
import { privateKeyToAccount } from "viem/accounts";

const keys = [
  // Account 0 of anvil and Hardhat.
  "0xac0974bec39a17e36ba4a6b4d238ff944bacb478cbed5efcae784d7bf4f2ff80",
  "0x0000000000000000000000000000000000000000000000000000000000000001",
  // The largest: the group's order less 1.
  "0xfffffffffffffffffffffffffffffffebaaedce6af48a03bbfd25e8cd0364140",
  "0x4c0883a69102937d6231471b5dbb6204fe5129617082792ae468d01a3f362318",
];
const transactions = [
  { chain: 31337n, nonce: 0, to: "0x70997970C51812dc3A010C7d01b50e0d17dc79C8", value: 10n ** 18n, data: "0x", gas: 21000n, fee: 30000000000n, tip: 1000000000n },
  { chain: 1n, nonce: 12345, to: null, value: 0n, data: "0x6080604052600080fd", gas: 1000000n, fee: (1n << 128n) - 1n, tip: 0n },
  { chain: 11155111n, nonce: Number.MAX_SAFE_INTEGER, to: "0x00000000000000000000000000000000000000ff", value: (1n << 256n) - 1n, data: "0x" + "ab".repeat(60), gas: (1n << 63n) - 1n, fee: 1n, tip: 1n },
  { chain: 1n, nonce: 0, to: "0x0000000000000000000000000000000000000000", value: 0n, data: "0x00", gas: 0n, fee: 0n, tip: 0n },
];
const vectors = [];
for (const key of keys) {
  for (const { chain, nonce, to, value, data, gas, fee, tip } of transactions) {
    const ethers = Transaction.from({ type: 2, chainId: chain, nonce, to, value, data, gasLimit: gas, maxFeePerGas: fee, maxPriorityFeePerGas: tip });
    const wallet = new Wallet(key);
    ethers.signature = wallet.signingKey.sign(ethers.unsignedHash);
    const raw = await privateKeyToAccount(key).signTransaction({ type: "eip1559", chainId: Number(chain), nonce, to: to ?? undefined, value, data, gas, maxFeePerGas: fee, maxPriorityFeePerGas: tip });
    if (raw !== ethers.serialized) throw new Error(`they disagree: ${raw} and ${ethers.serialized}`);
    const number = (value) => `0x${value.toString(16)}`;
    vectors.push({ key, address: wallet.address, chain: number(chain), nonce: number(nonce), to, value: number(value), data, gas: number(gas), fee: number(fee), tip: number(tip), raw, hash: ethers.hash });
  }
}
console.log(JSON.stringify(vectors, null, 1));
