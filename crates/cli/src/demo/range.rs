//! The proof of all chunks of the demo: an aggregate, its key and its statement, in files that are enough to verify it.

use std::path::{Path, PathBuf};

use ark_ec::pairing::Pairing;
use ark_std::rand::rngs::OsRng;
use proofmill_aggregation::{Aggregate, Groth16Index, MAX_CAPACITY, Srs};
use proofmill_bitcoin::{ChunkStatement, HeaderChainVerifier, Proof, RangeStatement};
use proofmill_files::open_lock_file;
use proofmill_groth16::Bls12_381;
use proofmill_orchestrator::shutdown::{Level, Shutdown};
use proofmill_telemetry::console_line;
use serde::Serialize;

use super::prepare::{Chain, is_unfinished};
use super::show;
use crate::args::Demo;
use crate::args::aggregate::AggregateVerify;
use crate::args::circuits::Threads;
use crate::commands::aggregate::{Answer, ONE_PARTY, answer_for};
use crate::failure::Failure;
use crate::files::write_together;
use crate::output;
use crate::provers::{Keys, StatedRange};
use crate::stages::{Stages, milliseconds};

/// Folder of the range's files, in the state directory.
pub(super) const RANGE: &str = "range";

/// The aggregate.
pub(super) const PROOF_FILE: &str = "range.proof";
/// The key that verifies the aggregate. `proofmill verify` looks for this name.
pub(super) const KEY_FILE: &str = "aggregate.key";
/// The public inputs of all chunks.
pub(super) const PUBLIC_FILE: &str = "range.public";
/// The statement of the range, a [`StatedRange`].
pub(super) const RANGE_FILE: &str = "range.json";

/// Smallest capacity of a reference string. A larger one than needed lets the next demo use the same string.
const CAPACITY_MIN: usize = 64;

const STAGES: usize = 4;

/// Facts about the proof of all chunks, for the summary.
#[derive(Debug, Serialize)]
pub(super) struct RangeReport {
    /// The headers that it is of.
    statement: StatedRange,
    /// Whether this run made the proof; otherwise an earlier one did.
    pub(super) made: bool,
    /// Size of the proof.
    bytes: usize,
    /// Time to make the proof, with its reference string if there was none; nothing if it was made before.
    aggregate_ms: Option<f64>,
    /// Time to verify the proof, without reading files.
    check_ms: f64,
    /// Digest of the key, hexadecimal.
    pub(super) key_digest: String,
    /// The folder with the files.
    pub(super) folder: String,
}

/// The claims that the proof is of: verified proofs of consecutive chunks.
struct Claims {
    verifier: HeaderChainVerifier,
    inputs: Vec<Vec<<Bls12_381 as Pairing>::ScalarField>>,
    proofs: Vec<Proof>,
    range: StatedRange,
}

/// The files of a range.
struct RangeFiles {
    folder: PathBuf,
    proof: PathBuf,
    key: PathBuf,
    public: PathBuf,
    range: PathBuf,
}

/// Fails if one aggregate cannot be of this many chunks.
pub(super) fn check_count(chunks: u64) -> Result<(), Failure> {
    if chunks > MAX_CAPACITY as u64 {
        return Err(Failure::usage(format!(
            "--aggregate: {chunks} chunks, where an aggregate has {MAX_CAPACITY} at most"
        ))
        .help("make larger chunks with --chunk, or give fewer headers"));
    }
    Ok(())
}

/// Whether a file name is one that is written into [`RANGE`].
pub(super) fn is_range(name: &str) -> bool {
    [PROOF_FILE, KEY_FILE, PUBLIC_FILE, RANGE_FILE].contains(&name) || is_unfinished(name)
}

