//! A chain, and the JSON-RPC endpoint of a node that follows it.
#![allow(dead_code, reason = "each test program uses some of it")]

use std::collections::BTreeSet;
use std::sync::{Arc, Mutex};

use axum::extract::State;
use axum::http::StatusCode;
use axum::routing::post;
use axum::{Json, Router};
use serde_json::{Value, json};

/// A chain, and its node, which stops when this is dropped.
pub(crate) struct Node {
    chain: Arc<Mutex<Chain>>,
    pub(crate) url: String,
    serving: tokio::task::JoinHandle<()>,
}

struct Chain {
    /// Fork of each block.
    forks: Vec<char>,
    /// Blocks that were asked for since they were last forgotten.
    asked: BTreeSet<usize>,
    failures: u32,
}

// === impl Node ===

impl Node {
    /// A node whose chain has the blocks 0 to `head`.
    pub(crate) async fn start(head: usize) -> Self {
        let chain = Chain {
            forks: vec!['a'; head + 1],
            asked: BTreeSet::new(),
            failures: 0,
        };
        let chain = Arc::new(Mutex::new(chain));
        let app = Router::new()
            .route("/secret", post(answer))
            .with_state(chain.clone());
        let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
        let url = format!("http://{}/secret", listener.local_addr().unwrap());
        let serving = tokio::spawn(async move {
            axum::serve(listener, app).await.unwrap();
        });
        Self {
            chain,
            url,
            serving,
        }
    }

    /// Adds `blocks` blocks to the chain.
    pub(crate) fn extend(&self, blocks: usize) {
        let mut chain = self.chain.lock().unwrap();
        let fork = *chain.forks.last().unwrap();
        let longer = chain.forks.len() + blocks;
        chain.forks.resize(longer, fork);
    }

    /// Replaces the blocks from `from` on by those of `fork`.
    pub(crate) fn reorganise(&self, from: usize, fork: char) {
        self.chain.lock().unwrap().forks[from..].fill(fork);
    }

    /// Forgets which blocks were asked for.
    pub(crate) fn forget_asked(&self) {
        self.chain.lock().unwrap().asked.clear();
    }

    /// Whether block `number` was asked for since then.
    pub(crate) fn was_asked(&self, number: usize) -> bool {
        self.chain.lock().unwrap().asked.contains(&number)
    }

    /// Makes the next `requests` requests fail.
    pub(crate) fn fail(&self, requests: u32) {
        self.chain.lock().unwrap().failures = requests;
    }

    pub(crate) fn hash(&self, number: usize) -> String {
        self.chain.lock().unwrap().hash(number)
    }
}

impl Drop for Node {
    fn drop(&mut self) {
        self.serving.abort();
    }
}

impl Chain {
    fn hash(&self, number: usize) -> String {
        format!("0x{}{number:063x}", self.forks[number])
    }
}

async fn answer(
    State(chain): State<Arc<Mutex<Chain>>>,
    Json(request): Json<Value>,
) -> Result<Json<Value>, StatusCode> {
    let mut chain = chain.lock().unwrap();
    if chain.failures > 0 {
        chain.failures -= 1;
        return Err(StatusCode::SERVICE_UNAVAILABLE);
    }
    let head = chain.forks.len() - 1;
    let result = match request["method"].as_str().unwrap() {
        "eth_blockNumber" => json!(format!("{head:#x}")),
        "eth_getBlockByNumber" => {
            let number = request["params"][0]
                .as_str()
                .unwrap()
                .trim_start_matches("0x");
            let number = usize::from_str_radix(number, 16).unwrap();
            chain.asked.insert(number);
            if number > head {
                Value::Null
            } else {
                let parent = number.checked_sub(1).map(|parent| chain.hash(parent));
                json!({
                    "number": format!("{number:#x}"),
                    "hash": chain.hash(number),
                    "timestamp": format!("{:#x}", 1_700_000_000 + 12 * number),
                    "parentHash": parent.unwrap_or_else(|| format!("0x{:064x}", 0)),
                    "transactions": match request["params"][1].as_bool() {
                        Some(true) => json!([{ "nonce": "0x0" }]),
                        _ => json!([format!("0x{:064x}", 1)]),
                    },
                })
            }
        }
        other => panic!("nobody should ask {other}"),
    };
    Ok(Json(
        json!({"jsonrpc": "2.0", "id": request["id"], "result": result}),
    ))
}
