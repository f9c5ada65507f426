//! Updates as text: one JSON object on each line.
//!
//! ```text
//! {"key": "alice@example.org", "value": "her public key"}
//! {"key_hex": "00ff", "value_hex": ""}
//! ```
//!
//! A key has up to 1 KiB, a value up to 16 KiB. Empty lines are skipped.

use std::io::{self, BufRead, Read};

use serde::Deserialize;

use crate::{KeyDigest, ValueDigest};

/// The most bytes of a key.
pub const KEY_BYTES_MAX: usize = 1 << 10;

/// The most bytes of a value.
pub const VALUE_BYTES_MAX: usize = 16 << 10;

/// The most updates of an epoch.
pub const UPDATES_MAX: usize = 1 << 22;

/// The most bytes of the keys and values of an epoch.
pub const UPDATE_BYTES_MAX: usize = 1 << 30;

/// The most bytes of a line: a character of a string takes 6 bytes as an escape, `\u0000`.
const LINE_BYTES_MAX: u64 = 6 * (KEY_BYTES_MAX + VALUE_BYTES_MAX) as u64 + 1024;

/// A new value for a key.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct KeyUpdate {
    key: Box<[u8]>,
    value: Box<[u8]>,
}

/// Updates that cannot be read.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum UpdatesError {
    /// The text could not be read.
    #[error(transparent)]
    Io(#[from] io::Error),
    /// A line that is no update.
    #[error("line {line}: {source}")]
    Line {
        /// The line, from 1.
        line: usize,
        /// The reason.
        source: LineError,
    },
    /// More updates than an epoch may have.
    #[error("line {line}: more than {UPDATES_MAX} updates, the most of an epoch: split the file")]
    Count {
        /// The line, from 1.
        line: usize,
    },
    /// More bytes than an epoch may have.
    #[error(
        "line {line}: keys and values of more than {UPDATE_BYTES_MAX} bytes, the most of an epoch: split the file"
    )]
    Bytes {
        /// The line, from 1.
        line: usize,
    },
}

/// The reason why a line is no update.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum LineError {
    /// The line is no JSON object of the right fields.
    #[error("column {column}: {reason}")]
    Json {
        /// The column at which the error was found, from 1.
        column: usize,
        /// The reason.
        reason: String,
    },
    /// The line is no text.
    #[error(transparent)]
    Text(#[from] std::str::Utf8Error),
    /// The line is too long for any update.
    #[error("more than {LINE_BYTES_MAX} bytes")]
    Long,
    /// A field is neither there as text nor as hexadecimal digits, or it is both.
    #[error("there must be one of the fields {text:?} and {hex:?}")]
    Field {
        /// The field as text.
        text: &'static str,
        /// The field as hexadecimal digits.
        hex: &'static str,
    },
    /// A field that is no bytes in hexadecimal digits.
    #[error("field {field:?}: {source}")]
    Hex {
        /// The field.
        field: &'static str,
        /// The reason.
        source: hex::FromHexError,
    },
    /// A field that is too long.
    #[error("field {field:?} has {found} bytes: {most} at most")]
    Size {
        /// The field.
        field: &'static str,
        /// The bytes there are.
        found: usize,
        /// The most.
        most: usize,
    },
}

/// The fields of a line.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Line {
    key: Option<String>,
    key_hex: Option<String>,
    value: Option<String>,
    value_hex: Option<String>,
}

// === impl KeyUpdate ===

impl KeyUpdate {
    /// A new value for a key.
    ///
    /// # Errors
    ///
    /// [`LineError::Size`] for a key of more than [`KEY_BYTES_MAX`] or a value of more than [`VALUE_BYTES_MAX`] bytes.
    pub fn new(key: impl Into<Vec<u8>>, value: impl Into<Vec<u8>>) -> Result<Self, LineError> {
        Ok(Self {
            key: limited("key", key.into(), KEY_BYTES_MAX)?,
            value: limited("value", value.into(), VALUE_BYTES_MAX)?,
        })
    }

    /// The key.
    pub const fn key(&self) -> &[u8] {
        &self.key
    }

    /// The value.
    pub const fn value(&self) -> &[u8] {
        &self.value
    }

    /// The digests of key and value.
    pub fn digests(&self) -> (KeyDigest, ValueDigest) {
        (KeyDigest::of(&self.key), ValueDigest::of(&self.value))
    }

    /// The update of a line.
    ///
    /// # Errors
    ///
    /// [`LineError`] unless it is one JSON object with a key and a value.
    pub fn from_json(line: &str) -> Result<Self, LineError> {
        let line: Line = serde_json::from_str(line).map_err(|error| json_error(&error))?;
        let key = field(["key", "key_hex"], line.key, line.key_hex, KEY_BYTES_MAX)?;
        let names = ["value", "value_hex"];
        let value = field(names, line.value, line.value_hex, VALUE_BYTES_MAX)?;
        Ok(Self { key, value })
    }

