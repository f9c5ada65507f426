//! Second check of verified results before they are emitted, since a verifier may lie.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use bytes::Bytes;

use super::history::{History, Memory};
use crate::executor::{ProverError, Resolved};
use crate::origin::Origin;
use crate::payload::Encoding;
use crate::record::TaskRecord;

/// A result that a verifying stage has passed, and that is about to be emitted.
#[derive(Clone, Debug)]
pub struct VerifiedResult {
    /// Origin of the result, as recorded by the core: the blocks it is about, and the digest of
    /// their submitted payload.
    pub origin: Origin,
    /// Encoding of `bytes`.
    pub encoding: Encoding,
    /// The stage's result.
    pub bytes: Bytes,
}

/// The check that the emitting process applies to results of a verifying stage. Register one with
/// [`Registry::verifier`](crate::mill::Registry::verifier).
///
/// It runs on a blocking thread, outside the async runtime.
pub trait EmissionCheck: Send + Sync + 'static {
    /// Checks a batch of results: one verdict for each, in order. [`ProverError::Permanent`] means
    /// that a result is wrong, [`ProverError::Retry`] that it could not be checked now.
    fn check(&self, passed: &[VerifiedResult]) -> Vec<Result<(), ProverError>>;

    /// Checks that a valid result follows from the one emitted before it. Returns the state that
    /// the next result is compared with, at most a few hundred bytes. `before` is the state
    /// returned for the previous result; `None` at the first block, and if it is unknown.
    ///
    /// # Errors
    /// A description, if it does not follow.
    fn follow(&self, before: Option<&[u8]>, passed: &VerifiedResult) -> Result<Vec<u8>, String> {
        let _ = (before, passed);
        Ok(Vec::new())
    }
}

/// Refusal of a message that was about to be emitted: it is wrong, although a verifying stage has
/// passed it.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error(
    "blocks {first} to {last} are not emitted: {why}. A worker of a verifying stage is dishonest, \
     or runs another version: find it and revoke its credentials, then begin anew from block \
     {first} with another state directory"
)]
pub struct EmissionRefused {
    /// First block of the message.
    pub first: u64,
    /// Last block of the message, inclusive.
    pub last: u64,
    /// The fault of the message, with the stage that passed it.
    pub why: String,
}

/// Checks of the results of the stages that feed the sequencer.
pub struct Checks {
    stages: BTreeMap<Arc<str>, Arc<dyn EmissionCheck>>,
    /// Stages whose results are emitted unchecked, since the workflow does not mark them as
    /// verifying.
    unchecked: BTreeSet<Arc<str>>,
    /// Whether submitted messages may be emitted directly: a source feeds the sequencer.
    takes_submitted: bool,
    history: History,
}

/// The result of checking a batch of emissions.
pub(super) struct CheckedBatch {
    /// Number of emissions, from the first, that may be emitted.
    pub(super) emittable: usize,
    /// Result for the emission after those.
    pub(super) remainder: Remainder,
}

/// Result for the first emission of a batch that may not be emitted.
#[derive(Debug)]
pub(super) enum Remainder {
    /// There is none: all may be emitted.
    Empty,
    /// The emission is wrong.
    Refused(EmissionRefused),
    /// The emission could not be checked now, and is checked again later.
    Retry(String),
}

/// The results in one emission, in order, by stage; results of one task, which share an origin, are
/// together.
type Parts = Vec<(Arc<str>, Vec<VerifiedResult>)>;

// === impl Checks ===

impl Checks {
    /// Checks for the results of `stages`. Results of `unchecked` are emitted unchecked; with
    /// `takes_submitted`, so are submitted messages. The end states of the last emissions are kept
    /// in `history`.
    pub(crate) fn new(
        stages: BTreeMap<Arc<str>, Arc<dyn EmissionCheck>>,
        unchecked: BTreeSet<Arc<str>>,
        takes_submitted: bool,
        history: History,
    ) -> Self {
        Self {
            stages,
            unchecked,
            takes_submitted,
            history,
        }
    }

