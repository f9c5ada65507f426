//! The client against real nodes: anvil and geth.
//!
//! Anvil is the program that `PROOFMILL_ANVIL` names, or that of `contracts/node_modules`; geth the one that
//! `PROOFMILL_GETH` names, or that of the search path. `cargo test -p proofmill-ethereum --test node -- --ignored` runs
//! them; without the programs they fail.

use std::path::{Path, PathBuf};
use std::process::Stdio;
use std::time::Duration;

use proofmill_ethereum::revert::explain;
use proofmill_ethereum::{
    Address, BlockId, Bytes, Call, CallError, Local, Receipt, Remote, Rpc, SendError, Signed,
    Signer, Transaction, U256,
};
use proofmill_http::HttpClient;
use proofmill_workflow::HttpUrl;
use serde_json::{Value, json};
use tokio::io::{AsyncBufReadExt as _, AsyncRead, BufReader};
use tokio::process::{Child, Command};

const GWEI: u128 = 1_000_000_000;
const ETHER: u128 = 1_000_000_000 * GWEI;

/// Account 0 of anvil.
const ANVIL_KEY: &str = "ac0974bec39a17e36ba4a6b4d238ff944bacb478cbed5efcae784d7bf4f2ff80";

/// Code that creates a contract of 22 bytes. Called without data, it emits an event with topic 42; otherwise it reverts
/// with the data.
const CODE: &str = "601680600b6000396000f336600060003736601157602a366000a1005b366000fd";

/// A running node.
struct Node {
    url: HttpUrl,
    rpc: Rpc,
    /// Killed when this is dropped.
    _child: Child,
}

// === impl Node ===

impl Node {
    async fn anvil(arguments: &[&str]) -> Self {
        let program = std::env::var_os("PROOFMILL_ANVIL").map(PathBuf::from);
        let program = program.unwrap_or_else(|| {
            let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
            root.join("contracts/node_modules/@foundry-rs/anvil-linux-amd64/bin/anvil")
        });
        let mut command = Command::new(&program);
        command.args(["--port", "0"]).args(arguments);
        command
            .stdin(Stdio::null())
            .stdout(Stdio::piped())
            .kill_on_drop(true);
        let mut child = command.spawn().unwrap_or_else(|error| {
            panic!(
                "cannot start {}: {error}; set PROOFMILL_ANVIL",
                program.display()
            )
        });
        let output = child.stdout.take().expect("it is piped");
        Self::at(address_in(output, "Listening on ").await, child)
    }

    async fn geth() -> Self {
        let program = std::env::var_os("PROOFMILL_GETH").unwrap_or_else(|| "geth".into());
        let mut command = Command::new(&program);
        command.args([
            "--dev",
            "--ipcdisable",
            "--http",
            "--http.port",
            "0",
            "--http.api",
            "eth",
        ]);
        command
            .stdin(Stdio::null())
            .stderr(Stdio::piped())
            .kill_on_drop(true);
        let mut child = command
            .spawn()
            .unwrap_or_else(|error| panic!("cannot start geth: {error}; set PROOFMILL_GETH"));
        let output = child.stderr.take().expect("it is piped");
        Self::at(address_in(output, "endpoint=127").await, child)
    }

    fn at(address: String, child: Child) -> Self {
        let url = HttpUrl::try_new(&format!("http://{address}")).expect("an address");
        let rpc = Rpc::new(url.clone(), None).expect("a client");
        Self {
            url,
            rpc,
            _child: child,
        }
    }

    /// A request that the client does not have.
    async fn ask(&self, method: &str, params: Value) -> Value {
        let client = HttpClient::new(self.url.clone(), None).expect("a client");
        let body = json!({"jsonrpc": "2.0", "id": 1, "method": method, "params": params});
        let limit = Duration::from_secs(60);
        let answer = client.post(Default::default(), body.to_string().into(), 1 << 20, limit);
        let body = answer.await.expect("an answer").body.expect("a body");
        let answer: Value = serde_json::from_slice(&body).expect("JSON");
        assert!(answer.get("error").is_none(), "{answer}");
        answer["result"].clone()
    }

    /// The receipt of a transaction, once it is in a block.
    async fn receipt(&self, signed: &Signed) -> Receipt {
        for _ in 0..1200 {
            if let Some(receipt) = self.rpc.receipt(signed.hash).await.expect("an answer") {
                return receipt;
            }
            tokio::time::sleep(Duration::from_millis(50)).await;
        }
        panic!("{} is in no block after 60 s", signed.hash);
    }

    /// A transaction of an account, with fees that suit the last block.
    async fn transaction(&self, from: Address) -> Transaction {
        let header = self.rpc.header(BlockId::Latest).await.expect("an answer");
        let base = header.expect("a block").base_fee.expect("a base fee");
        let priority = self.rpc.priority_fee().await.expect("an answer").max(GWEI);
        Transaction {
            chain_id: self.rpc.chain_id().await.expect("an answer"),
            nonce: self
                .rpc
                .nonce(from, BlockId::Pending)
                .await
                .expect("an answer"),
            to: Some(Address::repeat_byte(0x77)),
            value: U256::from(1),
            data: Bytes::new(),
            gas_limit: 200_000,
            max_fee_per_gas: 2 * base + priority,
            max_priority_fee_per_gas: priority,
        }
    }
}

