//! Stages and sources that an operator has paused, as the log has them. Drained workers are in `workers`.

use std::collections::BTreeMap;
use std::sync::Arc;

use crate::plan::StageIx;
use crate::record::PauseRecord;

/// The pauses of stages and sources.
pub(super) struct Pauses {
    /// By stage.
    stages: Vec<Option<PauseRecord>>,
    /// By name.
    sources: BTreeMap<Arc<str>, PauseRecord>,
}

// === impl Pauses ===

impl Pauses {
    /// No pauses, for `stages` stages.
    pub(super) fn new(stages: usize) -> Self {
        Self {
            stages: vec![None; stages],
            sources: BTreeMap::new(),
        }
    }

    /// Pause of a stage.
    pub(super) fn stage(&self, stage: StageIx) -> Option<&PauseRecord> {
        self.stages.get(stage.0)?.as_ref()
    }

    pub(super) fn has_stage(&self, stage: StageIx) -> bool {
        self.stage(stage).is_some()
    }

    /// Stages that are paused.
    pub(super) fn stages(&self) -> impl Iterator<Item = StageIx> + '_ {
        let stages = self.stages.iter().enumerate();
        stages.filter_map(|(ix, pause)| pause.is_some().then_some(StageIx(ix)))
    }

    /// Sets or ends the pause of a stage.
    pub(super) fn set_stage(&mut self, stage: StageIx, pause: Option<PauseRecord>) {
        if let Some(place) = self.stages.get_mut(stage.0) {
            *place = pause;
        }
    }

    /// Pause of a source.
    pub(super) fn source(&self, name: &str) -> Option<&PauseRecord> {
        self.sources.get(name)
    }

    /// Pauses of sources, by name.
    pub(super) fn sources(&self) -> impl Iterator<Item = &PauseRecord> {
        self.sources.values()
    }

    /// Sets the pause of a source.
    pub(super) fn set_source(&mut self, pause: PauseRecord) {
        self.sources.insert(pause.name.clone(), pause);
    }

    /// Ends the pause of a source. Returns whether there was one.
    pub(super) fn end_source(&mut self, name: &str) -> bool {
        self.sources.remove(name).is_some()
    }

    /// All pauses: those of stages in the order of the workflow file, then those of sources by name.
    pub(super) fn iter(&self) -> impl Iterator<Item = &PauseRecord> {
        self.stages.iter().flatten().chain(self.sources.values())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::record::PauseKind;

    fn pause(kind: PauseKind, name: &str) -> PauseRecord {
        PauseRecord {
            kind,
            name: name.into(),
            by: "alice".into(),
            at_ms: 7,
        }
    }

    #[test]
    fn a_pause_lasts_until_it_is_ended() {
        let mut pauses = Pauses::new(2);
        pauses.set_stage(StageIx(1), Some(pause(PauseKind::Stage, "prove")));
        pauses.set_source(pause(PauseKind::Source, "blocks"));
        // A stage of another workflow file.
        pauses.set_stage(StageIx(9), Some(pause(PauseKind::Stage, "gone")));
        assert!(pauses.has_stage(StageIx(1)) && !pauses.has_stage(StageIx(0)));
        assert_eq!(pauses.stages().collect::<Vec<_>>(), [StageIx(1)]);
        assert!(pauses.source("blocks").is_some() && pauses.source("prove").is_none());
        assert_eq!(pauses.iter().count(), 2);
        pauses.set_stage(StageIx(1), None);
        assert!(pauses.end_source("blocks") && !pauses.end_source("blocks"));
        assert_eq!(pauses.iter().count(), 0);
    }
}
