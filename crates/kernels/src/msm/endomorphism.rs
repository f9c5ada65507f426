//! The endomorphism `φ(x, y) = (β·x, y)` of curves with a = 0, and scalars split by it
//! (Gallant, Lambert, Vanstone, "Faster Point Multiplication on Elliptic Curves with Efficient
//! Endomorphisms", CRYPTO 2001): on the subgroup of order r φ multiplies by a cube root of unity λ,
//! and `k = k₁ + k₂·λ mod r` with halves of half the bits.

use std::any::{Any, TypeId};
use std::collections::HashMap;
use std::sync::{Mutex, OnceLock, PoisonError};

use ark_ec::AffineRepr;
use ark_ec::short_weierstrass::{Affine, SWCurveConfig};
use ark_ff::{Field, PrimeField, Zero};
use num_bigint::{BigInt, BigUint, Sign};
use num_integer::Integer;

use super::words::{add, subtract};

/// Bits that the reciprocals `2^SHIFT·b/r` are scaled by, a multiple of 64. With k < 2²⁵⁶ their
/// rounding shifts a quotient by less than 2⁻⁶⁴.
const SHIFT: usize = 320;

/// A curve's endomorphism and the short lattice basis that splits scalars.
#[derive(Clone, Debug)]
pub(crate) struct Endomorphism<P: SWCurveConfig> {
    /// The cube root of unity that multiplies x.
    pub(crate) beta: P::BaseField,
    /// The largest magnitude of a half.
    pub(crate) max_half: u128,
    /// Short vectors (a, b) with a + b·λ = 0 mod r.
    basis: [[Signed; 2]; 2],
    /// The quotients' factors: `2^SHIFT·b₂/r` and `−2^SHIFT·b₁/r`, rounded.
    reciprocals: [([u64; 4], bool); 2],
}

/// A number by magnitude and sign.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Signed {
    pub(crate) magnitude: u128,
    pub(crate) negative: bool,
}

// === impl Endomorphism ===

impl<P: SWCurveConfig> Endomorphism<P> {
    /// The curve's endomorphism, found at the first call.
    pub(crate) fn of_curve() -> Option<&'static Self> {
        type Found = HashMap<TypeId, &'static (dyn Any + Send + Sync)>;
        static FOUND: OnceLock<Mutex<Found>> = OnceLock::new();
        let mut found = FOUND
            .get_or_init(Mutex::default)
            .lock()
            .unwrap_or_else(PoisonError::into_inner);
        found
            .entry(TypeId::of::<P>())
            // One endomorphism for each curve of the crate, kept for the life of the program.
            .or_insert_with(|| Box::leak(Box::new(Self::new())))
            .downcast_ref::<Option<Self>>()
            .and_then(Option::as_ref)
    }

    /// The endomorphism of a curve whose scalars fit 256 bits; `None` unless a = 0 and φ acts on the subgroup
    /// as described.
    pub(crate) fn new() -> Option<Self> {
        if !P::COEFF_A.is_zero() || P::ScalarField::MODULUS_BIT_SIZE > 256 {
            return None;
        }
        let generator = Affine::<P>::generator();
        let lambda = cube_root_of_unity::<P::ScalarField>()?;
        let beta = cube_root_of_unity::<P::BaseField>()?;
        let image: Affine<P> = (generator * lambda).into();
        let beta = [beta, beta.square()]
            .into_iter()
            .find(|beta| Affine::new_unchecked(generator.x * beta, generator.y) == image)?;

        let order: BigUint = P::ScalarField::MODULUS.into();
        let lambda: BigUint = lambda.into_bigint().into();
        let basis = short_basis(&order.clone().into(), &lambda.into());
        let [[_, b1], [_, b2]] = &basis;
        let half = |column: usize| {
            // A quotient is off by ½ and a little: each coordinate stays below this.
            (basis[0][column].magnitude() + basis[1][column].magnitude()) / 2u32 + 2u32
        };
        let max_half = u128::try_from(half(0).max(half(1))).ok()?;
        // The halves must leave a bit of 128 to the digits' offset.
        if max_half >> 127 != 0 {
            return None;
        }
        let signed = |value: &BigInt| {
            Some(Signed {
                magnitude: u128::try_from(value.magnitude()).ok()?,
                negative: value.sign() == Sign::Minus,
            })
        };
        let reciprocal = |value: &BigInt| {
            let scaled: BigUint = ((value.magnitude() << SHIFT) + (&order >> 1)) / &order;
            let digits = scaled.to_u64_digits();
            let mut words = [0; 4];
            words.get_mut(..digits.len())?.copy_from_slice(&digits);
            Some((words, value.sign() == Sign::Minus))
        };
        Some(Self {
            beta,
            max_half,
            basis: [
                [signed(&basis[0][0])?, signed(b1)?],
                [signed(&basis[1][0])?, signed(b2)?],
            ],
            reciprocals: [reciprocal(b2)?, reciprocal(&-b1)?],
        })
    }

    /// `k₁` and `k₂` with `k = k₁ + k₂·λ mod r`, neither above [`max_half`](Self::max_half), of a
    /// canonical scalar.
    pub(crate) fn split(&self, scalar: &[u64]) -> [Signed; 2] {
        let mut k = [0; 4];
        k[..scalar.len()].copy_from_slice(scalar);
        let quotients = self.reciprocals.map(|(factor, negative)| Signed {
            magnitude: high_words(&k, &factor),
            negative,
        });
        // k − c₁·a₁ − c₂·a₂ and −c₁·b₁ − c₂·b₂, modulo 2^192: the results are far below.
        let mut halves = [[k[0], k[1], k[2]], [0; 3]];
        for (quotient, vector) in quotients.iter().zip(&self.basis) {
            for (half, coordinate) in halves.iter_mut().zip(vector) {
                let product = low_product(quotient.magnitude, coordinate.magnitude);
                if quotient.negative == coordinate.negative {
                    subtract(half, &product);
                } else {
                    add(half, &product);
                }
            }
        }
        halves.map(|mut half| {
            let negative = half[2] >> 63 == 1;
            if negative {
                let value = half;
                half = [0; 3];
                subtract(&mut half, &value);
            }
            Signed {
                magnitude: u128::from(half[0]) | u128::from(half[1]) << 64,
                negative,
            }
        })
    }
}

