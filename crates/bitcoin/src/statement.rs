//! The statement of a proof of a chunk of headers, and its public inputs.

use ark_ff::{BigInteger, PrimeField};

use super::{BlockHash, CompactTarget, Header, TargetError, U256, total_work};

/// The most header slots a circuit may have: about 52 million constraints.
pub const MAX_SLOTS: usize = 1024;

/// Public inputs that come before the slots' bits.
const FIXED_INPUTS: usize = 5;

/// A run of `bits.len()` consecutive headers, from the one after `prev_hash` to the one whose hash
/// is `last_hash`, each of which meets its target.
///
/// The circuit proves this of *some* headers with these bits. Whether they are the bits that the network
/// demanded at that height is for the verifier to judge: the bits are part of the statement.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ChunkStatement {
    /// The hash the first header names as its predecessor's.
    pub prev_hash: BlockHash,
    /// The hash of the last header.
    pub last_hash: BlockHash,
    /// Each header's compact target, in chain order; their number is the number of headers.
    pub bits: Vec<CompactTarget>,
}

/// Public inputs that encode no statement, or a statement that does not fit the circuit.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum StatementError {
    /// There is no header, or more headers than slots.
    #[error("{count} headers do not fit a circuit of {slots} slots: give 1 to {slots}")]
    Count {
        /// The number of headers.
        count: u64,
        /// The circuit's slots.
        slots: usize,
    },
    /// The number of public inputs fits no circuit.
    #[error("{found} public inputs: a header-chain statement has {FIXED_INPUTS} and one a slot")]
    Length {
        /// The number of public inputs.
        found: usize,
    },
    /// A public input is out of its range.
    #[error("public input {index} is not a number of {bits} bits")]
    Range {
        /// The input's index, from 0.
        index: usize,
        /// The width it must fit.
        bits: u32,
    },
    /// A slot beyond the last header has bits.
    #[error("slot {slot} lies beyond the last header but its bits are not zero")]
    Inactive {
        /// The slot, from 0.
        slot: usize,
    },
    /// The encoding is cut short, too long or not canonical.
    #[error("a statement of {found} bytes is cut short, too long, or of the wrong count")]
    Encoding {
        /// Bytes given.
        found: usize,
    },
}

// === impl ChunkStatement ===

impl ChunkStatement {
    /// The statement of a proof of these headers; `None` if there are no headers. The headers are not checked.
    pub fn of(headers: &[Header]) -> Option<Self> {
        let (first, last) = (headers.first()?, headers.last()?);
        Some(Self {
            prev_hash: first.prev_hash(),
            last_hash: last.hash(),
            bits: headers.iter().map(Header::bits).collect(),
        })
    }

    /// The number of headers.
    pub fn count(&self) -> usize {
        self.bits.len()
    }

    /// The chunk's total work.
    ///
    /// # Errors
    ///
    /// [`TargetError`] for bits that encode no valid target; a proven statement has none.
    pub fn total_work(&self) -> Result<U256, TargetError> {
        total_work(self.bits.iter().copied())
    }

    /// The public inputs for a circuit of `slots` slots, without the leading one: low and high
    /// half of the previous hash, low and high half of the last hash, count, and each slot's bits
    /// (zero for unused slots). Halves are of the hash as a little-endian number.
    ///
    /// # Errors
    ///
    /// [`StatementError::Count`] unless there are 1 to `slots` headers.
    pub fn to_inputs<F: PrimeField>(&self, slots: usize) -> Result<Vec<F>, StatementError> {
        let count = self.count();
        if count == 0 || count > slots {
            return Err(StatementError::Count {
                count: count as u64,
                slots,
            });
        }
        let mut inputs = Vec::with_capacity(FIXED_INPUTS + slots);
        for hash in [self.prev_hash, self.last_hash] {
            let (low, high) = hash.to_number().halves();
            inputs.extend([F::from(low), F::from(high)]);
        }
        inputs.push(F::from(count as u64));
        inputs.extend(self.bits.iter().map(|bits| F::from(bits.0)));
        inputs.resize(FIXED_INPUTS + slots, F::zero());
        Ok(inputs)
    }

    /// The statement that these public inputs encode.
    ///
    /// # Errors
    ///
    /// [`StatementError`] unless the inputs are what [`to_inputs`](Self::to_inputs) produces.
    pub fn from_inputs<F: PrimeField>(inputs: &[F]) -> Result<Self, StatementError> {
        let found = inputs.len();
        let slots = found
            .checked_sub(FIXED_INPUTS)
            .filter(|s| (1..=MAX_SLOTS).contains(s));
        let slots = slots.ok_or(StatementError::Length { found })?;
        let number = |index: usize, bits: u32| {
            let value = inputs[index].into_bigint();
            if value.num_bits() > bits {
                return Err(StatementError::Range { index, bits });
            }
            let limbs = value.as_ref();
            Ok(u128::from(limbs[0]) | u128::from(limbs.get(1).copied().unwrap_or(0)) << 64)
        };
        let hash = |index: usize| {
            let (low, high) = (number(index, 128)?, number(index + 1, 128)?);
            let mut bytes = [0; 32];
            bytes[..16].copy_from_slice(&low.to_le_bytes());
            bytes[16..].copy_from_slice(&high.to_le_bytes());
            Ok(BlockHash(bytes))
        };
        let (prev_hash, last_hash) = (hash(0)?, hash(2)?);
        let count = number(4, 64)? as u64;
        if count == 0 || count > slots as u64 {
            return Err(StatementError::Count { count, slots });
        }
        let mut bits = Vec::with_capacity(count as usize);
        for slot in 0..slots {
            let value = number(FIXED_INPUTS + slot, 32)? as u32;
            if (slot as u64) < count {
                bits.push(CompactTarget(value));
            } else if value != 0 {
                return Err(StatementError::Inactive { slot });
            }
        }
        Ok(Self {
            prev_hash,
            last_hash,
            bits,
        })
    }

