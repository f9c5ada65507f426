//! End states of the last emissions, kept across restarts: the next emission must follow from them.

use std::collections::{BTreeMap, VecDeque};
use std::fs;
use std::io::{self, Read};
use std::path::{Path, PathBuf};

use proofmill_files::write_small;
use serde::{Deserialize, Serialize};

/// Maximum number of emissions kept: more than can come again after a crash.
const KEPT: usize = 128;

/// Maximum size of the file, in bytes; a larger one is not ours.
const FILE_MAX: u64 = 1 << 20;

/// End state of the last result of each stage, by the stage's name.
pub(super) type Memory = BTreeMap<String, Vec<u8>>;

/// End states of the last emissions. An end state is written before its message is emitted, without
/// a sync: if a loss of power removes it, one emission is not compared with the previous one.
pub(crate) struct History {
    /// The file; `None` if the history is not kept.
    path: Option<PathBuf>,
    /// First block of the workflow, which has no predecessor.
    start: u64,
    entries: VecDeque<Entry>,
}

#[derive(Serialize, Deserialize)]
struct Entry {
    /// First block after the emission.
    next: u64,
    /// End states by stage, in hexadecimal.
    ended_with: BTreeMap<String, String>,
}

// === impl History ===

impl History {
    /// The history in the file at `path`, of a workflow whose sequencer starts with block `start`.
    pub(crate) fn open(path: &Path, start: u64) -> Self {
        let entries = read(path).unwrap_or_else(|why| {
            let file = path.display();
            tracing::warn!(%file, "what was emitted last is not known: {why}");
            VecDeque::new()
        });
        Self {
            path: Some(path.to_owned()),
            start,
            entries,
        }
    }

    #[cfg(test)]
    pub(super) fn nowhere() -> Self {
        Self {
            path: None,
            start: 0,
            entries: VecDeque::new(),
        }
    }

    /// End state of the emission before `block`, by stage; `None` if it is unknown.
    pub(super) fn before(&self, block: u64) -> Option<Memory> {
        let entry = self.entries.iter().rev().find(|entry| entry.next == block);
        let Some(entry) = entry else {
            if block > self.start {
                tracing::warn!(
                    block,
                    "what was emitted before is not known here: that this block follows from it is \
                     not checked"
                );
            }
            return None;
        };
        let decode = |(stage, text): (&String, &String)| {
            let bytes = hex::decode(text).ok()?;
            Some((stage.clone(), bytes))
        };
        entry.ended_with.iter().map(decode).collect()
    }

    /// Records the end state of an emission whose next block is `next`.
    pub(super) fn add(&mut self, next: u64, memory: Memory) {
        let ended_with = memory.iter();
        let ended_with = ended_with.map(|(stage, bytes)| (stage.clone(), hex::encode(bytes)));
        let entry = Entry {
            next,
            ended_with: ended_with.collect(),
        };
        self.entries.retain(|known| known.next != next);
        self.entries.push_back(entry);
        while self.entries.len() > KEPT {
            self.entries.pop_front();
        }
    }

    /// Writes the history to the file, unless no check has an end state.
    pub(super) fn save(&self) {
        let mut entries = self.entries.iter();
        let Some(path) = &self.path else { return };
        if entries.all(|entry| entry.ended_with.is_empty()) {
            return;
        }
        if let Err(error) = write(path, &self.entries) {
            let file = path.display();
            tracing::warn!(%file, "what was emitted last cannot be kept: {error}");
        }
    }
}

fn read(path: &Path) -> Result<VecDeque<Entry>, String> {
    let file = match fs::File::open(path) {
        Ok(file) => file,
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(VecDeque::new()),
        Err(error) => return Err(error.to_string()),
    };
    let mut text = String::new();
    let read = file.take(FILE_MAX).read_to_string(&mut text);
    read.map_err(|error| error.to_string())?;
    serde_json::from_str(&text).map_err(|error| error.to_string())
}

fn write(path: &Path, entries: &VecDeque<Entry>) -> io::Result<()> {
    write_small(path, &serde_json::to_vec(entries)?, ".new-")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_history_is_there_after_a_restart_and_a_damaged_one_is_forgotten() {
        let folder = tempfile::tempdir().expect("a folder");
        let path = folder.path().join("emissions.json");
        let mut history = History::open(&path, 0);
        for block in 0..(KEPT as u64 + 10) {
            let memory = Memory::from([("verify".into(), vec![block as u8])]);
            history.add(block + 1, memory);
        }
        history.save();
        let again = History::open(&path, 0);
        let last = KEPT as u64 + 10;
        assert_eq!(
            again.before(last),
            Some(Memory::from([("verify".into(), vec![(last - 1) as u8])]))
        );
        assert_eq!(again.before(10), None, "as many as are kept");
        assert_eq!(again.entries.len(), KEPT);
        fs::write(&path, "{").expect("written");
        assert_eq!(History::open(&path, 0).before(last), None);
    }
}
