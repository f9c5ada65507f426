//! The client: one method for each request.

use std::path::Path;
use std::time::Duration;

use alloy_primitives::{Address, B256, Bytes, U256, keccak256};
use hyper::StatusCode;
use hyper::header::HeaderMap;
use proofmill_http::{HttpClient, HttpError};
use proofmill_workflow::HttpUrl;
use serde::{Deserialize, Deserializer};
use serde_json::{Value, json};

use super::answer::{
    ADDRESS, BYTES, Fields, HASH, QUANTITY, bytes, fixed, quantity, quantity_u128, quantity_u256,
    scalar,
};
use super::block::{Block, BlockId, Header, hash_text};
use super::call::{Call, CallError};
use super::error::RpcError;
use super::receipt::{PlacedLog, Receipt};
use super::send::SendError;

/// Time limit of a request.
const TIMEOUT: Duration = Duration::from_secs(10);

/// Maximum size of a response, in bytes.
const MAX_ANSWER: usize = 8 << 20;

/// Maximum size of a response with a block and its transactions, in bytes.
const MAX_FULL_ANSWER: usize = 32 << 20;

/// Maximum number of characters kept of an error's message.
const MAX_MESSAGE: usize = 300;

/// A client of one endpoint.
pub struct Rpc {
    client: HttpClient,
}

/// A request for [`Rpc::ask`].
pub(crate) struct Request {
    /// The JSON-RPC method.
    pub(crate) method: &'static str,
    /// Its parameters.
    pub(crate) params: Value,
    /// Maximum size of the response, in bytes.
    pub(crate) answer_max: usize,
    /// Time limit.
    pub(crate) time_limit: Duration,
}

#[derive(Deserialize)]
struct Answer {
    /// `None` if it is missing, which null is not.
    #[serde(default, deserialize_with = "present")]
    result: Option<Value>,
    error: Option<Refusal>,
}

#[derive(Deserialize)]
struct Refusal {
    #[serde(default)]
    code: i64,
    #[serde(default)]
    message: String,
    #[serde(default)]
    data: Value,
}

fn present<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Option<Value>, D::Error> {
    Value::deserialize(deserializer).map(Some)
}

// === impl Rpc ===

impl Rpc {
    /// A client of `url` that trusts the system's authorities and those in the file `ca` (PEM). Sends no request yet.
    ///
    /// # Errors
    /// As [`HttpClient::new`].
    pub fn new(url: HttpUrl, ca: Option<&Path>) -> Result<Self, HttpError> {
        let client = HttpClient::new(url, ca)?;
        Ok(Self { client })
    }

    /// Address of the endpoint. Its `Display` leaves out the path, which often holds an API key.
    pub fn url(&self) -> &HttpUrl {
        self.client.url()
    }

    /// The number of the chain's last block.
    ///
    /// # Errors
    /// [`RpcError`].
    pub async fn head(&self) -> Result<u64, RpcError> {
        const METHOD: &str = "eth_blockNumber";
        let result = self.ask_plain(METHOD, json!([])).await?;
        scalar(METHOD, &result, QUANTITY, quantity)
    }

    /// A block, with its transactions or with their hashes only; `None` if the node does not have
    /// it.
    ///
    /// # Errors
    /// [`RpcError`].
    pub async fn block(&self, number: u64, full: bool) -> Result<Option<Block>, RpcError> {
        const METHOD: &str = "eth_getBlockByNumber";
        let request = Request {
            method: METHOD,
            params: json!([format!("{number:#x}"), full]),
            answer_max: if full { MAX_FULL_ANSWER } else { MAX_ANSWER },
            time_limit: TIMEOUT,
        };
        Block::read(METHOD, number, self.ask(request).await?)
    }

    /// The chain's identifier, which its transactions are signed for (EIP-155).
    ///
    /// # Errors
    /// [`RpcError`].
    pub async fn chain_id(&self) -> Result<u64, RpcError> {
        const METHOD: &str = "eth_chainId";
        let result = self.ask_plain(METHOD, json!([])).await?;
        scalar(METHOD, &result, QUANTITY, quantity)
    }

    /// The header of a block; `None` if the node does not have it.
    ///
    /// # Errors
    /// [`RpcError`].
    pub async fn header(&self, block: BlockId) -> Result<Option<Header>, RpcError> {
        let (method, params) = block.request();
        let result = self.ask_plain(method, params).await?;
        Header::read(method, block, &result)
    }

