//! Field elements as kernels have them: words of 32 bits, in Montgomery form.

use ark_ff::{BigInt, Fp, Fp2Config, Fp2ConfigWrapper, MontBackend, MontConfig, PrimeField};
use ark_ff::{Field, QuadExtField};

/// A field element as words, least significant first.
pub trait Words: Field {
    /// Words of an element.
    const WORDS: usize;

    /// Writes exactly [`WORDS`](Self::WORDS).
    fn write(&self, words: &mut [u32]);

    /// The element of exactly [`WORDS`](Self::WORDS), if they are below the modulus.
    fn read(words: &[u32]) -> Option<Self>;
}

/// Writes elements, one behind the other.
pub(crate) fn write_all<F: Words>(elements: &[F], words: &mut [u32]) {
    for (element, words) in elements.iter().zip(words.chunks_exact_mut(F::WORDS)) {
        element.write(words);
    }
}

/// Reads N elements; `None` if one is not below the modulus.
pub(crate) fn read_all<F: Words, const N: usize>(words: &[u32]) -> Option<[F; N]> {
    let mut elements = [F::ZERO; N];
    for (element, words) in elements.iter_mut().zip(words.chunks_exact(F::WORDS)) {
        *element = F::read(words)?;
    }
    Some(elements)
}

impl<P: MontConfig<N>, const N: usize> Words for Fp<MontBackend<P, N>, N> {
    const WORDS: usize = 2 * N;

    fn write(&self, words: &mut [u32]) {
        for (pair, limb) in words.chunks_exact_mut(2).zip(self.0.0) {
            pair[0] = limb as u32;
            pair[1] = (limb >> 32) as u32;
        }
    }

    fn read(words: &[u32]) -> Option<Self> {
        let mut limbs = BigInt([0; N]);
        for (limb, pair) in limbs.0.iter_mut().zip(words.chunks_exact(2)) {
            *limb = u64::from(pair[0]) | u64::from(pair[1]) << 32;
        }
        (limbs < Self::MODULUS).then(|| Self::new_unchecked(limbs))
    }
}

impl<P: Fp2Config<Fp: Words>> Words for QuadExtField<Fp2ConfigWrapper<P>> {
    const WORDS: usize = 2 * P::Fp::WORDS;

    fn write(&self, words: &mut [u32]) {
        let (left, right) = words.split_at_mut(P::Fp::WORDS);
        self.c0.write(left);
        self.c1.write(right);
    }

    fn read(words: &[u32]) -> Option<Self> {
        let (left, right) = words.split_at(P::Fp::WORDS);
        Some(Self::new(P::Fp::read(left)?, P::Fp::read(right)?))
    }
}
