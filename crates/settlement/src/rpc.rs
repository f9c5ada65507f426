//! The chain as nodes show it, by JSON-RPC.

use std::sync::atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering};

use alloy_primitives::{Address, B256};
use bytes::Bytes;
use futures_util::future::BoxFuture;
use proofmill_ethereum::{BlockId, Call, CallError, Rpc, RpcError, SendError};

use crate::chain::{CallFailure, Chain, ChainError, Head, Inclusion, Sent};
use crate::fees::Market;

/// A chain behind one or more nodes; when one does not answer, the next is asked from then on.
pub struct RpcChain {
    endpoints: Vec<Endpoint>,
    /// Index of the endpoint in use, modulo their number.
    current: AtomicUsize,
    /// Identifier of the chain; 0 before it is known.
    chain_id: AtomicU64,
    account: Address,
    contract: Address,
}

struct Endpoint {
    rpc: Rpc,
    /// Whether it was found to be of the chain.
    is_checked: AtomicBool,
}

/// Priority fee in wei, if a node has no suggestion or one that is lower: nodes do not take less by default.
const PRIORITY_FEE_MIN: u128 = 1_000_000;

/// The code of JSON-RPC for a method that the server does not have.
const METHOD_NOT_FOUND: i64 = -32601;

// === impl RpcChain ===

impl RpcChain {
    /// The chain of `account` and `contract` behind `endpoints`, which are of one chain; there must be one at least.
    pub fn new(endpoints: Vec<Rpc>, account: Address, contract: Address) -> Self {
        let endpoint = |rpc| Endpoint {
            rpc,
            is_checked: AtomicBool::new(false),
        };
        Self {
            endpoints: endpoints.into_iter().map(endpoint).collect(),
            current: AtomicUsize::new(0),
            chain_id: AtomicU64::new(0),
            account,
            contract,
        }
    }

    /// Identifier of the chain (EIP-155), by the first endpoint that answers. Every endpoint is compared with it before it is used.
    ///
    /// # Errors
    /// No endpoint answers.
    pub async fn chain_id(&self) -> Result<u64, ChainError> {
        let mut failed = ChainError("no endpoint".to_owned());
        for endpoint in &self.endpoints {
            match endpoint.rpc.chain_id().await {
                Ok(id) => {
                    self.chain_id.store(id, Ordering::Relaxed);
                    return Ok(id);
                }
                Err(error) => failed = named(&endpoint.rpc, error),
            }
        }
        Err(failed)
    }

    /// The endpoint in use, which is of the chain.
    async fn endpoint(&self) -> Result<&Rpc, ChainError> {
        let current = self.current.load(Ordering::Relaxed) % self.endpoints.len();
        let endpoint = &self.endpoints[current];
        if endpoint.is_checked.load(Ordering::Relaxed) {
            return Ok(&endpoint.rpc);
        }
        let found = endpoint.rpc.chain_id().await;
        let found = found.map_err(|error| self.failed(&endpoint.rpc, error))?;
        let wanted = self.chain_id.load(Ordering::Relaxed);
        if wanted != 0 && found != wanted {
            self.current.fetch_add(1, Ordering::Relaxed);
            let url = endpoint.rpc.url();
            let why = format!("{url} is of chain {found}, and not of chain {wanted}");
            return Err(ChainError(why));
        }
        endpoint.is_checked.store(true, Ordering::Relaxed);
        Ok(&endpoint.rpc)
    }

    /// The error of an endpoint. The next one is asked from now on.
    fn failed(&self, rpc: &Rpc, error: RpcError) -> ChainError {
        self.current.fetch_add(1, Ordering::Relaxed);
        named(rpc, error)
    }

    fn call_of(&self, data: Bytes) -> Call {
        Call {
            from: Some(self.account),
            to: Some(self.contract),
            data: data.into(),
            ..Call::default()
        }
    }

    fn call_failed(&self, rpc: &Rpc, error: CallError) -> CallFailure {
        match error {
            CallError::Reverted { data, .. } => CallFailure::Reverted(data.0),
            CallError::Rpc(error) => CallFailure::Chain(self.failed(rpc, error)),
            halted => CallFailure::Halted(halted.to_string()),
        }
    }

