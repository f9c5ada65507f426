//! `proofmill partition setup`

use std::io::ErrorKind;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};

use ark_std::rand::rngs::OsRng;
use proofmill_aggregation::Srs;
use proofmill_files::{Visibility, folder_of};
use proofmill_groth16::Curve;
use proofmill_groth16::mirage::Setup;
use proofmill_partition::Partition;
use proofmill_partition::proof::{ClassKeys, Index, PartitionCurve};
use proofmill_partition::with_partition_curve;
use proofmill_telemetry::{console_flush, console_line};
use serde_json::json;

use crate::args::partition::{Circuit, PartitionSetup, SetupArgs};
use crate::circuit_folder::{CircuitSizes, Description, Folder, program_path};
use crate::failure::Failure;
use crate::files::write;
use crate::progress::counted;
use crate::stages::{StageTimes, Stages, milliseconds, short};
use crate::{STDERR_FLUSH_MAX, output, signals};

/// Most attempts to remove unfinished keys.
const REMOVALS_MAX: usize = 100;

/// A circuit to make keys for.
pub(crate) struct NewCircuit {
    pub(crate) sizes: CircuitSizes,
    /// The executable that the circuit is of, if it is of one.
    pub(crate) program: Option<Vec<u8>>,
}

/// Facts about new keys, for the summary.
struct KeyFacts {
    parts: usize,
    classes: usize,
    constraints: usize,
    digest: String,
    stage_times: StageTimes,
}

pub(super) fn run(args: &PartitionSetup) -> Result<(), Failure> {
    let (circuit, args) = match &args.circuit {
        Circuit::MerkleTree(tree) => {
            let sizes = CircuitSizes::MerkleTree {
                levels: tree.levels,
                hashes: tree.hashes,
                portals: tree.portals,
            };
            (sizes, &tree.setup)
        }
        Circuit::Squarings(squarings) => {
            let sizes = CircuitSizes::Squarings {
                parts: squarings.parts,
                squarings: squarings.squarings,
                portals: squarings.portals,
            };
            (sizes, &squarings.setup)
        }
    };
    let circuit = NewCircuit {
        sizes: circuit,
        program: None,
    };
    make_and_report(circuit, args)
}

/// Makes a folder of keys, and says what is in it.
pub(crate) fn make_and_report(circuit: NewCircuit, args: &SetupArgs) -> Result<(), Failure> {
    let path = &args.output;
    if path.symlink_metadata().is_ok() {
        let message = format!("{} already exists", path.display());
        return Err(Failure::usage(message).help("name another folder with -o, or remove that one"));
    }
    let curve = Curve::from(args.curve);
    let description = Description {
        curve: curve.name().to_owned(),
        circuit: circuit.sizes,
    };
    let program = circuit.program.as_deref();
    let interrupted = signals::first_signal()?;
    // Made under another name beside it, and renamed when it is complete.
    let failed = |error: std::io::Error| Failure::new(format!("{}: {error}", path.display()));
    let staged = tempfile::Builder::new()
        .prefix(".proofmill-setup-")
        .tempdir_in(folder_of(path))
        .map_err(failed)?;
    let finished = Arc::new(Mutex::new(false));
    let removing = remove_when(interrupted, staged.path().to_owned(), Arc::clone(&finished));
    let removing = tokio::spawn(removing);
    let made = args.threads.run(
        || with_partition_curve!(curve, E => make::<E>(&description, program, staged.path()))?,
    )?;
    // While the keys are removed this waits, for the end of the process.
    let mut is_finished = finished.lock().unwrap_or_else(PoisonError::into_inner);
    let made = made?;
    let staged = staged.keep();
    std::fs::rename(&staged, path).map_err(|error| {
        // Another process made `path` meanwhile: leave it, and remove the staged keys.
        let _ = std::fs::remove_dir_all(&staged);
        failed(error)
    })?;
    *is_finished = true;
    drop(is_finished);
    removing.abort();
    console_line(output::plain(&format!(
        "{}: keys over {curve} for {} of {}, {} constraints in all, in {}",
        path.display(),
        counted(made.parts, "part"),
        counted_classes(made.classes),
        made.constraints,
        short(made.stage_times.total)
    )));
    console_line(format!("  digest of the verifying key {}", made.digest));
    console_line(
        "warning: one party made these keys and could forge proofs: they are for development",
    );
    if args.json {
        let answer = json!({
            "curve": curve.name(),
            "parts": made.parts,
            "classes": made.classes,
            "constraints": made.constraints,
            "digest": made.digest,
            "stages": made.stage_times.to_json(),
            "total_ms": milliseconds(made.stage_times.total),
        });
        output::line(answer.to_string())?;
    }
    Ok(())
}

