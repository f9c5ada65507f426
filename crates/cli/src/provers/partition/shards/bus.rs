//! Shards over a NATS server.
//!
//! Workers listen on `PREFIX.shards.PARTITION`, which all of a partition share, and on `PREFIX.shard.USER.NAME`. The
//! server's permissions let a user listen on its own subjects only.

use std::sync::Arc;
use std::time::Duration;

use futures_util::future::BoxFuture;
use futures_util::stream::{StreamExt, select};
use proofmill_bus::{Connection, Request as BusRequest};
use tokio::task::JoinSet;

use super::crew::Network;
use super::message::{Reply, Request, decode, encode};
use super::server::ShardServer;
use crate::failure::Failure;

/// Time for workers to answer a call.
const FIND_TIME: Duration = Duration::from_millis(500);

/// Longest wait for a reply. A worker replies within a second, if it has no answer yet.
const REPLY_TIME_MAX: Duration = Duration::from_secs(10);

/// Most requests that are answered at a time.
const REQUESTS_MAX: usize = 64;

/// Pause between two looks for shards whose leader has gone.
const SILENCE_CHECK_INTERVAL: Duration = Duration::from_secs(20);

/// The workers of a partition on a bus.
pub(in crate::provers::partition) struct BusNetwork {
    connection: Connection,
    /// Digest of the partition, hexadecimal.
    partition: String,
}

// === impl BusNetwork ===

impl BusNetwork {
    pub(in crate::provers::partition) fn new(connection: &Connection, partition: &str) -> Self {
        Self {
            connection: connection.clone(),
            partition: partition.to_owned(),
        }
    }

    fn shared_subject(&self) -> String {
        self.connection.subject(&["shards", &self.partition])
    }

    /// Makes shards for leaders, for as long as this is polled; `name` is the process's.
    pub(in crate::provers::partition) async fn serve(
        &self,
        server: Arc<ShardServer>,
        name: &str,
    ) -> Result<(), Failure> {
        let user = self.connection.identity().unwrap_or(name);
        let own = vec![user.to_owned(), name.to_owned()];
        let subject = self.connection.subject(&["shard", user, name]);
        let shared = self.connection.subscribe(&self.shared_subject()).await?;
        let to_this = self.connection.subscribe(&subject).await?;
        let mut requests = select(
            shared.map(|request| (true, request)),
            to_this.map(|request| (false, request)),
        );
        let mut silence = tokio::time::interval(SILENCE_CHECK_INTERVAL);
        let mut answering = JoinSet::new();
        loop {
            tokio::select! {
                request = requests.next() => {
                    let Some((is_shared, request)) = request else {
                        return Ok(());
                    };
                    // Whoever asks in vain asks again.
                    if answering.len() < REQUESTS_MAX {
                        let (server, own) = (Arc::clone(&server), own.clone());
                        answering.spawn(answer(server, is_shared.then_some(own), request));
                    }
                }
                Some(_) = answering.join_next() => {}
                _ = silence.tick() => server.drop_silent(),
            }
        }
    }
}

/// Answers a request; `own` is this worker's subject if the request came on the shared one.
async fn answer(server: Arc<ShardServer>, own: Option<Vec<String>>, request: BusRequest) {
    let reply = match (decode(&request.payload), own) {
        (Ok(Request::Find), Some(own)) => Reply::Here(own),
        (Ok(_), Some(_)) => return,
        (Ok(asked), None) => server.reply(asked).await,
        (Err(why), _) => Reply::Refused(why),
    };
    request.reply(encode(&reply)).await;
}

impl Network for BusNetwork {
    fn find(&self) -> BoxFuture<'_, Vec<String>> {
        Box::pin(async {
            let request = encode(&Request::Find).into();
            let subject = self.shared_subject();
            let replies = self.connection.request_all(&subject, request, FIND_TIME);
            let replies = replies.await.unwrap_or_else(|error| {
                tracing::warn!(%error, "cannot ask for workers");
                Vec::new()
            });
            let mut names = Vec::new();
            for reply in replies {
                if let Ok(Reply::Here(tokens)) = decode(&reply) {
                    let are_tokens = |token: &String| {
                        !token.is_empty() && !token.contains(['.', '*', '>', ' ', '\t', '\r', '\n'])
                    };
                    if tokens.len() == 2 && tokens.iter().all(are_tokens) {
                        names.push(tokens.join("."));
                    }
                }
            }
            names.sort();
            names.dedup();
            names
        })
    }

    fn ask<'a>(
        &'a self,
        worker: &'a str,
        request: Request,
    ) -> BoxFuture<'a, Result<Reply, String>> {
        Box::pin(async move {
            let subject = self.connection.subject(&["shard", worker]);
            let request = encode(&request).into();
            let reply = self
                .connection
                .request(&subject, request, REPLY_TIME_MAX)
                .await;
            decode(&reply.map_err(|error| error.to_string())?)
        })
    }
}
