//! Eight elements of `Fq12 = Fq2(w)`, w⁶ = ξ, one in each lane.

use std::arch::x86_64::*;

use ark_ff::{AdditiveGroup, Fp2};

use super::super::field::Fp;
use super::super::field2::Quadratic;
use super::super::vector_field::{Layout, VectorField};
use super::fq2::{Factor, dot};
use super::lanes::{Element, element};
use super::line_product::LineProduct;
use super::lines::{Line, MonicLine};
use super::tower::{Tower, Twist};

/// Coefficients of w⁰ to w⁵, products each.
pub(super) struct Accumulator<E: Tower<L, N>, const L: usize, const N: usize> {
    pub(super) coefficients: [Quadratic<E, L, N>; 6],
}

/// Coefficients of 1, v and v² of an element of Fq6, as factors.
pub(super) type Six<E, const L: usize, const N: usize> = [Factor<E, L, N>; 3];

copied!(Accumulator);

// === impl Accumulator ===

/// # Safety
///
/// Every function: the instructions of this back end.
impl<E: Tower<L, N>, const L: usize, const N: usize> Accumulator<E, L, N> {
    #[inline(always)]
    unsafe fn factors(&self) -> [Factor<E, L, N>; 6] {
        let [a0, a1, a2, a3, a4, a5] = &self.coefficients;
        // SAFETY: as the caller promises.
        unsafe {
            [
                a0.factor(),
                a1.factor(),
                a2.factor(),
                a3.factor(),
                a4.factor(),
                a5.factor(),
            ]
        }
    }

    /// Multiplies by lines: six sums of three products.
    #[inline(never)]
    #[target_feature(enable = "avx512f,avx512dq,avx512vl,avx512ifma,avx512vbmi2")]
    unsafe fn multiply_by_line(&mut self, line: &Line<E, L, N>) {
        // SAFETY: as the caller promises.
        unsafe {
            let f = self.factors();
            let coefficients = &mut self.coefficients;
            // The line's terms at w⁰, at w² or w, and at w³; what passes w⁵ comes back times ξ.
            match E::TWIST {
                Twist::Multiplied => {
                    let (a, b, c) = (line.constant.factor(), line.x.factor(), line.y.factor());
                    let (xi_b, xi_c) = (line.x.times_xi().factor(), line.y.times_xi().factor());
                    coefficients[0] = dot([&f[0], &f[4], &f[3]], [&a, &xi_b, &xi_c]);
                    coefficients[1] = dot([&f[1], &f[5], &f[4]], [&a, &xi_b, &xi_c]);
                    coefficients[2] = dot([&f[2], &f[0], &f[5]], [&a, &b, &xi_c]);
                    coefficients[3] = dot([&f[3], &f[1], &f[0]], [&a, &b, &c]);
                    coefficients[4] = dot([&f[4], &f[2], &f[1]], [&a, &b, &c]);
                    coefficients[5] = dot([&f[5], &f[3], &f[2]], [&a, &b, &c]);
                }
                Twist::Divided => {
                    let (a, b, c) = (line.y.factor(), line.x.factor(), line.constant.factor());
                    let (xi_b, xi_c) = (
                        line.x.times_xi().factor(),
                        line.constant.times_xi().factor(),
                    );
                    coefficients[0] = dot([&f[0], &f[5], &f[3]], [&a, &xi_b, &xi_c]);
                    coefficients[1] = dot([&f[1], &f[0], &f[4]], [&a, &b, &xi_c]);
                    coefficients[2] = dot([&f[2], &f[1], &f[5]], [&a, &b, &xi_c]);
                    coefficients[3] = dot([&f[3], &f[2], &f[0]], [&a, &b, &c]);
                    coefficients[4] = dot([&f[4], &f[3], &f[1]], [&a, &b, &c]);
                    coefficients[5] = dot([&f[5], &f[4], &f[2]], [&a, &b, &c]);
                }
            }
        }
    }

