//! The leader's side of the bus: the workers that make shards, and others that replace them.

use std::time::{Duration, Instant};

use ark_std::rand::RngCore;
use ark_std::rand::rngs::OsRng;
use futures_util::future::{BoxFuture, join_all};
use proofmill_aggregation::sharded::Sharding;

use super::message::{PIECE_BYTES_MAX, Reply, Request, ShardId};
use super::work::Share;

/// Longest time for one answer, while the worker says that it is working.
const ANSWER_TIME_MAX: Duration = Duration::from_secs(600);

/// The connection of the leader to workers.
pub(super) trait Network: Send + Sync {
    /// The names of the workers that are there, each once.
    fn find(&self) -> BoxFuture<'_, Vec<String>>;

    /// A worker's reply; a reason if there is none.
    fn ask<'a>(&'a self, worker: &'a str, request: Request)
    -> BoxFuture<'a, Result<Reply, String>>;
}

/// The makers of an aggregation's shards.
pub(super) struct Crew<'a> {
    network: &'a dyn Network,
    members: Vec<Member>,
    /// Workers without a shard.
    spare: Vec<String>,
    /// The messages so far.
    sent: Vec<Vec<u8>>,
    /// For each message that is answered the names of the workers that answered it, in the order of the shards.
    answered_by: Vec<Vec<String>>,
}

/// A worker with its shard.
struct Member {
    worker: String,
    id: ShardId,
    share: Share,
    /// The proved parts at the shard's places.
    parts: Vec<u8>,
}

/// A worker that does not make its shard.
struct Lost {
    shard: usize,
    why: String,
}

// === impl Crew ===

impl<'a> Crew<'a> {
    /// A crew for `shards` shards of these proved parts, or for as many fewer as there are workers: a power of two. `None`
    /// if there are not two.
    pub(super) async fn find(
        network: &'a dyn Network,
        shards: usize,
        parts: &[Vec<u8>],
    ) -> Option<Self> {
        let mut workers = network.find().await;
        let most = shards.min(workers.len()).min(parts.len());
        let shards = 1 << most.checked_ilog2()?;
        if shards < 2 {
            return None;
        }
        let sharding = Sharding::new(parts.len(), shards).ok()?;
        let spare = workers.split_off(shards);
        let members = workers
            .into_iter()
            .enumerate()
            .map(|(shard, worker)| Member {
                worker,
                id: new_id(),
                share: Share {
                    parts: parts.len() as u32,
                    shards: shards as u32,
                    shard: shard as u32,
                },
                parts: sharding.items(shard, parts).concat(),
            });
        Some(Self {
            members: members.collect(),
            network,
            spare,
            sent: Vec::new(),
            answered_by: Vec::new(),
        })
    }

    /// The number of shards.
    pub(super) const fn shards(&self) -> usize {
        self.members.len()
    }

    /// The name of a shard's worker.
    pub(super) fn worker(&self, shard: usize) -> &str {
        &self.members[shard].worker
    }

    /// The name of the worker that gave a shard's answer of this number, from 0; it may have been replaced since.
    pub(super) fn worker_of_answer(&self, shard: usize, answer: usize) -> &str {
        &self.answered_by[answer][shard]
    }

    /// The answers of all shards to the next message, in their order. A worker that gives none is replaced.
    pub(super) async fn answers(&mut self, message: Vec<u8>) -> Result<Vec<Vec<u8>>, String> {
        self.sent.push(message);
        let step = self.sent.len() - 1;
        let all = join_all((0..self.shards()).map(|shard| self.answer(shard, step))).await;
        let mut answers = Vec::with_capacity(all.len());
        for answer in all {
            answers.push(match answer {
                Ok(answer) => answer,
                Err(lost) => self.replace(lost).await?,
            });
        }
        let workers = self.members.iter().map(|member| member.worker.clone());
        self.answered_by.push(workers.collect());
        Ok(answers)
    }

    /// Tells the workers that their shards are no longer needed.
    pub(super) async fn end(self) {
        let ended = self.members.iter().map(|member| {
            let request = Request::End { id: member.id };
            self.network.ask(&member.worker, request)
        });
        // A worker that does not hear it drops the shard when it has been silent for a while.
        join_all(ended).await;
    }

    /// The answer of a shard's present worker to a message. It is given the shard's parts before the first one.
    async fn answer(&self, shard: usize, step: usize) -> Result<Vec<u8>, Lost> {
        let member = &self.members[shard];
        let lost = |why| Lost { shard, why };
        if step == 0 {
            self.give_parts(member).await.map_err(lost)?;
        }
        self.ask_until_answered(member, step).await.map_err(lost)
    }

    /// Gives a lost worker's shard to one that has none, with all messages, and returns its answer to the last.
    async fn replace(&mut self, lost: Lost) -> Result<Vec<u8>, String> {
        let Lost { shard, mut why } = lost;
        loop {
            let worker = &self.members[shard].worker;
            tracing::warn!(
                worker,
                shard,
                why,
                "a worker does not make its shard of the aggregation"
            );
            let Some(next) = self.spare.pop() else {
                return Err(format!("no worker is left for shard {shard}"));
            };
            let member = &mut self.members[shard];
            (member.worker, member.id) = (next, new_id());
            match self.answer_again(shard).await {
                Ok(answer) => return Ok(answer),
                Err(lost) => why = lost.why,
            }
        }
    }

    /// The last answer of a worker that has a shard anew.
    async fn answer_again(&self, shard: usize) -> Result<Vec<u8>, Lost> {
        let mut last = Vec::new();
        for step in 0..self.sent.len() {
            last = self.answer(shard, step).await?;
        }
        Ok(last)
    }

    async fn give_parts(&self, member: &Member) -> Result<(), String> {
        let Member { id, share, .. } = *member;
        let begin = Request::Begin { id, share };
        let pieces = member.parts.chunks(PIECE_BYTES_MAX).enumerate();
        let pieces = pieces.map(|(number, piece)| Request::Parts {
            id,
            offset: (number * PIECE_BYTES_MAX) as u32,
            bytes: piece.to_vec(),
        });
        for request in std::iter::once(begin).chain(pieces) {
            match self.network.ask(&member.worker, request).await? {
                Reply::Done => {}
                other => return Err(unexpected(other)),
            }
        }
        Ok(())
    }

    async fn ask_until_answered(&self, member: &Member, step: usize) -> Result<Vec<u8>, String> {
        let end = Instant::now() + ANSWER_TIME_MAX;
        let mut bytes = self.sent[step].clone();
        while Instant::now() < end {
            let (id, step) = (member.id, step as u32);
            let request = Request::Message { id, step, bytes };
            match self.network.ask(&member.worker, request).await? {
                Reply::Answer(answer) => return Ok(answer),
                // It has the message.
                Reply::Working => bytes = Vec::new(),
                other => return Err(unexpected(other)),
            }
        }
        let seconds = ANSWER_TIME_MAX.as_secs();
        Err(format!("it has worked for {seconds} s on one answer"))
    }
}

fn new_id() -> ShardId {
    let mut id = ShardId::default();
    OsRng.fill_bytes(&mut id);
    id
}

fn unexpected(reply: Reply) -> String {
    match reply {
        Reply::Refused(why) => why,
        _ => "its reply is not to what it was asked".to_owned(),
    }
}
