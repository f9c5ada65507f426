// Stands between the program and its node, and records each transaction that the program offers. Requests and answers pass
// unchanged; while the node does not answer, connections end without an answer.

import { createServer } from "node:http";
import { Transaction } from "ethers";

/** Starts a recorder in front of the node at `upstream`. `sent` has what was offered, oldest first. */
export async function startRecorder(upstream) {
  const sent = [];
  const server = createServer(async (request, response) => {
    try {
      const parts = [];
      for await (const part of request) parts.push(part);
      const body = Buffer.concat(parts);
      const { method, params } = JSON.parse(body);
      const offer = method === "eth_sendRawTransaction" ? { atMs: Date.now(), transaction: Transaction.from(params[0]) } : null;
      // Recorded before the answer, which a kill may cut off.
      if (offer) sent.push(offer);
      const headers = { "content-type": "application/json" };
      const answer = await fetch(upstream, { method: "POST", headers, body });
      const text = await answer.text();
      if (offer) offer.error = JSON.parse(text).error?.message;
      response.writeHead(answer.status, headers).end(text);
    } catch {
      request.socket.destroy();
    }
  });
  await new Promise((resolve, reject) => server.once("error", reject).listen(0, "127.0.0.1", resolve));
  const stop = () => new Promise((resolve) => {
    server.close(resolve);
    server.closeAllConnections();
  });
  return { url: `http://127.0.0.1:${server.address().port}`, sent, stop };
}

/**
 * Different transactions among `sent` by their nonces, oldest first: the offers that replaced each other. Each has the time when it
 * was first offered, and as `refused` the node's last reason not to take it.
 */
export function offersByNonce(sent) {
  const byNonce = new Map();
  for (const { atMs, transaction, error } of sent) {
    const offers = byNonce.get(transaction.nonce) ?? [];
    byNonce.set(transaction.nonce, offers);
    let offer = offers.find((known) => known.transaction.hash === transaction.hash);
    if (!offer) offers.push(offer = { atMs, transaction });
    if (error) offer.refused = error;
  }
  return byNonce;
}