/// Makes the proof of all chunks unless it is there, verifies it from its files, and prints it. `chunks` are verified,
/// and are those of `chain`.
pub(super) async fn make(
    args: &Demo,
    chain: &Chain,
    keys: &Keys,
    chunks: Vec<(ChunkStatement, Proof)>,
    shutdown: &mut Shutdown,
) -> Result<RangeReport, Failure> {
    let verifier = keys.verifier(
        args.chunk as usize,
        &(std::sync::Arc::new(|_| {}) as crate::provers::OnProverEvent),
    )?;
    let claims = Claims::of(chain, verifier, chunks)?;
    let files = RangeFiles::in_folder(args.state.join(RANGE));
    let strings = args.keys.keys.clone();
    let work = tokio::task::spawn_blocking(move || claims.aggregate(&files, &strings));
    tokio::select! {
        made = work => made?,
        // Files are written whole, so there is nothing to finish.
        () = shutdown.reached(Level::Drain) => {
            Err(Failure::interrupted("stopped before the proof of all chunks was made")
                .help("run the same command again: the chunks are proven, and only that proof is made"))
        }
    }
}

// === impl Claims ===

impl Claims {
    /// The claims of these chunks. Fails unless their range is that of the headers.
    fn of(
        chain: &Chain,
        verifier: HeaderChainVerifier,
        chunks: Vec<(ChunkStatement, Proof)>,
    ) -> Result<Self, Failure> {
        let (statements, proofs): (Vec<_>, Vec<_>) = chunks.into_iter().unzip();
        let range = RangeStatement::of(&statements)?;
        let expected = ChunkStatement::of(&chain.headers).into_iter();
        let expected = RangeStatement::of(&expected.collect::<Vec<_>>())?;
        if range != expected {
            return Err(Failure::new(
                "the chunks together are of other headers: this is a defect of Proofmill",
            ));
        }
        let inputs = statements.iter();
        let inputs = inputs.map(|statement| statement.to_inputs(verifier.slots()));
        Ok(Self {
            inputs: inputs.collect::<Result<_, _>>()?,
            range: StatedRange::of(chain.start, statements.len(), &range),
            verifier,
            proofs,
        })
    }

    /// Makes the files unless they are there, verifies them, and prints the result. `strings` is the folder of
    /// reference strings.
    fn aggregate(&self, files: &RangeFiles, strings: &Path) -> Result<RangeReport, Failure> {
        let mut stages = Stages::begin("aggregate", STAGES);
        let (srs, path) = reference_string(strings, self.proofs.len(), &mut stages)?;
        stages.enter("commit to the verifying key");
        // All chunks are of one circuit: the last has unused slots if it is smaller.
        let (vk, key_of) = (self.verifier.vk().clone(), vec![0; self.proofs.len()]);
        let index = Groth16Index::new(&srs, vec![vk], key_of)?;
        let statement = [
            (&*files.key, index.to_bytes()),
            (
                &*files.public,
                Groth16Index::<Bls12_381>::encode_statement(&self.inputs),
            ),
            (&*files.range, serde_json::to_vec_pretty(&self.range)?),
        ];
        let aggregate_ms = if self.is_made(&index, files, &statement) {
            drop(stages);
            None
        } else {
            stages.enter("aggregate the proofs");
            let aggregate = index.aggregate(&srs, &self.inputs, &self.proofs)?;
            stages.enter("write the files");
            make_folder(&files.folder)?;
            // The proof last, and none meanwhile: where one is, the others are its own.
            match std::fs::remove_file(&files.proof) {
                Err(error) if error.kind() != std::io::ErrorKind::NotFound => {
                    return Err(Failure::new(format!("{}: {error}", files.proof.display())));
                }
                _ => {}
            }
            let proof = (&*files.proof, aggregate.to_bytes());
            write_together(&statement.into_iter().chain([proof]).collect::<Vec<_>>())?;
            Some(milliseconds(stages.end().total))
        };
        if srs.contributions().len() == 1 {
            console_line(output::plain(&format!("{}: {ONE_PARTY}", path.display())));
        }
        self.report(files, aggregate_ms)
    }

