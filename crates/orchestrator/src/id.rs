//! Identifiers of tasks, workers, and the parts of a block.

use std::fmt;
use std::sync::Arc;

use serde::{Deserialize, Serialize};

/// Maximum length of a part, bytes. Parts become tokens of log keys, whose length is limited.
pub const MAX_PART: usize = 200;

/// Part of a block that a task is about: `"0"` for a whole block, `"0~3"` for the fourth output of a fan-out,
/// `"proofs:0"` at a stage that reads several queues.
///
/// Consists of 1 to [`MAX_PART`] ASCII letters, digits and `_ - : ~ =`, so that it can be one token of a log
/// key.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(try_from = "String")]
pub struct Part(Arc<str>);

/// The error for a text that cannot be a part: too long, empty, or with other characters.
#[derive(Debug, Clone, thiserror::Error, PartialEq, Eq)]
#[error("invalid part {0:?}: use 1 to {MAX_PART} ASCII letters, digits, `_`, `-`, `:`, `~` or `=`")]
pub struct InvalidPart(String);

/// A random number, different in practice from every other process's.
pub(crate) fn fresh_number() -> u64 {
    use std::hash::{BuildHasher, RandomState};
    RandomState::new().hash_one(0)
}

// === impl Part ===

impl Part {
    /// Checks and wraps `text`.
    pub fn new(text: &str) -> Result<Self, InvalidPart> {
        let fits = (1..=MAX_PART).contains(&text.len());
        if fits && text.bytes().all(is_part_byte) {
            Ok(Self(text.into()))
        } else {
            Err(InvalidPart(text.chars().take(MAX_PART).collect()))
        }
    }

    /// Part of a message that is a whole block.
    pub fn whole() -> Self {
        Self("0".into())
    }

    /// The part below which there is none.
    pub(crate) fn lowest() -> Self {
        // The first of the allowed characters.
        Self("-".into())
    }

    /// A part for any text: the text itself if it is valid, else a digest of it.
    pub fn from_text(text: &str) -> Self {
        Self::new(text).unwrap_or_else(|_| Self(format!("={}", short_digest(text)).into()))
    }

    /// Part of element `index` of a fan-out of this part.
    pub fn element(&self, index: usize) -> Self {
        Self::from_text(&format!("{}~{index}", self.0))
    }

    /// This part with the name of its origin: a queue, or one of several writers of a queue.
    pub fn of(&self, origin: &str) -> Self {
        Self::from_text(&format!("{origin}:{}", self.0))
    }

    /// The part as text.
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl TryFrom<String> for Part {
    type Error = InvalidPart;

    fn try_from(text: String) -> Result<Self, InvalidPart> {
        Self::new(&text)
    }
}

fn is_part_byte(byte: u8) -> bool {
    byte.is_ascii_alphanumeric() || matches!(byte, b'_' | b'-' | b':' | b'~' | b'=')
}

fn short_digest(text: &str) -> String {
    use sha2::Digest as _;
    hex::encode(&sha2::Sha256::digest(text.as_bytes())[..16])
}

impl fmt::Debug for Part {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl fmt::Display for Part {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

/// Identity of a task within its workflow: its stage, its block, and the part of the block. It is derived
/// from the task's source, never drawn at random, so that the same work submitted or produced twice has the
/// same id.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub struct TaskId {
    /// Stage that runs the task.
    pub stage: Arc<str>,
    /// First block that the task is about.
    pub block: u64,
    /// Part of the block.
    pub part: Part,
}

impl fmt::Display for TaskId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}/{}/{}", self.stage, self.block, self.part)
    }
}

impl fmt::Debug for TaskId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

/// The error for a text that is not of the form `STAGE/BLOCK/PART`.
#[derive(Debug, Clone, thiserror::Error, PartialEq, Eq)]
#[error("invalid task id {0:?}: expected STAGE/BLOCK/PART, such as prove/12/0")]
pub struct InvalidTaskId(String);

impl std::str::FromStr for TaskId {
    type Err = InvalidTaskId;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        let invalid = || InvalidTaskId(text.chars().take(MAX_PART).collect());
        let mut pieces = text.splitn(3, '/');
        let (Some(stage), Some(block), Some(part)) = (pieces.next(), pieces.next(), pieces.next())
        else {
            return Err(invalid());
        };
        Ok(Self {
            stage: stage.into(),
            block: block.parse().map_err(|_| invalid())?,
            part: Part::new(part).map_err(|_| invalid())?,
        })
    }
}

/// Name of one dispatcher process or thread; unique among live ones.
pub type WorkerId = Arc<str>;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn part_refuses_what_a_key_cannot_hold() {
        for bad in ["", "a.b", "a b", "*", ">", "é", &"x".repeat(MAX_PART + 1)] {
            assert!(Part::new(bad).is_err(), "{bad:?}");
        }
        assert_eq!(Part::new("a:b~1").expect("valid").as_str(), "a:b~1");
        let bytes = (0..=u8::MAX).filter(|byte| is_part_byte(*byte));
        let parts = bytes.map(|byte| Part::new(&char::from(byte).to_string()).expect("valid"));
        assert_eq!(parts.min(), Some(Part::lowest()));
    }

    #[test]
    fn part_from_any_text_is_valid_and_distinct() {
        let odd = Part::from_text("group α");
        assert!(Part::new(odd.as_str()).is_ok());
        assert_ne!(odd, Part::from_text("group β"));
    }

    #[test]
    fn task_id_round_trips_through_text() {
        let id = TaskId {
            stage: "prove".into(),
            block: 12,
            part: Part::whole().element(3),
        };
        assert_eq!(id.to_string().parse::<TaskId>(), Ok(id));
        assert!("prove/x/0".parse::<TaskId>().is_err());
        assert!("prove/1".parse::<TaskId>().is_err());
    }
}
