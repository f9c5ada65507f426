//! Blocks and their headers.

use alloy_primitives::B256;
use serde_json::{Value, json};

use super::answer::Fields;
use super::error::RpcError;

/// Maximum length of a hash in characters: `0x` and 32 bytes in hexadecimal.
const HASH: usize = 66;

/// A block.
#[derive(Clone, Debug, PartialEq)]
pub struct Block {
    /// The block's hash, in lower-case hexadecimal after `0x`.
    pub hash: String,
    /// The hash of the block before it, in the same format.
    pub parent: String,
    /// The whole block, as the endpoint returned it.
    pub object: Value,
}

/// The block after which a question is answered.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum BlockId {
    /// The last block.
    Latest,
    /// The last block and the transactions that the node holds for the next one.
    Pending,
    /// The last block that only an attack on the chain's validators can undo.
    Safe,
    /// The last block that cannot be undone.
    Finalized,
    /// The block at this height.
    Number(u64),
    /// The block with this hash, wherever it is in the chain.
    Hash(B256),
}

/// The header of a block.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Header {
    /// The block's height.
    pub number: u64,
    /// The block's hash; zero for the pending block if the node gives it none.
    pub hash: B256,
    /// The hash of the block before it.
    pub parent: B256,
    /// Unix time in seconds.
    pub timestamp: u64,
    /// Fee in wei that is burned for each unit of gas (EIP-1559); `None` on a chain without it.
    pub base_fee: Option<u128>,
    /// The most gas that the block's transactions may use together.
    pub gas_limit: u64,
}

// === impl Block ===

impl Block {
    /// Reads the answer to a request for block `number`; `None` if the node does not have it.
    pub(super) fn read(
        method: &'static str,
        number: u64,
        result: Value,
    ) -> Result<Option<Self>, RpcError> {
        if result.is_null() {
            return Ok(None);
        }
        let text = |field: &str| {
            let text = result
                .get(field)
                .and_then(Value::as_str)
                .unwrap_or_default();
            let fits = text.len() <= HASH
                && text.strip_prefix("0x").is_some_and(|digits| {
                    !digits.is_empty() && digits.bytes().all(|byte| byte.is_ascii_hexdigit())
                });
            fits.then(|| text.to_ascii_lowercase())
                .ok_or_else(|| RpcError::Unexpected {
                    method,
                    why: format!("`{field}` is not a number in hexadecimal"),
                })
        };
        if text("number").is_ok_and(|text| super::quantity(&text) != Some(number)) {
            let why = format!("it is another block than {number}");
            return Err(RpcError::Unexpected { method, why });
        }
        Ok(Some(Self {
            hash: text("hash")?,
            parent: text("parentHash")?,
            object: result,
        }))
    }
}

// === impl BlockId ===

impl BlockId {
    /// The parameter that names the block in requests for state (EIP-1898 for a hash).
    pub(super) fn parameter(self) -> Value {
        match self {
            Self::Latest => json!("latest"),
            Self::Pending => json!("pending"),
            Self::Safe => json!("safe"),
            Self::Finalized => json!("finalized"),
            Self::Number(number) => json!(format!("{number:#x}")),
            Self::Hash(hash) => json!({ "blockHash": hash_text(hash) }),
        }
    }

    /// Method and parameters of the request for this block, with the hashes of its transactions only.
    pub(super) fn request(self) -> (&'static str, Value) {
        match self {
            Self::Hash(hash) => ("eth_getBlockByHash", json!([hash_text(hash), false])),
            _ => ("eth_getBlockByNumber", json!([self.parameter(), false])),
        }
    }
}

/// A hash as JSON-RPC has it.
pub(super) fn hash_text(hash: B256) -> String {
    format!("{hash:#x}")
}

// === impl Header ===

impl Header {
    /// Reads the answer to a request for `block`; `None` if the node does not have it.
    pub(super) fn read(
        method: &'static str,
        block: BlockId,
        result: &Value,
    ) -> Result<Option<Self>, RpcError> {
        if result.is_null() {
            return Ok(None);
        }
        let fields = Fields::of(method, result)?;
        let hash = match block {
            BlockId::Pending => fields.optional_hash("hash")?.unwrap_or_default(),
            _ => fields.hash("hash")?,
        };
        let header = Self {
            number: fields.quantity("number")?,
            hash,
            parent: fields.hash("parentHash")?,
            timestamp: fields.quantity("timestamp")?,
            base_fee: fields.optional_quantity_u128("baseFeePerGas")?,
            gas_limit: fields.quantity("gasLimit")?,
        };
        match block {
            BlockId::Number(asked) if asked != header.number => {
                Err(fields.unexpected(format!("it is block {}, not {asked}", header.number)))
            }
            BlockId::Hash(asked) if asked != header.hash => {
                Err(fields.unexpected(format!("it is block {}, not {asked}", header.hash)))
            }
            _ => Ok(Some(header)),
        }
    }
}
