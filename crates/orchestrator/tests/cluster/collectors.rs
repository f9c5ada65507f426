//! Collector processes come and go.

use std::time::Instant;

use futures_util::FutureExt;
use proofmill_orchestrator::cluster::{self, LedWorkflows};
use proofmill_orchestrator::shutdown::{self, Level};
use rustix::process::Signal;

use crate::support::{LONG_LEASE, PATIENCE, Roles, context, emitted, proved, setup, wait_for};

/// Number of processes that keep partitions, according to the coordinator.
async fn hosts(leading: &LedWorkflows) -> usize {
    let handle = leading.wait_until_leading("chain").await;
    handle
        .operator()
        .status()
        .await
        .map_or(0, |status| status.hosts.len())
}

/// Waits until `count` processes keep partitions.
async fn until(leading: &LedWorkflows, count: usize, roles: &Roles) {
    let began = Instant::now();
    while hosts(leading).await != count {
        assert!(
            began.elapsed() < PATIENCE,
            "{} collectors, not {count}\n{}",
            hosts(leading).await,
            roles.logs()
        );
        tokio::task::yield_now().await;
    }
}

/// Collectors are added, drained and killed in any order under load; every barrier fires once.
#[test]
fn collectors_are_resized_under_load() {
    let (server, dir, mut roles) = setup(999_999, 5);
    roles.lease_ttl = LONG_LEASE;
    let url = server.url();
    roles.start_all(&["dispatcher-1", "sequencer-1", "source-1"]);
    let runtime = tokio::runtime::Runtime::new().expect("a runtime");
    runtime.block_on(async {
        let context = context(&url, dir.path(), "leader").await;
        let leading = LedWorkflows::default();
        let (stop, shutdown) = shutdown::channel();
        let leader = tokio::spawn(cluster::lead(context, leading.clone(), shutdown));
        let mut up: Vec<String> = Vec::new();
        let mut born = 0;
        for (step, count) in [1, 4, 3, 7, 2, 0, 2].into_iter().enumerate() {
            while up.len() > count {
                let name = up.remove(0);
                if step % 2 == 0 {
                    roles.signal(&name, Signal::TERM);
                } else {
                    roles.kill(&name);
                }
            }
            while up.len() < count {
                born += 1;
                up.push(format!("collector-{born}"));
                roles.start(&format!("collector-{born}"));
            }
            until(&leading, count, &roles).await;
            let so_far = emitted(dir.path()).last().map_or(0, |(_, last)| *last);
            wait_for(dir.path(), so_far + 40, PATIENCE, &roles);
        }
        assert!(leading.wait_until_standby("chain").now_or_never().is_none());
        stop.raise(Level::Drain);
        leading.wait_until_standby("chain").await;
        leader.await.expect("it runs").expect("it leads");
    });
    drop(roles);
    for (task, (begun, ended)) in proved(dir.path()) {
        assert!(
            begun == 1 && ended <= 1,
            "{task}: {begun} begun, {ended} ended"
        );
    }
}
