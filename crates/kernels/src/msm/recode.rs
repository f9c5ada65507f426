//! Scalars as signed digits.
//!
//! With windows of widths w₀, w₁, … at offsets o₀, o₁, … let `D = Σ 2^(oᵢ + wᵢ − 1)`. The digit of window i of
//! a number k is the value of that window of k + D, minus 2^(wᵢ − 1). It is in `−2^(wᵢ − 1)..2^(wᵢ − 1)`,
//! without a carry from window to window, so each window can be read alone. Numbers are recoded by magnitude
//! and sign; a full-size scalar above r/2 counts as the negative of a smaller one.

use std::ops::Range;

use ark_ec::short_weierstrass::SWCurveConfig;
use ark_ff::{BigInteger, PrimeField};
use rayon::prelude::*;

use super::endomorphism::Endomorphism;
use super::words::add;

/// Scalars one task recodes.
const CHUNK: usize = 1 << 12;

/// Most numbers of which [`Recoded::reaching`] chooses at once: their places fit a byte.
pub(crate) const BLOCK: usize = 1 << 8;

/// The division of numbers into windows: the same widths for each copy of the bases.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Windows {
    /// Bits of each window of a copy, the widest first.
    pub(crate) widths: Vec<u32>,
    /// The number of copies; copy j's windows begin at bit `j · copy_bits`.
    pub(crate) copies: usize,
}

/// A scalar's magnitude, or one of its halves'.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Part {
    pub(crate) words: [u64; 4],
    pub(crate) negative: bool,
}

/// Numbers with `D` added, ready to be read digit by digit.
pub(crate) struct Recoded {
    /// `stride` words for each number: the numbers' first parts, then their second parts.
    words: Vec<u64>,
    stride: usize,
    negative: Vec<bool>,
    /// The windows of each number up to its last digit that is not zero.
    reach: Vec<u16>,
    windows: Vec<Window>,
}

/// The numbers that one part of a chunk of scalars becomes.
struct Numbers<'a> {
    words: &'a mut [u64],
    negative: &'a mut [bool],
    reach: &'a mut [u16],
}

#[derive(Clone, Copy, Debug)]
struct Window {
    word: usize,
    shift: u32,
    width: u32,
}

/// The way in which a scalar becomes one or two parts.
#[derive(Debug)]
pub(crate) enum Split<'a, P: SWCurveConfig> {
    /// One part: the scalar or its negative.
    Whole,
    /// Two parts, by the endomorphism.
    Halves(&'a Endomorphism<P>),
}

// === impl Windows ===

impl Windows {
    /// `count` windows, as even as can be, for magnitudes up to `largest`.
    pub(crate) fn even(count: usize, largest: &[u64; 4]) -> Self {
        let mut bits = (bit_length(largest) + 1).max(count);
        loop {
            let windows = Self::covering(count, 1, bits);
            if windows.holds(largest) {
                return windows;
            }
            bits += 1;
        }
    }

    /// `count` windows over `copy_bits` bits, as even as can be, for each of `copies` copies.
    pub(crate) fn covering(count: usize, copies: usize, copy_bits: usize) -> Self {
        let (narrow, wide) = (copy_bits / count, copy_bits % count);
        let widths = (0..count)
            .map(|i| (narrow + usize::from(i < wide)) as u32)
            .collect();
        Self { widths, copies }
    }

    /// Bits of each copy that hold magnitudes up to `largest` whatever the windows, none being of one bit: two more
    /// than the magnitude has leave room for any `D`, whose highest bits are then not neighbours.
    pub(crate) fn copy_bits_for(copies: usize, largest: &[u64; 4]) -> usize {
        (bit_length(largest) + 2).div_ceil(copies)
    }

    /// Bits that a copy's windows cover.
    pub(crate) fn copy_bits(&self) -> usize {
        self.widths.iter().sum::<u32>() as usize
    }

    /// Bits of the widest window.
    pub(crate) fn widest(&self) -> u32 {
        self.widths[0]
    }

