//! Settlement of the demo's chunks: a light client of Bitcoin on an Ethereum development chain.

mod deploy;
mod report;
mod solc;

pub(super) use report::SettleReport;

use std::path::{Path, PathBuf};

use proofmill_bitcoin::{INTERVAL, POW_LIMIT, mainnet_headers};
use proofmill_ethereum::{Address, Rpc};
use proofmill_files::make_private_directory;
use proofmill_solidity::{ContractName, ContractOptions, verifier_contract};
use sha2::Digest as _;

use self::deploy::{Account, Deployment, key_file};
use super::prepare::Chain;
use crate::args::Demo;
use crate::failure::Failure;
use crate::progress::Screen;
use crate::provers::{Keys, OnProverEvent};

/// Folder of settlement, in the state directory.
pub(super) const FOLDER: &str = "settle";

/// The contract that the demo settles on.
pub(super) struct Settling {
    account: Account,
    deployment: Deployment,
    /// The `rpc` of the sink.
    endpoint: String,
    confirmations: u64,
    batch: u32,
}

/// The header that the contract's chain begins after.
#[derive(Debug, PartialEq, Eq)]
struct Anchor {
    /// Its hash, in the order of headers.
    hash: [u8; 32],
    next_height: u32,
    bits: u32,
    /// Its time.
    time: u32,
    /// Time of the first header of its difficulty period.
    period_start: u32,
}

/// Deploys the contracts, unless an earlier run has; `None` if the demo is not to settle. `emitted` is the number of blocks that
/// earlier runs emitted.
pub(super) async fn prepare(
    args: &Demo,
    chain: &Chain,
    keys: &Keys,
    emitted: u64,
    screen: &Screen,
) -> Result<Option<Settling>, Failure> {
    let (Some(endpoint), Some(solc)) = (&args.settle.rpc, &args.settle.solc) else {
        return Ok(None);
    };
    let anchor = Anchor::before(chain, args)?;
    let folder = args.state.join(FOLDER);
    make_private_directory(&folder)
        .map_err(|error| Failure::new(format!("{}: {error}", folder.display())))?;
    let rpc =
        Rpc::new(endpoint.url.clone(), None).map_err(|error| Failure::new(error.to_string()))?;
    let account = Account::open(rpc, &folder).await?;
    let verifier = verifier_text(args, keys)?;
    let digest = hex::encode(sha2::Sha256::digest(verifier.as_bytes()));
    let deployment = match still_there(&account, &folder, &digest).await? {
        Some(deployment) => {
            screen.note(&format!(
                "light client: contract {}, of an earlier run",
                deployment.header_chain
            ));
            deployment
        }
        None if emitted > 0 => {
            let url = &endpoint.url;
            let why = format!(
                "{emitted} blocks were emitted before, and not to a contract that is on the chain at {url}"
            );
            return Err(Failure::new(why).help("begin anew with --fresh, or name another --state"));
        }
        None => {
            let spinner = screen.spinner("contracts");
            spinner.say("compiling and deploying the light client");
            let made = deploy(&account, solc, &verifier, digest, args.chunk, &anchor).await;
            spinner.clear();
            let made = made?;
            made.write(&folder)?;
            screen.note(&format!(
                "light client: contract {} on chain {}",
                made.header_chain, made.chain_id
            ));
            made
        }
    };
    Ok(Some(Settling {
        account,
        deployment,
        endpoint: endpoint.text.clone(),
        confirmations: args.settle.confirmations,
        batch: args.settle.settle_batch,
    }))
}

/// Text of the verifier's contract.
fn verifier_text(args: &Demo, keys: &Keys) -> Result<String, Failure> {
    let quiet: OnProverEvent = std::sync::Arc::new(|_| {});
    let verifier = keys.verifier(args.chunk as usize, &quiet)?;
    let name = ContractName::new(solc::VERIFIER)?;
    let options = ContractOptions { name, batch: true };
    Ok(verifier_contract(verifier.vk(), &options)?)
}

/// The deployment of an earlier run, if its contracts are on this chain and its key is the same.
async fn still_there(
    account: &Account,
    folder: &Path,
    digest: &str,
) -> Result<Option<Deployment>, Failure> {
    let Some(known) = Deployment::read(folder)? else {
        return Ok(None);
    };
    let is_same = known.chain_id == account.chain_id() && known.verifier_digest == digest;
    let has_code = !account.rpc().code(known.header_chain).await?.is_empty();
    Ok(Some(known).filter(|_| is_same && has_code))
}

