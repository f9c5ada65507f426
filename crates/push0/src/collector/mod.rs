//! `proofmill collector`: gathers messages into groups, and emits one message for each group.
//!
//! Members stay unacknowledged until their group is stored. So the server itself holds the state: it knows
//! which messages are in no emitted group yet, and delivers them again to the successor of a collector that
//! died. Replaying the stream beside a consumer could not tell these from messages that are finished,
//! except with a second account, which could disagree.
//!
//! A collector may die after storing a group and before acknowledging its members. The emitted message
//! names its members, so a successor reads the end of the output queue first and recognises them.
//!
//! The members of one group must come to one process: of several collectors that share a consumer, the one
//! that holds a lease works, and the others stand by.

mod emitted;
mod grouping;
mod held;
mod session;

use futures_util::future::LocalBoxFuture;
use std::sync::Arc;
use std::time::Duration;

use proofmill_bus::Leases;
use proofmill_orchestrator::shutdown::{Level, Shutdown};

use crate::Notices;
use crate::environment::{Config, Strategy};
use crate::error::RunError;
use crate::metrics::Metrics;
use crate::queues::{Backoff, Outgoing, Streams, connect, message_id};
use crate::source;
use session::{Ended, Session};

/// Runs a collector (with `STRATEGY=Block`, a [`source`]) until `shutdown`. It then hands back the messages
/// that it holds, so that the next collector gets them at once.
///
/// # Errors
/// [`RunError`] if it cannot begin. Later failures are tried again.
pub fn run(
    config: Config,
    shutdown: Shutdown,
    notices: Notices,
) -> LocalBoxFuture<'static, Result<(), RunError>> {
    // Boxed, so that it is compiled in this crate and not again in every program that calls it.
    Box::pin(async move {
        let (collection, output) = config.collection()?;
        if let Strategy::Block { .. } = collection.strategy {
            return source::run(config, shutdown, notices).await;
        }
        let name = config.consumer("collector");
        let metrics = Metrics::new("collector", name.clone());
        let role = gather(&config, output, &name, metrics.clone(), shutdown, &notices);
        metrics.clone().serve_during(config.metrics, role).await
    })
}

async fn gather(
    config: &Config,
    output: &str,
    name: &str,
    metrics: Arc<Metrics>,
    mut shutdown: Shutdown,
    notices: &Notices,
) -> Result<(), RunError> {
    let Some((connection, context)) = connect(&config.nats_url, shutdown.clone()).await? else {
        return Ok(());
    };
    let streams = Streams::new(context.clone());
    let input = streams
        .ensure(&config.input_stream, &config.input_queues)
        .await?;
    let outgoing = Outgoing::open(
        &context,
        &config.output_stream,
        Some(output),
        config.dead_letter_queue(),
        shutdown.clone(),
    )
    .await?;
    let leases = Leases::open(&connection).await?;
    let (key, holder) = lease_names(&config.input_stream, name);
    let mut began = false;
    let mut backoff = Backoff::new(Duration::from_millis(250), Duration::from_secs(5));
    while shutdown.level() == Level::Run {
        let lease = tokio::select! {
            () = shutdown.reached(Level::Drain) => break,
            lease = leases.take(&key, &holder) => lease,
        };
        let session = Session::begin(config, name, &input, &streams, &outgoing, &metrics).await;
        let ended = match session {
            Ok(mut session) => {
                if !began {
                    let queues = config.input_queues.join(", ");
                    notices(&format!("collector {name}: ready, reads {queues}"));
                }
                began = true;
                backoff.reset();
                let ended = session.run(shutdown.clone(), &lease).await;
                session.hand_all_back(connection.client()).await;
                ended
            }
            // The configuration has worked before, so this means that the server is away.
            Err(error) if began => {
                tracing::warn!(%error, "not begun; tried again");
                tokio::select! {
                    () = shutdown.reached(Level::Drain) => {}
                    () = backoff.wait() => {}
                }
                continue;
            }
            Err(error) => return Err(error),
        };
        lease.give_back().await;
        match ended {
            Ended::Shutdown => break,
            Ended::LeaseLost => tracing::warn!(consumer = name, "another collector took over"),
        }
    }
    Ok(())
}

/// The name of a consumer's lease, and this process's name as its holder.
pub(crate) fn lease_names(stream: &str, consumer: &str) -> (String, String) {
    let digest = message_id(&[b"lease", stream.as_bytes(), consumer.as_bytes()]);
    let now = std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH);
    let holder = format!(
        "{}-{}",
        std::process::id(),
        now.unwrap_or_default().as_nanos()
    );
    (format!("push0-{}", &digest[..32]), holder)
}
