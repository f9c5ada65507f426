//! `proofmill vkd prove`
//!
//! Unfinished work is in the directory's folder `proving`, in a folder for each epoch: `000000.proof`, … are the proofs
//! of finished batches, and the journal of the batch under way is beside them. All that is removed once the epoch's
//! record is published.

use proofmill_partition::with_partition_curve;
use std::io;
use std::path::Path;
use std::sync::atomic::AtomicBool;
use std::time::{Duration, Instant};

use ark_std::rand::rngs::OsRng;
use proofmill_directory::Tree;
use proofmill_directory::chain::{Checkpoint, EpochRecord, public_inputs, verify_chain};
use proofmill_directory::circuit::{BatchShape, UpdateBatch};
use proofmill_directory::store::{KeyDirectory, StoreError};
use proofmill_files::{DirectoryLock, Visibility, make_private_directory};
use proofmill_partition::proof::{Journal, PartitionCurve, PartitionProof};
use proofmill_telemetry::console_line;
use serde_json::{Value, json};

use super::directory::open;
use super::epoch::{EpochUpdates, counted_batches, describe};
use crate::args::vkd::Prove;
use crate::circuit_folder::Folder;
use crate::commands::partition::proving::{
    PartsProgress, PlannedMemory, ProvingKeys, stop_after_part,
};
use crate::failure::Failure;
use crate::files::write;
use crate::output;
use crate::progress::counted;
use crate::stages::{milliseconds, short};

/// Work under way on the epochs of a directory.
struct EpochProver<'a, E: PartitionCurve> {
    directory: &'a KeyDirectory,
    keys: ProvingKeys<E>,
    shown: PartsProgress,
    stopped: &'a AtomicBool,
    /// Batches that are done.
    done: usize,
    facts: ProvingFacts,
}

/// Facts about the work, for the summary.
struct ProvingFacts {
    epochs: Vec<ProvedEpoch>,
    resumed: Resumed,
    memory: PlannedMemory,
}

/// An epoch that was proved.
struct ProvedEpoch {
    record: EpochRecord,
    bytes: usize,
    took: Duration,
}

/// Work that an earlier run had done.
#[derive(Default)]
struct Resumed {
    /// Proofs of whole batches.
    batches: usize,
    /// Commitments to parts, and proofs of parts.
    commitments: usize,
    proofs: usize,
}

pub(super) async fn run(args: &Prove) -> Result<(), Failure> {
    let began = Instant::now();
    let folder = Folder::at(&args.keys);
    let (description, shape) = describe(&folder)?;
    let directory = open(&args.directory)?;
    let _lock = lock(&directory.proving_path())?;
    let numbers = take_up_work(args, &directory)?;
    if numbers.is_empty() {
        return nothing_to_do(args, &directory);
    }
    let stopped = stop_after_part()?;
    let curve = description.curve()?;
    let (facts, ended) = tokio::task::block_in_place(|| {
        args.threads.run(|| {
            with_partition_curve!(curve, E => {
                prove::<E>(args, &folder, shape, &directory, &numbers, &stopped)
            })?
        })
    })??;
    let shown = args.directory.display();
    for epoch in &facts.epochs {
        console_line(output::plain(&format!(
            "{shown}: {}, verified and published, in {}",
            epoch.described(),
            short(epoch.took)
        )));
    }
    if args.json {
        let Resumed {
            batches,
            commitments,
            proofs,
        } = facts.resumed;
        let epochs = facts.epochs.iter().map(ProvedEpoch::to_json);
        let answer = json!({
            "epochs": epochs.collect::<Vec<_>>(),
            "resumed": { "batches": batches, "commitments": commitments, "proofs": proofs },
            "memory": facts.memory.to_json(),
            "total_ms": milliseconds(began.elapsed()),
        });
        output::line(answer.to_string())?;
    }
    ended
}