    /// Whether the files are there, and are a valid proof of these claims. Invalid ones are named.
    fn is_made(
        &self,
        index: &Groth16Index<Bls12_381>,
        files: &RangeFiles,
        statement: &[(&Path, Vec<u8>)],
    ) -> bool {
        let Ok(proof) = std::fs::read(&files.proof) else {
            return false;
        };
        let is_same = |(path, bytes): &(&Path, Vec<u8>)| {
            std::fs::read(path).is_ok_and(|found| found == *bytes)
        };
        let is_valid = statement.iter().all(is_same)
            && Aggregate::from_bytes(&proof)
                .is_ok_and(|aggregate| index.verify(&self.inputs, &aggregate).is_ok());
        if !is_valid {
            console_line(output::plain(&format!(
                "{}: the proof there is not valid for these chunks and this key: it is made again",
                files.folder.display()
            )));
        }
        is_valid
    }

    /// Verifies the files as any reader of them would, and prints the result.
    fn report(
        &self,
        files: &RangeFiles,
        aggregate_ms: Option<f64>,
    ) -> Result<RangeReport, Failure> {
        let answer = files.verify()?;
        let valid = answer.valid().map_err(|why| {
            Failure::new(format!(
                "{}: {why}: a fault of this program or machine",
                files.proof.display()
            ))
        })?;
        let report = RangeReport {
            statement: self.range.clone(),
            made: aggregate_ms.is_some(),
            bytes: valid.bytes,
            aggregate_ms,
            check_ms: milliseconds(valid.check),
            key_digest: answer.key_digest().to_owned(),
            folder: files.folder.display().to_string(),
        };
        show::range(&report, &valid.lines());
        Ok(report)
    }
}

fn make_folder(folder: &Path) -> Result<(), Failure> {
    let made = std::fs::create_dir_all(folder);
    made.map_err(|error| Failure::new(format!("cannot make {}: {error}", folder.display())))
}

/// The reference string for `count` proofs, made if there is none; and its file. Processes take turns.
fn reference_string(
    folder: &Path,
    count: usize,
    stages: &mut Stages,
) -> Result<(Srs<Bls12_381>, PathBuf), Failure> {
    let capacity = count.next_power_of_two().max(CAPACITY_MIN);
    let path = folder.join(format!("aggregation-bls12-381-{capacity}.srs"));
    let lock_path = path.with_extension("lock");
    let locked = open_lock_file(&lock_path).and_then(|lock| lock.lock().map(|()| lock));
    let _lock =
        locked.map_err(|error| Failure::new(format!("{}: {error}", lock_path.display())))?;
    if path.try_exists()? {
        stages.enter("read and check the reference string");
        let srs = Srs::load(&path).map_err(|error| {
            Failure::new(format!("{}: {error}", path.display())).help(
                "delete the file to have another made, under which earlier aggregates will not verify",
            )
        })?;
        return Ok((srs, path));
    }
    stages.enter("make a reference string for development");
    let srs = Srs::setup(capacity, &mut OsRng)?;
    srs.save(&path)?;
    Ok((srs, path))
}

// === impl RangeFiles ===

impl RangeFiles {
    fn in_folder(folder: PathBuf) -> Self {
        Self {
            proof: folder.join(PROOF_FILE),
            key: folder.join(KEY_FILE),
            public: folder.join(PUBLIC_FILE),
            range: folder.join(RANGE_FILE),
            folder,
        }
    }

    /// Verifies the files as `proofmill aggregate verify --range` does.
    fn verify(&self) -> Result<Answer, Failure> {
        answer_for(&AggregateVerify {
            aggregate: self.proof.clone(),
            key: self.key.clone(),
            inputs: Vec::new(),
            public: Some(self.public.clone()),
            range: Some(self.range.clone()),
            threads: Threads { threads: None },
            json: false,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn more_chunks_than_an_aggregate_has_are_refused_before_any_is_proven() {
        check_count(MAX_CAPACITY as u64).expect("as many as it has");
        let refused = check_count(MAX_CAPACITY as u64 + 1).expect_err("too many");
        assert_eq!(refused.code, 2);
    }
}
