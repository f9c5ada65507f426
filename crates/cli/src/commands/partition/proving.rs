//! The keys of a folder, held to prove with, and the proof of one circuit: for every command that proves circuits in
//! parts.

use std::ops::ControlFlow;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use ark_std::rand::rngs::OsRng;
use proofmill_aggregation::Srs;
use proofmill_partition::PartitionedCircuit;
use proofmill_partition::proof::{
    ClassKeys, Index, Journal, KeyForm, MemoryLimit, PartitionCurve, PartitionProof, ProveError,
    Prover, SLACK, Step, VerifyingKey,
};
use proofmill_telemetry::console_line;
use serde_json::{Value, json};

use crate::circuit_folder::Folder;
use crate::commands::engine::bytes;
use crate::failure::Failure;
use crate::progress::{Bar, Screen, counted};
use crate::signals;

/// Shortest time between progress lines where there is no terminal.
const LINE_INTERVAL_MIN: Duration = Duration::from_secs(10);

/// Size from which freed allocations are returned to the system; small enough to include the values of a small part.
const RETURNED_BYTES: u32 = 128 << 10;

/// Assumed memory of the program itself, in bytes, where the system does not report it.
const PROGRAM_BYTES_DEFAULT: u64 = 24 << 20;

const MEMORY_ADVICE: &str = "give it more memory, or cut the circuit into more and smaller parts: `proofmill partition info` says what a part \
     takes";

/// Keys to prove with.
pub(in crate::commands) struct ProvingKeys<E: PartitionCurve> {
    index: Index<E>,
    srs: Srs<E>,
    keys: ClassKeys<E>,
    memory: PlannedMemory,
}

/// Memory planned for a proof.
#[derive(Clone, Copy)]
pub(in crate::commands) struct PlannedMemory {
    form: KeyForm,
    /// Expected peak memory in bytes, including the program itself.
    expected: u64,
    is_limited: bool,
}

/// Progress of proofs of circuits with the same number of parts, one after the other: a bar, or lines where there is no
/// terminal.
pub(in crate::commands) struct PartsProgress {
    pub(in crate::commands) screen: Screen,
    bar: Bar,
    parts: usize,
    proofs: usize,
    /// The number of proofs that are done.
    done: usize,
    /// The proof under way, before each text; empty if there is one only.
    current: String,
    said: Instant,
}

/// A flag that the first Ctrl-C or SIGTERM raises, so that a prover stops after the part under way. The second signal
/// exits the process.
pub(in crate::commands) fn stop_after_part() -> Result<Arc<AtomicBool>, Failure> {
    let stopped = Arc::new(AtomicBool::new(false));
    let first = signals::first_signal()?;
    let raised = Arc::clone(&stopped);
    tokio::spawn(async move {
        first.await;
        console_line("stopping after this part; Ctrl-C again to stop now");
        raised.store(true, Ordering::Relaxed);
    });
    Ok(stopped)
}

// === impl ProvingKeys ===

impl<E: PartitionCurve> ProvingKeys<E> {
    /// Reads the keys of a folder. With a limit of memory keys are held in the fastest form that fits, and too small a
    /// limit is refused before anything large is read.
    pub(in crate::commands) fn open(
        folder: &Folder,
        limit: Option<u64>,
        shown: &PartsProgress,
    ) -> Result<Self, Failure> {
        shown.bar.set(0, "reading keys");
        proofmill_memory::return_allocations_from(RETURNED_BYTES);
        let own = proofmill_memory::resident().unwrap_or(PROGRAM_BYTES_DEFAULT);
        refuse_if_files_exceed(limit, folder, own)?;
        let partition = folder.partition()?;
        let needs = folder.memory::<E>(&partition)?;
        let form = match limit {
            None => KeyForm::Plain,
            Some(limit) => needs
                .fastest(limit.saturating_sub(own))
                .map_err(|refused| memory_failure(limit, own, &refused))?,
        };
        let memory = PlannedMemory {
            form,
            expected: own + needs.peak(form),
            is_limited: limit.is_some(),
        };
        if memory.is_limited {
            shown.screen.note(&format!(
                "{} of memory at most, keys {}",
                bytes(memory.expected),
                memory.form_name()
            ));
        }
        let (index, srs) = folder.index::<E>(partition)?;
        Ok(Self {
            index,
            srs,
            keys: ClassKeys::in_folder(folder.path().to_owned(), form),
            memory,
        })
    }

