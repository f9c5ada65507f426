//! The cyclotomic subgroup of Fq12, the elements whose power by `q⁴ − q² + 1` is one: their inverses are
//! their conjugates, and squares cost less than elsewhere.

use std::arch::x86_64::__mmask8;

use ark_ff::{AdditiveGroup, Field, Fp2, Fp12Config, Zero};

use super::super::field::Fp;
use super::super::field2::Quadratic;
use super::super::modulus::Scalar;
use super::super::vector_field::{Layout, VectorField};
use super::accumulator::{Accumulator, Six, multiply_six};
use super::fq2::{Factor, dot};
use super::lanes::{Element, coefficients, element};
use super::line_product::LineProduct;
use super::tower::Tower;
use crate::portable::inversion::invert_all;

/// The operations of the final exponentiation, in one of two layouts:
/// [`Lanes`](super::lanes::Lanes) is one element, [`Accumulator`] is eight, one in each lane.
///
/// # Safety
///
/// Every function: the instructions of this back end.
pub(super) trait Cyclotomic<E: Tower<L, N>, const L: usize, const N: usize>: Copy {
    /// The constants of [`frobenius`](Self::frobenius).
    type Frobenius;

    unsafe fn times(&self, other: &Self) -> Self;
    /// The square of an element of the cyclotomic subgroup.
    unsafe fn cyclotomic_square(&self) -> Self;
    /// The conjugate over Fq6: in the cyclotomic subgroup the inverse.
    unsafe fn conjugate(&self) -> Self;
    /// The `q^POWER`-th power, POWER being 1, 2 or 3.
    unsafe fn frobenius<const POWER: usize>(&self, constants: &Self::Frobenius) -> Self;

    /// The power by x, the curve's parameter, of an element of the cyclotomic subgroup.
    #[inline(always)]
    unsafe fn power_of_parameter(&self) -> Self {
        // SAFETY: as the caller promises.
        unsafe {
            let power = power_of_absolute(self);
            if E::PARAMETER_IS_NEGATIVE {
                power.conjugate()
            } else {
                power
            }
        }
    }
}

/// The power by |x|, x being the curve's parameter, of elements of the cyclotomic subgroup.
///
/// # Safety
///
/// The instructions of this back end.
#[inline(never)]
#[target_feature(enable = "avx512f,avx512dq,avx512vl,avx512ifma,avx512vbmi2")]
unsafe fn power_of_absolute<E, A, const L: usize, const N: usize>(value: &A) -> A
where
    E: Tower<L, N>,
    A: Cyclotomic<E, L, N>,
{
    // SAFETY: as the caller promises.
    unsafe {
        // The powers 1, 3, 5 and 7, as far as there are digits of them.
        let mut powers = [*value; 4];
        let largest = const { largest(E::PARAMETER) };
        if largest > 1 {
            let square = value.cyclotomic_square();
            for i in 1..=largest / 2 {
                powers[i] = powers[i - 1].times(&square);
            }
        }
        let (first, digits) = E::PARAMETER.split_first().expect("digits");
        let mut power = powers[usize::from(first.unsigned_abs() / 2)];
        for digit in digits {
            power = power.cyclotomic_square();
            let factor = &powers[usize::from(digit.unsigned_abs() / 2)];
            match digit {
                0 => {}
                1.. => power = power.times(factor),
                _ => power = power.times(&factor.conjugate()),
            }
        }
        power
    }
}

/// The largest of the digits in magnitude.
const fn largest(digits: &[i8]) -> usize {
    let (mut largest, mut i) = (0, 0);
    while i < digits.len() {
        if digits[i].unsigned_abs() as usize > largest {
            largest = digits[i].unsigned_abs() as usize;
        }
        i += 1;
    }
    largest
}

/// The constants of [`Cyclotomic::frobenius`] for eight elements: `ξ^(i·(q^k − 1)/6)` in every lane, for the
/// coefficients of wⁱ, i = 1 to 5, and k = 1, 2, 3.
pub(super) struct FrobeniusConstantsX8<E: Tower<L, N>, const L: usize, const N: usize>(
    [[Factor<E, L, N>; 5]; 3],
);

// === impl FrobeniusConstantsX8 ===

