//! The messages between the leader of an aggregation and the workers that make its shards.

use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};

use super::work::Share;

/// Version of the messages, their first byte.
const VERSION: u8 = 1;

/// Most bytes of proved parts in one message.
pub(super) const PIECE_BYTES_MAX: usize = 96 << 10;

/// Identification of a shard at a worker: a random number that the leader draws.
pub(super) type ShardId = [u8; 16];

/// A message of the leader.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(super) enum Request {
    /// A call for workers, on the subject that they share.
    Find,
    /// A shard is to be made. Sent again, it changes nothing.
    Begin {
        /// The shard's identification.
        id: ShardId,
        /// The division, and the number of the shard.
        share: Share,
    },
    /// A piece of the shard's proved parts, in their order.
    Parts {
        /// The shard.
        id: ShardId,
        /// The number of bytes before this piece.
        offset: u32,
        /// The piece.
        bytes: Vec<u8>,
    },
    /// A message of the aggregation. Sent again, it is answered again.
    Message {
        /// The shard.
        id: ShardId,
        /// The number of the message, from 0.
        step: u32,
        /// The message.
        bytes: Vec<u8>,
    },
    /// The shard is no longer needed.
    End {
        /// The shard.
        id: ShardId,
    },
}

/// A worker's reply.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(super) enum Reply {
    /// To `Find`: the tokens of the subject on which the worker listens alone.
    Here(Vec<String>),
    /// It is done.
    Done,
    /// The shard's answer to a message.
    Answer(Vec<u8>),
    /// The answer is being made: ask again.
    Working,
    /// The worker does not make the shard.
    Refused(String),
}

/// The bytes of a message.
pub(super) fn encode(message: &impl Serialize) -> Vec<u8> {
    postcard::to_extend(message, vec![VERSION]).expect("messages are encoded into memory")
}

/// Decodes an untrusted message, which the bus bounds.
pub(super) fn decode<T: DeserializeOwned>(bytes: &[u8]) -> Result<T, String> {
    match bytes {
        [VERSION, content @ ..] => match postcard::take_from_bytes(content) {
            Ok((message, [])) => Ok(message),
            Ok(_) => Err("a message with bytes after its end".to_owned()),
            Err(error) => Err(format!("a message that does not decode: {error}")),
        },
        [version, ..] => Err(format!(
            "a message of version {version}, where this program reads {VERSION}: use one release everywhere"
        )),
        [] => Err("an empty message".to_owned()),
    }
}
