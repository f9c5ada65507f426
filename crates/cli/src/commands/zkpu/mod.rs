//! `proofmill zkpu`: a device behind NVMe that multiplies points, and a model of it.

mod bench;
mod conform;
mod identify;
mod serve;

use proofmill_zkpu::host::{HostOptions, Zkpu as Driver};

use crate::args::zkpu::{DeviceAddress, Zkpu};
use crate::failure::Failure;

pub(crate) async fn run(command: Zkpu) -> Result<(), Failure> {
    match command {
        Zkpu::Serve(args) => serve::run(&args).await,
        Zkpu::Identify(args) => blocking(move || identify::run(&args)).await,
        Zkpu::Bench(args) => blocking(move || bench::run(&args)).await,
        Zkpu::Conform(args) => blocking(move || conform::run(&args)).await,
    }
}

/// Runs what waits for a device on a thread that may block.
async fn blocking<T: Send + 'static>(
    run: impl FnOnce() -> Result<T, Failure> + Send + 'static,
) -> Result<T, Failure> {
    let ended = tokio::task::spawn_blocking(run).await;
    ended.map_err(|error| Failure::new(error.to_string()))?
}

fn host_options(device: &DeviceAddress) -> HostOptions {
    HostOptions {
        subsystem: device.subsystem.clone(),
        ..HostOptions::new(device.address.clone())
    }
}

fn connect(device: &DeviceAddress) -> Result<Driver, Failure> {
    Driver::connect(&host_options(device)).map_err(|error| {
        let address = &device.address;
        Failure::new(format!(
            "the device at {address}: {}",
            Failure::of(&error).message()
        ))
        .help("`proofmill zkpu serve` serves a model of a device; one host at a time uses it")
    })
}
