//! All processes, the NATS server included, are killed and stopped at random.

use std::fs;
use std::time::{Duration, Instant};

use proofmill_nats_server::Cluster;
use rustix::process::Signal;

use crate::roles::WORKFLOW;
use crate::support::{PATIENCE, Roles, check_order, emitted, proved, wait_for};

/// A pseudo-random sequence, the same in each run.
struct Random(u64);

impl Random {
    fn below(&mut self, limit: usize) -> usize {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        (self.0 % limit as u64) as usize
    }
}

/// Seconds of faults. The experiment in `bench` runs longer.
const SECONDS: u64 = 25;

#[test]
fn every_block_leaves_once_in_order_whatever_dies() {
    let mut cluster = Cluster::start(3, "");
    let dir = tempfile::tempdir().expect("a directory");
    fs::write(
        dir.path().join("workflow.toml"),
        WORKFLOW.replace("END", "999999"),
    )
    .expect("written");
    let mut roles = Roles::new(cluster.url(), 3, dir.path());
    let names = [
        "coordinator-1",
        "coordinator-2",
        "dispatcher-1",
        "dispatcher-2",
        "dispatcher-3",
        "dispatcher-4",
        "collector-1",
        "collector-2",
        "collector-3",
        "sequencer-1",
        "sequencer-2",
        "source-1",
        "source-2",
    ];
    roles.start_all(&names);
    wait_for(dir.path(), 20, PATIENCE, &roles);
    let mut random = Random(20_261_121);
    let began = Instant::now();
    let mut hit: Vec<String> = Vec::new();
    while began.elapsed() < Duration::from_secs(SECONDS) {
        let victim = random.below(names.len() + 1);
        let stop = random.below(2) == 0;
        if victim == names.len() {
            let server = random.below(cluster.servers.len());
            hit.push(format!("server {server}"));
            if stop {
                cluster.servers[server].pause();
                std::thread::sleep(Duration::from_millis(700));
                cluster.servers[server].resume();
            } else {
                cluster.servers[server].restart();
            }
        } else if stop {
            hit.push(format!("stop {}", names[victim]));
            roles.signal(names[victim], Signal::STOP);
            std::thread::sleep(Duration::from_millis(700));
            roles.signal(names[victim], Signal::CONT);
        } else {
            hit.push(format!("kill {}", names[victim]));
            roles.kill(names[victim]);
            std::thread::sleep(Duration::from_millis(300));
            roles.start(names[victim]);
        }
        std::thread::sleep(Duration::from_millis(300));
        check_order(&emitted(dir.path()));
    }
    // After the faults, the work goes on.
    let so_far = emitted(dir.path()).last().map_or(0, |(_, last)| *last);
    wait_for(dir.path(), so_far + 50, PATIENCE, &roles);
    let again = proved(dir.path())
        .values()
        .filter(|(begun, _)| *begun > 1)
        .count();
    println!("{hit:?}\nblocks {so_far}, {again} tasks begun more than once");
}
