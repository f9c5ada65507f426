//! `STRATEGY=Block`: a source that follows an Ethereum chain.
//!
//! Each message is the number of a block, as bare JSON, with its hash in a header. The output queue is the
//! source's memory: the source goes on after the last block there, and detects by the hashes whether the
//! chain has been reorganised since, also over a restart.

mod chain;

use futures_util::future::BoxFuture;
use std::time::Duration;

use async_nats::HeaderMap;
use proofmill_bus::Leases;
use proofmill_ethereum::{Rpc, RpcError};
use proofmill_orchestrator::shutdown::{Level, Shutdown};

use crate::Notices;
use crate::collector::lease_names;
use crate::environment::{Config, Start, Strategy};
use crate::error::RunError;
use crate::metrics::Metrics;
use crate::queues::{Backoff, Outgoing, PublishError, Streams, connect, message_id, tail};
pub(crate) use chain::REMEMBERED;
use chain::{Chain, Next};

/// The header that contains a block's hash.
const HASH: &str = "Proofmill-Block-Hash";

/// Interval of requests for the head of the chain, if COLLECT_TIMEOUT_PERIOD_MILLIS is not set.
pub(crate) const PERIOD: Duration = Duration::from_secs(1);

/// Follows the chain until `shutdown`. [`collector::run`](crate::collector::run) calls it.
///
/// # Errors
/// [`RunError`] if it cannot begin. Later failures are tried again.
pub fn run(
    config: Config,
    shutdown: Shutdown,
    notices: Notices,
) -> BoxFuture<'static, Result<(), RunError>> {
    // Boxed, so that it is compiled in this crate and not again in every program that calls it.
    Box::pin(async move {
        let (collection, output) = config.collection()?;
        let Strategy::Block { rpc, start } = &collection.strategy else {
            return Err(crate::EnvError::missing("STRATEGY", "Block").into());
        };
        let rpc = Rpc::new(rpc.clone(), None)?;
        let period = collection.collect_timeout.unwrap_or(PERIOD);
        let metrics = Metrics::new("source", output.to_owned());
        let role = async {
            let mut shutdown = shutdown;
            let Some((connection, context)) = connect(&config.nats_url, shutdown.clone()).await?
            else {
                return Ok(());
            };
            let dead_letters = config.dead_letter_queue();
            let stream = &config.output_stream;
            let outgoing = Outgoing::open(
                &context,
                stream,
                Some(output),
                dead_letters,
                shutdown.clone(),
            )
            .await?;
            let leases = Leases::open(&connection).await?;
            let (key, holder) = lease_names(stream, output);
            while shutdown.level() == Level::Run {
                let lease = tokio::select! {
                    () = shutdown.reached(Level::Drain) => break,
                    lease = leases.take(&key, &holder) => lease,
                };
                let streams = Streams::new(context.clone());
                let queue = streams.ensure(stream, &[output.to_owned()]).await?;
                let mut chain = Chain::default();
                let read = tail(
                    &queue,
                    output,
                    REMEMBERED as u64 * 16,
                    |headers, payload| {
                        let number = std::str::from_utf8(payload).ok();
                        let number = number.and_then(|text| text.trim().parse().ok());
                        if let Some(number) = number {
                            let hash = headers.get(HASH).map(|hash| hash.as_str().to_owned());
                            chain.emitted(number, hash);
                        }
                    },
                )
                .await;
                if let Err(why) = read {
                    tracing::warn!(output, why, "the blocks emitted before are not known");
                }
                notices(&format!("source {output}: ready, follows {}", rpc.url()));
                let mut source = Source {
                    rpc: &rpc,
                    chain,
                    start: *start,
                    outgoing: &outgoing,
                    output,
                    metrics: &metrics,
                };
                tokio::select! {
                    () = shutdown.reached(Level::Drain) => {}
                    () = lease.lost() => tracing::warn!(output, "another source took over"),
                    () = source.follow(period) => {}
                }
                lease.give_back().await;
            }
            Ok(())
        };
        metrics.clone().serve_during(config.metrics, role).await
    })
}

struct Source<'a> {
    rpc: &'a Rpc,
    chain: Chain,
    start: Start,
    outgoing: &'a Outgoing,
    output: &'a str,
    metrics: &'a Metrics,
}

// === impl Source ===

impl Source<'_> {
    /// Follows the chain; returns only if it was told to stop.
    async fn follow(&mut self, period: Duration) {
        let mut backoff = Backoff::new(Duration::from_millis(250), Duration::from_secs(10));
        loop {
            match self.catch_up().await {
                Ok(Some(())) => {
                    backoff.reset();
                    tokio::time::sleep(period).await;
                }
                Ok(None) => return,
                Err(error) => {
                    self.metrics.failed.add(1);
                    tracing::warn!(endpoint = %self.rpc.url(), %error, "asked again");
                    backoff.wait().await;
                }
            }
        }
    }

    /// Emits every block up to the head. `None` if it was told to stop.
    async fn catch_up(&mut self) -> Result<Option<()>, RpcError> {
        let head = self.rpc.head().await?;
        self.chain.begin(self.start, head);
        while let Some(number) = self.chain.next().filter(|&number| number <= head) {
            // Behind a load balancer, this node may lack a block that another announced.
            let Some(block) = self.rpc.block(number, false).await? else {
                return Ok(Some(()));
            };
            match self.chain.check(&block.parent) {
                Next::Emit => {}
                Next::Forked => {
                    let known = self.find_fork().await?;
                    if self.chain.next() == Some(number) {
                        // The last block is in the chain, and this one does not follow it: the nodes
                        // behind the endpoint do not agree yet.
                        return Ok(Some(()));
                    }
                    tracing::warn!(
                        at = number,
                        again_from = self.chain.next(),
                        known,
                        "the chain was reorganised: blocks are emitted again"
                    );
                    continue;
                }
            }
            let mut headers = HeaderMap::new();
            headers.insert(HASH, block.hash.as_str());
            let id = message_id(&[
                b"block",
                self.output.as_bytes(),
                &number.to_le_bytes(),
                block.hash.as_bytes(),
            ]);
            let payload = number.to_string().into();
            match self.outgoing.publish(payload, &id, headers).await {
                Ok(()) => {}
                // A number is never too large for a message.
                Err(PublishError::Never(_) | PublishError::Stopped) => return Ok(None),
            }
            self.chain.emitted(number, Some(block.hash));
            self.metrics.completed.add(1);
            self.metrics.block.set(number);
        }
        Ok(Some(()))
    }

    /// Forgets the blocks that are no longer in the chain. Returns whether a remembered block still is.
    async fn find_fork(&mut self) -> Result<bool, RpcError> {
        while let Some((number, hash)) = self.chain.last() {
            let there = self.rpc.block(number, false).await?;
            if there.is_some_and(|block| block.hash == hash) {
                return Ok(true);
            }
            self.chain.forget_last();
        }
        Ok(false)
    }
}