    /// A compact encoding: both hashes, the count as 4 little-endian bytes, and 4 little-endian
    /// bytes of bits for each header.
    pub fn to_bytes(&self) -> Vec<u8> {
        let mut bytes = Vec::with_capacity(68 + 4 * self.bits.len());
        bytes.extend(self.prev_hash.0);
        bytes.extend(self.last_hash.0);
        bytes.extend((self.bits.len() as u32).to_le_bytes());
        for bits in &self.bits {
            bytes.extend(bits.0.to_le_bytes());
        }
        bytes
    }

    /// Decodes what [`to_bytes`](Self::to_bytes) encodes.
    ///
    /// # Errors
    ///
    /// [`StatementError::Encoding`] for a length that does not match the count, and
    /// [`StatementError::Count`] for a count that no circuit has slots for.
    pub fn from_bytes(bytes: &[u8]) -> Result<Self, StatementError> {
        let malformed = || StatementError::Encoding { found: bytes.len() };
        let (prev_hash, rest) = bytes.split_first_chunk::<32>().ok_or_else(malformed)?;
        let (last_hash, rest) = rest.split_first_chunk::<32>().ok_or_else(malformed)?;
        let (count, rest) = rest.split_first_chunk::<4>().ok_or_else(malformed)?;
        let count = u32::from_le_bytes(*count);
        if count == 0 || count as usize > MAX_SLOTS {
            return Err(StatementError::Count {
                count: count.into(),
                slots: MAX_SLOTS,
            });
        }
        let (bits, []) = rest.as_chunks::<4>() else {
            return Err(malformed());
        };
        if bits.len() != count as usize {
            return Err(malformed());
        }
        Ok(Self {
            prev_hash: BlockHash(*prev_hash),
            last_hash: BlockHash(*last_hash),
            bits: bits
                .iter()
                .map(|b| CompactTarget(u32::from_le_bytes(*b)))
                .collect(),
        })
    }
}

#[cfg(test)]
mod tests {
    use ark_bls12_381::Fr;
    use proptest::prelude::*;

    use super::*;

    fn statement() -> impl Strategy<Value = ChunkStatement> {
        (
            any::<[u8; 32]>(),
            any::<[u8; 32]>(),
            proptest::collection::vec(any::<u32>(), 1..9),
        )
            .prop_map(|(prev, last, bits)| ChunkStatement {
                prev_hash: BlockHash(prev),
                last_hash: BlockHash(last),
                bits: bits.into_iter().map(CompactTarget).collect(),
            })
    }

    proptest! {
        #[test]
        fn encodings_round_trip(statement in statement(), more in 0usize..4) {
            let slots = statement.count() + more;
            let inputs: Vec<Fr> = statement.to_inputs(slots).unwrap();
            prop_assert_eq!(inputs.len(), FIXED_INPUTS + slots);
            prop_assert_eq!(ChunkStatement::from_inputs(&inputs), Ok(statement.clone()));
            let bytes = statement.to_bytes();
            prop_assert_eq!(ChunkStatement::from_bytes(&bytes), Ok(statement.clone()));
            for cut in 0..bytes.len() {
                prop_assert!(ChunkStatement::from_bytes(&bytes[..cut]).is_err());
            }
            if statement.count() > 1 {
                prop_assert!(statement.to_inputs::<Fr>(statement.count() - 1).is_err());
            }
        }

        #[test]
        fn any_bytes_are_decoded_or_refused(bytes in proptest::collection::vec(any::<u8>(), 0..200)) {
            if let Ok(statement) = ChunkStatement::from_bytes(&bytes) {
                prop_assert_eq!(statement.to_bytes(), bytes);
            }
        }
    }

    #[test]
    fn inputs_out_of_range_are_refused() {
        let statement = ChunkStatement {
            prev_hash: BlockHash([1; 32]),
            last_hash: BlockHash([2; 32]),
            bits: vec![CompactTarget(3)],
        };
        let good: Vec<Fr> = statement.to_inputs(2).unwrap();
        let with = |index: usize, value: Fr| {
            let mut inputs = good.clone();
            inputs[index] = value;
            ChunkStatement::from_inputs(&inputs)
        };
        let wide = Fr::from(u128::MAX) + Fr::from(1);
        for index in 0..4 {
            assert_eq!(
                with(index, wide),
                Err(StatementError::Range { index, bits: 128 })
            );
        }
        assert_eq!(
            with(4, Fr::from(0)),
            Err(StatementError::Count { count: 0, slots: 2 })
        );
        assert_eq!(
            with(4, Fr::from(3)),
            Err(StatementError::Count { count: 3, slots: 2 })
        );
        assert_eq!(
            with(4, -Fr::from(1)),
            Err(StatementError::Range { index: 4, bits: 64 })
        );
        assert_eq!(
            with(5, Fr::from(1u64 << 32)),
            Err(StatementError::Range { index: 5, bits: 32 })
        );
        assert_eq!(
            with(6, Fr::from(1)),
            Err(StatementError::Inactive { slot: 1 })
        );
        assert_eq!(
            ChunkStatement::from_inputs(&good[..5]),
            Err(StatementError::Length { found: 5 })
        );
    }
}
