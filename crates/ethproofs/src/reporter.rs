//! Reports: their order, their times, and those that are given up.

use std::collections::BTreeMap;
use std::time::Duration;

use crate::answer::{Answer, Verdict};
use crate::call::{Call, Step};
use crate::journal::Record;
use crate::pace::{Pace, wait_ms};
use crate::pending::{Evicted, Pending};
use crate::score::{Score, Scores, WINDOW_MS};
use crate::spool::Kept;
use crate::under_way::UnderWay;

/// Most calls in flight while the site works; one while it does not.
const CALLS_MAX: usize = 4;

/// Options of a reporter.
#[derive(Clone, Debug)]
pub struct ReporterOptions {
    /// Only blocks that are multiples of this number are reported and count; at least 1.
    pub every: u64,
    /// Most calls in any minute. The site allows 60 by default.
    pub calls_per_minute: u32,
    /// Most blocks with a report that the site has not taken.
    pub blocks_max: usize,
    /// Most bytes of their proofs.
    pub bytes_max: u64,
}

/// The present time.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Now {
    /// Time of a clock that never goes back, milliseconds.
    pub mono_ms: u64,
    /// Milliseconds since 1970-01-01 UTC.
    pub wall_ms: u64,
}

/// An input.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Event {
    /// The mill has accepted a block.
    Accepted {
        /// Block.
        block: u64,
        /// Time, milliseconds since 1970-01-01 UTC.
        at_ms: u64,
    },
    /// A worker was given the first task of a block.
    Begun {
        /// Block.
        block: u64,
        /// Time, milliseconds since 1970-01-01 UTC.
        at_ms: u64,
    },
    /// A block's proof is in its file. Its time came from [`Reporter::emitted`].
    Kept(Kept),
    /// A block's proof cannot be reported, for this reason.
    Unkept {
        /// Block.
        block: u64,
        /// Reason.
        reason: DropReason,
    },
    /// A call was answered.
    Answered {
        /// Number of the call.
        call: u64,
        /// The answer.
        answer: Answer,
    },
    /// Time has passed.
    Tick,
}

/// The reason why a report was given up.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum DropReason {
    /// There were too many, or too many bytes of proofs.
    Full,
    /// It was older than the scores' window.
    Old,
    /// The site refused it.
    Refused,
    /// The time at which proving began is not known.
    UnknownStart,
    /// The message is about several blocks: the site has no call for that.
    Span,
    /// The message has no proof where the settings say.
    Unreadable,
    /// The proof could not be fetched or kept.
    Lost,
}

/// An output.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Output {
    /// Make a call; answer with [`Event::Answered`].
    Call(Call),
    /// Remove the file of a block's proof.
    Forget {
        /// Block.
        block: u64,
    },
    /// Write a record to the score's file.
    Record(Record),
    /// A report was given up. For people and counters.
    Dropped {
        /// Block.
        block: u64,
        /// Step.
        step: Step,
        /// Reason.
        reason: DropReason,
    },
    /// A call has ended. For people and counters.
    Ended {
        /// Block.
        block: u64,
        /// Step.
        step: Step,
        /// Meaning of the answer.
        verdict: Verdict,
    },
}

/// The reporter of one workflow.
#[derive(Debug)]
pub struct Reporter {
    options: ReporterOptions,
    under_way: UnderWay,
    pending: Pending,
    pace: Pace,
    score: Score,
    /// Times at which the pending proofs were made.
    proved_ms: BTreeMap<u64, u64>,
    /// Blocks and steps of the calls in flight, by number.
    calls: BTreeMap<u64, (u64, Step)>,
    next_call: u64,
}

// === impl ReporterOptions ===

impl Default for ReporterOptions {
    fn default() -> Self {
        Self {
            every: 1,
            calls_per_minute: 55,
            blocks_max: 8_192,
            bytes_max: 4 << 30,
        }
    }
}

// === impl DropReason ===

impl DropReason {
    /// All reasons.
    pub const ALL: [Self; 7] = [
        Self::Full,
        Self::Old,
        Self::Refused,
        Self::UnknownStart,
        Self::Span,
        Self::Unreadable,
        Self::Lost,
    ];

    /// Name of the reason, as a label of metrics.
    pub fn name(self) -> &'static str {
        match self {
            Self::Full => "full",
            Self::Old => "old",
            Self::Refused => "refused",
            Self::UnknownStart => "unknown_start",
            Self::Span => "span",
            Self::Unreadable => "unreadable",
            Self::Lost => "lost",
        }
    }
}

// === impl Output ===

impl Output {
    /// The call, if it is one.
    pub fn as_call(&self) -> Option<&Call> {
        match self {
            Self::Call(call) => Some(call),
            _ => None,
        }
    }
}

// === impl Reporter ===

impl Reporter {
    /// A reporter without reports.
    pub fn new(options: ReporterOptions) -> Self {
        let score = Score::new(options.every);
        Self::restored(options, score, Vec::new())
    }

