//! The reference string in a file.
//!
//! Little-endian: magic `PMILLAGS`, version (4 bytes), curve (16 bytes, zero-padded), binary logarithm of the
//! capacity M (4 bytes), number of contributions (4 bytes). Each contribution: a·G, b·G, and for a and b
//! the commitment and the response (32 bytes) of a proof of knowledge, points compressed. Then uncompressed
//! 2·M powers of a in the first group, M in the second, and the same of b. Last the SHA-256 of all that.

use std::path::Path;

use ark_ec::AffineRepr;
use ark_serialize::{CanonicalDeserialize, CanonicalSerialize, Compress, Validate};
use proofmill_groth16::PointGroup;
use proofmill_kernels::{MsmGroup, in_subgroup_each};
use proofmill_r1cs::iden3::SCALAR_BYTES;
use rayon::prelude::*;

use crate::aggregate::{Points, number, write_point};
use crate::contribution::{Contribution, SecretKnowledge};
use crate::files::{
    AggregationFileError, BEGINNING_BYTES, CHECKSUM_BYTES, FileKind, write, wrong_point,
};
use crate::srs::{MAX_CAPACITY, Powers, Srs};
use crate::torus::AggregationCurve;

const KIND: FileKind = FileKind {
    magic: b"PMILLAGS",
    what: "reference string for aggregation",
};
const HEAD_BYTES: usize = 8;

/// The most contributions that a file may have.
pub const MAX_CONTRIBUTIONS: usize = 1 << 12;

/// Points that one task decodes.
const CHUNK: usize = 1 << 8;

// === impl Srs ===

impl<E: AggregationCurve> Srs<E> {
    /// The content of the string's file.
    pub fn to_bytes(&self) -> Vec<u8> {
        let mut bytes = KIND.begin::<E>();
        let contributions = self.contributions.len();
        bytes.reserve(file_bytes::<E>(self.capacity(), contributions) as usize);
        bytes.extend(self.capacity().trailing_zeros().to_le_bytes());
        bytes.extend((contributions as u32).to_le_bytes());
        for contribution in &self.contributions {
            let points = contribution.first_powers.iter();
            points.for_each(|point| write_point(point, &mut bytes));
            for knowledge in &contribution.knowledge {
                write_point(&knowledge.commitment, &mut bytes);
                knowledge
                    .response
                    .serialize_compressed(&mut bytes)
                    .expect("writing to a vector does not fail");
            }
        }
        for powers in &self.powers {
            write_points(&powers.g1, &mut bytes);
            write_points(&powers.g2, &mut bytes);
        }
        KIND.end(bytes)
    }

    /// Decodes and [checks](Self::check) an untrusted string.
    ///
    /// # Errors
    ///
    /// [`AggregationFileError`] unless the bytes are those of a consistent string.
    pub fn from_bytes(bytes: &[u8]) -> Result<Self, AggregationFileError> {
        let head = KIND.after_beginning::<E>(bytes, HEAD_BYTES)?;
        let (log_capacity, contributions) = (number(&head[..4]), number(&head[4..8]) as usize);
        let possible = (1..=MAX_CAPACITY.trailing_zeros()).contains(&log_capacity)
            && (1..=MAX_CONTRIBUTIONS).contains(&contributions);
        if !possible {
            return Err(AggregationFileError::Head(KIND.what));
        }
        let capacity = 1 << log_capacity;
        let content = KIND.checked(bytes, file_bytes::<E>(capacity, contributions))?;
        let (chain, mut powers) = content[BEGINNING_BYTES + HEAD_BYTES..]
            .split_at(contributions * contribution_bytes::<E>());
        let contributions = chain
            .chunks_exact(contribution_bytes::<E>())
            .map(read_contribution)
            .collect::<Result<Vec<_>, _>>()?;
        let mut read = || -> Result<Powers<E>, AggregationFileError> {
            let (g1, rest) = powers.split_at(2 * capacity * uncompressed_bytes::<E::G1Affine>());
            let (g2, rest) = rest.split_at(capacity * uncompressed_bytes::<E::G2Affine>());
            powers = rest;
            Ok(Powers {
                g1: read_points::<E::G1>(g1).ok_or(KIND.point("powers in the first group"))?,
                g2: read_points::<E::G2>(g2).ok_or(KIND.point("powers in the second group"))?,
            })
        };
        let srs = Self {
            powers: [read()?, read()?],
            contributions,
        };
        srs.check()?;
        Ok(srs)
    }