    /// Checks successive emissions together. The end states of those that may be emitted are
    /// recorded.
    pub(super) fn examine(&mut self, batch: &[(Arc<TaskRecord>, Resolved)]) -> CheckedBatch {
        let mut parts = Vec::with_capacity(batch.len());
        let mut remainder = Remainder::Empty;
        for (task, resolved) in batch {
            match self.parts(task, resolved) {
                Ok(found) => parts.push(found),
                Err(why) => {
                    remainder = Remainder::Refused(refused(task, why));
                    break;
                }
            }
        }
        if let Some((index, found)) = self.first_wrong(batch, &parts) {
            parts.truncate(index);
            remainder = found;
        }
        let mut emittable = 0;
        for ((task, _), parts) in batch.iter().zip(&parts) {
            if let Err(why) = self.follow(task, parts) {
                remainder = Remainder::Refused(refused(task, why));
                break;
            }
            emittable += 1;
        }
        if emittable > 0 {
            self.history.save();
        }
        CheckedBatch {
            emittable,
            remainder,
        }
    }

    /// The results in a message that are to be checked.
    fn parts(&self, task: &TaskRecord, resolved: &Resolved) -> Result<Parts, String> {
        let mut payloads = Vec::new();
        leaves(resolved, &mut payloads);
        let counted: usize = task.origins.iter().map(|of| of.payloads as usize).sum();
        if counted != payloads.len() || task.origins.iter().any(|origin| origin.payloads == 0) {
            return Err(format!(
                "the log records the origins of {counted} payloads of {}, which has {}",
                task.id,
                payloads.len()
            ));
        }
        if payloads.is_empty() {
            return Err(format!("{} has no payload", task.id));
        }
        let mut payloads = payloads.into_iter();
        let mut parts = Parts::new();
        for origin in task.origins.iter() {
            let of_one = payloads.by_ref().take(origin.payloads as usize);
            let passed = of_one.map(|(encoding, bytes)| VerifiedResult {
                origin: origin.clone(),
                encoding,
                bytes,
            });
            let passed: Vec<VerifiedResult> = passed.collect();
            match &origin.stage {
                Some(stage) if self.stages.contains_key(stage) => {
                    parts.push((stage.clone(), passed));
                }
                Some(stage) if self.unchecked.contains(stage) => {}
                None if self.takes_submitted => {}
                Some(stage) => {
                    return Err(format!(
                        "it comes from stage {stage:?}, which does not feed the sequencer"
                    ));
                }
                None => {
                    return Err(
                        "it was submitted directly, and no verifying stage has passed it"
                            .to_owned(),
                    );
                }
            }
        }
        Ok(parts)
    }

    /// The first emission with an invalid result. The results of each stage are checked together,
    /// across all emissions.
    fn first_wrong(
        &self,
        batch: &[(Arc<TaskRecord>, Resolved)],
        parts: &[Parts],
    ) -> Option<(usize, Remainder)> {
        let mut first: Option<(usize, Remainder)> = None;
        for (name, check) in &self.stages {
            let of_stage = parts.iter().enumerate().flat_map(|(index, parts)| {
                let own = parts.iter().filter(|(stage, _)| stage == name);
                own.flat_map(move |(_, passed)| passed.iter().map(move |one| (index, one.clone())))
            });
            let (indices, passed): (Vec<usize>, Vec<VerifiedResult>) = of_stage.unzip();
            if passed.is_empty() {
                continue;
            }
            let verdicts = check.check(&passed);
            let lacking = || ProverError::Retry("the check came to no verdict".to_owned());
            let mut verdicts = verdicts.into_iter();
            for index in indices {
                let verdict = verdicts.next().unwrap_or_else(|| Err(lacking()));
                let Err(error) = verdict else { continue };
                if first.as_ref().is_none_or(|(found, _)| index < *found) {
                    let task = &batch[index].0;
                    let remainder = match error {
                        ProverError::Permanent(why) => {
                            Remainder::Refused(refused(task, passed_by(name, &why)))
                        }
                        ProverError::Retry(why) => {
                            Remainder::Retry(format!("stage {name:?}: {why}"))
                        }
                        ProverError::Machine(failure) => {
                            Remainder::Retry(format!("stage {name:?} cannot be checked: {failure}"))
                        }
                    };
                    first = Some((index, remainder));
                }
                break;
            }
        }
        first
    }

