//! Digests and bits of paths as wires.

use ark_ff::{BigInteger, PrimeField};
use ark_relations::gr1cs::SynthesisError;
use proofmill_circuits::gadgets::{Bit, Builder, Lc, Word};
use proofmill_circuits::sha256::{compress, initial_state};
use proofmill_partition::Wire;

use crate::Digest;

/// Words of half a digest, which one shared wire has.
pub(super) const HALF: usize = 4;

/// A digest as constrained bits: eight words, as SHA-256 counts them.
pub(super) type DigestWords = [Word; 8];

/// A digest that the prover chooses: 256 bits.
pub(super) fn digest_witness<F: PrimeField>(
    b: &mut Builder<F>,
    digest: &Digest,
) -> Result<DigestWords, SynthesisError> {
    let mut words = [Word::constant(0); 8];
    for (word, value) in words.iter_mut().zip(digest.words()) {
        *word = Word::witness(b, value)?;
    }
    Ok(words)
}

/// The node above `digest` and its sibling: the digest is the right child where `bit` is 1.
pub(super) fn node<F: PrimeField>(
    b: &mut Builder<F>,
    bit: Bit,
    digest: &DigestWords,
    sibling: &DigestWords,
) -> Result<DigestWords, SynthesisError> {
    let left = map_words(b, [sibling, digest], |b, [s, d]| bit.choose(b, s, d))?;
    let right = map_words(b, [sibling, digest], |b, [s, d]| bit.choose(b, d, s))?;
    let block = std::array::from_fn(|i| if i < 8 { left[i] } else { right[i - 8] });
    compress(b, &initial_state(), &block)
}

/// Applies a function of two bits to each position of two digests.
pub(super) fn map_words<F: PrimeField>(
    b: &mut Builder<F>,
    [x, y]: [&DigestWords; 2],
    f: impl Fn(&mut Builder<F>, [Bit; 2]) -> Result<Bit, SynthesisError>,
) -> Result<DigestWords, SynthesisError> {
    let mut words = [Word::constant(0); 8];
    for (word, (x, y)) in words.iter_mut().zip(x.iter().zip(y)) {
        for (bit, (x, y)) in word.0.iter_mut().zip(x.0.iter().zip(&y.0)) {
            *bit = f(b, [*x, *y])?;
        }
    }
    Ok(words)
}

/// Half a digest as a number, the first word the most significant, and its bits' sum.
pub(super) fn pack<F: PrimeField>(half: &[Word]) -> (F, Lc<F>) {
    let bits: Vec<Bit> = half.iter().rev().flat_map(|word| word.0).collect();
    pack_bits(&bits)
}

/// A number of at most 128 bits, and its bits' sum; the first bit is the least significant.
pub(super) fn pack_bits<F: PrimeField>(bits: &[Bit]) -> (F, Lc<F>) {
    let mut sum = Lc::default();
    sum.add_number(F::one(), bits);
    let bits = bits.iter().rev();
    let number = bits.fold(0u128, |number, bit| number << 1 | u128::from(bit.value()));
    (F::from(number), sum)
}

/// The `count` bits of a shared wire, each constrained to be one; their number is the wire's value. The first is the
/// least significant.
pub(super) fn split_bits<F: PrimeField>(
    b: &mut Builder<F>,
    wire: Wire<F>,
    count: usize,
) -> Result<Vec<Bit>, SynthesisError> {
    let value = wire.value.into_bigint();
    let mut bits = Vec::with_capacity(count);
    for index in 0..count {
        bits.push(b.bit(value.get_bit(index))?);
    }
    let (_, sum) = pack_bits(&bits);
    b.enforce_zero(|| sum.variable(-F::one(), wire.variable))?;
    Ok(bits)
}

/// The digest whose halves are two shared wires.
pub(super) fn split_digest<F: PrimeField>(
    b: &mut Builder<F>,
    halves: [Wire<F>; 2],
) -> Result<DigestWords, SynthesisError> {
    let mut words = [Word::constant(0); 8];
    for (words, wire) in words.chunks_exact_mut(HALF).zip(halves) {
        let bits = split_bits(b, wire, 32 * HALF)?;
        let numbers = bits.as_chunks::<32>().0.iter().rev();
        for (word, bits) in words.iter_mut().zip(numbers) {
            *word = Word(*bits);
        }
    }
    Ok(words)
}
