//! The curves: their towers of fields, the lengths of their loops, their final exponentiations.

use ark_ec::bls12::Bls12Config;
use ark_ec::bn::BnConfig;
use ark_ec::short_weierstrass::SWCurveConfig;
use ark_ff::{BitIteratorBE, Fp, Fp2, Fp2Config, Fp6Config, Fp12Config, MontBackend, MontConfig};

use super::fq2::Fq2;
use super::power::signed_digits;
use super::words::{below_modulus, difference, modular_difference, modular_sum, sum, times};

/// A curve with a pairing whose parameter is positive, and whose twist is `y² = x³ + b/ξ`:
/// Fq2 = Fq(u), u² = β; Fq12 = Fq2(w), w⁶ = ξ.
pub(crate) trait Curve<const N: usize>: Copy + 'static {
    /// The prime field: 4·p is below `2^(64·N)`, and so 4·p² below `p·R`.
    type Base: MontConfig<N>;
    /// Fq2.
    type Two: Fp2Config<Fp = Fp<MontBackend<Self::Base, N>, N>>;
    /// Fq6 = Fq2(v), v³ = ξ.
    type Six: Fp6Config<Fp2Config = Self::Two>;
    /// Fq12 = Fq6(w), w² = v.
    type Twelve: Fp12Config<Fp6Config = Self::Six>;
    /// The first group's curve.
    type G1: SWCurveConfig<BaseField = Fp<MontBackend<Self::Base, N>, N>>;
    /// The second group's curve, the twist.
    type G2: SWCurveConfig<BaseField = Fp2<Self::Two>>;
    /// −β: 1, or a number whose square times p² is below `p·R`.
    const MINUS_BETA: u64;
    /// The end of the loop and the final exponentiation, which the family of curves decides.
    const FAMILY: Family<Fq2<Self, N>>;

    /// Signed digits of the loop's length, the highest first, without the leading one.
    fn loop_digits() -> Vec<i8>;

    /// Signed odd digits, and zeros, of the curve's parameter, the highest first.
    fn parameter_digits() -> Vec<i8>;

    /// `ξ·a`.
    fn times_xi(a: Fq2<Self, N>) -> Fq2<Self, N>;
}

/// The family of a curve, which determines the end of the Miller loop and the final exponentiation.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Family<F> {
    /// Barreto, Lynn, Scott, of embedding degree 12.
    Bls12,
    /// Barreto, Naehrig: with the constants by which coordinates of a point are multiplied, after
    /// conjugation, to apply the Frobenius endomorphism to it.
    Bn([F; 2]),
}

impl Curve<6> for ark_bls12_377::Bls12_377 {
    type Base = ark_bls12_377::FqConfig;
    type Two = ark_bls12_377::Fq2Config;
    type Six = ark_bls12_377::Fq6Config;
    type Twelve = ark_bls12_377::Fq12Config;
    type G1 = ark_bls12_377::g1::Config;
    type G2 = ark_bls12_377::g2::Config;
    const MINUS_BETA: u64 = 5;
    const FAMILY: Family<Fq2<Self, 6>> = Family::Bls12;

    fn loop_digits() -> Vec<i8> {
        BitIteratorBE::without_leading_zeros(ark_bls12_377::Config::X)
            .skip(1)
            .map(i8::from)
            .collect()
    }

    fn parameter_digits() -> Vec<i8> {
        // Few of its bits are set.
        signed_digits(ark_bls12_377::Config::X[0], 2)
    }

    /// ξ = u, u² = −5.
    #[inline(always)]
    fn times_xi(a: Fq2<Self, 6>) -> Fq2<Self, 6> {
        type Base = ark_bls12_377::FqConfig;
        let [a0, a1] = a.words();
        let two = modular_sum::<Base, 6>(a1, a1);
        let four = modular_sum::<Base, 6>(&two, &two);
        let five = modular_sum::<Base, 6>(&four, a1);
        Fq2::of_words(modular_difference::<Base, 6>(&[0; 6], &five), *a0)
    }
}