    async fn read_head(&self) -> Result<Head, ChainError> {
        let rpc = self.endpoint().await?;
        let header = rpc.header(BlockId::Latest).await;
        let header = header.map_err(|error| self.failed(rpc, error))?;
        let header = header.ok_or_else(|| ChainError("the node has no block".to_owned()))?;
        let no_base_fee = || ChainError("the chain has no base fee (EIP-1559)".to_owned());
        let base_fee = header.base_fee.ok_or_else(no_base_fee)?;
        let priority_fee = match rpc.priority_fee().await {
            Ok(fee) => fee.max(PRIORITY_FEE_MIN),
            Err(RpcError::Node { code, .. }) if code == METHOD_NOT_FOUND => PRIORITY_FEE_MIN,
            Err(error) => return Err(self.failed(rpc, error)),
        };
        Ok(Head {
            number: header.number,
            market: Market {
                base_fee,
                priority_fee,
            },
        })
    }

    async fn read(&self, data: Bytes, block: Option<u64>) -> Result<Bytes, CallFailure> {
        let block = block.map_or(BlockId::Latest, BlockId::Number);
        let rpc = self.endpoint().await?;
        let answer = rpc.call(&self.call_of(data), block).await;
        let answer = answer.map_err(|error| self.call_failed(rpc, error))?;
        match answer.is_empty() {
            true => Err(CallFailure::NoContract),
            false => Ok(answer.0),
        }
    }

    async fn offer(&self, raw: Bytes) -> Result<Sent, ChainError> {
        let rpc = self.endpoint().await?;
        Ok(match rpc.send_raw(&raw).await {
            Ok(_) | Err(SendError::AlreadyKnown(_)) => Sent::Taken,
            Err(SendError::NonceTooLow(_)) => Sent::NonceUsed,
            Err(SendError::ReplacementUnderpriced(why) | SendError::Underpriced(why)) => {
                Sent::FeesTooLow(why)
            }
            Err(SendError::Rpc(error)) => return Err(self.failed(rpc, error)),
            Err(error) => Sent::Refused(error.to_string()),
        })
    }

    async fn place(&self, hash: B256) -> Result<Option<Inclusion>, ChainError> {
        let rpc = self.endpoint().await?;
        let receipt = rpc.receipt(hash).await;
        let receipt = receipt.map_err(|error| self.failed(rpc, error))?;
        Ok(receipt.map(|receipt| Inclusion {
            block: receipt.block_number,
            succeeded: receipt.succeeded,
            gas_used: receipt.gas_used,
            gas_price: receipt.effective_gas_price,
        }))
    }
}

impl Chain for RpcChain {
    fn head(&self) -> BoxFuture<'_, Result<Head, ChainError>> {
        Box::pin(self.read_head())
    }

    fn nonce(&self) -> BoxFuture<'_, Result<u64, ChainError>> {
        Box::pin(async {
            let rpc = self.endpoint().await?;
            let nonce = rpc.nonce(self.account, BlockId::Latest).await;
            nonce.map_err(|error| self.failed(rpc, error))
        })
    }

    fn call(&self, data: Bytes, block: Option<u64>) -> BoxFuture<'_, Result<Bytes, CallFailure>> {
        Box::pin(self.read(data, block))
    }

    fn estimate_gas(&self, data: Bytes) -> BoxFuture<'_, Result<u64, CallFailure>> {
        Box::pin(async {
            let rpc = self.endpoint().await?;
            let gas = rpc.estimate_gas(&self.call_of(data)).await;
            gas.map_err(|error| self.call_failed(rpc, error))
        })
    }

    fn revert_at(&self, data: Bytes, block: u64) -> BoxFuture<'_, Result<Bytes, ChainError>> {
        Box::pin(async move {
            match self.read(data, Some(block)).await {
                Ok(_) | Err(CallFailure::NoContract | CallFailure::Halted(_)) => Ok(Bytes::new()),
                Err(CallFailure::Reverted(data)) => Ok(data),
                Err(CallFailure::Chain(error)) => Err(error),
            }
        })
    }

    fn send(&self, raw: Bytes) -> BoxFuture<'_, Result<Sent, ChainError>> {
        Box::pin(self.offer(raw))
    }

    fn inclusion(&self, hash: B256) -> BoxFuture<'_, Result<Option<Inclusion>, ChainError>> {
        Box::pin(self.place(hash))
    }
}

fn named(endpoint: &Rpc, error: RpcError) -> ChainError {
    ChainError(format!("{}: {error}", endpoint.url()))
}
