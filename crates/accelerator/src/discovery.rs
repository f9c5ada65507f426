//! The list of the devices of this machine.

use std::path::PathBuf;

use crate::cpu::cpu;
use crate::cuda::{cuda, cuda_cards};
use crate::device::Device;
use crate::error::Error;

/// The devices of this machine: its CUDA cards, then its processors. A device that is missing or does not
/// open is listed as an error with the reason. Compiled kernels are kept in [`user_cubin_directory`].
///
/// ```
/// let devices = proofmill_accelerator::devices();
/// let processors = devices.last().unwrap().as_ref().unwrap();
/// assert!(processors.caps().name.starts_with("cpu"));
/// ```
pub fn devices() -> Vec<Result<Box<dyn Device>, Error>> {
    let nowhere = || Error::NoDevice {
        reason: "nowhere to keep compiled kernels: set HOME or XDG_CACHE_HOME to an absolute path"
            .into(),
    };
    let open = |card| {
        let cubins = user_cubin_directory().ok_or_else(nowhere)?;
        Ok(Box::new(cuda(card, &cubins)?) as Box<dyn Device>)
    };
    let mut devices: Vec<Result<Box<dyn Device>, Error>> = match cuda_cards() {
        Ok(cards) => (0..cards).map(open).collect(),
        Err(error) => vec![Err(error)],
    };
    devices.push(cpu().map(|cpu| Box::new(cpu) as Box<dyn Device>));
    devices
}

/// The folder of this user's compiled kernels: `proofmill/cubins` in `$XDG_CACHE_HOME`, or in
/// `~/.cache`. `None` if neither is known.
pub fn user_cubin_directory() -> Option<PathBuf> {
    let absolute = |name: &str| {
        let path = PathBuf::from(std::env::var_os(name)?);
        path.is_absolute().then_some(path)
    };
    let caches =
        absolute("XDG_CACHE_HOME").or_else(|| absolute("HOME").map(|home| home.join(".cache")))?;
    Some(caches.join("proofmill/cubins"))
}
