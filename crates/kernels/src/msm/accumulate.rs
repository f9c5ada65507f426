//! Adding points to buckets, in batches that share an inversion.
//!
//! Within a batch every target must be another: an addition to a bucket that is in the batch
//! already waits in a queue, as a hazard scheduler's would. Random digits make a few percent wait.
//! Where a few buckets get most of the points (equal scalars, bits) the queue grows instead: then
//! what waits is sorted by bucket and added up pairwise, a tree for each bucket, so that every
//! addition is still one of a large batch.

use super::bucket_sum::Buckets;
use super::point_kernel::{PointAddition, PointKernel, Projective};

/// Waiting additions at which the queue is merged: points for the same bucket are then added up first.
const QUEUE_CAPACITY: usize = 1 << 15;
/// Waiting points of a bucket that one partial sum takes, one after the other, when the queue is merged.
const POINTS_PER_PARTIAL_SUM: usize = 8;

/// State of a bucket.
#[derive(Clone, Copy, PartialEq, Eq)]
enum State {
    /// The bucket is empty: it stands for the point at infinity.
    Empty,
    /// The bucket holds a point.
    Ready,
    /// The bucket is a target of an addition in the current batch.
    Busy,
}

/// Buckets that points are being added to.
pub(crate) struct Accumulator<K: PointKernel> {
    points: K::Points,
    states: Vec<State>,
    batch: Vec<PointAddition>,
    batch_size: usize,
    queue: Vec<PointAddition>,
    /// Storage for the sums of queued points; allocated at the first merge.
    pool: Option<K::Points>,
    scratch: K::Scratch,
}

// === impl Accumulator ===

impl<K: PointKernel> Accumulator<K> {
    /// `buckets` empty buckets.
    pub(crate) fn new(buckets: usize) -> Self {
        // With an eighth of the buckets in a batch, one addition in sixteen waits on average.
        let batch_size = (buckets / 8).clamp(64, K::BATCH);
        Self {
            points: K::allocate(buckets),
            states: vec![State::Empty; buckets],
            batch: Vec::with_capacity(batch_size),
            batch_size,
            queue: Vec::with_capacity(QUEUE_CAPACITY),
            pool: None,
            scratch: K::Scratch::default(),
        }
    }

    /// Empties all buckets.
    pub(crate) fn clear(&mut self) {
        self.states.fill(State::Empty);
    }

    /// Adds `sources[job.source]` to the bucket `job.target`, at once or later.
    #[inline]
    pub(crate) fn push(&mut self, sources: &K::Points, job: PointAddition) {
        let state = &mut self.states[job.target as usize];
        match *state {
            State::Ready => {
                *state = State::Busy;
                self.batch.push(job);
                if self.batch.len() == self.batch_size {
                    self.run(sources);
                }
            }
            State::Empty => {
                *state = State::Ready;
                K::copy(&mut self.points, job.target as usize, sources, job.source);
            }
            State::Busy => {
                self.queue.push(job);
                if self.queue.len() == QUEUE_CAPACITY {
                    self.run(sources);
                    self.merge_queue(sources);
                }
            }
        }
    }

    /// Does every addition that is still to do.
    pub(crate) fn finish(&mut self, sources: &K::Points) {
        loop {
            self.run(sources);
            if self.batch.is_empty() {
                break;
            }
            // What waits for few buckets would come in many small batches.
            if self.queue.len() > 4 * self.batch.len() {
                self.run(sources);
                self.merge_queue(sources);
            }
        }
    }

    /// Does the batch; then what waits and now can goes into the next one.
    fn run(&mut self, sources: &K::Points) {
        self.run_batch(sources);
        let mut kept = 0;
        for i in 0..self.queue.len() {
            let job = self.queue[i];
            let state = &mut self.states[job.target as usize];
            match *state {
                State::Ready if self.batch.len() + 1 < self.batch_size => {
                    *state = State::Busy;
                    self.batch.push(job);
                }
                State::Empty => {
                    // A sum of opposite points left the bucket empty.
                    *state = State::Ready;
                    K::copy(&mut self.points, job.target as usize, sources, job.source);
                }
                _ => {
                    self.queue[kept] = job;
                    kept += 1;
                }
            }
        }
        self.queue.truncate(kept);
    }

    /// Does the batch, and empties it.
    fn run_batch(&mut self, sources: &K::Points) {
        Self::run_jobs(
            &mut self.points,
            Some(sources),
            &mut self.states,
            &self.batch,
            &mut self.scratch,
        );
        self.batch.clear();
    }

