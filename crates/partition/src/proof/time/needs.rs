//! The time of each step, from the sizes of keys and the rates of a machine.

use std::cmp::Reverse;
use std::collections::BinaryHeap;

use proofmill_groth16::mirage::ProvingKeyInfo;

use super::Rates;
use crate::Partition;
use crate::proof::PartitionCurve;

/// The time that a proof takes, by part and step: an estimate.
#[derive(Clone, Debug, PartialEq)]
pub struct TimeNeeds {
    classes: Vec<PartTimes>,
    /// The class of each part.
    class_of: Vec<usize>,
    keys: f64,
    challenge: f64,
    aggregate: f64,
}

/// Seconds of a part of a class, on one core.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct PartTimes {
    /// Of its trace.
    pub trace: f64,
    /// Of its commitment.
    pub commit: f64,
    /// Of its proof.
    pub prove: f64,
}

/// Seconds of the steps of a proof, in order.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct StepTimes {
    /// Of reading all keys.
    pub keys: f64,
    /// Of tracing all parts, one after the other.
    pub trace: f64,
    /// Until the last part is committed to.
    pub commit: f64,
    /// Of drawing the challenges.
    pub challenge: f64,
    /// Until the last part is proved.
    pub prove: f64,
    /// Of the aggregation.
    pub aggregate: f64,
}

// === impl StepTimes ===

impl StepTimes {
    /// Seconds of all steps.
    pub fn total(&self) -> f64 {
        self.keys + self.trace + self.commit + self.challenge + self.prove + self.aggregate
    }
}

// === impl TimeNeeds ===

impl TimeNeeds {
    /// The needs of a proof for a partition with keys of these sizes, in the order of classes.
    pub fn new<E: PartitionCurve>(
        partition: &Partition<E::ScalarField>,
        keys: &[ProvingKeyInfo],
        rates: &Rates,
    ) -> Self {
        let classes = partition.classes().iter().zip(keys);
        let classes = classes.map(|(class, key)| {
            let run = class.layout().constraints as f64 * rates.run;
            PartTimes {
                trace: run,
                commit: key.committed as f64 * rates.commit,
                prove: run + (key.plain.variables + key.plain.domain) as f64 * rates.prove,
            }
        });
        let parts = partition.num_parts();
        // There are such parts.
        let class_of = (0..parts).filter_map(|part| partition.class_of(part).ok());
        let bytes: u64 = keys.iter().map(|key| key.file_bytes).sum();
        Self {
            classes: classes.collect(),
            class_of: class_of.collect(),
            keys: bytes as f64 * rates.load,
            challenge: parts as f64 * rates.challenge,
            aggregate: rates.aggregate_least + parts as f64 * rates.aggregate,
        }
    }

    /// Seconds of a part of each class.
    pub fn classes(&self) -> &[PartTimes] {
        &self.classes
    }

    /// The steps with a core for each part: no number of cores takes less.
    pub fn critical_path(&self) -> StepTimes {
        self.on_cores(self.class_of.len())
    }

    /// The steps on so many cores, at least one.
    pub fn on_cores(&self, cores: usize) -> StepTimes {
        let commit = last_end(self.times(|part| part.commit), cores);
        let prove = last_end(self.times(|part| part.prove), cores);
        self.steps(commit, prove)
    }

    fn steps(&self, commit: f64, prove: f64) -> StepTimes {
        StepTimes {
            keys: self.keys,
            trace: self.times(|part| part.trace).sum(),
            commit,
            challenge: self.challenge,
            prove,
            aggregate: self.aggregate,
        }
    }

    /// A time of each part, in order.
    fn times(&self, of: fn(&PartTimes) -> f64) -> impl Iterator<Item = f64> {
        self.class_of
            .iter()
            .map(move |class| of(&self.classes[*class]))
    }
}

/// The time at which the last task is done, if each core that is free takes the next one.
fn last_end(tasks: impl Iterator<Item = f64>, cores: usize) -> f64 {
    // Nanoseconds, so that times have an order.
    let mut free_at: BinaryHeap<Reverse<u64>> = BinaryHeap::new();
    let mut last = 0;
    for seconds in tasks {
        let free = match free_at.len() < cores.max(1) {
            true => 0,
            false => free_at.pop().map_or(0, |Reverse(free)| free),
        };
        let end = free + (seconds * 1e9).round() as u64;
        last = last.max(end);
        free_at.push(Reverse(end));
    }
    last as f64 / 1e9
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn assert_close(found: f64, expected: f64) {
        assert!((found - expected).abs() < 1e-6, "{found} for {expected}");
    }

    #[test]
    fn equal_tasks_take_rounds_and_others_at_least_the_longest() {
        for (tasks, cores) in [(1, 1), (7, 2), (8, 8), (9, 8), (3, 1024)] {
            let equal = std::iter::repeat_n(0.5, tasks);
            assert_close(last_end(equal, cores), 0.5 * tasks.div_ceil(cores) as f64);
        }
        assert_close(last_end([3.0, 1.0, 1.0, 1.0].into_iter(), 2), 3.0);
        assert_close(last_end([1.0, 1.0, 1.0, 3.0].into_iter(), 2), 4.0);
        assert_close(last_end(std::iter::empty(), 2), 0.0);
        assert_close(last_end([1.0, 2.0].into_iter(), 0), 3.0);
    }

    /// Two classes: four parts of the first, one of the second.
    fn needs() -> TimeNeeds {
        let class = |trace, commit, prove| PartTimes {
            trace,
            commit,
            prove,
        };
        TimeNeeds {
            classes: vec![class(0.5, 1.0, 4.0), class(1.5, 2.0, 10.0)],
            class_of: vec![0, 0, 0, 0, 1],
            keys: 100.0,
            challenge: 200.0,
            aggregate: 300.0,
        }
    }

    #[test]
    fn one_core_takes_the_sum_and_many_take_the_critical_path() {
        let needs = needs();
        let one = needs.on_cores(1);
        assert_close(one.trace, 3.5);
        assert_close(one.commit, 6.0);
        assert_close(one.prove, 26.0);
        assert_close(one.total(), 100.0 + 3.5 + 6.0 + 200.0 + 26.0 + 300.0);
        let path = needs.critical_path();
        assert_close(path.commit, 2.0);
        assert_close(path.prove, 10.0);
        assert_eq!(needs.on_cores(5), path);
        assert_eq!(needs.on_cores(1024), path);
        // The longest part is the last: it begins when two others are done.
        assert_close(needs.on_cores(2).prove, 18.0);
        let mut before = f64::INFINITY;
        for cores in 1..=5 {
            let total = needs.on_cores(cores).total();
            assert!(total <= before, "{cores} cores take longer than fewer");
            before = total;
        }
    }
}
