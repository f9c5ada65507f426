//! One element of `Fq12 = Fq2(w)`, w⁶ = ξ, with its coefficients in the lanes: that of wⁱ in lane i.
//!
//! The content of lanes 6 and 7 is unused.

use std::arch::x86_64::*;

use ark_ff::{AdditiveGroup, Field, Fp2, Fp6, Fp12};

use super::super::field::Fp;
use super::super::field2::Quadratic;
use super::super::vector_field::{Layout, VectorField};
use super::cyclotomic::Cyclotomic;
use super::fq2::{Factor, dot};
use super::line_product::LineProduct;
use super::lines::{Line, MonicLine};
use super::tower::{Tower, Twist};

/// The coefficients, products each.
pub(super) struct Lanes<E: Tower<L, N>, const L: usize, const N: usize>(Quadratic<E, L, N>);

/// Lane selections for products by wⁱ: lane k is lane k − i of the element, or lane k − i + 6 of ξ times it.
const POWERS: [[i64; 8]; 6] = {
    let mut from = [[0; 8]; 6];
    let mut i = 0;
    while i < 6 {
        let mut k = 0;
        while k < 6 {
            from[i][k] = if k < i { 8 + k + 6 - i } else { k - i } as i64;
            k += 1;
        }
        i += 1;
    }
    from
};

/// Lanes of an element and of ξ times it that make wⁱ times it.
///
/// # Safety
///
/// The instructions of this back end.
#[inline(always)]
unsafe fn times_power(i: usize) -> __m512i {
    // SAFETY: eight words to read.
    unsafe { _mm512_loadu_si512(POWERS[i].as_ptr().cast()) }
}

/// The constants of [`Cyclotomic::frobenius`] for one element, for powers 1 to 3 of the endomorphism.
pub(super) struct FrobeniusConstants<E: Tower<L, N>, const L: usize, const N: usize>(
    [Factor<E, L, N>; 3],
);

/// An element in arkworks' representation.
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