impl Curve<4> for ark_bn254::Bn254 {
    type Base = ark_bn254::FqConfig;
    type Two = ark_bn254::Fq2Config;
    type Six = ark_bn254::Fq6Config;
    type Twelve = ark_bn254::Fq12Config;
    type G1 = ark_bn254::g1::Config;
    type G2 = ark_bn254::g2::Config;
    const MINUS_BETA: u64 = 1;
    const FAMILY: Family<Fq2<Self, 4>> = Family::Bn([
        Fq2(ark_bn254::Config::TWIST_MUL_BY_Q_X),
        Fq2(ark_bn254::Config::TWIST_MUL_BY_Q_Y),
    ]);

    fn loop_digits() -> Vec<i8> {
        let digits = ark_bn254::Config::ATE_LOOP_COUNT.iter();
        digits.rev().skip(1).copied().collect()
    }

    fn parameter_digits() -> Vec<i8> {
        signed_digits(ark_bn254::Config::X[0], 4)
    }

    /// ξ = 9 + u.
    #[inline(always)]
    fn times_xi(a: Fq2<Self, 4>) -> Fq2<Self, 4> {
        let [a0, a1] = a.words();
        let modulus = &ark_bn254::FqConfig::MODULUS.0;
        let minus_a1 = difference(modulus, a1, &mut 0);
        Fq2::of_words(nine_times(a0, &minus_a1), nine_times(a1, a0))
    }
}

/// `9·a + b` modulo BN254's p, of numbers that are at most p.
#[inline(always)]
fn nine_times(a: &[u64; 4], b: &[u64; 4]) -> [u64; 4] {
    let mut carry = 0;
    let nine = times(a, 9, &mut carry);
    let mut carry_of_sum = 0;
    let value = sum(&nine, b, &mut carry_of_sum);
    let high = carry + u64::from(carry_of_sum);
    // The sum is at most 10·p. In units of 2²⁵² p is 3.0244 and the sum below `top` + 1: the quotient
    // is at most one too small, 84/256 being a little less than 1/3.0244.
    let top = high << 4 | value[3] >> 60;
    let quotient = (top * 84) >> 8;
    let multiple = times(&ark_bn254::FqConfig::MODULUS.0, quotient, &mut 0);
    let rest = difference(&value, &multiple, &mut 0);
    below_modulus::<ark_bn254::FqConfig, 4>(&rest)
}

#[cfg(test)]
mod tests {
    use super::*;
    use ark_ff::{AdditiveGroup, BigInt, Field, PrimeField, UniformRand};

    #[test]
    fn xi_is_multiplied_as_arkworks_does() {
        let rng = &mut ark_std::test_rng();
        // The words 1, as arithmetic sees them.
        let least = ark_bn254::Fq::new_unchecked(BigInt::from(1u64));
        let mut coefficients = vec![ark_bn254::Fq::ZERO, ark_bn254::Fq::ONE, least, -least];
        // Both sides of every multiple of p that 9·a and 9·a + b may pass: words that are about p·k/9 and
        // p·k/10.
        for divisor in [9u64, 10] {
            for i in 1..divisor {
                let part = ark_bn254::Fq::from(i) / ark_bn254::Fq::from(divisor);
                let raw = ark_bn254::Fq::new_unchecked(part.into_bigint());
                coefficients.extend([raw, raw + least, raw - least]);
            }
        }
        coefficients.extend((0..50).map(|_| ark_bn254::Fq::rand(rng)));
        for c0 in &coefficients {
            for c1 in &coefficients {
                let element = ark_bn254::Fq2::new(*c0, *c1);
                let expected = ark_bn254::Fq6Config::mul_fp2_by_nonresidue(element);
                assert_eq!(ark_bn254::Bn254::times_xi(Fq2(element)).0, expected);
            }
        }
    }
}
