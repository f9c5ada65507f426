//! Bundles: files with everything needed to run the attempts of dead letters again on another machine.
//!
//! [`build`] makes one from the letters, the workflow and the blobs; [`Replay`] runs a letter of one again, in the
//! executor that a dispatcher uses, and compares the result with the recorded failure.
//!
//! A bundle is a list of sections between a header and a checksum. Numbers are little-endian.
//!
//! | bytes | content |
//! |---|---|
//! | 8 | `PMDEADLB` |
//! | 4 | version of the format: 1 |
//! | 4 | number of sections |
//! | for each section: 1, 8, 32, n | kind, length n, SHA-256 of the content, content |
//! | 32 | SHA-256 of all bytes before |
//!
//! The first section holds the [`Facts`] as JSON, the next ones a dead letter each, as a record of the log; the rest
//! are inputs and files, known by their SHA-256. A letter's payload names its inputs by digest and length. No section
//! names a path to write to. The checksums show damage; they do not show who made the bundle.

mod build;
mod container;
mod error;
mod facts;
mod replay;
mod same;

pub use build::{BuildOptions, build};
pub use container::{BUNDLE_BYTES_MAX, Bundle, LETTERS_MAX};
pub use error::BundleError;
pub use facts::{BundledFile, Facts, Stage, Work};
pub use replay::{EngineAccess, NotReplayed, ProgramRun, Replay, ReplayOptions, Replayed, Verdict};
