//! One element of `Fq12 = Fq2(w)`, w⁶ = ξ, with its coefficients in the lanes: that of wⁱ in lane i.
//!
//! Lanes 6 and 7 hold nothing of use.

use std::arch::x86_64::*;

use ark_ff::{AdditiveGroup, Field, Fp2, Fp6, Fp12};

use super::super::field::Fp;
use super::super::field2::Quadratic;
use super::super::vector_field::{Layout, VectorField};
use super::fq2::{Factor, dot};
use super::tower::Tower;

/// The coefficients, products each.
pub(super) struct Lanes<E: Tower<L, N>, const L: usize, const N: usize>(Quadratic<E, L, N>);

/// What [`Lanes::frobenius`] multiplies by, for powers 1 to 3 of the endomorphism.
pub(super) struct FrobeniusConstants<E: Tower<L, N>, const L: usize, const N: usize>(
    [Factor<E, L, N>; 3],
);

/// An element as arkworks has it.
pub(super) type Element<E, const L: usize, const N: usize> = Fp12<<E as Tower<L, N>>::Twelve>;

/// The coefficients of w⁰ to w⁵.
pub(super) fn coefficients<E: Tower<L, N>, const L: usize, const N: usize>(
    element: &Element<E, L, N>,
) -> [Fp2<E>; 6] {
    let (even, odd) = (&element.c0, &element.c1);
    [even.c0, odd.c0, even.c1, odd.c1, even.c2, odd.c2]
}

/// The inverse of [`coefficients`].
pub(super) fn element<E: Tower<L, N>, const L: usize, const N: usize>(
    coefficients: [Fp2<E>; 6],
) -> Element<E, L, N> {
    let [c0, c1, c2, c3, c4, c5] = coefficients;
    Fp12::new(Fp6::new(c0, c2, c4), Fp6::new(c1, c3, c5))
}

copied!(Lanes);

// === impl FrobeniusConstants ===

impl<E: Tower<L, N>, const L: usize, const N: usize> FrobeniusConstants<E, L, N>
where
    Fp<E::Base, L, N>: Layout<E::Base, N>,
{
    /// `ξ^(i·(q^k − 1)/6)` in lane i, for k = 1, 2, 3.
    ///
    /// # Safety
    ///
    /// The instructions of this back end.
    #[inline(always)]
    pub(super) unsafe fn new() -> Self {
        use ark_ff::Fp12Config;
        // SAFETY: as the caller promises; the places are elements of an array.
        unsafe {
            let mut factors = [Quadratic::<E, L, N>::nothing().factor(); 3];
            for (k, factor) in factors.iter_mut().enumerate() {
                let first = E::Twelve::FROBENIUS_COEFF_FP12_C1[k + 1];
                let mut powers = [Fp2::<E>::ONE; 8];
                for i in 1..6 {
                    powers[i] = powers[i - 1] * first;
                }
                *factor = Quadratic::load_ark(powers.each_ref().map(std::ptr::from_ref)).factor();
            }
            Self(factors)
        }
    }
}

// === impl Lanes ===

/// # Safety
///
/// Every function: the instructions of this back end.
impl<E: Tower<L, N>, const L: usize, const N: usize> Lanes<E, L, N>
where
    Fp<E::Base, L, N>: Layout<E::Base, N>,
{
    #[inline(always)]
    pub(super) unsafe fn new(value: &Element<E, L, N>) -> Self {
        let zero = Fp2::<E>::ZERO;
        let [c0, c1, c2, c3, c4, c5] = coefficients::<E, L, N>(value);
        let lanes = [c0, c1, c2, c3, c4, c5, zero, zero];
        // SAFETY: as the caller promises; the places are elements of an array.
        unsafe {
            Self(Quadratic::load_ark(
                lanes.each_ref().map(std::ptr::from_ref),
            ))
        }
    }

    #[inline(always)]
    pub(super) unsafe fn value(&self) -> Element<E, L, N> {
        // SAFETY: as the caller promises.
        let [c0, c1, c2, c3, c4, c5, ..] = unsafe { self.0.to_ark() };
        element::<E, L, N>([c0, c1, c2, c3, c4, c5])
    }
}

