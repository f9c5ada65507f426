//! A verdict for every proof of a stream.
//!
//! Nodes, sequencers and aggregators get proofs of several kinds from many sources. A [`Service`]
//! verifies them in batches, which cost little more than one check, and still gives a verdict for each proof:
//! `valid`, `invalid` with a reason, or `unavailable` with a reason. It finds the false proofs of a batch with
//! few checks, and sources that send false proofs do not slow others down.
//!
//! * A [`Kind`] reduces a proof to a claim whose value adds up with others'. [`kinds`] has those that
//!   come with the program; `examples/own_kind.rs` adds one.
//! * [`batch`] checks claims together; [`isolation`] finds the false ones.
//! * [`schedule`] decides the order of work. It is a deterministic state machine with a simulator in
//!   `tests/schedule`.
//! * [`Service`] runs it on threads; a [`Handle`] sends it requests, also as a `tower` service.
//!
//! ```
//! use proofmill_verifier::{Kinds, Options, Request, Service, Status};
//!
//! # tokio::runtime::Builder::new_current_thread().enable_time().build().unwrap().block_on(async {
//! let (service, verifier) = Service::open(Options::of(Kinds::all(None))).expect("threads");
//! let (_trigger, shutdown) = proofmill_shutdown::channel();
//! let running = tokio::spawn(service.run(shutdown));
//!
//! let request = Request::new("me", "1", "groth16-bn254", "no proof");
//! let verdict = verifier.verify(request).await.expect("it is taken");
//! // Without its key the proof cannot be verified.
//! assert!(matches!(verdict.status, Status::Unavailable(_)));
//! # running.abort();
//! # });
//! ```

pub mod batch;
mod erased;
mod figures;
mod handle;
pub mod isolation;
mod keys;
mod kind;
pub mod kinds;
mod options;
mod request;
pub mod schedule;
mod service;
mod tower;
mod verdict;

pub use figures::{KindFigures, Report, SIZES};
pub use handle::{Handle, Pending};
pub use keys::{KeyDigest, KeyError, KeyInfo, KeyLimits, NoDigest};
pub use kind::{Invalid, Kind, ProofInput, UnusableKey};
pub use kinds::Kinds;
pub use options::Options;
pub use proofmill_kernels::{NoRandomness, draw_weights};
pub use request::{MAX_ID_BYTES, Refused, Request};
pub use service::{Error, Service};
pub use verdict::{Status, Unavailable, Verdict, VerdictStats};