impl<E: Tower<L, N>, const L: usize, const N: usize> FrobeniusConstantsX8<E, L, N>
where
    Fp<E::Base, L, N>: Layout<E::Base, N>,
{
    /// # Safety
    ///
    /// The instructions of this back end.
    #[inline(always)]
    pub(super) unsafe fn new() -> Self {
        // SAFETY: as the caller promises.
        unsafe {
            let mut factors = [[Quadratic::<E, L, N>::nothing().factor(); 5]; 3];
            for (k, factors) in factors.iter_mut().enumerate() {
                let first = E::Twelve::FROBENIUS_COEFF_FP12_C1[k + 1];
                let mut power = Fp2::<E>::ONE;
                for factor in factors {
                    power *= first;
                    *factor = Quadratic::splat(&power).factor();
                }
            }
            Self(factors)
        }
    }
}

// === impl Accumulator ===

/// # Safety
///
/// Every function: the instructions of this back end.
impl<E: Tower<L, N>, const L: usize, const N: usize> Accumulator<E, L, N>
where
    Fp<E::Base, L, N>: Layout<E::Base, N>,
{
    /// Loads one to eight elements; free lanes repeat the first.
    #[inline(never)]
    #[target_feature(enable = "avx512f,avx512dq,avx512vl,avx512ifma,avx512vbmi2")]
    pub(super) unsafe fn load(values: &[Element<E, L, N>]) -> Self {
        let value = |lane: usize| values.get(lane).unwrap_or(&values[0]);
        let lanes: [_; 8] = std::array::from_fn(|lane| coefficients::<E, L, N>(value(lane)));
        // SAFETY: as the caller promises; the places are coefficients.
        unsafe {
            let mut loaded = Self::one();
            for (i, coefficient) in loaded.coefficients.iter_mut().enumerate() {
                *coefficient =
                    Quadratic::load_ark(std::array::from_fn(|lane| &raw const lanes[lane][i]));
            }
            loaded
        }
    }

    /// The eight elements.
    #[inline(never)]
    #[target_feature(enable = "avx512f,avx512dq,avx512vl,avx512ifma,avx512vbmi2")]
    pub(super) unsafe fn elements(&self) -> [Element<E, L, N>; 8] {
        let mut lanes = [[Fp2::<E>::ZERO; 6]; 8];
        for (i, coefficient) in self.coefficients.iter().enumerate() {
            // SAFETY: as the caller promises.
            let coefficients = unsafe { coefficient.to_ark() };
            for (lane, coefficient) in lanes.iter_mut().zip(coefficients) {
                lane[i] = coefficient;
            }
        }
        lanes.map(element::<E, L, N>)
    }

    /// The power by `q⁶ − 1`, and the lanes of zero elements, in which it is zero.
    ///
    /// With f = a + b·w over Fq6 it is `(a − b·w)² / (a² − v·b²)`. The inverses of elements of Fq6 are reduced by
    /// norms to those of eight elements of the prime field, which share one inversion.
    #[inline(never)]
    #[target_feature(enable = "avx512f,avx512dq,avx512vl,avx512ifma,avx512vbmi2")]
    pub(super) unsafe fn conjugate_by_self(&self) -> (Self, __mmask8) {
        // SAFETY: as the caller promises. In multiples of p: coefficients are below 2.6, settled values
        // below 1.4; differences are below 2.6 + 3.
        unsafe {
            let [a0, b0, a1, b1, a2, b2] = self.coefficients;
            let (six, xi) = six_factors(&[a0, a1, a2]);
            let a = multiply_six(&six, &six, &xi);
            let (six, xi) = six_factors(&[b0, b1, b2]);
            let b = multiply_six(&six, &six, &xi);
            let norm = [
                a[0].minus::<2>(b[2].times_xi()).settle(),
                a[1].minus::<3>(b[0]).settle(),
                a[2].minus::<3>(b[1]).settle(),
            ];
            let (inverse, zeros) = inverse_of_six(norm);
            let (six, xi) = six_factors(&inverse);
            let mut power = self.conjugate();
            power.squared();
            let [a0, b0, a1, b1, a2, b2] = power.coefficients;
            let [a0, a1, a2] = multiply_six(&[a0.factor(), a1.factor(), a2.factor()], &six, &xi);
            let [b0, b1, b2] = multiply_six(&[b0.factor(), b1.factor(), b2.factor()], &six, &xi);
            power.coefficients = [a0, b0, a1, b1, a2, b2];
            (power, zeros)
        }
    }
}

