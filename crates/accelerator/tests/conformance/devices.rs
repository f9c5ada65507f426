//! The devices that the suite runs on.

use proofmill_accelerator::{Device, cpu, cuda, cuda_cards, host_cuda};

/// The host's kernels take so many scalars at a time: the larger products take several rounds.
const CHUNK: usize = 1 << 10;

/// All devices but the CPU's own, which the others are compared with.
pub(crate) fn devices() -> Vec<Box<dyn Device>> {
    let mut devices: Vec<Box<dyn Device>> = vec![
        Box::new(host_cuda(CHUNK, false).unwrap()),
        Box::new(host_cuda(CHUNK, true).unwrap()),
    ];
    match cuda_cards() {
        Ok(cards) => {
            let folder = std::path::Path::new(env!("CARGO_TARGET_TMPDIR")).join("cubins");
            devices.extend(
                (0..cards).map(|card| Box::new(cuda(card, &folder).unwrap()) as Box<dyn Device>),
            );
        }
        Err(reason) => eprintln!("not run on a card: {reason}"),
    }
    devices
}

/// The CPU's kernels, whose own tests compare them with the definition.
pub(crate) fn oracle() -> impl Device {
    cpu().unwrap()
}
