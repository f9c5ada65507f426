//! `proofmill engine prove`, and `proofmill prove` through an engine

use std::path::Path;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use ark_std::rand::RngCore;
use ark_std::rand::rngs::OsRng;
use proofmill_api::engine::proto::partition::Input;
use proofmill_api::engine::proto::{
    Circuit, GeneratorInputs, Partition, Priority, Proof, SubmitRequest,
};
use proofmill_api::engine::{Address, Client, Credentials};
use proofmill_files::MappedFile;
use serde_json::json;

use super::job::one_proof;
use super::{connect, refused};
use crate::args::engine::{EngineChoice, EngineProve, JobPriority, default_socket};
use crate::failure::Failure;
use crate::files::FilePlan;
use crate::output;

pub(crate) async fn run(args: &EngineProve) -> Result<(), Failure> {
    args.files
        .check(FilePlan::default().reads("the witness", &args.witness))?;
    let witness = MappedFile::read(&args.witness)?;
    let content = witness.to_vec();
    let input = match &args.generator {
        None => Input::Wtns(content),
        Some(generator) => Input::Inputs(GeneratorInputs {
            generator: generator.clone(),
            json: content,
        }),
    };
    let priority = match args.priority {
        JobPriority::Low => Priority::Low,
        JobPriority::Normal => Priority::Normal,
        JobPriority::High => Priority::High,
        JobPriority::Critical => Priority::Critical,
    };
    let deadline_ms = args.timeout.map(|seconds| {
        let at = SystemTime::now() + Duration::from_secs(seconds.into());
        let since = at.duration_since(UNIX_EPOCH).unwrap_or_default();
        u64::try_from(since.as_millis()).unwrap_or(u64::MAX)
    });
    let request = SubmitRequest {
        client: args.client.clone(),
        request_id: args.request.clone().unwrap_or_else(random_request_id),
        priority: priority.into(),
        deadline_ms,
        partitions: vec![Partition {
            circuit: args.circuit.clone(),
            input: Some(input),
        }],
    };
    let key = args.files.key()?;
    let client = connect(&args.query.engine).await?;
    let credentials = &args.query.engine.credentials;
    let mut files = vec![("-o", args.files.output.as_path())];
    files.extend(args.files.public.as_deref().map(|path| ("--public", path)));
    files.extend(credentials.ca.as_deref().map(|path| ("--ca", path)));
    files.extend(credentials.token.as_deref().map(|path| ("--token", path)));
    let engine_proof = prove(&client, request, &files).await?;
    let sent = args.generator.is_none().then_some(&witness[..]);
    args.files.write(&engine_proof.proof, sent, key.as_ref())?;
    if args.query.json {
        let summary = json!({
            "job": engine_proof.job,
            "existing": engine_proof.existing,
            "circuit_id": engine_proof.proof.circuit_id,
            "curve": engine_proof.proof.curve,
            "public_signals": engine_proof.proof.public_inputs.len(),
        });
        return output::line(summary.to_string());
    }
    args.files.tell(&engine_proof.job)
}

/// A proof that an engine made.
pub(crate) struct EngineProof {
    /// The job's id.
    pub(crate) job: String,
    /// Whether the job existed before this request.
    pub(crate) existing: bool,
    pub(crate) proof: Proof,
}

/// A random request id of 16 bytes, in hexadecimal.
pub(crate) fn random_request_id() -> String {
    let mut bytes = [0; 16];
    OsRng.fill_bytes(&mut bytes);
    hex::encode(bytes)
}

/// Submits a job of one partition and waits for its proof. `files` are the output options for the `proofmill engine
/// get` command that an error suggests.
pub(crate) async fn prove(
    client: &Client,
    request: SubmitRequest,
    files: &[(&str, &Path)],
) -> Result<EngineProof, Failure> {
    let submitted = client
        .submit(request)
        .await
        .map_err(|error| refused(&error))?;
    let job = submitted.job;
    let result = client.await_result(&job).await;
    let result = result.map_err(|error| {
        let get = get_command(client.address(), &job, files);
        refused(&error).help(format!(
            "the engine has accepted job {job}, and continues it when the engine is started \
             again: then `proofmill engine wait {job}` waits for the job, and `{get}` writes the \
             proof"
        ))
    })?;
    let proof = one_proof(result)?;
    Ok(EngineProof {
        job,
        existing: submitted.existing,
        proof,
    })
}

