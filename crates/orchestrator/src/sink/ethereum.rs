//! A sink that calls a contract on an Ethereum chain.

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use futures_util::future::BoxFuture;
use proofmill_ethereum::{Address, Local, Remote, Rpc, Signer};
use proofmill_settlement::{
    AbiContract, Arguments, Emission, FeePolicy, Options, RpcChain, Rules, SettleError, Settlement,
};
use proofmill_workflow as file;
use serde_json::Value;
use tokio::sync::Mutex;
use tokio::task::JoinHandle;

use super::service::{Emitted, Sink, SinkError};
use crate::clock::wall_ms;
use crate::plan::Backoff;
use crate::role_counts::SettlementCounts;

/// Wei of a gwei.
const GWEI: u128 = 1_000_000_000;

/// Number of blocks during which a settled transaction is watched, unless more confirmations are asked for: two epochs of the
/// main chain.
const FINALITY: u64 = 64;

/// A form of payloads: the contract that they are for, and how they become its arguments.
#[derive(Clone)]
pub struct PayloadForm {
    /// ABI of the contract, in the JSON that Solidity's compiler writes.
    pub abi: &'static str,
    /// Name of the function that settles.
    pub function: &'static str,
    /// Name of the function that says whether a payload was settled.
    pub settled: &'static str,
    /// Maker of the arguments.
    pub arguments: Arguments,
}

/// Settles messages by a contract, several in one transaction.
///
/// A chain that is out of reach delays the emission and not the mill.
pub struct Ethereum {
    account: Arc<Account>,
    batch_max: usize,
    batch_wait: Duration,
    backoff: Backoff,
    /// Task that opens the settlement without a message.
    opening: Option<JoinHandle<()>>,
}

/// An account that calls a contract.
struct Account {
    chain: Arc<RpcChain>,
    contract: Arc<AbiContract>,
    signer: Arc<Signer>,
    to: Address,
    rules: Rules,
    poll: Duration,
    /// Folder of the journals of all accounts.
    journals: PathBuf,
    counts: Arc<SettlementCounts>,
    /// `None` until the chain was reached, and after the settlement has ended.
    settlement: Mutex<Option<Settlement>>,
}

// === impl Ethereum ===

impl Ethereum {
    /// A sink as the workflow file describes it; `form` is the payloads' form, if it names one. Its events are counted in `counts`.
    ///
    /// # Errors
    /// A text for the user: a key, an ABI or an address cannot be used.
    pub async fn new(
        sink: &file::Settlement,
        form: Option<&PayloadForm>,
        journals: PathBuf,
        backoff: Backoff,
        counts: Arc<SettlementCounts>,
    ) -> Result<Self, String> {
        let ca = sink.ca.as_deref();
        let to = address(&sink.contract, "contract")?;
        let signer = signer(&sink.signer, ca).await?;
        let endpoints = sink.rpc.iter().map(|url| Rpc::new(url.clone(), ca));
        let endpoints = endpoints.collect::<Result<Vec<_>, _>>();
        let endpoints = endpoints.map_err(|error| error.to_string())?;
        let chain = RpcChain::new(endpoints, signer.address(), to);
        let account = Account {
            chain: Arc::new(chain),
            contract: Arc::new(contract(sink, form)?),
            signer: Arc::new(signer),
            to,
            rules: Rules {
                confirmations: sink.confirmations,
                finality: FINALITY,
                fees: FeePolicy {
                    max_fee: u128::from(sink.max_fee_gwei) * GWEI,
                    replace_after: sink.replace_after,
                },
            },
            poll: sink.poll,
            journals,
            counts,
            settlement: Mutex::new(None),
        };
        Ok(Self {
            account: Arc::new(account),
            batch_max: sink.batch,
            batch_wait: sink.batch_wait,
            backoff,
            opening: None,
        })
    }

    async fn settle(&mut self, emitted: &[Emitted]) -> Result<(), SinkError> {
        let place = format!("contract {}", self.account.to);
        let settlement = self.account.settlement().await;
        let settlement = settlement.map_err(|why| SinkError::new(&place, why))?;
        let emission = |emitted: &Emitted| Emission {
            first: emitted.first,
            last: emitted.last,
            bytes: emitted.bytes.clone(),
        };
        let settled = settlement.settle(emitted.iter().map(emission).collect());
        let Err(error) = settled.await else {
            return Ok(());
        };
        if matches!(error, SettleError::Ended) {
            *self.account.settlement.lock().await = None;
        }
        Err(match error.is_permanent() {
            true => SinkError::refused(&place, error),
            false => SinkError::new(&place, error),
        })
    }
}

// === impl Account ===

impl Account {
    /// The settlement; opened if it is not yet, and then watching what was settled before.
    async fn settlement(&self) -> Result<Settlement, String> {
        let mut opened = self.settlement.lock().await;
        if let Some(settlement) = &*opened {
            return Ok(settlement.clone());
        }
        let chain_id = self.chain.chain_id().await;
        let chain_id = chain_id.map_err(|error| error.to_string())?;
        let counts = self.counts.clone();
        let options = Options {
            chain: self.chain.clone(),
            chain_id,
            contract: self.contract.clone(),
            to: self.to,
            signer: self.signer.clone(),
            rules: self.rules,
            poll: self.poll,
            observer: Some(Arc::new(move |event| counts.note(event))),
            clock: Arc::new(wall_ms),
        };
        // One journal for each account of each chain: a nonce belongs to the account, not to the sink.
        let journal = format!("{chain_id}-{:#x}", self.signer.address());
        let started = Settlement::start(options, &self.journals.join(journal));
        let settlement = started.map_err(|error| error.to_string())?;
        *opened = Some(settlement.clone());
        Ok(settlement)
    }
}