    fn windows(&self) -> Vec<Window> {
        let mut offset = 0usize;
        (0..self.copies)
            .flat_map(|_| &self.widths)
            .map(|width| {
                let window = Window {
                    word: offset / 64,
                    shift: (offset % 64) as u32,
                    width: *width,
                };
                offset += *width as usize;
                window
            })
            .collect()
    }

    /// Words that hold any number with `D` added, and one more to read a window across.
    fn stride(&self) -> usize {
        (self.copies * self.copy_bits()).div_ceil(64) + 1
    }

    /// For each number of bits, as many as all words have at most, the windows that they lie in.
    fn reaches(&self) -> Vec<u16> {
        let windows = self.windows();
        let within = |bits| windows.partition_point(|window| window.first_bit() < bits);
        let bits = 0..=64 * self.stride();
        bits.map(|bits| within(bits) as u16).collect()
    }

    /// `D`.
    fn offset(&self) -> Vec<u64> {
        let mut offset = vec![0; self.stride()];
        for window in self.windows() {
            let bit = window.first_bit() + window.width as usize - 1;
            offset[bit / 64] |= 1 << (bit % 64);
        }
        offset
    }

    /// Whether `largest + D` stays within the windows.
    pub(crate) fn holds(&self, largest: &[u64; 4]) -> bool {
        let bits = self.copies * self.copy_bits();
        if bit_length(largest) > bits {
            return false;
        }
        let mut sum = self.offset();
        sum.resize(sum.len().max(5), 0);
        add(&mut sum, largest);
        bit_length(&sum) <= bits
    }
}

// === impl Split ===

impl<P: SWCurveConfig> Split<'_, P> {
    /// Parts of a scalar.
    pub(crate) fn parts(&self) -> usize {
        match self {
            Self::Whole => 1,
            Self::Halves(_) => 2,
        }
    }

    /// The largest magnitude of a part.
    pub(crate) fn largest(&self) -> [u64; 4] {
        match self {
            Self::Whole => {
                let mut half = P::ScalarField::MODULUS;
                half.div2();
                four_words(half.as_ref())
            }
            Self::Halves(map) => [map.max_half as u64, (map.max_half >> 64) as u64, 0, 0],
        }
    }

    pub(crate) fn split(&self, scalar: &<P::ScalarField as PrimeField>::BigInt) -> [Part; 2] {
        match self {
            Self::Whole => {
                let mut negated = P::ScalarField::MODULUS;
                negated.sub_with_borrow(scalar);
                let negative = negated < *scalar;
                let magnitude = if negative { &negated } else { scalar };
                let words = four_words(magnitude.as_ref());
                [Part { words, negative }, Part::default()]
            }
            Self::Halves(map) => map.split(scalar.as_ref()).map(|half| Part {
                words: [half.magnitude as u64, (half.magnitude >> 64) as u64, 0, 0],
                negative: half.negative,
            }),
        }
    }
}

// === impl Recoded ===

impl Recoded {
    /// Recodes `count` scalars on the current pool's threads.
    pub(crate) fn new<P: SWCurveConfig>(
        windows: &Windows,
        split: &Split<'_, P>,
        count: usize,
        scalar: &(dyn Fn(usize) -> <P::ScalarField as PrimeField>::BigInt + Sync),
    ) -> Self {
        debug_assert!(
            windows.holds(&split.largest()),
            "{windows:?}: digits would overflow"
        );
        let (stride, offset, reaches) = (windows.stride(), windows.offset(), windows.reaches());
        let parts = split.parts();
        let mut words = vec![0; parts * count * stride];
        let mut negative = vec![false; parts * count];
        let mut reach = vec![0; parts * count];
        // The two parts of a chunk of scalars lie apart.
        let (first_words, second_words) = words.split_at_mut(count * stride);
        let (first_signs, second_signs) = negative.split_at_mut(count);
        let (first_reach, second_reach) = reach.split_at_mut(count);
        let firsts = Numbers::chunks(stride, first_words, first_signs, first_reach);
        let seconds = Numbers::chunks(stride, second_words, second_signs, second_reach);
        let mut seconds: Vec<_> = seconds.map(Some).collect();
        seconds.resize_with(count.div_ceil(CHUNK), || None);
        let chunks: Vec<_> = firsts.zip(seconds).enumerate().collect();
        chunks
            .into_par_iter()
            .for_each(|(chunk, (mut firsts, mut seconds))| {
                for i in 0..firsts.negative.len() {
                    let [first, second] = split.split(&scalar(chunk * CHUNK + i));
                    firsts.write(i, &first, &offset, &reaches);
                    if let Some(seconds) = &mut seconds {
                        seconds.write(i, &second, &offset, &reaches);
                    }
                }
            });
        Self {
            words,
            stride,
            negative,
            reach,
            windows: windows.windows(),
        }
    }

