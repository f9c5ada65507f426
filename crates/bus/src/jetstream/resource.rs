//! The streams of a cluster: created by some processes, opened by all others.

use std::time::Duration;

use async_nats::jetstream::ErrorCode;
use async_nats::jetstream::context::{GetStreamError, GetStreamErrorKind};
use async_nats::jetstream::stream::{Config, StorageType, Stream};

use super::connection::{Connection, RetryDeadline, with_sources};
use super::membership::MissingStream;
use super::options::ConnectError;

/// Pause between two looks for a stream that another process has yet to create.
const LOOK_PAUSE: Duration = Duration::from_millis(500);

/// Opens the stream of `config`, kept in files, with the configured number of replicas. If it does
/// not exist, the process's [`MissingStream`] decides.
pub(super) async fn open_stream(
    connection: &Connection,
    config: Config,
) -> Result<Stream, ConnectError> {
    let opened = open_allowed(connection, config);
    connection.or_refusal(opened).await?
}

async fn open_allowed(connection: &Connection, config: Config) -> Result<Stream, ConnectError> {
    let options = connection.options();
    let config = Config {
        storage: StorageType::File,
        num_replicas: options.replicas,
        ..config
    };
    let resource = |why: String| ConnectError::Resource {
        what: format!("the stream {}", config.name),
        why,
    };
    let creates = options.membership.creates_streams();
    let mut deadline = RetryDeadline::new();
    let quorum_deadline = RetryDeadline::lasting(options.connect_timeout);
    let mut is_announced = false;
    let mut unready = false;
    loop {
        let context = &connection.context;
        let why = match context.get_stream(&config.name).await {
            Ok(stream) => {
                let found = &stream.cached_info().config;
                ensure_fits(found, creates.then_some(options.replicas)).map_err(resource)?;
                return Ok(stream);
            }
            Err(error) if !is_absent(&error) => with_sources(&error),
            Err(_) => match options.membership.missing_stream() {
                MissingStream::Create => match context.create_stream(config.clone()).await {
                    Ok(stream) => return Ok(stream),
                    // Another process may have created it first.
                    Err(error) => with_sources(&error),
                },
                MissingStream::Wait { creator } => {
                    if !std::mem::replace(&mut is_announced, true) {
                        tracing::warn!(stream = config.name, "waiting for a {creator} to make it");
                    }
                    tokio::time::sleep(LOOK_PAUSE).await;
                    deadline = RetryDeadline::new();
                    continue;
                }
                MissingStream::Fail { creator } => {
                    return Err(resource(format!(
                        "it does not exist: start a {creator}, which makes it, or give its --bus-prefix"
                    )));
                }
            },
        };
        let lacks_quorum = is_without_quorum(&why);
        if lacks_quorum && !std::mem::replace(&mut unready, true) {
            tracing::warn!(
                why = %why,
                stream = config.name,
                "waiting for the bus: a majority of the servers has to run"
            );
        }
        let paused = if lacks_quorum {
            quorum_deadline.pause(&why).await
        } else {
            deadline.pause(&why).await
        };
        if !paused {
            return Err(resource(why));
        }
    }
}

/// Whether the error may pass: the server answers late or not at all, its cluster has no quorum, or
/// it has too few servers for a stream's replicas at present. Permanent errors have other texts.
fn is_without_quorum(why: &str) -> bool {
    const UNAVAILABLE: &str = "error code 10008";
    const TOO_FEW_PEERS: &str = "error code 10005";
    ["timed out", UNAVAILABLE, TOO_FEW_PEERS]
        .iter()
        .any(|sign| why.contains(sign))
}

fn is_absent(error: &GetStreamError) -> bool {
    matches!(error.kind(), GetStreamErrorKind::JetStream(error)
        if error.error_code() == ErrorCode::STREAM_NOT_FOUND)
}

/// Checks that an existing stream is kept in files, and has the requested number of replicas.
fn ensure_fits(found: &Config, replicas: Option<usize>) -> Result<(), String> {
    if found.storage != StorageType::File {
        return Err(
            "it is kept in memory: remove it, and a coordinator makes it again in files".into(),
        );
    }
    match replicas {
        Some(replicas) if found.num_replicas != replicas => Err(format!(
            "it has {} replicas, {replicas} were asked for: give --replicas {}, or change the \
             stream (`nats stream edit {} --replicas {replicas}`)",
            found.num_replicas, found.num_replicas, found.name
        )),
        _ => Ok(()),
    }
}
