//! Engines with a ZKPU over NVMe/TCP, which is pulled at random moments: every proof is valid, and the device is fenced
//! with a reason, or connected again.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use ark_std::rand::{Rng, SeedableRng, rngs::StdRng};
use proofmill_engine::{
    AcceleratorOptions, DeviceKind, DeviceOptions, DeviceStatus, JobState, OffloadRule, Options,
};
use proofmill_groth16::Curve;
use proofmill_shutdown::Level;
use proofmill_zkpu::device::{ZkpuOptions, zkpu};
use proofmill_zkpu::host::HostOptions;

use super::support::{Chain, Running, Source, options, submission};
use super::zkpu_target::{Server, Wire, Wrong, model};

const MEMORY: u64 = 1 << 26;
/// Partitions of the job during which the device is pulled.
const PARTITIONS: u64 = 6;

const CIRCUIT: Chain = Chain {
    curve: Curve::Bls12_377,
    length: 90,
    source: Source::Zkey,
};

/// An engine whose accelerator is the ZKPU behind a wire.
async fn engine(wire: &Wire) -> Running {
    engine_with(super::zkpu_target::options(wire.address)).await
}

/// The same with these settings of the connection.
async fn engine_with(connection: HostOptions) -> Running {
    let connected = tokio::task::spawn_blocking(|| zkpu(ZkpuOptions::new(connection))).await;
    let device = DeviceOptions {
        name: "nvme".to_owned(),
        kind: DeviceKind::Accelerator(AcceleratorOptions {
            device: Arc::new(connected.unwrap().unwrap()),
            offload: OffloadRule::Always,
            partitions: 2,
        }),
    };
    let default = options();
    let options = Options {
        devices: [device].into_iter().chain(default.devices).collect(),
        partition_workers: 3,
        ..options()
    };
    Running::with(options, &[CIRCUIT]).await
}

async fn device(running: &Running) -> DeviceStatus {
    let mut status = running.handle.status().await.unwrap();
    status.devices.swap_remove(0)
}

/// Proves while `pull` acts at a random moment; all proofs must be valid. A device that was idle is asked once more.
async fn prove_while(running: &Running, request: &str, pull: impl FnOnce()) {
    let of_request: u64 = request.bytes().map(u64::from).sum();
    let seed = u64::from(std::process::id()) << 16 | of_request;
    let wait = Duration::from_millis(StdRng::seed_from_u64(seed).gen_range(0..1500));
    eprintln!("{request}: pulled after {wait:?}");
    let partitions = (0..PARTITIONS)
        .map(|seed| CIRCUIT.partition(seed))
        .collect();
    let job = running
        .submit(submission("client", request, partitions))
        .await;
    tokio::time::sleep(wait).await;
    pull();
    let result = running.result(job).await;
    assert_eq!(result.state, JobState::Done);
    for (seed, proof) in (0..).zip(result.proofs.iter()) {
        CIRCUIT.check(proof, seed);
    }
    running
        .prove(CIRCUIT, &format!("after-{request}"), 99)
        .await;
}

/// The reason why the device is fenced; the processors prove without it.
async fn fenced(running: Running) -> String {
    let nvme = device(&running).await;
    let why = nvme.broken.expect("the device is fenced");
    running.prove(CIRCUIT, "processors", 100).await;
    assert_eq!(device(&running).await.products, nvme.products);
    running.stop(Level::Drain).await;
    why
}

#[tokio::test(flavor = "multi_thread")]
async fn products_are_computed_by_a_zkpu() {
    let server = Server::start(model(MEMORY, 1), 0);
    let wire = Wire::new(server.address);
    let running = engine(&wire).await;
    for seed in 0..3 {
        running.prove(CIRCUIT, &seed.to_string(), seed).await;
    }
    let nvme = device(&running).await;
    assert_eq!((nvme.products, nvme.failures, nvme.broken), (3, 0, None));
    assert!(nvme.busy_us > 0);
    running.stop(Level::Drain).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_zkpu_whose_link_is_reset_is_connected_again() {
    let server = Server::start(model(MEMORY, 1), 0);
    let wire = Wire::new(server.address);
    let running = engine(&wire).await;
    for request in ["first", "second"] {
        prove_while(&running, request, || wire.cut_after(1)).await;
    }
    assert!(wire.cuts() > 0);
    let nvme = device(&running).await;
    assert_eq!((nvme.products, nvme.broken), (2 * PARTITIONS + 2, None));
    running.stop(Level::Drain).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_zkpu_that_is_killed_is_fenced() {
    let server = Server::start(model(MEMORY, 1), 0);
    let wire = Wire::new(server.address);
    let running = engine(&wire).await;
    prove_while(&running, "killed", || server.stop()).await;
    let why = fenced(running).await;
    assert!(why.contains("attempts failed"), "{why}");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_zkpu_that_falls_silent_is_fenced() {
    let server = Server::start(model(MEMORY, 1), 0);
    let wire = Wire::new(server.address);
    // Limits are short, so that silence is noticed soon.
    let mut connection = super::zkpu_target::options(wire.address);
    connection.keep_alive = Duration::from_secs(4);
    connection.connect_timeout = Duration::from_secs(5);
    connection.command_timeout = Duration::from_secs(5);
    let running = engine_with(connection).await;
    prove_while(&running, "silent", || wire.silence()).await;
    let why = fenced(running).await;
    // By a command without an answer, or by connections that are none.
    assert!(
        why.contains("no answer") || why.contains("attempts failed"),
        "{why}"
    );
}

#[tokio::test(flavor = "multi_thread")]
async fn a_zkpu_that_computes_wrongly_is_fenced() {
    let is_wrong = Arc::new(AtomicBool::new(false));
    let server = Server::start(Wrong::new(MEMORY, &is_wrong), 0);
    let wire = Wire::new(server.address);
    let running = engine(&wire).await;
    running.prove(CIRCUIT, "right", 7).await;
    prove_while(&running, "wrong", || is_wrong.store(true, Ordering::SeqCst)).await;
    let why = fenced(running).await;
    assert!(why.contains("nvme: its results are wrong"), "{why}");
}
