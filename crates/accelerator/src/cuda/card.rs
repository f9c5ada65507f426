//! A CUDA card as a machine.

use std::collections::HashMap;
use std::path::Path;
use std::sync::Arc;

use cudarc::driver::{
    CudaContext, CudaEvent, CudaFunction, CudaModule, CudaSlice, CudaStream, DevicePtr,
    DriverError, LaunchConfig, PinnedHostSlice, PushKernelArg, result, sys,
};
use cudarc::nvrtc::Ptx;
use zeroize::Zeroize;

use super::arguments::Arguments;
use super::backend::CudaBackend;
use super::compile::compile;
use super::coordinates::point_words;
use super::cubins::Cubins;
use super::machine::{Buffer, Machine};
use super::modules::Module;
use super::msm::{CARD_CHUNK_SCALARS, LOAD_CHUNK_POINTS};
use super::transforms::UPLOAD_CHUNK;
use super::words::Words;
use crate::device::Device;
use crate::error::Error;
use crate::queue::QueuedDevice;

/// The oldest CUDA driver supported, in the driver's own encoding (1000·major + 10·minor): the functions
/// called here exist since that version.
const OLDEST_DRIVER: i32 = 12_000;

/// The number of CUDA cards of this machine.
///
/// # Errors
///
/// [`Error::NoDevice`] if CUDA's driver is not installed, is too old, or finds no card.
#[expect(unsafe_code, reason = "a foreign library")]
pub fn cuda_cards() -> Result<usize, Error> {
    // SAFETY: the call loads the library if it exists, which runs NVIDIA's own initialisers.
    if !unsafe { sys::is_culib_present() } {
        return Err(no_device("CUDA's driver (libcuda) is not here".into()));
    }
    let mut version = 0;
    // SAFETY: the call writes one number to the given address, which is that of a live variable.
    let status = unsafe { sys::cuDriverGetVersion(&raw mut version) }.result();
    let failed = |error| no_device(format!("CUDA's driver: {error}"));
    status.map_err(failed)?;
    check_driver(version)?;
    let cards = result::init()
        .and_then(|()| CudaContext::device_count())
        .map_err(failed)?;
    match usize::try_from(cards) {
        Ok(0) | Err(_) => Err(no_device("CUDA's driver finds no card".into())),
        Ok(cards) => Ok(cards),
    }
}

/// The card of a number below [`cuda_cards`]. Kernels are compiled when they are first used, which
/// takes up to half a minute for each curve and group, and kept in the folder `cubins` for the next
/// time.
///
/// # Errors
///
/// [`Error::NoDevice`] if there is no such card, or it cannot be used.
pub fn cuda(card: usize, cubins: &Path) -> Result<impl Device + use<>, Error> {
    open(card, cubins, false)
}

/// The same for tests: allocated memory is filled with a pattern that is no field element, so that a
/// result that no kernel wrote is an error.
///
/// # Errors
///
/// As for [`cuda`].
#[cfg(feature = "host-kernels")]
pub fn poisoned_cuda(card: usize, cubins: &Path) -> Result<impl Device + use<>, Error> {
    open(card, cubins, true)
}

fn open(card: usize, cubins: &Path, is_poisoned: bool) -> Result<QueuedDevice, Error> {
    let cards = cuda_cards()?;
    if card >= cards {
        return Err(no_device(format!(
            "there are {cards} cards, none is {card}"
        )));
    }
    let cubins = Cubins::new(cubins);
    QueuedDevice::start(move || {
        let opened = Card::open(card, cubins);
        let (mut machine, memory) =
            opened.map_err(|error| no_device(format!("card {card} does not open: {error}")))?;
        machine.is_poisoned = is_poisoned;
        let mut caps = CudaBackend::<Card>::caps(machine.name.clone(), Some(memory));
        caps.host_memory = STAGED_BYTES;
        Ok((CudaBackend::new(machine, CARD_CHUNK_SCALARS), caps))
    })
}

/// An error if the driver, which is for CUDA `version` / 1000, is too old.
fn check_driver(version: i32) -> Result<(), Error> {
    if version >= OLDEST_DRIVER {
        return Ok(());
    }
    let dotted = |version: i32| format!("{}.{}", version / 1000, version % 1000 / 10);
    Err(no_device(format!(
        "CUDA's driver is for CUDA {}, and must be for {} or newer: install a newer driver",
        dotted(version),
        dotted(OLDEST_DRIVER)
    )))
}

fn no_device(reason: String) -> Error {
    Error::NoDevice { reason }
}