/// The command that writes the proof of a job, for an error's advice.
fn get_command(address: &Address, job: &str, files: &[(&str, &Path)]) -> String {
    let mut command = format!("proofmill engine get {job}");
    for (option, path) in files {
        command.push_str(&format!(" {option} {}", word(&path.to_string_lossy())));
    }
    if *address != Address::Socket(default_socket()) {
        command.push_str(&format!(" --engine {}", word(&address.to_string())));
    }
    command
}

/// Quotes a word for a shell, if needed.
fn word(text: &str) -> String {
    let plain = |it: char| it.is_ascii_alphanumeric() || "/._-:=+@".contains(it);
    if !text.is_empty() && text.chars().all(plain) {
        return text.to_owned();
    }
    format!("'{}'", text.replace('\'', "'\\''"))
}

/// The engine that `--engine` names, and its id for the circuit of the key file `zkey`. `None` with `off`, or if with
/// `auto` no engine can make the proof.
pub(crate) async fn engine_with_key(
    choice: &EngineChoice,
    zkey: &Path,
) -> Result<Option<(Client, String)>, Failure> {
    match choice {
        EngineChoice::Off => Ok(None),
        EngineChoice::Auto => match Client::find(&default_socket()).await {
            Ok(Some(client)) => {
                let id = circuit_of(&client, zkey).await.ok().flatten();
                Ok(id.map(|id| (client, id)))
            }
            // With `auto` the engine is optional; the proof is made without it.
            Ok(None) | Err(_) => Ok(None),
        },
        EngineChoice::At(address) => {
            let connected = Client::connect(address, &Credentials::default()).await;
            let client = connected.map_err(|error| refused(&error))?;
            match circuit_of(&client, zkey).await? {
                Some(id) => Ok(Some((client, id))),
                None => Err(unknown_key(&client, address, zkey).await),
            }
        }
    }
}

/// The failure for a key that the engine does not have, or while it is ending; lists the keys it has.
async fn unknown_key(client: &Client, address: &Address, zkey: &Path) -> Failure {
    let status = match client.status().await {
        Ok(status) if status.draining => {
            return Failure::new(format!(
                "the engine at {address} is shutting down, and takes no new jobs"
            ))
            .help("leave --engine out, or try again after the engine has restarted");
        }
        Ok(status) => status,
        Err(error) => return refused(&error),
    };
    let known = status.circuits.into_iter();
    let known: Vec<String> = known
        .map(|it| format!("{} ({})", it.name, it.key_path))
        .collect();
    let known = match &known[..] {
        [] => "it has no circuits yet".to_owned(),
        known => format!("it has {}", known.join(", ")),
    };
    Failure::new(format!(
        "the engine at {address} has no circuit with the key {}: {known}",
        zkey.display()
    ))
    .help("register it with `proofmill engine register NAME --zkey FILE`, or leave --engine out")
}

/// The id of the circuit with this key file; `None` if the engine does not have it or accepts no new jobs.
async fn circuit_of(client: &Client, zkey: &Path) -> Result<Option<String>, Failure> {
    let path = super::change::absolute(zkey)?;
    let status = client.status().await.map_err(|error| refused(&error))?;
    if status.draining {
        return Ok(None);
    }
    let has_key = |it: &Circuit| it.key_path == path && it.constraints_path.is_empty();
    Ok(status.circuits.into_iter().find(has_key).map(|it| it.id))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_command_for_a_lost_proof_can_be_pasted() {
        let files = [
            ("-o", Path::new("my proof.json")),
            ("--public", Path::new("u.json")),
        ];
        let here = Address::Socket(default_socket());
        assert_eq!(
            get_command(&here, "00ff", &files),
            "proofmill engine get 00ff -o 'my proof.json' --public u.json"
        );
        let there: Address = "https://prover.example:7400/".parse().expect("an address");
        let command = get_command(&there, "00ff", &[]);
        assert!(
            command.ends_with(" --engine https://prover.example:7400/"),
            "{command}"
        );
        assert_eq!(word("it's"), "'it'\\''s'");
    }
}