/// An element of Fq6 as factors, and ξ times its last two coefficients.
///
/// # Safety
///
/// The instructions of this back end.
#[inline(always)]
unsafe fn six_factors<E: Tower<L, N>, const L: usize, const N: usize>(
    [c0, c1, c2]: &[Quadratic<E, L, N>; 3],
) -> (Six<E, L, N>, [Factor<E, L, N>; 2]) {
    // SAFETY: as the caller promises.
    unsafe {
        let six = [c0.factor(), c1.factor(), c2.factor()];
        (six, [c1.times_xi().factor(), c2.times_xi().factor()])
    }
}

/// The inverses of eight elements of Fq6, in the range of products, by their adjoints and norms to Fq2; and the
/// lanes of zero elements, whose result is zero.
///
/// # Safety
///
/// The instructions of this back end.
#[inline(always)]
unsafe fn inverse_of_six<E: Tower<L, N>, const L: usize, const N: usize>(
    [n0, n1, n2]: [Quadratic<E, L, N>; 3],
) -> ([Quadratic<E, L, N>; 3], __mmask8)
where
    Fp<E::Base, L, N>: Layout<E::Base, N>,
{
    // SAFETY: as the caller promises. In multiples of p: products are below 2.6, settled values below 1.4.
    unsafe {
        let (xi_n1, xi_n2) = (n1.times_xi(), n2.times_xi());
        let minus_n0 = n0.negated::<3>().settle().factor();
        let minus_n1 = n1.negated::<3>().settle().factor();
        let minus_xi_n1 = xi_n1.negated::<2>().settle().factor();
        let (n0, n1, n2) = (n0.factor(), n1.factor(), n2.factor());
        let (xi_n1, xi_n2) = (xi_n1.factor(), xi_n2.factor());
        let d0 = dot([&n0, &minus_xi_n1], [&n0, &n2]).factor();
        let d1 = dot([&xi_n2, &minus_n1], [&n2, &n0]).factor();
        let d2 = dot([&n1, &minus_n0], [&n1, &n2]).factor();
        let norm = dot([&n0, &xi_n2, &xi_n1], [&d0, &d1, &d2]);
        let (inverse, zeros) = inverse_of_two(norm);
        let inverse = inverse.factor();
        let inverses = [
            dot([&d0], [&inverse]),
            dot([&d1], [&inverse]),
            dot([&d2], [&inverse]),
        ];
        (inverses, zeros)
    }
}

/// The inverses of eight elements of Fq2, in the range of products, which share one inversion in the prime field; and
/// the lanes of zero elements, whose result is zero.
///
/// # Safety
///
/// The instructions of this back end.
#[inline(always)]
unsafe fn inverse_of_two<E: Tower<L, N>, const L: usize, const N: usize>(
    value: Quadratic<E, L, N>,
) -> (Quadratic<E, L, N>, __mmask8)
where
    Fp<E::Base, L, N>: Layout<E::Base, N>,
{
    // SAFETY: as the caller promises; the places are elements of an array. 1/(c0 + c1·u) = (c0 − c1·u)/(c0² + β·c1²),
    // of squares below 1.1·p: β is 5 at most, so that the norm is below 8·p.
    unsafe {
        let [square, mut norm] = Fp::multiply_two([&value.c1, &value.c0], [&value.c1, &value.c0]);
        for _ in 0..E::MINUS_NONRESIDUE {
            norm = norm.plus(square);
        }
        let mut norms: [Scalar<E::Base, N>; 8] = norm.reduce().to_ark_lanes();
        invert_all(&mut norms, &mut Vec::with_capacity(8));
        let mut zeros = 0;
        for (lane, norm) in norms.iter().enumerate() {
            zeros |= u8::from(norm.is_zero()) << lane;
        }
        let inverse = Fp::load_ark(norms.each_ref().map(std::ptr::from_ref));
        (value.conjugated().scaled(&inverse), zeros)
    }
}

