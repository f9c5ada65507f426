//! Values that a workflow file writes as strings: JSON pointers, rates, durations and sizes.

use std::fmt;
use std::time::Duration;

use serde_json::Value;
use thiserror::Error;

/// A value that could not be read. The text is a sentence fragment that states the fault.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
#[error("{0}")]
pub struct InvalidValue(pub(crate) String);

impl InvalidValue {
    fn new(what: impl Into<String>) -> Self {
        Self(what.into())
    }
}

/// A JSON pointer (RFC 6901): `""` is the whole payload, `"/a/0"` the first element of field `a`.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct JsonPointer(String);

// === impl JsonPointer ===

impl JsonPointer {
    /// Longest pointer accepted, in bytes.
    pub const MAX_LEN: usize = 256;

    /// Reads a pointer.
    ///
    /// # Errors
    /// If it is longer than [`JsonPointer::MAX_LEN`], is neither empty nor begins with `/`, or
    /// holds a `~` that is not part of `~0` or `~1`.
    pub fn try_new(text: &str) -> Result<Self, InvalidValue> {
        if text.len() > Self::MAX_LEN {
            return Err(InvalidValue::new(format!(
                "a JSON pointer of {} bytes is longer than {}",
                text.len(),
                Self::MAX_LEN
            )));
        }
        if !text.is_empty() && !text.starts_with('/') {
            return Err(InvalidValue::new(format!(
                "{text:?} is not a JSON pointer: it does not begin with `/`"
            )));
        }
        let mut rest = text;
        while let Some(at) = rest.find('~') {
            rest = &rest[at + 1..];
            if !rest.starts_with(['0', '1']) {
                return Err(InvalidValue::new(format!(
                    "{text:?} is not a JSON pointer: `~` is not followed by `0` or `1`"
                )));
            }
        }
        Ok(Self(text.to_owned()))
    }

    /// The pointer as written.
    pub fn as_str(&self) -> &str {
        &self.0
    }

    /// The value in `payload` that the pointer refers to; `None` if there is none.
    pub fn resolve<'a>(&self, payload: &'a Value) -> Option<&'a Value> {
        payload.pointer(&self.0)
    }
}

impl fmt::Display for JsonPointer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

/// At most `count` messages in each `per`, evenly spaced.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Rate {
    /// Messages in each period, at least 1.
    pub count: u32,
    /// The period: a second, a minute or an hour.
    pub per: Duration,
}

// === impl Rate ===

impl Rate {
    /// Messages per second.
    pub fn per_second(&self) -> f64 {
        f64::from(self.count) / self.per.as_secs_f64()
    }

    /// The time from one message to the next.
    pub fn interval(&self) -> Duration {
        self.per / self.count
    }
}

impl std::str::FromStr for Rate {
    type Err = InvalidValue;

    /// Reads `"100/s"`, `"30/m"` or `"5/h"`.
    fn from_str(text: &str) -> Result<Self, InvalidValue> {
        let bad = || InvalidValue::new(format!("{text:?} is not a rate"));
        let (count, per) = text.split_once('/').ok_or_else(bad)?;
        let per = match per {
            "s" => 1,
            "m" => 60,
            "h" => 3600,
            _ => return Err(bad()),
        };
        if count.is_empty() || !count.bytes().all(|b| b.is_ascii_digit()) {
            return Err(bad());
        }
        let count: u32 = count
            .parse()
            .ok()
            .filter(|&count| count <= 1_000_000_000)
            .ok_or_else(|| InvalidValue::new(format!("{text:?} is more than 1000000000")))?;
        if count == 0 {
            return Err(InvalidValue::new(format!("{text:?} lets nothing through")));
        }
        Ok(Self {
            count,
            per: Duration::from_secs(per),
        })
    }
}

impl fmt::Display for Rate {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let unit = match self.per.as_secs() {
            1 => "s",
            60 => "m",
            _ => "h",
        };
        write!(f, "{}/{unit}", self.count)
    }
}

/// Longest duration accepted: 30 days.
pub const MAX_DURATION: Duration = Duration::from_secs(30 * 24 * 3600);

/// Reads a duration: a whole number and one of `ms`, `s`, `m`, `h`, as in `"500ms"`.
///
/// # Errors
/// If it is not of that form, or longer than [`MAX_DURATION`].
pub fn parse_duration(text: &str) -> Result<Duration, InvalidValue> {
    let digits = text.bytes().take_while(u8::is_ascii_digit).count();
    let (number, unit) = text.split_at(digits);
    let scale: u64 = match unit {
        _ if digits == 0 => 0,
        "ms" => 1,
        "s" => 1000,
        "m" => 60_000,
        "h" => 3_600_000,
        _ => 0,
    };
    if scale == 0 {
        return Err(InvalidValue::new(format!("{text:?} is not a duration")));
    }
    number
        .parse::<u64>()
        .ok()
        .and_then(|n| n.checked_mul(scale))
        .map(Duration::from_millis)
        .filter(|&d| d <= MAX_DURATION)
        .ok_or_else(|| InvalidValue::new(format!("{text:?} is longer than 30 days")))
}

/// Writes a duration as [`parse_duration`] reads it, in the largest unit that is exact.
pub fn format_duration(duration: Duration) -> String {
    let ms = duration.as_millis();
    match ms {
        0 => "0s".to_owned(),
        ms if ms % 3_600_000 == 0 => format!("{}h", ms / 3_600_000),
        ms if ms % 60_000 == 0 => format!("{}m", ms / 60_000),
        ms if ms % 1000 == 0 => format!("{}s", ms / 1000),
        ms => format!("{ms}ms"),
    }
}

/// Reads a size in bytes: a whole number and one of `B`, `KiB`, `MiB`, `GiB`, `TiB` (powers of
/// 1024) or `KB`, `MB`, `GB`, `TB` (powers of 1000).
///
/// # Errors
/// If it is not of that form, or does not fit 63 bits.
pub fn parse_size(text: &str) -> Result<u64, InvalidValue> {
    let digits = text.bytes().take_while(u8::is_ascii_digit).count();
    let (number, unit) = text.split_at(digits);
    let scale: u64 = match unit {
        _ if digits == 0 => 0,
        "B" => 1,
        "KiB" => 1 << 10,
        "MiB" => 1 << 20,
        "GiB" => 1 << 30,
        "TiB" => 1 << 40,
        "KB" => 1000,
        "MB" => 1_000_000,
        "GB" => 1_000_000_000,
        "TB" => 1_000_000_000_000,
        _ => 0,
    };
    if scale == 0 {
        return Err(InvalidValue::new(format!("{text:?} is not a size")));
    }
    number
        .parse::<u64>()
        .ok()
        .and_then(|n| n.checked_mul(scale))
        .filter(|&n| n <= i64::MAX as u64)
        .ok_or_else(|| InvalidValue::new(format!("{text:?} is too large a size")))
}
