//! Payloads made from a block's number.

use serde_json::{Map, Number, Value};

/// The payload of a range source's messages. In its strings `{block}`, `{first}` and `{last}`
/// stand for the span's numbers; a string that is nothing but one of them becomes a number.
#[derive(Clone, Debug, PartialEq)]
pub struct Template(Value);

// === impl Template ===

impl Default for Template {
    /// `{"block": first}`, which is what a source without a `payload` produces for single blocks.
    fn default() -> Self {
        Self(Value::Object(Map::from_iter([(
            "block".to_owned(),
            Value::from("{block}"),
        )])))
    }
}

impl Template {
    /// A template, as it stands in the file. `payload` is a JSON object.
    pub(crate) fn new(payload: Map<String, Value>) -> Self {
        Self(Value::Object(payload))
    }

    /// `{"first": first, "last": last}`, which is what a source without a `payload` produces when
    /// its messages span several blocks.
    pub(crate) fn span() -> Self {
        Self(Value::Object(Map::from_iter([
            ("first".to_owned(), Value::from("{first}")),
            ("last".to_owned(), Value::from("{last}")),
        ])))
    }

    /// The payload of the message that spans `first..=last`.
    pub fn render(&self, first: u64, last: u64) -> Value {
        fill(&self.0, first, last)
    }
}

fn fill(value: &Value, first: u64, last: u64) -> Value {
    match value {
        Value::String(text) => match text.as_str() {
            "{block}" | "{first}" => Value::Number(Number::from(first)),
            "{last}" => Value::Number(Number::from(last)),
            text if text.contains('{') => Value::String(
                text.replace("{block}", &first.to_string())
                    .replace("{first}", &first.to_string())
                    .replace("{last}", &last.to_string()),
            ),
            text => Value::String(text.to_owned()),
        },
        Value::Array(items) => items.iter().map(|item| fill(item, first, last)).collect(),
        Value::Object(fields) => Value::Object(
            fields
                .iter()
                .map(|(key, value)| (key.clone(), fill(value, first, last)))
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
        let Value::Object(fields) =
            json!({"n": "{block}", "name": "b{first}-{last}", "deep": [{"x": "{last}"}], "k": 3})
        else {
            panic!("an object")
        };
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
}
