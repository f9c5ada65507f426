//! The check at the end of the demo: reads the emitted files back and compares them with the headers.

use std::path::Path;

use proofmill_bitcoin::{ChainFault, ChunkStatement, check_chain};
use proofmill_bitcoin::{Proof, verify_chunks};

use super::prepare::{Chain, is_emitted};
use crate::failure::Failure;
use crate::provers::{EmittedChunk, Keys};

/// Result of reading the emitted files.
#[derive(Debug, Default)]
pub(super) struct Audit {
    /// Number of blocks emitted from the first header on, without a gap.
    pub(super) blocks: u64,
    /// The chunks in order, with their proofs, which are verified.
    pub(super) chunks: Vec<(ChunkStatement, Proof)>,
}

/// Fails if a header does not follow from the one before. The proof of a chunk does not show a broken link between
/// two chunks.
pub(super) fn check_links(chain: &Chain) -> Result<(), Failure> {
    for (index, pair) in chain.headers.windows(2).enumerate() {
        let alone_right = pair.iter().all(|header| check_chain(&[*header]).is_ok());
        let together = check_chain(pair);
        if let (true, Err(error)) = (alone_right, together)
            && matches!(error.fault, ChainFault::WrongPrevious { .. })
        {
            let before = chain.start + index as u64;
            let message = format!(
                "header {} does not follow from header {before}: {}",
                before + 1,
                error.fault
            );
            return Err(
                Failure::new(message).help("give consecutive headers of one chain, lowest first")
            );
        }
    }
    Ok(())
}

/// Reads every emitted file in order and checks it: no gap, no overlap, the statement is that of these headers, each
/// chunk follows from the one before, the proof verifies.
pub(super) fn audit(
    directory: &Path,
    chain: &Chain,
    keys: &Keys,
    slots: usize,
) -> Result<Audit, Failure> {
    let mut names: Vec<String> = match std::fs::read_dir(directory) {
        Ok(entries) => entries
            .filter_map(|entry| entry.ok()?.file_name().into_string().ok())
            .filter(|name| name.ends_with(".json") && is_emitted(name))
            .collect(),
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => return Ok(Audit::default()),
        Err(error) => {
            return Err(Failure::new(format!(
                "cannot read {}: {error}",
                directory.display()
            )));
        }
    };
    names.sort_unstable();
    let mut next = chain.start;
    let mut chunks: Vec<(ChunkStatement, Proof)> = Vec::with_capacity(names.len());
    for name in &names {
        let path = directory.join(name);
        let wrong = |why: String| {
            Failure::new(format!("{}: {why}", path.display()))
                .help("go on with the headers of the earlier runs, name another --state, or begin anew with --fresh")
        };
        let bytes = std::fs::read(&path).map_err(|error| wrong(error.to_string()))?;
        let chunk: EmittedChunk =
            serde_json::from_slice(&bytes).map_err(|error| wrong(error.to_string()))?;
        if chunk.first != next || chunk.last < chunk.first {
            return Err(wrong(format!(
                "it holds blocks {} to {}, but the next is {next}",
                chunk.first, chunk.last
            )));
        }
        let index = |height: u64| usize::try_from(height - chain.start).ok();
        let range = index(chunk.first).zip(index(chunk.last));
        let range = range.and_then(|(first, last)| chain.headers.get(first..=last));
        let decoded = chunk.decode().map_err(wrong)?;
        if range.and_then(ChunkStatement::of).as_ref() != Some(&decoded.statement) {
            return Err(wrong("it is a proof of other headers".to_owned()));
        }
        if let Some((before, _)) = chunks.last()
            && before.last_hash != decoded.statement.prev_hash
        {
            return Err(wrong(
                "it does not follow from the chunk before it".to_owned(),
            ));
        }
        next = chunk.last + 1;
        chunks.push((decoded.statement, decoded.proof));
    }
    if chunks.is_empty() {
        return Ok(Audit::default());
    }
    let verifier = keys.verifier(
        slots,
        &(std::sync::Arc::new(|_| {}) as crate::provers::OnProverEvent),
    )?;
    let verdicts = verify_chunks(&verifier, &chunks);
    for (name, verdict) in names.iter().zip(&verdicts) {
        if let Err(error) = verdict {
            let path = directory.join(name);
            return Err(Failure::new(format!("{}: {error}", path.display())));
        }
    }
    Ok(Audit {
        blocks: next - chain.start,
        chunks,
    })
}