/// The address `host:port` in the first line of a node's output that has `mark`.
async fn address_in(output: impl AsyncRead + Unpin + Send + 'static, mark: &str) -> String {
    let mut lines = BufReader::new(output).lines();
    let find = async {
        while let Some(line) = lines.next_line().await.expect("text") {
            if let Some((_, rest)) = line.split_once(mark) {
                // The part before a mark that ends in the address's beginning.
                let start = mark.rsplit(['=', ' ']).next().unwrap_or_default();
                let rest = rest.split_whitespace().next().unwrap_or_default();
                return format!("{start}{rest}");
            }
        }
        panic!("the node ended early");
    };
    let found = tokio::time::timeout(Duration::from_secs(120), find).await;
    // Read on, so that the node can write on.
    tokio::spawn(async move { while let Ok(Some(_)) = lines.next_line().await {} });
    found.expect("the node says where it listens within 120 s")
}

fn anvil_key() -> Local {
    let mut key = [0; 32];
    hex::decode_to_slice(ANVIL_KEY, &mut key).expect("a key");
    Local::from_bytes(&key, "the test").expect("a key")
}

/// Creates a contract, calls it, and lets it revert.
async fn use_contract(node: &Node, signer: &Signer) {
    let from = signer.address();
    let rpc = &node.rpc;
    let code: Bytes = hex::decode(CODE).expect("code").into();
    let mut creation = node.transaction(from).await;
    (creation.to, creation.value, creation.data) = (None, U256::ZERO, code.clone());
    let signed = signer.sign(&creation).await.expect("signed");
    assert_eq!(rpc.send_raw(&signed.raw).await.expect("sent"), signed.hash);
    let receipt = node.receipt(&signed).await;
    assert!(receipt.succeeded && receipt.gas_used > 53_000);
    assert!(receipt.effective_gas_price <= creation.max_fee_per_gas);
    let contract = receipt.contract_address.expect("a contract");
    assert_eq!(rpc.code(contract).await.expect("code")[..], code[11..]);
    let header = rpc.header(BlockId::Number(receipt.block_number)).await;
    let header = header.expect("an answer").expect("a block");
    assert_eq!(header.hash, receipt.block_hash);
    let same = rpc
        .header(BlockId::Hash(header.hash))
        .await
        .expect("an answer");
    assert_eq!(same, Some(header));
    assert!(rpc.transaction_known(signed.hash).await.expect("an answer"));
    assert!(!rpc.transaction_known(header.hash).await.expect("an answer"));

    let mut call = Call {
        from: Some(from),
        to: Some(contract),
        ..Call::default()
    };
    assert!(
        rpc.call(&call, BlockId::Latest)
            .await
            .expect("it returns")
            .is_empty()
    );
    let gas = rpc.estimate_gas(&call).await.expect("an estimate");
    assert!((21_000..30_000).contains(&gas), "{gas}");
    let mut emit = node.transaction(from).await;
    (emit.to, emit.value, emit.gas_limit) = (Some(contract), U256::ZERO, gas);
    let signed = signer.sign(&emit).await.expect("signed");
    rpc.send_raw(&signed.raw).await.expect("sent");
    let receipt = node.receipt(&signed).await;
    assert!(receipt.succeeded);
    assert_eq!(receipt.logs.len(), 1);
    assert_eq!(receipt.logs[0].address, contract);
    assert_eq!(
        U256::from_be_bytes(receipt.logs[0].topics[0].0),
        U256::from(42)
    );

    call.data = hex::decode(format!("08c379a0{:064x}{:064x}{:0<64}", 32, 2, "6e6f"))
        .expect("data")
        .into();
    for error in [
        rpc.call(&call, BlockId::Hash(header.hash))
            .await
            .expect_err("it reverts"),
        rpc.estimate_gas(&call).await.expect_err("it reverts"),
    ] {
        let CallError::Reverted { data, .. } = error else {
            panic!("{error:?}");
        };
        assert_eq!(data, call.data);
        assert_eq!(explain(&data, &[]), "\"no\"");
    }
    let mut revert = emit.clone();
    (revert.nonce, revert.data, revert.gas_limit) = (emit.nonce + 1, call.data.clone(), 200_000);
    let signed = signer.sign(&revert).await.expect("signed");
    rpc.send_raw(&signed.raw).await.expect("sent");
    let receipt = node.receipt(&signed).await;
    assert!(!receipt.succeeded && receipt.logs.is_empty());
    call.gas = Some(21_500);
    let error = rpc
        .call(&call, BlockId::Latest)
        .await
        .expect_err("out of gas");
    assert!(!matches!(error, CallError::Reverted { .. }), "{error:?}");
}

