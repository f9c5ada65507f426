//! SHA-256 (FIPS 180-4) as a circuit, at 17,471 constraints for a full compression.
//!
//! Where they go, for each of 64 rounds: 32 for each of Σ₀, Σ₁, Ch and Maj, 32 for the bits of
//! each new word a and e, 5 for their carries: 197. For each of the 48 words of the message
//! schedule: 64 for σ₀ and σ₁, 34 for the word and its carries. The tricks:
//!
//! * **One constraint for a three-way exclusive or, and for a majority**, as rational functions of
//!   the sum of the three bits ([`Bit::xor3`], [`Bit::majority`]); their outputs need no Boolean
//!   constraint of their own.
//! * **The new a from the new e**: `a = e + Σ₀ + Maj − d` has two bits of carry, where
//!   `h + Σ₁ + Ch + K + W + Σ₀ + Maj` has three.
//! * **Seven additions share one equation** ([`Sum::reduce`]).
//! * **Words whose bits are not needed stay sums**: W₆₂ and W₆₃ and the last round's a and e are only
//!   ever added, so they are never split into bits.
//! * **Constants fold**: padding, the initial state and negations cost nothing, and values that depend
//!   on constants alone are computed when the circuit is built.

use ark_ff::PrimeField;
use ark_relations::gr1cs::SynthesisError;

use crate::gadgets::{Bit, Builder, Sum, Word};

/// The initial hash value, FIPS 180-4 section 5.3.3.
const INITIAL: [u32; 8] = [
    0x6a09e667, 0xbb67ae85, 0x3c6ef372, 0xa54ff53a, 0x510e527f, 0x9b05688c, 0x1f83d9ab, 0x5be0cd19,
];

/// The round constants, FIPS 180-4 section 4.2.2.
const ROUND: [u32; 64] = [
    0x428a2f98, 0x71374491, 0xb5c0fbcf, 0xe9b5dba5, 0x3956c25b, 0x59f111f1, 0x923f82a4, 0xab1c5ed5,
    0xd807aa98, 0x12835b01, 0x243185be, 0x550c7dc3, 0x72be5d74, 0x80deb1fe, 0x9bdc06a7, 0xc19bf174,
    0xe49b69c1, 0xefbe4786, 0x0fc19dc6, 0x240ca1cc, 0x2de92c6f, 0x4a7484aa, 0x5cb0a9dc, 0x76f988da,
    0x983e5152, 0xa831c66d, 0xb00327c8, 0xbf597fc7, 0xc6e00bf3, 0xd5a79147, 0x06ca6351, 0x14292967,
    0x27b70a85, 0x2e1b2138, 0x4d2c6dfc, 0x53380d13, 0x650a7354, 0x766a0abb, 0x81c2c92e, 0x92722c85,
    0xa2bfe8a1, 0xa81a664b, 0xc24b8b70, 0xc76c51a3, 0xd192e819, 0xd6990624, 0xf40e3585, 0x106aa070,
    0x19a4c116, 0x1e376c08, 0x2748774c, 0x34b0bcb5, 0x391c0cb3, 0x4ed8aa4a, 0x5b9cca4f, 0x682e6ff3,
    0x748f82ee, 0x78a5636f, 0x84c87814, 0x8cc70208, 0x90befffa, 0xa4506ceb, 0xbef9a3f7, 0xc67178f2,
];

/// The state before the first block.
pub fn initial_state() -> [Word; 8] {
    INITIAL.map(Word::constant)
}

/// One application of the compression function to 16 big-endian words.
///
/// # Errors
///
/// Those of the constraint system.
pub fn compress<F: PrimeField>(
    b: &mut Builder<F>,
    state: &[Word; 8],
    block: &[Word; 16],
) -> Result<[Word; 8], SynthesisError> {
    let schedule = schedule(b, block)?;
    let [mut a, mut bb, mut c, mut d, mut e, mut f, mut g, mut h] = *state;
    for t in 0..63 {
        let t1 = first_temporary(b, [&e, &f, &g, &h], ROUND[t], &schedule[t])?;
        let new_e = t1.plus(&d).reduce(b)?;
        let s0 = sigma(b, &a, [2, 13, 22])?;
        let majority = Word::map3(b, [&a, &bb, &c], Bit::majority)?;
        let new_a = Sum::default()
            .plus(&new_e)
            .plus(&s0)
            .plus(&majority)
            .minus(&d)
            .reduce(b)?;
        (h, g, f, e, d, c, bb, a) = (g, f, e, new_e, c, bb, a, new_a);
    }

    // The last round's a and e are only added to the incoming state.
    let t1 = first_temporary(b, [&e, &f, &g, &h], ROUND[63], &schedule[63])?;
    let out4 = t1.plus(&d).plus(&state[4]).reduce(b)?;
    let s0 = sigma(b, &a, [2, 13, 22])?;
    let majority = Word::map3(b, [&a, &bb, &c], Bit::majority)?;
    let out0 = Sum::default()
        .plus(&out4)
        .minus(&state[4])
        .plus(&s0)
        .plus(&majority)
        .minus(&d)
        .plus(&state[0])
        .reduce(b)?;
    let mut add = |x: &Word, y: &Word| Sum::default().plus(x).plus(y).reduce(b);
    Ok([
        out0,
        add(&state[1], &a)?,
        add(&state[2], &bb)?,
        add(&state[3], &c)?,
        out4,
        add(&state[5], &e)?,
        add(&state[6], &f)?,
        add(&state[7], &g)?,
    ])
}

