//! Malicious workers on a cluster of the program's own processes: no wrong result is emitted.

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;
use std::sync::Arc;

use bytes::Bytes;
use proofmill_bitcoin::{ChunkProof, HeaderChainKeys, prove_chunk};
use proofmill_bitcoin::{Header, check_chain};
use proofmill_bus::{Connection, NatsOptions};
use proofmill_nats_server::NatsServer;
use proofmill_orchestrator::cluster::{ProcessContext, run_dispatchers};
use proofmill_orchestrator::executor::{Context, Prover, ProverError};
use proofmill_orchestrator::mill::Registry;
use proofmill_orchestrator::payload::Encoding;
use proofmill_orchestrator::shutdown::{self, Trigger};
use proofmill_workflow::Workflow;
use serde::Serialize;
use serde_json::Value;

use crate::support::{
    PATIENCE, Running, emitted, eventually, files, finish, folder, headers, names, proofmill, raw,
    run,
};

const WORKFLOW: &str = r#"name = "attacked"

[[source]]
name = "headers"
kind = "headers"
file = "headers"
start = 0
chunk = 1
output = "chunks"

[[dispatcher]]
name = "prove"
input = "chunks"
output = "proofs"
r_max = 0
executor = { kind = "native", prover = "bitcoin.prove", params = { slots = 1 } }

[[dispatcher]]
name = "verify"
input = "proofs"
output = "verified"
batch = 8
verify = true
executor = { kind = "native", prover = "bitcoin.verify", params = { slots = 1 } }

[sequencer]
input = "verified"
directory = "proofs"
"#;

/// The easiest compact target, met by nearly every second hash.
const LOWEST_DIFFICULTY: u32 = 0x207f_ffff;

/// Blocks of the workflow.
const BLOCKS: usize = 6;

/// The attacker's prover: takes a block and its input, returns any result.
type Lie = dyn Fn(u64, Bytes) -> Result<(Encoding, Bytes), String> + Send + Sync;

struct Liar(Arc<Lie>);

impl Prover for Liar {
    type Input = Bytes;
    type Output = proofmill_orchestrator::executor::Produced;

    fn prove(&self, context: &Context, input: Bytes) -> Result<Self::Output, ProverError> {
        let (encoding, bytes) = (self.0)(context.first, input).map_err(ProverError::Permanent)?;
        Ok(Self::Output::One(encoding, bytes))
    }
}

fn keys() -> HeaderChainKeys {
    let folder = Path::new(env!("CARGO_TARGET_TMPDIR")).join("keys");
    HeaderChainKeys::load_or_generate(&folder, 1, &|_| {}).expect("keys")
}

/// Result that `bitcoin.prove` hands on: the number of headers (little-endian), the headers, the
/// proof.
fn proven(headers: &[Header], proof: &ChunkProof) -> Bytes {
    let mut bytes = (headers.len() as u32).to_le_bytes().to_vec();
    bytes.extend(raw(headers));
    bytes.extend(proof.to_bytes());
    bytes.into()
}

/// Result that `bitcoin.verify` passes, field by field.
#[derive(Serialize)]
struct Emitted {
    first: u64,
    last: u64,
    prev_hash: String,
    last_hash: String,
    work: String,
    system: &'static str,
    slots: usize,
    headers: String,
    proof: String,
}

/// A chunk as it leaves, as if it had been verified for `block`.
fn passed(block: u64, header: &Header, proof: &ChunkProof) -> Bytes {
    let statement = &proof.statement;
    let chunk = Emitted {
        first: block,
        last: block,
        prev_hash: statement.prev_hash.to_string(),
        last_hash: statement.last_hash.to_string(),
        work: statement.total_work().expect("right bits").to_string(),
        system: "groth16-bls12-381",
        slots: 1,
        headers: hex::encode(header.as_bytes()),
        proof: hex::encode(proof.to_bytes()),
    };
    serde_json::to_vec(&chunk).expect("JSON").into()
}

/// A header that the attacker has mined himself, as easily as can be: that of `of`, with another
/// previous hash if `prev` is given. A valid proof can be made of it.
fn self_mined(of: &Header, prev: Option<[u8; 32]>) -> Header {
    let mut bytes = *of.as_bytes();
    if let Some(prev) = prev {
        bytes[4..36].copy_from_slice(&prev);
    }
    bytes[72..76].copy_from_slice(&LOWEST_DIFFICULTY.to_le_bytes());
    let mut mined = (0..1000_u32).map(|nonce| {
        bytes[76..].copy_from_slice(&nonce.to_le_bytes());
        Header::new(bytes)
    });
    let right = mined.find(|header| check_chain(std::slice::from_ref(header)).is_ok());
    right.expect("every second nonce is right")
}

fn workflow(more: &str) -> String {
    WORKFLOW.replacen('\n', &format!("\n{more}\n"), 1)
}