    /// The nonce of an account's next transaction after a block; after [`BlockId::Pending`], it counts the transactions
    /// that wait at the node too.
    ///
    /// # Errors
    /// [`RpcError`].
    pub async fn nonce(&self, account: Address, block: BlockId) -> Result<u64, RpcError> {
        const METHOD: &str = "eth_getTransactionCount";
        let params = json!([account.to_checksum(None), block.parameter()]);
        let result = self.ask_plain(METHOD, params).await?;
        scalar(METHOD, &result, QUANTITY, quantity)
    }

    /// An account's balance after a block, in wei.
    ///
    /// # Errors
    /// [`RpcError`].
    pub async fn balance(&self, account: Address, block: BlockId) -> Result<U256, RpcError> {
        const METHOD: &str = "eth_getBalance";
        let params = json!([account.to_checksum(None), block.parameter()]);
        let result = self.ask_plain(METHOD, params).await?;
        scalar(METHOD, &result, QUANTITY, quantity_u256)
    }

    /// The priority fee in wei for each unit of gas that the node suggests.
    ///
    /// # Errors
    /// [`RpcError`].
    pub async fn priority_fee(&self) -> Result<u128, RpcError> {
        const METHOD: &str = "eth_maxPriorityFeePerGas";
        let result = self.ask_plain(METHOD, json!([])).await?;
        scalar(METHOD, &result, QUANTITY, quantity_u128)
    }

    /// The code of the contract at an address after the last block; empty if there is none.
    ///
    /// # Errors
    /// [`RpcError`].
    pub async fn code(&self, address: Address) -> Result<Bytes, RpcError> {
        const METHOD: &str = "eth_getCode";
        let params = json!([address.to_checksum(None), BlockId::Latest.parameter()]);
        let result = self.ask_plain(METHOD, params).await?;
        scalar(METHOD, &result, BYTES, bytes)
    }

    /// Result of a call on the state after a block; nothing is changed.
    ///
    /// # Errors
    /// [`CallError`].
    pub async fn call(&self, call: &Call, block: BlockId) -> Result<Bytes, CallError> {
        const METHOD: &str = "eth_call";
        let params = json!([call.parameter(), block.parameter()]);
        let result = self.ask_plain(METHOD, params).await?;
        Ok(scalar(METHOD, &result, BYTES, bytes)?)
    }

    /// The gas that a transaction with this call would need, by the node's estimate.
    ///
    /// # Errors
    /// [`CallError`].
    pub async fn estimate_gas(&self, call: &Call) -> Result<u64, CallError> {
        const METHOD: &str = "eth_estimateGas";
        let result = self.ask_plain(METHOD, json!([call.parameter()])).await?;
        Ok(scalar(METHOD, &result, QUANTITY, quantity)?)
    }

    /// Sends a signed transaction, and returns its hash.
    ///
    /// # Errors
    /// [`SendError`]; after [`SendError::Rpc`] the node may have taken the transaction.
    pub async fn send_raw(&self, raw: &[u8]) -> Result<B256, SendError> {
        const METHOD: &str = "eth_sendRawTransaction";
        let params = json!([format!("0x{}", hex::encode(raw))]);
        let result = self.ask_plain(METHOD, params).await?;
        let returned: B256 = scalar(METHOD, &result, HASH, fixed)?;
        let hash = keccak256(raw);
        if returned != hash {
            let why = format!("it took {returned}, not {hash}");
            return Err(SendError::Rpc(RpcError::Unexpected {
                method: METHOD,
                why,
            }));
        }
        Ok(hash)
    }

    /// The receipt of a transaction; `None` as long as no block known to the node has it.
    ///
    /// # Errors
    /// [`RpcError`].
    pub async fn receipt(&self, transaction: B256) -> Result<Option<Receipt>, RpcError> {
        const METHOD: &str = "eth_getTransactionReceipt";
        let result = self.ask_plain(METHOD, json!([hash_text(transaction)]));
        Receipt::read(METHOD, transaction, &result.await?)
    }

    /// Whether the node has a transaction, waiting or in a block.
    ///
    /// # Errors
    /// [`RpcError`].
    pub async fn transaction_known(&self, transaction: B256) -> Result<bool, RpcError> {
        const METHOD: &str = "eth_getTransactionByHash";
        let result = self.ask_plain(METHOD, json!([hash_text(transaction)]));
        let result = result.await?;
        if result.is_null() {
            return Ok(false);
        }
        let fields = Fields::of(METHOD, &result)?;
        let found = fields.hash("hash")?;
        if found != transaction {
            return Err(fields.unexpected(format!("it is {found}, not {transaction}")));
        }
        Ok(true)
    }

