//! The demo's contracts on the chain: the account that pays, and what was deployed before.

use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use ark_std::rand::RngCore as _;
use ark_std::rand::rngs::OsRng;
use proofmill_ethereum::{
    Address, B256, BlockId, Bytes, Call, Local, Receipt, Rpc, RpcError, Transaction, U256,
};
use proofmill_files::Visibility;
use serde::{Deserialize, Serialize};

use crate::failure::Failure;
use crate::files;

/// File with the account's key, in the folder of settlement.
const KEY_FILE: &str = "account.key";

/// File with the [`Deployment`], in the folder of settlement.
const DEPLOYMENT_FILE: &str = "deployment.json";

/// Amount that the account gets: a hundred times what 1,000 headers cost on a development chain.
const FUNDS_WEI: u128 = 1_000_000_000_000_000_000;

/// Longest time until a transaction is in a block.
const PATIENCE: Duration = Duration::from_secs(60);

/// Maximum size of the deployment's file.
const FILE_MAX: usize = 64 * 1024;

/// Contracts that were deployed.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct Deployment {
    pub(super) chain_id: u64,
    pub(super) header_chain: Address,
    pub(super) verifier: Address,
    /// First block that may have events of the contract.
    pub(super) block: u64,
    /// SHA-256 of the verifier's text, hexadecimal: another key has another.
    pub(super) verifier_digest: String,
}

/// An account with funds on a chain.
pub(super) struct Account {
    rpc: Rpc,
    key: Local,
    chain_id: u64,
}

// === impl Deployment ===

impl Deployment {
    /// The deployment of an earlier run, if there is one.
    pub(super) fn read(folder: &Path) -> Result<Option<Self>, Failure> {
        let path = folder.join(DEPLOYMENT_FILE);
        if !path.exists() {
            return Ok(None);
        }
        let bytes = files::read(&path, FILE_MAX).map_err(Failure::new)?;
        let read = serde_json::from_slice(&bytes);
        let read = read.map_err(|error| Failure::new(format!("{}: {error}", path.display())));
        Ok(Some(read?))
    }

    pub(super) fn write(&self, folder: &Path) -> Result<(), Failure> {
        let bytes = serde_json::to_vec_pretty(self)?;
        files::write(&folder.join(DEPLOYMENT_FILE), Visibility::Private, &bytes)
    }
}

// === impl Account ===

impl Account {
    /// The account whose key is in `folder`; made, and given funds by an account of the node, if it has none.
    pub(super) async fn open(rpc: Rpc, folder: &Path) -> Result<Self, Failure> {
        let path = key_file(folder);
        if !path.exists() {
            let mut bytes = [0; 32];
            OsRng.fill_bytes(&mut bytes);
            let text = format!("{}\n", hex::encode(bytes));
            files::write(&path, Visibility::Private, text.as_bytes())?;
        }
        let key = Local::from_file(&path).await?;
        let chain_id = rpc
            .chain_id()
            .await
            .map_err(|error| unreachable(&rpc, &error))?;
        let account = Self { rpc, key, chain_id };
        account.fund().await?;
        Ok(account)
    }

    pub(super) fn rpc(&self) -> &Rpc {
        &self.rpc
    }

    pub(super) fn chain_id(&self) -> u64 {
        self.chain_id
    }

    async fn fund(&self) -> Result<(), Failure> {
        let address = self.key.address();
        let wanted = U256::from(FUNDS_WEI);
        if self.rpc.balance(address, BlockId::Latest).await? >= wanted / U256::from(2) {
            return Ok(());
        }
        let accounts = self.rpc.accounts().await?;
        let rich = accounts.first().ok_or_else(|| {
            Failure::new(format!("the node at {} holds no account", self.rpc.url())).help(format!(
                "start a development node (geth --dev, anvil), or send ether to {address}"
            ))
        })?;
        let hash = self.rpc.send_from(*rich, address, wanted).await?;
        self.receipt(hash, "the account's funds").await?;
        Ok(())
    }

    /// Deploys a contract, and returns its address and the block that has it.
    pub(super) async fn deploy(&self, code: &[u8], what: &str) -> Result<(Address, u64), Failure> {
        let from = self.key.address();
        let data = Bytes::copy_from_slice(code);
        let call = Call {
            from: Some(from),
            data: data.clone(),
            ..Call::default()
        };
        let gas = self.rpc.estimate_gas(&call).await;
        let gas =
            gas.map_err(|error| Failure::new(format!("{what} cannot be deployed: {error}")))?;
        let header = self.rpc.header(BlockId::Latest).await?;
        let base_fee = header
            .and_then(|header| header.base_fee)
            .unwrap_or_default();
        let priority_fee = self.rpc.priority_fee().await?.max(1);
        let transaction = Transaction {
            chain_id: self.chain_id,
            nonce: self.rpc.nonce(from, BlockId::Latest).await?,
            to: None,
            value: U256::ZERO,
            data,
            gas_limit: gas + gas / 5,
            max_fee_per_gas: base_fee * 4 + priority_fee,
            max_priority_fee_per_gas: priority_fee,
        };
        let signed = self.key.sign(&transaction)?;
        let sent = self.rpc.send_raw(&signed.raw).await;
        sent.map_err(|error| Failure::new(format!("{what} cannot be deployed: {error}")))?;
        let receipt = self.receipt(signed.hash, what).await?;
        let address = receipt.contract_address.filter(|_| receipt.succeeded);
        let address =
            address.ok_or_else(|| Failure::new(format!("{what}: its constructor reverted")))?;
        Ok((address, receipt.block_number))
    }

    async fn receipt(&self, hash: B256, what: &str) -> Result<Receipt, Failure> {
        let began = Instant::now();
        while began.elapsed() < PATIENCE {
            if let Some(receipt) = self.rpc.receipt(hash).await? {
                return Ok(receipt);
            }
            tokio::time::sleep(Duration::from_millis(100)).await;
        }
        let within = PATIENCE.as_secs();
        Err(Failure::new(format!(
            "{what}: transaction {hash} is in no block after {within} s"
        )))
    }
}

/// The file with the account's key.
pub(super) fn key_file(folder: &Path) -> PathBuf {
    folder.join(KEY_FILE)
}

fn unreachable(rpc: &Rpc, error: &RpcError) -> Failure {
    Failure::new(format!(
        "the node at {} does not answer: {error}",
        rpc.url()
    ))
    .help("start one, such as `geth --dev --dev.period 1 --http`, or name another with --settle")
}