/// An element of order 3.
fn cube_root_of_unity<F: Field>() -> Option<F> {
    // x^((q − 1)/3) for small x until it is not 1; q is the field's size.
    let characteristic = BigUint::from_bytes_le(
        &F::characteristic()
            .iter()
            .flat_map(|word| word.to_le_bytes())
            .collect::<Vec<_>>(),
    );
    let (exponent, rest) =
        (characteristic.pow(F::extension_degree() as u32) - 1u32).div_rem(&3u32.into());
    if rest != BigUint::ZERO {
        return None;
    }
    let exponent = exponent.to_u64_digits();
    let base = F::BasePrimeField::from(2u64);
    (0..100u64)
        .map(|i| {
            // Elements outside the prime field too: all of the prime field may be cubes.
            let element = F::from_base_prime_field_elems((0..F::extension_degree()).map(|j| {
                if j == 0 {
                    base + F::BasePrimeField::from(i)
                } else {
                    F::BasePrimeField::from(j)
                }
            }));
            element
                .expect("one coordinate for each degree")
                .pow(&exponent)
        })
        .find(|root| *root != F::ONE && !root.is_zero())
}

/// Two short independent vectors (a, b) with a + b·λ = 0 mod r: the extended Euclidean algorithm
/// stopped in the middle (the paper's section 4).
fn short_basis(order: &BigInt, lambda: &BigInt) -> [[BigInt; 2]; 2] {
    let root = order.sqrt();
    // Rows (remainder, t): remainder = t·λ mod r.
    let mut rows = vec![
        (order.clone(), BigInt::ZERO),
        (lambda.clone(), BigInt::from(1)),
    ];
    while rows[rows.len() - 2].0 >= root {
        let [(before, t_before), (last, t)] = [&rows[rows.len() - 2], &rows[rows.len() - 1]];
        let quotient = before / last;
        rows.push((before - &quotient * last, t_before - &quotient * t));
    }
    let vector = |(remainder, t): &(BigInt, BigInt)| [remainder.clone(), -t];
    // The first row below the root, and the shorter of its neighbours.
    let middle = rows.len() - 2;
    let size = |(remainder, t): &(BigInt, BigInt)| remainder.magnitude().max(t.magnitude()).clone();
    let neighbour = if size(&rows[middle - 1]) <= size(&rows[middle + 1]) {
        middle - 1
    } else {
        middle + 1
    };
    let basis = [vector(&rows[middle]), vector(&rows[neighbour])];
    // Ordered so that a₁·b₂ − a₂·b₁ is r, not −r: the signs of the quotients depend on it.
    let [[a1, b1], [a2, b2]] = &basis;
    if (a1 * b2 - a2 * b1).sign() == Sign::Plus {
        basis
    } else {
        let [first, second] = basis;
        [second, first]
    }
}