/// The epochs to prove: the one that is named, or all without a record. Removes unfinished work on epochs that have one:
/// it is secret, and was left by a run that ended after it had published, or whose epoch was proved elsewhere.
fn take_up_work(args: &Prove, directory: &KeyDirectory) -> Result<Vec<u64>, Failure> {
    let last = directory.epoch();
    let named = match args.epoch {
        Some(number) if number > last => return Err(StoreError::NoEpoch { number, last }.into()),
        Some(number) => number..=number,
        None => 1..=last,
    };
    let mut numbers = Vec::new();
    for number in named {
        let path = directory.record_path(number);
        if !path.try_exists().map_err(failed(&path))? {
            numbers.push(number);
            continue;
        }
        let left = directory.epoch_proving_path(number);
        match std::fs::remove_dir_all(&left) {
            Err(error) if error.kind() != io::ErrorKind::NotFound => {
                return Err(failed(&left)(error));
            }
            _ => {}
        }
    }
    Ok(numbers)
}

fn nothing_to_do(args: &Prove, directory: &KeyDirectory) -> Result<(), Failure> {
    let (shown, last) = (args.directory.display(), directory.epoch());
    console_line(output::plain(&match args.epoch {
        Some(number) => format!("{shown}: epoch {number} has its record already"),
        None if last == 0 => format!("{shown}: there is no epoch yet"),
        None => format!("{shown}: all epochs up to {last} have their records already"),
    }));
    match args.json {
        true => output::line(json!({ "epochs": [] }).to_string()),
        false => Ok(()),
    }
}

/// The folder of unfinished work, for this process alone.
fn lock(path: &Path) -> Result<DirectoryLock, Failure> {
    make_private_directory(path).map_err(failed(path))?;
    let locked = DirectoryLock::acquire(path).map_err(failed(path))?;
    locked.map_err(|held| {
        let by = held
            .pid
            .map_or("another process".to_owned(), |pid| format!("process {pid}"));
        Failure::new(format!("{}: {by} is proving", path.display())).help("wait for it to end")
    })
}

fn failed(path: &Path) -> impl Fn(io::Error) -> Failure {
    move |error| Failure::new(format!("{}: {error}", path.display()))
}

/// Proves the epochs in their order. Returns the facts of those that are published, and how it ended.
fn prove<E: PartitionCurve>(
    args: &Prove,
    folder: &Folder,
    shape: BatchShape,
    directory: &KeyDirectory,
    numbers: &[u64],
    stopped: &AtomicBool,
) -> Result<(ProvingFacts, Result<(), Failure>), Failure> {
    let mut batches = 0;
    for number in numbers {
        batches += EpochUpdates::read(directory, shape, *number)?.count();
    }
    let shown = PartsProgress::begin(shape.parts(), batches);
    let keys = ProvingKeys::<E>::open(folder, args.memory, &shown)?;
    let facts = ProvingFacts {
        epochs: Vec::new(),
        resumed: Resumed::default(),
        memory: keys.memory(),
    };
    let mut prover = EpochProver {
        directory,
        keys,
        shown,
        stopped,
        done: 0,
        facts,
    };
    // The tree after an epoch is the one before the next: it is not made again.
    let mut known: Option<(u64, Tree)> = None;
    let ended = numbers.iter().try_for_each(|number| {
        let tree = match known.take() {
            Some((following, tree)) if following == *number => tree,
            _ => directory.tree_before(*number)?,
        };
        let epoch = EpochUpdates::read(directory, shape, *number)?;
        known = Some((number + 1, prover.prove_epoch(&epoch, tree)?));
        Ok(())
    });
    Ok((prover.facts, ended))
}

// === impl EpochProver ===

