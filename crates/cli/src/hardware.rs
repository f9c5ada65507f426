//! Hardware of this machine, described for people elsewhere.

use proofmill_accelerator::{cuda, cuda_cards, user_cubin_directory};
use proofmill_engine::{processor_name, usable_memory};

use crate::failure::Failure;

/// GPUs and processors of a machine.
pub(crate) struct Hardware {
    /// Models of its cards, one for each.
    cards: Vec<String>,
    /// Model of its processors.
    processor: Option<String>,
    threads: usize,
    /// Bytes of memory that a process may use.
    memory: Option<u64>,
}

// === impl Hardware ===

impl Hardware {
    /// This machine's. A card that does not open is an error: with fewer cards than it has, the description would be wrong.
    pub(crate) fn of_this_machine() -> Result<Self, Failure> {
        // An error means that there is no card, or no driver.
        let cards = cuda_cards().unwrap_or(0);
        Ok(Self {
            cards: (0..cards).map(model).collect::<Result<_, _>>()?,
            processor: processor_name(),
            threads: std::thread::available_parallelism().map_or(1, usize::from),
            memory: usable_memory(),
        })
    }

    /// The number of cards.
    pub(crate) fn cards(&self) -> u32 {
        self.cards.len() as u32
    }

    /// The hardware of `machines` such machines, in at most `most` units of UTF-16, whole parts only as far as possible:
    /// `2 machines, each: 8x NVIDIA H100, AMD EPYC 9654 (96 threads), 755 GiB`.
    pub(crate) fn words(&self, machines: u32, most: usize) -> String {
        let mut parts = counted(&self.cards);
        let processor = self.processor.as_deref().unwrap_or("processor");
        parts.push(format!("{processor} ({} threads)", self.threads));
        parts.extend(self.memory.map(|bytes| format!("{} GiB", bytes >> 30)));
        if machines > 1 {
            parts[0] = format!("{machines} machines, each: {}", parts[0]);
        }
        while parts.len() > 1 && parts.join(", ").encode_utf16().count() > most {
            parts.pop();
        }
        let mut words = parts.join(", ");
        while words.encode_utf16().count() > most {
            words.pop();
        }
        words
    }
}

/// The model of a CUDA card: what stands in brackets in its name, `cuda 0 (NVIDIA H200)`.
fn model(card: usize) -> Result<String, Failure> {
    let opened = user_cubin_directory().map(|cubins| cuda(card, &cubins));
    let unknown = |why: &str| {
        Failure::new(format!("card {card} does not open: {why}")).help(
            "say what the machine has with --gpus and --hardware; `proofmill doctor` tells more",
        )
    };
    let device = opened.ok_or_else(|| unknown("set HOME, for its compiled kernels"))?;
    let device = device.map_err(|error| unknown(&error.to_string()))?;
    let name = proofmill_accelerator::Device::caps(&device).name.clone();
    let model = name
        .split_once('(')
        .and_then(|(_, rest)| rest.strip_suffix(')'));
    Ok(model.unwrap_or(&name).to_owned())
}

/// The different names, each with its number.
fn counted(names: &[String]) -> Vec<String> {
    let mut counts: Vec<(&str, usize)> = Vec::new();
    for name in names {
        match counts.iter_mut().find(|(known, _)| known == name) {
            Some((_, count)) => *count += 1,
            None => counts.push((name, 1)),
        }
    }
    let shown = counts
        .into_iter()
        .map(|(name, count)| format!("{count}x {name}"));
    shown.collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn hardware(cards: &[&str]) -> Hardware {
        Hardware {
            cards: cards.iter().map(|&name| name.to_owned()).collect(),
            processor: Some("AMD EPYC 9654".into()),
            threads: 96,
            memory: Some((755 << 30) + 1),
        }
    }

    #[test]
    fn machines_are_described_in_words() {
        assert_eq!(
            hardware(&[]).words(1, 200),
            "AMD EPYC 9654 (96 threads), 755 GiB"
        );
        let mixed = hardware(&["NVIDIA H100", "NVIDIA L4", "NVIDIA H100"]);
        assert_eq!(
            mixed.words(2, 200),
            "2 machines, each: 2x NVIDIA H100, 1x NVIDIA L4, AMD EPYC 9654 (96 threads), 755 GiB"
        );
        assert_eq!(mixed.cards(), 3);
        assert_eq!(mixed.words(1, 30), "2x NVIDIA H100, 1x NVIDIA L4");
        assert_eq!(mixed.words(1, 5), "2x NV");
        let unnamed = Hardware {
            processor: None,
            memory: None,
            ..hardware(&[])
        };
        assert_eq!(unnamed.words(1, 200), "processor (96 threads)");
    }
}
