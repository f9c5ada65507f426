//! What the environment says: the variables of the push0 paper and of its public demo.

mod read;
#[cfg(test)]
mod tests;
mod value;

use std::fmt;
use std::net::SocketAddr;
use std::path::PathBuf;
use std::time::Duration;

use proofmill_workflow::HttpUrl;

pub use value::Field;

/// Most queues one process reads.
pub const MAX_QUEUES: usize = 64;
/// Most members of a group: their sequence numbers go into a header of the group's message.
pub const MAX_INPUTS: u32 = 4096;

/// Reads the environment; see [`Environment::read`].
#[derive(Clone, Copy, Debug)]
pub struct Environment;

/// What one process does, and where.
#[derive(Clone, Debug, PartialEq)]
pub struct Config {
    /// `NATS_URL`: servers, separated by commas.
    pub nats_url: String,
    /// `INPUT_STREAM`; `OUTPUT_STREAM` if only that is set.
    pub input_stream: String,
    /// `OUTPUT_STREAM`; `INPUT_STREAM` if only that is set.
    pub output_stream: String,
    /// `INPUT_QUEUE`: the subjects read.
    pub input_queues: Vec<String>,
    /// `OUTPUT_QUEUE`: the subject written. A dispatcher without one runs its program for the effect.
    pub output_queue: Option<String>,
    /// `CONSUMER_NAME`: processes with the same share the work, processes with another get all of it.
    pub consumer_name: Option<String>,
    /// `ONE_CONSUMER_PER_SUBJECT`: a consumer for each input queue instead of one for all.
    pub consumer_per_subject: bool,
    /// `ACK_WAIT`: when the server gives a message to another process if this one went silent.
    pub ack_wait: Duration,
    /// `MAX_DELIVER`: deliveries after which a message that still fails is dead-lettered.
    pub max_deliver: Option<u32>,
    /// `METRICS_PORT` at `METRICS_BIND`: where metrics are served.
    pub metrics: Option<SocketAddr>,
    /// What a dispatcher needs, if `BINARY` is set.
    pub program: Option<Program>,
    /// What a collector needs, if `STRATEGY` is set.
    pub collection: Option<Collection>,
}

/// What a dispatcher runs.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Program {
    /// `BINARY`.
    pub binary: PathBuf,
    /// `MULTIPLE_OUTPUT`: what it writes is a JSON array, and each element becomes a message.
    pub multiple_output: bool,
    /// `INHERIT_ENV`: names of further variables that the program gets.
    pub inherit_env: Vec<String>,
}

/// What a collector gathers.
#[derive(Clone, Debug, PartialEq)]
pub struct Collection {
    /// `STRATEGY`, with the variables that belong to it.
    pub strategy: Strategy,
    /// `SINGLE_OUTPUT`: a group is one value instead of an array of its members.
    pub single_output: bool,
    /// `COLLECT_TIMEOUT_PERIOD_MILLIS`.
    pub collect_timeout: Option<Duration>,
}

/// `STRATEGY`: what makes a group.
#[derive(Clone, Debug, PartialEq)]
pub enum Strategy {
    /// `Match`: messages with the same value of a field.
    Match {
        /// `NUM_INPUTS`: how many make a group.
        inputs: u32,
        /// `GROUPING_FIELD`; `group_id`, then `block`, if absent.
        field: Option<Field>,
    },
    /// `Sequential`: messages in the order of their blocks.
    Sequential {
        /// `NUM_INPUTS`: consecutive blocks that make a group.
        blocks: u32,
        /// `NEXT_BLOCK`: the first block; the first that is seen if absent.
        start: Option<u64>,
    },
    /// `Proof`: a block with its proofs.
    Proof {
        /// `NUM_INPUTS`: how many proofs a block has.
        proofs: u32,
    },
    /// `Block`: no group at all, but a source that follows an Ethereum chain.
    Block {
        /// `L1_RPC`.
        rpc: HttpUrl,
        /// `NEXT_BLOCK`.
        start: Start,
    },
}

/// Where a source begins.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Start {
    /// At the head of the chain, or so many blocks behind it.
    Behind(u64),
    /// At a block.
    At(u64),
}

/// A variable that does not hold what it should.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct EnvError {
    /// Its name.
    pub variable: &'static str,
    /// What it holds, without secrets; `None` if it is not set, or empty.
    pub holds: Option<String>,
    /// What it should hold.
    pub expected: String,
}

// === impl EnvError ===

impl EnvError {
    pub(crate) fn missing(variable: &'static str, expected: impl Into<String>) -> Self {
        Self {
            variable,
            holds: None,
            expected: expected.into(),
        }
    }

    pub(crate) fn holds(
        variable: &'static str,
        holds: impl Into<String>,
        expected: impl Into<String>,
    ) -> Self {
        Self {
            variable,
            holds: Some(holds.into()),
            expected: expected.into(),
        }
    }
}

impl fmt::Display for EnvError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.holds {
            Some(holds) => write!(f, "{} holds {holds:?}", self.variable)?,
            None => write!(f, "{} is not set", self.variable)?,
        }
        write!(f, "; expected {}", self.expected)
    }
}

impl std::error::Error for EnvError {}

// === impl Config ===

impl Config {
    /// What a dispatcher runs.
    ///
    /// # Errors
    /// Something that only dispatchers need is not set.
    pub fn program(&self) -> Result<&Program, EnvError> {
        if self.input_queues.is_empty() {
            return Err(EnvError::missing("INPUT_QUEUE", "the queues to read"));
        }
        let expected = "the program that each message is run with";
        self.program
            .as_ref()
            .ok_or_else(|| EnvError::missing("BINARY", expected))
    }

    /// What a collector gathers, and the queue it writes.
    ///
    /// # Errors
    /// Something that only collectors need is not set.
    pub fn collection(&self) -> Result<(&Collection, &str), EnvError> {
        let collection = self
            .collection
            .as_ref()
            .ok_or_else(|| EnvError::missing("STRATEGY", "Match, Sequential, Block or Proof"))?;
        let is_source = matches!(collection.strategy, Strategy::Block { .. });
        if self.input_queues.is_empty() && !is_source {
            return Err(EnvError::missing("INPUT_QUEUE", "the queues to read"));
        }
        let output = self
            .output_queue
            .as_deref()
            .ok_or_else(|| EnvError::missing("OUTPUT_QUEUE", "the queue that groups go to"))?;
        Ok((collection, output))
    }

    /// The durable consumers of this process: their names, and the queues of each.
    pub(crate) fn consumers(&self, role: &str) -> Vec<(String, Vec<String>)> {
        let name = self.consumer(role);
        if !self.consumer_per_subject {
            return vec![(name, self.input_queues.clone())];
        }
        let each = self.input_queues.iter();
        each.map(|queue| {
            let own = value::durable_name(&[&name, queue]);
            (own, vec![queue.clone()])
        })
        .collect()
    }

    /// `CONSUMER_NAME`, or what stands for it: equal for processes that do the same.
    pub(crate) fn consumer(&self, role: &str) -> String {
        self.consumer_name.clone().unwrap_or_else(|| {
            let mut parts = vec![role];
            parts.extend(self.input_queues.iter().map(String::as_str));
            parts.extend(self.output_queue.as_deref());
            value::durable_name(&parts)
        })
    }

    /// Where messages go that cannot be worked on.
    pub(crate) fn dead_letter_queue(&self) -> String {
        let queue = self.output_queue.as_ref().or(self.input_queues.first());
        format!("{}.dlq", queue.map_or("unnamed", String::as_str))
    }
}