/// The SHA-256 of `words`, a message of whole big-endian 32-bit words; the padding is constant.
///
/// # Errors
///
/// Those of the constraint system.
pub fn hash_words<F: PrimeField>(
    b: &mut Builder<F>,
    words: &[Word],
) -> Result<[Word; 8], SynthesisError> {
    let mut padded = words.to_vec();
    padded.push(Word::constant(1 << 31));
    while padded.len() % 16 != 14 {
        padded.push(Word::constant(0));
    }
    let bit_length = words.len() as u64 * 32;
    padded.push(Word::constant((bit_length >> 32) as u32));
    padded.push(Word::constant(bit_length as u32));
    hash_padded(b, &padded)
}

/// The SHA-256 of a message of whole bytes, each of eight bits, least significant first.
///
/// # Errors
///
/// Those of the constraint system.
pub fn hash_bytes<F: PrimeField>(
    b: &mut Builder<F>,
    bytes: &[[Bit; 8]],
) -> Result<[Word; 8], SynthesisError> {
    let constant = |byte: u8| std::array::from_fn(|i| Bit::constant(byte >> i & 1 == 1));
    let mut padded = bytes.to_vec();
    padded.push(constant(0x80));
    while padded.len() % 64 != 56 {
        padded.push(constant(0));
    }
    padded.extend((bytes.len() as u64 * 8).to_be_bytes().map(constant));
    let words: Vec<Word> = padded
        .chunks_exact(4)
        .map(|bytes| Word(std::array::from_fn(|i| bytes[3 - i / 8][i % 8])))
        .collect();
    hash_padded(b, &words)
}

fn hash_padded<F: PrimeField>(
    b: &mut Builder<F>,
    words: &[Word],
) -> Result<[Word; 8], SynthesisError> {
    let mut state = initial_state();
    for block in words.chunks_exact(16) {
        let block: [Word; 16] = std::array::from_fn(|i| block[i]);
        state = compress(b, &state, &block)?;
    }
    Ok(state)
}

/// h + Σ₁(e) + Ch(e, f, g) + K + W, unreduced.
fn first_temporary<F: PrimeField>(
    b: &mut Builder<F>,
    [e, f, g, h]: [&Word; 4],
    round_constant: u32,
    word: &Sum,
) -> Result<Sum, SynthesisError> {
    let s1 = sigma(b, e, [6, 11, 25])?;
    let choice = Word::map3(b, [e, f, g], |b, e, f, g| e.choose(b, f, g))?;
    Ok(Sum::default()
        .plus(h)
        .plus(&s1)
        .plus(&choice)
        .plus_constant(round_constant)
        .plus_sum(word))
}

/// Σ: the exclusive or of three rotations.
fn sigma<F: PrimeField>(
    b: &mut Builder<F>,
    word: &Word,
    [x, y, z]: [usize; 3],
) -> Result<Word, SynthesisError> {
    let rotated = [x, y, z].map(|by| word.rotate_right(by));
    Word::map3(b, [&rotated[0], &rotated[1], &rotated[2]], Bit::xor3)
}

/// The message schedule W₀ … W₆₃.
fn schedule<F: PrimeField>(
    b: &mut Builder<F>,
    block: &[Word; 16],
) -> Result<Vec<Sum>, SynthesisError> {
    let mut words = block.to_vec();
    let mut sums: Vec<Sum> = block.iter().map(|word| Sum::default().plus(word)).collect();
    for t in 16..64 {
        let w15 = &words[t - 15];
        let [r7, r18, s3] = [
            w15.rotate_right(7),
            w15.rotate_right(18),
            w15.shift_right(3),
        ];
        let s0 = Word::map3(b, [&r7, &r18, &s3], Bit::xor3)?;
        let w2 = &words[t - 2];
        let [r17, r19, s10] = [w2.rotate_right(17), w2.rotate_right(19), w2.shift_right(10)];
        let s1 = Word::map3(b, [&r17, &r19, &s10], Bit::xor3)?;
        let sum = Sum::default()
            .plus(&s1)
            .plus(&words[t - 7])
            .plus(&s0)
            .plus(&words[t - 16]);
        if t < 62 {
            let word = sum.reduce(b)?;
            sums.push(Sum::default().plus(&word));
            words.push(word);
        } else {
            // No later word of the schedule is made from W₆₂ or W₆₃.
            sums.push(sum);
        }
    }
    Ok(sums)
}
