//! A journal of the runs of provers in other processes, independent of what the coordinator learns of them.

use std::collections::BTreeMap;
use std::io::Write;
use std::path::{Path, PathBuf};

use proofmill_orchestrator::id::TaskId;
use serde::Deserialize;

/// A file to which every run of a prover adds a line when it begins and when it ends.
#[derive(Clone, Debug, Deserialize)]
#[serde(transparent)]
pub(crate) struct Journal(PathBuf);

/// Event recorded in a line.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum RunEvent {
    /// The beginning of a run.
    Began,
    /// The end of a run.
    Ended,
}

/// Counts of started and of finished runs, by task.
#[derive(Debug, Default, PartialEq, Eq)]
pub(crate) struct Runs(BTreeMap<String, (u32, u32)>);

// === impl Journal ===

impl Journal {
    /// A journal in `state`.
    pub(crate) fn in_directory(state: &Path) -> Self {
        Self(state.join("journal"))
    }

    /// The executor `sleep` of a workflow file, which takes `ms` milliseconds and writes here.
    pub(crate) fn sleep(&self, ms: f64) -> String {
        let path = self.0.display().to_string();
        format!(
            "{{ kind = \"native\", prover = \"sleep\", params = {{ ms = {ms:?}, journal = {path:?} }} }}"
        )
    }

    /// Adds a line. It is written with one call, as other processes write to the same file.
    pub(crate) fn write(&self, event: RunEvent, task: &TaskId) -> std::io::Result<()> {
        let word = match event {
            RunEvent::Began => "began",
            RunEvent::Ended => "ended",
        };
        let line = format!("{word} {task}\n");
        let file = std::fs::OpenOptions::new()
            .create(true)
            .append(true)
            .open(&self.0);
        file?.write_all(line.as_bytes())
    }

    /// Reads the lines written so far.
    pub(crate) fn read(&self) -> Runs {
        Runs::of(&std::fs::read_to_string(&self.0).unwrap_or_default())
    }
}

// === impl Runs ===

impl Runs {
    fn of(text: &str) -> Self {
        let mut runs = Self::default();
        for line in text.lines() {
            let Some((word, task)) = line.split_once(' ') else {
                continue;
            };
            let (begun, ended) = runs.0.entry(task.to_owned()).or_default();
            *(if word == "began" { begun } else { ended }) += 1;
        }
        runs
    }

    /// Number of tasks that were started more than once.
    pub(crate) fn begun_again(&self) -> usize {
        self.0.values().filter(|(begun, _)| *begun > 1).count()
    }

    /// Number of tasks with more than one finished run.
    pub(crate) fn proven_twice(&self) -> usize {
        self.0.values().filter(|(_, ended)| *ended > 1).count()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn runs_are_counted_by_task() {
        let runs = Runs::of("began prove 1 -\nbegan prove 2 -\nbegan prove 1 -\nended prove 1 -\n");
        assert_eq!((runs.begun_again(), runs.proven_twice()), (1, 0));
        let runs = Runs::of("began a 1 -\nended a 1 -\nbegan a 1 -\nended a 1 -\nended a 2 -\n");
        assert_eq!((runs.begun_again(), runs.proven_twice()), (1, 1));
    }
}
