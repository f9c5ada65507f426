//! The devices that the suite runs on.

use proofmill_accelerator::{Device, cpu, cuda_cards, host_cuda, poisoned_cuda};

/// Scalars in a round on the host's kernels: few, so that the larger products take several rounds.
const CHUNK: usize = 1 << 10;

/// All devices but the CPU's own, which the others are compared with.
pub(crate) fn devices() -> Vec<Box<dyn Device>> {
    let mut devices: Vec<Box<dyn Device>> = vec![
        Box::new(host_cuda(CHUNK, false).unwrap()),
        Box::new(host_cuda(CHUNK, true).unwrap()),
    ];
    devices.extend(cards());
    devices
}

/// The CUDA cards of this machine; that it has none is reported.
pub(crate) fn cards() -> Vec<Box<dyn Device>> {
    let folder = std::path::Path::new(env!("CARGO_TARGET_TMPDIR")).join("cubins");
    let open = |card| Box::new(poisoned_cuda(card, &folder).unwrap()) as Box<dyn Device>;
    match cuda_cards() {
        Ok(cards) => (0..cards).map(open).collect(),
        Err(reason) => {
            eprintln!("skipped: this machine has no CUDA card ({reason})");
            Vec::new()
        }
    }
}

/// The reference device: the CPU's kernels, whose own tests compare them with the definition.
pub(crate) fn oracle() -> impl Device {
    cpu().unwrap()
}
