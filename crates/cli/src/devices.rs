//! The `--devices` argument, and opening the CUDA cards it selects.

use std::str::FromStr;
use std::sync::Arc;

use proofmill_accelerator::{Device, Error, Pool, cuda, cuda_cards, user_cubin_directory};
use proofmill_engine::{AcceleratorOptions, DeviceKind, DeviceOptions, OffloadRule};
use proofmill_telemetry::console_line;

use crate::failure::Failure;
use crate::output;

/// Partitions that an engine keeps on a card at once: while the results of one are copied back, the card computes the
/// other.
const PARTITIONS_PER_CARD: usize = 2;

/// Value of `--devices`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Devices {
    /// Every card present, used only for operations that it finishes sooner than the processors.
    Auto,
    /// These cards by CUDA index, used for every operation they support. An empty list (`cpu`) means processors only.
    Cards(Vec<usize>),
}

/// An opened card and its name, such as `cuda:0`.
struct Card {
    name: String,
    device: Box<dyn Device>,
}

// === impl Devices ===

impl Devices {
    /// Devices of an engine: the cards, then the processors, which compute the products of up to `products` partitions
    /// at once.
    ///
    /// # Errors
    ///
    /// A card named on the command line cannot be used.
    pub(crate) fn for_engine(&self, products: usize) -> Result<Vec<DeviceOptions>, Failure> {
        let offload = match self {
            Self::Auto => OffloadRule::WhenFaster,
            Self::Cards(_) => OffloadRule::Always,
        };
        let cards = self.open()?.into_iter().map(|card| DeviceOptions {
            name: card.name,
            kind: DeviceKind::Accelerator(AcceleratorOptions {
                device: Arc::from(card.device),
                offload,
                partitions: PARTITIONS_PER_CARD,
            }),
        });
        Ok(cards.chain(DeviceOptions::processors(products)).collect())
    }

    /// Device for a single proof: a card, or a pool of the cards if there are several. `None` means processors only.
    ///
    /// # Errors
    ///
    /// A card named on the command line cannot be used.
    pub(crate) fn for_proof(&self) -> Result<Option<Arc<dyn Device>>, Failure> {
        let mut cards = self.open()?;
        if cards.len() > 1 {
            let devices = cards.into_iter().map(|card| card.device).collect();
            return Ok(Some(Arc::new(Pool::new(devices).map_err(unusable)?)));
        }
        Ok(cards.pop().map(|card| Arc::from(card.device)))
    }

    fn open(&self) -> Result<Vec<Card>, Failure> {
        let numbers = match self {
            Self::Cards(cards) => cards.clone(),
            // Most machines have no card, so its absence is not reported.
            Self::Auto => (0..cuda_cards().unwrap_or(0)).collect(),
        };
        if numbers.is_empty() {
            return Ok(Vec::new());
        }
        let cubins = user_cubin_directory().ok_or_else(|| {
            Failure::new("no place to keep compiled kernels in")
                .help("set HOME or XDG_CACHE_HOME to an absolute path, or give --devices cpu")
        })?;
        let mut open = Vec::new();
        for number in numbers {
            match (cuda(number, &cubins), self) {
                (Ok(device), _) => open.push(Card {
                    name: format!("cuda:{number}"),
                    device: Box::new(device),
                }),
                (Err(error), Self::Cards(_)) => return Err(unusable(error)),
                (Err(error), Self::Auto) => console_line(output::plain(&format!(
                    "card cuda:{number} is not used: {error}"
                ))),
            }
        }
        Ok(open)
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
            "cpu" => return Ok(Self::Cards(Vec::new())),
            _ => {}
        }
        let mut cards = Vec::new();
        for name in text.split(',') {
            let number = name.strip_prefix("cuda:").and_then(|it| it.parse().ok());
            let number = number.ok_or_else(|| {
                format!("{name:?}: expected auto, cpu, or cards such as cuda:0,cuda:1")
            })?;
            if cards.contains(&number) {
                return Err(format!("{name} is named twice"));
            }
            cards.push(number);
        }
        Ok(Self::Cards(cards))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn devices_are_parsed() {
        let parse = |text: &str| text.parse::<Devices>();
        assert_eq!(parse("auto"), Ok(Devices::Auto));
        assert_eq!(parse("cpu"), Ok(Devices::Cards(Vec::new())));
        assert_eq!(parse("cuda:0"), Ok(Devices::Cards(vec![0])));
        assert_eq!(parse("cuda:1,cuda:0"), Ok(Devices::Cards(vec![1, 0])));
        for wrong in [
            "",
            "cuda",
            "cuda:",
            "cuda:-1",
            "cuda:0,",
            "cpu,cuda:0",
            "gpu",
        ] {
            assert!(parse(wrong).unwrap_err().contains("expected"), "{wrong}");
        }
        assert!(parse("cuda:0,cuda:0").unwrap_err().contains("twice"));
    }

    #[test]
    fn processors_are_always_among_an_engines_devices() {
        for devices in [Devices::Auto, Devices::Cards(Vec::new())] {
            let devices = devices.for_engine(1).unwrap();
            let last = devices.last().unwrap();
            assert!(matches!(
                last.kind,
                DeviceKind::Processors { threads: None }
            ));
        }
    }
}
