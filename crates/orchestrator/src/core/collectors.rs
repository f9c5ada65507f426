//! Collectors: the groups that each one gathers, and those that have fired.
//!
//! A message that a strategy keeps is filed under its group's key, and the group's time (T_collect) begins
//! with its first message. The strategies' own state is in [`super::hosts`]. This part keeps in step, for
//! each key, the filed messages, the end of its time and the record of that time in the log.

use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::sync::Arc;
use std::time::Duration;

use super::event::{Now, Time};
use super::tasks::TaskNo;
use crate::id::Part;
use crate::plan::StageIx;

/// The collectors, by stage; stages of other kinds have none.
pub(super) struct Collectors {
    stages: Vec<Option<Collector>>,
    /// Groups whose time has begun or ended since the last [`Collectors::take_changed`].
    changed: BTreeSet<(StageIx, Arc<str>)>,
}

#[derive(Default)]
struct Collector {
    /// Keys of the groups that fired, with the last block of each.
    fired: HashMap<Part, u64>,
    fired_by_last: BTreeMap<u64, BTreeSet<Part>>,
    /// Filed messages, by the key of their group.
    filed: BTreeMap<Arc<str>, BTreeSet<TaskNo>>,
    /// Key under which each message is filed.
    keys: HashMap<TaskNo, Arc<str>>,
    /// End of each group's time.
    deadlines: BTreeMap<Arc<str>, Time>,
    /// Groups that are being gathered and whose time is limited.
    began: BTreeMap<Part, Gathered>,
}

/// Beginning of a group's time.
struct Gathered {
    /// Time of the first message, milliseconds since 1970-01-01 UTC.
    since_ms: u64,
    /// End of the group's time; `None` after a restart until a message is filed.
    due: Option<Time>,
    /// Whether the log holds this, or will once pending appends are accepted.
    recorded: bool,
}

/// Change of a group's time that the log must record.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum GroupNote {
    /// The group's time began at `since_ms`, milliseconds since 1970-01-01 UTC.
    Began { since_ms: u64 },
    /// The group is no longer gathered.
    Ended,
}

// === impl Collectors ===

impl Collectors {
    /// A collector without messages for each stage whose item is true.
    pub(super) fn new(stages: impl Iterator<Item = bool>) -> Self {
        Self {
            stages: stages
                .map(|collects| collects.then(Collector::default))
                .collect(),
            changed: BTreeSet::new(),
        }
    }

    /// Whether the stage is a collector.
    pub(super) fn has(&self, stage: StageIx) -> bool {
        self.stages[stage.0].is_some()
    }

    // Groups that fired.

    /// Notes that a group has fired, or will have once the pending append is accepted.
    pub(super) fn note_fired(&mut self, stage: StageIx, key: &Part, last: u64) {
        if let Some(collector) = &mut self.stages[stage.0] {
            collector.fired.insert(key.clone(), last);
            let keys = collector.fired_by_last.entry(last).or_default();
            keys.insert(key.clone());
        }
    }

    /// Forgets a fired group whose record was removed from the log.
    pub(super) fn forget_fired(&mut self, stage: StageIx, key: &Part) {
        let Some(collector) = &mut self.stages[stage.0] else {
            return;
        };
        let Some(last) = collector.fired.remove(key) else {
            return;
        };
        if let Some(keys) = collector.fired_by_last.get_mut(&last) {
            keys.remove(key);
            if keys.is_empty() {
                collector.fired_by_last.remove(&last);
            }
        }
    }

    pub(super) fn is_fired(&self, stage: StageIx, key: &Part) -> bool {
        let collector = self.stages[stage.0].as_ref();
        collector.is_some_and(|collector| collector.fired.contains_key(key))
    }

    /// Keys of the fired groups whose last block is `last` or higher.
    pub(super) fn fired_from(&self, stage: StageIx, last: u64) -> impl Iterator<Item = &Part> {
        let collector = self.stages[stage.0].iter();
        let fired = collector.flat_map(move |collector| collector.fired_by_last.range(last..));
        fired.flat_map(|(_, keys)| keys)
    }

    /// Keys of the fired groups whose last block is below `last`.
    pub(super) fn fired_below(&self, stage: StageIx, last: u64) -> impl Iterator<Item = &Part> {
        let collector = self.stages[stage.0].iter();
        let fired = collector.flat_map(move |collector| collector.fired_by_last.range(..last));
        fired.flat_map(|(_, keys)| keys)
    }

    /// Lowest last block, from `last` on, of a fired group, with the keys of all groups that have it.
    pub(super) fn next_fired(&self, stage: StageIx, last: u64) -> Option<(u64, &BTreeSet<Part>)> {
        let collector = self.stages[stage.0].as_ref()?;
        let (last, keys) = collector.fired_by_last.range(last..).next()?;
        Some((*last, keys))
    }

    // Messages.

    /// Files a message under its group's key. The message must not be filed already.
    pub(super) fn file(&mut self, stage: StageIx, no: TaskNo, key: &Arc<str>) {
        if let Some(collector) = &mut self.stages[stage.0] {
            let filed = collector.filed.entry(key.clone()).or_default();
            filed.insert(no);
            collector.keys.insert(no, key.clone());
        }
    }

