//! `proofmill partition prove`

use std::ops::ControlFlow;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use ark_std::rand::rngs::OsRng;
use proofmill_groth16::snarkjs::inputs_to_json;
use proofmill_groth16::with_curve;
use proofmill_partition::PartitionedCircuit;
use proofmill_partition::proof::{
    ClassKeys, Journal, KeyForm, MemoryLimit, PartitionCurve, ProveError, Prover, SLACK, Step,
};
use proofmill_telemetry::console_line;
use serde_json::json;

use crate::args::partition::{PartitionProve, ProofArgs};
use crate::circuit_folder::{AnyCircuit, Folder};
use crate::commands::engine::bytes;
use crate::failure::Failure;
use crate::files::{FilePlan, OverwritePolicy, write_together};
use crate::progress::{Bar, Screen, counted};
use crate::stages::{milliseconds, short};
use crate::{output, signals};

/// Shortest time between progress lines where there is no terminal.
const LINE_INTERVAL_MIN: Duration = Duration::from_secs(10);

/// Size from which freed allocations are returned to the system; small enough to include the values of a small part.
const RETURNED_BYTES: u32 = 128 << 10;

/// Assumed memory of the program itself, in bytes, where the system does not report it.
const PROGRAM_BYTES_DEFAULT: u64 = 24 << 20;

const MEMORY_ADVICE: &str = "give it more memory, or cut the circuit into more and smaller parts: `proofmill partition info` says what a part \
     takes";

/// Facts about a proof, for the summary.
struct ProofFacts {
    bytes: usize,
    /// Commitments and proofs taken from the journal of an earlier run.
    resumed: (usize, usize),
    total: Duration,
    memory: Memory,
}

/// Memory planned for a proof.
struct Memory {
    form: KeyForm,
    /// Expected peak memory in bytes, including the program itself.
    expected: u64,
}

/// Progress: a bar, or lines where there is no terminal.
struct PartsProgress {
    screen: Screen,
    bar: Bar,
    parts: usize,
    said: Instant,
}

pub(super) async fn run(args: &PartitionProve) -> Result<(), Failure> {
    let folder = Folder::at(&args.keys);
    prove_in(&folder, Some(&args.witness), &args.output).await
}

/// Proves a folder's circuit, with the witness of this file or with an empty one; or writes the workflow that does.
pub(crate) async fn prove_in(
    folder: &Folder,
    witness: Option<&Path>,
    args: &ProofArgs,
) -> Result<(), Failure> {
    let description = folder.description()?;
    if let Some(path) = &args.workflow {
        let witness = witness.ok_or_else(|| {
            Failure::usage("a workflow reads the witness from a file, and none is named")
        })?;
        return super::workflow::write(folder, &description, witness, path, args);
    }
    let journal = journal_path(args);
    let mut plan = FilePlan::default();
    if let Some(witness) = witness {
        plan = plan.reads("the witness", witness);
    }
    plan.writes("the proof", &args.proof)
        .writes("the public inputs", &args.public)
        .check(OverwritePolicy::NothingHardToRecreate)?;
    let witness = description.circuit.read_witness(witness)?;
    let stopped = Arc::new(AtomicBool::new(false));
    let first = signals::first_signal()?;
    let raised = Arc::clone(&stopped);
    tokio::spawn(async move {
        first.await;
        console_line("stopping after this part; Ctrl-C again to stop now");
        raised.store(true, Ordering::Relaxed);
    });
    let curve = description.curve()?;
    let (made, parts) = tokio::task::block_in_place(|| {
        args.threads.run(|| {
            with_curve!(curve, E => {
                let circuit = description.circuit.with_witness(folder, &witness)?;
                let made = prove::<E>(args, folder, &circuit, &journal, &stopped)?;
                Ok::<_, Failure>((made, circuit.num_parts()))
            })
        })
    })??;
    console_line(output::plain(&format!(
        "{}, {}: a proof over {curve} for {}, {} bytes, verified, in {}",
        args.proof.display(),
        args.public.display(),
        counted(parts, "part"),
        made.bytes,
        short(made.total)
    )));
    if args.json {
        let answer = json!({
            "curve": curve.name(),
            "parts": parts,
            "bytes": made.bytes,
            "resumed": { "commitments": made.resumed.0, "proofs": made.resumed.1 },
            "total_ms": milliseconds(made.total),
            "memory": {
                "keys": name_of(made.memory.form),
                "expected_bytes": made.memory.expected,
                "peak_bytes": proofmill_memory::peak(),
            },
        });
        output::line(answer.to_string())?;
    }
    Ok(())
}

fn journal_path(args: &ProofArgs) -> PathBuf {
    args.journal.clone().unwrap_or_else(|| {
        let mut path = args.proof.clone().into_os_string();
        path.push(".journal");
        path.into()
    })
}