/// The numbers of the lanes that a mask has.
#[inline(always)]
fn numbers(lanes: __mmask8) -> impl Iterator<Item = usize> {
    (0..8).filter(move |lane| lanes >> lane & 1 == 1)
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
    pub(super) unsafe fn element(&self) -> Element<E, L, N> {
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
    pub(super) unsafe fn product(&self, other: &Self) -> Self {
        // SAFETY: as the caller promises.
        unsafe {
            let a = self.0.factor();
            let b = other.0.factor();
            let xi_b = other.0.times_xi().factor();
            let a0 = a.permuted(_mm512_setzero_si512());
            let a1 = a.permuted(_mm512_set1_epi64(1));
            let a2 = a.permuted(_mm512_set1_epi64(2));
            let a3 = a.permuted(_mm512_set1_epi64(3));
            let a4 = a.permuted(_mm512_set1_epi64(4));
            let a5 = a.permuted(_mm512_set1_epi64(5));
            let b1 = b.permuted_with(&xi_b, times_power(1));
            let b2 = b.permuted_with(&xi_b, times_power(2));
            let b3 = b.permuted_with(&xi_b, times_power(3));
            let b4 = b.permuted_with(&xi_b, times_power(4));
            let b5 = b.permuted_with(&xi_b, times_power(5));
            Self(dot(
                [&a0, &a1, &a2, &a3, &a4, &a5],
                [&b, &b1, &b2, &b3, &b4, &b5],
            ))
        }
    }

    /// Multiplies by the line in one lane.
    #[inline(never)]
    #[target_feature(enable = "avx512f,avx512dq,avx512vl,avx512ifma,avx512vbmi2")]
    unsafe fn times_line(&self, line: &[Factor<E, L, N>; 3], lane: usize) -> Self {
        // SAFETY: as the caller promises.
        unsafe {
            let lane = _mm512_set1_epi64(lane as i64);
            let z = self.0.factor();
            let xi_z = self.0.times_xi().factor();
            let [at_0, second, at_3] = line;
            let (at_0, second, at_3) = (
                at_0.permuted(lane),
                second.permuted(lane),
                at_3.permuted(lane),
            );
            let by_second = z.permuted_with(&xi_z, times_power(E::TWIST.power_of_x()));
            let by_3 = z.permuted_with(&xi_z, times_power(3));
            Self(dot([&at_0, &second, &at_3], [&z, &by_second, &by_3]))
        }
    }

    /// Multiplies by the line in one lane, whose term in y is one; the other two terms are the one in x and the
    /// constant.
    #[inline(never)]
    #[target_feature(enable = "avx512f,avx512dq,avx512vl,avx512ifma,avx512vbmi2")]
    unsafe fn times_monic_line(&self, line: &[Factor<E, L, N>; 2], lane: usize) -> Self {
        // SAFETY: as the caller promises. The sum is below 2.6 + 2.6 times p.
        unsafe {
            let lane = _mm512_set1_epi64(lane as i64);
            let xi = self.0.times_xi();
            let (z, xi_z) = (self.0.factor(), xi.factor());
            let (x, constant) = (line[0].permuted(lane), line[1].permuted(lane));
            let by_x = z.permuted_with(&xi_z, times_power(E::TWIST.power_of_x()));
            let by_3 = times_power(3);
            let (by_constant, by_one) = match E::TWIST {
                Twist::Multiplied => (z, self.0.permuted_with(xi, by_3)),
                Twist::Divided => (z.permuted_with(&xi_z, by_3), self.0),
            };
            let sum = dot([&x, &constant], [&by_x, &by_constant]).plus(by_one);
            Self(sum.reduced())
        }
    }

    /// Squares an element of the cyclotomic subgroup: Granger and Scott, "Faster Squaring in the
    /// Cyclotomic Subgroup of Sixth Degree Extensions" (PKC 2010).
    ///
    /// With `Sᵢ = zᵢ² + ξ·zᵢ₊₃²` and `Xᵢ = 2·zᵢ·zᵢ₊₃` the lanes become `3S₀ − 2z₀`, `3ξX₂ + 2z₁`,
    /// `3S₁ − 2z₂`, `3X₀ + 2z₃`, `3S₂ − 2z₄`, `3X₁ + 2z₅`: each of S and X a sum of two products.
    #[inline(never)]
    #[target_feature(enable = "avx512f,avx512dq,avx512vl,avx512ifma,avx512vbmi2")]
    unsafe fn cyclotomic_squared(&self) -> Self {
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
}

impl<E: Tower<L, N>, const L: usize, const N: usize> Cyclotomic<E, L, N> for Lanes<E, L, N> {
    type Frobenius = FrobeniusConstants<E, L, N>;

    #[inline(always)]
    unsafe fn times(&self, other: &Self) -> Self {
        // SAFETY: as the caller promises; so below.
        unsafe { self.product(other) }
    }

    #[inline(always)]
    unsafe fn cyclotomic_square(&self) -> Self {
        // SAFETY: see above.
        unsafe { self.cyclotomic_squared() }
    }

    #[inline(always)]
    unsafe fn conjugate(&self) -> Self {
        // SAFETY: see above.
        unsafe { Self(self.0.replaced(0b10_1010, self.0.negated::<3>().settle())) }
    }

    #[inline(always)]
    unsafe fn frobenius<const POWER: usize>(&self, constants: &Self::Frobenius) -> Self {
        // SAFETY: see above.
        unsafe {
            let value = if POWER % 2 == 1 {
                self.0.conjugated()
            } else {
                self.0
            };
            Self(dot([&value.factor()], [&constants.0[POWER - 1]]))
        }
    }
}

impl<E: Tower<L, N>, const L: usize, const N: usize> LineProduct<E, L, N> for Lanes<E, L, N> {
    #[inline(always)]
    unsafe fn one() -> Self {
        // SAFETY: as the caller promises; so below.
        unsafe { Self(Quadratic::nothing().replaced(1, Quadratic::unit())) }
    }

    #[inline(always)]
    unsafe fn square(&mut self) {
        // SAFETY: see above.
        unsafe { *self = self.product(self) }
    }

    #[inline(always)]
    unsafe fn multiply_by_lines(&mut self, line: &Line<E, L, N>, lanes: __mmask8) {
        // SAFETY: see above.
        unsafe {
            let (constant, x, y) = (line.constant.factor(), line.x.factor(), line.y.factor());
            let terms = match E::TWIST {
                Twist::Multiplied => [constant, x, y],
                Twist::Divided => [y, x, constant],
            };
            for lane in numbers(lanes) {
                *self = self.times_line(&terms, lane);
            }
        }
    }

    #[inline(always)]
    unsafe fn multiply_by_monic_lines(&mut self, line: &MonicLine<E, L, N>, lanes: __mmask8) {
        // SAFETY: see above.
        unsafe {
            let terms = [line.x.factor(), line.constant.factor()];
            for lane in numbers(lanes) {
                *self = self.times_monic_line(&terms, lane);
            }
        }
    }

    #[inline(always)]
    unsafe fn value(self) -> Element<E, L, N>
    where
        Fp<E::Base, L, N>: Layout<E::Base, N>,
    {
        // SAFETY: see above.
        unsafe { self.element() }
    }
}
