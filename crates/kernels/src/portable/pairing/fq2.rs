//! The field Fq2: sums without branches, products of which each coefficient is reduced once.

use std::ops::{Add, Neg, Sub};

use ark_ff::{AdditiveGroup, BigInt, Field, Fp, Fp2, MontBackend, MontConfig, Zero};

use super::curve::Curve;
use super::words::{
    AnyProcessor, Multiplier, Wide, difference, modular_difference, modular_sum, sum, times,
};
use crate::portable::inversion::Invertible;
#[cfg(target_arch = "x86_64")]
use crate::x86_64_adx::Adx;

/// Calls a function of a curve with the fastest multiplier that this processor has.
macro_rules! dispatch {
    ($function:ident::<$curve:ident, $n:ident>($($argument:expr),*)) => {{
        #[cfg(target_arch = "x86_64")]
        if let Some(adx) = Adx::detected::<$n>() {
            return $function::<$curve, _, $n>(adx, $($argument),*);
        }
        $function::<$curve, _, $n>(AnyProcessor, $($argument),*)
    }};
}

/// The prime field of a curve.
pub(super) type Fq<C, const N: usize> = Fp<MontBackend<<C as Curve<N>>::Base, N>, N>;

/// An element of its quadratic extension: arkworks', with sums that do not branch. Which of two numbers is
/// the greater no processor predicts, and sums are half of a pairing's work.
pub(crate) struct Fq2<C: Curve<N>, const N: usize>(pub(super) Fp2<C::Two>);

// === impl Fq2 ===

impl<C: Curve<N>, const N: usize> Fq2<C, N> {
    pub(super) const ZERO: Self = Self(Fp2::<C::Two>::ZERO);
    pub(super) const ONE: Self = Self(Fp2::<C::Two>::ONE);

    /// An element of Montgomery words below p.
    #[inline(always)]
    pub(super) const fn of_words(c0: [u64; N], c1: [u64; N]) -> Self {
        Self(Fp2::new(
            Fp::new_unchecked(BigInt(c0)),
            Fp::new_unchecked(BigInt(c1)),
        ))
    }

    #[inline(always)]
    pub(super) const fn words(&self) -> [&[u64; N]; 2] {
        [&self.0.c0.0.0, &self.0.c1.0.0]
    }

    #[inline(always)]
    pub(super) fn double(self) -> Self {
        self + self
    }

    pub(super) fn is_zero(&self) -> bool {
        self.0.is_zero()
    }

    /// `1/self`, unless it is zero.
    pub(super) fn inverted(&self) -> Option<Self> {
        self.0.inverted().map(Self)
    }
}

impl<C: Curve<N>, const N: usize> Clone for Fq2<C, N> {
    #[inline(always)]
    fn clone(&self) -> Self {
        *self
    }
}

impl<C: Curve<N>, const N: usize> Copy for Fq2<C, N> {}

impl<C: Curve<N>, const N: usize> Add for Fq2<C, N> {
    type Output = Self;

    #[inline(always)]
    fn add(self, other: Self) -> Self {
        let ([a0, a1], [b0, b1]) = (self.words(), other.words());
        Self::of_words(
            modular_sum::<C::Base, N>(a0, b0),
            modular_sum::<C::Base, N>(a1, b1),
        )
    }
}

impl<C: Curve<N>, const N: usize> Sub for Fq2<C, N> {
    type Output = Self;

    #[inline(always)]
    fn sub(self, other: Self) -> Self {
        let ([a0, a1], [b0, b1]) = (self.words(), other.words());
        Self::of_words(
            modular_difference::<C::Base, N>(a0, b0),
            modular_difference::<C::Base, N>(a1, b1),
        )
    }
}

impl<C: Curve<N>, const N: usize> Neg for Fq2<C, N> {
    type Output = Self;

    #[inline(always)]
    fn neg(self) -> Self {
        Self::ZERO - self
    }
}

/// `a·b`.
#[inline(never)]
pub(super) fn product<C: Curve<N>, const N: usize>(a: &Fq2<C, N>, b: &Fq2<C, N>) -> Fq2<C, N> {
    dispatch!(product_by::<C, N>(a, b))
}

/// `a·a`.
#[inline(never)]
pub(super) fn square<C: Curve<N>, const N: usize>(a: &Fq2<C, N>) -> Fq2<C, N> {
    dispatch!(square_by::<C, N>(a))
}

/// `a·b` of an element of the prime field.
#[inline(never)]
pub(super) fn scaled<C: Curve<N>, const N: usize>(a: &Fq2<C, N>, b: &Fq<C, N>) -> Fq2<C, N> {
    dispatch!(scaled_by::<C, N>(a, b))
}

