//! Digest of the core's behaviour: SHA-256 over the actions of whole histories, in order.
//!
//! The constants pin it. A change of the core that must not be visible outside leaves them unchanged; a
//! change of behaviour replaces them, and its commit message says why.
//!
//! `DIGEST_SEEDS=1000 cargo test --test simulation digest` compares more histories, in a few seconds.

use std::sync::atomic::{AtomicU64, Ordering};

use proofmill_bus::{Expect, Op, Seq};
use proofmill_orchestrator::conversation::{SinkCommand, WorkerCommand};
use proofmill_orchestrator::core::{Action, TaskReportKind, Timing};
use proofmill_orchestrator::plan::Late;
use serde::Serialize;
use sha2::{Digest, Sha256};

use crate::{number, run_history};

/// Digest of the histories of the first seeds, by number of seeds.
const PINNED: [(u64, &str); 2] = [
    (
        100,
        "e3b39eec6aa57d110d71efed3a82eeaeea372af5d538a41bd7b55c5fcb33245b",
    ),
    (
        1_000,
        "31c297f8931ff06eed9b948686503b7d45fb5bbac6a4e556fb88dbe058003dbb",
    ),
];

/// SHA-256 over the actions of a core, or of several cores in turn.
///
/// Each action is a byte for its kind and its fields in the order of their declaration: numbers in
/// little-endian order, bytes and texts after their length, an option after a byte that is 1 if it has a
/// value. Values with a serialised form (tasks, leases, replies, commands to hosts) are in that form, as
/// postcard writes it, after its length.
#[derive(Clone, Default)]
pub(crate) struct ActionDigest(Sha256);

impl ActionDigest {
    /// Adds the core's actions for one event.
    pub(crate) fn note(&mut self, actions: &[Action]) {
        // Of the reports for log lines only those about late messages count.
        let counts = |action: &&Action| match action {
            Action::Report(report) => matches!(report.kind, TaskReportKind::Late { .. }),
            _ => true,
        };
        let actions = actions.iter().filter(counts);
        self.number(actions.clone().count() as u64);
        actions.for_each(|action| self.action(action));
    }

    pub(crate) fn finish(self) -> [u8; 32] {
        self.0.finalize().into()
    }

    fn action(&mut self, action: &Action) {
        match action {
            Action::Append { token, ops } => {
                self.kind(1);
                self.number(token.0);
                self.number(ops.len() as u64);
                ops.iter().for_each(|op| self.op(op));
            }
            Action::Worker {
                after,
                worker,
                command,
            } => self.worker_command(after.map(|token| token.0), worker, command),
            Action::Host { host, command } => {
                self.kind(5);
                self.bytes(host.as_bytes());
                self.serialised(command);
            }
            Action::Reply {
                request,
                after,
                reply,
            } => {
                self.kind(6);
                self.number(request.0);
                self.seq(*after);
                self.serialised(reply);
            }
            Action::Sink {
                after,
                command: SinkCommand::Emit(task),
            } => {
                self.kind(7);
                self.seq(*after);
                self.serialised(task);
            }
            Action::Defect { why } => {
                self.kind(8);
                self.bytes(why.as_bytes());
            }
            Action::Report(report) => {
                if let TaskReportKind::Late { why, became } = &report.kind {
                    self.kind(9);
                    self.serialised(&report.task);
                    self.bytes(why.as_bytes());
                    self.kind(match became {
                        Late::Dead => 1,
                        Late::Emit => 2,
                        Late::Skip => 3,
                    });
                }
            }
            // The histories are without traces.
            Action::Trace { .. } => self.kind(11),
            // They are not observed.
            Action::Work { .. } => self.kind(12),
            Action::Settle { after, settled } => {
                self.kind(10);
                self.seq(*after);
                self.serialised(&settled.task.id);
                self.kind(u8::from(settled.completed));
                self.kind(u8::from(settled.timing.is_some()));
                settled.timing.iter().for_each(|timing| self.timing(timing));
            }
        }
    }

    /// Adds a command to a worker. Each command has a kind of its own; only an assignment may have to wait.
    fn worker_command(&mut self, after: Option<u64>, worker: &str, command: &WorkerCommand) {
        match command {
            WorkerCommand::Assign(leases) => {
                self.kind(2);
                self.option(after);
                self.bytes(worker.as_bytes());
                self.serialised(leases);
            }
            WorkerCommand::Cancel(lease) => {
                self.kind(3);
                self.bytes(worker.as_bytes());
                self.serialised(lease);
            }
            WorkerCommand::Unknown => {
                self.kind(4);
                self.bytes(worker.as_bytes());
            }
        }
    }

    fn op(&mut self, op: &Op) {
        match op {
            Op::Put { key, value, expect } => {
                self.kind(match expect {
                    Expect::Any => 1,
                    Expect::Absent => 2,
                });
                self.bytes(key.as_str().as_bytes());
                self.bytes(value);
            }
            Op::Delete { key } => {
                self.kind(3);
                self.bytes(key.as_str().as_bytes());
            }
        }
    }

    fn timing(&mut self, timing: &Timing) {
        for duration in [timing.waited, timing.leased, timing.ran] {
            self.number(duration.as_micros() as u64);
        }
        self.number(timing.at.0);
    }

    fn serialised(&mut self, value: &impl Serialize) {
        let bytes = postcard::to_stdvec(value).expect("what crosses the wire can be serialised");
        self.bytes(&bytes);
    }

    fn kind(&mut self, kind: u8) {
        self.0.update([kind]);
    }

    fn number(&mut self, number: u64) {
        self.0.update(number.to_le_bytes());
    }

    fn seq(&mut self, seq: Seq) {
        self.number(seq.0);
    }

    fn option(&mut self, number: Option<u64>) {
        self.kind(u8::from(number.is_some()));
        number.into_iter().for_each(|number| self.number(number));
    }

    fn bytes(&mut self, bytes: &[u8]) {
        self.number(bytes.len() as u64);
        self.0.update(bytes);
    }
}

/// Digest of the digests of the histories with the seeds below `count`.
fn digest_of(count: u64) -> String {
    let threads = std::thread::available_parallelism().map_or(1, |n| n.get() as u64);
    let next = AtomicU64::new(0);
    let mut each: Vec<(u64, [u8; 32])> = std::thread::scope(|scope| {
        let next = &next;
        let run = move || {
            let seeds = std::iter::repeat_with(|| next.fetch_add(1, Ordering::Relaxed));
            let seeds = seeds.take_while(|seed| *seed < count);
            seeds
                .map(|seed| (seed, run_history(seed, false).actions))
                .collect::<Vec<_>>()
        };
        let handles: Vec<_> = (0..threads).map(|_| scope.spawn(run)).collect();
        let joined = handles.into_iter().flat_map(|handle| {
            handle
                .join()
                .unwrap_or_else(|panic| std::panic::resume_unwind(panic))
        });
        joined.collect()
    });
    each.sort_unstable();
    let all = each
        .iter()
        .fold(Sha256::new(), |all, (_, digest)| all.chain_update(digest));
    hex::encode(all.finalize())
}

#[test]
fn the_digest_of_what_the_core_does_is_pinned() {
    let count = number("DIGEST_SEEDS").unwrap_or(PINNED[0].0);
    let digest = digest_of(count);
    println!("the digest of {count} histories is {digest}");
    let pinned = PINNED.iter().find(|(of, _)| *of == count);
    let (_, pinned) = pinned.unwrap_or_else(|| panic!("none is pinned for {count} histories"));
    assert_eq!(digest, *pinned, "the core does something else than before");
}
