//! The library's cases, on the model and on devices that break a rule each.

use std::time::{Duration, Instant};

use proofmill_zkpu::conformance::{products, protocol};
use proofmill_zkpu::controller::{
    CoreJob, CoreState, DeviceDescription, DeviceError, FunctionalModel, MsmDevice, Stop,
};
use proofmill_zkpu::device::{ZkpuOptions, zkpu};
use proofmill_zkpu::host::Zkpu;

use crate::common::{MODEL_MEMORY as MEMORY, Server, circuit_build, model, options};

#[test]
fn the_device_keeps_to_the_protocol() {
    let server = Server::under_test();
    let driver = Zkpu::connect(&options(server.address)).unwrap();
    let cases = protocol(driver.capability());
    assert!(cases.len() > 60, "{} cases", cases.len());
    for case in cases {
        case.run(&driver)
            .unwrap_or_else(|why| panic!("{}: {why}", case.name()));
        assert_eq!(driver.failure(), None, "{}", case.name());
    }
    let health = driver.health().unwrap();
    assert_eq!(health.jobs_live, 0);
    assert!(!health.is_fenced);
}

/// Up to 2^12, on the circuit to 2^8; `make zkpu-conform` goes to 2^16.
#[test]
fn the_device_multiplies_correctly() {
    let server = Server::under_test();
    let device = zkpu(ZkpuOptions::new(options(server.address))).unwrap();
    for case in products(if circuit_build().is_some() { 8 } else { 12 }) {
        case.run(&device)
            .unwrap_or_else(|why| panic!("{}: {why}", case.name()));
    }
}

/// The whole suite with products of up to 2^16 points, which takes minutes. The time of each case is shown.
#[test]
#[ignore = "slow: `make zkpu-conform`"]
fn the_model_multiplies_correctly_up_to_2_16() {
    let server = Server::start(model(MEMORY, 1), 0);
    let device = zkpu(ZkpuOptions::new(options(server.address))).unwrap();
    let cases = products(16);
    let began = Instant::now();
    for case in &cases {
        let at = Instant::now();
        case.run(&device)
            .unwrap_or_else(|why| panic!("{}: {why}", case.name()));
        println!(
            "{:8.0} ms  {}",
            at.elapsed().as_secs_f64() * 1e3,
            case.name()
        );
    }
    println!("{} cases in {:.1?}", cases.len(), began.elapsed());
}

/// A model with one fault.
struct Faulty {
    model: FunctionalModel,
    description: DeviceDescription,
    loses_writes_at: Option<u64>,
}

impl MsmDevice for Faulty {
    fn description(&self) -> &DeviceDescription {
        &self.description
    }

    fn cycles(&self) -> u64 {
        self.model.cycles()
    }

    fn read(&self, first: u64, to: &mut [u8]) -> Result<(), DeviceError> {
        self.model.read(first, to)
    }

    fn write(&mut self, first: u64, from: &[u8]) -> Result<(), DeviceError> {
        match self.loses_writes_at {
            Some(at) if first >= at => Ok(()),
            _ => self.model.write(first, from),
        }
    }

    fn fill(&mut self, first: u64, length: u64) -> Result<(), DeviceError> {
        self.model.fill(first, length)
    }

    fn start(&mut self, job: CoreJob) {
        self.model.start(job);
    }

    fn poll(&mut self) -> CoreState {
        self.model.poll()
    }

    fn stop(&mut self) -> Stop {
        self.model.stop()
    }
}

/// The names of the cases that fail.
fn failing(change: impl FnOnce(&mut Faulty)) -> Vec<String> {
    let model = model(MEMORY, 1);
    let mut faulty = Faulty {
        description: model.description().clone(),
        model,
        loses_writes_at: None,
    };
    change(&mut faulty);
    let server = Server::start(faulty, 0);
    let mut options = options(server.address);
    options.command_timeout = Duration::from_secs(30);
    let driver = Zkpu::connect(&options).unwrap();
    let cases = protocol(driver.capability()).into_iter();
    let failing = cases.filter(|case| case.run(&driver).is_err());
    failing.map(|case| case.name().to_owned()).collect()
}

#[test]
fn a_device_that_loses_writes_is_found() {
    let failing = failing(|device| device.loses_writes_at = Some(MEMORY - 512));
    assert_eq!(failing, ["the last block keeps what is written"]);
}

/// A device whose memory ends before it says so: the address that it must refuse is one that the model refuses with
/// another status.
#[test]
fn a_device_that_claims_too_much_memory_is_found() {
    let failing = failing(|device| device.description.memory_bytes += 4096);
    assert!(
        failing.contains(&"the last block keeps what is written".to_owned()),
        "{failing:?}"
    );
}