    /// Reads the updates of all lines.
    ///
    /// # Errors
    ///
    /// [`UpdatesError`], with the number of the line.
    pub fn read_lines(mut text: impl BufRead) -> Result<Vec<Self>, UpdatesError> {
        let mut updates = Vec::new();
        let (mut bytes, mut line) = (0, 0);
        let mut buffer = Vec::new();
        loop {
            line += 1;
            buffer.clear();
            let limit = LINE_BYTES_MAX + 1;
            if text.by_ref().take(limit).read_until(b'\n', &mut buffer)? == 0 {
                return Ok(updates);
            }
            let failed = |source| UpdatesError::Line { line, source };
            if buffer.len() as u64 == limit {
                return Err(failed(LineError::Long));
            }
            if buffer.trim_ascii().is_empty() {
                continue;
            }
            let text = std::str::from_utf8(&buffer).map_err(|error| failed(error.into()))?;
            let update = Self::from_json(text).map_err(failed)?;
            bytes += update.key.len() + update.value.len();
            if updates.len() == UPDATES_MAX {
                return Err(UpdatesError::Count { line });
            }
            if bytes > UPDATE_BYTES_MAX {
                return Err(UpdatesError::Bytes { line });
            }
            updates.push(update);
        }
    }
}

/// An error of a text of one line, without the line's number.
fn json_error(error: &serde_json::Error) -> LineError {
    let (text, column) = (error.to_string(), error.column());
    let place = format!(" at line {} column {column}", error.line());
    let reason = text.strip_suffix(&place).unwrap_or(&text).to_owned();
    LineError::Json { column, reason }
}

fn limited(field: &'static str, bytes: Vec<u8>, most: usize) -> Result<Box<[u8]>, LineError> {
    match bytes.len() {
        found if found > most => Err(LineError::Size { field, found, most }),
        _ => Ok(bytes.into()),
    }
}

fn field(
    [text, hex]: [&'static str; 2],
    as_text: Option<String>,
    as_hex: Option<String>,
    most: usize,
) -> Result<Box<[u8]>, LineError> {
    match (as_text, as_hex) {
        (Some(value), None) => limited(text, value.into_bytes(), most),
        (None, Some(digits)) => {
            let bytes = hex::decode(digits);
            let bytes = bytes.map_err(|source| LineError::Hex { field: hex, source })?;
            limited(hex, bytes, most)
        }
        _ => Err(LineError::Field { text, hex }),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn error(text: &str) -> String {
        KeyUpdate::read_lines(text.as_bytes())
            .unwrap_err()
            .to_string()
    }

    #[test]
    fn lines_are_updates() {
        let text =
            "{\"key\": \"alice\", \"value\": \"1\"}\n\n {\"value_hex\":\"00ff\",\"key_hex\":\"\"}";
        let updates = KeyUpdate::read_lines(text.as_bytes()).unwrap();
        let expected = [
            KeyUpdate::new("alice", "1").unwrap(),
            KeyUpdate::new("", [0, 0xff]).unwrap(),
        ];
        assert_eq!(updates, expected);
        assert!(KeyUpdate::read_lines(&b""[..]).unwrap().is_empty());
    }

    #[test]
    fn errors_name_the_line_and_the_field() {
        let good = "{\"key\":\"a\",\"value\":\"b\"}\n";
        for (line, expected) in [
            (
                "{\"key\":\"a\"}",
                "there must be one of the fields \"value\" and \"value_hex\"",
            ),
            (
                "{\"key\":\"a\",\"key_hex\":\"00\",\"value\":\"\"}",
                "there must be one of the fields \"key\" and \"key_hex\"",
            ),
            (
                "{\"key\":\"a\",\"value_hex\":\"0\"}",
                "field \"value_hex\": Odd number of digits",
            ),
            ("{\"key\":\"a\",\"valeu\":\"\"}", "unknown field `valeu`"),
            (
                "{\"key\":\"a\",\"key\":\"a\",\"value\":\"\"}",
                "duplicate field `key`",
            ),
            (
                "{\"key\":7,\"value\":\"\"}",
                "column 8: invalid type: integer `7`",
            ),
            ("[1]", "invalid"),
            ("{\"key\":\"a\",\"value\":\"\"} x", "trailing characters"),
        ] {
            let error = error(&format!("{good}{line}\n{good}"));
            assert!(error.starts_with("line 2: "), "{error}");
            assert!(error.contains(expected), "{error}");
        }
        let long = format!(
            "{{\"key\":\"{}\",\"value\":\"\"}}",
            "a".repeat(KEY_BYTES_MAX + 1)
        );
        assert_eq!(
            error(&long),
            "line 1: field \"key\" has 1025 bytes: 1024 at most"
        );
        let endless = "x".repeat(LINE_BYTES_MAX as usize + 1);
        assert!(error(&endless).starts_with("line 1: more than "));
        let bytes = b"{\"key\":\"\xff\",\"value\":\"\"}";
        let error = KeyUpdate::read_lines(&bytes[..]).unwrap_err().to_string();
        assert!(error.starts_with("line 1: "), "{error}");
    }

    /// The longest update is read even if every character is an escape.
    #[test]
    fn the_longest_line_is_read() {
        let escapes = |bytes: usize| "\\u0001".repeat(bytes);
        let (key, value) = (escapes(KEY_BYTES_MAX), escapes(VALUE_BYTES_MAX));
        let text = format!("{{\"key\":\"{key}\",\"value\":\"{value}\"}}\n");
        let updates = KeyUpdate::read_lines(text.as_bytes()).unwrap();
        assert_eq!(updates[0].value().len(), VALUE_BYTES_MAX);
    }
}
