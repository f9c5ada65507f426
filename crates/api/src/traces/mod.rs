//! Export of traces by OTLP, over gRPC and HTTP, and the trace context of requests.
//!
//! Spans come from the queue of [`proofmill_trace`]; which spans there are is decided in the services. The
//! exporter has a thread and a runtime of its own, so that encoding and a slow collector delay nothing else.

mod encode;
mod exporter;
mod headers;
mod metrics;
pub mod proto;
mod settings;
mod transport;

pub use exporter::{Exporting, start};
pub use headers::caller_of;
pub(crate) use metrics::add_to as add_metrics;
pub use settings::{Protocol, Settings, SettingsError};