    /// Undoes [`Collectors::file`]. A key without messages has no deadline.
    pub(super) fn unfile(&mut self, stage: StageIx, no: TaskNo) {
        let Some(collector) = &mut self.stages[stage.0] else {
            return;
        };
        let Some(key) = collector.keys.remove(&no) else {
            return;
        };
        let Some(filed) = collector.filed.get_mut(&key) else {
            return;
        };
        filed.remove(&no);
        if filed.is_empty() {
            collector.filed.remove(&key);
            collector.deadlines.remove(&key);
            if collector.began.contains_key(&Part::from_text(&key)) {
                self.changed.insert((stage, key));
            }
        }
    }

    /// Key under which a message is filed.
    pub(super) fn key_of(&self, stage: StageIx, no: TaskNo) -> Option<&Arc<str>> {
        self.stages[stage.0].as_ref()?.keys.get(&no)
    }

    /// Number of messages filed under a key.
    pub(super) fn filed_count(&self, stage: StageIx, key: &str) -> usize {
        let collector = self.stages[stage.0].as_ref();
        let filed = collector.and_then(|collector| collector.filed.get(key));
        filed.map_or(0, BTreeSet::len)
    }

    /// Messages filed under a key, in the order of acceptance.
    pub(super) fn filed(&self, stage: StageIx, key: &str) -> impl Iterator<Item = TaskNo> + '_ {
        let collector = self.stages[stage.0].as_ref();
        let filed = collector.and_then(|collector| collector.filed.get(key));
        filed.into_iter().flatten().copied()
    }

    // Time of groups.

    /// Begins a group's time, or resumes it after a restart. Returns its end; `None` if the time runs
    /// already.
    pub(super) fn begin_time(
        &mut self,
        stage: StageIx,
        key: &Arc<str>,
        t_collect: Duration,
        now: Now,
    ) -> Option<Time> {
        let collector = self.stages[stage.0].as_mut()?;
        if collector.deadlines.contains_key(key) {
            return None;
        }
        self.changed.insert((stage, key.clone()));
        let began = collector.began.entry(Part::from_text(key));
        let group = began.or_insert(Gathered {
            since_ms: now.wall_ms,
            due: Some(now.mono.plus(t_collect)),
            recorded: false,
        });
        let due = *group.due.get_or_insert_with(|| {
            // A wall clock that was set back does not lengthen the time.
            let passed = Duration::from_millis(now.wall_ms.saturating_sub(group.since_ms));
            now.mono.plus(t_collect.saturating_sub(passed))
        });
        collector.deadlines.insert(key.clone(), due);
        Some(due)
    }

    /// Whether the group's time ends at `due` and has not been ended before. The time of later messages under
    /// the key begins anew.
    pub(super) fn is_up(&mut self, stage: StageIx, key: &Arc<str>, due: Time) -> bool {
        let Some(collector) = &mut self.stages[stage.0] else {
            return false;
        };
        let is_up = collector.deadlines.get(key) == Some(&due);
        if is_up {
            collector.deadlines.remove(key);
        }
        is_up
    }

    /// Ends the gathering of a group whose time is up. Returns whether the log holds its beginning.
    pub(super) fn end_group(&mut self, stage: StageIx, key: &Part) -> bool {
        let collector = self.stages[stage.0].as_mut();
        let ended = collector.and_then(|collector| collector.began.remove(key));
        ended.is_some_and(|group| group.recorded)
    }

    /// Whether no group has a running deadline.
    pub(super) fn is_untimed(&self) -> bool {
        let mut collectors = self.stages.iter().flatten();
        collectors.all(|collector| collector.deadlines.is_empty())
    }

    // Records in the log.

    /// Takes over the beginning of a group's time from the log.
    pub(super) fn replay_began(&mut self, stage: StageIx, key: &Part, since_ms: u64) {
        if let Some(collector) = &mut self.stages[stage.0] {
            let group = Gathered {
                since_ms,
                due: None,
                recorded: true,
            };
            collector.began.insert(key.clone(), group);
        }
    }

    /// Whether the time of any group has begun or ended.
    pub(super) fn has_changed(&self) -> bool {
        !self.changed.is_empty()
    }

    /// Takes the groups whose time has begun or ended since the last call.
    pub(super) fn take_changed(&mut self) -> BTreeSet<(StageIx, Arc<str>)> {
        std::mem::take(&mut self.changed)
    }

    /// Change to record about a group's time; `None` if the log is up to date. `comes_again`: a host may
    /// still file messages under the key that it was offered anew.
    pub(super) fn note_of(
        &mut self,
        stage: StageIx,
        key: &Arc<str>,
        comes_again: bool,
    ) -> Option<GroupNote> {
        let collector = self.stages[stage.0].as_mut()?;
        let part = Part::from_text(key);
        let comes_again = comes_again && !collector.fired.contains_key(&part);
        let is_gathered = collector.deadlines.contains_key(key);
        let group = collector.began.get_mut(&part)?;
        if is_gathered {
            let is_new = !std::mem::replace(&mut group.recorded, true);
            let since_ms = group.since_ms;
            return is_new.then_some(GroupNote::Began { since_ms });
        }
        if comes_again {
            return None;
        }
        let was_recorded = group.recorded;
        collector.began.remove(&part);
        was_recorded.then_some(GroupNote::Ended)
    }

    /// Removes and returns, after a restart, the groups whose beginning the log holds and that are no longer
    /// gathered.
    pub(super) fn forget_ended(&mut self) -> Vec<(StageIx, Part)> {
        let mut ended = Vec::new();
        for (ix, collector) in self.stages.iter_mut().enumerate() {
            let Some(collector) = collector else { continue };
            let gathered = collector.deadlines.keys();
            let gathered: BTreeSet<Part> = gathered.map(|key| Part::from_text(key)).collect();
            collector.began.retain(|part, _| {
                let stays = gathered.contains(part);
                if !stays {
                    ended.push((StageIx(ix), part.clone()));
                }
                stays
            });
        }
        ended
    }

    /// `holds` tells whether the collector of a stage holds a message.
    #[cfg(debug_assertions)]
    pub(super) fn check(&self, holds: impl Fn(StageIx, TaskNo) -> bool) -> Result<(), String> {
        for (ix, collector) in self.stages.iter().enumerate() {
            let Some(collector) = collector else { continue };
            let mut timed = collector.deadlines.keys();
            if let Some(key) = timed.find(|key| !collector.filed.contains_key(*key)) {
                return Err(format!(
                    "stage {ix}: group {key:?} has a deadline and no message"
                ));
            }
            for (key, numbers) in &collector.filed {
                let is_filed =
                    |no: &TaskNo| collector.keys.get(no) == Some(key) && holds(StageIx(ix), *no);
                if numbers.is_empty() || !numbers.iter().all(is_filed) {
                    return Err(format!("stage {ix}: group {key:?} lists what it has not"));
                }
                if collector.fired.contains_key(&Part::from_text(key)) {
                    return Err(format!(
                        "stage {ix}: group {key:?} has fired and holds messages"
                    ));
                }
            }
            let filed: usize = collector.filed.values().map(BTreeSet::len).sum();
            let fired: usize = collector.fired_by_last.values().map(BTreeSet::len).sum();
            if filed != collector.keys.len() || fired != collector.fired.len() {
                return Err(format!("stage {ix}: the indices of its groups are off"));
            }
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const STAGE: StageIx = StageIx(0);
    const MINUTE: Duration = Duration::from_secs(60);

    fn at(wall_ms: u64) -> Now {
        Now {
            mono: Time(wall_ms * 1000),
            wall_ms,
        }
    }

    #[test]
    fn the_time_of_a_group_begins_with_its_first_message_and_ends_with_its_last() {
        let mut collectors = Collectors::new([true].into_iter());
        let (key, no) = (Arc::from("7"), TaskNo::new(1));
        collectors.file(STAGE, no, &key);
        let due = collectors.begin_time(STAGE, &key, MINUTE, at(5));
        assert_eq!(due, Some(at(5).mono.plus(MINUTE)));
        assert_eq!(collectors.begin_time(STAGE, &key, MINUTE, at(9)), None);
        assert_eq!(collectors.take_changed().len(), 1);
        let began = Some(GroupNote::Began { since_ms: 5 });
        assert_eq!(collectors.note_of(STAGE, &key, false), began);
        assert_eq!(collectors.note_of(STAGE, &key, false), None);
        assert_eq!(collectors.check(|_, filed| filed == no), Ok(()));
        collectors.unfile(STAGE, no);
        assert!(collectors.is_untimed() && collectors.has_changed());
        let ended = collectors.note_of(STAGE, &key, false);
        assert_eq!(ended, Some(GroupNote::Ended));
    }

    #[test]
    fn a_group_that_was_gathered_before_a_restart_has_what_is_left_of_its_time() {
        let mut collectors = Collectors::new([true].into_iter());
        let (key, part) = (Arc::from("7"), Part::from_text("7"));
        collectors.replay_began(STAGE, &part, 5);
        collectors.file(STAGE, TaskNo::new(1), &key);
        let due = collectors.begin_time(STAGE, &key, MINUTE, at(60_005));
        assert_eq!(due, Some(at(60_005).mono));
        assert_eq!(collectors.forget_ended(), []);
        assert!(collectors.is_up(STAGE, &key, at(60_005).mono));
        assert_eq!(collectors.forget_ended(), [(STAGE, part)]);
    }

    #[test]
    fn groups_that_fired_are_found_by_their_last_block_until_they_are_forgotten() {
        let mut collectors = Collectors::new([true, false].into_iter());
        let key = Part::from_text("7");
        collectors.note_fired(STAGE, &key, 9);
        assert!(collectors.is_fired(STAGE, &key) && !collectors.has(StageIx(1)));
        assert_eq!(collectors.fired_from(STAGE, 9).collect::<Vec<_>>(), [&key]);
        assert_eq!(collectors.fired_below(STAGE, 9).count(), 0);
        collectors.forget_fired(STAGE, &key);
        assert!(collectors.next_fired(STAGE, 0).is_none());
    }
}
