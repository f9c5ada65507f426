//! Public inputs as bytes.

use crate::claim::MAX_CIRCUITS;
use crate::field::{BYTES, bytes, element};
use crate::{Instances, Scalar};

/// Bytes that are no public inputs of such a circuit.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum StatementError {
    /// The bytes end too soon.
    #[error("the public inputs end at byte {0} or before, where a count or a number should be")]
    Short(usize),
    /// Bytes follow the public inputs.
    #[error("{0} bytes behind the public inputs")]
    Long(usize),
    /// The number of circuits is zero or too large.
    #[error("public inputs of {0} circuits: from 1 to {MAX_CIRCUITS}")]
    Circuits(usize),
    /// A number that is not reduced by the field's modulus.
    #[error("the public input at byte {0} is not below the modulus of Vesta's scalar field")]
    NotCanonical(usize),
}

/// The number of circuits; for each circuit and each of its columns the number of public inputs and
/// these. Counts are of four bytes, the most significant first; public inputs of 32, the least
/// significant first.
///
/// # Panics
///
/// If a count is 2³² or more.
pub fn encode_instances(instances: &Instances) -> Vec<u8> {
    let count = |length: usize| u32::try_from(length).expect("fewer than 2³²").to_be_bytes();
    let mut encoded = count(instances.len()).to_vec();
    for column in instances.iter().flatten() {
        encoded.extend(count(column.len()));
        for input in column {
            encoded.extend(bytes(input));
        }
    }
    encoded
}

/// Decodes the public inputs of circuits with a given number of columns; they have one encoding.
///
/// # Errors
///
/// [`StatementError`] for any other bytes.
pub fn decode_instances(
    encoded: &[u8],
    columns: usize,
) -> Result<Vec<Vec<Vec<Scalar>>>, StatementError> {
    let mut reader = Reader { encoded, at: 0 };
    let circuits = reader.count()?;
    if circuits == 0 || circuits > MAX_CIRCUITS {
        return Err(StatementError::Circuits(circuits));
    }
    // Before anything is allocated for them.
    let columns_bytes = circuits.saturating_mul(columns).saturating_mul(COUNT_BYTES);
    if columns_bytes > encoded.len() {
        return Err(StatementError::Short(encoded.len()));
    }
    let instances = (0..circuits)
        .map(|_| (0..columns).map(|_| reader.column()).collect())
        .collect::<Result<_, _>>()?;
    match encoded.len() - reader.at {
        0 => Ok(instances),
        left => Err(StatementError::Long(left)),
    }
}

const COUNT_BYTES: usize = 4;

struct Reader<'a> {
    encoded: &'a [u8],
    at: usize,
}

// === impl Reader ===

impl Reader<'_> {
    fn next<const N: usize>(&mut self) -> Result<[u8; N], StatementError> {
        let next = self.encoded[self.at..].first_chunk();
        let next = next.ok_or(StatementError::Short(self.at))?;
        self.at += N;
        Ok(*next)
    }

    fn count(&mut self) -> Result<usize, StatementError> {
        let bytes: [u8; COUNT_BYTES] = self.next()?;
        Ok(u32::from_be_bytes(bytes) as usize)
    }

    fn column(&mut self) -> Result<Vec<Scalar>, StatementError> {
        let count = self.count()?;
        if count > (self.encoded.len() - self.at) / BYTES {
            return Err(StatementError::Short(self.at));
        }
        (0..count)
            .map(|_| {
                let at = self.at;
                element(&self.next()?).ok_or(StatementError::NotCanonical(at))
            })
            .collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use ark_ff::One;

    #[test]
    fn what_is_written_is_read_and_nothing_else() {
        let one = Scalar::one();
        let instances = vec![vec![vec![one, -one], vec![]], vec![vec![], vec![one + one]]];
        let encoded = encode_instances(&instances);
        assert_eq!(encoded.len(), 4 + 4 * 4 + 3 * 32);
        assert_eq!(decode_instances(&encoded, 2), Ok(instances));
        for length in 0..encoded.len() {
            let short = decode_instances(&encoded[..length], 2);
            assert!(matches!(short, Err(StatementError::Short(at)) if at <= length));
        }
        let long = [&encoded[..], &[0]].concat();
        assert_eq!(decode_instances(&long, 2), Err(StatementError::Long(1)));
        let mut wrong = encoded.clone();
        wrong[8..40].fill(0xff);
        let wrong = decode_instances(&wrong, 2);
        assert_eq!(wrong, Err(StatementError::NotCanonical(8)));
        assert_eq!(
            decode_instances(&[0; 4], 2),
            Err(StatementError::Circuits(0))
        );
        assert_eq!(
            decode_instances(&[0, 1, 0, 0], 0),
            Err(StatementError::Circuits(1 << 16))
        );
        // A count of more than there can be allocates nothing.
        let greedy = [0, 0, 0, 1, 0xff, 0xff, 0xff, 0xff];
        assert_eq!(decode_instances(&greedy, 1), Err(StatementError::Short(8)));
    }
}
