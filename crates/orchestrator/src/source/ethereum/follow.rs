//! Following a chain block by block, including reorganisations.

use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use futures_util::future::BoxFuture;
use proofmill_ethereum::{Block, Rpc, RpcError, quantity};
use proofmill_http::HttpError;
use proofmill_workflow::{ChainStart, HttpUrl, Template};
use serde_json::{Value, json};

use super::chain::Chain;
use crate::conversation::Uniqueness;
use crate::id::Part;
use crate::payload::Encoding;
use crate::plan::Backoff;
use crate::role_counts::SourceCounts;
use crate::source::{Source, SourceItem, SourceMessage};

/// Waits while no endpoint answers.
const BACKOFF: Backoff = Backoff {
    initial: Duration::from_millis(250),
    max: Duration::from_secs(15),
    factor: 2.0,
    jitter: 0.0,
};

/// Number of characters of a block's hash in a message's part: 128 bits.
const PART: usize = 32;

/// Options for following a chain.
#[derive(Clone, Debug)]
pub struct Options {
    /// Endpoints; if one fails, the next is asked.
    pub rpc: Vec<HttpUrl>,
    /// First block of the first run.
    pub from: ChainStart,
    /// Number of blocks that must follow a block before it is submitted.
    pub confirmations: u64,
    /// Time between two requests for the head of the chain.
    pub poll: Duration,
    /// Whether messages contain the whole block.
    pub full: bool,
    /// The payload of each message, instead of an object with the block's number, hash, parent and
    /// time.
    pub payload: Option<Template>,
    /// Number of recent blocks kept: the first block of a reorganisation no deeper than this is
    /// found exactly.
    pub reorg_depth: usize,
}

/// A source that submits each block of a chain, and again when the chain is reorganised.
///
/// A message's part is the beginning of the block's hash: the same block is the same message,
/// another block at the same height is another message, and a result for one never counts for the
/// other.
pub struct Ethereum {
    options: Options,
    endpoints: Vec<Rpc>,
    /// Index of the endpoint in use.
    current: usize,
    chain: Chain,
    /// Number of the next block; `None` before the chain's head is known.
    next: Option<u64>,
    /// Blocks below this one were submitted by an earlier run, and are only compared.
    submitted_before: u64,
    /// Last block that may be submitted, as far as is known.
    last_submittable: Option<u64>,
    counts: Option<Arc<SourceCounts>>,
}

// === impl Ethereum ===

impl Ethereum {
    /// Follows the chain of `options`, which must name at least one endpoint. Sends no request yet.
    ///
    /// # Errors
    /// As [`Rpc::new`].
    pub fn new(options: Options) -> Result<Self, HttpError> {
        let endpoints = options.rpc.iter().cloned().map(|url| Rpc::new(url, None));
        Ok(Self {
            endpoints: endpoints.collect::<Result<_, _>>()?,
            current: 0,
            chain: Chain::new(options.reorg_depth),
            next: match options.from {
                ChainStart::At(block) => Some(block),
                ChainStart::Behind(_) => None,
            },
            submitted_before: 0,
            last_submittable: None,
            counts: None,
            options,
        })
    }

    async fn next_item(&mut self) -> SourceItem {
        let mut failures = 0;
        loop {
            match self.step().await {
                Ok(Some(item)) => return item,
                Ok(None) => {
                    failures = 0;
                    tokio::time::sleep(self.options.poll).await;
                }
                Err(error) => self.try_other_endpoint(&error, &mut failures).await,
            }
        }
    }

    /// The lowest block that is no longer in the chain, once there is one. Changes nothing that is known of the chain.
    async fn next_fork(&mut self) -> u64 {
        let mut failures = 0;
        loop {
            tokio::time::sleep(self.options.poll).await;
            match self.fork().await {
                Ok(Some(from)) => return from,
                Ok(None) => failures = 0,
                Err(error) => self.try_other_endpoint(&error, &mut failures).await,
            }
        }
    }

    /// Goes to the next endpoint after a failed request; waits only once every endpoint has failed.
    async fn try_other_endpoint(&mut self, error: &RpcError, failures: &mut u32) {
        *failures += 1;
        let (current, count) = (self.current, self.endpoints.len());
        let endpoint = self.endpoints[current].url();
        tracing::warn!(%endpoint, %error, failures, "the chain's endpoint is asked again");
        self.current = (current + 1) % count;
        let round = *failures / u32::try_from(count).unwrap_or(u32::MAX);
        if round > 0 {
            tokio::time::sleep(BACKOFF.delay(round, 0)).await;
        }
    }

