//! The service: the scheduler's jobs on threads.

mod jobs;

use std::collections::{BTreeMap, HashMap};
use std::fmt;
use std::sync::atomic::{AtomicUsize, Ordering};
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
use jobs::{Done, Prepared};

/// A verifier that was opened; [`run`](Self::run) keeps its deadlines and ends it.
#[derive(Debug)]
pub struct Service {
    shared: Arc<Shared>,
}

/// The reason why a verifier cannot be opened.
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
    /// Signals callers that wait for room that a verdict was given.
    pub(crate) room: Notify,
    /// Signals [`Service::run`] that the state may have changed.
    changed: Notify,
    /// Jobs of the trusted lane that wait for a thread.
    at_hand: AtomicUsize,
    /// Outcomes of jobs that are not reported to the scheduler yet.
    ended: Mutex<Vec<(Lane, Done)>>,
}

pub(crate) struct State {
    pub(crate) scheduler: Scheduler,
    pub(crate) work: HashMap<Ticket, Work>,
    pub(crate) waiting: HashMap<Ticket, Vec<oneshot::Sender<Verdict>>>,
    /// Verdicts that are not delivered yet.
    outgoing: Vec<Outgoing>,
    /// The time until which [`Service::run`] sleeps; `None` if it does not sleep until a set time.
    looks_at: Option<Micros>,
    pub(crate) figures: BTreeMap<usize, KindFigures>,
}

/// A verdict that is not delivered yet.
struct Outgoing {
    verdict: Verdict,
    /// The callers that wait for it.
    waiting: Vec<oneshot::Sender<Verdict>>,
    /// The request's finished work, kept only so that its memory is freed when the verdict is delivered.
    _work: Option<Work>,
}

/// The work of a request: its proof, or the claim that the proof was reduced to.
pub(crate) enum Work {
    /// The proof's bytes and its key.
    Proof(AnyProof),
    /// The claim, which is still to be checked.
    Claim(AnyClaim),
}

/// Niceness of the threads of the quarantine lane: the greatest possible, so that all other threads go first.
const NICE_APART: i32 = 19;

// === impl Service ===

impl Service {
    /// Starts the threads, which verify proofs from now on.
    ///
    /// # Errors
    ///
    /// [`Error::Threads`].
    pub fn open(options: Options) -> Result<(Self, Handle), Error> {
        let pools = [
            pool(Lane::Trusted, &options)?,
            pool(Lane::Quarantine, &options)?,
        ];
        let threads = pools[Lane::Trusted as usize].current_num_threads();
        let shared = Arc::new(Shared {
            pools,
            state: Mutex::new(State {
                scheduler: Scheduler::new(options.limits, threads),
                work: HashMap::new(),
                waiting: HashMap::new(),
                outgoing: Vec::new(),
                looks_at: None,
                figures: BTreeMap::new(),
            }),
            keys: Mutex::new(Keys::new(options.keys)),
            began: Instant::now(),
            room: Notify::new(),
            changed: Notify::new(),
            at_hand: AtomicUsize::new(0),
            ended: Mutex::new(Vec::new()),
            options,
        });
        let handle = Handle::of(shared.clone());
        Ok((Self { shared }, handle))
    }

    /// Runs until `shutdown` reaches [`Level::Stop`], when requests under way are answered as unavailable; or
    /// until all accepted requests are answered, once it reaches [`Level::Drain`].
    ///
    /// This future must be polled: it expires requests, gives sources of the quarantine lane their turns, and while all threads
    /// are at work reports the outcomes of jobs to the scheduler and delivers verdicts. A runtime that blocks its only
    /// thread delays all of these.
    pub async fn run(self, mut shutdown: Shutdown) {
        let mut level = Level::Run;
        loop {
            // Before the state is looked at, so that no change is missed.
            let changed = self.shared.changed.notified();
            let deadline = {
                let mut state = self.shared.state();
                self.shared.record_ended(&mut state);
                let now = self.shared.now();
                state.scheduler.expire(now);
                match level {
                    Level::Run => {}
                    Level::Drain => state.scheduler.close(),
                    Level::Stop => state.scheduler.stop(),
                }
                self.shared.advance(&mut state);
                // At a stop, requests in running jobs are answered already.
                let is_done = state.scheduler.is_idle() || level == Level::Stop;
                let deadline = state.next_event(now);
                state.looks_at = deadline;
                self.shared.hand_out(state);
                if level > Level::Run && is_done {
                    break;
                }
                deadline.map(|deadline| Duration::from_micros(deadline.since(now)))
            };
            let next = if level == Level::Run {
                Level::Drain
            } else {
                Level::Stop
            };
            tokio::select! {
                () = changed => {}
                // This also returns when the trigger was dropped.
                () = shutdown.reached(next) => level = next.max(shutdown.level()),
                () = tokio::time::sleep(deadline.unwrap_or(Duration::MAX)), if deadline.is_some() => {}
            }
        }
        self.shared.room.notify_waiters();
    }
}

fn pool(lane: Lane, options: &Options) -> Result<ThreadPool, ThreadPoolBuildError> {
    let pool = ThreadPoolBuilder::new().num_threads(options.threads);
    match lane {
        Lane::Trusted => pool.thread_name(|number| format!("verify-{number}")),
        Lane::Quarantine => pool
            .thread_name(|number| format!("apart-{number}"))
            .start_handler(|_| {
                // On Linux this sets the niceness of this thread alone. An error only means that the lane yields less.
                if let Err(error) = rustix::process::setpriority_process(None, NICE_APART) {
                    tracing::debug!(%error, "the quarantine lane has the same priority as the other");
                }
            }),
    }
    .build()
}