async fn deploy(
    account: &Account,
    solc: &Path,
    verifier: &str,
    verifier_digest: String,
    slots: u32,
    anchor: &Anchor,
) -> Result<Deployment, Failure> {
    let (solc, text) = (PathBuf::from(solc), verifier.to_owned());
    let compiled = tokio::task::spawn_blocking(move || solc::compile(&solc, &text)).await??;
    let (verifier, _) = account.deploy(&compiled.verifier, "the verifier").await?;
    let mut code = compiled.header_chain;
    code.extend(anchor.constructor_arguments(verifier, slots));
    let (header_chain, block) = account.deploy(&code, "the light client").await?;
    Ok(Deployment {
        chain_id: account.chain_id(),
        header_chain,
        verifier,
        block,
        verifier_digest,
    })
}

// === impl Settling ===

impl Settling {
    /// The sink's table of the demo's workflow file, which is in the state directory.
    pub(super) fn sink(&self) -> String {
        let key = key_file(Path::new(FOLDER));
        format!(
            r#"
[[sequencer.sink]]
kind = "ethereum"
rpc = "{}"
contract = "{}"
payload = "bitcoin.header-chain"
key_file = "{}"
confirmations = {}
batch = {}
poll = "250ms"
replace_after = "10s"
max_fee_gwei = 1000
"#,
            self.endpoint,
            self.deployment.header_chain,
            key.display(),
            self.confirmations,
            self.batch
        )
    }

    /// Chunks that the contract has accepted, and its tip.
    pub(super) async fn report(&self) -> Result<SettleReport, Failure> {
        report::read(self.account.rpc(), &self.deployment).await
    }
}

// === impl Anchor ===

impl Anchor {
    /// The header before the demo's first.
    fn before(chain: &Chain, args: &Demo) -> Result<Self, Failure> {
        let first = &chain.headers[0];
        let next_height = u32::try_from(chain.start);
        let next_height =
            next_height.map_err(|_| Failure::usage("--start is too high for the contract"))?;
        let genesis = mainnet_headers()[0];
        let needs = |option: &str, what: &str| {
            Failure::usage(format!(
                "--settle needs {option} for headers from height {next_height}: {what}"
            ))
        };
        // The anchor's period is the one before if the first header begins a period.
        let before = next_height.saturating_sub(1);
        let is_first_period = u64::from(before) < INTERVAL;
        let period_start = match args.settle.period_start {
            Some(time) => time,
            None if is_first_period => genesis.time(),
            None => {
                let begin = u64::from(before) - u64::from(before) % INTERVAL;
                let what =
                    format!("the time of header {begin}, the first of its difficulty period");
                return Err(needs("--period-start", &what));
            }
        };
        let begins_period = next_height > 0 && u64::from(next_height).is_multiple_of(INTERVAL);
        let time = match args.settle.anchor_time {
            Some(time) => time,
            None if begins_period => {
                let what =
                    format!("the time of header {before}, from which the difficulty follows");
                return Err(needs("--anchor-time", &what));
            }
            // Within a period it does not count.
            None if next_height > 0 && u64::from(next_height) % INTERVAL != 1 => 0,
            None => period_start,
        };
        // The bits before a change of the difficulty are not in the file, unless the target is at its limit.
        if begins_period && first.bits() != POW_LIMIT {
            let what = format!(
                "--settle cannot begin at height {next_height}, where the difficulty changes"
            );
            return Err(Failure::usage(what).help("begin with the header before or after"));
        }
        Ok(Self {
            hash: first.prev_hash().0,
            next_height,
            bits: first.bits().0,
            time,
            period_start,
        })
    }

    /// ABI encoding of the arguments of the contract's constructor: the verifier, the slots, and the anchor's fields.
    fn constructor_arguments(&self, verifier: Address, slots: u32) -> Vec<u8> {
        let number = |number: u32| {
            let mut word = [0; 32];
            word[28..].copy_from_slice(&number.to_be_bytes());
            word
        };
        let words = [
            verifier.into_word().0,
            number(slots),
            self.hash,
            number(self.next_height),
            number(self.bits),
            number(self.time),
            number(self.period_start),
        ];
        words.concat()
    }
}
