//! Decoding of untrusted field elements and points.

use ark_ff::{BigInt, PrimeField};
use ark_serialize::{CanonicalDeserialize, Compress, Validate};

use crate::{ELEMENT_BYTES, Field, Invalid, POINT_BYTES, Point, Scalar};

/// The elements of a blob or a cell.
pub(crate) fn scalars(bytes: &[u8]) -> Result<Vec<Scalar>, Invalid> {
    let (elements, rest) = bytes.as_chunks::<ELEMENT_BYTES>();
    debug_assert!(rest.is_empty(), "whole elements");
    elements
        .iter()
        .enumerate()
        .map(|(index, element)| scalar(element).ok_or(Invalid::NotCanonical(index)))
        .collect()
}

/// A number below the modulus.
fn scalar(bytes: &[u8; ELEMENT_BYTES]) -> Option<Scalar> {
    let mut words = [0; 4];
    for (word, bytes) in words.iter_mut().rev().zip(bytes.as_chunks::<8>().0) {
        *word = u64::from_be_bytes(*bytes);
    }
    Scalar::from_bigint(BigInt::new(words))
}

/// A point of the group of prime order, or the point at infinity. Each has one encoding.
pub(crate) fn point(bytes: &[u8; POINT_BYTES], field: Field) -> Result<Point, Invalid> {
    let point = Point::deserialize_with_mode(&bytes[..], Compress::Yes, Validate::No)
        .map_err(|_| Invalid::NotAPoint(field))?;
    match point.is_in_correct_subgroup_assuming_on_curve() {
        true => Ok(point),
        false => Err(Invalid::NotInSubgroup(field)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use ark_ec::AffineRepr;
    use ark_ff::{BigInteger, UniformRand, Zero};
    use ark_serialize::CanonicalSerialize;

    fn compressed(point: Point) -> [u8; POINT_BYTES] {
        let mut bytes = [0; POINT_BYTES];
        point.serialize_compressed(&mut bytes[..]).unwrap();
        bytes
    }

    fn read(bytes: [u8; POINT_BYTES]) -> Result<Point, Invalid> {
        point(&bytes, Field::Proof)
    }

    const NOT_A_POINT: Result<Point, Invalid> = Err(Invalid::NotAPoint(Field::Proof));

    #[test]
    fn points_are_read_back() {
        let rng = &mut ark_std::test_rng();
        for point in [Point::zero(), Point::generator(), Point::rand(rng)] {
            assert_eq!(read(compressed(point)), Ok(point));
        }
    }

    /// Flags of the uncompressed form, of infinity with a coordinate or a sign, and a coordinate that
    /// is reduced by the modulus.
    #[test]
    fn other_encodings_are_refused() {
        let good = compressed(Point::generator());
        let infinity = compressed(Point::zero());
        for (bytes, bits) in [
            (good, 0x80),
            (good, 0x40),
            (infinity, 0x80),
            (infinity, 0x20),
        ] {
            let mut changed = bytes;
            changed[0] ^= bits;
            assert_eq!(read(changed), NOT_A_POINT, "{bits:#x}");
        }
        for at in 0..POINT_BYTES {
            let mut changed = infinity;
            changed[at] |= 1;
            assert_eq!(read(changed), NOT_A_POINT, "byte {at}");
        }
        // The smallest abscissa of a point, plus the modulus, which has 381 bits of 383.
        let abscissa = (0u64..)
            .map(ark_bls12_381::Fq::from)
            .find(|x| Point::get_ys_from_x_unchecked(*x).is_some())
            .unwrap();
        let mut number = abscissa.into_bigint();
        number.add_with_carry(&ark_bls12_381::Fq::MODULUS);
        let mut bytes: [u8; POINT_BYTES] = number.to_bytes_be().try_into().unwrap();
        bytes[0] |= 0x80;
        assert_eq!(read(bytes), NOT_A_POINT);
    }

    #[test]
    fn points_outside_of_the_subgroup_are_refused() {
        let outside: Vec<_> = (0u64..100)
            .filter_map(|x| Point::get_ys_from_x_unchecked(x.into()).map(|ys| (x, ys.0)))
            .map(|(x, y)| Point::new_unchecked(x.into(), y))
            .filter(|point| !point.mul_bigint(Scalar::MODULUS).is_zero())
            .collect();
        assert!(outside.len() > 10);
        for point in outside {
            assert_eq!(
                read(compressed(point)),
                Err(Invalid::NotInSubgroup(Field::Proof))
            );
        }
    }

    #[test]
    fn scalars_are_below_the_modulus() {
        let modulus = Scalar::MODULUS;
        let mut largest = modulus;
        largest.sub_with_borrow(&BigInt::from(1u64));
        let bytes = [[0; 32].to_vec(), largest.to_bytes_be()].concat();
        let expected = vec![Scalar::from(0), -Scalar::from(1)];
        assert_eq!(scalars(&bytes), Ok(expected));
        for large in [modulus.to_bytes_be(), vec![0xff; 32]] {
            let bytes = [[0; 32].to_vec(), large].concat();
            assert_eq!(scalars(&bytes), Err(Invalid::NotCanonical(1)));
        }
    }
}
