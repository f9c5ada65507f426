//! The parts that keys for both kinds of proofs share, and the errors of making one.

use std::ops::Range;

use proofmill_groth16::InsecureKey;

use crate::commitment::Commitment;
use crate::mpp::places_of_classes;
use crate::srs::{CommitmentKey, SrsError};
use crate::torus::AggregationCurve;

/// Proofs that no key can be made for.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum IndexError {
    /// The reference string is too small, or there are no proofs.
    #[error(transparent)]
    Srs(#[from] SrsError),
    /// A proof of a class, or under a key, that is not in the list.
    #[error("proof {proof} is of class {class}: there are {classes}, numbered from 0")]
    Class {
        /// The proof.
        proof: usize,
        /// The part's class.
        class: u32,
        /// The number of classes.
        classes: usize,
    },
    /// Public-input points for another number of proofs.
    #[error("input {input} has points for {found} proofs: there are {expected}")]
    InputPoints {
        /// The number of the input, that with the coefficient one being 0.
        input: usize,
        /// The number of proofs.
        expected: usize,
        /// The points.
        found: usize,
    },
    /// There is no vector of public-input points, or more than [`MAX_INPUTS`](crate::MAX_INPUTS).
    #[error("{0} vectors of public-input points: a key has 1 to {max}", max = crate::MAX_INPUTS)]
    Inputs(usize),
    /// There are more verifying keys than [`MAX_KEYS`](crate::MAX_KEYS).
    #[error("{0} verifying keys: an aggregate has {max} at most", max = crate::MAX_KEYS)]
    Keys(usize),
    /// Proofs under it prove nothing.
    #[error("verifying key {key}: {source}")]
    Insecure {
        /// The number of the key.
        key: usize,
        /// The weakness.
        source: InsecureKey,
    },
}

/// Proofs that cannot be aggregated.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum AggregateProveError {
    /// The reference string is too small.
    #[error(transparent)]
    Srs(#[from] SrsError),
    /// The reference string has other secrets than the one of the key.
    #[error("the key was made with another reference string")]
    OtherSrs,
    /// The number of items is not the number of proofs.
    #[error("{found} {what}: the key is for {expected}")]
    Count {
        /// The noun: the thing that is counted.
        what: &'static str,
        /// The key's.
        expected: usize,
        /// The number there is.
        found: usize,
    },
}

/// The refusal of an aggregate.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum AggregateVerifyError {
    /// The number of public inputs is not the key's.
    #[error("{found} {what}: the key is for {expected}")]
    Count {
        /// The kind of the items, for the message.
        what: &'static str,
        /// The key's.
        expected: usize,
        /// The number there is.
        found: usize,
    },
    /// The aggregate does not prove these public inputs under this key.
    #[error("the aggregate proof does not verify against these public inputs")]
    Invalid,
}

/// Checks that every proof is of one of the classes, and that the string is large enough.
pub(crate) fn check_classes(class_of: &[u32], classes: usize) -> Result<(), IndexError> {
    let wrong = class_of
        .iter()
        .position(|class| usize::try_from(*class).map_or(true, |class| class >= classes));
    match wrong {
        None => Ok(()),
        Some(proof) => Err(IndexError::Class {
            proof,
            class: class_of[proof],
            classes,
        }),
    }
}

/// CM₂ of the vector that has `value(class)` at each place of the class.
pub(crate) fn commit_classes<E: AggregationCurve>(
    key: CommitmentKey<'_, E>,
    class_of: &[u32],
    values: &[E::G2Affine],
) -> Commitment<E> {
    let places: Vec<Vec<Range<usize>>> = places_of_classes(class_of, values.len());
    let values: Vec<_> = values.iter().copied().zip(places).collect();
    key.commit_values(&values)
}

/// Checks that the number of items is the one that the key is for.
pub(crate) fn check_count(
    what: &'static str,
    expected: usize,
    found: usize,
) -> Result<(), AggregateProveError> {
    if found == expected {
        Ok(())
    } else {
        Err(AggregateProveError::Count {
            what,
            expected,
            found,
        })
    }
}
