//! Multiplication of numbers of `N` words, and Montgomery's reduction of their products.

use ark_ff::MontConfig;

/// A number of `2·N` words, the lowest first: a product of two field elements, or a sum of such.
///
/// [`reduced`](Multiplier::reduced) takes it below `p·R`, where `R = 2^(64·N)`. `repr(C)`, because assembly
/// writes it: its words in order, without gaps.
#[derive(Clone, Copy)]
#[repr(C)]
pub(crate) struct Wide<const N: usize> {
    pub(crate) low: [u64; N],
    pub(crate) high: [u64; N],
}

/// A way to multiply, by the instructions that it takes: who has a value of the type has the instructions.
pub(crate) trait Multiplier<const N: usize>: Copy {
    /// `a·b` of any numbers.
    fn product(self, a: &[u64; N], b: &[u64; N]) -> Wide<N>;

    /// `value/R` modulo p, below p, of a value below `p·R`.
    fn reduced<C: MontConfig<N>>(self, value: &Wide<N>) -> [u64; N];
}

/// Rust's 128-bit products, on every machine.
#[derive(Clone, Copy)]
pub(crate) struct AnyProcessor;

// === impl Wide ===

impl<const N: usize> Wide<N> {
    /// `self + other`, which must be below `2^(128·N)`.
    #[inline(always)]
    pub(crate) fn plus(&self, other: &Self) -> Self {
        let mut carry = 0;
        let low = sum(&self.low, &other.low, &mut carry);
        let high = sum(&self.high, &other.high, &mut carry);
        Self { low, high }
    }

    /// `self − other`, which must not be negative.
    #[inline(always)]
    pub(crate) fn minus(&self, other: &Self) -> Self {
        self.borrowing_minus(other).0
    }

    /// `self − other` modulo `p·R`, of numbers below it.
    #[inline(always)]
    pub(crate) fn modular_minus<C: MontConfig<N>>(&self, other: &Self) -> Self {
        let (mut difference, borrow) = self.borrowing_minus(other);
        let mask = u64::from(borrow).wrapping_neg();
        let correction = C::MODULUS.0.map(|word| word & mask);
        difference.high = sum(&difference.high, &correction, &mut 0);
        difference
    }

    /// `factor·self`, which must be below `2^(128·N)`.
    #[inline(always)]
    pub(crate) fn times(&self, factor: u64) -> Self {
        let mut carry = 0;
        let low = times(&self.low, factor, &mut carry);
        let high = times(&self.high, factor, &mut carry);
        Self { low, high }
    }

    #[inline(always)]
    fn borrowing_minus(&self, other: &Self) -> (Self, u8) {
        let mut borrow = 0;
        let low = difference(&self.low, &other.low, &mut borrow);
        let high = difference(&self.high, &other.high, &mut borrow);
        (Self { low, high }, borrow)
    }
}

// === impl AnyProcessor ===

impl<const N: usize> Multiplier<N> for AnyProcessor {
    #[inline(always)]
    fn product(self, a: &[u64; N], b: &[u64; N]) -> Wide<N> {
        let (mut low, mut high) = ([0; N], [0; N]);
        for i in 0..N {
            let mut carry = 0;
            for (j, word) in b.iter().enumerate() {
                let place = place(&mut low, &mut high, i + j);
                *place = multiply_add(*place, a[i], *word, &mut carry);
            }
            high[i] = carry;
        }
        Wide { low, high }
    }

    #[inline(always)]
    fn reduced<C: MontConfig<N>>(self, value: &Wide<N>) -> [u64; N] {
        let Wide { mut low, mut high } = *value;
        let mut beyond = 0;
        for i in 0..N {
            let multiple = low[i].wrapping_mul(C::INV);
            let mut carry = 0;
            for (j, word) in C::MODULUS.0.iter().enumerate() {
                let place = place(&mut low, &mut high, i + j);
                *place = multiply_add(*place, multiple, *word, &mut carry);
            }
            high[i] = add_carry(high[i], carry, &mut beyond);
        }
        below_modulus::<C, N>(&high)
    }
}

