//! Payload templates of sources.

use serde_json::{Map, Value};

/// The payload of a source's messages. Names in braces inside strings are replaced by the values of
/// the block; a string that consists of one such name becomes the value itself, such as a number.
#[derive(Clone, Debug, PartialEq)]
pub struct Template(Value);

// === impl Template ===

impl Default for Template {
    /// `{"block": first}`: the payload of a source without `payload`, for single blocks.
    fn default() -> Self {
        Self(Value::Object(Map::from_iter([(
            "block".to_owned(),
            Value::from("{block}"),
        )])))
    }
}

impl Template {
    /// A template as written in the file.
    pub(crate) fn new(payload: Value) -> Self {
        Self(payload)
    }

    /// `{"first": first, "last": last}`: the payload of a source without `payload` whose messages
    /// span several blocks.
    pub(crate) fn span() -> Self {
        Self(Value::Object(Map::from_iter([
            ("first".to_owned(), Value::from("{first}")),
            ("last".to_owned(), Value::from("{last}")),
        ])))
    }

    /// The payload of the message that spans `first..=last`: `{block}` and `{first}` stand for the
    /// first block, `{last}` for the last.
    pub fn render(&self, first: u64, last: u64) -> Value {
        fill(
            &self.0,
            &[
                ("{block}", first.into()),
                ("{first}", first.into()),
                ("{last}", last.into()),
            ],
        )
    }

    /// The payload of the message about one block of a chain: `{block}` stands for its number,
    /// `{hash}` and `{parent}` for its hash and its parent's, `{timestamp}` for its time in seconds
    /// since 1970.
    pub fn render_block(&self, number: u64, hash: &str, parent: &str, timestamp: u64) -> Value {
        fill(
            &self.0,
            &[
                ("{block}", number.into()),
                ("{hash}", hash.into()),
                ("{parent}", parent.into()),
                ("{timestamp}", timestamp.into()),
            ],
        )
    }
}

/// `value` with each known name in its strings replaced by its value.
fn fill(value: &Value, known: &[(&str, Value)]) -> Value {
    match value {
        Value::String(text) => {
            if let Some((_, alone)) = known.iter().find(|(name, _)| name == text) {
                return alone.clone();
            }
            let filled = known.iter().fold(text.clone(), |text, (name, value)| {
                let shown = value
                    .as_str()
                    .map_or_else(|| value.to_string(), str::to_owned);
                text.replace(name, &shown)
            });
            Value::String(filled)
        }
        Value::Array(items) => items.iter().map(|item| fill(item, known)).collect(),
        Value::Object(fields) => Value::Object(
            fields
                .iter()
                .map(|(key, value)| (key.clone(), fill(value, known)))
                .collect(),
        ),
        other => other.clone(),
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn numbers_stand_where_the_template_names_them() {
        let fields =
            json!({"n": "{block}", "name": "b{first}-{last}", "deep": [{"x": "{last}"}], "k": 3});
        assert_eq!(
            Template::new(fields).render(8, 15),
            json!({"n": 8, "name": "b8-15", "deep": [{"x": 15}], "k": 3})
        );
        assert_eq!(Template::default().render(4, 4), json!({"block": 4}));
        assert_eq!(
            Template::span().render(4, 7),
            json!({"first": 4, "last": 7})
        );
    }

    #[test]
    fn a_block_of_a_chain_is_told_as_the_template_says() {
        let render =
            |payload| Template::new(payload).render_block(19, "0xab", "0xcd", 1_700_000_000);
        assert_eq!(render(json!("{block}")), json!(19));
        assert_eq!(
            render(json!({"id": "{block}-{hash}", "at": "{timestamp}", "up": ["{parent}"]})),
            json!({"id": "19-0xab", "at": 1_700_000_000, "up": ["0xcd"]})
        );
    }
}