    /// Checks that an emission follows from the previous one, and records its end state.
    fn follow(&mut self, task: &TaskRecord, parts: &Parts) -> Result<(), String> {
        let mut memory: Memory = self.history.before(task.id.block).unwrap_or_default();
        for (name, results) in parts {
            let check = &self.stages[name];
            let before = memory.get(&**name).map(Vec::as_slice);
            let mut after: Option<Vec<u8>> = None;
            for passed in results {
                let next = check.follow(before, passed);
                let next = next.map_err(|why| passed_by(name, &why))?;
                if after.as_ref().is_some_and(|after| *after != next) {
                    return Err(passed_by(name, "its results have different end states"));
                }
                after = Some(next);
            }
            if let Some(after) = after.filter(|after| !after.is_empty()) {
                memory.insert(name.to_string(), after);
            }
        }
        self.history.add(task.last.saturating_add(1), memory);
        Ok(())
    }
}

fn passed_by(stage: &str, why: &str) -> String {
    format!("stage {stage:?} has passed an invalid result: {why}")
}

fn refused(task: &TaskRecord, why: String) -> EmissionRefused {
    EmissionRefused {
        first: task.id.block,
        last: task.last,
        why,
    }
}

/// The payloads of a message, in order.
fn leaves(resolved: &Resolved, found: &mut Vec<(Encoding, Bytes)>) {
    match resolved {
        Resolved::One(encoding, bytes) => found.push((*encoding, bytes.clone())),
        Resolved::Group { members, .. } => {
            members.iter().for_each(|(_, member)| leaves(member, found));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::id::{Part, TaskId};
    use crate::origin::{Origins, made_by, submitted, together};
    use crate::payload::Payload;

    /// A result is valid if it is its origin's digest, and follows if it is of the next block.
    struct Echo;

    impl EmissionCheck for Echo {
        fn check(&self, passed: &[VerifiedResult]) -> Vec<Result<(), ProverError>> {
            let verdict = |one: &VerifiedResult| match &*one.bytes {
                b"later" => Err(ProverError::Retry("no key".into())),
                bytes if bytes == one.origin.digest => Ok(()),
                _ => Err(ProverError::Permanent("another digest".into())),
            };
            passed.iter().map(verdict).collect()
        }

        fn follow(
            &self,
            before: Option<&[u8]>,
            passed: &VerifiedResult,
        ) -> Result<Vec<u8>, String> {
            let first = passed.origin.first.to_le_bytes();
            match before {
                Some(before) if before != first => Err("it does not follow".into()),
                _ => Ok((passed.origin.last + 1).to_le_bytes().to_vec()),
            }
        }
    }

    fn checks() -> Checks {
        let check: Arc<dyn EmissionCheck> = Arc::new(Echo);
        Checks::new(
            [("verify".into(), check)].into(),
            BTreeSet::new(),
            false,
            History::nowhere(),
        )
    }

    fn message(block: u64, origins: Origins, payload: Resolved) -> (Arc<TaskRecord>, Resolved) {
        let task = TaskRecord {
            id: TaskId {
                stage: "sequencer".into(),
                block,
                part: Part::whole(),
            },
            queue: "verified".into(),
            last: block,
            group: None,
            needs: None,
            payload: Payload::json(""),
            at_ms: 0,
            origins,
            trace: crate::traces::TaskTrace::default(),
        };
        (Arc::new(task), payload)
    }

    fn one(bytes: &[u8]) -> Resolved {
        Resolved::One(Encoding::Binary, Bytes::copy_from_slice(bytes))
    }

    /// A block whose message is `origin`, and the stage's result.
    fn passed(stage: &str, block: u64, origin: u64, made: Option<&[u8]>) -> (Origins, Resolved) {
        let source = submitted(origin, origin, &Payload::binary(block.to_string()));
        let digest = source[0].digest;
        let origins = made_by(&stage.into(), &source, &Payload::binary(""));
        (origins, one(made.unwrap_or(&digest)))
    }

    fn right(block: u64) -> (Arc<TaskRecord>, Resolved) {
        let (origins, payload) = passed("verify", block, block, None);
        message(block, origins, payload)
    }

    #[test]
    fn what_is_right_leaves_and_what_a_verifier_lies_about_does_not() {
        let (origins, payload) = passed("verify", 2, 2, Some(b"a lie"));
        let batch = [right(0), right(1), message(2, origins, payload), right(3)];
        let checked = checks().examine(&batch);
        assert_eq!(checked.emittable, 2);
        let Remainder::Refused(refused) = checked.remainder else {
            panic!("{:?}", checked.remainder);
        };
        assert_eq!((refused.first, refused.last), (2, 2));
        let said = "stage \"verify\" has passed an invalid result: another digest";
        assert_eq!(refused.why, said);
    }

    #[test]
    fn what_cannot_be_checked_now_waits() {
        let (origins, payload) = passed("verify", 1, 1, Some(b"later"));
        let batch = [right(0), message(1, origins, payload), right(2)];
        let checked = checks().examine(&batch);
        assert_eq!(checked.emittable, 1);
        assert!(
            matches!(checked.remainder, Remainder::Retry(_)),
            "{:?}",
            checked.remainder
        );
    }

    #[test]
    fn what_no_stage_that_verifies_has_passed_does_not_leave() {
        let other = passed("prove", 0, 0, None);
        let source = submitted(0, 0, &Payload::binary("x"));
        let digest = source[0].digest;
        let unknown = (Origins::default(), one(&digest));
        for (origins, payload) in [other, (source, one(&digest)), unknown] {
            let checked = checks().examine(&[message(0, origins, payload)]);
            assert_eq!(checked.emittable, 0);
            assert!(matches!(checked.remainder, Remainder::Refused(_)));
        }
    }

    #[test]
    fn members_of_groups_are_checked_and_none_is_left_out() {
        let members = [passed("verify", 0, 0, None), passed("verify", 1, 1, None)];
        let origins = together(members.iter().map(|(origins, _)| origins));
        let group = |payloads: Vec<Resolved>| Resolved::Group {
            by_queue: false,
            members: payloads.into_iter().map(|one| ("q".into(), one)).collect(),
        };
        let both = || vec![members[0].1.clone(), members[1].1.clone()];
        let examine = |payload| {
            checks()
                .examine(&[message(0, origins.clone(), payload)])
                .emittable
        };
        assert_eq!(examine(group(both())), 1);
        let swapped = both().into_iter().rev().collect();
        assert_eq!(examine(group(swapped)), 0, "each with its own origin");
        assert_eq!(examine(group(both()[..1].to_vec())), 0, "one is missing");
        assert_eq!(examine(group(Vec::new())), 0, "both are missing");
    }

    #[test]
    fn a_result_that_does_not_follow_from_the_one_before_does_not_leave() {
        let (origins, payload) = passed("verify", 1, 5, None);
        let mut checks = checks();
        assert_eq!(checks.examine(&[right(0)]).emittable, 1);
        let checked = checks.examine(&[message(1, origins, payload)]);
        assert_eq!(checked.emittable, 0);
        let Remainder::Refused(refused) = checked.remainder else {
            panic!("{:?}", checked.remainder);
        };
        assert!(refused.why.ends_with("it does not follow"), "{refused}");
        // As after a restart, emissions that were delivered come again.
        assert_eq!(checks.examine(&[right(0), right(1)]).emittable, 2);
    }
}
