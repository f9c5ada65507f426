//! A server that has the key.

use std::fmt;
use std::path::Path;
use std::time::Duration;

use alloy_primitives::{Address, Bytes, keccak256};
use proofmill_http::HttpError;
use proofmill_workflow::HttpUrl;
use serde_json::{Value, json};

use super::SignError;
use crate::rpc::{Request, Rpc, RpcError, bytes};
use crate::transaction::{RAW_MAX, Recovered, Signed, Transaction};

/// The method of Web3Signer and of nodes.
const ETH: &str = "eth_signTransaction";

/// The method of Clef, whose signatures a person or a rule approves.
const CLEF: &str = "account_signTransaction";

/// The code of JSON-RPC for a method that the server does not have.
const METHOD_NOT_FOUND: i64 = -32601;

/// Time limit of a request: a person may have to approve it.
const TIME_LIMIT: Duration = Duration::from_secs(60);

/// Maximum size of an answer in bytes: the raw transaction and its fields, each in hexadecimal.
const ANSWER_MAX: usize = 6 * RAW_MAX;

/// A server with the JSON-RPC method `eth_signTransaction` (Web3Signer, geth), or else `account_signTransaction` (Clef).
///
/// Its answer is believed in nothing: it is decoded, each field is compared with the request, and the sender is
/// recovered from the signature.
pub struct Remote {
    rpc: Rpc,
    address: Address,
}

// === impl Remote ===

impl Remote {
    /// The server at `url` that signs for `address`; it trusts the system's authorities and those in the file `ca`
    /// (PEM). Sends no request yet.
    ///
    /// # Errors
    /// As [`proofmill_http::HttpClient::new`].
    pub fn new(url: HttpUrl, ca: Option<&Path>, address: Address) -> Result<Self, HttpError> {
        let rpc = Rpc::new(url, ca)?;
        Ok(Self { rpc, address })
    }

    /// The account that it signs for.
    pub fn address(&self) -> Address {
        self.address
    }

    /// Asks the server to sign a transaction.
    ///
    /// # Errors
    /// [`SignError`].
    pub async fn sign(&self, transaction: &Transaction) -> Result<Signed, SignError> {
        let result = match self.ask(ETH, transaction).await {
            Err(RpcError::Node { code, .. }) if code == METHOD_NOT_FOUND => {
                self.ask(CLEF, transaction).await
            }
            answered => answered,
        };
        let result = result?;
        let raw = raw_of(&result).ok_or_else(|| RpcError::Unexpected {
            method: ETH,
            why: "it is neither a raw transaction in hexadecimal nor an object with one as `raw`"
                .to_owned(),
        })?;
        check(&raw, transaction, self.address)
    }

    async fn ask(&self, method: &'static str, asked: &Transaction) -> Result<Value, RpcError> {
        let mut parameter = json!({
            "from": self.address.to_checksum(None),
            "gas": format!("{:#x}", asked.gas_limit),
            "maxFeePerGas": format!("{:#x}", asked.max_fee_per_gas),
            "maxPriorityFeePerGas": format!("{:#x}", asked.max_priority_fee_per_gas),
            "value": format!("{:#x}", asked.value),
            "nonce": format!("{:#x}", asked.nonce),
            "data": asked.data.to_string(),
            "chainId": format!("{:#x}", asked.chain_id),
        });
        if let Some(to) = asked.to {
            parameter["to"] = json!(to.to_checksum(None));
        }
        let request = Request {
            method,
            params: json!([parameter]),
            answer_max: ANSWER_MAX,
            time_limit: TIME_LIMIT,
        };
        self.rpc.ask(request).await
    }
}

/// The raw transaction in an answer: the answer itself (Web3Signer), or its member `raw` (geth, Clef).
pub(crate) fn raw_of(result: &Value) -> Option<Bytes> {
    let text = result.as_str().or_else(|| result.get("raw")?.as_str())?;
    bytes(text)
}

/// Compares a signed transaction with the one that was to be signed by `address`.
fn check(raw: &Bytes, asked: &Transaction, address: Address) -> Result<Signed, SignError> {
    let found = Recovered::decode(raw)?;
    let signed = &found.transaction;
    let receiver = |to: Option<Address>| to.map_or("none".to_owned(), |to| to.to_string());
    let digest = |data: &Bytes| format!("{} bytes with hash {}", data.len(), keccak256(data));
    let fields = [
        (
            "chain identifier",
            asked.chain_id.to_string(),
            signed.chain_id.to_string(),
        ),
        ("nonce", asked.nonce.to_string(), signed.nonce.to_string()),
        ("receiver", receiver(asked.to), receiver(signed.to)),
        ("value", asked.value.to_string(), signed.value.to_string()),
        ("data", digest(&asked.data), digest(&signed.data)),
        (
            "gas limit",
            asked.gas_limit.to_string(),
            signed.gas_limit.to_string(),
        ),
        (
            "fee",
            asked.max_fee_per_gas.to_string(),
            signed.max_fee_per_gas.to_string(),
        ),
        (
            "priority fee",
            asked.max_priority_fee_per_gas.to_string(),
            signed.max_priority_fee_per_gas.to_string(),
        ),
        ("sender", address.to_string(), found.sender.to_string()),
    ];
    for (field, asked, signed) in fields {
        if asked != signed {
            return Err(SignError::Other {
                field,
                asked,
                signed,
            });
        }
    }
    let raw = raw.clone();
    let hash = found.hash;
    Ok(Signed { hash, raw })
}

impl fmt::Debug for Remote {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Remote({}, {})", self.rpc.url(), self.address)
    }
}