fn prepare(text: &str) -> tempfile::TempDir {
    let folder = folder();
    let write = |name: &str, bytes: &[u8]| {
        std::fs::write(folder.path().join(name), bytes).expect("the folder can be written");
    };
    write("workflow.toml", text.as_bytes());
    write("headers", &raw(&headers(0, BLOCKS - 1)));
    folder
}

fn on(server: &NatsServer, folder: &Path, args: &[&str]) -> std::process::Command {
    let mut command = proofmill(folder);
    command.env("PROOFMILL_BUS", server.url()).args(args);
    command
}

/// The attacker's dispatcher, in this process: it works on `stage`, with a prover of his own.
struct Attacker {
    _runtime: tokio::runtime::Runtime,
    _trigger: Trigger,
}

fn attack(
    server: &NatsServer,
    folder: &Path,
    stage: &str,
    prover: &str,
    lie: Arc<Lie>,
) -> Attacker {
    let runtime = tokio::runtime::Builder::new_multi_thread()
        .worker_threads(2)
        .enable_all()
        .build()
        .expect("a runtime");
    let file = folder.join("workflow.toml");
    let workflow = Workflow::load(&file).expect("a workflow");
    let mut registry = Registry::default();
    for name in ["bitcoin.prove", "bitcoin.verify"] {
        let lie = lie.clone();
        registry.prover(name, move |_| Ok(Liar(lie.clone())));
    }
    assert!(registry.prover_names().iter().any(|name| name == prover));
    let (url, state) = (server.url(), folder.join("attacker"));
    let (trigger, shutdown) = shutdown::channel();
    let stages: BTreeSet<String> = [stage.to_owned()].into();
    runtime.spawn(async move {
        let options = NatsOptions {
            connect_timeout: PATIENCE,
            ..NatsOptions::new(&url)
        };
        let connection = Connection::open(options).await.expect("the bus");
        let context =
            ProcessContext::open(connection, &workflow, registry, state, "attacker").await;
        let context = context.expect("a site");
        run_dispatchers(context, stages, BTreeMap::new(), shutdown).await
    });
    Attacker {
        _runtime: runtime,
        _trigger: trigger,
    }
}

#[test]
fn attacks_of_a_prover_other_chunks_self_mined_headers_and_a_wrong_previous_hash_are_not_emitted() {
    let server = NatsServer::start();
    let folder = prepare(&workflow(""));
    let keys = keys();
    let lie = move |block: u64, input: Bytes| {
        let chain = headers(0, 31);
        let own = chain[block as usize];
        let prove = |header: &Header| {
            prove_chunk(&keys, std::slice::from_ref(header)).map_err(|error| error.to_string())
        };
        assert_eq!(*input, own.as_bytes()[..], "what was submitted");
        let (shown, proof) = match block {
            // A valid proof of another chunk, with its own headers, and with those of this block.
            1 => (chain[20], prove(&chain[20])?),
            2 => (own, prove(&chain[20])?),
            // Valid proofs of headers that were mined at the lowest difficulty.
            3 => {
                let mined = self_mined(&own, None);
                (mined, prove(&mined)?)
            }
            4 => (own, prove(&self_mined(&own, None))?),
            // Valid proof of a header that follows another.
            5 => {
                let mined = self_mined(&own, Some([7; 32]));
                (own, prove(&mined)?)
            }
            _ => (own, prove(&own)?),
        };
        Ok((Encoding::Binary, proven(&[shown], &proof)))
    };
    let _attacker = attack(
        &server,
        folder.path(),
        "prove",
        "bitcoin.prove",
        Arc::new(lie),
    );
    let start = |args: &[&str]| Running::start(&mut on(&server, folder.path(), args));
    let _coordinator = start(&["coordinator", "workflow.toml"]);
    let _source = start(&["source", "workflow.toml"]);
    let _verifier = start(&["dispatcher", "workflow.toml", "--stage", "verify"]);
    let _sequencer = start(&["sequencer", "workflow.toml"]);

    let list = eventually("all lies are found", || {
        let args = ["dlq", "list", "--json", "--workflow", "attacked"];
        let ran = finish(&mut on(&server, folder.path(), &args));
        let list: Vec<Value> = serde_json::from_str(ran.stdout.lines().last()?).ok()?;
        (list.len() == BLOCKS - 1).then_some(list)
    });
    let mut tasks: Vec<&str> = list
        .iter()
        .filter_map(|dead| dead["task"].as_str())
        .collect();
    tasks.sort_unstable();
    assert_eq!(
        tasks,
        (1..BLOCKS)
            .map(|block| format!("verify/{block}/0"))
            .collect::<Vec<_>>()
    );
    for dead in &list {
        let (task, why) = (dead["task"].as_str(), dead["reason"].as_str());
        let expected = match task.expect("a task") {
            "verify/1/0" | "verify/3/0" => "it is of other headers than those submitted as blocks",
            _ => "its statement (1 headers after",
        };
        assert!(why.is_some_and(|why| why.contains(expected)), "{dead}");
    }
    let proofs = folder.path().join(".proofmill/attacked/proofs");
    let left = eventually("what is right leaves", || {
        let names = names(&proofs);
        (!names.is_empty()).then_some(names)
    });
    assert_eq!(left, [emitted(0, 0)]);
}