/// The word of a number in two halves.
#[inline(always)]
fn place<'a, const N: usize>(
    low: &'a mut [u64; N],
    high: &'a mut [u64; N],
    at: usize,
) -> &'a mut u64 {
    if at < N {
        &mut low[at]
    } else {
        &mut high[at - N]
    }
}

/// `value` modulo p, of a value below `2·p`.
#[inline(always)]
pub(crate) fn below_modulus<C: MontConfig<N>, const N: usize>(value: &[u64; N]) -> [u64; N] {
    let mut borrow = 0;
    let less = difference(value, &C::MODULUS.0, &mut borrow);
    // No branch, which would be mispredicted half the time. Nor a selection of words: the compiler selects between
    // addresses instead, and loads more at once than was stored at once, for which a processor waits.
    let mask = u64::from(borrow).wrapping_neg();
    std::array::from_fn(|i| less[i] ^ ((less[i] ^ value[i]) & mask))
}

/// `a + b` modulo p, of numbers below p; 2·p must be below `2^(64·N)`.
#[inline(always)]
pub(crate) fn modular_sum<C: MontConfig<N>, const N: usize>(
    a: &[u64; N],
    b: &[u64; N],
) -> [u64; N] {
    below_modulus::<C, N>(&sum(a, b, &mut 0))
}

/// `a − b` modulo p, of numbers below p.
#[inline(always)]
pub(crate) fn modular_difference<C: MontConfig<N>, const N: usize>(
    a: &[u64; N],
    b: &[u64; N],
) -> [u64; N] {
    let mut borrow = 0;
    let less = difference(a, b, &mut borrow);
    let mask = u64::from(borrow).wrapping_neg();
    sum(&less, &C::MODULUS.0.map(|word| word & mask), &mut 0)
}

#[inline(always)]
pub(crate) fn sum<const N: usize>(a: &[u64; N], b: &[u64; N], carry: &mut u8) -> [u64; N] {
    let mut sum = [0; N];
    for i in 0..N {
        sum[i] = add_carry(a[i], b[i], carry);
    }
    sum
}

#[inline(always)]
pub(crate) fn difference<const N: usize>(a: &[u64; N], b: &[u64; N], borrow: &mut u8) -> [u64; N] {
    let mut difference = [0; N];
    for i in 0..N {
        difference[i] = subtract_borrow(a[i], b[i], borrow);
    }
    difference
}

#[inline(always)]
pub(crate) fn times<const N: usize>(a: &[u64; N], factor: u64, carry: &mut u64) -> [u64; N] {
    let mut product = [0; N];
    for i in 0..N {
        product[i] = multiply_add(0, a[i], factor, carry);
    }
    product
}

/// `a + b + carry`. Only of the intrinsic does the compiler make a chain of additions with carry where a
/// number is a constant.
#[cfg(target_arch = "x86_64")]
#[inline(always)]
fn add_carry(a: u64, b: u64, carry: &mut u8) -> u64 {
    let mut word = 0;
    *carry = std::arch::x86_64::_addcarry_u64(*carry, a, b, &mut word);
    word
}

/// `a + b + carry`.
#[cfg(not(target_arch = "x86_64"))]
#[inline(always)]
fn add_carry(a: u64, b: u64, carry: &mut u8) -> u64 {
    let (word, first) = a.overflowing_add(b);
    let (word, second) = word.overflowing_add(u64::from(*carry));
    *carry = u8::from(first | second);
    word
}

/// `a − b − borrow`; see [`add_carry`].
#[cfg(target_arch = "x86_64")]
#[inline(always)]
fn subtract_borrow(a: u64, b: u64, borrow: &mut u8) -> u64 {
    let mut word = 0;
    *borrow = std::arch::x86_64::_subborrow_u64(*borrow, a, b, &mut word);
    word
}