    pub(in crate::commands) const fn verifying_key(&self) -> &VerifyingKey<E> {
        self.index.verifying_key()
    }

    pub(in crate::commands) const fn memory(&self) -> PlannedMemory {
        self.memory
    }

    /// Proves a circuit, from where its journal ends. The proof is verified.
    pub(in crate::commands) fn prove(
        &self,
        circuit: &impl PartitionedCircuit<E::ScalarField>,
        journal: &mut Journal<E>,
        shown: &mut PartsProgress,
        stopped: &AtomicBool,
    ) -> Result<PartitionProof<E>, Failure> {
        let resumed = journal.progress();
        if resumed != (0, 0) {
            shown.screen.note(&format!(
                "continuing: {} and {} were made before",
                counted(resumed.0, "commitment"),
                counted(resumed.1, "proof")
            ));
        }
        let prover = Prover {
            index: &self.index,
            srs: &self.srs,
            keys: &self.keys,
        };
        let progress = |step| {
            shown.step(step);
            if self.memory.is_limited {
                // Release code pages used only by the last step, which otherwise count as memory of the process.
                proofmill_memory::release_program_pages();
            }
            match stopped.load(Ordering::Relaxed) {
                true => ControlFlow::Break(()),
                false => ControlFlow::Continue(()),
            }
        };
        let proved = prover.prove(circuit, journal, &mut OsRng, progress);
        proved.map_err(|error| match error {
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
        })
    }
}

/// Fails if the files that are read whole exceed `--memory`, before any is read.
fn refuse_if_files_exceed(limit: Option<u64>, folder: &Folder, own: u64) -> Result<(), Failure> {
    let Some(limit) = limit else {
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

// === impl PlannedMemory ===

impl PlannedMemory {
    /// Name of the keys' form, for text and JSON.
    const fn form_name(self) -> &'static str {
        match self.form {
            KeyForm::Mapped => "mapped",
            KeyForm::Plain => "plain",
            KeyForm::Prepared { .. } => "prepared",
        }
    }

    /// The plan, and the peak that was measured.
    pub(in crate::commands) fn to_json(self) -> Value {
        json!({
            "keys": self.form_name(),
            "expected_bytes": self.expected,
            "peak_bytes": proofmill_memory::peak(),
        })
    }
}

// === impl PartsProgress ===

impl PartsProgress {
    /// Progress of so many proofs, each of a circuit of so many parts.
    pub(in crate::commands) fn begin(parts: usize, proofs: usize) -> Self {
        let screen = Screen::open();
        let bar = screen.bar("prove", Some((proofs * Self::steps(parts)) as u64));
        Self {
            screen,
            bar,
            parts,
            proofs,
            done: 0,
            current: String::new(),
            said: Instant::now(),
        }
    }

    /// A commitment and a proof for each part, and the aggregation.
    const fn steps(parts: usize) -> usize {
        2 * parts + 1
    }

    /// Begins the proof with this name, when so many are done.
    pub(in crate::commands) fn next_proof(&mut self, done: usize, name: &str) {
        self.done = done;
        self.current = format!("{name}: ");
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
        let steps = Self::steps(self.parts);
        let position = self.done * steps + position;
        let text = format!("{}{text}", self.current);
        self.bar.set(position as u64, &text);
        if self.said.elapsed() >= LINE_INTERVAL_MIN {
            self.said = Instant::now();
            let total = self.proofs * steps;
            self.screen.line(&format!("{text} ({position} of {total})"));
        }
    }
}

impl Drop for PartsProgress {
    fn drop(&mut self) {
        self.bar.clear();
        self.screen.close();
    }
}