/// A card: kernels run on one stream, copies to it on another.
struct Card {
    name: String,
    context: Arc<CudaContext>,
    compute: Arc<CudaStream>,
    copies: Arc<CudaStream>,
    staging: [Staging; 2],
    /// Index of the staging memory that was used longest ago.
    next_staging: usize,
    cubins: Cubins,
    architecture: String,
    /// Whether fresh memory is filled with [`POISON`].
    is_poisoned: bool,
    modules: HashMap<Module, Arc<CudaModule>>,
    functions: HashMap<(Module, &'static str), CudaFunction>,
}

/// The byte that fresh memory is filled with for tests: no modulus is as large.
const POISON: u8 = 0xde;

/// The most bytes that both pieces of staging memory take together. Each holds the largest upload, of
/// scalars or of the largest points.
const STAGED_BYTES: u64 = {
    let point = 4 * point_words::<ark_bls12_381::G2Projective>();
    let scalar = 4 * <ark_bls12_381::Fr as Words>::WORDS;
    let points = LOAD_CHUNK_POINTS * point;
    let scalars = scalar * larger(CARD_CHUNK_SCALARS, UPLOAD_CHUNK);
    2 * larger(points, scalars) as u64
};

const fn larger(left: usize, right: usize) -> usize {
    if left > right { left } else { right }
}

/// Pinned memory, and the event that marks the end of the last copy out of it.
#[derive(Default)]
struct Staging {
    memory: Option<PinnedHostSlice<u32>>,
    copied: Option<CudaEvent>,
}

// === impl Card ===

impl Card {
    /// The card, and the bytes of its memory.
    #[expect(unsafe_code, reason = "a foreign library")]
    fn open(card: usize, cubins: Cubins) -> Result<(Self, u64), DriverError> {
        let context = CudaContext::new(card)?;
        // SAFETY: buffers are used by this machine alone, which orders its two streams itself.
        unsafe {
            context.disable_event_tracking();
        }
        let (major, minor) = context.compute_capability()?;
        let memory = context.total_mem()? as u64;
        let machine = Self {
            name: format!("cuda {card} ({})", context.name()?),
            compute: context.new_stream()?,
            copies: context.new_stream()?,
            context,
            staging: Default::default(),
            next_staging: 0,
            cubins,
            architecture: format!("sm_{major}{minor}"),
            is_poisoned: false,
            modules: HashMap::new(),
            functions: HashMap::new(),
        };
        Ok((machine, memory))
    }

    fn check<T>(&self, result: Result<T, DriverError>) -> Result<T, Error> {
        result.map_err(|error| self.failed(&error.to_string()))
    }

    /// A kernel, compiled and loaded at its first use.
    fn function(&mut self, module: Module, kernel: &'static str) -> Result<CudaFunction, Error> {
        if let Some(function) = self.functions.get(&(module, kernel)) {
            return Ok(function.clone());
        }
        if !self.modules.contains_key(&module) {
            let architecture = &self.architecture;
            let cubin = self.cubins.get(module, architecture, || {
                compile(module, architecture).map(|compiled| compiled.cubin)
            });
            let cubin = cubin.map_err(|reason| self.failed(&reason))?;
            let loaded = self.context.load_module(Ptx::from_binary(cubin));
            let loaded = self.check(loaded)?;
            self.modules.insert(module, loaded);
        }
        let loaded = self.modules[&module].load_function(&format!("{module}_{kernel}"));
        let function = self.check(loaded)?;
        self.functions.insert((module, kernel), function.clone());
        Ok(function)
    }

    /// The staging memory used longest ago, free again and with room for `words`.
    #[expect(unsafe_code, reason = "a foreign library")]
    fn free_staging(&mut self, words: usize) -> Result<usize, DriverError> {
        let index = self.next_staging;
        self.next_staging = 1 - index;
        let staging = &mut self.staging[index];
        if let Some(copied) = staging.copied.take() {
            copied.synchronize()?;
        }
        if staging
            .memory
            .as_ref()
            .is_none_or(|memory| memory.len() < words)
        {
            staging.wipe();
            staging.memory = None;
            // SAFETY: nothing is read of it before it is written.
            let memory = unsafe { self.context.alloc_pinned(words)? };
            staging.memory = Some(memory);
        }
        Ok(index)
    }

    /// Memory of unknown content, or poisoned.
    #[expect(unsafe_code, reason = "a foreign library")]
    fn fresh(&self, words: usize) -> Result<CudaSlice<u32>, DriverError> {
        // SAFETY: nothing is read of it before it is written.
        let buffer = unsafe { self.compute.alloc(words)? };
        if self.is_poisoned {
            // SAFETY: the bytes are the buffer's, which is freed on the same stream.
            unsafe {
                let stream = self.compute.cu_stream();
                result::memset_d8_async(buffer.address(), POISON, 4 * words, stream)?;
            }
        }
        Ok(buffer)
    }