/// `a·b / 2^SHIFT`, rounded.
fn high_words(a: &[u64; 4], b: &[u64; 4]) -> u128 {
    let mut product = [0u64; 8];
    for (i, x) in a.iter().enumerate() {
        let mut carry = 0u128;
        for (j, y) in b.iter().enumerate() {
            let sum = u128::from(*x) * u128::from(*y) + u128::from(product[i + j]) + carry;
            product[i + j] = sum as u64;
            carry = sum >> 64;
        }
        product[i + 4] = carry as u64;
    }
    let word = SHIFT / 64;
    let high = u128::from(product[word]) | u128::from(product[word + 1]) << 64;
    high + u128::from(product[word - 1] >> 63)
}

/// `a·b mod 2^192`.
fn low_product(a: u128, b: u128) -> [u64; 3] {
    let (a0, a1) = (a as u64, (a >> 64) as u64);
    let (b0, b1) = (b as u64, (b >> 64) as u64);
    let low = u128::from(a0) * u128::from(b0);
    // An overflow of the middle weighs 2^192.
    let middle = (u128::from(a0) * u128::from(b1)).wrapping_add(u128::from(a1) * u128::from(b0));
    let high = a1.wrapping_mul(b1);
    let second = (low >> 64) + u128::from(middle as u64);
    let third = high
        .wrapping_add((middle >> 64) as u64)
        .wrapping_add((second >> 64) as u64);
    [low as u64, second as u64, third]
}

#[cfg(test)]
mod tests {
    use super::*;
    use ark_ff::{AdditiveGroup, UniformRand};

    fn check<P: SWCurveConfig>() {
        let map = Endomorphism::<P>::new().expect("the curve has an endomorphism");
        let generator = Affine::<P>::generator();
        let image = Affine::<P>::new_unchecked(generator.x * map.beta, generator.y);
        let rng = &mut ark_std::test_rng();
        let mut scalars: Vec<P::ScalarField> = (0..8u64).map(Into::into).collect();
        scalars.extend((1..8u64).map(|k| -P::ScalarField::from(k)));
        scalars.extend((0..200).map(|_| P::ScalarField::rand(rng)));
        let mut two = P::ScalarField::ONE;
        for _ in 0..256 {
            two.double_in_place();
            scalars.push(two);
        }
        let value = |half: &Signed| {
            let magnitude = P::ScalarField::from(half.magnitude);
            if half.negative { -magnitude } else { magnitude }
        };
        for scalar in scalars {
            let halves = map.split(scalar.into_bigint().as_ref());
            assert!(halves.iter().all(|half| half.magnitude <= map.max_half));
            assert_eq!(
                generator * value(&halves[0]) + image * value(&halves[1]),
                generator * scalar
            );
        }
        // Numbers that are small, or whose negative is, are not split.
        for k in 1..8u64 {
            let halves = map.split((-P::ScalarField::from(k)).into_bigint().as_ref());
            assert_eq!((halves[0].magnitude, halves[0].negative), (k.into(), true));
            assert_eq!(halves[1].magnitude, 0);
        }
        for k in (0..32).flat_map(|bit| [1u64 << bit, (2 << bit) - 1]) {
            let halves = map.split(P::ScalarField::from(k).into_bigint().as_ref());
            assert_eq!((halves[0].magnitude, halves[0].negative), (k.into(), false));
            assert_eq!(halves[1].magnitude, 0);
        }
    }

    #[test]
    fn halves_make_up_the_scalar() {
        on_every_curve!(check);
    }
}
