//! Whole mills with real logs on disk: the behaviour that users rely on.

mod blobs;
mod dead_letters;
mod ethereum;
mod exec;
mod flow;
mod jetstream;
mod killers;
mod log_failure;
mod machine;
mod node;
mod receiver;
mod results;
mod resume;
mod shutdown;
mod sink;
mod speculation;
mod starved;
mod support;
mod verification;
mod webhook;

/// Opens no bus, so that the log is in the mill's directory.
async fn bus(_state: &std::path::Path) -> Option<proofmill_bus::Connection> {
    None
}