    /// A reporter that continues with the score and the proofs that an earlier one kept.
    pub fn restored(options: ReporterOptions, score: Score, kept: Vec<Kept>) -> Self {
        let mut reporter = Self {
            under_way: UnderWay::default(),
            pending: Pending::default(),
            pace: Pace::new(options.calls_per_minute),
            score,
            proved_ms: BTreeMap::new(),
            calls: BTreeMap::new(),
            next_call: 0,
            options,
        };
        for kept in kept {
            let (block, proof) = (kept.block, kept.proof);
            // The process may have ended between the two writes.
            let proving_ms = proof.proving_ms;
            reporter.score.note(Record::Proved { block, proving_ms });
            reporter.pending.add(block, Step::Proved, Some(proof));
            reporter.proved_ms.insert(block, kept.proved_ms);
        }
        reporter
    }

    /// Whether blocks like this one are reported.
    pub fn reports(&self, block: u64) -> bool {
        self.score.counts(block)
    }

    /// Whether the block was accepted, and no proof of it is known. Then it was emitted just before a restart, if it is not
    /// under way any more.
    pub fn lacks_proof(&self, block: u64) -> bool {
        self.score.is_unproved(block)
    }

    /// Notes that a block was emitted, whose last result came at `proved_ms` (milliseconds since 1970-01-01 UTC). Returns
    /// the time that its proof took; `None` if that is not known, or if the site has the proof.
    ///
    /// The time is from the first worker's start, or from the block's acceptance if the start is not known.
    ///
    /// # Errors
    /// [`DropReason::UnknownStart`].
    pub fn emitted(&mut self, block: u64, proved_ms: u64) -> Result<Option<u64>, DropReason> {
        let begun_ms = self.under_way.emitted(block);
        if self.score.is_reported(block) || self.proved_ms.contains_key(&block) {
            return Ok(None);
        }
        let begun_ms = begun_ms.ok_or(DropReason::UnknownStart)?;
        Ok(Some(proved_ms.saturating_sub(begun_ms).max(1)))
    }

    /// Handles an event. Times must not go back.
    pub fn handle(&mut self, now: Now, event: Event) -> Vec<Output> {
        let mut outputs = Vec::new();
        match event {
            Event::Accepted { block, at_ms } => self.accepted(block, at_ms, &mut outputs),
            Event::Begun { block, at_ms } => self.begun(block, at_ms),
            Event::Kept(kept) => self.kept(kept, &mut outputs),
            Event::Unkept { block, reason } => {
                self.pending.forget(block);
                outputs.push(dropped(block, Step::Proved, reason));
            }
            Event::Answered { call, answer } => self.answered(now, call, &answer, &mut outputs),
            Event::Tick => {}
        }
        self.score.expire(now.wall_ms);
        self.make_room(now, &mut outputs);
        self.call(now, &mut outputs);
        outputs
    }

    /// Time at which [`Event::Tick`] is due, by the clock of [`Now::mono_ms`]; `None` if nothing waits for time alone.
    pub fn due_ms(&self) -> Option<u64> {
        if self.calls.len() >= self.calls_max() {
            return None;
        }
        let due_ms = self.pending.due_ms()?;
        Some(due_ms.max(self.pace.due_ms()))
    }

    /// Number of pending reports of each step, in the order of [`Step::ALL`].
    pub fn pending(&self) -> [usize; 3] {
        self.pending.counts()
    }

    /// Bytes of the pending proofs.
    pub fn pending_bytes(&self) -> u64 {
        self.pending.bytes()
    }

    /// Calls without success since the last one with it.
    pub fn failures(&self) -> u32 {
        self.pace.failures()
    }

    /// The scores at this time, milliseconds since 1970-01-01 UTC.
    pub fn scores(&self, wall_ms: u64) -> Scores {
        self.score.scores(wall_ms)
    }

    /// The score, for its file.
    pub fn score(&self) -> &Score {
        &self.score
    }

    /// Calls in flight.
    pub fn in_flight(&self) -> usize {
        self.calls.len()
    }

    fn accepted(&mut self, block: u64, at_ms: u64, outputs: &mut Vec<Output>) {
        if !self.reports(block) {
            return;
        }
        let is_new = self.under_way.accepted(block, at_ms);
        // An earlier process has reported the block already.
        if self.score.has(block) {
            return;
        }
        let record = Record::Accepted { block, at_ms };
        self.score.note(record);
        outputs.push(Output::Record(record));
        if is_new {
            self.pending.add(block, Step::Queued, None);
        }
    }

    fn begun(&mut self, block: u64, at_ms: u64) {
        if self.reports(block) && self.under_way.begun(block, at_ms) {
            self.pending.add(block, Step::Proving, None);
        }
    }