/// Sends transactions with a used nonce, without funds, and with fees below the base fee.
async fn be_refused(node: &Node, signer: &Signer) {
    let rpc = &node.rpc;
    let mut used = node.transaction(signer.address()).await;
    used.nonce -= 1;
    let signed = signer.sign(&used).await.expect("signed");
    let error = rpc.send_raw(&signed.raw).await.expect_err("a used nonce");
    assert!(matches!(error, SendError::NonceTooLow(_)), "{error:?}");

    let poor = Local::from_bytes(&[0x42; 32], "the test").expect("a key");
    assert_eq!(
        rpc.balance(poor.address(), BlockId::Latest)
            .await
            .expect("an answer"),
        U256::ZERO
    );
    let signed = poor
        .sign(&node.transaction(poor.address()).await)
        .expect("signed");
    let error = rpc.send_raw(&signed.raw).await.expect_err("no funds");
    assert!(
        matches!(error, SendError::InsufficientFunds(_)),
        "{error:?}"
    );

    let mut cheap = node.transaction(signer.address()).await;
    (cheap.max_fee_per_gas, cheap.max_priority_fee_per_gas) = (1, 0);
    let signed = signer.sign(&cheap).await.expect("signed");
    let error = rpc.send_raw(&signed.raw).await.expect_err("no fee");
    assert!(matches!(error, SendError::Underpriced(_)), "{error:?}");
}

#[tokio::test]
#[ignore = "needs anvil; run by make settle-test"]
async fn anvil_runs_contracts_and_refuses_transactions() {
    let node = Node::anvil(&[]).await;
    assert_eq!(node.rpc.chain_id().await.expect("an answer"), 31_337);
    let local = Signer::Local(anvil_key());
    assert_eq!(
        local.address().to_string(),
        "0xf39Fd6e51aad88F6F4ce6aB8827279cffFb92266"
    );
    let balance = node.rpc.balance(local.address(), BlockId::Latest).await;
    assert_eq!(balance.expect("an answer"), U256::from(10_000 * ETHER));
    use_contract(&node, &local).await;
    be_refused(&node, &local).await;
}

#[tokio::test]
#[ignore = "needs anvil; run by make settle-test"]
async fn anvil_signs_as_a_key_here_does() {
    let node = Node::anvil(&[]).await;
    let local = anvil_key();
    let remote = Remote::new(node.url.clone(), None, local.address()).expect("a client");
    let transaction = node.transaction(local.address()).await;
    let theirs = remote.sign(&transaction).await.expect("signed");
    assert_eq!(theirs, local.sign(&transaction).expect("signed"));
    use_contract(&node, &Signer::Remote(remote)).await;
}

#[tokio::test]
#[ignore = "needs anvil; run by make settle-test"]
async fn waiting_transactions_are_known_and_replaced() {
    let node = Node::anvil(&["--no-mining"]).await;
    let (rpc, local) = (&node.rpc, anvil_key());
    let transaction = node.transaction(local.address()).await;
    let first = local.sign(&transaction).expect("signed");
    rpc.send_raw(&first.raw).await.expect("sent");
    let error = rpc.send_raw(&first.raw).await.expect_err("known");
    assert!(matches!(error, SendError::AlreadyKnown(_)), "{error:?}");
    assert!(rpc.transaction_known(first.hash).await.expect("an answer"));
    assert_eq!(rpc.receipt(first.hash).await.expect("an answer"), None);
    let nonce = |block| rpc.nonce(local.address(), block);
    assert_eq!(nonce(BlockId::Latest).await.expect("an answer"), 0);
    assert_eq!(nonce(BlockId::Pending).await.expect("an answer"), 1);

    let mut other = transaction.clone();
    other.value = U256::from(2);
    let signed = local.sign(&other).expect("signed");
    let error = rpc.send_raw(&signed.raw).await.expect_err("the same fees");
    assert!(
        matches!(error, SendError::ReplacementUnderpriced(_)),
        "{error:?}"
    );
    other.max_fee_per_gas *= 2;
    other.max_priority_fee_per_gas *= 2;
    let second = local.sign(&other).expect("signed");
    rpc.send_raw(&second.raw).await.expect("sent");
    node.ask("evm_mine", json!([])).await;
    assert!(node.receipt(&second).await.succeeded);
    assert_eq!(rpc.receipt(first.hash).await.expect("an answer"), None);
}

#[tokio::test]
#[ignore = "needs geth; run by make settle-test"]
async fn geth_runs_contracts_and_refuses_transactions() {
    let node = Node::geth().await;
    let accounts = node.ask("eth_accounts", json!([])).await;
    let rich: Address = accounts[0]
        .as_str()
        .expect("an account")
        .parse()
        .expect("an address");
    // The development account's key is in geth.
    let remote = Remote::new(node.url.clone(), None, rich).expect("a client");
    let local = anvil_key();
    let mut gift = node.transaction(rich).await;
    (gift.to, gift.value) = (Some(local.address()), U256::from(ETHER));
    let signed = remote.sign(&gift).await.expect("signed");
    node.rpc.send_raw(&signed.raw).await.expect("sent");
    assert!(node.receipt(&signed).await.succeeded);
    let local = Signer::Local(local);
    use_contract(&node, &local).await;
    be_refused(&node, &local).await;
    use_contract(&node, &Signer::Remote(remote)).await;
}