/// # Safety
///
/// The instructions of this back end.
impl<E: Tower<L, N>, const L: usize, const N: usize> Accumulator<E, L, N> {
    /// Squares elements of the cyclotomic subgroup: Granger and Scott, "Faster Squaring in the Cyclotomic
    /// Subgroup of Sixth Degree Extensions" (PKC 2010).
    ///
    /// With `Sᵢ = zᵢ² + ξ·zᵢ₊₃²` and `Xᵢ = 2·zᵢ·zᵢ₊₃` the coefficients become `3S₀ − 2z₀`, `3ξX₂ + 2z₁`,
    /// `3S₁ − 2z₂`, `3X₀ + 2z₃`, `3S₂ − 2z₄`, `3X₁ + 2z₅`. Six products in Fq2, as
    /// `Sᵢ = (zᵢ + zᵢ₊₃)(zᵢ + ξ·zᵢ₊₃) − (1 + ξ)·zᵢ·zᵢ₊₃`.
    #[inline(never)]
    #[target_feature(enable = "avx512f,avx512dq,avx512vl,avx512ifma,avx512vbmi2")]
    unsafe fn cyclotomic_squared(&self) -> Self {
        // SAFETY: as the caller promises. In multiples of p: products are below 2.6, settled values below 1.4,
        // products of them below 2.1, and ξ times a product, raw, below 27.
        unsafe {
            let z = &self.coefficients;
            let (mut squares, mut products) = ([z[0]; 3], [z[0]; 3]);
            for i in 0..3 {
                let (a, b) = (z[i], z[i + 3]);
                let product = dot([&a.factor()], [&b.factor()]);
                let sum = a.plus(b).reduced().factor();
                let shifted = a.plus(E::times_xi_raw(b)).settle().factor();
                let both = product.plus(product.times_xi());
                squares[i] = dot([&sum], [&shifted]).minus::<4>(both);
                products[i] = product;
            }
            let mut power = *self;
            products = [products[2].times_xi(), products[0], products[1]];
            for i in 0..3 {
                // Squares are below 6.1: less than 18.3 + 6, and at least 6 − 5.2.
                let triple = squares[i].shifted::<1>().plus(squares[i]);
                let twice = z[2 * i].shifted::<1>();
                power.coefficients[2 * i] = triple.minus::<6>(twice).settle();
                // Less than 6·2.1 + 2·2.6.
                let triple = products[i].shifted::<1>().plus(products[i]);
                let half = triple.plus(z[2 * i + 1]);
                power.coefficients[2 * i + 1] = half.shifted::<1>().settle();
            }
            power
        }
    }
}

impl<E: Tower<L, N>, const L: usize, const N: usize> Cyclotomic<E, L, N> for Accumulator<E, L, N> {
    type Frobenius = FrobeniusConstantsX8<E, L, N>;

    #[inline(always)]
    unsafe fn times(&self, other: &Self) -> Self {
        let mut product = *self;
        // SAFETY: as the caller promises; so below.
        unsafe { product.multiply(other) }
        product
    }

    #[inline(always)]
    unsafe fn cyclotomic_square(&self) -> Self {
        // SAFETY: see above.
        unsafe { self.cyclotomic_squared() }
    }

    #[inline(always)]
    unsafe fn conjugate(&self) -> Self {
        let mut conjugate = *self;
        for coefficient in conjugate.coefficients.iter_mut().skip(1).step_by(2) {
            // SAFETY: see above; coefficients are below 2.6·p.
            *coefficient = unsafe { coefficient.negated::<3>().settle() };
        }
        conjugate
    }

    #[inline(always)]
    unsafe fn frobenius<const POWER: usize>(&self, constants: &Self::Frobenius) -> Self {
        let mut power = *self;
        // SAFETY: see above.
        unsafe {
            if POWER % 2 == 1 {
                for coefficient in &mut power.coefficients {
                    *coefficient = coefficient.conjugated();
                }
            }
            let factors = &constants.0[POWER - 1];
            for (coefficient, factor) in power.coefficients[1..].iter_mut().zip(factors) {
                *coefficient = dot([&coefficient.factor()], [factor]);
            }
        }
        power
    }
}