    /// Multiplies by lines whose term in y is one: six sums of two products, plus the element's own terms.
    #[inline(never)]
    #[target_feature(enable = "avx512f,avx512dq,avx512vl,avx512ifma,avx512vbmi2")]
    unsafe fn multiply_by_monic_line(&mut self, line: &MonicLine<E, L, N>) {
        // SAFETY: as the caller promises. Sums are below 2.6 + 2.6 or 2.6 + 1.4 times p.
        unsafe {
            let f = self.factors();
            let before = self.coefficients;
            let coefficients = &mut self.coefficients;
            let (a, xi_a) = (line.constant.factor(), line.constant.times_xi().factor());
            let (b, xi_b) = (line.x.factor(), line.x.times_xi().factor());
            match E::TWIST {
                // The constant at w⁰, x at w², one at w³.
                Twist::Multiplied => {
                    coefficients[0] = dot([&f[0], &f[4]], [&a, &xi_b]);
                    coefficients[1] = dot([&f[1], &f[5]], [&a, &xi_b]);
                    coefficients[2] = dot([&f[2], &f[0]], [&a, &b]);
                    coefficients[3] = dot([&f[3], &f[1]], [&a, &b]);
                    coefficients[4] = dot([&f[4], &f[2]], [&a, &b]);
                    coefficients[5] = dot([&f[5], &f[3]], [&a, &b]);
                    for i in 0..3 {
                        let wrapped = before[i + 3].times_xi();
                        coefficients[i] = coefficients[i].plus(wrapped).reduced();
                        coefficients[i + 3] = coefficients[i + 3].plus(before[i]).reduced();
                    }
                }
                // The line has one at w⁰, the term in x at w, the constant at w³.
                Twist::Divided => {
                    coefficients[0] = dot([&f[5], &f[3]], [&xi_b, &xi_a]);
                    coefficients[1] = dot([&f[0], &f[4]], [&b, &xi_a]);
                    coefficients[2] = dot([&f[1], &f[5]], [&b, &xi_a]);
                    coefficients[3] = dot([&f[2], &f[0]], [&b, &a]);
                    coefficients[4] = dot([&f[3], &f[1]], [&b, &a]);
                    coefficients[5] = dot([&f[4], &f[2]], [&b, &a]);
                    for (coefficient, before) in coefficients.iter_mut().zip(before) {
                        *coefficient = coefficient.plus(before).reduced();
                    }
                }
            }
        }
    }

    /// Squares: with f = a + b·w over Fq6, `f² = (a + b)(a + v·b) − ab − v·ab + 2ab·w`.
    #[inline(never)]
    #[target_feature(enable = "avx512f,avx512dq,avx512vl,avx512ifma,avx512vbmi2")]
    pub(super) unsafe fn squared(&mut self) {
        // SAFETY: as the caller promises. In multiples of p: coefficients are below 2.6, settled
        // values below 1.4.
        unsafe {
            let [a0, b0, a1, b1, a2, b2] = self.coefficients;
            let a = [a0.factor(), a1.factor(), a2.factor()];
            let b = [b0.factor(), b1.factor(), b2.factor()];
            let (xi_b1, xi_b2) = (b1.times_xi(), b2.times_xi());
            let t = multiply_six(&a, &b, &[xi_b1.factor(), xi_b2.factor()]);

            let sum = [
                a0.plus(b0).settle().factor(),
                a1.plus(b1).settle().factor(),
                a2.plus(b2).settle().factor(),
            ];
            let m1 = a1.plus(b0).settle();
            let m2 = a2.plus(b1).settle();
            let shifted = [a0.plus(xi_b2).settle().factor(), m1.factor(), m2.factor()];
            let xi = [m1.times_xi().factor(), m2.times_xi().factor()];
            let s = multiply_six(&sum, &shifted, &xi);
            self.coefficients = [
                s[0].minus::<5>(t[0].plus(t[2].times_xi())).settle(),
                t[0].shifted::<1>().settle(),
                s[1].minus::<6>(t[1].plus(t[0])).settle(),
                t[1].shifted::<1>().settle(),
                s[2].minus::<6>(t[2].plus(t[1])).settle(),
                t[2].shifted::<1>().settle(),
            ];
        }
    }

