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
//! | prove | 32·m + 32·n |
//! | finish | 32·m + g₂·m |
//! | verify | 32·m |
//!
//! and until it is finished, g₁ times the larger of m and n, which a product of the prove stage takes
//! and the kernels keep for the next one. With accelerators the prove stage takes 160·m + 192·n, or
//! 160·m + 128·n with a key of ours: the scalars of four queries, and the transforms' vectors on their way
//! there and back. A partition reserves the most of these at once, which
//! [`CircuitView::work_bytes`] tells, and gives back at each stage's end what no later one needs.
//! `partition_workers` may be under way, and `express_workers` more while they are critical. A hot key
//! reserves what it takes, which [`CircuitView::bytes`] tells, and while it is loaded for the first time,
//! [`CircuitView::hot_bytes`].
//!
//! That is what is reserved. As there are only so many devices and workers, less is used: what the
//! kernels keep once for each device, and of the stages' bytes those of the partitions under way, of
//! which no more are in a stage than it has workers. [`Handle::together_bytes`] tells the most that is used,
//! and `proofmill-bench engine memory` puts what is measured beside it.
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
pub use memory::{default_budget, usable_memory};
pub use options::{
    AcceleratorOptions, DeviceKind, DeviceOptions, Fault, Interference, KeyForm, Limits,
    OffloadRule, Options, StageWorkers,
};
pub use service::Service;