    /// Those of some numbers, at most 256, that may have a digit in a window: as `found`, each less the first one.
    #[inline(always)]
    pub(crate) fn reaching<'f>(
        &self,
        numbers: Range<usize>,
        window: usize,
        found: &'f mut [u8; BLOCK],
    ) -> &'f [u8] {
        let mut count = 0;
        for (i, reach) in self.reach[numbers].iter().enumerate() {
            // Without a branch, which mixed numbers would mispredict.
            found[count] = i as u8;
            count += usize::from(usize::from(*reach) > window);
        }
        &found[..count]
    }

    /// The digit of a number in a window.
    #[inline(always)]
    pub(crate) fn digit(&self, number: usize, window: usize) -> i32 {
        let Window { word, shift, width } = self.windows[window];
        let at = number * self.stride + word;
        let pair = u128::from(self.words[at]) | u128::from(self.words[at + 1]) << 64;
        let digit = (pair >> shift) as u64 & ((1 << width) - 1);
        let digit = digit as i32 - (1 << (width - 1));
        if self.negative[number] { -digit } else { digit }
    }
}

// === impl Numbers ===

impl<'a> Numbers<'a> {
    /// Numbers of `stride` words, by chunks of scalars.
    fn chunks(
        stride: usize,
        words: &'a mut [u64],
        negative: &'a mut [bool],
        reach: &'a mut [u16],
    ) -> impl Iterator<Item = Self> {
        words
            .chunks_mut(CHUNK * stride)
            .zip(negative.chunks_mut(CHUNK))
            .zip(reach.chunks_mut(CHUNK))
            .map(|((words, negative), reach)| Self {
                words,
                negative,
                reach,
            })
    }

    /// Stores a number, with `offset` added.
    fn write(&mut self, number: usize, part: &Part, offset: &[u64], reaches: &[u16]) {
        let stride = offset.len();
        let words = &mut self.words[number * stride..][..stride];
        words.copy_from_slice(offset);
        add(words, &part.words);
        // Above the highest bit that differs from the offset's, digits are zero.
        let differing = words.iter().zip(offset).map(|(word, offset)| word ^ offset);
        self.reach[number] = reaches[bit_length_of(differing)];
        self.negative[number] = part.negative;
    }
}

// === impl Window ===

impl Window {
    fn first_bit(self) -> usize {
        self.word * 64 + self.shift as usize
    }
}

/// Bits up to the highest that is set.
pub(crate) fn bit_length(words: &[u64]) -> usize {
    bit_length_of(words.iter().copied())
}

/// [`bit_length`] of words that are not stored.
fn bit_length_of(words: impl DoubleEndedIterator<Item = u64> + ExactSizeIterator) -> usize {
    words
        .enumerate()
        .rev()
        .find(|(_, word)| *word != 0)
        .map_or(0, |(i, word)| 64 * i + 64 - word.leading_zeros() as usize)
}

fn four_words(words: &[u64]) -> [u64; 4] {
    let mut four = [0; 4];
    four[..words.len()].copy_from_slice(words);
    four
}

#[cfg(test)]
mod tests {
    use super::super::plan::Bases;
    use super::*;
    use ark_bls12_381::{Fr, g1};
    use ark_ff::{AdditiveGroup, Field, UniformRand};

