//! Conversion, validation and shortening of values and names from the file.

use serde_json::{Number, Value};
use toml::de::DeValue;

use crate::value::InvalidValue;

/// The name of a value's type in messages.
pub(crate) fn type_name(value: &DeValue<'_>) -> &'static str {
    match value {
        DeValue::String(_) => "a string",
        DeValue::Integer(_) => "a whole number",
        DeValue::Float(_) => "a number with a fraction",
        DeValue::Boolean(_) => "a boolean",
        DeValue::Datetime(_) => "a date",
        DeValue::Array(_) => "a list",
        DeValue::Table(_) => "a table",
    }
}

/// The value as JSON. Dates become strings.
pub(crate) fn to_json(value: &DeValue<'_>) -> Result<Value, InvalidValue> {
    Ok(match value {
        DeValue::String(text) => Value::from(text.as_ref()),
        DeValue::Boolean(value) => Value::from(*value),
        DeValue::Datetime(date) => Value::from(date.to_string()),
        DeValue::Integer(integer) => {
            let (text, radix) = (integer.as_str(), integer.radix());
            match (
                i64::from_str_radix(text, radix),
                u64::from_str_radix(text, radix),
            ) {
                (Ok(number), _) => Value::from(number),
                (_, Ok(number)) => Value::from(number),
                _ => {
                    return Err(InvalidValue(clipped(&format!(
                        "{text} does not fit 64 bits"
                    ))));
                }
            }
        }
        DeValue::Float(float) => float
            .as_str()
            .parse()
            .ok()
            .and_then(Number::from_f64)
            .map(Value::Number)
            .ok_or_else(|| {
                InvalidValue(clipped(&format!(
                    "{} is not a finite number",
                    float.as_str()
                )))
            })?,
        DeValue::Array(items) => items
            .iter()
            .map(|item| to_json(item.get_ref()))
            .collect::<Result<_, _>>()?,
        DeValue::Table(table) => Value::Object(
            table
                .iter()
                .map(|(key, value)| Ok((key.get_ref().to_string(), to_json(value.get_ref())?)))
                .collect::<Result<_, InvalidValue>>()?,
        ),
    })
}

/// Whether the text is `[a-z0-9][a-z0-9_-]{0,62}`; without `_` unless `underscores`.
pub(crate) fn is_name(text: &str, underscores: bool) -> bool {
    let first = text
        .bytes()
        .next()
        .is_some_and(|b| b.is_ascii_lowercase() || b.is_ascii_digit());
    first
        && text.len() <= 63
        && text.bytes().all(|b| {
            b.is_ascii_lowercase() || b.is_ascii_digit() || b == b'-' || (underscores && b == b'_')
        })
}

/// A key from the file, made safe for messages: 64 characters at most, without control characters.
pub(crate) fn printable(key: &str) -> String {
    let mut shown: String = key
        .chars()
        .take(64)
        .map(|c| if c.is_control() { '\u{fffd}' } else { c })
        .collect();
    if shown.len() < key.len() && key.chars().count() > 64 {
        shown.push('…');
    }
    shown
}

/// Text for a message, cut after 200 characters.
pub(crate) fn clipped(text: &str) -> String {
    match text.char_indices().nth(200) {
        Some((at, _)) => format!("{}…", &text[..at]),
        None => text.to_owned(),
    }
}
