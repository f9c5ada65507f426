//! The fields of a sink that calls a contract on an Ethereum chain.

use std::path::{Path, PathBuf};
use std::time::Duration;

use crate::diagnostic::Code;
use crate::ethereum::endpoints;
use crate::fields::Fields;
use crate::inner::{path, text};
use crate::model::Secret;
use crate::sinks::secret;
use crate::url::HttpUrl;

/// Default of `confirmations`, in blocks.
const CONFIRMATIONS: u64 = 12;

/// Maximum of `confirmations`: as many blocks as nodes can answer questions about without an archive.
const CONFIRMATIONS_MAX: u64 = 100;

/// Default of `max_fee_gwei`.
const MAX_FEE_GWEI: u64 = 100;

/// Maximum of `max_fee_gwei`: a call of 300,000 gas then costs 300 ether.
const MAX_FEE_GWEI_MAX: u64 = 1_000_000;

/// Default of `replace_after`: three slots of the main chain.
const REPLACE_AFTER: Duration = Duration::from_secs(36);

/// Default of `poll`: time between two looks at the chain.
const POLL: Duration = Duration::from_secs(4);

/// Default of `batch`.
const BATCH: u32 = 8;

/// Maximum of `batch`: the number of payloads that may come again after a crash.
const BATCH_MAX: u32 = 64;

/// Maximum of `batch_wait`.
const BATCH_WAIT_MAX: Duration = Duration::from_secs(24 * 60 * 60);

/// A contract that takes payloads in their order, and the account that calls it.
#[derive(Clone, Debug, PartialEq)]
pub struct Settlement {
    /// Endpoints of the chain; if one fails, the next is asked.
    pub rpc: Vec<HttpUrl>,
    /// A file of CA certificates (PEM) to trust in addition to the system's.
    pub ca: Option<PathBuf>,
    /// Address of the contract: `0x` and 40 hexadecimal digits.
    pub contract: String,
    /// Name of a form of payloads that the program can turn into arguments. If absent, a payload is a JSON object whose fields
    /// are the arguments.
    pub payload: Option<String>,
    /// The functions that are called; `None` for those that belong to `payload`.
    pub functions: Option<ContractFunctions>,
    /// Signer of the transactions.
    pub signer: TransactionSigner,
    /// Number of blocks, its own included, after which a transaction counts; 12 by default.
    pub confirmations: u64,
    /// Maximum price of a unit of gas, in gwei, priority fee included; 100 by default.
    pub max_fee_gwei: u64,
    /// Time after which a transaction that is in no block is replaced by one that offers more; 36 s by default.
    pub replace_after: Duration,
    /// Time between two looks at the chain; 4 s by default.
    pub poll: Duration,
    /// Maximum number of payloads in one transaction; 8 by default.
    pub batch: usize,
    /// Longest time that a payload waits for others to share its transaction; none by default.
    pub batch_wait: Duration,
}

/// Functions of a contract, by their names in its ABI.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ContractFunctions {
    /// The file with the ABI, as Solidity's compiler writes it.
    pub abi: PathBuf,
    /// The function that settles: it takes a struct, or an array of structs.
    pub function: String,
    /// The function that says whether a payload was settled.
    pub settled: String,
}

/// The signer of transactions, whose account no other program may use.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum TransactionSigner {
    /// A private key.
    Key(Secret),
    /// A server that signs for an account: `eth_signTransaction`.
    Server {
        /// Address of the server.
        url: HttpUrl,
        /// The account: `0x` and 40 hexadecimal digits.
        account: String,
    },
}

