//! The curves: their towers of fields, twists and loops.

use ark_ec::bls12::Bls12Config;
use ark_ec::bn::BnConfig;
use ark_ec::short_weierstrass::SWCurveConfig;
use ark_ff::{Fp2, Fp6Config, Fp12Config};

use super::super::field::Fp;
use super::super::field2::{Extension, Quadratic};
use super::super::modulus::Scalar;
use super::fq2::{Factor, dot};

/// The type of a curve's twist, which determines the powers of w that a line's coefficients have.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Twist {
    /// `y² = x³ + b·ξ`: lines are constant + (x)·w² + (y)·w³.
    Multiplied,
    /// `y² = x³ + b/ξ`: lines are (y) + (x)·w + constant·w³.
    Divided,
}

impl Twist {
    /// The power of w that a line's term in x has.
    #[inline(always)]
    pub(super) const fn power_of_x(self) -> usize {
        match self {
            Self::Multiplied => 2,
            Self::Divided => 1,
        }
    }
}

/// The family of a curve, which determines the end of the Miller loop and the final exponentiation.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Family {
    /// Barreto, Lynn, Scott, of embedding degree 12.
    Bls12,
    /// Barreto, Naehrig.
    Bn,
}

/// A curve with a pairing, known by the configuration of its field Fq2:
/// Fq12 = Fq2(w), w⁶ = ξ.
pub(crate) trait Tower<const L: usize, const N: usize>: Extension<L, N> {
    /// Fq6 = Fq2(v), v³ = ξ.
    type Six: Fp6Config<Fp2Config = Self>;
    /// Fq12 = Fq6(w), w² = v.
    type Twelve: Fp12Config<Fp6Config = Self::Six>;
    /// The first group's curve.
    type G1: SWCurveConfig<BaseField = Scalar<Self::Base, N>>;
    /// The second group's curve, the twist.
    type G2: SWCurveConfig<BaseField = Fp2<Self>>;
    const TWIST: Twist;
    const FAMILY: Family;
    /// Signed digits of the loop's length |x|, or 6x + 2, the highest first, without the leading one.
    const LOOP: &'static [i8];
    /// Digits of the curve's parameter |x|, the highest first: zero, or odd and below 8 in magnitude.
    const PARAMETER: &'static [i8];
    const PARAMETER_IS_NEGATIVE: bool;
    /// The constants by which coordinates of a point are multiplied, after conjugation, to apply
    /// the Frobenius endomorphism to it. Only loops of [`Family::Bn`] use them.
    const TWIST_FROBENIUS: Option<[Fp2<Self>; 2]>;

    /// `ξ·a` of a value below `2.6·p`: below `27·p`, raw.
    ///
    /// # Safety
    ///
    /// The instructions of this back end.
    unsafe fn times_xi_raw(a: Quadratic<Self, L, N>) -> Quadratic<Self, L, N>;

    /// `3·b·a`, a product, of a square `a`; `three_b` is 3·b of the twist's equation.
    ///
    /// # Safety
    ///
    /// The instructions of this back end.
    #[inline(always)]
    unsafe fn times_three_b(
        a: Quadratic<Self, L, N>,
        three_b: &Factor<Self, L, N>,
    ) -> Quadratic<Self, L, N> {
        // SAFETY: as the caller promises.
        unsafe { dot([&a.factor()], [three_b]) }
    }
}

impl Tower<8, 6> for ark_bls12_381::Fq2Config {
    type Six = ark_bls12_381::Fq6Config;
    type Twelve = ark_bls12_381::Fq12Config;
    type G1 = ark_bls12_381::g1::Config;
    type G2 = ark_bls12_381::g2::Config;
    const TWIST: Twist = Twist::Multiplied;
    const FAMILY: Family = Family::Bls12;
    const LOOP: &'static [i8] = &bits::<63>(ark_bls12_381::Config::X[0]);
    const PARAMETER: &'static [i8] = &bits::<64>(ark_bls12_381::Config::X[0]);
    const PARAMETER_IS_NEGATIVE: bool = ark_bls12_381::Config::X_IS_NEGATIVE;
    const TWIST_FROBENIUS: Option<[Fp2<Self>; 2]> = None;

    /// ξ = 1 + u.
    #[inline(always)]
    unsafe fn times_xi_raw(a: Quadratic<Self, 8, 6>) -> Quadratic<Self, 8, 6> {
        // SAFETY: as the caller promises.
        unsafe {
            Quadratic {
                c0: a.c0.minus::<3>(a.c1),
                c1: a.c0.plus(a.c1),
            }
        }
    }

