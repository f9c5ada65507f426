//! A worker's side: the shards that it makes.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, mpsc};
use std::time::{Duration, Instant};

use tokio::sync::watch;

use super::message::{PIECE_BYTES_MAX, Reply, Request, ShardId};
use super::work::Share;

/// Most shards that a process makes at a time.
pub(super) const SHARDS_MAX: usize = 8;

/// Time after which a shard is dropped that no message came for.
const SILENCE_MAX: Duration = Duration::from_secs(60);

/// Longest time that a reply waits for an answer. The leader asks again, and so sees that the worker is alive.
const ANSWER_WAIT_MAX: Duration = Duration::from_secs(1);

/// The keys of shards: what a worker needs to make one, over any curve.
pub(in crate::provers::partition) trait ShardMaker:
    Send + Sync + 'static
{
    /// The number of parts, and the bytes of each when it is proved.
    fn parts(&self) -> (usize, usize);

    /// Makes a shard: see [`make_shard`](super::make_shard).
    fn make(
        &self,
        share: Share,
        parts: &[u8],
        messages: &mut dyn Iterator<Item = Vec<u8>>,
        answer: &mut dyn FnMut(Vec<u8>),
    ) -> Result<(), String>;
}

/// A function that returns the maker of shards, which reads keys at its first call.
type GetMaker = dyn Fn() -> Result<Arc<dyn ShardMaker>, String> + Send + Sync;

/// The shards that a process makes for leaders, each on a thread of its own.
pub(in crate::provers::partition) struct ShardServer {
    maker: Box<GetMaker>,
    shards: Mutex<BTreeMap<ShardId, ServedShard>>,
}

/// A shard, for one leader.
struct ServedShard {
    share: Share,
    /// Bytes of the proved parts that are still to come.
    missing: usize,
    /// The proved parts, until the shard's thread has them.
    parts: Vec<u8>,
    /// The thread, after the first message.
    thread: Option<ShardThread>,
    /// Time of the latest message.
    latest: Instant,
}

/// The thread that makes a shard. It ends when the sender of messages is dropped.
struct ShardThread {
    messages: mpsc::Sender<Vec<u8>>,
    sent: usize,
    answers: watch::Receiver<Answers>,
}

/// The answers so far.
#[derive(Default)]
struct Answers {
    made: Vec<Vec<u8>>,
    /// The reason why there will be no more.
    failure: Option<String>,
}

// === impl ShardServer ===

impl ShardServer {
    /// No shard yet.
    pub(in crate::provers::partition) fn new(
        maker: impl Fn() -> Result<Arc<dyn ShardMaker>, String> + Send + Sync + 'static,
    ) -> Self {
        Self {
            maker: Box::new(maker),
            shards: Mutex::default(),
        }
    }

    fn shards(&self) -> MutexGuard<'_, BTreeMap<ShardId, ServedShard>> {
        self.shards.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Drops shards of leaders that have gone.
    pub(super) fn drop_silent(&self) {
        self.shards()
            .retain(|_, shard| shard.latest.elapsed() < SILENCE_MAX);
    }

    /// Does what the leader asks, apart from `Find`, which is answered by whoever knows the worker's subject.
    pub(super) async fn reply(self: &Arc<Self>, request: Request) -> Reply {
        let done = match request {
            Request::Find => Err("this subject is one worker's".to_owned()),
            Request::Begin { id, share } => {
                // Keys may have to be fetched.
                let server = Arc::clone(self);
                let begun = tokio::task::spawn_blocking(move || server.begin(id, share)).await;
                begun.unwrap_or_else(|_| Err("the keys cannot be read".to_owned()))
            }
            Request::Parts { id, offset, bytes } => self.take(id, offset as usize, &bytes),
            Request::End { id } => {
                self.shards().remove(&id);
                Ok(())
            }
            Request::Message { id, step, bytes } => {
                let step = step as usize;
                return match self.give(id, step, bytes) {
                    Ok(answers) => answer(answers, step).await,
                    Err(why) => Reply::Refused(why),
                };
            }
        };
        done.map_or_else(Reply::Refused, |()| Reply::Done)
    }

