//! `proofmill partition prove --workflow`

use std::path::{Path, PathBuf};

use ark_std::rand::RngCore;
use ark_std::rand::rngs::OsRng;
use proofmill_files::Visibility;
use proofmill_groth16::with_curve;
use proofmill_telemetry::console_line;
use proofmill_workflow::{LocalHost, render, validate};
use serde_json::json;
use zeroize::Zeroizing;

use crate::args::partition::ProofArgs;
use crate::circuit_folder::{Description, Folder};
use crate::failure::Failure;
use crate::files::{FilePlan, OverwritePolicy, write as write_file};
use crate::output;
use crate::progress::counted;
use crate::provers::{self, Job};

/// Writes the workflow that proves the circuit, and its job's file.
pub(super) fn write(
    folder: &Folder,
    description: &Description,
    witness: &Path,
    path: &Path,
    args: &ProofArgs,
) -> Result<(), Failure> {
    let job_path = job_path(path);
    FilePlan::default()
        .reads("the witness", witness)
        .writes("the workflow", path)
        .writes("the job", &job_path)
        .check(OverwritePolicy::NothingHardToRecreate)?;
    let mut seed = Zeroizing::new([0; 32]);
    OsRng.fill_bytes(&mut *seed);
    let absolute = |path: &Path| {
        std::path::absolute(path)
            .map_err(|error| Failure::new(format!("{}: {error}", path.display())))
    };
    let job = Job {
        keys: absolute(folder.path())?,
        witness: absolute(witness)?,
        proof: absolute(&args.proof)?,
        public: absolute(&args.public)?,
        seed: hex::encode(*seed),
    };
    let (digest, parts) = with_curve!(description.curve()?, E => {
        let partition = folder.partition::<<E as ark_ec::pairing::Pairing>::ScalarField>()?;
        (partition.digest(), partition.num_parts())
    });
    let text = text(
        &absolute(&job_path)?,
        &job.keys,
        &hex::encode(digest),
        parts,
    )?;
    require_valid(&text, path)?;
    let job = Zeroizing::new(serde_json::to_vec_pretty(&job)?);
    write_file(&job_path, Visibility::Private, &job)?;
    write_file(path, Visibility::Public, text.as_bytes())?;
    let shown = path.display();
    console_line(output::plain(&format!(
        "{shown}: a workflow of {}; {} is its job, which is secret\n\
         prove on this machine:   proofmill run {shown}\n\
         prove on many machines:  see docs/large-circuits.md",
        counted(parts, "part"),
        job_path.display(),
    )));
    if args.json {
        let answer = json!({ "workflow": path, "job": job_path, "parts": parts });
        output::line(answer.to_string())?;
    }
    Ok(())
}

fn job_path(workflow: &Path) -> PathBuf {
    let mut path = workflow.as_os_str().to_owned();
    path.push(".job");
    path.into()
}

/// A defect of this program is found here, not by a user who runs the workflow.
fn require_valid(text: &str, path: &Path) -> Result<(), Failure> {
    let registry = provers::registry(Path::new(""));
    let host = LocalHost::new(registry.prover_names())
        .with_emission_checks(registry.emission_check_names())
        .with_result_checks(registry.result_check_names());
    match validate(text, path, &host) {
        Ok(_) => Ok(()),
        Err(faults) => Err(Failure::new(render(&faults))),
    }
}

/// The workflow file.
fn text(job: &Path, keys: &Path, partition: &str, parts: usize) -> Result<String, Failure> {
    let toml = |path: &Path| {
        let text = path.to_str().ok_or_else(|| {
            Failure::new(format!("{}: a workflow's paths are UTF-8", path.display()))
        })?;
        // A JSON string is a TOML string.
        Ok::<_, Failure>(serde_json::to_string(text)?)
    };
    let (job, keys) = (toml(job)?, toml(keys)?);
    let q_max = parts.max(10_000);
    Ok(format!(
        r#"# One proof of {parts} parts, by any number of processes. docs/large-circuits.md explains it.
name = "partition"

[defaults]
q_max = {q_max}

[[source]]
name = "job"
kind = "range"
end = 0
output = "job"

# The coordinator's steps. They need the job's file, which is secret.
[[dispatcher]]
name = "trace"
input = "job"
output = "shares"
group = "coordinator"
fan_out = true
executor = {{ kind = "native", prover = "partition.trace", params = {{ job = {job} }} }}

# Workers' steps. They need the keys, and each result is checked before it counts. A part whose worker takes long goes to
# another one too.
[[dispatcher]]
name = "commit"
input = "shares"
output = "commitments"
group = "parts"
check_results = true
hedge = {{ percentile = 95, min = "10s" }}
executor = {{ kind = "native", prover = "partition.commit", params = {{ keys = {keys}, partition = "{partition}" }} }}

[[collector]]
name = "committed"
inputs = ["commitments"]
output = "all-commitments"
strategy = {{ kind = "match", k = {parts}, group_by = "/job" }}

[[dispatcher]]
name = "challenge"
input = "all-commitments"
output = "challenged"
group = "coordinator"
fan_out = true
executor = {{ kind = "native", prover = "partition.challenge", params = {{ job = {job} }} }}

[[dispatcher]]
name = "prove"
input = "challenged"
output = "proofs"
group = "parts"
check_results = true
hedge = {{ percentile = 95, min = "10s" }}
executor = {{ kind = "native", prover = "partition.prove", params = {{ keys = {keys}, partition = "{partition}" }} }}

[[collector]]
name = "proved"
inputs = ["proofs"]
output = "all-proofs"
strategy = {{ kind = "match", k = {parts}, group_by = "/job" }}

[[dispatcher]]
name = "aggregate"
input = "all-proofs"
output = "proof"
group = "coordinator"
verify = true
executor = {{ kind = "native", prover = "partition.aggregate", params = {{ job = {job} }} }}

[sequencer]
input = "proof"
"#
    ))
}