    /// b is 4·ξ.
    #[inline(always)]
    unsafe fn times_three_b(
        a: Quadratic<Self, 8, 6>,
        _: &Factor<Self, 8, 6>,
    ) -> Quadratic<Self, 8, 6> {
        // SAFETY: as the caller promises.
        unsafe {
            let xi = Self::times_xi_raw(a);
            xi.shifted::<3>().plus(xi.shifted::<2>()).settle()
        }
    }
}

impl Tower<8, 6> for ark_bls12_377::Fq2Config {
    type Six = ark_bls12_377::Fq6Config;
    type Twelve = ark_bls12_377::Fq12Config;
    type G1 = ark_bls12_377::g1::Config;
    type G2 = ark_bls12_377::g2::Config;
    const TWIST: Twist = Twist::Divided;
    const FAMILY: Family = Family::Bls12;
    const LOOP: &'static [i8] = &bits::<63>(ark_bls12_377::Config::X[0]);
    const PARAMETER: &'static [i8] = &bits::<64>(ark_bls12_377::Config::X[0]);
    const PARAMETER_IS_NEGATIVE: bool = ark_bls12_377::Config::X_IS_NEGATIVE;
    const TWIST_FROBENIUS: Option<[Fp2<Self>; 2]> = None;

    /// ξ = u, u² = −5.
    #[inline(always)]
    unsafe fn times_xi_raw(a: Quadratic<Self, 8, 6>) -> Quadratic<Self, 8, 6> {
        // SAFETY: as the caller promises.
        unsafe {
            let five = a.c1.shifted::<2>().plus(a.c1);
            Quadratic {
                c0: Fp::zero_limbs().minus::<20>(five),
                c1: a.c0,
            }
        }
    }
}

impl Tower<5, 4> for ark_bn254::Fq2Config {
    type Six = ark_bn254::Fq6Config;
    type Twelve = ark_bn254::Fq12Config;
    type G1 = ark_bn254::g1::Config;
    type G2 = ark_bn254::g2::Config;
    const TWIST: Twist = Twist::Divided;
    const FAMILY: Family = Family::Bn;
    const LOOP: &'static [i8] = &reversed::<64>(ark_bn254::Config::ATE_LOOP_COUNT);
    const PARAMETER: &'static [i8] = &signed_odd::<63>(ark_bn254::Config::X[0]);
    const PARAMETER_IS_NEGATIVE: bool = ark_bn254::Config::X_IS_NEGATIVE;
    const TWIST_FROBENIUS: Option<[Fp2<Self>; 2]> = Some([
        ark_bn254::Config::TWIST_MUL_BY_Q_X,
        ark_bn254::Config::TWIST_MUL_BY_Q_Y,
    ]);

    /// ξ = 9 + u.
    #[inline(always)]
    unsafe fn times_xi_raw(a: Quadratic<Self, 5, 4>) -> Quadratic<Self, 5, 4> {
        // SAFETY: as the caller promises.
        unsafe {
            let nine = a.shifted::<3>().plus(a);
            Quadratic {
                c0: nine.c0.minus::<3>(a.c1),
                c1: nine.c1.plus(a.c0),
            }
        }
    }
}

/// The lowest bits of a number of 64 bits, the highest first.
const fn bits<const COUNT: usize>(number: u64) -> [i8; COUNT] {
    assert!(number >> 63 == 1, "64 bits");
    let mut digits = [0; COUNT];
    let mut i = 0;
    while i < COUNT {
        digits[i] = (number >> (COUNT - 1 - i) & 1) as i8;
        i += 1;
    }
    digits
}

/// `COUNT` digits, given the lowest first, the highest first, without the leading one.
const fn reversed<const COUNT: usize>(digits: &[i8]) -> [i8; COUNT] {
    assert!(
        digits.len() == COUNT + 1 && digits[COUNT] == 1,
        "a leading one"
    );
    let mut out = [0; COUNT];
    let mut i = 0;
    while i < COUNT {
        out[i] = digits[COUNT - 1 - i];
        i += 1;
    }
    out
}

/// A number's signed digits, the highest first: odd ones below 8 in magnitude, and at least three zeros
/// between any two of them.
const fn signed_odd<const COUNT: usize>(number: u64) -> [i8; COUNT] {
    let mut rest = number as i128;
    let mut digits = [0; COUNT];
    let mut i = COUNT;
    while i > 0 {
        i -= 1;
        if rest & 1 == 1 {
            let digit = rest & 15;
            let digit = if digit < 8 { digit } else { digit - 16 };
            digits[i] = digit as i8;
            rest -= digit;
        }
        rest >>= 1;
    }
    assert!(rest == 0 && digits[0] > 0, "as many digits");
    digits
}
