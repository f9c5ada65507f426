//! Properties read from the bare JSON of a message.

use serde_json::Value;
use serde_json::value::RawValue;

use crate::environment::Field;

/// Most messages that one run of a program may produce.
pub(crate) const MAX_ELEMENTS: usize = 65_536;

/// The properties of a message that a collector needs.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Facts {
    /// The value of the grouping field, as text: 7 and "7" are equal.
    pub(crate) group: Option<String>,
    /// The block that it is about.
    pub(crate) block: Option<u64>,
    /// Whether it is the block itself: a bare number.
    pub(crate) is_block: bool,
    /// `task_id` or `step_id`, which tells it from the other messages of its group.
    pub(crate) id: Option<String>,
}

/// Reads the properties of a payload.
///
/// # Errors
/// A message that says why the payload is not JSON.
pub(crate) fn facts(payload: &[u8], field: Option<&Field>) -> Result<Facts, String> {
    let value: Value =
        serde_json::from_slice(payload).map_err(|error| format!("it is not JSON: {error}"))?;
    Ok(Facts {
        group: agreed(&value, |value| match field {
            Some(field) => field.of(value).and_then(text),
            None => value
                .get("group_id")
                .and_then(text)
                .or_else(|| block(value).map(|block| block.to_string())),
        }),
        block: agreed(&value, block),
        is_block: value.is_u64(),
        id: value
            .get("task_id")
            .or_else(|| value.get("step_id"))
            .and_then(text),
    })
}

/// The block that a payload is about, if it is about one.
pub(crate) fn block_of(payload: &[u8]) -> Option<u64> {
    facts(payload, None).ok()?.block
}

/// The elements of a JSON array, each with its original text.
///
/// # Errors
/// A message that says that the payload is not an array or too long.
pub(crate) fn elements(payload: &[u8]) -> Result<Vec<Box<RawValue>>, String> {
    let elements: Vec<Box<RawValue>> = serde_json::from_slice(payload).map_err(|error| {
        format!("its output is not a JSON array, as MULTIPLE_OUTPUT wants: {error}")
    })?;
    if elements.len() > MAX_ELEMENTS {
        let count = elements.len();
        return Err(format!(
            "its output has {count} elements, over the limit of {MAX_ELEMENTS}"
        ));
    }
    Ok(elements)
}

/// Parses a payload as one JSON value, and returns its text without surrounding white space.
///
/// # Errors
/// A message that says why the payload is not JSON.
pub(crate) fn parse_value(payload: &[u8]) -> Result<&RawValue, String> {
    serde_json::from_slice(payload).map_err(|error| format!("its output is not JSON: {error}"))
}

/// Makes a JSON array of JSON values, each with its original text.
pub(crate) fn array<'a>(values: impl IntoIterator<Item = &'a [u8]>) -> Vec<u8> {
    let mut array = vec![b'['];
    for value in values {
        if array.len() > 1 {
            array.push(b',');
        }
        array.extend_from_slice(value.trim_ascii());
    }
    array.push(b']');
    array
}

/// Applies `of` to a value; for an array, to every element, and returns the result if all are equal.
fn agreed<T: PartialEq>(value: &Value, of: impl Fn(&Value) -> Option<T>) -> Option<T> {
    let Value::Array(values) = value else {
        return of(value);
    };
    let mut each = values.iter().map(of);
    let first = each.next()??;
    each.all(|other| other.as_ref() == Some(&first))
        .then_some(first)
}

fn block(value: &Value) -> Option<u64> {
    let own = |value: &Value| value.as_u64();
    own(value)
        .or_else(|| value.get("block").and_then(own))
        .or_else(|| value.pointer("/data/block").and_then(own))
        .or_else(|| value.get("group_id").and_then(own))
}

fn text(value: &Value) -> Option<String> {
    match value {
        Value::String(text) => Some(text.clone()),
        Value::Number(number) if number.is_u64() || number.is_i64() => Some(number.to_string()),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn group(payload: &str, field: Option<&str>) -> Option<String> {
        let field = field.and_then(Field::parse);
        facts(payload.as_bytes(), field.as_ref()).unwrap().group
    }

    #[test]
    fn the_payloads_of_the_demo_are_understood() {
        let block = facts(b" 23818220 ", None).unwrap();
        assert_eq!(block.block, Some(23_818_220));
        assert!(block.is_block);
        let step = br#"{"block":7,"step_id":"example_step_3","payload":"tx_3_data"}"#;
        let step = facts(step, None).unwrap();
        assert_eq!(
            (step.group.as_deref(), step.id.as_deref()),
            (Some("7"), Some("example_step_3"))
        );
        let proof = br#"{"data":{"block":7,"proof":"0xff"},"task_id":"a","group_id":7}"#;
        let proof = facts(proof, None).unwrap();
        assert_eq!(proof.block, Some(7));
        assert!(!proof.is_block);
        assert_eq!(
            group(r#"[{"group_id":7},{"group_id":7}]"#, None).as_deref(),
            Some("7")
        );
        assert_eq!(group(r#"[{"group_id":7},{"group_id":8}]"#, None), None);
        assert_eq!(group("[]", None), None);
    }

    #[test]
    fn the_grouping_field_is_a_string_or_an_integer() {
        assert_eq!(group(r#"{"x":"a"}"#, Some("x")).as_deref(), Some("a"));
        assert_eq!(group(r#"{"x":-3}"#, Some("x")).as_deref(), Some("-3"));
        for none in [r#"{"x":1.5}"#, r#"{"x":null}"#, r#"{"x":{}}"#, "5", "{}"] {
            assert_eq!(group(none, Some("x")), None, "{none}");
        }
    }

    #[test]
    fn arrays_are_taken_apart_and_put_together_as_they_were_written() {
        let written = br#"[ {"big":123456789012345678901234567890}, 1.50 ,"x"]"#;
        let parts = elements(written).unwrap();
        assert_eq!(parts[1].get(), "1.50");
        let whole = array(parts.iter().map(|part| part.get().as_bytes()));
        assert_eq!(
            whole,
            br#"[{"big":123456789012345678901234567890},1.50,"x"]"#
        );
        assert!(elements(b"{}").is_err() && parse_value(b"1 2").is_err());
    }

    proptest! {
        #[test]
        fn no_bytes_panic(bytes in proptest::collection::vec(any::<u8>(), 0..200)) {
            let _ = facts(&bytes, None);
            let _ = (elements(&bytes), parse_value(&bytes), block_of(&bytes));
        }
    }

    #[test]
    fn deep_nesting_is_refused() {
        let deep = "[".repeat(100_000);
        assert!(facts(deep.as_bytes(), None).is_err());
    }
}
