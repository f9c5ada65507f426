//! CUDA cards: the kernels of `kernels/cuda`, and what launches them.
//!
//! A [`Machine`](machine::Machine) holds memory and runs kernels; products and transforms are
//! sequences of launches, written once over any machine. One is a card (`card`); another runs the
//! same kernels compiled as host C++ (`host`), for tests on machines without a card.

mod arguments;
mod backend;
mod card;
mod compile;
mod coordinates;
mod cubins;
#[cfg(feature = "host-kernels")]
mod host;
mod machine;
mod modules;
mod msm;
mod plan;
mod sort;
mod sums;
mod transforms;
mod words;

#[cfg(feature = "host-kernels")]
pub use card::poisoned_cuda;
pub use card::{cuda, cuda_cards};
pub(crate) use coordinates::Coordinates;
#[cfg(feature = "host-kernels")]
pub use host::host_cuda;
pub(crate) use words::Words;
