//! The `--devices` argument, and opening the devices it selects: CUDA cards, and ZKPUs behind NVMe.

use std::fmt;
use std::net::ToSocketAddrs;
use std::str::FromStr;
use std::sync::Arc;
use std::time::Duration;

use proofmill_accelerator::{Device, Error, Pool, cuda, cuda_cards, user_cubin_directory};
use proofmill_engine::{AcceleratorOptions, DeviceKind, DeviceOptions, OffloadRule};
use proofmill_telemetry::console_line;
use proofmill_zkpu::device::{ZkpuOptions, zkpu};
use proofmill_zkpu::host::{Address, HostOptions};

use crate::failure::Failure;
use crate::output;

/// Partitions that an engine keeps on a device at once: while the results of one are copied back, the device computes
/// the other.
const PARTITIONS_PER_DEVICE: usize = 2;
/// Keep alive timeout of a ZKPU: one that falls silent while it computes is noticed within half of it and the limit for a
/// command.
const ZKPU_KEEP_ALIVE: Duration = Duration::from_secs(10);

/// Value of `--devices`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Devices {
    /// Every card present, used only for operations that it finishes sooner than the processors.
    Auto,
    /// These devices, used for every operation they support. An empty list (`cpu`) means processors only.
    Named(Vec<DeviceName>),
}

/// A device beside the processors.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum DeviceName {
    /// A card, by its CUDA index.
    Cuda(usize),
    /// A ZKPU, by the address of its NVMe/TCP target or by its device file.
    Nvme(Address),
}

/// A device that was opened, or the reason why it cannot be used.
pub(crate) type OpenResult = Result<Box<dyn Device>, Error>;

/// An opened device and its name, such as `cuda:0`.
struct Opened {
    name: String,
    device: Box<dyn Device>,
}

// === impl Devices ===

impl Devices {
    /// Devices of an engine: those beside the processors, then the processors, which compute the products of up to
    /// `products` partitions at once.
    ///
    /// # Errors
    ///
    /// A device named on the command line cannot be used.
    pub(crate) fn for_engine(&self, products: usize) -> Result<Vec<DeviceOptions>, Failure> {
        let offload = match self {
            Self::Auto => OffloadRule::WhenFaster,
            Self::Named(_) => OffloadRule::Always,
        };
        let opened = self.open()?.into_iter().map(|opened| DeviceOptions {
            name: opened.name,
            kind: DeviceKind::Accelerator(AcceleratorOptions {
                device: Arc::from(opened.device),
                offload,
                partitions: PARTITIONS_PER_DEVICE,
            }),
        });
        Ok(opened.chain(DeviceOptions::processors(products)).collect())
    }

    /// Device for a single proof: one, or a pool if there are several. `None` means processors only.
    ///
    /// # Errors
    ///
    /// A device named on the command line cannot be used.
    pub(crate) fn for_proof(&self) -> Result<Option<Arc<dyn Device>>, Failure> {
        let mut opened = self.open()?;
        if opened.len() > 1 {
            let devices = opened.into_iter().map(|opened| opened.device).collect();
            return Ok(Some(Arc::new(Pool::new(devices).map_err(unusable)?)));
        }
        Ok(opened.pop().map(|opened| Arc::from(opened.device)))
    }

    /// The ZKPUs, each with its name, or the reason why it cannot be used.
    pub(crate) fn zkpus(&self) -> Vec<(String, OpenResult)> {
        let Self::Named(names) = self else {
            return Vec::new();
        };
        let zkpus = names
            .iter()
            .filter(|name| matches!(name, DeviceName::Nvme(_)));
        zkpus.map(|name| (name.to_string(), name.open())).collect()
    }

    fn open(&self) -> Result<Vec<Opened>, Failure> {
        let names = match self {
            Self::Named(names) => names.clone(),
            // Most machines have no card, so its absence is not reported.
            Self::Auto => (0..cuda_cards().unwrap_or(0))
                .map(DeviceName::Cuda)
                .collect(),
        };
        let mut opened = Vec::new();
        for name in names {
            match (name.open(), self) {
                (Ok(device), _) => opened.push(Opened {
                    name: name.to_string(),
                    device,
                }),
                (Err(error), Self::Named(_)) => return Err(unusable(error)),
                (Err(error), Self::Auto) => {
                    console_line(output::plain(&format!("card {name} is not used: {error}")))
                }
            }
        }
        Ok(opened)
    }
}

fn unusable(error: Error) -> Failure {
    Failure::new(format!("--devices: {error}"))
        .help("`proofmill doctor` says which devices there are, and why others are not used")
}

impl FromStr for Devices {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        match text {
            "auto" => return Ok(Self::Auto),
            "cpu" => return Ok(Self::Named(Vec::new())),
            _ => {}
        }
        let mut names = Vec::new();
        for text in text.split(',') {
            let name: DeviceName = text.parse()?;
            if names.contains(&name) {
                return Err(format!("{text} is named twice"));
            }
            names.push(name);
        }
        Ok(Self::Named(names))
    }
}

