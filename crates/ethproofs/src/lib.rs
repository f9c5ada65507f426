//! Reports the blocks of a mill to [Ethproofs](https://ethproofs.org), and computes the two scores of its real-time
//! proving cohort.
//!
//! [`Reporter`] decides: a state machine whose inputs are events and times, and whose outputs are calls of the API.
//! [`start`] runs it on a thread of its own, with files for what is not reported yet and for the scores. An [`Observer`]
//! hands it what the coordinator of a workflow reports, through [`Reports`], which never waits: whatever the site does,
//! proving goes on. [`Clusters`] tells the site which clusters a team has, and on which machines.
//!
//! ```
//! use proofmill_ethproofs::{Event, Now, Output, Reporter, ReporterOptions, Step};
//!
//! let mut reporter = Reporter::new(ReporterOptions::default());
//! let now = Now { mono_ms: 0, wall_ms: 1_800_000_000_000 };
//! let outputs = reporter.handle(now, Event::Accepted { block: 7, at_ms: now.wall_ms });
//! let calls: Vec<_> = outputs.iter().filter_map(Output::as_call).collect();
//! assert_eq!((calls[0].block, calls[0].step), (7, Step::Queued));
//! ```

mod answer;
mod call;
mod clusters;
mod extract;
mod journal;
mod metrics;
mod numbers;
mod observer;
mod pace;
mod pending;
mod reporter;
mod reports;
mod score;
mod service;
mod spool;
mod token;
mod under_way;

pub use answer::{ANSWER_BYTES_MAX, Answer, Verdict};
pub use call::{Call, Proof, Step, body};
pub use clusters::{Change, Cluster, ClusterError, Clusters, Deployment, NewCluster};
pub use extract::{Extract, Unreadable};
pub use journal::{Journal, Record};
pub use metrics::add_metrics;
pub use numbers::{CallOutcome, Numbers, Snapshot};
pub use observer::{Observer, ObserverOptions};
pub use reporter::{DropReason, Event, Now, Output, Reporter, ReporterOptions};
pub use reports::{EarlierEmission, Emission, Reports};
pub use score::{FAST_MS, Score, Scores, WINDOW_MS};
pub use service::{Reporting, Settings, StartError, start};
pub use spool::{Kept, Spool};
pub use token::Token;