    fn begin(&self, id: ShardId, share: Share) -> Result<(), String> {
        let sharding = share.sharding()?;
        let (count, bytes) = (self.maker)()?.parts();
        if sharding.count() != count {
            let asked = sharding.count();
            return Err(format!(
                "a shard of {asked} parts: the keys here are of {count}"
            ));
        }
        self.drop_silent();
        let mut shards = self.shards();
        if let Some(known) = shards.get(&id) {
            return match known.share == share {
                true => Ok(()),
                false => Err("another shard has this identification".to_owned()),
            };
        }
        if shards.len() >= SHARDS_MAX {
            return Err(format!("{SHARDS_MAX} shards are made here already"));
        }
        let missing = sharding.places(share.shard as usize).len() * bytes;
        let shard = ServedShard {
            share,
            missing,
            parts: Vec::new(),
            thread: None,
            latest: Instant::now(),
        };
        shards.insert(id, shard);
        Ok(())
    }

    fn take(&self, id: ShardId, offset: usize, bytes: &[u8]) -> Result<(), String> {
        let mut shards = self.shards();
        let shard = shards.get_mut(&id).ok_or_else(unknown)?;
        shard.latest = Instant::now();
        if bytes.len() > PIECE_BYTES_MAX {
            return Err(format!("{} bytes of parts in one message", bytes.len()));
        }
        let has_parts = shard.thread.is_none();
        if !has_parts || offset + bytes.len() <= shard.parts.len() {
            // A piece that came before.
            return Ok(());
        }
        if offset != shard.parts.len() || bytes.len() > shard.missing {
            return Err("parts that do not follow those before".to_owned());
        }
        shard.parts.extend_from_slice(bytes);
        shard.missing -= bytes.len();
        Ok(())
    }

    /// Gives a message to the shard's thread, unless it has it already.
    fn give(
        &self,
        id: ShardId,
        step: usize,
        message: Vec<u8>,
    ) -> Result<watch::Receiver<Answers>, String> {
        let mut shards = self.shards();
        let shard = shards.get_mut(&id).ok_or_else(unknown)?;
        shard.latest = Instant::now();
        if shard.missing > 0 {
            return Err(format!("{} bytes of its parts are missing", shard.missing));
        }
        let thread = match &mut shard.thread {
            Some(thread) => thread,
            none => {
                let parts = std::mem::take(&mut shard.parts);
                none.insert(ShardThread::start((self.maker)()?, shard.share, parts)?)
            }
        };
        if step > thread.sent {
            return Err(format!("message {step} before message {}", thread.sent));
        }
        if step == thread.sent {
            // A thread that has ended says why in its answers.
            let _ = thread.messages.send(message);
            thread.sent += 1;
        }
        Ok(thread.answers.clone())
    }
}

fn unknown() -> String {
    "no such shard is made here".to_owned()
}

/// The reply with the answer to a message, when it is made.
async fn answer(mut answers: watch::Receiver<Answers>, step: usize) -> Reply {
    let is_there = |answers: &Answers| answers.made.len() > step || answers.failure.is_some();
    let made = tokio::time::timeout(ANSWER_WAIT_MAX, answers.wait_for(is_there)).await;
    match made {
        Err(_) => Reply::Working,
        Ok(Err(_)) => Reply::Refused("the shard failed".to_owned()),
        Ok(Ok(answers)) => match (answers.made.get(step), &answers.failure) {
            (Some(answer), _) => Reply::Answer(answer.clone()),
            (None, failure) => Reply::Refused(failure.clone().unwrap_or_default()),
        },
    }
}

// === impl ShardThread ===

impl ShardThread {
    fn start(maker: Arc<dyn ShardMaker>, share: Share, parts: Vec<u8>) -> Result<Self, String> {
        let (messages, coming) = mpsc::channel::<Vec<u8>>();
        let (answered, answers) = watch::channel(Answers::default());
        let run = move || {
            let made = maker.make(share, &parts, &mut coming.into_iter(), &mut |answer| {
                answered.send_modify(|answers| answers.made.push(answer));
            });
            if let Err(why) = made {
                answered.send_modify(|answers| answers.failure = Some(why));
            }
        };
        let thread = std::thread::Builder::new().name("shard".to_owned());
        thread.spawn(run).map_err(|error| error.to_string())?;
        Ok(Self {
            messages,
            sent: 0,
            answers,
        })
    }
}
