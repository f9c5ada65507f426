//! Detection of a log that was rolled back, by the files in the sequencer's directory.
//!
//! A file is written after its message's record is durable, and the record is removed only in the
//! batch that moves the cursor beyond it. So for each file at or above the cursor the log contains
//! a live record, or a dead letter. If it does not, the log is older than the directory: it was
//! restored from an old copy, or deleted.

use std::collections::BTreeSet;
use std::fs;
use std::io;
use std::path::Path;

use proofmill_workflow as file;

use super::options::MillError;
use crate::core::Core;
use proofmill_files::write_small_durably;

/// File in the state directory with the block below which files unknown to the log are accepted.
const ACCEPTED: &str = "accepted-emissions";

/// Maximum number of spans listed one by one.
const LISTED: usize = 10;

/// Checks that the log knows the files in the sequencer's directory. If it does not and
/// `accept_loss` is set, records that the files are accepted from now on, and returns a description
/// of them.
pub(super) fn check(
    workflow: &file::Workflow,
    state: &Path,
    core: &Core,
    accept_loss: bool,
) -> Result<Option<String>, MillError> {
    let Some(sequencer) = &workflow.sequencer else {
        return Ok(None);
    };
    let Some(directory) = &sequencer.directory else {
        return Ok(None);
    };
    let directory = state.join(directory);
    let failed = |path: &Path| {
        let path = path.to_owned();
        move |source| MillError::State { path, source }
    };
    let Some(next) = core.status().next_block else {
        return Ok(None);
    };
    let accepted = accepted_below_block(state).map_err(failed(state))?;
    let mut unknown = spans_from(&directory, next.max(accepted)).map_err(failed(&directory))?;
    if unknown.is_empty() {
        return Ok(None);
    }
    let is_sequencers = |stage: &str| stage == file::Sequencer::NAME;
    for task in core.tasks(|task| is_sequencers(&task.id.stage)) {
        unknown.remove(&(task.record.id.block, task.record.last));
    }
    for dead in core.dead_letters() {
        if is_sequencers(&dead.task.id.stage) {
            unknown.remove(&(dead.task.id.block, dead.task.last));
        }
    }
    let Some(last) = unknown.iter().map(|(_, last)| *last).max() else {
        return Ok(None);
    };
    let missing = described(&unknown, next);
    if !accept_loss {
        return Err(MillError::LogRolledBack { directory, missing });
    }
    accept_below_block(state, last.saturating_add(1)).map_err(failed(state))?;
    Ok(Some(missing))
}

/// The spans of blocks of the files in the directory that begin at `next` or above.
fn spans_from(directory: &Path, next: u64) -> io::Result<BTreeSet<(u64, u64)>> {
    let entries = match fs::read_dir(directory) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(BTreeSet::new()),
        entries => entries?,
    };
    let mut spans = BTreeSet::new();
    for entry in entries {
        let name = entry?.file_name();
        spans.extend(
            name.to_str()
                .and_then(span)
                .filter(|(first, _)| *first >= next),
        );
    }
    Ok(spans)
}

/// The span in the name of an emitted file, `FIRST-LAST.json` or `.bin`.
fn span(name: &str) -> Option<(u64, u64)> {
    let stem = name.strip_suffix(".json").or(name.strip_suffix(".bin"))?;
    let (first, last) = stem.split_once('-')?;
    let number = |text: &str| {
        let is_padded = text.len() >= 10 && text.bytes().all(|byte| byte.is_ascii_digit());
        is_padded.then(|| text.parse().ok())?
    };
    Some((number(first)?, number(last)?))
}

fn described(unknown: &BTreeSet<(u64, u64)>, next: u64) -> String {
    let shown = unknown.iter().take(LISTED).map(|(first, last)| {
        if first == last {
            first.to_string()
        } else {
            format!("{first} to {last}")
        }
    });
    let shown = shown.collect::<Vec<_>>().join(", ");
    let more = match unknown.len().saturating_sub(LISTED) {
        0 => String::new(),
        more => format!(" and {more} more"),
    };
    format!("the next block by the log is {next}, and proofs of blocks {shown}{more} were emitted")
}

fn accepted_below_block(state: &Path) -> io::Result<u64> {
    match fs::read_to_string(state.join(ACCEPTED)) {
        Ok(text) => text.trim().parse().map_err(|_| {
            let why = format!("{ACCEPTED} in it holds no block number: remove it");
            io::Error::new(io::ErrorKind::InvalidData, why)
        }),
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(0),
        Err(error) => Err(error),
    }
}

fn accept_below_block(state: &Path, block: u64) -> io::Result<()> {
    write_small_durably(
        &state.join(ACCEPTED),
        format!("{block}\n").as_bytes(),
        ".new-",
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_of_other_files_are_no_spans() {
        assert_eq!(span("0000000003-0000000004.json"), Some((3, 4)));
        assert_eq!(
            span("12345678901-12345678901.bin"),
            Some((12_345_678_901, 12_345_678_901))
        );
        for other in [
            "3-4.json",
            "note.json",
            "0000000003-0000000004",
            "0000000003.json",
            ".json",
        ] {
            assert_eq!(span(other), None, "{other}");
        }
    }
}