    /// Writes the string to a file, whole or not at all.
    ///
    /// # Errors
    ///
    /// [`AggregationFileError::Write`] if the file system refuses.
    pub fn save(&self, path: &Path) -> Result<(), AggregationFileError> {
        write(path, &self.to_bytes())
    }

    /// Reads and checks an untrusted string.
    ///
    /// # Errors
    ///
    /// [`AggregationFileError`] if there is no such file or it does not hold a consistent string.
    pub fn load(path: &Path) -> Result<Self, AggregationFileError> {
        let bytes_max = file_bytes::<E>(MAX_CAPACITY, MAX_CONTRIBUTIONS);
        Self::from_bytes(&KIND.read(path, bytes_max)?)
    }
}

fn file_bytes<E: AggregationCurve>(capacity: usize, contributions: usize) -> u64 {
    let powers = 2 * capacity * uncompressed_bytes::<E::G1Affine>()
        + capacity * uncompressed_bytes::<E::G2Affine>();
    let rest = BEGINNING_BYTES + HEAD_BYTES + CHECKSUM_BYTES;
    (rest + contributions * contribution_bytes::<E>() + 2 * powers) as u64
}

fn contribution_bytes<E: AggregationCurve>() -> usize {
    4 * E::G1Affine::zero().compressed_size() + 2 * SCALAR_BYTES
}

fn uncompressed_bytes<A: AffineRepr>() -> usize {
    A::zero().uncompressed_size()
}

fn read_contribution<E: AggregationCurve>(
    bytes: &[u8],
) -> Result<Contribution<E>, AggregationFileError> {
    let wrong = wrong_point(KIND, "contributions");
    let mut points = Points {
        rest: bytes,
        index: 0,
    };
    let first_powers = [
        points.next().map_err(&wrong)?,
        points.next().map_err(&wrong)?,
    ];
    let mut knowledge = || -> Result<SecretKnowledge<E>, AggregationFileError> {
        let commitment = points.next().map_err(&wrong)?;
        let (scalar, rest) = points.rest.split_at(SCALAR_BYTES);
        points.rest = rest;
        let response = E::ScalarField::deserialize_compressed(scalar)
            .map_err(|_| KIND.point("contributions"))?;
        Ok(SecretKnowledge {
            commitment,
            response,
        })
    };
    Ok(Contribution {
        first_powers,
        knowledge: [knowledge()?, knowledge()?],
    })
}

fn write_points<A: AffineRepr>(points: &[A], bytes: &mut Vec<u8>) {
    for point in points {
        point
            .serialize_uncompressed(&mut *bytes)
            .expect("writing to a vector does not fail");
    }
}

/// Uncompressed points; `None` if one is malformed, off its curve or outside of the subgroup.
fn read_points<G: MsmGroup<Affine: PointGroup>>(bytes: &[u8]) -> Option<Vec<G::Affine>> {
    let size = uncompressed_bytes::<G::Affine>();
    let chunks: Option<Vec<Vec<G::Affine>>> = bytes
        .par_chunks(CHUNK * size)
        .map(|bytes| {
            let points = bytes.chunks_exact(size).map(|bytes| {
                G::Affine::deserialize_with_mode(bytes, Compress::No, Validate::No)
                    .ok()
                    .filter(PointGroup::on_curve)
            });
            let points = points.collect::<Option<Vec<_>>>()?;
            let inside = in_subgroup_each::<G>(&points);
            inside.iter().all(|inside| *inside).then_some(points)
        })
        .collect();
    Some(chunks?.concat())
}
