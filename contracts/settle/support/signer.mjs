// A server that signs transactions (`eth_signTransaction`), as Web3Signer does; it may be told to sign something else.

import { createServer } from "node:http";
import { Wallet } from "ethers";

/** Starts a server that signs with the key of `account`. `change` gets a transaction and returns the one that is signed. */
export async function startSigner(account) {
  const signer = { account: new Wallet(account.privateKey), change: (asked) => asked };
  signer.wallet = signer.account;
  const server = createServer(async (request, response) => {
    const parts = [];
    for await (const part of request) parts.push(part);
    const { id, method, params: [asked] } = JSON.parse(Buffer.concat(parts));
    const answer = { jsonrpc: "2.0", id };
    if (method === "eth_signTransaction") {
      const transaction = {
        type: 2,
        chainId: BigInt(asked.chainId),
        nonce: Number(asked.nonce),
        to: asked.to,
        value: BigInt(asked.value),
        data: asked.data,
        gasLimit: BigInt(asked.gas),
        maxFeePerGas: BigInt(asked.maxFeePerGas),
        maxPriorityFeePerGas: BigInt(asked.maxPriorityFeePerGas),
      };
      answer.result = await signer.wallet.signTransaction(signer.change(transaction));
    } else {
      answer.error = { code: -32601, message: `there is no ${method}` };
    }
    response.writeHead(200, { "content-type": "application/json" }).end(JSON.stringify(answer));
  });
  await new Promise((resolve, reject) => server.once("error", reject).listen(0, "127.0.0.1", resolve));
  signer.url = `http://127.0.0.1:${server.address().port}`;
  signer.stop = () => new Promise((resolve) => {
    server.close(resolve);
    server.closeAllConnections();
  });
  return signer;
}
