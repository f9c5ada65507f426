//! `public.json`: the public inputs.

use std::fmt;
use std::marker::PhantomData;

use ark_ff::PrimeField;
use serde::de::{DeserializeSeed, Deserializer, Error, SeqAccess, Visitor};
use serde_json::Value;

use super::JsonError;
use super::document::{read, write};
use super::element::Element;
use super::path::Path;

/// The most public inputs that are read from JSON: 65,536.
pub const MAX_INPUTS: usize = 1 << 16;

/// Reads a list of public inputs, without the leading one.
///
/// # Errors
///
/// [`JsonError`] unless the document is a list of at most [`MAX_INPUTS`] canonical numbers.
pub fn inputs_from_json<F: PrimeField>(json: &[u8]) -> Result<Vec<F>, JsonError> {
    read(json, Inputs(PhantomData))
}

/// Writes public inputs, given without the leading one.
pub fn inputs_to_json<F: PrimeField>(inputs: &[F]) -> String {
    if inputs.is_empty() {
        // As snarkjs writes an empty list.
        return "[\n]".to_owned();
    }
    write(&Value::Array(
        inputs
            .iter()
            .map(|input| Value::String(input.to_string()))
            .collect(),
    ))
}

struct Inputs<F>(PhantomData<F>);

impl<'de, F: PrimeField> DeserializeSeed<'de> for Inputs<F> {
    type Value = Vec<F>;

    fn deserialize<D: Deserializer<'de>>(self, deserializer: D) -> Result<Vec<F>, D::Error> {
        deserializer.deserialize_seq(self)
    }
}

impl<'de, F: PrimeField> Visitor<'de> for Inputs<F> {
    type Value = Vec<F>;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a list of strings of decimal digits")
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut list: A) -> Result<Vec<F>, A::Error> {
        let mut inputs = Vec::new();
        while let Some(input) =
            list.next_element_seed(Element::at(Path::ROOT.index(inputs.len())))?
        {
            check_count(inputs.len())?;
            inputs.push(input);
        }
        Ok(inputs)
    }
}

/// Checks that one more public input after `count` is allowed.
pub(super) fn check_count<E: Error>(count: usize) -> Result<(), E> {
    if count < MAX_INPUTS {
        return Ok(());
    }
    Err(E::custom(format_args!(
        "more than {MAX_INPUTS} public inputs: not supported"
    )))
}
