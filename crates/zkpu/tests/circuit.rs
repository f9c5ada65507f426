//! The circuit in RTL behind the target: what the driver's tests on the functional model do not see. `make zkpu-rtl`.

mod common;

use std::path::PathBuf;
use std::process::Command as Program;
use std::time::{Duration, Instant};

use ark_bls12_377::{Fr, G1Projective};
use common::{Server, circuit, options, points, product, scalars};
use proofmill_accelerator::{Device, DeviceField, DeviceGroup, DeviceJob};
use proofmill_zkpu::device::{ZkpuOptions, zkpu};
use proofmill_zkpu::host::Zkpu;
use proofmill_zkpu::nvme::zkpu::ZkpuCapability;

const MEMORY: u64 = 1 << 24;

fn build() -> PathBuf {
    common::circuit_build()
        .expect("ZKPU_BUILD, the folder with the simulator: `make zkpu-rtl` sets it")
}

fn signal(process: u32, signal: &str) {
    let sent = Program::new("kill")
        .args([signal, &process.to_string()])
        .status();
    assert!(sent.unwrap().success());
}

#[test]
#[ignore = "needs the simulator: make zkpu-rtl"]
fn the_firmware_answers() {
    let server = Server::of_circuit(circuit(&build(), MEMORY));
    let driver = Zkpu::connect(&options(server.address)).unwrap();
    assert!(!driver.capability().has(ZkpuCapability::FUNCTIONAL_MODEL));
    assert_eq!(driver.capability().memory_bytes, MEMORY);
    assert_eq!(driver.identity().commands_max, 32);
    assert!(driver.health().unwrap().counters.commands > 0);
    drop(driver);
    // The association of a host that is gone ends, and the next one finds the same circuit.
    let again = Zkpu::connect(&options(server.address)).unwrap();
    assert!(again.health().unwrap().counters.resets > 0);
}

/// A simulator that ends, or hangs, while products run: each ends with an error, and soon.
fn fails(signal_name: &str) {
    let circuit = circuit(&build(), MEMORY);
    let process = circuit.process_id();
    let server = Server::of_circuit(circuit);
    let device = zkpu(ZkpuOptions::new(options(server.address))).unwrap();
    let points = points(64, 1);
    let values = scalars(64, 2);
    let bases = device
        .load_bases(G1Projective::points(points.clone()), 0)
        .unwrap();
    let job = || DeviceJob::Msm {
        bases,
        scalars: Fr::scalars(values.clone()),
    };
    let sum: G1Projective = device
        .submit(job())
        .unwrap()
        .wait()
        .unwrap()
        .into_sum()
        .unwrap();
    assert_eq!(sum, product(&points, &values));
    let tickets: Vec<_> = (0..4).map(|_| device.submit(job()).unwrap()).collect();
    signal(process, signal_name);
    let began = Instant::now();
    let failed = tickets
        .into_iter()
        .map(|ticket| ticket.wait())
        .filter(Result::is_err)
        .count();
    assert!(failed >= 3, "the first may have ended before the signal");
    assert!(began.elapsed() < Duration::from_secs(60));
    assert!(device.failure().is_some());
    // A new host is told at once that there is no circuit.
    drop(device);
    assert!(Zkpu::connect(&options(server.address)).is_err());
    if signal_name == "-STOP" {
        // It was killed, not left stopped: nothing has this number any more.
        let alive = Program::new("kill")
            .args(["-0", &process.to_string()])
            .status()
            .unwrap();
        assert!(!alive.success());
    }
}

#[test]
#[ignore = "needs the simulator: make zkpu-rtl"]
fn a_simulator_that_ends_fails_its_products() {
    fails("-KILL");
}

#[test]
#[ignore = "needs the simulator: make zkpu-rtl"]
fn a_simulator_that_hangs_fails_its_products() {
    fails("-STOP");
}
