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
//! n points, q₁ points in the longest query of the first group (n at least) and q₂ in that of the second,
//! points at infinity not counted, and g₁ and g₂ the bytes that a product takes for each point of its query
//! (see [`proofmill_groth16::stages`]), a partition holds at most, beside its key:
//!
//! | stage | bytes |
//! |---|---|
//! | witness | 64·m: the input, and the values |
//! | evaluate | 32·m + 96·n, or 32·m + 64·n with a key of ours |
//! | prove | 32·m + 32·n |
//! | finish, verify | 32·m |
//!
//! and until it is finished, g₁·q₁ + g₂·q₂, which the products of the prove and the finish stage take and the
//! kernels keep for the next ones. With accelerators the prove stage takes
//! 160·m + 192·n, or 160·m + 128·n with a key of ours: the scalars of four queries, and the transforms'
//! vectors on their way there and back. A partition reserves the most of these at once, which
//! [`CircuitView::work_bytes`] tells, and gives back at each stage's end what no later one needs.
//! `partition_workers` may be under way, and `express_workers` more while they are critical.
//!
//! A hot key reserves what it takes, which [`CircuitView::bytes`] tells; [`CircuitView::hot_bytes`] is that
//! before it is loaded, from the points counted when it was registered, or as it was measured the last time.
//! Loading takes more for a while: all points of the file, and the larger of a section of it that is being
//! read, the matrices while they are sorted, and, for a key that was never checked, the test of its points.
//! As a partition begins when its key is there, the two together reserve the larger of what loading takes
//! and what key and partition take: [`CircuitView::needed_bytes`]. Of that the partition gets what it is
//! still missing when the key is loaded. Should a key take more than was thought, which can be found only
//! once, its partition goes back into the line. Points and measured sizes are kept in the file `figures` of
//! the state directory; one that is damaged or of another version is as good as none.
//!
//! That is what is reserved. As there are only so many devices and workers, less is used: what the
//! kernels keep, once for each device and each worker of the finish stage, and of the stages' bytes those
//! of the partitions under way, of which no more are in a stage than it has workers. One that is alone has
//! nothing kept before its own first product.
//! [`Handle::together_bytes`] tells how much that is, and `proofmill-bench engine memory` puts what is
//! measured beside it; `proofmill-bench engine estimates` does so with [`CircuitView::needed_bytes`].
//! The process has no more than that only if its allocator gives back what is freed,
//! as `proofmill engine serve` has glibc's do with [`proofmill_kernels::return_large_allocations`].
//!
//! A reservation never grows by what others hold, and one partition at a time waits for one: everyone else
//! who holds memory has all that he needs, or a key that is being loaded has the rest of it. So nobody waits
//! for ever.

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
    AnyProof, BudgetStatus, CircuitId, CircuitRef, CircuitSource, CircuitView, ConstraintsFrom,
    DeviceStatus, Error, Event, EventKind, Input, InvalidId, InvalidName, InvalidPriority,
    JobCounts, JobId, JobResult, JobState, JobView, Load, MAX_NAME_BYTES, MalformedProof, Owner,
    OwnerUse, Partition, PartitionProof, Priority, ProofOf, Registration, RequestId, Resource,
    Secret, Span, Stage, StageEnd, StageStatus, Status, Submission, Submitted, Tier, check_name,
};
pub use memory::{default_budget, usable_memory};
pub use options::{
    AcceleratorOptions, DeviceKind, DeviceOptions, Fault, Interference, KeyForm, Limits,
    OffloadRule, Options, StageWorkers,
};
pub use service::Service;