// === impl State ===

impl State {
    /// The next deadline, or the quarantine lane's next turn if that comes before.
    fn next_event(&self, now: Micros) -> Option<Micros> {
        let deadline = self.scheduler.next_deadline();
        let turn = self.scheduler.next_turn(now);
        deadline.into_iter().chain(turn).min()
    }

    /// Whether an event is due before [`Service::run`] wakes by itself. It is not woken for later events: waking a
    /// thread for each request and each job would take processor time from the next one.
    pub(crate) fn is_awaited(&self, now: Micros) -> bool {
        let next = self.next_event(now);
        next.is_some_and(|next| self.looks_at.is_none_or(|looks_at| next < looks_at))
    }
}

// === impl Shared ===

impl Shared {
    pub(crate) fn state(&self) -> MutexGuard<'_, State> {
        // The state is changed in small steps that do not panic; jobs compute outside the lock.
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub(crate) fn now(&self) -> Micros {
        Micros(self.began.elapsed().as_micros() as u64)
    }

    /// Runs something on a thread of the trusted lane.
    pub(crate) fn spawn(&self, work: impl FnOnce() + Send + 'static) {
        self.pools[Lane::Trusted as usize].spawn(work);
    }

    /// Collects verdicts, which [`hand_out`](Self::hand_out) gives to those who wait, and starts the jobs that lanes take.
    pub(crate) fn advance(self: &Arc<Self>, state: &mut State) {
        self.collect(state);
        for lane in Lane::ALL {
            while state.scheduler.takes_job(lane)
                && let Some(job) = state.scheduler.next(self.now(), lane)
            {
                let job = self.prepare(state, job);
                self.start(lane, job);
            }
        }
    }

    fn start(self: &Arc<Self>, lane: Lane, job: Prepared) {
        let shared = self.clone();
        let pool = &self.pools[lane as usize];
        match lane {
            Lane::Trusted => {
                self.at_hand.fetch_add(1, Ordering::Relaxed);
                pool.spawn(move || {
                    shared.at_hand.fetch_sub(1, Ordering::Relaxed);
                    let done = job.run(&shared);
                    shared.ended().push((lane, done));
                    // Reporting a batch to the scheduler takes as long as verifying a proof, and so does waking the tasks
                    // that wait for its verdicts: another thread does both while this one has a next job.
                    if shared.at_hand.load(Ordering::Relaxed) > 0 {
                        shared.wake();
                    } else {
                        shared.finish();
                    }
                });
            }
            Lane::Quarantine => pool.spawn(move || {
                let done = job.run(&shared);
                shared.ended().push((lane, done));
                // A thread of the quarantine lane that held the state could be kept from going on by all others, which would
                // then wait for the state.
                let to = shared.clone();
                to.spawn(move || shared.finish());
            }),
        }
    }

    /// Reports the outcomes of jobs to the scheduler and starts the next jobs.
    fn finish(self: &Arc<Self>) {
        let mut state = self.state();
        self.record_ended(&mut state);
        let now = self.now();
        self.advance(&mut state);
        let has_work = state.scheduler.is_busy(Lane::Trusted);
        let is_left = has_work && !state.outgoing.is_empty();
        // It may have been the last one.
        let is_awaited = is_left || state.scheduler.is_closed() || state.is_awaited(now);
        if has_work {
            drop(state);
        } else {
            self.hand_out(state);
        }
        if is_awaited {
            self.wake();
        }
    }

    /// Reports the outcomes of jobs to the scheduler.
    fn record_ended(&self, state: &mut State) {
        let ended = std::mem::take(&mut *self.ended());
        for (lane, done) in ended {
            let threads = self.pools[lane as usize].current_num_threads();
            let taken_us = done.taken_us(threads);
            self.record(state, done);
            state.scheduler.ended(self.now(), lane, taken_us);
        }
    }

    fn ended(&self) -> MutexGuard<'_, Vec<(Lane, Done)>> {
        self.ended.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn collect(&self, state: &mut State) {
        let verdicts = state.scheduler.take_verdicts();
        if verdicts.is_empty() {
            return;
        }
        for (ticket, verdict) in verdicts {
            let outgoing = Outgoing {
                verdict,
                waiting: state.waiting.remove(&ticket).unwrap_or_default(),
                _work: state.work.remove(&ticket),
            };
            state.outgoing.push(outgoing);
        }
        if state.scheduler.is_closed() {
            // It may have been the last one.
            self.wake();
        }
    }

    /// Delivers verdicts to the waiting callers after unlocking the state, since a woken caller may lock it.
    pub(crate) fn hand_out(&self, mut state: MutexGuard<'_, State>) {
        let verdicts = std::mem::take(&mut state.outgoing);
        drop(state);
        if verdicts.is_empty() {
            return;
        }
        for outgoing in verdicts {
            for waiter in outgoing.waiting {
                // An error means that the caller has gone; the verdict is remembered for a while.
                let _ = waiter.send(outgoing.verdict.clone());
            }
        }
        self.room.notify_waiters();
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
