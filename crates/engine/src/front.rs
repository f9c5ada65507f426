//! The part of a handle's work that runs in the caller's task: checks, files, and everything else that
//! needs no decision about jobs.

use std::path::PathBuf;
use std::sync::Arc;

use proofmill_groth16::Curve;
use proofmill_r1cs::iden3::{SCALAR_BYTES, WtnsFile};

use crate::events::unix_ms;
use crate::generator::Generator;
use crate::inputs::{Inputs, Staged};
use crate::interface::{
    CircuitRef, Error, Input, Mib, Owner, Partition, Priority, Registration, Submission, listed,
};
use crate::key::KeyPolicy;
use crate::pipeline::{Env, Prepared, PreparedPartition};
use crate::registry::{Inspection, Registered, inspect};
use crate::residency::ResidencyTable;

pub(crate) struct CallerSide {
    pub(crate) env: Arc<Env>,
    pub(crate) residency: ResidencyTable,
    /// Directory of precompiled circuits.
    pub(crate) precompiled: PathBuf,
    pub(crate) policy: KeyPolicy,
    /// Partitions under way at once.
    pub(crate) partition_workers: usize,
    pub(crate) workers: [usize; 5],
}

// === impl CallerSide ===

impl CallerSide {
    /// Checks limits, circuits and inputs, before anything is written to disk.
    pub(crate) fn check(&self, submission: &Submission) -> Result<(), Error> {
        let limits = self.env.inputs.limits();
        let count = submission.partitions.len();
        if count == 0 {
            return Err(Error::Invalid(
                "a job has at least one partition".to_owned(),
            ));
        }
        if count > limits.partitions {
            return Err(Error::TooLarge {
                what: "the number of partitions",
                size: count as u64,
                limit: limits.partitions as u64,
            });
        }
        for (number, partition) in submission.partitions.iter().enumerate() {
            let circuit = self.residency.circuit(&partition.circuit)?;
            self.check_input(&circuit, &partition.input)
                .map_err(|error| match error {
                    Error::Invalid(why) => Error::Invalid(format!("partition {number}: {why}")),
                    error => error,
                })?;
            let generator = self.generator_bytes(&partition.input)?;
            let work = circuit.footprint(self.residency.form()).peak() + generator;
            let possible = self.residency.check_possible(circuit.id, work);
            possible.map_err(|error| {
                let mut error = error.into_error(&partition.circuit);
                if let (Error::Impossible { what, .. }, 1..) = (&mut error, generator) {
                    let bytes = Mib(generator);
                    what.push_str(&format!(
                        " and {bytes} for its generator (--generator-memory),"
                    ));
                }
                error
            })?;
        }
        Ok(())
    }

    /// Names of the configured witness generators.
    fn generators(&self) -> Vec<String> {
        self.env.generators.keys().cloned().collect()
    }

    fn check_input(&self, circuit: &Registered, input: &Input) -> Result<(), Error> {
        let expected = circuit.variables * SCALAR_BYTES as u64;
        match input {
            Input::Wtns(content) if is_json(content) => {
                return Err(Error::Invalid(format!(
                    "JSON, where a witness (.wtns) is expected: to have the witness made of a circuit's \
                     inputs, name a generator, as `engine prove --generator NAME` does; {}",
                    listed(&self.generators())
                )));
            }
            Input::Wtns(content) => {
                let header = *WtnsFile::parse(content)
                    .map_err(|error| Error::Invalid(error.to_string()))?
                    .header();
                if Curve::from(header.prime) != circuit.curve
                    || u64::from(header.n_values) != circuit.variables
                {
                    return Err(Error::Invalid(format!(
                        "a witness of {} values over {}, where circuit {} has {} variables over {}: \
                         it is of another circuit",
                        header.n_values,
                        Curve::from(header.prime),
                        circuit.name,
                        circuit.variables,
                        circuit.curve
                    )));
                }
            }
            Input::Vector(content) if content.len() as u64 != expected => {
                return Err(Error::Invalid(format!(
                    "a vector of {} bytes, where circuit {} has {} variables of {SCALAR_BYTES} bytes",
                    content.len(),
                    circuit.name,
                    circuit.variables
                )));
            }
            // The content of an upload is checked when it is decoded.
            Input::Vector(_) | Input::Uploaded(_) | Input::Inputs { .. } => {}
        }
        Ok(())
    }

    /// Bytes to reserve for the program that generates an input's witness; 0 without a program.
    fn generator_bytes(&self, input: &Input) -> Result<u64, Error> {
        let Input::Inputs { generator, .. } = input else {
            return Ok(0);
        };
        match self.env.generators.get(generator) {
            Some(Generator::Program(program)) => Ok(program.memory),
            Some(Generator::Native(_)) => Ok(0),
            None => Err(Error::UnknownGenerator {
                name: generator.clone(),
                known: self.generators(),
            }),
        }
    }

