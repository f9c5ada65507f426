//! Tests of roles as processes, configured by their environment, against a real server.

#[path = "../../../orchestrator/tests/mill/node.rs"]
mod chain;
mod collector;
mod demo;
mod dispatcher;
mod source;
mod support;
mod traces;

/// Runs a role if the other tests have started this program as one. As a test of its own, it does nothing.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn role() {
    if let Ok(role) = std::env::var(support::ROLE) {
        support::run_role(&role).await;
    }
}
