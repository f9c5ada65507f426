//! The resident proving engine: keys stay in memory, stages of many proofs overlap, and memory stays
//! within one byte budget.
//!
//! [`Service::open`] makes an engine from [`Options`], [`Service::run`] does its work, and a
//! [`Handle`] is what callers hold:
//!
//! ```no_run
//! use proofmill_engine::{
//!     CircuitRef, CircuitSource, Input, Options, Partition, Priority, Registration, RequestId, Secret,
//!     Service, Submission,
//! };
//!
//! # async fn prove() -> Result<(), Box<dyn std::error::Error>> {
//! let (service, handle) = Service::open(Options::default()).await?;
//! let (_trigger, shutdown) = proofmill_shutdown::channel();
//! tokio::spawn(service.run(shutdown));
//! let source = CircuitSource::Zkey("circuit.zkey".into());
//! handle.register(Registration { name: "circuit".to_owned(), source }).await?;
//! let input = Input::Wtns(Secret::new(std::fs::read("witness.wtns")?));
//! let circuit = CircuitRef::Name("circuit".to_owned());
//! let result = handle
//!     .prove(Submission {
//!         request: RequestId::new("me", "1")?,
//!         priority: Priority::Normal,
//!         deadline: None,
//!         partitions: vec![Partition { circuit, input }],
//!     })
//!     .await?;
//! println!("{}: {} proofs", result.state, result.proofs.len());
//! # Ok(())
//! # }
//! ```
//!
//! # A job's way
//!
//! Its inputs are put on disk, it is put into the log, and then it is accepted. Each of its partitions
//! waits in one line, by priority and then by arrival, for one of `partition_workers` slots and for
//! all the memory that it will need; its key is loaded if it is not there. Then it goes through five
//! stages, before each of which it waits in the same order: witness, evaluate, prove (on a device),
//! finish, verify. Each stage has workers of its own, so that several jobs overlap. A proof that does
//! not verify is never returned: the partition is tried again, rather on another device. When all
//! proofs are there, or the job fails, is cancelled or expires, its end is put into the log, and then
//! told.
//!
//! # Memory
//!
//! Whatever is large is reserved before it is allocated, from one budget. With m variables, a domain of
//! n points, and g₁ and g₂ the bytes that a product takes for each point of its query (see
//! [`proofmill_groth16::stages`]), a partition holds at most, beside its key:
//!
//! | stage | bytes |
//! |---|---|
//! | witness | 64·m: the input, and the values |
//! | evaluate | 32·m + 96·n, or 32·m + 64·n with a key of ours |
//! | prove | 32·m + the larger of 32·n + g₁·n and g₁·m |
//! | finish | 32·m + g₂·m, and g₁ times the larger of m and n, which the kernels keep for the next product |
//! | verify | 32·m |
//!
//! It reserves the most of these at once, and gives back at each stage's end what no later one needs.
//! So the peak is that of the keys that are hot, which [`CircuitView::bytes`] tells, and
//! `partition_workers` times the most of these, which [`CircuitView::work_bytes`] tells; `express_workers`
//! times more while critical partitions use them; and while a key is loaded,
//! [`CircuitView::hot_bytes`] of one that was never hot.
//!
//! That is what is reserved. As there are only so many devices and workers, what is used is less: of all
//! partitions only as many as there are devices and finish workers make products at once, and the others
//! hold 32·m + 32·n. With one of each and two partitions of 250,003 variables over BN254 under way on a
//! domain of 2¹⁸, that comes to 32·n + g₁·n + g₂·m + 2·32·m = 146 MB beside the key, and 142 MB were
//! measured (`cargo run -p proofmill-engine --example measure_engine -- bn254 250000 6 2 0`); 260 MB were
//! reserved.
//!
//! A reservation never grows, and one partition at a time waits for one: everyone else who holds memory
//! has all that he needs. So nobody waits for ever.

mod budget;
// Declared here: the budget's folder is also compiled into the test that model-checks it.
#[cfg(test)]
#[path = "budget/tests.rs"]
mod budget_tests;
mod events;
mod front;
mod generator;
mod handle;
mod inputs;
mod interface;
mod key;
mod memory;
mod options;
mod pipeline;
mod queue;
mod registry;
mod residency;
mod service;
mod sync;

pub use generator::{Generator, GeneratorProgram, WitnessGenerator};
pub use handle::Handle;
pub use inputs::Upload;
pub use interface::{
    BudgetStatus, CircuitId, CircuitRef, CircuitSource, CircuitView, ConstraintsFrom, DeviceStatus,
    Error, Event, EventKind, Input, InvalidId, InvalidName, InvalidPriority, JobCounts, JobId,
    JobResult, JobState, JobView, Load, MAX_NAME_BYTES, Owner, OwnerUse, Partition, PartitionProof,
    Priority, Registration, RequestId, Resource, Secret, Span, Stage, StageEnd, StageStatus,
    Status, Submission, Submitted, Tier, check_name,
};
pub use options::{DeviceOptions, Fault, Interference, KeyForm, Limits, Options, StageWorkers};
pub use service::Service;