impl Sink for Ethereum {
    /// Opens the settlement, so that a reorganisation that undoes what an earlier process has settled is seen before there is
    /// a message.
    fn begin(&mut self) {
        if self.opening.is_some() {
            return;
        }
        let (account, backoff) = (self.account.clone(), self.backoff);
        self.opening = Some(tokio::spawn(async move {
            let mut attempt = 0;
            while let Err(why) = account.settlement().await {
                attempt += 1;
                let wait = backoff.delay(attempt, 0);
                tracing::warn!("contract {}: {why}; tried again in {wait:?}", account.to);
                tokio::time::sleep(wait).await;
            }
        }));
    }

    fn put<'a>(&'a mut self, emitted: &'a Emitted) -> BoxFuture<'a, Result<(), SinkError>> {
        Box::pin(self.settle(std::slice::from_ref(emitted)))
    }

    fn put_all<'a>(&'a mut self, emitted: &'a [Emitted]) -> BoxFuture<'a, Result<(), SinkError>> {
        Box::pin(self.settle(emitted))
    }

    fn batch_max(&self) -> usize {
        self.batch_max
    }

    fn batch_wait(&self) -> Duration {
        self.batch_wait
    }

    fn place(&self, _emitted: &Emitted) -> String {
        format!("contract {}", self.account.to)
    }

    fn backoff(&self) -> Backoff {
        self.backoff
    }
}

impl Drop for Ethereum {
    fn drop(&mut self) {
        if let Some(opening) = &self.opening {
            opening.abort();
        }
    }
}

/// The calls of the sink's contract.
fn contract(sink: &file::Settlement, form: Option<&PayloadForm>) -> Result<AbiContract, String> {
    let arguments = form.map_or_else(
        || Arc::new(object) as Arguments,
        |form| form.arguments.clone(),
    );
    let made = match (&sink.functions, form) {
        (Some(functions), _) => {
            let shown = functions.abi.display();
            let abi = std::fs::read_to_string(&functions.abi);
            let abi = abi.map_err(|error| format!("{shown}: {error}"))?;
            let (function, settled) = (&functions.function, &functions.settled);
            AbiContract::new(&abi, function, settled, sink.batch, arguments)
                .map_err(|error| format!("{shown}: {error}"))?
        }
        (None, Some(form)) => {
            AbiContract::new(form.abi, form.function, form.settled, sink.batch, arguments)
                .map_err(|error| error.to_string())?
        }
        (None, None) => return Err("neither `abi` nor `payload` is given".to_owned()),
    };
    Ok(made)
}

/// The payload itself as arguments; `block` and `last_block` are the message's if it has no such fields.
fn object(emission: &Emission) -> Result<Value, String> {
    let mut payload: Value = serde_json::from_slice(&emission.bytes)
        .map_err(|error| format!("the payload is not JSON: {error}"))?;
    let fields = payload.as_object_mut();
    let fields = fields.ok_or("the payload is not a JSON object")?;
    for (name, block) in [("block", emission.first), ("last_block", emission.last)] {
        fields.entry(name).or_insert_with(|| block.into());
    }
    Ok(payload)
}

async fn signer(of: &file::TransactionSigner, ca: Option<&Path>) -> Result<Signer, String> {
    let local = match of {
        file::TransactionSigner::Key(file::Secret::Environment(name)) => {
            Local::from_environment(name)
        }
        file::TransactionSigner::Key(file::Secret::File(path)) => Local::from_file(path).await,
        file::TransactionSigner::Server { url, account } => {
            let account = address(account, "account")?;
            let remote = Remote::new(url.clone(), ca, account);
            return remote
                .map(Signer::Remote)
                .map_err(|error| error.to_string());
        }
    };
    local.map(Signer::Local).map_err(|error| error.to_string())
}

/// An address; if its digits are of both cases, their cases are a checksum (EIP-55).
fn address(text: &str, field: &str) -> Result<Address, String> {
    let digits = text.strip_prefix("0x").unwrap_or(text);
    let is_mixed = digits.bytes().any(|byte| byte.is_ascii_lowercase())
        && digits.bytes().any(|byte| byte.is_ascii_uppercase());
    let parsed: Result<Address, String> = match is_mixed {
        true => Address::parse_checksummed(text, None).map_err(|error| error.to_string()),
        false => text.parse::<Address>().map_err(|error| error.to_string()),
    };
    parsed.map_err(|why| format!("`{field}`: {text} is not an address: {why}; compare each digit"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_mistyped_address_is_refused() {
        let right = "0x5FbDB2315678afecb367f032d93F642f64180aa3";
        assert!(address(right, "contract").is_ok());
        assert!(address(&right.to_lowercase(), "contract").is_ok());
        let wrong = right.replace("5F", "5f");
        let error = address(&wrong, "contract").expect_err("its checksum differs");
        assert!(error.contains("`contract`"), "{error}");
    }

    #[test]
    fn a_payload_is_its_own_arguments() {
        let emission = |text: &'static str| Emission {
            first: 4,
            last: 5,
            bytes: text.as_bytes().into(),
        };
        let arguments = object(&emission(r#"{"batch": 1, "block": 2}"#)).expect("an object");
        assert_eq!(
            arguments.to_string(),
            r#"{"batch":1,"block":2,"last_block":5}"#
        );
        object(&emission("[]")).expect_err("no object");
        object(&emission("x")).expect_err("no JSON");
    }
}
