//! Field elements and points.

use std::fmt;
use std::marker::PhantomData;

use ark_ff::{Field, One, PrimeField, Zero};
use serde::de::{DeserializeSeed, Deserializer, Error, MapAccess, SeqAccess, Visitor};
use serde_json::{Value, json};

use super::document::set;
use super::path::Path;
use crate::PointGroup;

/// Parses a prime field's element from its canonical decimal string; `None` for any other string.
pub(super) fn parse_decimal<F: PrimeField>(text: &str) -> Option<F> {
    // log₁₀ 2 is below 0.302. A string of more digits is no canonical number, and is not converted.
    let digits = F::MODULUS_BIT_SIZE as usize * 302 / 1000 + 1;
    let is_plain = (1..=digits).contains(&text.len())
        && text.bytes().all(|byte| byte.is_ascii_digit())
        && (text == "0" || !text.starts_with('0'));
    let element: F = is_plain.then(|| text.parse().ok()).flatten()?;
    // `parse` reduces numbers that are too large.
    (element.to_string() == text).then_some(element)
}

/// Deserializer seed and visitor of a field element at `path`.
pub(super) struct Element<'p, F> {
    path: Path<'p>,
    field: PhantomData<F>,
}

impl<'p, F> Element<'p, F> {
    pub(super) const fn at(path: Path<'p>) -> Self {
        Self {
            path,
            field: PhantomData,
        }
    }
}

impl<'de, F: PrimeField> DeserializeSeed<'de> for Element<'_, F> {
    type Value = F;

    fn deserialize<D: Deserializer<'de>>(self, deserializer: D) -> Result<F, D::Error> {
        deserializer.deserialize_str(self)
    }
}

impl<F: PrimeField> Visitor<'_> for Element<'_, F> {
    type Value = F;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "a string of decimal digits at {}", self.path)
    }

    fn visit_str<E: Error>(self, text: &str) -> Result<F, E> {
        parse_decimal(text).ok_or_else(|| {
            E::custom(format_args!(
                "{}: not a number in decimal digits, without leading zeros, below the field's prime",
                self.path
            ))
        })
    }
}

/// A coordinate: an element, or a list of an extension's coefficients.
struct Coordinate<'p, F> {
    path: Path<'p>,
    field: PhantomData<F>,
}

impl<'de, F: Field> DeserializeSeed<'de> for Coordinate<'_, F> {
    type Value = F;

    fn deserialize<D: Deserializer<'de>>(self, deserializer: D) -> Result<F, D::Error> {
        if F::extension_degree() == 1 {
            let element = Element::<F::BasePrimeField>::at(self.path).deserialize(deserializer)?;
            Ok(F::from_base_prime_field(element))
        } else {
            deserializer.deserialize_seq(self)
        }
    }
}

impl<'de, F: Field> Visitor<'de> for Coordinate<'_, F> {
    type Value = F;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let degree = F::extension_degree();
        write!(f, "a list of {degree} strings at {}", self.path)
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut list: A) -> Result<F, A::Error> {
        let degree = F::extension_degree() as usize;
        let mut elements = Vec::with_capacity(degree);
        while elements.len() < degree {
            let seed = Element::<F::BasePrimeField>::at(self.path.index(elements.len()));
            let next = list.next_element_seed(seed)?;
            elements.push(next.ok_or_else(|| A::Error::invalid_length(elements.len(), &self))?);
        }
        expect_end(&mut list, degree, &self)?;
        F::from_base_prime_field_elems(elements)
            .ok_or_else(|| A::Error::invalid_length(degree, &self))
    }
}

/// Checks that a list has no elements after the first `length`.
pub(super) fn expect_end<'de, A: SeqAccess<'de>>(
    list: &mut A,
    length: usize,
    expected: &impl Visitor<'de>,
) -> Result<(), A::Error> {
    match list.next_element::<serde::de::IgnoredAny>()? {
        None => Ok(()),
        Some(_) => Err(A::Error::invalid_length(length + 1, expected)),
    }
}

/// A point, checked to be on its curve and in the subgroup.
pub(super) struct Point<'p, A> {
    path: Path<'p>,
    group: PhantomData<A>,
}

impl<'p, A> Point<'p, A> {
    pub(super) const fn at(path: Path<'p>) -> Self {
        Self {
            path,
            group: PhantomData,
        }
    }
}

/// Sets the point of a document's field `name`; an error if it occurs twice.
pub(super) fn set_point<'de, P: PointGroup, A: MapAccess<'de>>(
    slot: &mut Option<P>,
    name: &'static str,
    map: &mut A,
) -> Result<(), A::Error> {
    let seed = Point::at(Path::ROOT.field(name));
    set(slot, name, map.next_value_seed(seed)?)
}

impl<'de, P: PointGroup> DeserializeSeed<'de> for Point<'_, P> {
    type Value = P;

    fn deserialize<D: Deserializer<'de>>(self, deserializer: D) -> Result<P, D::Error> {
        deserializer.deserialize_seq(self)
    }
}

impl<'de, P: PointGroup> Visitor<'de> for Point<'_, P> {
    type Value = P;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "a list of a point's 3 coordinates at {}", self.path)
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut list: A) -> Result<P, A::Error> {
        let mut coordinates = [P::BaseField::zero(); 3];
        for (i, coordinate) in coordinates.iter_mut().enumerate() {
            let seed = Coordinate {
                path: self.path.index(i),
                field: PhantomData,
            };
            *coordinate = list
                .next_element_seed(seed)?
                .ok_or_else(|| A::Error::invalid_length(i, &self))?;
        }
        expect_end(&mut list, 3, &self)?;
        let refuse = |what: &str| Err(A::Error::custom(format_args!("{}: {what}", self.path)));
        let [x, y, z] = coordinates;
        if z.is_zero() && x.is_zero() && y.is_one() {
            return Ok(P::zero());
        }
        if !z.is_one() {
            return refuse("the third coordinate is not one (nor is this 0, 1, 0 for infinity)");
        }
        let point = P::from_coordinates(x, y);
        if !point.on_curve() {
            return refuse("not a point of the curve");
        }
        if !point.in_subgroup() {
            return refuse("a point outside the subgroup of prime order");
        }
        Ok(point)
    }
}

/// An element of a field as snarkjs writes it: extensions as nested lists.
pub(super) fn element_to_json<F: Field>(element: &F) -> Value {
    let mut parts = element
        .to_base_prime_field_elements()
        .map(|part| Value::String(part.to_string()));
    match F::extension_degree() {
        1 => parts.next().unwrap_or_default(),
        _ => Value::Array(parts.collect()),
    }
}

/// A point as snarkjs writes it.
pub(super) fn point_to_json<A: PointGroup>(point: &A) -> Value {
    let (zero, one) = (A::BaseField::zero(), A::BaseField::one());
    let [x, y, z] = match point.xy() {
        Some((x, y)) => [x, y, one],
        None => [zero, one, zero],
    };
    json!([
        element_to_json(&x),
        element_to_json(&y),
        element_to_json(&z)
    ])
}
