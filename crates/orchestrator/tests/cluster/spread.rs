//! Many workflows, led by several processes.

use std::fs;
use std::time::Instant;

use proofmill_nats_server::NatsServer;
use proofmill_orchestrator::cluster::{self, LedWorkflows};
use proofmill_orchestrator::shutdown::{self, Level, Trigger};
use tokio::task::JoinSet;

use crate::roles::WORKFLOW;
use crate::support::{PATIENCE, context};

const WORKFLOWS: usize = 6;

async fn until(what: &str, holds: impl Fn() -> bool) {
    let began = Instant::now();
    while !holds() {
        assert!(began.elapsed() < PATIENCE, "never: {what}");
        tokio::time::sleep(std::time::Duration::from_millis(10)).await;
    }
}

/// Two coordinators of six workflows: each leads some, and the one that is left leads all.
#[test]
fn workflows_are_spread_over_their_coordinators() {
    let server = NatsServer::start();
    let dir = tempfile::tempdir().expect("a directory");
    for n in 0..WORKFLOWS {
        let text = WORKFLOW
            .replace("END", "9")
            .replace("chain", &format!("chain-{n}"));
        let chain = dir.path().join(n.to_string());
        fs::create_dir(&chain).expect("made");
        fs::write(chain.join("workflow.toml"), text).expect("written");
    }
    let runtime = tokio::runtime::Runtime::new().expect("a runtime");
    runtime.block_on(async {
        let mut processes: Vec<(LedWorkflows, Trigger)> = Vec::new();
        let mut leads = Vec::new();
        for name in ["one", "two"] {
            let leading = LedWorkflows::default();
            let (stop, shutdown) = shutdown::channel();
            for n in 0..WORKFLOWS {
                let chain = dir.path().join(n.to_string());
                let context = context(&server.url(), &chain, name).await;
                leads.push(cluster::lead(context, leading.clone(), shutdown.clone()));
            }
            processes.push((leading, stop));
        }
        // They begin together: connecting takes longer than a process waits for one that leads fewer.
        let mut roles = JoinSet::new();
        for lead in leads {
            roles.spawn(lead);
        }
        let counts = || -> Vec<usize> {
            processes
                .iter()
                .map(|(leading, _)| leading.count())
                .collect()
        };
        until("all are led", || {
            counts().iter().sum::<usize>() == WORKFLOWS
        })
        .await;
        assert!(counts().iter().all(|count| *count > 0), "{:?}", counts());
        processes[0].1.raise(Level::Drain);
        until("the other leads all", || counts() == [0, WORKFLOWS]).await;
        processes[1].1.raise(Level::Drain);
        while let Some(ended) = roles.join_next().await {
            ended.expect("it runs").expect("it leads");
        }
    });
}
