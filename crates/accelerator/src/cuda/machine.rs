//! The machine that kernels run on: memory, copies and launches, implemented by a card and by the host.

use super::arguments::Arguments;
use super::modules::Module;
use crate::error::Error;

/// Memory, and kernels that run on it in the order of their launches.
///
/// Memory is counted in words of 32 bits. After any error but [`Error::OutOfMemory`] the machine is
/// unusable.
pub(crate) trait Machine: 'static {
    /// A piece of the machine's memory. Dropping it frees the memory once the kernels launched before have run.
    type Buffer: Buffer;
    /// A moment in the order of launches.
    type Mark;

    /// Memory of unknown content.
    fn allocate(&mut self, words: usize) -> Result<Self::Buffer, Error>;

    /// Fills `words` words from `at` on with what `fill` writes; it must write them all. Launches
    /// after this call see them; the copy waits for those before `after`, not for later ones.
    fn upload(
        &mut self,
        to: &mut Self::Buffer,
        at: usize,
        words: usize,
        after: Option<Self::Mark>,
        fill: &mut dyn FnMut(&mut [u32]),
    ) -> Result<(), Error>;

    /// Waits for the launched kernels, then copies from the buffer's beginning.
    fn download(&mut self, from: &Self::Buffer, words: &mut [u32]) -> Result<(), Error>;

    /// Fills a buffer with zeros, in the order of launches.
    fn wipe(&mut self, buffer: &mut Self::Buffer) -> Result<(), Error>;

    /// Runs a kernel of `module` with `blocks` of `threads` threads.
    fn launch<A: Arguments>(
        &mut self,
        module: Module,
        arguments: &A,
        blocks: u32,
        threads: u32,
    ) -> Result<(), Error>;

    /// Makes the error of a broken machine, whose results cannot be trusted any more.
    fn failed(&self, reason: &str) -> Error;

    /// Marks the current position in the order of launches, for a later upload to wait for.
    fn mark(&mut self) -> Result<Self::Mark, Error>;
}

/// A piece of a machine's memory.
pub(crate) trait Buffer {
    /// The address of the first word, for kernels.
    fn address(&self) -> u64;

    /// Address of the word of index `word`.
    fn at(&self, word: usize) -> u64 {
        self.address() + 4 * word as u64
    }
}

/// Launches enough full blocks for `items` threads; no blocks if `items` is zero.
pub(crate) fn launch_for<M: Machine, A: Arguments>(
    machine: &mut M,
    module: Module,
    arguments: &A,
    items: usize,
) -> Result<(), Error> {
    if items == 0 {
        return Ok(());
    }
    let blocks = items.div_ceil(A::THREADS as usize) as u32;
    machine.launch(module, arguments, blocks, A::THREADS)
}