    /// Most bytes that `partition_workers` partitions of one circuit use together, beside its key.
    pub(crate) fn peak_bytes_together(&self, circuit: &CircuitRef) -> Result<u64, Error> {
        let circuit = self.residency.circuit(circuit)?;
        let footprint = circuit.footprint(self.residency.form());
        Ok(footprint.peak_bytes_together(self.partition_workers, self.workers))
    }

    /// Writes a submission's inputs to disk.
    pub(crate) async fn prepare(&self, submission: Submission) -> Result<Prepared, Error> {
        let mut circuits = Vec::with_capacity(submission.partitions.len());
        for partition in &submission.partitions {
            circuits.push(self.residency.circuit(&partition.circuit)?.id);
        }
        let inputs = self.env.inputs.clone();
        let staged = blocking(move || {
            let stage = |partition: Partition| stage(&inputs, partition.input);
            submission
                .partitions
                .into_iter()
                .map(stage)
                .collect::<Result<Vec<_>, _>>()
        })
        .await??;
        Ok(Prepared {
            request: submission.request,
            priority: submission.priority,
            deadline_ms: submission.deadline.map(unix_ms),
            partitions: circuits
                .into_iter()
                .zip(staged)
                .map(|(circuit, (generator, input))| PreparedPartition {
                    circuit,
                    generator,
                    input,
                })
                .collect(),
            trace: submission.trace,
        })
    }

    /// Reads a circuit's files, and checks that one proof fits into the budget.
    pub(crate) async fn inspect(&self, registration: Registration) -> Result<Registered, Error> {
        let name = registration.name.clone();
        let inspection = blocking(move || Inspection::new(registration)).await??;
        let budget = self.residency.budget();
        let bytes = inspection.bytes;
        let reserved = budget
            .reserve(Owner::Registration, bytes, Priority::Normal)
            .await;
        let reservation = reserved.map_err(|over| Error::Impossible {
            what: format!("reading circuit {name}"),
            needed: over.needed,
            total: over.total,
            pinned: 0,
        })?;
        let (pool, folder) = (self.env.pool.clone(), self.precompiled.clone());
        let (policy, residency) = (self.policy, self.residency.clone());
        let circuit = blocking(move || {
            let circuit = pool.install(|| inspect(&inspection, policy, &folder));
            drop(reservation);
            let circuit = circuit?;
            residency.remember_points(&circuit);
            Ok::<_, Error>(circuit)
        })
        .await??;
        // A circuit that never fits is refused at registration.
        let work = circuit.footprint(self.residency.form()).peak();
        let needed = self.residency.needed(circuit.clone(), work);
        let total = budget.total();
        if needed > total {
            return Err(Error::Impossible {
                what: format!("a proof for {name}, with its key,"),
                needed,
                total,
                pinned: 0,
            });
        }
        Ok(circuit)
    }

    /// Removes a circuit, and the file that was precompiled for it.
    pub(crate) fn unregister(&self, name: &str) -> Result<(), Error> {
        let precompiled = self.residency.remove(name)?;
        // A constraints file that the caller registered lies in another folder, and stays.
        if let Some(path) = precompiled.filter(|path| path.starts_with(&self.precompiled))
            && let Err(error) = std::fs::remove_file(&path)
        {
            tracing::warn!(path = %path.display(), %error, "a precompiled circuit stays");
        }
        Ok(())
    }
}

/// Whether an input begins like a JSON object.
fn is_json(content: &[u8]) -> bool {
    content.trim_ascii_start().starts_with(b"{")
}

/// Writes an input to disk. Returns the name of its generator, if it has one, and the file.
fn stage(inputs: &Inputs, input: Input) -> Result<(Option<String>, Staged), Error> {
    let limits = *inputs.limits();
    match input {
        Input::Wtns(content) | Input::Vector(content) => {
            Ok((None, inputs.stage(&content, limits.witness_bytes)?))
        }
        Input::Uploaded(upload) => Ok((None, upload.finish()?)),
        Input::Inputs { generator, json } => {
            Ok((Some(generator), inputs.stage(&json, limits.json_bytes)?))
        }
    }
}

async fn blocking<T: Send + 'static>(
    work: impl FnOnce() -> T + Send + 'static,
) -> Result<T, Error> {
    // The task ends early only if it panics or the runtime ends.
    tokio::task::spawn_blocking(work)
        .await
        .map_err(|_| Error::Stopped)
}