impl<E: PartitionCurve> EpochProver<'_, E> {
    /// Proves an epoch and publishes its record. Returns the tree after the epoch.
    fn prove_epoch(&mut self, epoch: &EpochUpdates, tree: Tree) -> Result<Tree, Failure> {
        let began = Instant::now();
        let (number, count) = (epoch.number, epoch.count());
        let folder = self.directory.epoch_proving_path(number);
        make_private_directory(&folder).map_err(failed(&folder))?;
        let mut record = EpochRecord::new(number, epoch.root_before);
        let mut batches = epoch.batches(tree)?;
        for (index, batch) in batches.by_ref().enumerate() {
            let batch = batch?;
            let name = format!("epoch {number}, batch {} of {count}", index + 1);
            self.shown.next_proof(self.done, &name);
            let proof = self.prove_batch(&folder, index, &batch)?;
            record.push(batch.root_after(), batch.len(), &proof);
            self.done += 1;
        }
        let before = Checkpoint {
            number: number - 1,
            root: epoch.root_before,
        };
        let record = [record];
        verify_chain(self.keys.verifying_key(), before, &record)?;
        let [record] = record;
        self.directory.publish(&record)?;
        self.facts.epochs.push(ProvedEpoch {
            bytes: record.to_bytes().len(),
            record,
            took: began.elapsed(),
        });
        std::fs::remove_dir_all(&folder).map_err(failed(&folder))?;
        Ok(batches.tree().clone())
    }

    fn prove_batch(
        &mut self,
        folder: &Path,
        index: usize,
        batch: &UpdateBatch,
    ) -> Result<PartitionProof<E>, Failure> {
        let path = folder.join(format!("{index:06}.proof"));
        let journal_path = folder.join(format!("{index:06}.journal"));
        if path.try_exists().map_err(failed(&path))? {
            let proof = self.finished_proof(&path, batch)?;
            self.facts.resumed.batches += 1;
            // An earlier run may have ended before it removed the journal.
            return match std::fs::remove_file(&journal_path) {
                Err(error) if error.kind() != io::ErrorKind::NotFound => {
                    Err(failed(&journal_path)(error))
                }
                _ => Ok(proof),
            };
        }
        let mut journal = Journal::<E>::open(&journal_path, &mut OsRng)?;
        let (commitments, proofs) = journal.progress();
        self.facts.resumed.commitments += commitments;
        self.facts.resumed.proofs += proofs;
        let (shown, stopped) = (&mut self.shown, self.stopped);
        let proof = self.keys.prove(batch, &mut journal, shown, stopped)?;
        write(&path, Visibility::Private, &proof.to_bytes())?;
        journal.remove()?;
        Ok(proof)
    }

    /// The proof of a batch that an earlier run finished.
    fn finished_proof(
        &self,
        path: &Path,
        batch: &UpdateBatch,
    ) -> Result<PartitionProof<E>, Failure> {
        let advice = || {
            let folder = path.parent().unwrap_or(path).display();
            format!("continue with the keys that it was made with, or remove {folder}")
        };
        let unusable = |why: String| {
            Failure::new(format!("{}: unfinished work: {why}", path.display())).help(advice())
        };
        let proof = PartitionProof::<E>::load(path).map_err(|error| unusable(error.to_string()))?;
        let inputs = public_inputs(&batch.root_before(), &batch.root_after());
        let verified = self.keys.verifying_key().verify(&inputs, &proof);
        verified.map_err(|error| unusable(error.to_string()))?;
        Ok(proof)
    }
}

// === impl ProvedEpoch ===

impl ProvedEpoch {
    fn described(&self) -> String {
        let Self { record, bytes, .. } = self;
        let (number, updates) = (record.number, record.updates() as usize);
        let updates = counted(updates, "update");
        let batches = counted_batches(record.batches.len());
        format!("epoch {number}, {updates} in {batches}, a record of {bytes} bytes")
    }

    fn to_json(&self) -> Value {
        let Self {
            record,
            bytes,
            took,
        } = self;
        json!({
            "number": record.number,
            "root": record.root_after(),
            "updates": record.updates(),
            "batches": record.batches.len(),
            "bytes": bytes,
            "ms": milliseconds(*took),
        })
    }
}