/// Karatsuba's three products and two reductions.
#[inline(always)]
fn product_by<C: Curve<N>, M: Multiplier<N>, const N: usize>(
    by: M,
    a: &Fq2<C, N>,
    b: &Fq2<C, N>,
) -> Fq2<C, N> {
    let (a, b) = (a.words(), b.words());
    let low = by.product(a[0], b[0]);
    let high = by.product(a[1], b[1]);
    // Below 4·p², which is below p·R.
    let crossed = by.product(&sum(a[0], a[1], &mut 0), &sum(b[0], b[1], &mut 0));
    let crossed = crossed.minus(&low).minus(&high);
    let constant = if C::MINUS_BETA == 1 {
        low.modular_minus::<C::Base>(&high)
    } else {
        low.modular_minus::<C::Base>(&high.times(C::MINUS_BETA))
    };
    reduced::<C, M, N>(by, &constant, &crossed)
}

/// The square. With u² = β, that of `a₀ + a₁·u` has the coefficients `(a₀ + a₁)·(a₀ + β·a₁) − (1 + β)·a₀·a₁` and
/// `2·a₀·a₁`.
#[inline(always)]
fn square_by<C: Curve<N>, M: Multiplier<N>, const N: usize>(by: M, a: &Fq2<C, N>) -> Fq2<C, N> {
    let [a0, a1] = a.words();
    let minus_a1 = difference(&<C::Base as MontConfig<N>>::MODULUS.0, a1, &mut 0);
    let beta_a1 = if C::MINUS_BETA == 1 {
        minus_a1
    } else {
        times(&minus_a1, C::MINUS_BETA, &mut 0)
    };
    let mut constant = by.product(&sum(a0, a1, &mut 0), &sum(a0, &beta_a1, &mut 0));
    let crossed = by.product(a0, a1);
    if C::MINUS_BETA > 1 {
        constant = constant.plus(&crossed.times(C::MINUS_BETA - 1));
    }
    reduced::<C, M, N>(by, &constant, &crossed.plus(&crossed))
}

#[inline(always)]
fn scaled_by<C: Curve<N>, M: Multiplier<N>, const N: usize>(
    by: M,
    a: &Fq2<C, N>,
    b: &Fq<C, N>,
) -> Fq2<C, N> {
    let [a0, a1] = a.words();
    reduced::<C, M, N>(by, &by.product(a0, &b.0.0), &by.product(a1, &b.0.0))
}

#[inline(always)]
fn reduced<C: Curve<N>, M: Multiplier<N>, const N: usize>(
    by: M,
    c0: &Wide<N>,
    c1: &Wide<N>,
) -> Fq2<C, N> {
    Fq2::of_words(by.reduced::<C::Base>(c0), by.reduced::<C::Base>(c1))
}

#[cfg(test)]
mod tests {
    use super::*;
    use ark_ff::{Fp6Config, UniformRand};

    /// Sums, products, squares and multiples are arkworks', with a multiplier.
    fn is_arkworks<C: Curve<N>, M: Multiplier<N>, const N: usize>(by: M) {
        let rng = &mut ark_std::test_rng();
        let (zero, one) = (Fq::<C, N>::ZERO, Fq::<C, N>::ONE);
        // The least and the greatest words as well.
        let least = Fq::<C, N>::new_unchecked(BigInt::from(1u64));
        let mut coefficients = vec![zero, one, -one, least, -least];
        coefficients.extend((0..10).map(|_| Fq::<C, N>::rand(rng)));
        let mut elements = Vec::new();
        for c0 in &coefficients {
            elements.extend(
                coefficients
                    .iter()
                    .map(|c1| Fq2::<C, N>(Fp2::new(*c0, *c1))),
            );
        }
        for a in &elements {
            assert_eq!(square_by::<C, M, N>(by, a).0, a.0.square());
            assert_eq!((-*a).0, -a.0);
            assert_eq!(C::times_xi(*a).0, C::Six::mul_fp2_by_nonresidue(a.0));
            for b in &elements {
                assert_eq!(product_by::<C, M, N>(by, a, b).0, a.0 * b.0);
                assert_eq!((*a + *b).0, a.0 + b.0);
                assert_eq!((*a - *b).0, a.0 - b.0);
            }
            for b in &coefficients {
                let expected = Fp2::new(a.0.c0 * b, a.0.c1 * b);
                assert_eq!(scaled_by::<C, M, N>(by, a, b).0, expected);
            }
        }
    }

    fn with_every_multiplier<C: Curve<N>, const N: usize>() {
        is_arkworks::<C, _, N>(AnyProcessor);
        #[cfg(target_arch = "x86_64")]
        match Adx::detected::<N>() {
            Some(adx) => is_arkworks::<C, _, N>(adx),
            None => eprintln!("skipped: this machine has no ADX"),
        }
    }

    #[test]
    fn arithmetic_is_arkworks() {
        with_every_multiplier::<ark_bn254::Bn254, 4>();
        with_every_multiplier::<ark_bls12_377::Bls12_377, 6>();
    }
}
