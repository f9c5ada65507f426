//! A chain that is reorganised, and the source that follows it.
//!
//! Each block has a fork: the number of the reorganisation that made it. Messages and results carry their
//! blocks and forks, so that emissions can be checked to belong to the chain that was current last.

use std::collections::BTreeMap;

use proofmill_orchestrator::conversation::{Reply, Request, Rewind, Uniqueness};
use proofmill_orchestrator::core::RequestId;
use proofmill_orchestrator::id::{Part, TaskId};
use proofmill_orchestrator::payload::Payload;
use proofmill_orchestrator::record::TaskRecord;
use serde_json::Value;

use crate::checks::Monitor;
use crate::world::{Asker, Checked, Ev, World};

/// Maximum number of sent blocks that a reorganisation changes.
const DEPTH: u64 = 4;

/// Number of blocks that a restarted source compares with the recorded ones; more than a reorganisation
/// changes.
const RECALLED: usize = 6;

/// Time without an answer after which a request is sent again.
const LOST_MS: u64 = 4_000;

/// The chain, and the state of its source and of the sink.
#[derive(Default)]
pub(crate) struct Chain {
    /// Present fork of each block.
    pub(crate) forks: Vec<u64>,
    /// Lowest fork of each block that may still be emitted.
    floor: Vec<u64>,
    /// Whether each block had been emitted, or was about to be, when it changed.
    stale: Vec<bool>,
    /// Last block that was sent.
    last: Option<u64>,
    /// Number of reorganisations.
    pub(crate) reorganised: u64,
    /// First block that the source has to take back; `None` if the chain has not changed.
    changed: Option<u64>,
    /// Rewind that waits for an answer.
    asked: Option<Asked>,
    /// Messages of blocks below this one were sent by an earlier run of the source.
    submitted_before: u64,
    /// Fork of each block that the sink has written.
    written: BTreeMap<u64, u64>,
}

#[derive(Clone, Copy)]
struct Asked {
    at: u64,
    epoch: u64,
    request: RequestId,
}

// === impl Chain ===

impl Chain {
    pub(crate) fn new(end: u64) -> Self {
        let end = end as usize;
        Self {
            forks: vec![0; end],
            floor: vec![0; end],
            stale: vec![false; end],
            ..Self::default()
        }
    }

    /// Uniqueness of the message of a block, which is about to be sent.
    pub(crate) fn uniqueness(&mut self, block: u64) -> Uniqueness {
        self.last = self.last.max(Some(block));
        match block < self.submitted_before {
            true => Uniqueness::ReplayOnly,
            false => Uniqueness::Single,
        }
    }

    /// Notes that the chain has changed from this block on.
    pub(crate) fn change(&mut self, from: u64) {
        let from = self.changed.map_or(from, |known| known.min(from));
        self.changed = Some(from);
        self.asked = None;
    }

    /// Notes that a block's message is known, perhaps of another fork: its mark is removed once it is
    /// emitted.
    pub(crate) fn has_left(&mut self, block: u64) {
        self.stale[block as usize] = true;
    }

    /// (m) An emission is of each of its blocks, and of no fork that was taken back.
    pub(crate) fn leaves(&mut self, task: &TaskRecord) -> Checked {
        let id = &task.id;
        let forks = forks_of(&task.payload).map_err(|why| format!("(m) {id}: {why}"))?;
        let blocks: Vec<u64> = forks.keys().copied().collect();
        if blocks != (id.block..=task.last).collect::<Vec<u64>>() {
            return Err(format!("(m) {id} was made of the blocks {blocks:?}"));
        }
        for (block, fork) in forks {
            let floor = self.floor[block as usize];
            if fork < floor {
                return Err(format!(
                    "(m) {id} is of fork {fork} of block {block}; what is below {floor} was taken \
                     back"
                ));
            }
            self.written.insert(block, fork);
        }
        Ok(())
    }

    /// (m) Emissions are of the chain that was current last, except those made before.
    pub(crate) fn check_end(&self) -> Checked {
        for (block, fork) in &self.written {
            let at = *block as usize;
            if *fork != self.forks[at] && !self.stale[at] {
                return Err(format!(
                    "(m) block {block} left as fork {fork}, and is of fork {}",
                    self.forks[at]
                ));
            }
        }
        Ok(())
    }
}

impl World {
    /// Replaces the blocks from one of the last on by others.
    pub(crate) fn reorganise(&mut self) {
        if self.calm {
            return;
        }
        let delay = self.rng.within(300, 3_000);
        self.after(delay, Ev::Reorganise);
        let Some(last) = self.chain.last else {
            return;
        };
        let from = last.saturating_sub(self.rng.within(0, DEPTH));
        self.chain.reorganised += 1;
        let fork = self.chain.reorganised;
        self.chain.forks[from as usize..].fill(fork);
        self.note(|| format!("reorganised from {from} on, fork {fork}"));
        // A source that is down learns of it when it starts.
        if self.producers[0].up {
            self.chain.change(from);
        }
    }