    #[expect(unsafe_code, reason = "a foreign library")]
    fn copy(
        &mut self,
        to: &CudaSlice<u32>,
        at: usize,
        words: usize,
        after: Option<CudaEvent>,
        fill: &mut dyn FnMut(&mut [u32]),
    ) -> Result<(), DriverError> {
        let index = self.free_staging(words)?;
        let Some(memory) = &mut self.staging[index].memory else {
            return Ok(());
        };
        let staged = &mut memory.as_mut_slice()?[..words];
        fill(staged);
        match after {
            Some(after) => self.copies.wait(&after)?,
            // The buffer is new, or the kernels that read it have been launched before.
            None => self.copies.join(&self.compute)?,
        }
        let target = to.at(at);
        // SAFETY: the target is within the buffer, as the assertion checks. The staged words do not
        // change before the event below, for which the next use of the staging buffer waits.
        unsafe {
            assert!(at + words <= to.len(), "a copy within its buffer");
            result::memcpy_htod_async(target, staged, self.copies.cu_stream())?;
        }
        let copied = self.copies.record_event(None)?;
        self.compute.wait(&copied)?;
        self.staging[index].copied = Some(copied);
        Ok(())
    }
}

impl Machine for Card {
    type Buffer = CudaSlice<u32>;
    type Mark = CudaEvent;

    fn allocate(&mut self, words: usize) -> Result<CudaSlice<u32>, Error> {
        // An allocation is never empty.
        self.fresh(words.max(1)).map_err(|error| match error.0 {
            sys::CUresult::CUDA_ERROR_OUT_OF_MEMORY => Error::OutOfMemory {
                bytes: 4 * words as u64,
            },
            _ => self.failed(&error.to_string()),
        })
    }

    fn upload(
        &mut self,
        to: &mut CudaSlice<u32>,
        at: usize,
        words: usize,
        after: Option<CudaEvent>,
        fill: &mut dyn FnMut(&mut [u32]),
    ) -> Result<(), Error> {
        if words == 0 {
            return Ok(());
        }
        let copied = self.copy(to, at, words, after, fill);
        self.check(copied)
    }

    fn download(&mut self, from: &CudaSlice<u32>, words: &mut [u32]) -> Result<(), Error> {
        if words.is_empty() {
            return Ok(());
        }
        let copied = self
            .compute
            .memcpy_dtoh(&from.slice(..words.len()), words)
            .and_then(|()| self.compute.synchronize());
        self.check(copied)
    }

    fn wipe(&mut self, buffer: &mut CudaSlice<u32>) -> Result<(), Error> {
        let wiped = self.compute.memset_zeros(buffer);
        self.check(wiped)
    }

    #[expect(unsafe_code, reason = "a foreign library")]
    fn launch<A: Arguments>(
        &mut self,
        module: Module,
        arguments: &A,
        blocks: u32,
        threads: u32,
    ) -> Result<(), Error> {
        let function = self.function(module, A::KERNEL)?;
        let config = LaunchConfig {
            grid_dim: (blocks, 1, 1),
            block_dim: (threads, 1, 1),
            shared_mem_bytes: 0,
        };
        // SAFETY: the arguments are the kernel's, and name memory of buffers that are freed on this
        // stream, so after the kernel has run.
        let launched = unsafe {
            self.compute
                .launch_builder(&function)
                .arg(arguments)
                .launch(config)
        };
        self.check(launched).map(drop)
    }

    fn failed(&self, reason: &str) -> Error {
        Error::Failed {
            device: self.name.clone(),
            reason: reason.into(),
        }
    }

    fn mark(&mut self) -> Result<CudaEvent, Error> {
        let mark = self.compute.record_event(None);
        self.check(mark)
    }
}

impl Drop for Card {
    fn drop(&mut self) {
        // Running copies must not outlive their memory; an error here changes nothing.
        let _ = self.copies.synchronize();
        let _ = self.compute.synchronize();
        self.staging.iter_mut().for_each(Staging::wipe);
    }
}

impl Staging {
    /// Scalars pass through here.
    fn wipe(&mut self) {
        if let Some(Ok(words)) = self.memory.as_mut().map(PinnedHostSlice::as_mut_slice) {
            words.zeroize();
        }
    }
}

impl Buffer for CudaSlice<u32> {
    fn address(&self) -> u64 {
        self.device_ptr(self.stream()).0
    }
}

#[cfg(test)]
mod tests {
    use super::check_driver;

    #[test]
    fn a_driver_that_is_too_old_is_recognised_by_its_version() {
        assert_eq!(check_driver(12_000), Ok(()));
        assert_eq!(check_driver(13_020), Ok(()));
        let error = check_driver(11_080).unwrap_err().to_string();
        assert!(
            error.contains("for CUDA 11.8, and must be for 12.0"),
            "{error}"
        );
    }
}
