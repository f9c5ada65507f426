//! The field Fq2: products of which each coefficient is reduced once.

use ark_ff::{BigInt, Fp, Fp2, MontBackend, MontConfig};

use super::curve::Curve;
use super::words::{AnyProcessor, Multiplier, Wide, difference, sum, times};
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

/// Its quadratic extension.
pub(super) type Fq2<C, const N: usize> = Fp2<<C as Curve<N>>::Two>;

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
    let (a, b) = (words::<C, N>(a), words::<C, N>(b));
    let low = by.product(a[0], b[0]);
    let high = by.product(a[1], b[1]);
    // Below 4·p², which is below p·R.
    let crossed = by.product(&sum(a[0], a[1], &mut false), &sum(b[0], b[1], &mut false));
    let crossed = crossed.minus(&low).minus(&high);
    let constant = if C::MINUS_BETA == 1 {
        low.modular_minus::<C::Base>(&high)
    } else {
        low.modular_minus::<C::Base>(&high.times(C::MINUS_BETA))
    };
    reduced::<C, M, N>(by, &constant, &crossed)
}

/// Of `a₀ + a₁·u`, u² = β, the coefficients are `(a₀ + a₁)·(a₀ + β·a₁) − (1 + β)·a₀·a₁` and `2·a₀·a₁`.
#[inline(always)]
fn square_by<C: Curve<N>, M: Multiplier<N>, const N: usize>(by: M, a: &Fq2<C, N>) -> Fq2<C, N> {
    let [a0, a1] = words::<C, N>(a);
    let minus_a1 = difference(&<C::Base as MontConfig<N>>::MODULUS.0, a1, &mut false);
    let beta_a1 = if C::MINUS_BETA == 1 {
        minus_a1
    } else {
        times(&minus_a1, C::MINUS_BETA, &mut 0)
    };
    let mut constant = by.product(&sum(a0, a1, &mut false), &sum(a0, &beta_a1, &mut false));
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
    let [a0, a1] = words::<C, N>(a);
    reduced::<C, M, N>(by, &by.product(a0, &b.0.0), &by.product(a1, &b.0.0))
}

#[inline(always)]
fn words<C: Curve<N>, const N: usize>(a: &Fq2<C, N>) -> [&[u64; N]; 2] {
    [&a.c0.0.0, &a.c1.0.0]
}

#[inline(always)]
fn reduced<C: Curve<N>, M: Multiplier<N>, const N: usize>(
    by: M,
    c0: &Wide<N>,
    c1: &Wide<N>,
) -> Fq2<C, N> {
    let element = |value| Fp::new_unchecked(BigInt(by.reduced::<C::Base>(value)));
    Fp2::new(element(c0), element(c1))
}

#[cfg(test)]
mod tests {
    use super::*;
    use ark_ff::{AdditiveGroup, Field, UniformRand};

    /// Products, squares and multiples are arkworks', with a multiplier.
    fn is_arkworks<C: Curve<N>, M: Multiplier<N>, const N: usize>(by: M) {
        let rng = &mut ark_std::test_rng();
        let (zero, one) = (Fq::<C, N>::ZERO, Fq::<C, N>::ONE);
        // The least and the greatest words as well.
        let least = Fq::<C, N>::new_unchecked(BigInt::from(1u64));
        let mut coefficients = vec![zero, one, -one, least, -least];
        coefficients.extend((0..10).map(|_| Fq::<C, N>::rand(rng)));
        let mut elements = Vec::new();
        for c0 in &coefficients {
            elements.extend(coefficients.iter().map(|c1| Fq2::<C, N>::new(*c0, *c1)));
        }
        for a in &elements {
            assert_eq!(square_by::<C, M, N>(by, a), a.square());
            for b in &elements {
                assert_eq!(product_by::<C, M, N>(by, a, b), *a * b);
            }
            for b in &coefficients {
                let expected = Fq2::<C, N>::new(a.c0 * b, a.c1 * b);
                assert_eq!(scaled_by::<C, M, N>(by, a, b), expected);
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
    fn elements_are_multiplied_as_arkworks_does() {
        with_every_multiplier::<ark_bn254::Bn254, 4>();
        with_every_multiplier::<ark_bls12_377::Bls12_377, 6>();
    }
}
