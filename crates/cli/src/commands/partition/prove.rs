//! `proofmill partition prove`

use proofmill_partition::with_partition_curve;
use std::path::{Path, PathBuf};
use std::sync::atomic::AtomicBool;
use std::time::{Duration, Instant};

use ark_std::rand::rngs::OsRng;
use proofmill_files::is_inherited;
use proofmill_groth16::snarkjs::inputs_to_json;
use proofmill_partition::PartitionedCircuit;
use proofmill_partition::proof::{Journal, PartitionCurve};
use proofmill_telemetry::console_line;
use serde_json::json;

use super::proving::{PartsProgress, PlannedMemory, ProvingKeys, stop_after_part};
use crate::args::partition::{PartitionProve, ProofArgs};
use crate::circuit_folder::{AnyCircuit, Folder};
use crate::failure::Failure;
use crate::files::{FilePlan, OverwritePolicy, write_together};
use crate::output;
use crate::progress::counted;
use crate::stages::{milliseconds, short};

/// Facts about a proof, for the summary.
struct ProofFacts {
    bytes: usize,
    /// Commitments and proofs taken from the journal of an earlier run.
    resumed: (usize, usize),
    total: Duration,
    memory: PlannedMemory,
}

pub(super) async fn run(args: &PartitionProve) -> Result<(), Failure> {
    let folder = Folder::at(&args.keys);
    check_files(Some(&args.witness), &args.output)?;
    let description = folder.description()?;
    let witness = description.circuit.read_witness(&args.witness)?;
    prove_in(&folder, Some(&args.witness), &witness, &args.output).await
}

/// Fails if the files that a proof reads and writes are in each other's way, or a workflow could not read the witness.
pub(crate) fn check_files(witness: Option<&Path>, args: &ProofArgs) -> Result<(), Failure> {
    if args.workflow.is_some() && witness.is_none_or(is_inherited) {
        let why = "a workflow reads the witness from a file, and none is named";
        return Err(Failure::usage(why));
    }
    let journal = journal_path(args);
    let mut plan = FilePlan::default();
    if let Some(witness) = witness {
        plan = plan.reads("the witness", witness);
    }
    plan = plan
        .writes("the proof", &args.proof)
        .writes("the public inputs", &args.public);
    if args.workflow.is_none() {
        plan = plan.writes("the journal", &journal);
    }
    plan.check(OverwritePolicy::NothingHardToRecreate)
}

/// Proves a folder's circuit with a witness, after [`check_files`]; or writes the workflow that does, with the path of the
/// witness.
pub(crate) async fn prove_in(
    folder: &Folder,
    path: Option<&Path>,
    witness: &[u8],
    args: &ProofArgs,
) -> Result<(), Failure> {
    let description = folder.description()?;
    if let (Some(workflow), Some(witness)) = (&args.workflow, path) {
        return super::workflow::write(folder, &description, witness, workflow, args);
    }
    let journal = journal_path(args);
    let stopped = stop_after_part()?;
    let curve = description.curve()?;
    let (made, parts) = tokio::task::block_in_place(|| {
        args.threads.run(|| {
            with_partition_curve!(curve, E => {
                let circuit = description.circuit.with_witness(folder, witness)?;
                let made = prove::<E>(args, folder, &circuit, &journal, &stopped)?;
                Ok::<_, Failure>((made, circuit.num_parts()))
            })?
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
            "memory": made.memory.to_json(),
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
    let mut shown = PartsProgress::begin(circuit.num_parts(), 1);
    let keys = ProvingKeys::<E>::open(folder, args.memory, &shown)?;
    let mut journal = Journal::<E>::open(journal, &mut OsRng)?;
    let resumed = journal.progress();
    let proof = keys.prove(circuit, &mut journal, &mut shown, stopped)?;
    let encoded = proof.to_bytes();
    let public = inputs_to_json(&circuit.public_inputs());
    write_together(&[(&args.public, public.as_bytes()), (&args.proof, &encoded)])?;
    journal.remove()?;
    Ok(ProofFacts {
        bytes: encoded.len(),
        resumed,
        total: began.elapsed(),
        memory: keys.memory(),
    })
}