fn prove<E: PartitionCurve>(
    args: &ProofArgs,
    folder: &Folder,
    circuit: &AnyCircuit<E::ScalarField>,
    journal: &Path,
    stopped: &AtomicBool,
) -> Result<ProofFacts, Failure> {
    let began = Instant::now();
    let mut shown = PartsProgress::begin(circuit.num_parts());
    shown.say(0, "reading keys");
    proofmill_memory::return_allocations_from(RETURNED_BYTES);
    let own = proofmill_memory::resident().unwrap_or(PROGRAM_BYTES_DEFAULT);
    refuse_if_files_exceed(args, folder, own)?;
    let partition = folder.partition()?;
    let needs = folder.memory::<E>(&partition)?;
    let form = match args.memory {
        None => KeyForm::Plain,
        Some(limit) => needs
            .fastest(limit.saturating_sub(own))
            .map_err(|refused| memory_failure(limit, own, &refused))?,
    };
    let memory = Memory {
        form,
        expected: own + needs.peak(form),
    };
    if args.memory.is_some() {
        shown.screen.note(&format!(
            "{} of memory at most, keys {}",
            bytes(memory.expected),
            name_of(form)
        ));
    }
    let (index, srs) = folder.index::<E>(partition)?;
    let keys = ClassKeys::in_folder(folder.path().to_owned(), form);
    let mut journal = Journal::<E>::open(journal, &mut OsRng)?;
    let resumed = journal.progress();
    if resumed != (0, 0) {
        shown.screen.note(&format!(
            "continuing: {} and {} were made before",
            counted(resumed.0, "commitment"),
            counted(resumed.1, "proof")
        ));
    }
    let prover = Prover {
        index: &index,
        srs: &srs,
        keys: &keys,
    };
    let progress = |step| {
        shown.step(step);
        if args.memory.is_some() {
            // Release code pages used only by the last step, which otherwise count as memory of the process.
            proofmill_memory::release_program_pages();
        }
        match stopped.load(Ordering::Relaxed) {
            true => ControlFlow::Break(()),
            false => ControlFlow::Continue(()),
        }
    };
    let proved = prover.prove(circuit, &mut journal, &mut OsRng, progress);
    let proof = proved.map_err(|error| match error {
        ProveError::Interrupted => {
            let (commitments, proofs) = journal.progress();
            Failure::interrupted(format!(
                "stopped, with {} and {} in the journal",
                counted(commitments, "commitment"),
                counted(proofs, "proof")
            ))
            .help("run the same command again to continue")
        }
        error => Failure::of(&error),
    })?;
    let encoded = proof.to_bytes();
    let public = inputs_to_json(&circuit.public_inputs());
    write_together(&[(&args.public, public.as_bytes()), (&args.proof, &encoded)])?;
    journal.remove()?;
    Ok(ProofFacts {
        bytes: encoded.len(),
        resumed,
        total: began.elapsed(),
        memory,
    })
}

/// Fails if the files that are read whole exceed `--memory`, before any is read.
fn refuse_if_files_exceed(args: &ProofArgs, folder: &Folder, own: u64) -> Result<(), Failure> {
    let Some(limit) = args.memory else {
        return Ok(());
    };
    let files = folder.bytes_read_whole()?;
    if own + files <= limit {
        return Ok(());
    }
    let (limit, files) = (bytes(limit), bytes(files));
    let message = format!(
        "--memory {limit}: the partition and the reference string alone take {files} of it"
    );
    Err(Failure::new(message).help(MEMORY_ADVICE))
}

fn memory_failure(limit: u64, own: u64, refused: &MemoryLimit) -> Failure {
    let [limit, least, circuit, records, part, own] = [
        limit,
        own + refused.least,
        refused.circuit,
        refused.records,
        refused.part,
        own + SLACK,
    ]
    .map(bytes);
    Failure::new(format!(
        "--memory {limit}: this proof takes {least} at least: {circuit} for the constraints of all classes, {records} \
         for records of all parts, {part} for the largest part with its key in its file, {own} for the program itself"
    ))
    .help(MEMORY_ADVICE)
}

/// Name of a key's form in memory, for text and JSON.
const fn name_of(form: KeyForm) -> &'static str {
    match form {
        KeyForm::Mapped => "mapped",
        KeyForm::Plain => "plain",
        KeyForm::Prepared { .. } => "prepared",
    }
}

// === impl PartsProgress ===

impl PartsProgress {
    fn begin(parts: usize) -> Self {
        let screen = Screen::open();
        // A commitment and a proof for each part, and the aggregation.
        let bar = screen.bar("prove", Some(2 * parts as u64 + 1));
        Self {
            screen,
            bar,
            parts,
            said: Instant::now(),
        }
    }

    fn step(&mut self, step: Step) {
        match step {
            Step::Trace => self.say(0, "tracing shared wires"),
            Step::Commit { part, done } => self.say(done, &format!("committing to part {part}")),
            Step::Prove { part, done } => {
                self.say(self.parts + done, &format!("proving part {part}"));
            }
            _ => self.say(2 * self.parts, "aggregating"),
        }
    }

    fn say(&mut self, position: usize, text: &str) {
        self.bar.set(position as u64, text);
        if self.said.elapsed() >= LINE_INTERVAL_MIN {
            self.said = Instant::now();
            self.screen
                .line(&format!("{text} ({position} of {})", 2 * self.parts + 1));
        }
    }
}

impl Drop for PartsProgress {
    fn drop(&mut self) {
        self.bar.clear();
        self.screen.close();
    }
}