    /// The events of a contract whose first topic is `topic`, in the blocks from `from` to the last one.
    ///
    /// # Errors
    /// [`RpcError`].
    pub async fn logs(
        &self,
        contract: Address,
        topic: B256,
        from: u64,
    ) -> Result<Vec<PlacedLog>, RpcError> {
        const METHOD: &str = "eth_getLogs";
        let params = json!([{
            "address": contract.to_checksum(None),
            "topics": [hash_text(topic)],
            "fromBlock": format!("{from:#x}"),
            "toBlock": BlockId::Latest.parameter(),
        }]);
        let result = self.ask_plain(METHOD, params).await?;
        PlacedLog::read_all(METHOD, &result)
    }

    /// The accounts whose keys the node holds; only development nodes have any.
    ///
    /// # Errors
    /// [`RpcError`].
    pub async fn accounts(&self) -> Result<Vec<Address>, RpcError> {
        const METHOD: &str = "eth_accounts";
        let result = self.ask_plain(METHOD, json!([])).await?;
        let unexpected = |why: &str| RpcError::Unexpected {
            method: METHOD,
            why: why.to_owned(),
        };
        let list = result
            .as_array()
            .ok_or_else(|| unexpected("it is not an array"))?;
        let accounts = list
            .iter()
            .map(|one| scalar(METHOD, one, ADDRESS, fixed).map(Address));
        accounts.collect()
    }

    /// Has the node send an amount, in wei, from an account whose key it holds. Returns the transaction's hash.
    ///
    /// # Errors
    /// [`RpcError`].
    pub async fn send_from(&self, from: Address, to: Address, wei: U256) -> Result<B256, RpcError> {
        const METHOD: &str = "eth_sendTransaction";
        let params = json!([{
            "from": from.to_checksum(None),
            "to": to.to_checksum(None),
            "value": format!("{wei:#x}"),
        }]);
        let result = self.ask_plain(METHOD, params).await?;
        scalar(METHOD, &result, HASH, fixed)
    }

    async fn ask_plain(&self, method: &'static str, params: Value) -> Result<Value, RpcError> {
        let request = Request {
            method,
            params,
            answer_max: MAX_ANSWER,
            time_limit: TIMEOUT,
        };
        self.ask(request).await
    }

    /// Sends a request, and returns its result, which may be null.
    pub(crate) async fn ask(&self, request: Request) -> Result<Value, RpcError> {
        let Request {
            method,
            params,
            answer_max,
            time_limit,
        } = request;
        let body = json!({"jsonrpc": "2.0", "id": 1, "method": method, "params": params});
        let body = bytes::Bytes::from(body.to_string());
        let http = |source| RpcError::Http { method, source };
        let answer = self
            .client
            .post(HeaderMap::new(), body, answer_max, time_limit)
            .await
            .map_err(http)?;
        if answer.status != StatusCode::OK {
            let status = answer.status;
            return Err(RpcError::Status { method, status });
        }
        read(method, &answer.body.map_err(http)?)
    }
}

/// The result in the body of a response.
pub(crate) fn read(method: &'static str, body: &[u8]) -> Result<Value, RpcError> {
    let unexpected = |why: String| RpcError::Unexpected { method, why };
    let answer: Answer =
        serde_json::from_slice(body).map_err(|error| unexpected(shortened(&error.to_string())))?;
    if let Some(refusal) = answer.error {
        return Err(RpcError::Node {
            method,
            code: refusal.code,
            message: shortened(&refusal.message),
            data: error_data(&refusal.data),
        });
    }
    let missing = || unexpected("it has neither a result nor an error".to_owned());
    answer.result.ok_or_else(missing)
}

/// The first [`MAX_MESSAGE`] characters of a text, without control characters.
fn shortened(text: &str) -> String {
    let text = text.chars().take(MAX_MESSAGE);
    text.map(|char| if char.is_control() { ' ' } else { char })
        .collect()
}

/// The bytes in an error's `data`: the text itself, text after a word (Nethermind's `Reverted 0x…`), or the member
/// `data` of an object (Hardhat).
fn error_data(data: &Value) -> Option<Bytes> {
    let text = data.as_str().or_else(|| data.get("data")?.as_str())?;
    bytes(text.rsplit(' ').next()?)
}