    fn check(split: &Split<'_, g1::Config>, windows: &Windows) {
        let (count, copies) = (windows.widths.len(), windows.copies);
        let rng = &mut ark_std::test_rng();
        let mut scalars = vec![
            Fr::ZERO,
            Fr::ONE,
            -Fr::ONE,
            Fr::ONE / Fr::from(2u64),
            -Fr::ONE / Fr::from(2u64),
        ];
        scalars.extend((0..50).map(|_| Fr::rand(rng)));
        let recoded = Recoded::new(windows, split, scalars.len(), &|i| scalars[i].into_bigint());
        for (i, scalar) in scalars.iter().enumerate() {
            let parts = split.split(&scalar.into_bigint());
            for (part, expected) in parts.iter().enumerate().take(split.parts()) {
                let number = part * scalars.len() + i;
                let mut value = Fr::ZERO;
                let mut weight = Fr::ONE;
                for window in 0..count * copies {
                    let width = windows.widths[window % count];
                    let digit = recoded.digit(number, window);
                    assert!(digit.unsigned_abs() <= 1 << (width - 1));
                    value += weight * Fr::from(digit);
                    weight *= Fr::from(1u64 << width);
                }
                let magnitude = Fr::from_bigint(ark_ff::BigInt(expected.words)).expect("below r");
                let zeros = (0..count * copies)
                    .rev()
                    .take_while(|window| recoded.digit(number, *window) == 0);
                let reach = count * copies - zeros.count();
                let mut places = [0; BLOCK];
                for window in 0..count * copies {
                    let found = recoded.reaching(number..number + 1, window, &mut places);
                    assert_eq!(found.len(), usize::from(window < reach));
                }
                assert_eq!(
                    value,
                    if expected.negative {
                        -magnitude
                    } else {
                        magnitude
                    }
                );
            }
        }
    }

    #[test]
    fn digits_make_up_the_number() {
        let map = Endomorphism::new().expect("the curve has one");
        for split in [Split::Whole, Split::Halves(&map)] {
            let largest = split.largest();
            let prepared = [2, 3, 4, 7].map(|copies| Bases::Prepared {
                copies,
                copy_bits: Windows::copy_bits_for(copies, &largest),
            });
            for bases in [Bases::Unprepared].into_iter().chain(prepared) {
                for windows in bases.windows(&largest) {
                    check(&split, &windows);
                }
            }
        }
    }

    #[test]
    fn numbers_are_chosen_by_their_last_digit() {
        let windows = Windows::even(16, &Split::<g1::Config>::Whole.largest());
        let small = |i: usize| i.is_multiple_of(3);
        let scalar = |i: usize| match small(i) {
            true => Fr::from((i % 2) as u64).into_bigint(),
            false => Fr::from(1u64 << 40).into_bigint(),
        };
        let recoded = Recoded::new(&windows, &Split::<g1::Config>::Whole, 1000, &scalar);
        let mut places = [0; BLOCK];
        for (window, numbers) in [(0, 300..301), (1, 0..256), (2, 744..1000), (9, 10..20)] {
            let expected = numbers.clone().filter(|number| match window {
                0 => number % 6 != 0,
                1 | 2 => !small(*number),
                _ => false,
            });
            let expected: Vec<_> = expected.map(|number| number - numbers.start).collect();
            let found = recoded.reaching(numbers, window, &mut places);
            let found: Vec<_> = found.iter().map(|place| usize::from(*place)).collect();
            assert_eq!(found, expected, "window {window}");
        }
    }

    #[test]
    fn no_window_is_of_one_bit() {
        let map = Endomorphism::<g1::Config>::new().expect("the curve has one");
        for split in [Split::Whole, Split::Halves(&map)] {
            for count in 7..60 {
                let windows = Windows::even(count, &split.largest());
                assert!(windows.widths.iter().all(|width| *width > 1));
                assert!(windows.widths[0] - windows.widths[count - 1] <= 1);
            }
        }
    }
}
