//! Parsing of variables' values.

use std::fmt;
use std::time::Duration;

use serde_json::Value;
use sha2::{Digest, Sha256};

/// Longest name of a subject, stream or consumer, in bytes: the server's own limit.
const MAX_NAME: usize = 255;

/// Longest `ACK_WAIT` and `COLLECT_TIMEOUT_PERIOD_MILLIS`.
const MAX_DURATION: Duration = Duration::from_secs(24 * 60 * 60);

/// A place in a payload: the name of a field of an object, or a JSON pointer (RFC 6901).
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Field(String);

/// A boolean: `1`, `true`, `yes` or `on`, and `0`, `false`, `no` or `off`, in any case.
pub(super) fn flag(text: &str) -> Option<bool> {
    match text.to_ascii_lowercase().as_str() {
        "1" | "true" | "yes" | "on" => Some(true),
        "0" | "false" | "no" | "off" => Some(false),
        _ => None,
    }
}

/// A whole number of seconds, or a number with the unit `ms`, `s`, `m` or `h`.
pub(super) fn duration(text: &str) -> Option<Duration> {
    let digits = text.len() - text.trim_start_matches(|c: char| c.is_ascii_digit()).len();
    let (number, unit) = text.split_at(digits);
    let number: u64 = number.parse().ok()?;
    let millis = match unit.trim() {
        "ms" => 1,
        "" | "s" => 1000,
        "m" => 60_000,
        "h" => 3_600_000,
        _ => return None,
    };
    within(Duration::from_millis(number.checked_mul(millis)?))
}

/// A whole number of milliseconds.
pub(super) fn millis(text: &str) -> Option<Duration> {
    within(Duration::from_millis(text.parse().ok()?))
}

fn within(duration: Duration) -> Option<Duration> {
    (duration > Duration::ZERO && duration <= MAX_DURATION).then_some(duration)
}

/// Whether a text is a subject without wildcards.
pub(super) fn is_queue(text: &str) -> bool {
    let token = |token: &str| {
        let fine = |byte: u8| byte.is_ascii_graphic() && !matches!(byte, b'*' | b'>');
        !token.is_empty() && token.bytes().all(fine)
    };
    text.len() <= MAX_NAME && !text.starts_with('$') && text.split('.').all(token)
}

/// Whether a text is a valid name of a stream or a consumer.
pub(super) fn is_name(text: &str) -> bool {
    let fine =
        |byte: u8| byte.is_ascii_graphic() && !matches!(byte, b'*' | b'>' | b'.' | b'/' | b'\\');
    !text.is_empty() && text.len() <= MAX_NAME && text.bytes().all(fine)
}

/// A consumer's name, made of subjects and other names. The end of a long name is replaced by a digest.
pub(super) fn durable_name(parts: &[&str]) -> String {
    const LONGEST: usize = 120;
    let name = parts
        .join("-")
        .replace(['.', '/', '\\', '*', '>', ' '], "_");
    if name.len() <= LONGEST {
        return name;
    }
    let digest = hex::encode(&Sha256::digest(name.as_bytes())[..8]);
    let mut end = LONGEST - digest.len() - 1;
    while !name.is_char_boundary(end) {
        end -= 1;
    }
    format!("{}-{digest}", &name[..end])
}

// === impl Field ===

impl Field {
    /// `None` if the text is neither a name nor a pointer.
    pub(crate) fn parse(text: &str) -> Option<Self> {
        let escapes_are_right = || {
            text.split('~')
                .skip(1)
                .all(|rest| rest.starts_with(['0', '1']))
        };
        let fits = !text.is_empty() && text.len() <= MAX_NAME;
        (fits && (!text.starts_with('/') || escapes_are_right())).then(|| Self(text.to_owned()))
    }

    /// The value at this place in a payload.
    pub(crate) fn of<'a>(&self, payload: &'a Value) -> Option<&'a Value> {
        if self.0.starts_with('/') {
            payload.pointer(&self.0)
        } else {
            payload.get(&self.0)
        }
    }

    /// The place as a JSON pointer.
    pub(crate) fn pointer(&self) -> String {
        if self.0.starts_with('/') {
            self.0.clone()
        } else {
            format!("/{}", self.0.replace('~', "~0").replace('/', "~1"))
        }
    }
}

impl fmt::Display for Field {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn durations_have_units_and_limits() {
        assert_eq!(duration("30"), Some(Duration::from_secs(30)));
        assert_eq!(duration("1500ms"), Some(Duration::from_millis(1500)));
        assert_eq!(duration("5 m"), Some(Duration::from_secs(300)));
        for wrong in [
            "",
            "0",
            "s",
            "-1",
            "1d",
            "1.5s",
            "99999999999999999999",
            "25h",
        ] {
            assert_eq!(duration(wrong), None, "{wrong}");
        }
        assert_eq!(millis("500"), Some(Duration::from_millis(500)));
        assert_eq!(millis("500ms"), None);
    }

    #[test]
    fn malformed_subjects_and_names_are_refused() {
        assert!(is_queue("modularorchestrator.block_proofs") && is_queue("blocks"));
        for wrong in ["", ".", "a..b", "a.*", "a.>", "a b", "a.", "$JS.API", "é"] {
            assert!(!is_queue(wrong), "{wrong}");
        }
        assert!(is_name("modular-orchestrator_1") && !is_name("a.b") && !is_name(""));
        let long = "x".repeat(300);
        let name = durable_name(&["dispatcher", &long]);
        assert!(is_name(&name) && name.len() <= 120);
        assert_ne!(name, durable_name(&["dispatcher", &long, "y"]));
    }

    #[test]
    fn a_field_is_a_name_or_a_pointer() {
        let payload = json!({"group_id": 7, "data": {"a/b": 8}});
        let of = |text: &str| Field::parse(text).and_then(|field| field.of(&payload).cloned());
        assert_eq!(of("group_id"), Some(json!(7)));
        assert_eq!(of("/data/a~1b"), Some(json!(8)));
        assert_eq!(of("data.a"), None);
        assert_eq!(of("/a~2"), None);
        assert_eq!(Field::parse("a/b").unwrap().pointer(), "/a~1b");
    }
}