// === impl DeviceName ===

impl DeviceName {
    fn open(&self) -> Result<Box<dyn Device>, Error> {
        match self {
            Self::Cuda(number) => {
                let cubins = user_cubin_directory().ok_or_else(|| Error::NoDevice {
                    reason: "no place to keep compiled kernels in: set HOME or XDG_CACHE_HOME to \
                             an absolute path"
                        .into(),
                })?;
                Ok(Box::new(cuda(*number, &cubins)?))
            }
            Self::Nvme(address) => {
                let options = HostOptions {
                    keep_alive: ZKPU_KEEP_ALIVE,
                    ..HostOptions::new(address.clone())
                };
                Ok(Box::new(zkpu(ZkpuOptions::new(options))?))
            }
        }
    }
}

impl fmt::Display for DeviceName {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Cuda(number) => write!(f, "cuda:{number}"),
            Self::Nvme(address) => write!(f, "nvme:{address}"),
        }
    }
}

impl FromStr for DeviceName {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let parse = |at| address(at).map_err(|why| format!("{text:?}: {why}"));
        if let Some(at) = text.strip_prefix("nvme-plain:") {
            return parse(at).map(Self::Nvme);
        }
        if let Some(at) = text.strip_prefix("nvme:") {
            let address = parse(at)?;
            if matches!(&address, Address::Tcp(at) if !at.ip().is_loopback()) {
                return Err(format!(
                    "{text:?}: NVMe/TCP is not encrypted, and the scalars that go to the device tell the witness; on a \
                     network that is yours alone, write nvme-plain:{at}"
                ));
            }
            return Ok(Self::Nvme(address));
        }
        let number = text.strip_prefix("cuda:").and_then(|it| it.parse().ok());
        number.map(Self::Cuda).ok_or_else(|| {
            format!("{text:?}: expected auto, cpu, cards such as cuda:0, nvme:HOST:PORT or nvme:/dev/nvme0n1")
        })
    }
}

/// Parses where a ZKPU is: the address of an NVMe/TCP target, or the path of a device file.
pub(crate) fn address(text: &str) -> Result<Address, String> {
    if text.starts_with('/') {
        return Ok(Address::Passthrough(text.into()));
    }
    let mut found = text.to_socket_addrs().map_err(|error| {
        format!("{error}: expected HOST:PORT, such as 127.0.0.1:4420, or a device file such as /dev/nvme0n1")
    })?;
    let first = found.next().ok_or_else(|| "no such host".to_owned())?;
    Ok(Address::Tcp(first))
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::net::SocketAddr;

    #[test]
    fn devices_are_parsed() {
        let parse = |text: &str| text.parse::<Devices>();
        let named = |names: &[DeviceName]| Ok(Devices::Named(names.to_vec()));
        let nvme = DeviceName::Nvme(SocketAddr::from(([127, 0, 0, 1], 4420)).into());
        assert_eq!(parse("auto"), Ok(Devices::Auto));
        assert_eq!(parse("cpu"), named(&[]));
        assert_eq!(parse("cuda:0"), named(&[DeviceName::Cuda(0)]));
        let both = [DeviceName::Cuda(1), nvme];
        assert_eq!(parse("cuda:1,nvme:127.0.0.1:4420"), named(&both));
        assert_eq!(both[1].to_string(), "nvme:127.0.0.1:4420");
        let at = "nvme:[::1]:4420".parse::<DeviceName>().unwrap();
        assert_eq!(at.to_string(), "nvme:[::1]:4420");
        let file = "nvme:/dev/nvme0n1".parse::<DeviceName>().unwrap();
        assert_eq!(file.to_string(), "nvme:/dev/nvme0n1");
        for wrong in [
            "",
            "cuda",
            "cuda:",
            "cuda:-1",
            "cuda:0,",
            "cpu,cuda:0",
            "gpu",
            "nvme",
            "nvme:",
            "nvme:127.0.0.1",
            "nvme:127.0.0.1:x",
            "nvme:127.0.0.1:65536",
        ] {
            assert!(parse(wrong).unwrap_err().contains("expected"), "{wrong}");
        }
        assert!(parse("cuda:0,cuda:0").unwrap_err().contains("twice"));
        let beyond = parse("nvme:192.0.2.1:4420").unwrap_err();
        assert!(beyond.contains("nvme-plain:192.0.2.1:4420"), "{beyond}");
        assert!(parse("nvme-plain:192.0.2.1:4420").is_ok());
        let twice = "nvme:127.0.0.1:1,nvme:127.0.0.1:1";
        assert!(parse(twice).unwrap_err().contains("twice"));
    }

    #[test]
    fn processors_are_always_among_an_engines_devices() {
        for devices in [Devices::Auto, Devices::Named(Vec::new())] {
            let devices = devices.for_engine(1).unwrap();
            let last = devices.last().unwrap();
            assert!(matches!(
                last.kind,
                DeviceKind::Processors { threads: None }
            ));
        }
    }
}
