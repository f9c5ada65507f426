//! Elements and points between their encodings, pasta_curves and arkworks.

use ark_ff::{BigInt, PrimeField};
use pasta_curves::arithmetic::CurveAffine;
use pasta_curves::group::GroupEncoding;
use pasta_curves::group::ff::PrimeField as _;
use pasta_curves::{pallas, vesta};

use crate::{Point, Scalar};

/// Bytes of an element of either field, little-endian, and of a compressed point.
pub(crate) const BYTES: usize = 32;

/// A number below the modulus.
pub(crate) fn element<F: PrimeField<BigInt = BigInt<4>>>(bytes: &[u8; BYTES]) -> Option<F> {
    let mut words = [0; 4];
    for (word, bytes) in words.iter_mut().zip(bytes.as_chunks::<8>().0) {
        *word = u64::from_le_bytes(*bytes);
    }
    F::from_bigint(BigInt::new(words))
}

/// The encoding of an element.
pub(crate) fn bytes<F: PrimeField<BigInt = BigInt<4>>>(element: &F) -> [u8; BYTES] {
    let mut bytes = [0; BYTES];
    let words = element.into_bigint().0;
    for (bytes, word) in bytes.as_chunks_mut::<8>().0.iter_mut().zip(words) {
        *bytes = word.to_le_bytes();
    }
    bytes
}

/// A point of Vesta other than infinity, from its abscissa and the parity of its ordinate. All of
/// the curve's points are in the group.
pub(crate) fn point(bytes: &[u8; BYTES]) -> Option<Point> {
    from_pasta(&Option::from(vesta::Affine::from_bytes(bytes))?)
}

/// The coordinates of a point of Pallas; zeros at infinity.
pub(crate) fn pallas_coordinates(bytes: &[u8; BYTES]) -> Option<[Scalar; 2]> {
    let point: pallas::Affine = Option::from(pallas::Affine::from_bytes(bytes))?;
    let coordinates = Option::<pasta_curves::arithmetic::Coordinates<_>>::from(point.coordinates());
    let Some(coordinates) = coordinates else {
        return Some(Default::default());
    };
    Some([
        element(&coordinates.x().to_repr())?,
        element(&coordinates.y().to_repr())?,
    ])
}

/// A point that is not infinite, for arkworks.
pub(crate) fn from_pasta(point: &vesta::Affine) -> Option<Point> {
    let coordinates = Option::<pasta_curves::arithmetic::Coordinates<_>>::from(point.coordinates());
    let coordinates = coordinates?;
    let (x, y) = (coordinates.x().to_repr(), coordinates.y().to_repr());
    Some(Point::new_unchecked(element(&x)?, element(&y)?))
}

/// A number of 512 bits modulo the field's modulus.
pub(crate) fn wide(hash: &[u8; 64]) -> Scalar {
    Scalar::from_le_bytes_mod_order(hash)
}

#[cfg(test)]
mod tests {
    use super::*;
    use ark_ec::{AffineRepr, CurveGroup};
    use ark_ff::{BigInteger, One, UniformRand, Zero};

    #[test]
    fn elements_are_read_back_and_large_ones_refused() {
        let rng = &mut ark_std::test_rng();
        for value in [Scalar::zero(), -Scalar::one(), Scalar::rand(rng)] {
            assert_eq!(element(&bytes(&value)), Some(value));
        }
        let modulus: [u8; 32] = Scalar::MODULUS.to_bytes_le().try_into().unwrap();
        assert_eq!(element::<Scalar>(&modulus), None);
        assert_eq!(element::<Scalar>(&[0xff; 32]), None);
    }

    /// Both signs of multiples of the generator; both libraries have the same one, (−1, 2).
    #[test]
    fn points_are_arkworks() {
        for factor in [1u64, 2, 3, 1000] {
            let expected = (Point::generator() * Scalar::from(factor)).into_affine();
            for expected in [expected, -expected] {
                let mut encoded = bytes(&expected.x);
                encoded[31] |= ((expected.y.into_bigint().0[0] & 1) as u8) << 7;
                assert_eq!(point(&encoded), Some(expected));
            }
        }
        assert_eq!(point(&[0; 32]), None);
        assert_eq!(point(&[0xff; 32]), None);
    }
}