pub(crate) fn settlement(fields: &mut Fields<'_, '_>, folder: &Path) -> Option<Settlement> {
    let rpc = endpoints(fields);
    let ca = path(fields, "ca", folder, "\"ca.pem\"");
    let contract = address(fields, "contract");
    let payload = text(fields, "payload", "\"bitcoin.header-chain\"");
    let functions = functions(fields, folder, payload.is_some());
    let signer = signer(fields, folder);
    let confirmations = fields.number("confirmations", 1..=CONFIRMATIONS_MAX);
    let max_fee = fields.number("max_fee_gwei", 1..=MAX_FEE_GWEI_MAX);
    let replace_after = fields.duration("replace_after");
    let poll = fields.duration("poll");
    let batch = fields.number32("batch", 1..=BATCH_MAX);
    let batch_wait = fields.duration("batch_wait").unwrap_or_default();
    if batch_wait > BATCH_WAIT_MAX {
        let help = "lower blocks hold up all higher ones: wait a day at most";
        fields.bad(Code::OutOfRange, "batch_wait", "longer than a day", help);
    }
    if batch == Some(1) && !batch_wait.is_zero() {
        let message = "nothing to wait for: `batch` is 1";
        fields.bad(
            Code::OutOfRange,
            "batch_wait",
            message,
            "drop one of the two",
        );
    }
    Some(Settlement {
        rpc: rpc?,
        ca,
        contract: contract?,
        payload,
        functions: functions?,
        signer: signer?,
        confirmations: confirmations.unwrap_or(CONFIRMATIONS),
        max_fee_gwei: max_fee.unwrap_or(MAX_FEE_GWEI),
        replace_after: replace_after.unwrap_or(REPLACE_AFTER),
        poll: poll.unwrap_or(POLL),
        batch: batch.unwrap_or(BATCH) as usize,
        batch_wait,
    })
}

/// Reads the address of an account or a contract. Its checksum (EIP-55) is checked when the sink is opened.
fn address(fields: &mut Fields<'_, '_>, key: &'static str) -> Option<String> {
    let example = "\"0x5FbDB2315678afecb367f032d93F642f64180aa3\"";
    if !fields.has(key) {
        fields.missing(key, example);
        return None;
    }
    let text = fields.string(key, example)?;
    let digits = text.strip_prefix("0x").unwrap_or_default();
    if digits.len() != 40 || !digits.bytes().all(|byte| byte.is_ascii_hexdigit()) {
        let help = format!("write 0x and 40 hexadecimal digits, as in `{key} = {example}`");
        fields.bad(Code::BadAddress, key, "not an address", help);
        return None;
    }
    Some(text)
}

/// Reads `abi`, `function` and `settled`, which belong together. `None` inside if they may be and are absent.
fn functions(
    fields: &mut Fields<'_, '_>,
    folder: &Path,
    may_be_absent: bool,
) -> Option<Option<ContractFunctions>> {
    let keys = [
        ("abi", "\"Settlement.json\""),
        ("function", "\"submitMany\""),
        ("settled", "\"settled\""),
    ];
    let abi = path(fields, "abi", folder, "\"Settlement.json\"");
    let function = text(fields, "function", "\"submitMany\"");
    let settled = text(fields, "settled", "\"settled\"");
    if may_be_absent && keys.iter().all(|(key, _)| !fields.has(key)) {
        return Some(None);
    }
    for (key, example) in keys {
        if !fields.has(key) {
            fields.missing(key, example);
        }
    }
    Some(Some(ContractFunctions {
        abi: abi?,
        function: function?,
        settled: settled?,
    }))
}

fn signer(fields: &mut Fields<'_, '_>, folder: &Path) -> Option<TransactionSigner> {
    if !fields.has("signer") {
        let key = secret(
            fields,
            ["key_env", "key_file"],
            "\"SETTLEMENT_KEY\"",
            folder,
        );
        return key.map(TransactionSigner::Key);
    }
    for key in ["key_env", "key_file"] {
        if fields.has(key) {
            let help = "keep one of the two";
            fields.bad(Code::TwoSecrets, key, "`signer` is given too", help);
        }
    }
    let url = fields.url("signer");
    let account = address(fields, "account");
    Some(TransactionSigner::Server {
        url: url?,
        account: account?,
    })
}