    /// Does jobs of distinct targets, all of which hold a point.
    fn run_jobs(
        points: &mut K::Points,
        sources: Option<&K::Points>,
        states: &mut [State],
        jobs: &[PointAddition],
        scratch: &mut K::Scratch,
    ) {
        if jobs.is_empty() {
            return;
        }
        let infinite = K::add(points, sources, jobs, scratch);
        for job in jobs {
            states[job.target as usize] = State::Ready;
        }
        for target in infinite {
            states[target as usize] = State::Empty;
        }
    }

    /// Adds up what waits for the same bucket, then adds the sums to the buckets, none of which is
    /// busy.
    fn merge_queue(&mut self, sources: &K::Points) {
        // The current batch may hold additions to the same buckets.
        self.run_batch(sources);
        let pool = self.pool.get_or_insert_with(|| K::allocate(QUEUE_CAPACITY));
        let queue = &mut self.queue;
        queue.sort_unstable_by_key(|job| job.target);

        // Each partial sum takes up to POINTS_PER_PARTIAL_SUM of a bucket's points, one in each round.
        let mut sums: Vec<PointAddition> =
            Vec::with_capacity(queue.len() / POINTS_PER_PARTIAL_SUM + 1);
        let mut runs = Vec::new();
        for run in queue.chunk_by(|a, b| a.target == b.target) {
            let places = run.len().div_ceil(POINTS_PER_PARTIAL_SUM);
            runs.push((run, sums.len(), places));
            sums.extend(
                (sums.len()..sums.len() + places).map(|place| PointAddition {
                    source: (place as u32) << 1,
                    target: run[0].target,
                }),
            );
        }
        let mut occupied = vec![false; sums.len()];
        let mut jobs = Vec::with_capacity(K::BATCH);
        for round in 0..POINTS_PER_PARTIAL_SUM {
            for (run, first, places) in &runs {
                let jobs_of_round = run.chunks(*places).nth(round).unwrap_or_default();
                for (place, job) in (*first..).zip(jobs_of_round) {
                    if occupied[place] {
                        jobs.push(PointAddition {
                            source: job.source,
                            target: place as u32,
                        });
                    } else {
                        occupied[place] = true;
                        K::copy(pool, place, sources, job.source);
                    }
                }
            }
            for jobs in jobs.chunks(K::BATCH) {
                for place in K::add(pool, Some(sources), jobs, &mut self.scratch) {
                    occupied[place as usize] = false;
                }
            }
            jobs.clear();
        }
        drop(runs);
        queue.clear();
        sums.retain(|sum| occupied[(sum.source >> 1) as usize]);

        // Then pairs of a bucket's sums, until there is one.
        let mut infinite: Vec<u32> = Vec::new();
        loop {
            if !infinite.is_empty() {
                infinite.sort_unstable();
                sums.retain(|sum| infinite.binary_search(&(sum.source >> 1)).is_err());
                infinite.clear();
            }
            jobs.clear();
            let mut kept = 0;
            let mut i = 0;
            while i < sums.len() {
                let first = sums[i];
                i += 1;
                if let Some(second) = sums.get(i).filter(|next| next.target == first.target) {
                    jobs.push(PointAddition {
                        source: second.source,
                        target: first.source >> 1,
                    });
                    i += 1;
                }
                sums[kept] = first;
                kept += 1;
            }
            sums.truncate(kept);
            if jobs.is_empty() {
                break;
            }
            for jobs in jobs.chunks(K::BATCH) {
                infinite.extend(K::add(pool, None, jobs, &mut self.scratch));
            }
        }

        // One sum for each bucket remains.
        let pool = &*pool;
        sums.retain(|sum| {
            let state = &mut self.states[sum.target as usize];
            let empty = *state == State::Empty;
            if empty {
                *state = State::Ready;
                K::copy(&mut self.points, sum.target as usize, pool, sum.source);
            }
            !empty
        });
        for jobs in sums.chunks(K::BATCH) {
            Self::run_jobs(
                &mut self.points,
                Some(pool),
                &mut self.states,
                jobs,
                &mut self.scratch,
            );
        }
    }

    /// `Σ (i + 1)·Bᵢ` over the buckets of each of `windows` windows of the same size; the buckets
    /// are to be cleared before they are used again.
    pub(crate) fn weighted_sums(&mut self, windows: usize) -> Vec<Projective<K>> {
        Buckets::<K> {
            points: &mut self.points,
            occupied: self.states.iter().map(|s| *s != State::Empty).collect(),
            scratch: &mut self.scratch,
        }
        .weighted_sums(windows)
    }
}
