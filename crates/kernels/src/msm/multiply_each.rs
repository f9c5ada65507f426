//! Multiples of points, each by a different number.

use ark_ec::short_weierstrass::{Affine, Projective, SWCurveConfig};
use ark_ec::{AffineRepr, CurveGroup};
use ark_ff::PrimeField;
use rayon::prelude::*;

use super::endomorphism::{Endomorphism, Signed};
use crate::portable::batch_add::batch_add_assign;
use crate::portable::inversion::Invertible;
use crate::{InstructionSet, MsmGroup};

/// Points of a task.
pub(crate) const CHUNK: usize = 64;

/// `numbers[i] · points[i]` for every i, on all threads of the current rayon pool: points that are
/// to be combined under random weights, where each is needed for itself.
///
/// Points must lie in the prime-order subgroup, or be the point at infinity. Its time depends on
/// both: do not use it where an attacker measures it and one of them is secret.
///
/// # Panics
///
/// If the slices differ in length.
pub fn multiply_each<G: MsmGroup>(points: &[G::Affine], numbers: &[u128]) -> Vec<G::Affine> {
    multiply_each_on::<G>(InstructionSet::current(), points, numbers)
}

/// Like [`multiply_each`], on a chosen back end.
///
/// # Panics
///
/// As for [`multiply_each`], and if this machine lacks the instructions.
pub fn multiply_each_on<G: MsmGroup>(
    set: InstructionSet,
    points: &[G::Affine],
    numbers: &[u128],
) -> Vec<G::Affine> {
    assert_eq!(points.len(), numbers.len(), "one number for each point");
    points
        .par_chunks(CHUNK)
        .zip(numbers.par_chunks(CHUNK))
        .flat_map_iter(|(points, numbers)| G::multiply_each_here(set, points, numbers))
        .collect()
}

/// `scalars[i] · points[i]` for every i, on all threads of the current rayon pool: as [`multiply_each`] for
/// scalars of any size.
///
/// Points must lie in the prime-order subgroup, or be the point at infinity. Its time depends on
/// both: do not use it where an attacker measures it and one of them is secret.
///
/// # Panics
///
/// If the slices differ in length.
pub fn scale_each<G: MsmGroup>(points: &[G::Affine], scalars: &[G::ScalarField]) -> Vec<G::Affine> {
    scale_each_on::<G>(InstructionSet::current(), points, scalars)
}

/// Like [`scale_each`], on a chosen back end.
///
/// # Panics
///
/// As for [`scale_each`], and if this machine lacks the instructions.
pub fn scale_each_on<G: MsmGroup>(
    set: InstructionSet,
    points: &[G::Affine],
    scalars: &[G::ScalarField],
) -> Vec<G::Affine> {
    assert_eq!(points.len(), scalars.len(), "one scalar for each point");
    points
        .par_chunks(CHUNK)
        .zip(scalars.par_chunks(CHUNK))
        .flat_map_iter(|(points, scalars)| G::scale_each_here(set, points, scalars))
        .collect()
}

/// Multiplies by halves of the scalars with `multiply`, or by arkworks' arithmetic on a curve without the
/// endomorphism.
pub(crate) fn by_halves<P: SWCurveConfig<BaseField: Invertible>>(
    points: &[Affine<P>],
    scalars: &[P::ScalarField],
    multiply: impl Fn(&[Affine<P>], &[u128]) -> Vec<Affine<P>>,
) -> Vec<Affine<P>> {
    let Some(endomorphism) = Endomorphism::<P>::of_curve() else {
        return scaled(points, scalars);
    };
    // All first halves and then all second ones: together they fill more lanes than each for themselves.
    let mut halves = vec![Affine::identity(); 2 * points.len()];
    let mut numbers = vec![0; 2 * points.len()];
    for (i, (point, scalar)) in points.iter().zip(scalars).enumerate() {
        let mut image = *point;
        image.x *= endomorphism.beta;
        let split = endomorphism.split(scalar.into_bigint().as_ref());
        for (place, (number, point)) in [i, points.len() + i]
            .into_iter()
            .zip(split.into_iter().zip([*point, image]))
        {
            halves[place] = if number.negative { -point } else { point };
            numbers[place] = number.magnitude;
        }
    }
    let mut left = multiply(&halves, &numbers);
    let right = left.split_off(points.len());
    batch_add_assign(&mut left, &right);
    left
}

/// Below this number, points are multiplied one by one: an inversion would cost more than it saves.
const FEW: usize = 8;
/// Bits of a digit.
const DIGIT_BITS: usize = 4;
/// Multiples of a point in a table: 1 to 8.
const MULTIPLES: usize = 1 << (DIGIT_BITS - 1);
/// Digits of a half, which is below 2¹²⁷.
const DIGITS: usize = 128 / DIGIT_BITS;