fn counted_classes(count: usize) -> String {
    match count {
        1 => "1 class".to_owned(),
        count => format!("{count} classes"),
    }
}

/// Removes unfinished keys, which are large and of no use, and ends the process when it is interrupted.
async fn remove_when(
    interrupted: impl Future<Output = ()> + Send,
    folder: PathBuf,
    finished: Arc<Mutex<bool>>,
) {
    interrupted.await;
    let is_finished = finished.lock().unwrap_or_else(PoisonError::into_inner);
    if *is_finished {
        return;
    }
    // A file that is being written may come back; once its folder is gone it cannot.
    let removed = (0..REMOVALS_MAX).any(|_| match std::fs::remove_dir_all(&folder) {
        Err(error) => error.kind() == ErrorKind::NotFound,
        Ok(()) => true,
    });
    console_line(match removed {
        true => "stopped: the unfinished keys are removed".to_owned(),
        false => output::plain(&format!(
            "stopped: remove {}, which holds unfinished keys",
            folder.display()
        )),
    });
    console_flush(STDERR_FLUSH_MAX);
    std::process::exit(130);
}

/// Writes the circuit's description, program and keys into a folder.
fn make<E: PartitionCurve>(
    description: &Description,
    program: Option<&[u8]>,
    path: &Path,
) -> Result<KeyFacts, Failure> {
    let folder = Folder::at(path);
    if let Some(program) = program {
        write(&program_path(&folder), Visibility::Public, program)?;
    }
    write_keys::<E>(description, &folder)
}

fn write_keys<E: PartitionCurve>(
    description: &Description,
    folder: &Folder,
) -> Result<KeyFacts, Failure> {
    let mut stages = Stages::begin("setup", 4);
    stages.enter("synthesising every part");
    let partition =
        Partition::<E::ScalarField>::new(&description.circuit.without_witness(folder)?)?;
    partition.save(&folder.partition_path())?;
    let text = serde_json::to_vec_pretty(description)?;
    write(&folder.description_path(), Visibility::Public, &text)?;
    stages.enter("making the reference string");
    let capacity = partition.num_parts().next_power_of_two().max(2);
    let srs = Srs::<E>::setup(capacity, &mut OsRng)?;
    srs.save(&folder.srs_path())?;
    let setup = Setup::<E>::new(&mut OsRng);
    let mut keys = Vec::new();
    for (number, class) in partition.classes().iter().enumerate() {
        stages.enter(&format!(
            "making the key of class {number}, {}",
            class.name()
        ));
        let key = setup.key(class.committed_system()?, &mut OsRng)?;
        key.save(&ClassKeys::<E>::path(folder.path(), number))?;
        key.vk().save(&folder.class_key_path(number))?;
        keys.push(key.vk());
    }
    stages.enter("committing to the parts");
    let constraints = (0..partition.num_parts()).map(|part| {
        let class = partition.class_of(part).unwrap_or_default();
        partition.classes()[class].system().num_constraints()
    });
    let constraints = constraints.sum();
    let (parts, classes) = (partition.num_parts(), partition.classes().len());
    let index = Index::new(partition, keys, &srs)?;
    index.verifying_key().save(&folder.verifying_key_path())?;
    Ok(KeyFacts {
        parts,
        classes,
        constraints,
        digest: hex::encode(index.verifying_key().digest()),
        stage_times: stages.end(),
    })
}