/// # Safety
///
/// Every function: the instructions of this back end.
impl<E: Tower<L, N>, const L: usize, const N: usize> Lanes<E, L, N> {
    /// Multiplies: the sum over i of lane i of `self`, in all lanes, times wⁱ·other.
    #[inline(never)]
    #[target_feature(enable = "avx512f,avx512dq,avx512vl,avx512ifma,avx512vbmi2")]
    pub(super) unsafe fn times(&self, other: &Self) -> Self {
        // SAFETY: as the caller promises.
        unsafe {
            let a = self.0.factor();
            let b = other.0.factor();
            let xi_b = other.0.times_xi().factor();
            // Lane k of wⁱ·b is lane k − i of b, or lane k − i + 6 of ξ·b.
            macro_rules! term {
                ($i:expr, $lanes:expr) => {
                    (
                        a.permuted(_mm512_set1_epi64($i)),
                        b.permuted_with(&xi_b, $lanes),
                    )
                };
            }
            let (a0, b0) = (a.permuted(_mm512_setzero_si512()), b);
            let (a1, b1) = term!(1, _mm512_set_epi64(0, 0, 4, 3, 2, 1, 0, 13));
            let (a2, b2) = term!(2, _mm512_set_epi64(0, 0, 3, 2, 1, 0, 13, 12));
            let (a3, b3) = term!(3, _mm512_set_epi64(0, 0, 2, 1, 0, 13, 12, 11));
            let (a4, b4) = term!(4, _mm512_set_epi64(0, 0, 1, 0, 13, 12, 11, 10));
            let (a5, b5) = term!(5, _mm512_set_epi64(0, 0, 0, 13, 12, 11, 10, 9));
            Self(dot(
                [&a0, &a1, &a2, &a3, &a4, &a5],
                [&b0, &b1, &b2, &b3, &b4, &b5],
            ))
        }
    }

    /// Squares an element of the cyclotomic subgroup: Granger and Scott, "Faster Squaring in the
    /// Cyclotomic Subgroup of Sixth Degree Extensions" (PKC 2010).
    ///
    /// With `Sᵢ = zᵢ² + ξ·zᵢ₊₃²` and `Xᵢ = 2·zᵢ·zᵢ₊₃` the lanes become `3S₀ − 2z₀`, `3ξX₂ + 2z₁`,
    /// `3S₁ − 2z₂`, `3X₀ + 2z₃`, `3S₂ − 2z₄`, `3X₁ + 2z₅`: each of S and X a sum of two products.
    #[inline(never)]
    #[target_feature(enable = "avx512f,avx512dq,avx512vl,avx512ifma,avx512vbmi2")]
    pub(super) unsafe fn cyclotomic_square(&self) -> Self {
        // SAFETY: as the caller promises.
        unsafe {
            let z = self.0.factor();
            let xi_z = self.0.times_xi().factor();
            let u0 = z.permuted_with(&xi_z, _mm512_set_epi64(0, 0, 4, 2, 3, 1, 13, 0));
            let v0 = z.permuted(_mm512_set_epi64(0, 0, 1, 2, 0, 1, 2, 0));
            let u1 = z.permuted_with(&xi_z, _mm512_set_epi64(0, 0, 4, 13, 3, 12, 13, 11));
            let v1 = z.permuted(_mm512_set_epi64(0, 0, 1, 5, 0, 4, 2, 3));
            let sum = dot([&u0, &u1], [&v0, &v1]);
            let triple = sum.shifted::<1>().plus(sum);
            let twice = self.0.shifted::<1>();
            let minus = triple.minus::<6>(twice);
            let plus = triple.plus(twice);
            Self(minus.replaced(0b10_1010, plus).settle())
        }
    }

    /// The inverse of an element of the cyclotomic subgroup: the conjugate over Fq6.
    #[inline(always)]
    pub(super) unsafe fn conjugate(&self) -> Self {
        // SAFETY: as the caller promises.
        unsafe { Self(self.0.replaced(0b10_1010, self.0.negated::<3>().settle())) }
    }

    /// The `q^POWER`-th power.
    #[inline(always)]
    pub(super) unsafe fn frobenius<const POWER: usize>(
        &self,
        constants: &FrobeniusConstants<E, L, N>,
    ) -> Self {
        // SAFETY: as the caller promises.
        unsafe {
            let value = if POWER % 2 == 1 {
                self.0.conjugated()
            } else {
                self.0
            };
            Self(dot([&value.factor()], [&constants.0[POWER - 1]]))
        }
    }

    /// The power by |x|, x being the curve's parameter, of an element of the cyclotomic subgroup.
    #[inline(never)]
    #[target_feature(enable = "avx512f,avx512dq,avx512vl,avx512ifma,avx512vbmi2")]
    unsafe fn power_of_absolute(&self) -> Self {
        // SAFETY: as the caller promises.
        unsafe {
            let inverse = self.conjugate();
            let mut power = *self;
            for digit in E::PARAMETER {
                power = power.cyclotomic_square();
                match digit {
                    0 => {}
                    1 => power = power.times(self),
                    _ => power = power.times(&inverse),
                }
            }
            power
        }
    }

    /// The power by x, the curve's parameter, of an element of the cyclotomic subgroup.
    #[inline(always)]
    pub(super) unsafe fn power_of_parameter(&self) -> Self {
        // SAFETY: as the caller promises.
        unsafe {
            let power = self.power_of_absolute();
            if E::PARAMETER_IS_NEGATIVE {
                power.conjugate()
            } else {
                power
            }
        }
    }
}
