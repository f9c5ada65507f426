//! The configuration read from environment variables: those of the push0 paper and of its public demo.

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

/// Most queues that one process reads.
pub const MAX_QUEUES: usize = 64;
/// Most members of a group, whose sequence numbers go into one header of the group's message.
pub const MAX_INPUTS: u32 = 4096;

/// The reader of the configuration; see [`Environment::read`].
#[derive(Clone, Copy, Debug)]
pub struct Environment;

/// The configuration of one process.
#[derive(Clone, Debug, PartialEq)]
pub struct Config {
    /// `NATS_URL`: servers, separated by commas.
    pub nats_url: String,
    /// `INPUT_STREAM`; `OUTPUT_STREAM` if only that is set.
    pub input_stream: String,
    /// `OUTPUT_STREAM`; `INPUT_STREAM` if only that is set.
    pub output_stream: String,
    /// `INPUT_QUEUE`: the subjects that are read.
    pub input_queues: Vec<String>,
    /// `OUTPUT_QUEUE`: the subject that is written. A dispatcher without one runs its program only for its
    /// effects.
    pub output_queue: Option<String>,
    /// `CONSUMER_NAME`: processes with the same name share the messages; each name gets all of them.
    pub consumer_name: Option<String>,
    /// `ONE_CONSUMER_PER_SUBJECT`: a consumer for each input queue instead of one for all.
    pub consumer_per_subject: bool,
    /// `ACK_WAIT`: silence of a process after which the server delivers its messages to another.
    pub ack_wait: Duration,
    /// `MAX_DELIVER`: deliveries after which a message that still fails is dead-lettered.
    pub max_deliver: Option<u32>,
    /// `METRICS_BIND` and `METRICS_PORT`: the address that serves metrics.
    pub metrics: Option<SocketAddr>,
    /// Settings of a dispatcher, if `BINARY` is set.
    pub program: Option<Program>,
    /// Settings of a collector, if `STRATEGY` is set.
    pub collection: Option<Collection>,
}

/// The program of a dispatcher.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Program {
    /// `BINARY`: its path or name.
    pub binary: PathBuf,
    /// `MULTIPLE_OUTPUT`: its output is a JSON array, and each element becomes a message.
    pub multiple_output: bool,
    /// `INHERIT_ENV`: names of further variables that the program inherits.
    pub inherit_env: Vec<String>,
}

/// The settings of a collector.
#[derive(Clone, Debug, PartialEq)]
pub struct Collection {
    /// `STRATEGY`, with the variables that belong to it.
    pub strategy: Strategy,
    /// `SINGLE_OUTPUT`: a group is emitted as one value instead of an array of its members.
    pub single_output: bool,
    /// `COLLECT_TIMEOUT_PERIOD_MILLIS`: wait of an incomplete group before its members are handed back; for
    /// a source, the interval of its requests.
    pub collect_timeout: Option<Duration>,
}

/// `STRATEGY`: the rule that forms groups.
#[derive(Clone, Debug, PartialEq)]
pub enum Strategy {
    /// `Match`: messages with the same value of a field.
    Match {
        /// `NUM_INPUTS`: messages in a group.
        inputs: u32,
        /// `GROUPING_FIELD`: the field; if absent, `group_id`, else `block`.
        field: Option<Field>,
    },
    /// `Sequential`: messages in the order of their blocks.
    Sequential {
        /// `NUM_INPUTS`: consecutive blocks in a group.
        blocks: u32,
        /// `NEXT_BLOCK`: the first block; if absent, the first that is seen.
        start: Option<u64>,
    },
    /// `Proof`: a block with its proofs.
    Proof {
        /// `NUM_INPUTS`: proofs in a group.
        proofs: u32,
    },
    /// `Block`: no groups, but a source that follows an Ethereum chain.
    Block {
        /// `L1_RPC`: the chain's endpoint.
        rpc: HttpUrl,
        /// `NEXT_BLOCK`: the first block.
        start: Start,
    },
}

/// The first block of a source.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Start {
    /// A number of blocks behind the head of the chain; 0 is the head.
    Behind(u64),
    /// The block of this number.
    At(u64),
}

/// A variable with an invalid value.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct EnvError {
    /// The name of the variable.
    pub variable: &'static str,
    /// The value, without secrets; `None` if the variable is not set or empty.
    pub holds: Option<String>,
    /// A description of valid values.
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
    /// The program of a dispatcher.
    ///
    /// # Errors
    /// A variable that only dispatchers need is not set.
    pub fn program(&self) -> Result<&Program, EnvError> {
        if self.input_queues.is_empty() {
            return Err(EnvError::missing("INPUT_QUEUE", "the queues to read"));
        }
        let expected = "the program that each message is run with";
        self.program
            .as_ref()
            .ok_or_else(|| EnvError::missing("BINARY", expected))
    }

    /// The settings of a collector, and the queue that it writes.
    ///
    /// # Errors
    /// A variable that only collectors need is not set.
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

    /// The durable consumers of this process: the name of each, and its queues.
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

    /// `CONSUMER_NAME`, or a default that is equal for processes with the same role and queues.
    pub(crate) fn consumer(&self, role: &str) -> String {
        self.consumer_name.clone().unwrap_or_else(|| {
            let mut parts = vec![role];
            parts.extend(self.input_queues.iter().map(String::as_str));
            parts.extend(self.output_queue.as_deref());
            value::durable_name(&parts)
        })
    }

    /// The queue of dead letters.
    pub(crate) fn dead_letter_queue(&self) -> String {
        let queue = self.output_queue.as_ref().or(self.input_queues.first());
        format!("{}.dlq", queue.map_or("unnamed", String::as_str))
    }
}