/// The attacker verifies: from block 2 on he passes valid proofs of headers he has mined himself.
fn lying_verifier() -> Arc<Lie> {
    let keys = keys();
    Arc::new(move |block: u64, input: Bytes| {
        let chain = headers(0, 31);
        let own = chain[block as usize];
        if block < 2 {
            let proof = ChunkProof::from_bytes(&input[4 + 80..]);
            let proof = proof.map_err(|error| error.to_string())?;
            return Ok((Encoding::Json, passed(block, &own, &proof)));
        }
        let mined = self_mined(&own, None);
        let proof = prove_chunk(&keys, &[mined]).map_err(|error| error.to_string())?;
        Ok((Encoding::Json, passed(block, &mined, &proof)))
    })
}

#[test]
fn attacks_of_a_verifier_that_lies_are_caught_where_they_would_leave() {
    let server = NatsServer::start();
    let folder = prepare(&workflow(""));
    let lie = lying_verifier();
    let _attacker = attack(&server, folder.path(), "verify", "bitcoin.verify", lie);
    let start = |args: &[&str]| Running::start(&mut on(&server, folder.path(), args));
    let _coordinator = start(&["coordinator", "workflow.toml"]);
    let _source = start(&["source", "workflow.toml"]);
    let _prover = start(&["dispatcher", "workflow.toml", "--stage", "prove"]);
    let refused = |ran: crate::support::Finished| {
        let ran = ran.failed(
            1,
            "blocks 2 to 2 are not emitted: stage \"verify\" has passed",
        );
        assert!(ran.stderr.contains("it is of other headers"), "{ran:?}");
    };
    refused(start(&["sequencer", "workflow.toml"]).end().1);
    let proofs = folder.path().join(".proofmill/attacked/proofs");
    assert_eq!(names(&proofs), [emitted(0, 0), emitted(1, 1)]);
    // Nor does one that takes over emit it.
    let other = ["sequencer", "workflow.toml", "--state", "other"];
    refused(start(&other).end().1);
    assert_eq!(
        names(&folder.path().join("other/proofs")),
        [] as [String; 0]
    );
}

#[test]
fn a_verifier_that_is_trusted_is_believed_and_check_says_so() {
    let server = NatsServer::start();
    let folder = prepare(&workflow("trust_verifiers = true"));
    let checked = run(folder.path(), ["check", "workflow.toml"]).succeeded();
    assert!(
        checked.stderr.contains("[trusted-verifiers]"),
        "{checked:?}"
    );
    let lie = lying_verifier();
    let _attacker = attack(&server, folder.path(), "verify", "bitcoin.verify", lie);
    let start = |args: &[&str]| Running::start(&mut on(&server, folder.path(), args));
    let _coordinator = start(&["coordinator", "workflow.toml"]);
    let _source = start(&["source", "workflow.toml"]);
    let _prover = start(&["dispatcher", "workflow.toml", "--stage", "prove"]);
    let _sequencer = start(&["sequencer", "workflow.toml"]);
    let proofs = folder.path().join(".proofmill/attacked/proofs");
    eventually("everything leaves", || {
        (names(&proofs).len() == BLOCKS).then_some(())
    });
    let (_, lie) = &files(&proofs)[2];
    let lie: Value = serde_json::from_slice(lie).expect("JSON");
    let bits = &lie["headers"].as_str().expect("headers")[144..152];
    assert_eq!(bits, hex::encode(LOWEST_DIFFICULTY.to_le_bytes()));
}

#[test]
fn a_workflow_that_nothing_verifies_is_warned_of() {
    let folder = prepare(&workflow("").replace("verify = true\n", ""));
    let checked = run(folder.path(), ["check", "workflow.toml"]).succeeded();
    assert!(
        checked.stderr.contains("[unverified-emission]"),
        "{checked:?}"
    );
    let text = workflow("").replace(
        "{ kind = \"native\", prover = \"bitcoin.verify\", params = { slots = 1 } }",
        "{ kind = \"process\", program = \"true\" }",
    );
    let text = text.replace("batch = 8\n", "");
    std::fs::write(folder.path().join("workflow.toml"), text).expect("written");
    let checked = run(folder.path(), ["check", "workflow.toml"]).failed(1, "[no-emission-check]");
    assert!(
        checked.stderr.contains("trust_verifiers = true"),
        "{checked:?}"
    );
}
