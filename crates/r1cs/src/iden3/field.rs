//! Field elements as bytes.

use ark_ff::{BigInt, BigInteger, Fp, MontBackend, MontConfig, PrimeField};

/// Bytes of a scalar of any curve that proofs are made on (BN254, BLS12-381, BLS12-377), in memory and encoded: its [`width`].
pub const SCALAR_BYTES: usize = 32;

/// Bytes a field element takes in these files: whole 64-bit words. [`SCALAR_BYTES`] for the scalar fields, 48 for
/// the base fields of BLS12-381 and BLS12-377.
pub fn width<F: PrimeField>() -> usize {
    F::BigInt::NUM_LIMBS * 8
}

/// A field element from its little-endian number; `None` unless that is below the prime and of
/// [`width`] bytes.
pub fn canonical_from_le<F: PrimeField>(bytes: &[u8]) -> Option<F> {
    let mut number = F::BigInt::default();
    fill(number.as_mut(), bytes)?;
    F::from_bigint(number)
}

/// A field whose Montgomery form in arkworks is that of these files, with R = 2^(8·[`width`]), so that
/// reading and writing it costs no multiplication.
pub trait MontgomeryField: PrimeField {
    /// An element from its little-endian Montgomery form; `None` unless that is below the prime and
    /// of [`width`] bytes.
    fn from_montgomery_le(bytes: &[u8]) -> Option<Self>;

    /// Appends the little-endian Montgomery form, [`width`] bytes.
    fn write_montgomery_le(&self, out: &mut Vec<u8>);
}

// === impl MontgomeryField ===

impl<T: MontConfig<N>, const N: usize> MontgomeryField for Fp<MontBackend<T, N>, N> {
    fn from_montgomery_le(bytes: &[u8]) -> Option<Self> {
        let mut number = BigInt::<N>::default();
        fill(&mut number.0, bytes)?;
        (number < Self::MODULUS).then(|| Self::new_unchecked(number))
    }

    fn write_montgomery_le(&self, out: &mut Vec<u8>) {
        for word in self.0.0 {
            out.extend_from_slice(&word.to_le_bytes());
        }
    }
}

fn fill(words: &mut [u64], bytes: &[u8]) -> Option<()> {
    if bytes.len() != words.len() * 8 {
        return None;
    }
    let (chunks, _) = bytes.as_chunks::<8>();
    for (word, chunk) in words.iter_mut().zip(chunks) {
        *word = u64::from_le_bytes(*chunk);
    }
    Some(())
}
