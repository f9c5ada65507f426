//! The commands for ZKPU devices.

use std::net::SocketAddr;
use std::path::PathBuf;

use clap::{Args, Subcommand};
use proofmill_zkpu::host::Address;

use super::engine::size;
use crate::devices::address;

const EXAMPLES: &str = "\
Examples, with a model of the device in this machine's memory:
  proofmill zkpu serve &
  proofmill zkpu identify 127.0.0.1:4420
  proofmill zkpu bench 127.0.0.1:4420
  proofmill zkpu conform 127.0.0.1:4420
  sudo proofmill zkpu bench /dev/nvme0n1
  proofmill prove circuit.zkey witness.wtns proof.json public.json --devices nvme:127.0.0.1:4420

docs/zkpu.md is the protocol: NVMe over TCP, with commands that multiply points.";

const SERVE_EXAMPLES: &str = "\
Examples:
  proofmill zkpu serve
  proofmill zkpu serve --listen 127.0.0.1:0 --memory 4GiB --adders 1

A Linux host connects with its own driver:
  nvme connect -t tcp -a 127.0.0.1 -s 4420 -n SUBSYSTEM

The model computes with this machine's processors, gives the circuit's results, and counts the
cycles that the circuit would take. Its memory is taken as it is written.

With --rtl the circuit itself is simulated, and its firmware answers. A simulator fills its memory
as it starts, so a small one starts sooner. From the repository, once `make -C hardware/zkpu
soc-real-sim` has built it:
  proofmill zkpu serve --rtl --memory 16MiB";

const BENCH_EXAMPLES: &str = "\
Examples:
  proofmill zkpu bench 127.0.0.1:4420
  proofmill zkpu bench 127.0.0.1:4420 --log-n 14,16 --rounds 10 --json

Every result is compared with that of this machine's processors. The device must not be in use by
another host.";

const CONFORM_EXAMPLES: &str = "\
Examples:
  proofmill zkpu conform 127.0.0.1:4420
  proofmill zkpu conform 127.0.0.1:4420 --max-log-n 16
  proofmill zkpu conform 127.0.0.1:4420 --json | jq '.cases[] | select(.passed | not)'

First malformed commands are sent, and each must be refused with the status that docs/zkpu.md has
for it. Then products of all kinds are compared with those of this machine's processors: equal,
zero and skewed scalars, equal points and infinity, many jobs in flight, cancelled jobs, and
products of 2^5 up to 2^N points. What the device's memory holds is overwritten, and the device
must not be in use by another host.

Exit codes: 0 all cases passed; 1 a case failed, or the device cannot be reached or is lost; 2 the
command line is wrong.";

/// `proofmill zkpu`
#[derive(Debug, Subcommand)]
#[command(after_help = EXAMPLES)]
pub(crate) enum Zkpu {
    /// Serve a model of the device, or the simulated circuit, over NVMe/TCP.
    Serve(Serve),
    /// Show what a device is, what it can do and what it has done.
    Identify(Identify),
    /// Measure products over BLS12-377 G1 on a device, and compare each with the processors'.
    Bench(Bench),
    /// Check that a device of any maker keeps to the protocol and multiplies correctly.
    Conform(Conform),
}

/// `proofmill zkpu serve`
#[derive(Debug, Args)]
#[command(after_help = SERVE_EXAMPLES)]
pub(crate) struct Serve {
    /// The address to listen on; port 0 takes a free one.
    #[arg(long, value_name = "ADDRESS", default_value = "127.0.0.1:4420")]
    pub(crate) listen: SocketAddr,
    /// Listen on an address that other machines reach. There is no authentication and no encryption: whoever reaches
    /// the port can use the device.
    #[arg(long)]
    pub(crate) allow_remote: bool,
    /// Memory of the device, a multiple of 4 KiB.
    #[arg(long, value_name = "SIZE", default_value = "1GiB", value_parser = memory)]
    pub(crate) memory: u64,
    /// Adders of the modelled circuit.
    #[arg(long, value_name = "N", default_value_t = 2, value_parser = clap::value_parser!(u8).range(1..=2),
          conflicts_with = "rtl")]
    pub(crate) adders: u8,
    /// Simulate the circuit with this program instead of a model of it.
    #[arg(long, value_name = "SIMULATOR", num_args = 0..=1,
          default_missing_value = "hardware/zkpu/build/soc-two/zkpu_sim")]
    pub(crate) rtl: Option<PathBuf>,
    /// The firmware of the simulated circuit [default: soc/firmware.hex beside the simulator's folder].
    #[arg(long, value_name = "IMAGE", requires = "rtl")]
    pub(crate) firmware: Option<PathBuf>,
}

/// `proofmill zkpu identify`
#[derive(Debug, Args)]
pub(crate) struct Identify {
    #[command(flatten)]
    pub(crate) device: DeviceAddress,
    /// Print one JSON object.
    #[arg(long)]
    pub(crate) json: bool,
}

/// `proofmill zkpu bench`
#[derive(Debug, Args)]
#[command(after_help = BENCH_EXAMPLES)]
pub(crate) struct Bench {
    #[command(flatten)]
    pub(crate) device: DeviceAddress,
    /// Numbers of points, as powers of two.
    #[arg(long, value_name = "LOG2", value_delimiter = ',', default_value = "10,12,14",
          value_parser = clap::value_parser!(u8).range(0..=24))]
    pub(crate) log_n: Vec<u8>,
    /// Products of each number of points.
    #[arg(long, value_name = "N", default_value_t = 5, value_parser = clap::value_parser!(u32).range(1..=1000))]
    pub(crate) rounds: u32,
    /// Print one JSON object on the last line.
    #[arg(long)]
    pub(crate) json: bool,
}

/// `proofmill zkpu conform`
#[derive(Debug, Args)]
#[command(after_help = CONFORM_EXAMPLES)]
pub(crate) struct Conform {
    #[command(flatten)]
    pub(crate) device: DeviceAddress,
    /// The largest products have 2^N points.
    #[arg(long, value_name = "N", default_value_t = 12, value_parser = clap::value_parser!(u8).range(5..=20))]
    pub(crate) max_log_n: u8,
    /// Print one JSON object, with each case, at the end.
    #[arg(long)]
    pub(crate) json: bool,
}

/// The address of a device.
#[derive(Debug, Args)]
pub(crate) struct DeviceAddress {
    /// The device's NVMe/TCP address, HOST:PORT, or its device file on this Linux machine, such as /dev/nvme0n1.
    #[arg(value_name = "ADDRESS", value_parser = address)]
    pub(crate) address: Address,
    /// The name of the subsystem [default: the first that the discovery service at the address has].
    #[arg(long, value_name = "NQN")]
    pub(crate) subsystem: Option<String>,
}

fn memory(text: &str) -> Result<u64, String> {
    let bytes = size(text)?;
    match bytes % 4096 == 0 && (4096..=1 << 40).contains(&bytes) {
        true => Ok(bytes),
        false => Err("expected a multiple of 4 KiB up to 1 TiB".to_owned()),
    }
}
