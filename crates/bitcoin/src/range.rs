//! The statement of consecutive chunks of headers as one range.

use super::{BlockHash, ChunkStatement, TargetError, U256};

/// A run of `count` consecutive headers, from the one after `prev_hash` to the one whose hash is `last_hash`, each of
/// which meets its target.
///
/// Heights are not part of it: no chunk states one. Nor are the bits of each header; `work` is their sum.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RangeStatement {
    /// The hash that the first header names as its predecessor's.
    pub prev_hash: BlockHash,
    /// The hash of the last header.
    pub last_hash: BlockHash,
    /// The number of headers.
    pub count: u64,
    /// Their total work.
    pub work: U256,
}

/// Chunks that are not one range.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum RangeError {
    /// There is no chunk.
    #[error("no chunk: a range has at least one")]
    Empty,
    /// A chunk begins elsewhere than the chunk before it ends.
    #[error(
        "chunk {chunk} begins after the header {found}, and the chunk before it ends with {expected}"
    )]
    Broken {
        /// The chunk, from 0.
        chunk: usize,
        /// Hash of the last header of the chunk before it.
        expected: BlockHash,
        /// The hash that the chunk begins after.
        found: BlockHash,
    },
    /// Bits of a chunk that encode no valid target, and thus no work.
    #[error("chunk {chunk}: {source}")]
    InvalidBits {
        /// The chunk, from 0.
        chunk: usize,
        /// The reason why the bits are invalid.
        source: TargetError,
    },
    /// The sum of the work exceeds 256 bits, which no chain reaches.
    #[error("the total work does not fit 256 bits")]
    Work,
}

// === impl RangeStatement ===

impl RangeStatement {
    /// The statement of these chunks together, in chain order. Whether each is proven is for the caller to check.
    ///
    /// # Errors
    ///
    /// [`RangeError`] unless each chunk begins after the header that the chunk before it ends with.
    pub fn of(chunks: &[ChunkStatement]) -> Result<Self, RangeError> {
        let (Some(first), Some(last)) = (chunks.first(), chunks.last()) else {
            return Err(RangeError::Empty);
        };
        for (index, pair) in chunks.windows(2).enumerate() {
            let (expected, found) = (pair[0].last_hash, pair[1].prev_hash);
            if expected != found {
                return Err(RangeError::Broken {
                    chunk: index + 1,
                    expected,
                    found,
                });
            }
        }
        let mut work = U256::ZERO;
        for (chunk, statement) in chunks.iter().enumerate() {
            let more = statement.total_work();
            let more = more.map_err(|source| RangeError::InvalidBits { chunk, source })?;
            work = work.checked_add(more).ok_or(RangeError::Work)?;
        }
        Ok(Self {
            prev_hash: first.prev_hash,
            last_hash: last.last_hash,
            count: chunks.iter().map(|chunk| chunk.count() as u64).sum(),
            work,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{CompactTarget, mainnet_headers};

    fn chunks(size: usize) -> Vec<ChunkStatement> {
        let headers = mainnet_headers();
        let chunks = headers.chunks(size);
        chunks.filter_map(ChunkStatement::of).collect()
    }

    #[test]
    fn chunks_of_any_size_are_the_same_range() {
        let whole = RangeStatement::of(&chunks(32)).expect("one chunk");
        assert_eq!(whole.count, 32);
        assert_eq!(whole.prev_hash, mainnet_headers()[0].prev_hash());
        assert_eq!(whole.last_hash, mainnet_headers()[31].hash());
        assert_eq!(whole.work, U256::from(32 * 0x1_0001_0001));
        for size in [1, 2, 5, 31] {
            assert_eq!(RangeStatement::of(&chunks(size)), Ok(whole.clone()));
        }
    }

    #[test]
    fn chunks_that_do_not_follow_are_refused() {
        assert_eq!(RangeStatement::of(&[]), Err(RangeError::Empty));
        let right = chunks(5);
        for left_out in 1..right.len() - 1 {
            let mut wrong = right.clone();
            wrong.remove(left_out);
            let refused = RangeStatement::of(&wrong);
            assert!(
                matches!(refused, Err(RangeError::Broken { chunk, .. }) if chunk == left_out),
                "{refused:?}"
            );
        }
        for swapped in 1..right.len() {
            let mut wrong = right.clone();
            wrong.swap(swapped - 1, swapped);
            let refused = RangeStatement::of(&wrong);
            assert!(
                matches!(refused, Err(RangeError::Broken { .. })),
                "{refused:?}"
            );
        }
        let mut twice = right.clone();
        twice.insert(1, right[0].clone());
        assert!(matches!(
            RangeStatement::of(&twice),
            Err(RangeError::Broken { chunk: 1, .. })
        ));
    }

    #[test]
    fn work_that_is_none_or_too_much_is_refused() {
        let mut wrong = chunks(16);
        wrong[1].bits[3] = CompactTarget(0);
        assert!(matches!(
            RangeStatement::of(&wrong),
            Err(RangeError::InvalidBits { chunk: 1, .. })
        ));
        // A target of one: half of all that a number can hold, and a chunk's own sum saturates.
        for chunk in &mut wrong {
            chunk.bits.fill(CompactTarget(0x0101_0000));
        }
        assert_eq!(RangeStatement::of(&wrong), Err(RangeError::Work));
    }
}
