//! Native checks of a run of headers, the same ones that the circuit proves.

use super::{BlockHash, CompactTarget, Header, TargetError, U256};

/// A header that breaks the chain it is in.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("header {index}: {fault}")]
pub struct ChainError {
    /// The header's position in the slice that was checked, from 0.
    pub index: usize,
    /// The rule that the header breaks.
    pub fault: ChainFault,
}

/// The rule that a header in a chain breaks.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum ChainFault {
    /// Its previous hash is not the hash of the header before it.
    #[error("its previous hash {found} is not {expected}, the hash of the header before it")]
    WrongPrevious {
        /// The hash of the header before.
        expected: BlockHash,
        /// The field of this header.
        found: BlockHash,
    },
    /// Its compact target encodes no valid target.
    #[error("its bits {bits} are invalid: {source}")]
    InvalidBits {
        /// The compact target.
        bits: CompactTarget,
        /// The reason why the bits are invalid.
        source: TargetError,
    },
    /// Its hash is above its target.
    #[error("its hash {hash} is above the target {target} of its bits")]
    TargetMissed {
        /// The header's hash.
        hash: BlockHash,
        /// The target.
        target: U256,
    },
}

/// Checks that each header names the one before it and meets the target of its own bits.
///
/// Rules that need more of the chain are not checked: the network's target limit, retargeting, median time.
///
/// # Errors
///
/// The first [`ChainError`], with the header's index.
pub fn check_chain(headers: &[Header]) -> Result<(), ChainError> {
    let mut previous: Option<BlockHash> = None;
    for (index, header) in headers.iter().enumerate() {
        let fail = |fault| Err(ChainError { index, fault });
        if let Some(expected) = previous
            && header.prev_hash() != expected
        {
            return fail(ChainFault::WrongPrevious {
                expected,
                found: header.prev_hash(),
            });
        }
        let bits = header.bits();
        let target = match bits.target() {
            Ok(target) => target,
            Err(source) => return fail(ChainFault::InvalidBits { bits, source }),
        };
        let hash = header.hash();
        if hash.to_number() > target {
            return fail(ChainFault::TargetMissed { hash, target });
        }
        previous = Some(hash);
    }
    Ok(())
}

/// The sum of the work of these compact targets; saturates at 2²⁵⁶ − 1, which no chain reaches.
///
/// # Errors
///
/// The first [`TargetError`], for bits that encode no valid target.
pub fn total_work(bits: impl IntoIterator<Item = CompactTarget>) -> Result<U256, TargetError> {
    bits.into_iter().try_fold(U256::ZERO, |sum, bits| {
        Ok(sum.checked_add(bits.work()?).unwrap_or(!U256::ZERO))
    })
}
