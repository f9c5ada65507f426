//! A message as JSON: a line of a file, or the body of a request.

use std::collections::BTreeSet;

use bytes::Bytes;
use serde::Deserialize;
use serde_json::value::RawValue;

use super::service::SourceMessage;

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Written<'a> {
    block: Option<u64>,
    first: Option<u64>,
    last: Option<u64>,
    part: Option<String>,
    requires: Option<BTreeSet<String>>,
    #[serde(borrow)]
    payload: &'a RawValue,
}

/// Parses a message `{"block": 7, "part": "a", "requires": ["gpu"], "payload": …}`, or with
/// `"first"` and `"last"` for a span. `part` and `requires` (the labels that a worker must have,
/// instead of the stage's) are optional. Its [`next`](SourceMessage::next) is 0.
///
/// # Errors
/// A description of the fault.
pub fn parse_message(text: &[u8]) -> Result<SourceMessage, String> {
    let written: Written<'_> = serde_json::from_slice(text).map_err(|error| error.to_string())?;
    let (first, last) = match (written.block, written.first, written.last) {
        (Some(block), None, None) => (block, block),
        (None, Some(first), Some(last)) => (first, last),
        _ => return Err("give either `block`, or `first` and `last`".into()),
    };
    let payload = Bytes::copy_from_slice(written.payload.get().as_bytes());
    SourceMessage::of_json(
        (first, last),
        written.part.as_deref(),
        payload,
        written.requires,
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn labels_are_those_that_a_worker_must_have() {
        let text = br#"{"block": 1, "requires": ["gpu", "fast"], "payload": 1}"#;
        let needs = parse_message(text).expect("a message").needs;
        let labels = needs.expect("some").labels;
        assert_eq!(labels.into_iter().collect::<Vec<_>>(), ["fast", "gpu"]);
    }

    #[test]
    fn what_is_no_message_is_refused_with_what_is_wrong() {
        for (text, why) in [
            (r#"{"payload": 1}"#, "give either `block`"),
            (r#"{"block": 1, "last": 2, "payload": 1}"#, "give either"),
            (r#"{"first": 2, "last": 1, "payload": 1}"#, "below `first`"),
            (r#"{"block": 1, "part": "../x", "payload": 1}"#, "part"),
            (r#"{"block": -1, "payload": 1}"#, "invalid value"),
            (r#"{"block": 1}"#, "missing field `payload`"),
            (
                r#"{"block": 1, "payload": 1, "more": 1}"#,
                "unknown field `more`",
            ),
            ("7", "invalid type"),
            ("", "EOF"),
        ] {
            let said = parse_message(text.as_bytes()).expect_err(text);
            assert!(said.contains(why), "{text}: {said}");
        }
    }
}