/// `a − b − borrow`.
#[cfg(not(target_arch = "x86_64"))]
#[inline(always)]
fn subtract_borrow(a: u64, b: u64, borrow: &mut u8) -> u64 {
    let (word, first) = a.overflowing_sub(b);
    let (word, second) = word.overflowing_sub(u64::from(*borrow));
    *borrow = u8::from(first | second);
    word
}

/// The low word of `value + a·b + carry`; the high one is the new carry.
#[inline(always)]
fn multiply_add(value: u64, a: u64, b: u64, carry: &mut u64) -> u64 {
    let sum = u128::from(value) + u128::from(a) * u128::from(b) + u128::from(*carry);
    *carry = (sum >> 64) as u64;
    sum as u64
}

#[cfg(test)]
mod tests {
    use super::*;
    use ark_std::rand::Rng;
    use num_bigint::BigUint;

    #[cfg(target_arch = "x86_64")]
    use crate::x86_64_adx::Adx;

    fn number(words: &[u64]) -> BigUint {
        let bytes: Vec<u8> = words.iter().flat_map(|word| word.to_le_bytes()).collect();
        BigUint::from_bytes_le(&bytes)
    }

    fn number_of<const N: usize>(wide: &Wide<N>) -> BigUint {
        number(&[wide.low, wide.high].concat())
    }

    fn wide<const N: usize>(value: &BigUint) -> Wide<N> {
        let mut words = value.to_u64_digits();
        words.resize(2 * N, 0);
        let half = |at: usize| std::array::from_fn(|i| words[at + i]);
        Wide {
            low: half(0),
            high: half(N),
        }
    }

    /// Zero, one, all ones, single words of ones, and random words: carries of every length.
    fn samples<const N: usize>(rng: &mut impl Rng) -> Vec<[u64; N]> {
        let mut samples = vec![[0; N], [u64::MAX; N], [1 << 63; N]];
        for i in 0..N {
            samples.push(std::array::from_fn(|j| u64::from(i == j)));
            samples.push(std::array::from_fn(|j| if i == j { u64::MAX } else { 0 }));
            samples.push(std::array::from_fn(|j| if i == j { 0 } else { u64::MAX }));
        }
        samples.extend((0..40).map(|_| std::array::from_fn(|_| rng.r#gen())));
        samples
    }

    fn multiplies_and_reduces<C: MontConfig<N>, M: Multiplier<N>, const N: usize>(by: M) {
        let rng = &mut ark_std::test_rng();
        let samples = samples::<N>(rng);
        for a in &samples {
            for b in &samples {
                assert_eq!(number_of(&by.product(a, b)), number(a) * number(b));
            }
        }

        let modulus = number(&C::MODULUS.0);
        let r = BigUint::from(1u8) << (64 * N);
        let bound = &modulus * &r;
        let one = BigUint::from(1u8);
        let mut values = vec![BigUint::ZERO, one.clone(), &bound - &one, &r - &one];
        for i in 1..=3u8 {
            // Multiples of p, and their neighbours, on both sides of the last subtraction.
            let multiple = &modulus * &modulus * i;
            values.extend([&multiple - &one, &multiple + &one, multiple]);
        }
        for low in &samples {
            for high in &samples {
                values.push((number(low) + (number(high) << (64 * N))) % &bound);
            }
        }
        for value in values {
            let reduced = number(&by.reduced::<C>(&wide(&value)));
            assert!(reduced < modulus, "{value:x}");
            assert_eq!(&reduced * &r % &modulus, &value % &modulus, "{value:x}");
        }
    }

    fn every_multiplier<C: MontConfig<N>, const N: usize>() {
        multiplies_and_reduces::<C, _, N>(AnyProcessor);
        #[cfg(target_arch = "x86_64")]
        match Adx::detected::<N>() {
            Some(adx) => multiplies_and_reduces::<C, _, N>(adx),
            None => eprintln!("skipped: this machine has no ADX"),
        }
    }

    #[test]
    fn numbers_are_multiplied_and_reduced() {
        every_multiplier::<ark_bn254::FqConfig, 4>();
        every_multiplier::<ark_bls12_377::FqConfig, 6>();
    }
}
