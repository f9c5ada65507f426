//! The tests of `tests/mill`, with logs on a real NATS server.

use std::collections::hash_map::DefaultHasher;
use std::hash::{Hash, Hasher};
use std::path::Path;
use std::sync::LazyLock;

use proofmill_bus::{Connection, NatsOptions};
use proofmill_nats_server::NatsServer;

#[path = "../mill/dead_letters.rs"]
mod dead_letters;
#[path = "../mill/flow.rs"]
mod flow;
#[path = "../mill/results.rs"]
mod results;
#[path = "../mill/resume.rs"]
mod resume;
#[path = "../mill/shutdown.rs"]
mod shutdown;
#[path = "../mill/sink.rs"]
mod sink;
#[path = "../mill/support.rs"]
mod support;

static SERVER: LazyLock<NatsServer> = LazyLock::new(NatsServer::start);

/// The bus of a mill's log: a server that all mills share, with a prefix for each state directory.
async fn bus(state: &Path) -> Option<Connection> {
    let mut hasher = DefaultHasher::new();
    state.hash(&mut hasher);
    let mut options = NatsOptions::new(&SERVER.url());
    options.prefix = format!("mill-{:x}", hasher.finish());
    options.connect_timeout = support::PATIENCE;
    Some(Connection::open(options).await.expect("the bus"))
}
