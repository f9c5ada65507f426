//! Many multiples of one point.

use ark_ff::PrimeField;
use rayon::prelude::*;

use crate::MsmGroup;

/// Scalars one task works on together, to share inversions.
const CHUNK: usize = 1 << 10;

/// Windowed multiplication: for each window of the scalars' bits a table of all multiples of the
/// base at that position; each scalar is then one batched affine addition a window.
pub(crate) fn fixed_base<G: MsmGroup>(base: G, scalars: &[G::ScalarField]) -> Vec<G::Affine> {
    let tables = tables(base, window_bits(scalars.len()));
    let bits = window_bits(scalars.len());
    let chunks: Vec<Vec<G::Affine>> = scalars
        .par_chunks(CHUNK)
        .map(|scalars| {
            let scalars: Vec<_> = scalars.iter().map(|scalar| scalar.into_bigint()).collect();
            let mut sums = vec![G::Affine::default(); scalars.len()];
            let mut addends = sums.clone();
            for (window, table) in tables.iter().enumerate() {
                for (addend, scalar) in addends.iter_mut().zip(&scalars) {
                    *addend = table[digit(scalar.as_ref(), window * bits, bits)];
                }
                G::batch_add_assign(&mut sums, &addends);
            }
            sums
        })
        .collect();
    chunks.concat()
}

/// The window that balances the table's cost against the additions'.
fn window_bits(scalars: usize) -> usize {
    (scalars.max(1).ilog2() as usize)
        .saturating_sub(3)
        .clamp(2, 14)
}

/// `tables[w][d] = d · 2^(w·bits) · base`.
fn tables<G: MsmGroup>(base: G, bits: usize) -> Vec<Vec<G::Affine>> {
    let windows = (G::ScalarField::MODULUS_BIT_SIZE as usize).div_ceil(bits);
    let mut starts = Vec::with_capacity(windows);
    let mut start = base;
    for _ in 0..windows {
        starts.push(start);
        for _ in 0..bits {
            start.double_in_place();
        }
    }
    starts
        .into_par_iter()
        .map(|start| {
            let mut multiples = Vec::with_capacity(1 << bits);
            let mut multiple = G::zero();
            for _ in 0..1usize << bits {
                multiples.push(multiple);
                multiple += start;
            }
            G::normalize_batch(&multiples)
        })
        .collect()
}

/// `bits` bits of a little-endian number from `offset` on; past its end, zeros.
pub(super) fn digit(limbs: &[u64], offset: usize, bits: usize) -> usize {
    let (limb, shift) = (offset / 64, offset % 64);
    let low = limbs.get(limb).map_or(0, |limb| limb >> shift);
    let high = match shift {
        0 => 0,
        _ => limbs.get(limb + 1).map_or(0, |limb| limb << (64 - shift)),
    };
    ((low | high) & ((1 << bits) - 1)) as usize
}
