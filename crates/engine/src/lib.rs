//! The resident proving engine: keys stay in memory, stages of many proofs overlap, and memory stays
//! within one byte budget.
//!
//! [`Service::open`] makes an engine from [`Options`], [`Service::run`] does its work, and callers use a
//! [`Handle`]:
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
//!         trace: None,
//!     })
//!     .await?;
//! println!("{}: {} proofs", result.state, result.proofs.len());
//! # Ok(())
//! # }
//! ```
//!
//! # The stages of a job
//!
//! A job is accepted once its inputs are on disk and the job is in the log. Each of its partitions then
//! waits in one line, by priority and then by arrival, for one of `partition_workers` slots and for all the
//! memory that it will need; its key is loaded if necessary. The partition then passes through five stages:
//! witness, evaluate, prove (on a device), finish, verify. It waits before each in the same order. Each
//! stage has workers of its own, so that several jobs overlap. A proof that does not verify is never
//! returned: the partition is tried again, on another device if possible. When all proofs are made, or the
//! job fails, is cancelled or expires, its end is written to the log, and then reported.
//!
//! # Memory
//!
//! Every large allocation is reserved in one budget first. Let m be the number of variables, n the number
//! of points of the domain, q₁ the number of points in the longest query of the first group (at least n)
//! and q₂ in that of the second, not counting points at infinity, and g₁ and g₂ the bytes that a product
//! takes for each point of its query (see [`proofmill_groth16::stages`]). A partition holds at most, beside
//! its key:
//!
//! | stage | bytes |
//! |---|---|
//! | witness | 64·m: the input, and the values |
//! | evaluate | 32·m + 96·n, or 32·m + 64·n with a key of this project's format |
//! | prove | 32·m + 32·n |
//! | finish, verify | 32·m |
//!
//! and until it is finished, g₁·q₁ + g₂·q₂, which the products of the prove and finish stages take and the
//! kernels keep for the next products. With accelerators the prove stage takes 160·m + 192·n, or 160·m +
//! 128·n with a key of this project's format: the scalars of four queries, and the transforms' vectors on
//! their way to the device and back. A partition reserves the largest of these sums ([`CircuitView::work_bytes`]), and gives
//! back at the end of each stage the bytes that no later stage needs. `partition_workers` partitions may be
//! under way, and `express_workers` more if they are critical.
//!
//! A hot key reserves the bytes that it takes ([`CircuitView::bytes`]). Before it is loaded,
//! [`CircuitView::hot_bytes`] estimates them, from the points counted at registration or from the last
//! measurement. Loading takes more for a while: all points of the file, and the larger of a section of the
//! file that is being read, the matrices while they are sorted, and, for a key that was never checked, the
//! test of its points. Since a partition begins when its key is loaded, the two together reserve the larger
//! of the bytes for loading and the bytes for key and partition: [`CircuitView::needed_bytes`]. When the
//! key is loaded, the partition gets the part of this reservation that it still lacks. If a key takes more
//! than estimated, which can happen only at its first load, its partition goes back into the line. Points
//! and measured sizes are kept in the file `figures` of the state directory; a file that is damaged or of
//! another version is ignored.
//!
//! Less memory is used than reserved, since the numbers of devices and workers are limited: the kernels
//! keep their buffers once for each device and each worker of the finish stage, and no stage holds more
//! partitions than it has workers. A partition that is alone has no kept buffers before its own first
//! product. [`Handle::together_bytes`] returns the memory used by all partitions of a circuit.
//! `proofmill-bench engine memory` compares it with the measured use, and `proofmill-bench engine
//! estimates` does the same for [`CircuitView::needed_bytes`]. The process stays within these bytes only if
//! its allocator returns freed memory, which `proofmill engine serve` makes glibc do with
//! [`proofmill_memory::return_large_allocations`].
//!
//! There is no deadlock: a reservation never grows while its holder waits for others, and only one
//! partition at a time waits for memory. Every other holder has all the memory that it needs, or gets the
//! rest when a key is loaded.

mod budget;
// Declared here, since the budget's folder is also compiled into the test that model-checks it.
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
mod processor;
mod queue;
mod registry;
mod residency;
mod service;
mod sync;
mod traces;

pub use generator::{Generator, GeneratorProgram, WitnessGenerator};
pub use handle::Handle;
pub use inputs::Upload;
pub use interface::{
    AnyProof, BudgetStatus, CircuitId, CircuitRef, CircuitSource, CircuitView, ConstraintsFrom,
    DeviceStatus, Error, Event, EventKind, Input, InvalidId, InvalidName, InvalidPriority,
    JobCounts, JobId, JobResult, JobState, JobView, Load, MAX_NAME_BYTES, MalformedProof, Owner,
    OwnerUse, Partition, PartitionProof, PipelineStage, Priority, ProofOf, Registration, RequestId,
    Resource, Secret, Span, StageEnd, StageStatus, Status, Submission, Submitted, Tier, check_name,
};
pub use memory::{default_budget, usable_memory};
pub use options::{
    AcceleratorOptions, DeviceKind, DeviceOptions, Fault, Interference, KeyForm, Limits,
    OffloadRule, Options, StageWorkers,
};
pub use processor::processor_name;
pub use service::Service;
