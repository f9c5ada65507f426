//! `proofmill partition prove --workflow`

use proofmill_partition::with_partition_curve;
use std::path::{Path, PathBuf};

use ark_std::rand::RngCore;
use ark_std::rand::rngs::OsRng;
use proofmill_files::Visibility;
use proofmill_orchestrator::core::GROUP_MAX;
use proofmill_telemetry::console_line;
use proofmill_workflow::{EngineAddress, LocalHost, render, validate};
use serde_json::json;
use zeroize::Zeroizing;

use crate::args::partition::ProofArgs;
use crate::circuit_folder::{Description, Folder};
use crate::failure::Failure;
use crate::files::{FilePlan, OverwritePolicy, write as write_file};
use crate::output;
use crate::progress::counted;
use crate::provers::{self, Batches, Job, PARTS_MAX};

/// The keys that workers need.
struct WorkerKeys<'a> {
    folder: &'a Path,
    /// Digest of the partition, hexadecimal.
    partition: String,
    /// Digest of the folder's content, hexadecimal.
    published: String,
    /// The parameter that names the engines, after a comma; empty if workers prove by themselves.
    engines: String,
}

/// Parameters of the coordinator's stages.
struct Coordination {
    /// The job's file.
    job: String,
    /// The parameter with the number of the aggregation's shards, after a comma; empty if one process makes it.
    shards: String,
}

/// The parameter of the stage that proves, with the engines that the arguments name.
fn engines(args: &ProofArgs) -> Result<String, Failure> {
    let here = std::env::current_dir()?;
    let mut endpoints = Vec::new();
    for address in &args.at {
        let address = EngineAddress::try_new(&address.to_string(), &here)?;
        endpoints.push(serde_json::to_string(&address.to_string())?);
    }
    if endpoints.is_empty() {
        return Ok(String::new());
    }
    let mut fields = vec![format!("endpoints = [{}]", endpoints.join(", "))];
    for (name, path) in [("token", &args.at_token), ("ca", &args.at_ca)] {
        if let Some(path) = path {
            fields.push(format!("{name} = {}", toml(path)?));
        }
    }
    Ok(format!(", engines = {{ {} }}", fields.join(", ")))
}

/// A path in a workflow file.
fn toml(path: &Path) -> Result<String, Failure> {
    let text = path
        .to_str()
        .ok_or_else(|| Failure::new(format!("{}: a workflow's paths are UTF-8", path.display())))?;
    // A JSON string is a TOML string.
    Ok(serde_json::to_string(text)?)
}

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
    let (digest, parts) = with_partition_curve!(description.curve()?, E => {
        let partition = folder.partition::<<E as ark_ec::pairing::Pairing>::ScalarField>()?;
        (partition.digest(), partition.num_parts())
    })?;
    if parts > PARTS_MAX {
        return Err(Failure::new(format!(
            "{parts} parts: a workflow proves {PARTS_MAX} at most"
        ))
        .help("make the parts larger, or leave --workflow out"));
    }
    let text = text(
        &Coordination {
            job: toml(&absolute(&job_path)?)?,
            shards: args
                .shards
                .map_or_else(String::new, |shards| format!(", shards = {shards}")),
        },
        &WorkerKeys {
            folder: &job.keys,
            partition: hex::encode(digest),
            published: super::publish::manifest(folder)?.digest().to_string(),
            engines: engines(args)?,
        },
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
        .with_strategies(registry.strategy_names())
        .with_emission_checks(registry.emission_check_names())
        .with_result_checks(registry.result_check_names());
    match validate(text, path, &host) {
        Ok(_) => Ok(()),
        Err(faults) => Err(Failure::new(render(&faults))),
    }
}

/// The collector of all parts' results; or two, of batches of parts and of all batches, if one group cannot hold all.
fn collectors(name: &str, input: &str, output: &str, parts: usize) -> String {
    let Some(batches) = Batches::of(parts) else {
        return format!(
            r#"[[collector]]
name = "{name}"
inputs = ["{input}"]
output = "{output}"
strategy = {{ kind = "match", k = {parts}, group_by = "/job" }}
"#
        );
    };
    let (size, count) = (batches.size(), batches.count());
    format!(
        r#"# A group has {GROUP_MAX} members at most, so batches of parts are gathered first.
[[collector]]
name = "{name}-batches"
inputs = ["{input}"]
output = "{input}-batches"
strategy = {{ kind = "custom", name = "partition.batches", params = {{ parts = {parts}, batch = {size} }} }}

[[collector]]
name = "{name}"
inputs = ["{input}-batches"]
output = "{output}"
strategy = {{ kind = "custom", name = "partition.all-batches", params = {{ batches = {count} }} }}
"#
    )
}

/// The workflow file.
fn text(
    coordination: &Coordination,
    keys: &WorkerKeys<'_>,
    parts: usize,
) -> Result<String, Failure> {
    let Coordination { job, shards } = coordination;
    let engines = &keys.engines;
    let keys = format!(
        r#"keys = {}, partition = "{}", published = "{}""#,
        toml(keys.folder)?,
        keys.partition,
        keys.published
    );
    let q_max = parts.max(10_000);
    let committed = collectors("committed", "commitments", "all-commitments", parts);
    let proved = collectors("proved", "proofs", "all-proofs", parts);
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

# Workers' steps. They need the keys, from the folder or else from the bus, where `proofmill partition publish` puts them;
# each result is checked before it counts. A part whose worker takes long goes to
# another one too.
[[dispatcher]]
name = "commit"
input = "shares"
output = "commitments"
group = "parts"
check_results = true
hedge = {{ percentile = 95, min = "10s" }}
executor = {{ kind = "native", prover = "partition.commit", params = {{ {keys} }} }}

{committed}
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
executor = {{ kind = "native", prover = "partition.prove", params = {{ {keys}{engines} }} }}

{proved}
[[dispatcher]]
name = "aggregate"
input = "all-proofs"
output = "proof"
group = "coordinator"
verify = true
executor = {{ kind = "native", prover = "partition.aggregate", params = {{ job = {job}{shards} }} }}

[sequencer]
input = "proof"
"#
    ))
}