    fn kept(&mut self, kept: Kept, outputs: &mut Vec<Output>) {
        let (block, proving_ms) = (kept.block, kept.proof.proving_ms);
        let record = Record::Proved { block, proving_ms };
        self.score.note(record);
        outputs.push(Output::Record(record));
        if self.pending.add(block, Step::Proved, Some(kept.proof)) {
            self.proved_ms.insert(block, kept.proved_ms);
        }
    }

    fn answered(&mut self, now: Now, call: u64, answer: &Answer, outputs: &mut Vec<Output>) {
        let Some((block, step)) = self.calls.remove(&call) else {
            return;
        };
        let verdict = answer.verdict();
        match &verdict {
            Verdict::Accepted => {
                self.pace.succeeded();
                self.done(block, step, outputs);
            }
            Verdict::Known => {
                self.pace.succeeded();
                // Whatever else is to be said of the block is refused in the same way.
                self.done(block, step, outputs);
            }
            Verdict::Refused(_) => {
                self.pace.succeeded();
                self.pending.called(block, true);
                if step == Step::Proved {
                    self.forget(block, outputs);
                }
                outputs.push(dropped(block, step, DropReason::Refused));
            }
            Verdict::Misconfigured(_) => {
                self.pace.misconfigured(now.mono_ms);
                self.pending.called(block, false);
            }
            Verdict::Limited(pause) => {
                self.pace.limited(now.mono_ms, *pause);
                self.pending.called(block, false);
            }
            Verdict::Failed(_) => {
                self.pace.failed(now.mono_ms);
                self.pending.called(block, false);
                let failures = self.pending.fail(block);
                let wait_ms = jittered(wait_ms(failures), block, failures);
                self.pending
                    .wait(block, now.mono_ms.saturating_add(wait_ms));
            }
        }
        outputs.push(Output::Ended {
            block,
            step,
            verdict,
        });
    }

    /// Ends a report that the site has.
    fn done(&mut self, block: u64, step: Step, outputs: &mut Vec<Output>) {
        self.pending.called(block, true);
        if step == Step::Proved {
            let record = Record::Reported { block };
            self.score.note(record);
            outputs.push(Output::Record(record));
            self.forget(block, outputs);
        }
    }

    fn forget(&mut self, block: u64, outputs: &mut Vec<Output>) {
        self.proved_ms.remove(&block);
        outputs.push(Output::Forget { block });
    }

    /// Gives up what is old, and what is worth least while there is too much.
    fn make_room(&mut self, now: Now, outputs: &mut Vec<Output>) {
        let since_ms = now.wall_ms.saturating_sub(WINDOW_MS);
        while let Some(oldest) = self.pending.oldest_proof()
            && self.proved_ms.get(&oldest.block) < Some(&since_ms)
        {
            self.give_up(oldest, DropReason::Old, outputs);
        }
        while self.pending.len() > self.options.blocks_max
            && let Some(least) = self.pending.least()
        {
            self.give_up(least, DropReason::Full, outputs);
        }
        while self.pending.bytes() > self.options.bytes_max
            && let Some(oldest) = self.pending.oldest_proof()
        {
            self.give_up(oldest, DropReason::Full, outputs);
        }
    }

    fn give_up(&mut self, report: Evicted, reason: DropReason, outputs: &mut Vec<Output>) {
        let Evicted { block, step } = report;
        self.pending.forget(block);
        if step == Step::Proved {
            self.forget(block, outputs);
        }
        outputs.push(dropped(block, step, reason));
    }

    fn call(&mut self, now: Now, outputs: &mut Vec<Output>) {
        while self.calls.len() < self.calls_max() && self.pace.due_ms() <= now.mono_ms {
            let Some((block, step, proof)) = self.pending.call(now.mono_ms) else {
                return;
            };
            self.pace.called(now.mono_ms);
            let id = self.next_call;
            self.next_call += 1;
            self.calls.insert(id, (block, step));
            outputs.push(Output::Call(Call {
                id,
                block,
                step,
                proof,
            }));
        }
    }

    fn calls_max(&self) -> usize {
        match self.pace.failures() {
            0 => CALLS_MAX,
            _ => 1,
        }
    }
}

fn dropped(block: u64, step: Step, reason: DropReason) -> Output {
    Output::Dropped {
        block,
        step,
        reason,
    }
}

/// The wait, longer by up to a quarter, so that the reports of an outage do not all come again at once.
fn jittered(wait_ms: u64, block: u64, failures: u32) -> u64 {
    // The finalizer of SplitMix64: any mixing will do.
    let mut mixed = block ^ (u64::from(failures) << 48);
    mixed = (mixed ^ (mixed >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    mixed ^= mixed >> 27;
    wait_ms + mixed % (wait_ms / 4).max(1)
}

/// Longest wait of a tick, for the scores' window.
pub(crate) const TICK_MAX: Duration = Duration::from_secs(60);
