//! The service: the scheduler's jobs on threads.

mod jobs;

use std::collections::{BTreeMap, HashMap};
use std::fmt;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use proofmill_shutdown::{Level, Shutdown};
use rayon::{ThreadPool, ThreadPoolBuildError, ThreadPoolBuilder};
use tokio::sync::{Notify, oneshot};

use crate::erased::{AnyClaim, AnyProof};
use crate::figures::KindFigures;
use crate::handle::Handle;
use crate::keys::Keys;
use crate::options::Options;
use crate::schedule::{Lane, Micros, Scheduler, Ticket};
use crate::verdict::Verdict;
use jobs::Done;

/// A verifier that was opened; [`run`](Self::run) keeps its deadlines and ends it.
#[derive(Debug)]
pub struct Service {
    shared: Arc<Shared>,
}

/// The reason for which a verifier cannot be opened.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// The system gives no threads.
    #[error("the system gives no threads: {0}")]
    Threads(#[from] ThreadPoolBuildError),
}

/// State that the service, its handles and its jobs share.
pub(crate) struct Shared {
    pub(crate) options: Options,
    pools: [ThreadPool; 2],
    state: Mutex<State>,
    pub(crate) keys: Mutex<Keys>,
    began: Instant,
    /// A verdict was given: there may be room for more.
    pub(crate) room: Notify,
    /// Something may have changed that [`Service::run`] waits for.
    changed: Notify,
}

pub(crate) struct State {
    pub(crate) scheduler: Scheduler,
    pub(crate) work: HashMap<Ticket, Work>,
    pub(crate) waiting: HashMap<Ticket, Vec<oneshot::Sender<Verdict>>>,
    /// Jobs in each lane.
    running: [usize; 2],
    /// The time at which [`Service::run`] looks at the state by itself, if it sleeps until then.
    looks_at: Option<Micros>,
    pub(crate) figures: BTreeMap<usize, KindFigures>,
}

/// A request's proof, or the claim that it was reduced to.
pub(crate) enum Work {
    /// Its bytes, and its key.
    Proof(AnyProof),
    /// The claim, which is left to check.
    Claim(AnyClaim),
}

/// The niceness of threads of the lane apart: the greatest there is, so that all others go first.
const NICE_APART: i32 = 19;

// === impl Service ===

impl Service {
    /// Starts the threads. Proofs are verified from now on.
    ///
    /// # Errors
    ///
    /// [`Error::Threads`].
    pub fn open(options: Options) -> Result<(Self, Handle), Error> {
        let pools = [pool(Lane::Common, &options)?, pool(Lane::Apart, &options)?];
        let threads = pools[Lane::Common as usize].current_num_threads();
        let shared = Arc::new(Shared {
            pools,
            state: Mutex::new(State {
                scheduler: Scheduler::new(options.limits, threads),
                work: HashMap::new(),
                waiting: HashMap::new(),
                running: [0; 2],
                looks_at: None,
                figures: BTreeMap::new(),
            }),
            keys: Mutex::new(Keys::new(options.keys)),
            began: Instant::now(),
            room: Notify::new(),
            changed: Notify::new(),
            options,
        });
        let handle = Handle::of(shared.clone());
        Ok((Self { shared }, handle))
    }

    /// Works until `shutdown` says [`Level::Stop`], when requests under way are answered as unavailable;
    /// or until all that was accepted is answered, once it says [`Level::Drain`].
    ///
    /// Proofs are verified while this is polled: requests expire in here, and sources whose proofs were false
    /// get their turns from here. A runtime that blocks its only thread holds both up.
    pub async fn run(self, mut shutdown: Shutdown) {
        let mut level = Level::Run;
        loop {
            // Before the state is looked at, so that no change is missed.
            let changed = self.shared.changed.notified();
            let deadline = {
                let mut state = self.shared.state();
                let now = self.shared.now();
                state.scheduler.expire(now);
                match level {
                    Level::Run => {}
                    Level::Drain => state.scheduler.close(),
                    Level::Stop => state.scheduler.stop(),
                }
                self.shared.advance(&mut state);
                // What a job still works on has its answer.
                let is_done = state.scheduler.is_idle() || level == Level::Stop;
                if level > Level::Run && is_done {
                    break;
                }
                let deadline = state.next_event(now);
                state.looks_at = deadline;
                deadline.map(|deadline| Duration::from_micros(deadline.since(now)))
            };
            let next = if level == Level::Run {
                Level::Drain
            } else {
                Level::Stop
            };
            tokio::select! {
                () = changed => {}
                // Also where whoever could raise it is gone.
                () = shutdown.reached(next) => level = next.max(shutdown.level()),
                () = tokio::time::sleep(deadline.unwrap_or(Duration::MAX)), if deadline.is_some() => {}
            }
        }
        self.shared.room.notify_waiters();
    }
}

