//! Multi-scalar multiplication: zeros dropped, ones added up, Pippenger for the rest.

use ark_ff::{BigInteger, PrimeField};
use rayon::prelude::*;

use super::batch_add;
use crate::MsmGroup;

/// Scalars one task sorts.
const CHUNK: usize = 1 << 14;

/// What a chunk of scalars is split into.
struct Split<A, B> {
    ones: Vec<A>,
    bases: Vec<A>,
    scalars: Vec<B>,
}

/// `Σ scalar(i) · bases[i]`.
pub(crate) fn msm<G: MsmGroup>(
    bases: &[G::Affine],
    scalar: impl Fn(usize) -> <G::ScalarField as PrimeField>::BigInt + Sync,
) -> G {
    let one = <G::ScalarField as PrimeField>::BigInt::from(1u64);
    let splits: Vec<Split<G::Affine, _>> = bases
        .par_chunks(CHUNK)
        .enumerate()
        .map(|(chunk, chunk_bases)| {
            let mut split = Split {
                ones: Vec::new(),
                bases: Vec::new(),
                scalars: Vec::new(),
            };
            for (i, base) in chunk_bases.iter().enumerate() {
                let scalar = scalar(chunk * CHUNK + i);
                if scalar.is_zero() {
                    continue;
                }
                if scalar == one {
                    split.ones.push(*base);
                } else {
                    split.bases.push(*base);
                    split.scalars.push(scalar);
                }
            }
            split
        })
        .collect();

    let ones = splits
        .par_iter()
        .map(|split| batch_add::sum::<G>(&split.ones))
        .sum::<G>();
    let mut rest_bases = Vec::new();
    let mut rest_scalars = Vec::new();
    for split in splits {
        rest_bases.extend(split.bases);
        rest_scalars.extend(split.scalars);
    }
    if rest_bases.is_empty() {
        return ones;
    }
    ones + G::msm_bigint(&rest_bases, &rest_scalars)
}