    /// Starts the source: it compares the last blocks with the recorded ones.
    pub(crate) fn chain_starts(&mut self) {
        self.chain.changed = None;
        self.chain.asked = None;
        let producer = &mut self.producers[0];
        let next = producer.known.iter().filter(|known| **known).count();
        let from = next.saturating_sub(RECALLED);
        producer.known[from..].fill(false);
        self.chain.submitted_before = next as u64;
    }

    /// Sends a rewind if blocks have changed. Returns whether one is under way; no message is sent until it
    /// is answered.
    pub(crate) fn takes_back(&mut self) -> bool {
        let Some(from) = self.chain.changed else {
            return false;
        };
        let (now, epoch) = (self.now_ms, self.epoch);
        let is_fresh = |asked: Asked| asked.epoch == epoch && asked.at + LOST_MS >= now;
        if self.chain.asked.is_some_and(is_fresh) {
            return true;
        }
        let source = &self.scene.sources[0];
        let (producer, queue) = (source.name.into(), source.queue);
        let queues = vec![
            self.scene
                .plan
                .queue_named(queue)
                .expect("the scene has it"),
        ];
        let asker = Asker::Rewinder { from };
        let event = self.ask(
            asker,
            Request::Rewind(Rewind {
                source: producer,
                queues,
                from,
            }),
        );
        self.chain.asked = Some(Asked {
            at: now,
            epoch,
            request: RequestId(self.next_request),
        });
        self.in_order(0, event);
        true
    }

    /// Handles the answer to a rewind: blocks down to the one in the reply have been taken back.
    pub(crate) fn taken_back(&mut self, request: RequestId, asked: u64, reply: &Reply) {
        let chain = &mut self.chain;
        if chain.asked.is_none_or(|waits| waits.request != request) {
            return;
        }
        let Reply::Rewound { from } = reply else {
            chain.asked = None;
            return;
        };
        let from = *from as usize;
        for at in from..chain.forks.len() {
            chain.floor[at] = chain.forks[at];
        }
        for at in asked as usize..from.min(chain.forks.len()) {
            chain.stale[at] = true;
        }
        chain.changed = None;
        chain.asked = None;
        chain.submitted_before = chain.submitted_before.min(from as u64);
        let producer = &mut self.producers[0];
        let from = from.min(producer.known.len());
        producer.known[from..].fill(false);
        producer.known[(asked as usize).min(from)..from].fill(true);
        producer.sent.fill(None);
        // Answers to earlier messages are obsolete.
        producer.inc += 1;
        let inc = producer.inc;
        self.after(1, Ev::Produce(0, inc));
    }
}

impl Monitor {
    pub(super) fn hears_rewind(&mut self, from: u64) {
        let lowest = self.taken_back.map_or(from, |known| known.min(from));
        self.taken_back = Some(lowest);
    }

    /// Whether a source has taken back blocks of this task, possibly including the block before, in the same
    /// group.
    pub(super) fn is_taken_back(&self, id: &TaskId) -> bool {
        let taken_back = self
            .taken_back
            .is_some_and(|from| id.block + 1 >= from & !1);
        taken_back && id.block >= self.cursor
    }
}

/// Payload of a block's message.
pub(crate) fn payload(block: u64, fork: u64) -> Vec<u8> {
    format!("{{\"block\":{block},\"forks\":[[{block},{fork}]]}}").into_bytes()
}

/// Part of a block's message: different for each fork, like a block's hash.
pub(crate) fn part(fork: u64) -> Part {
    Part::from_text(&format!("f{fork}"))
}

/// Fork of each block in a payload, including the members of a group.
pub(crate) fn forks_of(payload: &Payload) -> Result<BTreeMap<u64, u64>, String> {
    let mut forks = BTreeMap::new();
    let mut add = |block: u64, fork: u64| match forks.insert(block, fork) {
        Some(other) if other != fork => Err(format!(
            "it is of the forks {other} and {fork} of block {block}"
        )),
        _ => Ok(()),
    };
    match payload {
        Payload::Group { members, .. } => {
            for (_, member) in members {
                for (block, fork) in forks_of(member)? {
                    add(block, fork)?;
                }
            }
        }
        Payload::Inline { bytes, .. } => {
            let value: Value = serde_json::from_slice(bytes).map_err(|error| error.to_string())?;
            for pair in value["forks"].as_array().into_iter().flatten() {
                let number = |at: usize| pair[at].as_u64().ok_or("no fork");
                add(number(0)?, number(1)?)?;
            }
        }
        Payload::Blob { .. } => {}
    }
    Ok(forks)
}