/// Jobs that a thread of a lane is given at a time. The lane apart has the next one at hand, since the end of
/// the last one is told to the scheduler by another thread.
fn jobs_of_thread(lane: Lane) -> usize {
    match lane {
        Lane::Common => 1,
        Lane::Apart => 2,
    }
}

fn pool(lane: Lane, options: &Options) -> Result<ThreadPool, ThreadPoolBuildError> {
    let pool = ThreadPoolBuilder::new().num_threads(options.threads);
    match lane {
        Lane::Common => pool.thread_name(|number| format!("verify-{number}")),
        Lane::Apart => pool
            .thread_name(|number| format!("apart-{number}"))
            .start_handler(|_| {
                // Of this thread alone, on Linux. Without it the lane is only not first.
                if let Err(error) = rustix::process::setpriority_process(None, NICE_APART) {
                    tracing::debug!(%error, "the lane apart has the same priority as the other");
                }
            }),
    }
    .build()
}

// === impl State ===

impl State {
    /// The next deadline, or the lane apart's next turn if that comes before.
    fn next_event(&self, now: Micros) -> Option<Micros> {
        let deadline = self.scheduler.next_deadline();
        let turn = self.scheduler.next_turn(now);
        deadline.into_iter().chain(turn).min()
    }

    /// Whether something is due before [`Service::run`] looks at the state. It is not woken for what is due later: a
    /// thread that woke for each request and each job would take a processor from the next one.
    pub(crate) fn is_awaited(&self, now: Micros) -> bool {
        let next = self.next_event(now);
        next.is_some_and(|next| self.looks_at.is_none_or(|looks_at| next < looks_at))
    }
}

// === impl Shared ===

impl Shared {
    pub(crate) fn state(&self) -> MutexGuard<'_, State> {
        // The state is changed by small steps that do not panic; what a job computes is outside.
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub(crate) fn now(&self) -> Micros {
        Micros(self.began.elapsed().as_micros() as u64)
    }

    /// Runs something on a thread of the common lane.
    pub(crate) fn spawn(&self, work: impl FnOnce() + Send + 'static) {
        self.pools[Lane::Common as usize].spawn(work);
    }

    /// Hands out verdicts, and starts jobs on threads that are free.
    pub(crate) fn advance(self: &Arc<Self>, state: &mut State) {
        self.deliver(state);
        for lane in Lane::ALL {
            let pool = &self.pools[lane as usize];
            let most = pool.current_num_threads() * jobs_of_thread(lane);
            while state.running[lane as usize] < most
                && let Some(job) = state.scheduler.next(self.now(), lane)
            {
                state.running[lane as usize] += 1;
                let job = self.prepare(state, job);
                let shared = self.clone();
                pool.spawn(move || {
                    let done = job.run(&shared);
                    match lane {
                        Lane::Common => shared.finish(lane, done),
                        // A thread of the lane apart that held the state could be kept from going on by all
                        // others, which would then wait for the state.
                        Lane::Apart => {
                            let to = shared.clone();
                            to.pools[Lane::Common as usize]
                                .spawn(move || shared.finish(lane, done));
                        }
                    }
                });
            }
        }
    }

    /// Tells the scheduler what a job came to, and goes on.
    fn finish(self: &Arc<Self>, lane: Lane, done: Done) {
        let mut state = self.state();
        state.running[lane as usize] -= 1;
        let threads = self.pools[lane as usize].current_num_threads();
        let taken_us = done.taken_us(threads);
        self.record(&mut state, done);
        let now = self.now();
        state.scheduler.ended(now, lane, taken_us);
        self.advance(&mut state);
        // It may have been the last one.
        if state.scheduler.is_closed() || state.is_awaited(now) {
            self.wake();
        }
    }

    fn deliver(&self, state: &mut State) {
        let verdicts = state.scheduler.take_verdicts();
        if verdicts.is_empty() {
            return;
        }
        for (ticket, verdict) in verdicts {
            state.work.remove(&ticket);
            for waiter in state.waiting.remove(&ticket).into_iter().flatten() {
                // Whoever asked has gone: the verdict is remembered for a while.
                let _ = waiter.send(verdict.clone());
            }
        }
        self.room.notify_waiters();
        if state.scheduler.is_closed() {
            // It may have been the last one.
            self.wake();
        }
    }

    /// Wakes [`Service::run`].
    pub(crate) fn wake(&self) {
        self.changed.notify_one();
    }
}

impl fmt::Debug for Shared {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Shared")
            .field("options", &self.options)
            .finish_non_exhaustive()
    }
}
