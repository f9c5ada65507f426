//! The prover: a proof in one call, or stage by stage.

pub(crate) mod products;
pub(crate) mod prove;
pub mod stages;

pub use prove::{ProveError, Timings, prove};
pub use stages::{Prover, ProverStage, StageReport};