/// The same by portable arithmetic, on this thread: all points in step, so that their affine additions share
/// inversions.
pub(crate) fn scaled<P: SWCurveConfig<BaseField: Invertible>>(
    points: &[Affine<P>],
    scalars: &[P::ScalarField],
) -> Vec<Affine<P>> {
    let endomorphism = Endomorphism::<P>::of_curve();
    let (Some(endomorphism), FEW..) = (endomorphism, points.len()) else {
        let pairs = points.iter().zip(scalars);
        let multiples: Vec<Projective<P>> = pairs.map(|(point, scalar)| *point * scalar).collect();
        return Projective::normalize_batch(&multiples);
    };
    let mut tables = vec![points.to_vec()];
    while tables.len() < MULTIPLES {
        let mut next = tables[tables.len() - 1].clone();
        batch_add_assign(&mut next, points);
        tables.push(next);
    }
    let digits: Vec<[[i8; DIGITS]; 2]> = scalars
        .iter()
        .map(|scalar| {
            endomorphism
                .split(scalar.into_bigint().as_ref())
                .map(digits)
        })
        .collect();
    let mut sums = vec![Affine::identity(); points.len()];
    for place in (0..DIGITS).rev() {
        if place + 1 < DIGITS {
            for _ in 0..DIGIT_BITS {
                let same = sums.clone();
                batch_add_assign(&mut sums, &same);
            }
        }
        for half in 0..2 {
            let addend = |(i, digits): (usize, &[[i8; DIGITS]; 2])| {
                let digit = digits[half][place];
                if digit == 0 {
                    return Affine::identity();
                }
                let mut multiple = tables[usize::from(digit.unsigned_abs()) - 1][i];
                if half == 1 {
                    multiple.x *= endomorphism.beta;
                }
                if digit < 0 { -multiple } else { multiple }
            };
            let addends: Vec<_> = digits.iter().enumerate().map(addend).collect();
            batch_add_assign(&mut sums, &addends);
        }
    }
    sums
}

/// Signed digits of a number below 2¹²⁷, the lowest first: each in −7..=8, or in −8..=7 of a negative one.
fn digits(number: Signed) -> [i8; DIGITS] {
    let mut digits = [0; DIGITS];
    let mut carry = 0;
    for (i, digit) in digits.iter_mut().enumerate() {
        let bits = (number.magnitude >> (DIGIT_BITS * i)) as i8 & 15;
        *digit = bits + carry;
        carry = i8::from(*digit > MULTIPLES as i8);
        *digit -= carry << DIGIT_BITS;
        if number.negative {
            *digit = -*digit;
        }
    }
    digits
}

/// The same by arkworks' arithmetic, on this thread.
pub(crate) fn portable<P: SWCurveConfig>(points: &[Affine<P>], numbers: &[u128]) -> Vec<Affine<P>> {
    let multiples: Vec<Projective<P>> = points
        .iter()
        .zip(numbers)
        .map(|(point, number)| point.mul_bigint([*number as u64, (*number >> 64) as u64]))
        .collect();
    Projective::normalize_batch(&multiples)
}

#[cfg(test)]
mod tests {
    use super::*;
    use ark_ff::{One, UniformRand, Zero};

    /// The halves belong together on every machine, whatever multiplies by them.
    fn halves_make_the_multiples<P: SWCurveConfig<BaseField: Invertible>>() {
        let rng = &mut ark_std::test_rng();
        let mut scalars: Vec<P::ScalarField> = (0..20).map(|_| UniformRand::rand(rng)).collect();
        scalars.extend([P::ScalarField::zero(), P::ScalarField::one()]);
        scalars.push(-P::ScalarField::one());
        let points: Vec<_> = scalars.iter().map(|_| Projective::<P>::rand(rng)).collect();
        let mut points = Projective::normalize_batch(&points);
        points[0] = Affine::identity();
        let multiples = by_halves(&points, &scalars, portable);
        let expected: Vec<_> = points.iter().zip(&scalars).map(|(p, s)| *p * s).collect();
        assert_eq!(multiples, Projective::normalize_batch(&expected));
    }

    #[test]
    fn halves_make_the_multiples_on_every_curve() {
        halves_make_the_multiples::<ark_bn254::g1::Config>();
        halves_make_the_multiples::<ark_bls12_381::g1::Config>();
        halves_make_the_multiples::<ark_bls12_381::g2::Config>();
        halves_make_the_multiples::<ark_bls12_377::g1::Config>();
    }
}
