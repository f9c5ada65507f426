//! A machine that runs the kernels compiled as host C++, for tests without a card.

use std::ffi::c_void;

use super::arguments::Arguments;
use super::backend::CudaBackend;
use super::machine::{Buffer, Machine};
use super::modules::Module;
use crate::device::Device;
use crate::error::Error;
use crate::queue::QueuedDevice;

/// The CUDA kernels, compiled for this machine's processor. A product takes `chunk` scalars at a
/// time. The threads of a block run one after another between two barriers, from the first to the
/// last, or `backwards`: results that differ show a race.
///
/// # Errors
///
/// [`Error::NoDevice`] if the system starts no thread.
pub fn host_cuda(chunk: usize, backwards: bool) -> Result<impl Device, Error> {
    QueuedDevice::start(move || {
        let machine = Host { backwards };
        let caps = CudaBackend::<Host>::caps("the CUDA kernels on the host".into(), None);
        Ok((CudaBackend::new(machine, chunk), caps))
    })
}

/// A machine whose memory and processor are those of this process.
struct Host {
    backwards: bool,
}

/// Words aligned as field elements are, followed by guard words that no kernel may write.
struct HostBuffer {
    blocks: *mut [Block],
    words: usize,
}

#[derive(Clone, Copy)]
#[repr(C, align(16))]
struct Block([u32; 4]);

/// Content of fresh memory, chosen so that a kernel that reads unwritten memory gives a wrong result.
const POISON: Block = Block([0xdead_beef; 4]);
/// Blocks behind a buffer's end.
const GUARD_BLOCKS: usize = 4;

/// Runs a grid; false if the arguments' bytes or the threads are not the kernel's.
type Kernel = unsafe extern "C" fn(*const c_void, u32, u32, u32, bool) -> bool;

include!(concat!(env!("OUT_DIR"), "/host_kernels.rs"));

// === impl Host ===

impl Machine for Host {
    type Buffer = HostBuffer;
    type Mark = ();

    fn allocate(&mut self, words: usize) -> Result<HostBuffer, Error> {
        let blocks = vec![POISON; words.div_ceil(4) + GUARD_BLOCKS].into_boxed_slice();
        Ok(HostBuffer {
            blocks: Box::into_raw(blocks),
            words,
        })
    }

    fn upload(
        &mut self,
        to: &mut HostBuffer,
        at: usize,
        words: usize,
        _after: Option<()>,
        fill: &mut dyn FnMut(&mut [u32]),
    ) -> Result<(), Error> {
        fill(&mut to.words_mut()[at..at + words]);
        Ok(())
    }

    fn download(&mut self, from: &HostBuffer, words: &mut [u32]) -> Result<(), Error> {
        words.copy_from_slice(&from.words()[..words.len()]);
        Ok(())
    }

    fn wipe(&mut self, buffer: &mut HostBuffer) -> Result<(), Error> {
        buffer.words_mut().fill(0);
        Ok(())
    }

    fn launch<A: Arguments>(
        &mut self,
        module: Module,
        arguments: &A,
        blocks: u32,
        threads: u32,
    ) -> Result<(), Error> {
        let name = format!("{module}_{}", A::KERNEL);
        let kernel = kernel(&name).ok_or_else(|| self.failed(&format!("no kernel {name}")))?;
        // SAFETY: the arguments are the kernel's, which it checks by their size, and name memory of
        // buffers that live; their guards show a kernel that writes beyond it.
        #[expect(unsafe_code, reason = "a call of a C function")]
        let fits = unsafe {
            kernel(
                std::ptr::from_ref(arguments).cast(),
                size_of::<A>() as u32,
                blocks,
                threads,
                self.backwards,
            )
        };
        if fits {
            Ok(())
        } else {
            Err(self.failed(&format!("{name} takes other arguments, or fewer threads")))
        }
    }

    fn failed(&self, reason: &str) -> Error {
        Error::Failed {
            device: "the CUDA kernels on the host".into(),
            reason: reason.into(),
        }
    }

    fn mark(&mut self) -> Result<(), Error> {
        Ok(())
    }
}

// === impl HostBuffer ===

impl HostBuffer {
    #[expect(unsafe_code, reason = "memory that C functions write to")]
    fn words(&self) -> &[u32] {
        // SAFETY: the blocks are this buffer's own and have at least so many words; kernels write
        // to them only while the machine is borrowed by `launch`.
        unsafe { std::slice::from_raw_parts(self.blocks.cast::<u32>(), self.words) }
    }

    #[expect(unsafe_code, reason = "memory that C functions write to")]
    fn words_mut(&mut self) -> &mut [u32] {
        // SAFETY: as above, and borrowed alone.
        unsafe { std::slice::from_raw_parts_mut(self.blocks.cast::<u32>(), self.words) }
    }
}

impl Buffer for HostBuffer {
    fn address(&self) -> u64 {
        self.blocks.cast::<Block>().expose_provenance() as u64
    }
}

impl Drop for HostBuffer {
    fn drop(&mut self) {
        // SAFETY: made by `Box::into_raw`, and dropped once.
        #[expect(unsafe_code, reason = "memory that C functions write to")]
        let blocks = unsafe { Box::from_raw(self.blocks) };
        let guards = &blocks[blocks.len() - GUARD_BLOCKS..];
        assert!(
            std::thread::panicking() || guards.iter().all(|guard| guard.0 == POISON.0),
            "a kernel wrote beyond a buffer of {} words",
            self.words
        );
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::cuda::words::Words;
    use crate::group::DeviceGroup;

    /// Checks that unwritten memory is refused when it is read as a result.
    fn assert_poison_is_refused<G: DeviceGroup>() {
        let mut machine = Host { backwards: false };
        let mut words = vec![0; 24];
        let buffer = machine.allocate(words.len()).unwrap();
        machine.download(&buffer, &mut words).unwrap();
        assert_eq!(G::ScalarField::read(&words[..G::ScalarField::WORDS]), None);
        assert_eq!(G::BaseField::read(&words[..G::BaseField::WORDS]), None);
    }

    #[test]
    fn poison_is_no_element_of_any_field() {
        assert_poison_is_refused::<ark_bls12_381::G1Projective>();
        assert_poison_is_refused::<ark_bls12_381::G2Projective>();
        assert_poison_is_refused::<ark_bls12_377::G1Projective>();
        assert_poison_is_refused::<ark_bn254::G1Projective>();
        assert_poison_is_refused::<ark_bn254::G2Projective>();
    }
}
