//! An engine whose products over BLS12-377 a ZKPU computes: it proves, and goes on when the device is pulled.

use std::io::BufWriter;
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::time::Duration;

use ark_bls12_377::Fr;
use ark_ff::One;
use proofmill_r1cs::R1cs;
use proofmill_r1cs::iden3::{LabelledR1cs, write_r1cs, write_wtns};
use rand::rngs::StdRng;
use rand::{Rng, SeedableRng};
use rustix::process::Signal;
use serde_json::Value;

use crate::support::{Running, eventually, folder, proofmill, run};
use crate::zkpu_target::{Server, Wire, Wrong};

/// Constraints of the circuit.
const LENGTH: usize = 300;
/// Proofs that are made while a device is pulled.
const PROOFS: usize = 4;

/// Writes a circuit over BLS12-377, a key of it, its verifying key and a witness.
fn circuit(folder: &Path) {
    let one = Fr::one();
    let rows = [0, 1, 2].map(|shift| (0..LENGTH).map(|i| vec![(one, 1 + i + shift)]).collect());
    let system = R1cs::from_rows(3, LENGTH, rows).expect("a system");
    let mut z = vec![one, Fr::from(3u64), Fr::from(5u64)];
    for i in 0..LENGTH {
        z.push(z[i + 1] * z[i + 2]);
    }
    let file = |name: &str| BufWriter::new(std::fs::File::create(folder.join(name)).expect("made"));
    let plain = LabelledR1cs::plain(system).expect("labels");
    write_r1cs(file("chain.r1cs"), &plain).expect("written");
    write_wtns(file("chain.wtns"), &z).expect("written");
    std::fs::create_dir(folder.join("keys")).expect("made");
    let made = run(
        folder,
        ["setup", "chain.r1cs", "-o", "keys/chain.zkey", "--json"],
    );
    assert_eq!(made.succeeded().json()["curve"], "bls12-377");
    run(folder, ["zkey", "export-vk", "keys/chain.zkey", "vk.json"]).succeeded();
}

/// An engine with this device.
fn engine(folder: &Path, address: &str) -> Running {
    let devices = format!("nvme:{address}");
    let args = ["engine", "serve", "--circuits", "keys", "--budget", "1GiB"];
    let engine = Running::start(proofmill(folder).args(args).args([
        "--devices",
        &devices,
        "--preload",
        "chain",
    ]));
    engine.line("the engine answers on");
    engine
}

/// Has the engine prove, and verifies the proof.
fn prove(folder: &Path) {
    static MADE: AtomicUsize = AtomicUsize::new(0);
    let number = MADE.fetch_add(1, Ordering::SeqCst);
    let (proof, public) = (
        format!("{number}.proof.json"),
        format!("{number}.public.json"),
    );
    let prove = ["engine", "prove", "chain", "chain.wtns", "--vk", "vk.json"];
    let to = ["-o", &proof, "--public", &public];
    run(folder, prove.iter().chain(&to)).succeeded();
    run(folder, ["verify", "--vk", "vk.json", &proof, &public]).succeeded();
}

fn devices(folder: &Path) -> Vec<Value> {
    let status = run(folder, ["engine", "status", "--json"]).succeeded();
    let devices = status.json()["devices"].as_array().cloned();
    devices.expect("devices")
}

/// Waits until the device is fenced, and checks that status and doctor show the reason.
fn assert_fenced(folder: &Path, reason: &str) {
    let why = eventually("the device is fenced", || {
        let why = devices(folder)[0]["broken"].as_str().map(str::to_owned);
        why.or_else(|| {
            // A device that was pulled while it was idle is noticed by the next proof.
            prove(folder);
            None
        })
    });
    assert!(why.contains(reason), "{why}");
    let status = run(folder, ["engine", "status"]).succeeded().stdout;
    assert!(
        status.contains("broken") && status.contains(reason),
        "{status}"
    );
    let engine = "unix:.proofmill/engine/engine.sock";
    let doctor = run(folder, ["doctor", "--quick", "--engine", engine]).succeeded();
    let fenced = doctor.stdout.lines().find(|line| line.contains("FENCED"));
    let fenced = fenced.unwrap_or_else(|| panic!("{doctor:?}"));
    assert!(
        fenced.contains("nvme:") && fenced.contains(reason),
        "{fenced}"
    );
    // The processors go on.
    prove(folder);
}

/// A model of a ZKPU as another process, and its address.
fn model() -> (tempfile::TempDir, Running, String) {
    let folder = folder();
    let serve = [
        "zkpu",
        "serve",
        "--listen",
        "127.0.0.1:0",
        "--memory",
        "64MiB",
    ];
    let served = Running::start(proofmill(folder.path()).args(serve));
    let line = served.line("is served over NVMe/TCP on");
    let address = line.split_once("NVMe/TCP on ").expect("an address").1;
    let address = address.split_once(',').expect("more").0.to_owned();
    (folder, served, address)
}