    /// Multiplies by another: six sums of six products.
    #[inline(never)]
    #[target_feature(enable = "avx512f,avx512dq,avx512vl,avx512ifma,avx512vbmi2")]
    pub(super) unsafe fn multiply(&mut self, other: &Self) {
        // SAFETY: as the caller promises.
        unsafe {
            let a = self.factors();
            let b = other.factors();
            let mut wrapped = b;
            for (wrapped, coefficient) in wrapped.iter_mut().zip(&other.coefficients) {
                *wrapped = coefficient.times_xi().factor();
            }
            for k in 0..6 {
                let mut terms = [&b[0]; 6];
                for i in 0..6 {
                    terms[i] = if i <= k {
                        &b[k - i]
                    } else {
                        &wrapped[6 + k - i]
                    };
                }
                self.coefficients[k] = dot([&a[0], &a[1], &a[2], &a[3], &a[4], &a[5]], terms);
            }
        }
    }

    /// The product of all lanes, in every lane.
    #[inline(never)]
    #[target_feature(enable = "avx512f,avx512dq,avx512vl,avx512ifma,avx512vbmi2")]
    unsafe fn product_of_lanes(mut self) -> Self {
        // SAFETY: as the caller promises.
        unsafe {
            let rotations = [
                _mm512_set_epi64(3, 2, 1, 0, 7, 6, 5, 4),
                _mm512_set_epi64(1, 0, 7, 6, 5, 4, 3, 2),
                _mm512_set_epi64(0, 7, 6, 5, 4, 3, 2, 1),
            ];
            for rotation in rotations {
                let mut other = self;
                for coefficient in &mut other.coefficients {
                    *coefficient = coefficient.permuted(rotation);
                }
                self.multiply(&other);
            }
            self
        }
    }
}

/// A product in Fq6; `xi_b` are ξ times the last two coefficients of b.
///
/// # Safety
///
/// The instructions of this back end.
#[inline(always)]
pub(super) unsafe fn multiply_six<E: Tower<L, N>, const L: usize, const N: usize>(
    a: &Six<E, L, N>,
    b: &Six<E, L, N>,
    xi_b: &[Factor<E, L, N>; 2],
) -> [Quadratic<E, L, N>; 3] {
    // SAFETY: as the caller promises.
    unsafe {
        [
            dot([&a[0], &a[1], &a[2]], [&b[0], &xi_b[1], &xi_b[0]]),
            dot([&a[0], &a[1], &a[2]], [&b[1], &b[0], &xi_b[1]]),
            dot([&a[0], &a[1], &a[2]], [&b[2], &b[1], &b[0]]),
        ]
    }
}

impl<E: Tower<L, N>, const L: usize, const N: usize> LineProduct<E, L, N> for Accumulator<E, L, N> {
    #[inline(always)]
    unsafe fn one() -> Self {
        // SAFETY: as the caller promises; so below.
        unsafe {
            let mut coefficients = [Quadratic::nothing(); 6];
            coefficients[0] = Quadratic::unit();
            Self { coefficients }
        }
    }

    #[inline(always)]
    unsafe fn square(&mut self) {
        // SAFETY: see above.
        unsafe { self.squared() }
    }

    #[inline(always)]
    unsafe fn multiply_by_lines(&mut self, line: &Line<E, L, N>, lanes: __mmask8) {
        // SAFETY: see above.
        unsafe {
            if lanes == 0xff {
                self.multiply_by_line(line);
            } else {
                self.multiply_by_line(&line.without(!lanes));
            }
        }
    }

    /// Other lanes multiply by w³ or one.
    #[inline(always)]
    unsafe fn multiply_by_monic_lines(&mut self, line: &MonicLine<E, L, N>, _: __mmask8) {
        // SAFETY: see above.
        unsafe { self.multiply_by_monic_line(line) }
    }

    #[inline(always)]
    unsafe fn value(self) -> Element<E, L, N>
    where
        Fp<E::Base, L, N>: Layout<E::Base, N>,
    {
        let mut coefficients = [Fp2::<E>::ZERO; 6];
        // SAFETY: see above.
        unsafe {
            let product = self.product_of_lanes();
            for (out, coefficient) in coefficients.iter_mut().zip(product.coefficients) {
                *out = coefficient.to_ark()[0];
            }
        }
        element::<E, L, N>(coefficients)
    }
}
