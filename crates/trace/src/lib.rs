//! Traces of blocks: W3C trace context, deterministic identifiers, and the queue of ended spans.
//!
//! Every identifier is derived from names that all processes know (workflow, block, task, attempt), so that
//! a retry, a failover and a replica agree on it without asking each other, and a span that is recorded
//! twice has the same identifier both times.
//!
//! ```
//! use proofmill_trace::{TraceContext, TraceId};
//!
//! let text = "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01";
//! let context = TraceContext::parse(text, ["vendor=1"]).expect("a valid context");
//! assert_eq!(context.traceparent(), text);
//! assert!(TraceContext::parse("00-0-0-01", []).is_none());
//! // A block that comes without a context has a trace all the same.
//! assert_eq!(TraceId::of_block("chain", 812), TraceId::of_block("chain", 812));
//! ```

mod context;
mod id;
mod recorder;
mod sampler;
mod span;

pub use context::{STATE_MAX, TRACEPARENT_LEN, TraceContext};
pub use id::{SpanId, TraceId};
pub use recorder::{AlreadyInstalled, Counts, Ended, Recorder, install, pause, recorder};
pub use sampler::{InvalidRatio, Sampler};
pub use span::{LINKS_MAX, Link, Span, SpanKind, SpanStatus, TEXT_MAX, Value};
