//! Chunks that the light client has accepted, read back from the chain.

use alloy_primitives::keccak256;
use proofmill_bitcoin::BlockHash;
use proofmill_ethereum::{B256, BlockId, Bytes, Call, PlacedLog, Rpc};
use serde::Serialize;

use super::deploy::Deployment;
use crate::failure::Failure;

/// The event of an accepted chunk.
const ACCEPTED: &str = "ChunkAccepted(bytes32,bytes32,uint32,uint32,uint32,bytes32,uint128)";

/// Chunks that the contract has accepted, with their transactions, and its tip.
#[derive(Debug, Serialize)]
pub(crate) struct SettleReport {
    /// The contract.
    pub(crate) contract: String,
    /// Identifier of the Ethereum chain.
    pub(crate) chain_id: u64,
    /// Hash of the contract's tip, as explorers of Bitcoin show it.
    pub(crate) tip: String,
    /// Height of the tip.
    pub(crate) tip_height: u64,
    /// Transactions in the chain's order.
    pub(crate) transactions: Vec<SettledTransaction>,
    /// Units of gas of all transactions.
    pub(crate) gas: u64,
    /// Fees of all transactions, in wei.
    pub(crate) wei: String,
}

/// A transaction that settled chunks.
#[derive(Debug, Serialize)]
pub(crate) struct SettledTransaction {
    /// Its hash.
    pub(crate) hash: String,
    /// Its block.
    pub(crate) block: u64,
    /// First and last height of each chunk, in order.
    pub(crate) chunks: Vec<(u64, u64)>,
    /// Units of gas.
    pub(crate) gas: u64,
}

/// Reads the contract's events, their transactions' receipts, and its tip.
pub(super) async fn read(rpc: &Rpc, deployment: &Deployment) -> Result<SettleReport, Failure> {
    let contract = deployment.header_chain;
    let topic = keccak256(ACCEPTED);
    let logs = rpc.logs(contract, topic, deployment.block).await?;
    // Events come in the chain's order.
    let mut by_transaction: Vec<(&PlacedLog, Vec<(u64, u64)>)> = Vec::new();
    for placed in &logs {
        let chunk = heights(placed)?;
        match by_transaction.last_mut() {
            Some((first, chunks)) if first.transaction == placed.transaction => chunks.push(chunk),
            _ => by_transaction.push((placed, vec![chunk])),
        }
    }
    let mut report = SettleReport {
        contract: contract.to_string(),
        chain_id: deployment.chain_id,
        tip: BlockHash(call(rpc, deployment, "tip()").await?.0).to_string(),
        tip_height: 0,
        transactions: Vec::with_capacity(by_transaction.len()),
        gas: 0,
        wei: String::new(),
    };
    if !logs.is_empty() {
        let height = call(rpc, deployment, "tipHeight()").await?;
        report.tip_height = last_u64(&height);
    }
    let mut wei: u128 = 0;
    for (placed, chunks) in by_transaction {
        let (block, hash) = (placed.block_number, placed.transaction);
        let receipt = rpc.receipt(hash).await?;
        let receipt =
            receipt.ok_or_else(|| Failure::new(format!("the node lacks the receipt of {hash}")))?;
        report.gas += receipt.gas_used;
        wei += u128::from(receipt.gas_used) * receipt.effective_gas_price;
        report.transactions.push(SettledTransaction {
            hash: hash.to_string(),
            block,
            chunks,
            gas: receipt.gas_used,
        });
    }
    report.wei = wei.to_string();
    Ok(report)
}

/// First and last height of an accepted chunk.
fn heights(placed: &PlacedLog) -> Result<(u64, u64), Failure> {
    let (words, _) = placed.log.data.as_chunks::<32>();
    match words {
        [first, last, ..] => Ok((last_u64(&B256::from(*first)), last_u64(&B256::from(*last)))),
        _ => Err(Failure::new("an event of the contract is too short")),
    }
}

/// Answer of a function of the contract without arguments, of one word.
async fn call(rpc: &Rpc, deployment: &Deployment, signature: &str) -> Result<B256, Failure> {
    let call = Call {
        to: Some(deployment.header_chain),
        data: Bytes::copy_from_slice(&keccak256(signature)[..4]),
        ..Call::default()
    };
    let answer = rpc.call(&call, BlockId::Latest).await;
    let answer = answer.map_err(|error| Failure::new(format!("{signature}: {error}")))?;
    let word = answer.first_chunk::<32>().copied().map(B256::from);
    word.ok_or_else(|| Failure::new(format!("{signature}: the contract does not answer")))
}

fn last_u64(word: &B256) -> u64 {
    let last = word.last_chunk::<8>().copied().unwrap_or_default();
    u64::from_be_bytes(last)
}

// === impl SettleReport ===

impl SettleReport {
    /// Whether `count` headers from height `start` on were accepted, each once and in order, and the last is the tip.
    pub(crate) fn is_in_order(&self, start: u64, count: u64) -> bool {
        let chunks = self.transactions.iter().flat_map(|one| &one.chunks);
        let mut next = start;
        for (first, last) in chunks {
            if *first != next || last < first {
                return false;
            }
            next = last + 1;
        }
        next == start + count && (count == 0 || self.tip_height + 1 == next)
    }

    /// Lines for people.
    pub(crate) fn lines(&self) -> Vec<String> {
        let mut lines = Vec::with_capacity(self.transactions.len() + 2);
        for one in &self.transactions {
            let first = one.chunks.first().map_or(0, |chunk| chunk.0);
            let last = one.chunks.last().map_or(0, |chunk| chunk.1);
            let (count, gas) = (one.chunks.len() as u64, one.gas);
            lines.push(format!(
                "headers {first} to {last}: block {}, {gas} gas for {} in one transaction, {} each",
                one.block,
                crate::progress::counted(one.chunks.len(), "chunk"),
                gas / count.max(1)
            ));
        }
        let accepted: usize = self.transactions.iter().map(|one| one.chunks.len()).sum();
        lines.push(format!(
            "contract {}: {accepted} chunks accepted, {} gas in all",
            self.contract, self.gas
        ));
        lines.push(format!(
            "its tip is header {}, {}",
            self.tip_height, self.tip
        ));
        lines
    }
}