/// Makes proofs while `pull` acts at a random moment.
fn prove_while(folder: &Path, pull: impl FnOnce()) {
    let seed: u64 = rand::random();
    let mut random = StdRng::seed_from_u64(seed);
    let wait = Duration::from_millis(random.random_range(0..2000));
    eprintln!("seed {seed}: pulled after {wait:?}");
    std::thread::scope(|scope| {
        let proving = scope.spawn(|| (0..PROOFS).for_each(|_| prove(folder)));
        std::thread::sleep(wait);
        pull();
        proving.join().expect("every proof is valid");
    });
}

#[test]
fn an_engine_proves_with_a_zkpu_and_other_curves_without() {
    let folder = folder();
    let here = folder.path();
    circuit(here);
    let from = crate::support::repository("crates/groth16/tests/fixtures/bn254");
    std::fs::copy(from.join("circuit.zkey"), here.join("keys/other.zkey")).expect("copied");
    std::fs::copy(from.join("witness.wtns"), here.join("other.wtns")).expect("copied");
    let (_model, served, address) = model();
    let engine = engine(here, &address);
    (0..2).for_each(|_| prove(here));
    let other = ["engine", "prove", "other", "other.wtns", "-o", "other.json"];
    run(here, other).succeeded();
    let devices = devices(here);
    assert_eq!(devices[0]["name"], format!("nvme:{address}"));
    assert_eq!(devices[0]["products"], 2, "{devices:?}");
    assert_eq!(devices[1]["products"], 1, "{devices:?}");
    assert!(devices.iter().all(|device| device["broken"].is_null()));
    engine.signal(Signal::TERM);
    engine.end().1.succeeded();

    // Two proofs of four products in the first group.
    let identify = ["zkpu", "identify", &address, "--json"];
    let health = run(here, identify).succeeded().json()["health"].clone();
    assert_eq!(health["jobs"]["completed"], 8, "{health}");
    // One proof without an engine, and a look at the device.
    let device = format!("nvme:{address}");
    let files = ["keys/chain.zkey", "chain.wtns", "p.json", "u.json"];
    let alone = ["prove", "--engine", "off", "--devices", &device];
    run(here, alone.iter().chain(&files)).succeeded();
    run(here, ["verify", "--vk", "vk.json", "p.json", "u.json"]).succeeded();
    let health = run(here, identify).succeeded().json()["health"].clone();
    assert_eq!(health["jobs"]["completed"], 12, "{health}");
    let report = run(here, ["doctor", "--devices", &device, "--json"]).succeeded();
    let report = report.json();
    let found = report["devices"].as_array().and_then(|all| all.last());
    let found = found.expect("devices");
    assert_eq!(
        (&found["works"], &found["groups"][0]),
        (&true.into(), &"bls12_377_g1".into())
    );
    served.signal(Signal::TERM);
    served.end();
    run(here, ["engine", "serve", "--devices", &device]).failed(1, "--devices: no device");
    let doctor = run(here, ["doctor", "--quick", "--devices", &device]).succeeded();
    assert!(
        doctor.stdout.contains(&format!("device    {device}")),
        "{doctor:?}"
    );
}

#[test]
fn a_target_that_is_killed_costs_no_proof() {
    let folder = folder();
    let here = folder.path();
    circuit(here);
    let (_model, served, address) = model();
    let _engine = engine(here, &address);
    prove_while(here, || drop(served.kill()));
    assert_fenced(here, "attempts failed");
}

#[test]
fn a_target_that_falls_silent_costs_no_proof() {
    let folder = folder();
    let here = folder.path();
    circuit(here);
    let (_model, served, address) = model();
    let _engine = engine(here, &address);
    prove_while(here, || served.signal(Signal::STOP));
    // A command has none in its limit, or a job has none after its own.
    assert_fenced(here, "no answer");
}

/// The link is cut again and again: the device is connected again, and nothing is fenced.
#[test]
fn a_link_that_is_reset_costs_neither_proof_nor_device() {
    let folder = folder();
    let here = folder.path();
    circuit(here);
    let (_model, _served, address) = model();
    let wire = Wire::new(address.parse().expect("an address"));
    let _engine = engine(here, &wire.address.to_string());
    for _ in 0..2 {
        prove_while(here, || wire.cut());
    }
    prove(here);
    let devices = devices(here);
    assert!(devices[0]["broken"].is_null(), "{devices:?}");
    assert_eq!(devices[0]["products"], 2 * PROOFS + 1, "{devices:?}");
}

/// Results that are points of the group, and wrong from some moment on: only the proof shows it.
#[test]
fn a_device_that_computes_wrongly_is_fenced_and_costs_no_proof() {
    let folder = folder();
    let here = folder.path();
    circuit(here);
    let is_wrong = Arc::new(AtomicBool::new(false));
    let served = Server::start(Wrong::new(1 << 26, &is_wrong), 0);
    let _engine = engine(here, &served.address.to_string());
    prove(here);
    assert!(devices(here)[0]["broken"].is_null());
    prove_while(here, || is_wrong.store(true, Ordering::SeqCst));
    assert_fenced(here, "results are wrong");
}
