//! Receipts: what became of a transaction.

use alloy_primitives::{Address, B256, Bytes};
use serde_json::Value;

use super::answer::{Fields, HASH, fixed, scalar};
use super::error::RpcError;

/// The most topics that an event has.
const TOPICS_MAX: usize = 4;

/// Outcome of a transaction that is in a block.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Receipt {
    /// The transaction's hash.
    pub transaction: B256,
    /// The height of its block.
    pub block_number: u64,
    /// The hash of its block.
    pub block_hash: B256,
    /// Whether it had its effect; `false` if it was reverted, which costs the fee nevertheless.
    pub succeeded: bool,
    /// Gas that it used.
    pub gas_used: u64,
    /// Fee paid for each unit of gas, in wei.
    pub effective_gas_price: u128,
    /// The contract that it created.
    pub contract_address: Option<Address>,
    /// Its events, in their order.
    pub logs: Vec<Log>,
}

/// An event of a contract.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Log {
    /// The contract.
    pub address: Address,
    /// Its topics, at most four; the first is the hash of the event's signature, unless the event is anonymous.
    pub topics: Vec<B256>,
    /// The values that are not topics, as ABI-encoded by the contract.
    pub data: Bytes,
}

/// An event and its place in the chain.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PlacedLog {
    /// The event.
    pub log: Log,
    /// The transaction that caused it.
    pub transaction: B256,
    /// The height of its block.
    pub block_number: u64,
}

// === impl Receipt ===

impl Receipt {
    /// Reads the answer to a request for the receipt of `transaction`; `None` if the node does not have it.
    pub(super) fn read(
        method: &'static str,
        transaction: B256,
        result: &Value,
    ) -> Result<Option<Self>, RpcError> {
        if result.is_null() {
            return Ok(None);
        }
        let fields = Fields::of(method, result)?;
        let found = fields.hash("transactionHash")?;
        if found != transaction {
            return Err(fields.unexpected(format!("it is about {found}, not {transaction}")));
        }
        let succeeded = match fields.quantity("status")? {
            0 => false,
            1 => true,
            other => return Err(fields.unexpected(format!("`status` is {other}, not 0 or 1"))),
        };
        let logs = fields.array("logs")?.iter();
        Ok(Some(Self {
            transaction,
            block_number: fields.quantity("blockNumber")?,
            block_hash: fields.hash("blockHash")?,
            succeeded,
            gas_used: fields.quantity("gasUsed")?,
            effective_gas_price: fields.quantity_u128("effectiveGasPrice")?,
            contract_address: fields.optional_address("contractAddress")?,
            logs: logs
                .map(|log| Log::read(method, log))
                .collect::<Result<_, _>>()?,
        }))
    }
}

// === impl PlacedLog ===

impl PlacedLog {
    /// Reads the answer to a request for events.
    pub(super) fn read_all(method: &'static str, result: &Value) -> Result<Vec<Self>, RpcError> {
        let list = result.as_array().ok_or_else(|| RpcError::Unexpected {
            method,
            why: "it is not an array".to_owned(),
        })?;
        let read = |value: &Value| {
            let fields = Fields::of(method, value)?;
            Ok(Self {
                log: Log::read(method, value)?,
                transaction: fields.hash("transactionHash")?,
                block_number: fields.quantity("blockNumber")?,
            })
        };
        list.iter().map(read).collect()
    }
}

// === impl Log ===

impl Log {
    fn read(method: &'static str, value: &Value) -> Result<Self, RpcError> {
        let fields = Fields::of(method, value)?;
        let topics = fields.array("topics")?;
        if topics.len() > TOPICS_MAX {
            return Err(fields.unexpected(format!("an event has {} topics", topics.len())));
        }
        let topics = topics
            .iter()
            .map(|topic| scalar(method, topic, HASH, fixed));
        Ok(Self {
            address: fields.address("address")?,
            topics: topics.collect::<Result<_, _>>()?,
            data: fields.bytes("data")?,
        })
    }
}
