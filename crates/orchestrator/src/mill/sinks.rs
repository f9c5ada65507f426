//! The sinks that a workflow describes.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use proofmill_bus::{Connection, Credentials, NatsOptions, Publisher};
use proofmill_workflow as file;

use super::options::MillError;
use super::registry::{Registry, program_path};
use super::roles;
use crate::plan::Backoff;
use crate::remote::Role;
use crate::role_counts::role_counts;
use crate::sink::{Directory, Ethereum, Exec, JetStream, Secret, Sink, Webhook};
use proofmill_process::{InputChannel, ProcessExecutor, ProcessSpec};

/// The sequencer's directory in `state`, if it has one, and its sinks. `bus` is the connection to
/// the cluster's own server.
pub(crate) async fn sinks(
    workflow: &file::Workflow,
    registry: &Registry,
    state: &Path,
    bus: Option<&Connection>,
) -> Result<Vec<Box<dyn Sink>>, MillError> {
    let mut sinks: Vec<Box<dyn Sink>> = Vec::new();
    let Some(sequencer) = &workflow.sequencer else {
        return Ok(sinks);
    };
    if let Some(directory) = &sequencer.directory {
        sinks.push(Box::new(Directory::open(&state.join(directory))?));
    }
    let name: Arc<str> = workflow.name.as_str().into();
    check_accounts(sequencer)?;
    for (index, sink) in sequencer.sinks.iter().enumerate() {
        // The directory is a sink too.
        let named = (&name, sinks.len() + 1);
        let made = make(sink, named, registry, state, bus).await;
        sinks.push(made.map_err(|why| MillError::Setup {
            what: format!("sequencer.sink #{}", index + 1),
            why,
        })?);
    }
    Ok(sinks)
}

/// Fails if two sinks sign with one key: a nonce belongs to one call.
fn check_accounts(sequencer: &file::Sequencer) -> Result<(), MillError> {
    let signers = sequencer.sinks.iter().map(|sink| match &sink.kind {
        file::SinkKind::Ethereum(settlement) => Some((&settlement.signer, &settlement.rpc)),
        _ => None,
    });
    let signers: Vec<_> = signers.collect();
    for (index, signer) in signers.iter().enumerate() {
        if signer.is_some() && signers[..index].contains(signer) {
            return Err(MillError::Setup {
                what: format!("sequencer.sink #{}", index + 1),
                why: "an earlier sink has the same account: give each an account of its own"
                    .to_owned(),
            });
        }
    }
    Ok(())
}

/// Ends sink programs that an earlier run left running; only to be called while no other process
/// runs sinks.
pub(crate) async fn sweep_sink_programs(
    workflow: &file::Workflow,
    state: &Path,
) -> Result<(), MillError> {
    let mut sinks = workflow.sequencer.iter().flat_map(|stage| &stage.sinks);
    if !sinks.any(|sink| matches!(sink.kind, file::SinkKind::Exec { .. })) {
        return Ok(());
    }
    let swept = ProcessExecutor::sweep(&scratch(state)).await;
    swept.map(|_| ()).map_err(|source| MillError::Process {
        stage: format!(
            "{} (programs left by an earlier run)",
            file::Sequencer::NAME
        ),
        source,
    })
}

/// The directory for the scratch directories of sink programs, separate from the dispatchers',
/// which may be another process's.
fn scratch(state: &Path) -> PathBuf {
    state.join("sink-scratch")
}

/// The sink that the table `sink` describes; `named` is its workflow and its number among all sinks, from 1.
async fn make(
    sink: &file::Sink,
    named: (&Arc<str>, usize),
    registry: &Registry,
    state: &Path,
    bus: Option<&Connection>,
) -> Result<Box<dyn Sink>, String> {
    let backoff = Backoff::from(&sink.backoff);
    Ok(match &sink.kind {
        file::SinkKind::Webhook {
            url,
            secret,
            ca,
            time_limit,
        } => {
            let secret = Secret::read(secret).map_err(|error| error.to_string())?;
            let webhook = Webhook::new(url.clone(), ca.as_deref(), secret, *time_limit, backoff);
            Box::new(webhook.map_err(|error| error.to_string())?)
        }
        file::SinkKind::JetStream {
            url,
            subject,
            stream,
            creds,
            ca,
        } => {
            let foreign = match url {
                Some(url) => Some(connect(url, creds.as_deref(), ca.as_deref()).await?),
                None => None,
            };
            let connection = foreign.as_ref().or(bus).ok_or(
                "the sink has no `url`, and there is no cluster's server to use instead: give \
                 `url`, or run with `--bus`",
            )?;
            let publisher = Publisher::open(connection, subject, stream.as_deref()).await;
            let publisher = publisher.map_err(|error| format!("subject {subject}: {error}"))?;
            Box::new(JetStream::new(publisher, backoff))
        }
        file::SinkKind::Ethereum(settlement) => {
            let form = settlement.payload.as_deref();
            let form = form
                .map(|name| registry.payload_form_of(name))
                .transpose()?;
            let journals = state.join("settlement");
            let counts = role_counts().settlement(named.0, named.1);
            Box::new(Ethereum::new(settlement, form, journals, backoff, counts).await?)
        }
        file::SinkKind::Exec {
            program,
            args,
            env,
            inherit_env,
            sandbox,
            input,
            time_limit,
        } => {
            let mut spec = ProcessSpec::new(program_path(program));
            spec.args.clone_from(args);
            spec.env.clone_from(env);
            spec.inherit_env.clone_from(inherit_env);
            spec.sandbox = roles::sandbox(*sandbox);
            spec.time_limit = *time_limit;
            spec.input_channel = match input {
                file::ExecInput::Stdin => InputChannel::Stdin,
                file::ExecInput::File => InputChannel::LastArgument,
            };
            let program = ProcessExecutor::new(spec, scratch(state));
            Box::new(Exec::new(
                program.map_err(|error| error.to_string())?,
                backoff,
            ))
        }
    })
}

async fn connect(url: &str, creds: Option<&Path>, ca: Option<&Path>) -> Result<Connection, String> {
    let mut options = NatsOptions::new(url);
    // Permissions on the sink's server may name the coordinator's inbox: earlier releases used it.
    options.membership = Role::Coordinator.membership();
    if let Some(path) = creds {
        options.credentials = Credentials::CredentialsFile(path.to_owned());
    }
    options.ca_file = ca.map(Path::to_owned);
    options.name = "proofmill sink".into();
    let connection = Connection::open(options).await;
    connection.map_err(|error| proofmill_bus::with_sources(&error))
}
