//! The workflow file: one TOML file that states the sources of blocks, the provers that they pass
//! through, the groups that proofs are gathered into, and what is emitted in chain order.
//!
//! This crate reads the file, checks it before anything runs, and draws it. Its only input and
//! output are reading that file and asking a [`Host`] whether programs and files exist.
//!
//! ```
//! use std::path::Path;
//!
//! use proofmill_workflow::{LocalHost, graph, validate};
//!
//! let text = r#"
//! name = "tour"
//!
//! [[source]]
//! name = "blocks"
//! kind = "range"
//! end = 99
//! output = "blocks"
//!
//! [[dispatcher]]
//! name = "prove"
//! input = "blocks"
//! output = "proofs"
//! verify = true
//! executor = { kind = "native", prover = "my.prover" }
//!
//! [sequencer]
//! input = "prooofs"
//! "#;
//! let host = LocalHost::new(["my.prover"]).with_emission_checks(["my.prover"]);
//! let faults = validate(text, Path::new("tour.toml"), &host).unwrap_err();
//! assert_eq!(faults.len(), 2, "one queue is never read, the other never written");
//! assert_eq!(faults[1].help, "did you mean `proofs`?");
//!
//! let text = text.replace("prooofs", "proofs");
//! let (workflow, warnings) = validate(&text, Path::new("tour.toml"), &host).unwrap();
//! assert!(warnings.is_empty());
//! assert_eq!(workflow.link().stages.len(), 3);
//! assert!(graph::mermaid(&workflow).starts_with("flowchart LR"));
//! ```

mod check;
mod decode;
mod diagnostic;
mod document;
mod engine;
mod ethereum;
mod ethproofs;
mod fields;
pub mod graph;
mod history;
mod host;
mod inner;
mod late;
mod linked;
mod mentions;
mod model;
mod scaling;
mod settlement;
mod sinks;
mod suggest;
mod template;
mod text;
mod url;
mod value;

pub use check::{check, validate, validate_file};
pub use decode::{MAX_FILE_SIZE, MAX_STAGES};
pub use diagnostic::{Code, Diagnostic, Severity, render};
pub use document::Document;
pub use ethproofs::Ethproofs;
pub use history::History;
pub use host::{Host, LocalHost, ProgramFault};
pub use late::Late;
pub use linked::{LinkedQueue, LinkedStage, LinkedWorkflow, QueueId, StageId, StageKind};
pub use model::{
    Backoff, ChainStart, Collector, Deadline, Defaults, Dispatcher, EngineAddress, EngineExecutor,
    EnginePriority, ExecInput, Executor, Hedge, MatchCount, OnMissed, Policy, ProcessExecutor,
    Program, Queue, Sandbox, Secret, Sequencer, Sink, SinkKind, Source, SourceKind, Speculation,
    Strategy, Workflow, Writers,
};
pub use scaling::Scaling;
pub use settlement::{ContractFunctions, Settlement, TransactionSigner};
pub use template::Template;
pub use url::HttpUrl;
pub use value::{
    InvalidValue, JsonPointer, MAX_DURATION, Rate, format_duration, parse_duration, parse_size,
};