    /// The next message or change; `None` if there is nothing at present.
    async fn step(&mut self) -> Result<Option<SourceItem>, RpcError> {
        let number = match (self.next, self.last_submittable) {
            (Some(next), Some(last_submittable)) if next <= last_submittable => next,
            _ => {
                if let Some(from) = self.fork().await? {
                    return Ok(Some(SourceItem::Changed { from }));
                }
                let head = self.endpoints[self.current].head().await?;
                if let Some(counts) = &self.counts {
                    counts.note_head(head);
                }
                let last_submittable = head.checked_sub(self.options.confirmations);
                self.last_submittable = last_submittable;
                let start = match self.options.from {
                    ChainStart::At(block) => block,
                    ChainStart::Behind(blocks) => head.saturating_sub(blocks),
                };
                let next = *self.next.get_or_insert(start);
                if last_submittable.is_none_or(|last_submittable| next > last_submittable) {
                    return Ok(None);
                }
                next
            }
        };
        let asked = self.endpoints[self.current].block(number, self.options.full);
        // A node behind a load balancer may lack a block that another has announced.
        let Some(block) = asked.await? else {
            self.last_submittable = None;
            return Ok(None);
        };
        if !self.chain.is_followed_by(number, &block.parent) {
            // If there is no fork, the nodes behind the endpoint do not agree yet.
            let from = self.fork().await?;
            self.last_submittable = None;
            return Ok(from.map(|from| SourceItem::Changed { from }));
        }
        let message = self.message(number, &block)?;
        self.chain.push(number, block.hash);
        self.next = number.checked_add(1);
        Ok(Some(SourceItem::Message(message)))
    }

    /// The lowest block that was submitted and is no longer in the chain; `None` if there is none.
    async fn fork(&self) -> Result<Option<u64>, RpcError> {
        let mut from = None;
        // A block that the endpoint lacks is no evidence by itself: the endpoint may be behind.
        let mut differs = false;
        let mut chain = self.chain.clone();
        while let Some((number, hash)) = chain.last() {
            let asked = self.endpoints[self.current].block(*number, false);
            match asked.await? {
                Some(block) if block.hash == *hash => break,
                Some(_) => differs = true,
                None => {}
            }
            from = Some(*number);
            chain.pop();
        }
        if differs && chain.last().is_none() {
            let depth = self.options.reorg_depth;
            tracing::error!(
                from,
                depth,
                "the chain was reorganised deeper than is remembered: earlier blocks may have \
                 changed too; raise `reorg_depth`"
            );
        }
        Ok(from.filter(|_| differs))
    }

    /// The default payload.
    fn described(&self, number: u64, block: &Block, timestamp: u64) -> Value {
        let mut payload = json!({
            "number": number,
            "hash": block.hash,
            "parentHash": block.parent,
            "timestamp": timestamp,
        });
        if self.options.full {
            payload["block"] = block.object.clone();
        }
        payload
    }

    fn message(&self, number: u64, block: &Block) -> Result<SourceMessage, RpcError> {
        let unexpected = |why: &str| RpcError::Unexpected {
            method: "eth_getBlockByNumber",
            why: why.to_owned(),
        };
        let timestamp = block.object["timestamp"].as_str().and_then(quantity);
        let timestamp = timestamp.ok_or_else(|| unexpected("`timestamp` is not a number"))?;
        let payload = match &self.options.payload {
            Some(template) => template.render_block(number, &block.hash, &block.parent, timestamp),
            None => self.described(number, block, timestamp),
        };
        let digits = block.hash.trim_start_matches("0x");
        let was_submitted = number < self.submitted_before;
        Ok(SourceMessage {
            first: number,
            last: number,
            part: Part::from_text(&digits[..digits.len().min(PART)]),
            encoding: Encoding::Json,
            bytes: Bytes::from(payload.to_string()),
            needs: None,
            uniqueness: match was_submitted {
                true => Uniqueness::ReplayOnly,
                false => Uniqueness::Single,
            },
            next: number.saturating_add(1).max(self.submitted_before),
            caller: None,
        })
    }
}

impl Source for Ethereum {
    fn seek(&mut self, position: u64) -> Result<(), String> {
        // Blocks submitted before are compared with the chain's present ones.
        let depth = self.options.reorg_depth as u64;
        self.next = Some(position.saturating_sub(depth));
        self.submitted_before = position;
        Ok(())
    }

    fn watch(&mut self, counts: Arc<SourceCounts>) {
        self.counts = Some(counts);
    }

    fn next(&mut self) -> BoxFuture<'_, Option<Result<SourceItem, String>>> {
        Box::pin(async { Some(Ok(self.next_item().await)) })
    }

    fn changed(&mut self) -> BoxFuture<'_, u64> {
        Box::pin(self.next_fork())
    }

    fn rewound(&mut self, asked: u64, from: u64) {
        if from > asked {
            let last = from - 1;
            tracing::error!(
                "the chain was reorganised: blocks {asked} to {last} have changed, and what was made \
                 of them has been emitted and stays"
            );
        }
        tracing::warn!(from, "the chain was reorganised: blocks are brought again");
        self.chain.truncate(asked.min(from));
        self.next = Some(from);
        self.submitted_before = self.submitted_before.min(from);
        self.last_submittable = None;
    }
}
