//! Decoding of untrusted field elements in 32 big-endian bytes.

use ark_ec::AffineRepr;
use ark_ff::{BigInt, BigInteger, PrimeField, Zero};

use crate::opening::coordinates;
use crate::{Base, DecodeError, Point, Round, Scalar};

/// Bytes of an encoded element of either field.
pub(crate) const ELEMENT_BYTES: usize = 32;
/// Bits of the lower half of a scalar that is cut in two to fit the base field.
pub(crate) const LOW_LIMB_BITS: u32 = 136;
/// Bits of the upper half: the rest of the modulus' bits.
const HIGH_LIMB_BITS: u32 = Scalar::MODULUS_BIT_SIZE - LOW_LIMB_BITS;

/// Reads one element after the other, and knows the number of each.
pub(crate) struct Elements<'a> {
    bytes: &'a [u8],
    /// The number of the first element of `bytes`.
    index: usize,
}

// === impl Elements ===

impl<'a> Elements<'a> {
    /// A reader of these bytes. `index` is the number of the first element, for errors.
    pub(crate) fn new(bytes: &'a [u8], index: usize) -> Self {
        Self { bytes, index }
    }

    /// The next number, and which element it is.
    fn number(&mut self) -> Result<(BigInt<4>, usize), DecodeError> {
        let Some((element, rest)) = self.bytes.split_first_chunk::<ELEMENT_BYTES>() else {
            return Err(DecodeError::Length {
                expected: ELEMENT_BYTES,
                found: self.bytes.len(),
            });
        };
        let index = self.index;
        self.bytes = rest;
        self.index += 1;
        let mut words = [0u64; 4];
        for (word, bytes) in words.iter_mut().rev().zip(element.as_chunks::<8>().0) {
            *word = u64::from_be_bytes(*bytes);
        }
        Ok((BigInt::new(words), index))
    }

    /// A number below the base field's modulus.
    pub(crate) fn base(&mut self) -> Result<Base, DecodeError> {
        let (number, index) = self.number()?;
        Base::from_bigint(number).ok_or(DecodeError::NotCanonical(index))
    }

    /// A number below the scalar field's modulus.
    pub(crate) fn scalar(&mut self) -> Result<Scalar, DecodeError> {
        let (number, index) = self.number()?;
        Scalar::from_bigint(number).ok_or(DecodeError::NotCanonical(index))
    }

    /// A scalar in two elements of the base field: the lower 136 bits, and the others.
    pub(crate) fn split_scalar(&mut self) -> Result<Scalar, DecodeError> {
        let (mut number, index) = self.limb(LOW_LIMB_BITS)?;
        let (high, _) = self.limb(HIGH_LIMB_BITS)?;
        // The sum has 254 bits: no carry is lost.
        number.add_with_carry(&(high << LOW_LIMB_BITS));
        Scalar::from_bigint(number).ok_or(DecodeError::Scalar(index))
    }

    fn limb(&mut self, bits: u32) -> Result<(BigInt<4>, usize), DecodeError> {
        let (number, index) = self.number()?;
        match number.num_bits() {
            small if small <= bits => Ok((number, index)),
            _ => Err(DecodeError::Limb { index, bits }),
        }
    }

    /// A point of the curve, or zeros for the point at infinity.
    pub(crate) fn point(&mut self) -> Result<Point, DecodeError> {
        let index = self.index;
        let (x, y) = (self.base()?, self.base()?);
        if x.is_zero() && y.is_zero() {
            return Ok(Point::zero());
        }
        let point = Point::new_unchecked(x, y);
        // The curve's order is prime: each of its points is in the group.
        match point.is_on_curve() {
            true => Ok(point),
            false => Err(DecodeError::NotOnCurve(index)),
        }
    }

    /// Reads `count` pairs of points.
    pub(crate) fn rounds(&mut self, count: usize) -> Result<Vec<Round>, DecodeError> {
        let mut rounds = Vec::with_capacity(count);
        for _ in 0..count {
            let (left, right) = (self.point()?, self.point()?);
            rounds.push(Round { left, right });
        }
        Ok(rounds)
    }
}

/// Checks the length of an encoding.
pub(crate) fn expect_length(bytes: &[u8], expected: usize) -> Result<(), DecodeError> {
    match bytes.len() {
        found if found == expected => Ok(()),
        found => Err(DecodeError::Length { expected, found }),
    }
}

/// Appends an element.
pub(crate) fn write_element(bytes: &mut Vec<u8>, element: impl PrimeField<BigInt = BigInt<4>>) {
    bytes.extend(element.into_bigint().to_bytes_be());
}

/// Appends a point's coordinates.
pub(crate) fn write_point(bytes: &mut Vec<u8>, point: &Point) {
    for coordinate in coordinates(point) {
        write_element(bytes, coordinate);
    }
}
