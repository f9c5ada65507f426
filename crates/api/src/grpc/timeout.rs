//! The timeouts of callers.

use std::time::Duration;

use hyper::HeaderMap;
use tonic::Status;

/// Longest timeout of a call, to which longer ones are shortened, and farthest deadline that is accepted. Clocks could
/// overflow beyond that.
pub(crate) const TIMEOUT_MAX: Duration = Duration::from_secs(100 * 365 * 24 * 3600);

/// The caller's timeout, from the header `grpc-timeout`.
///
/// # Errors
///
/// The header is malformed.
pub(crate) fn timeout_of_call(headers: &HeaderMap) -> Result<Option<Duration>, Status> {
    let Some(value) = headers.get("grpc-timeout") else {
        return Ok(None);
    };
    let timeout = value.to_str().ok().and_then(parse_timeout).ok_or_else(|| {
        Status::invalid_argument(
            "grpc-timeout: not one to eight digits and one of the units H, M, S, m, u and n",
        )
    })?;
    Ok(Some(timeout))
}

fn parse_timeout(text: &str) -> Option<Duration> {
    let (digits, unit) = text.split_at_checked(text.len().checked_sub(1)?)?;
    if !(1..=8).contains(&digits.len()) || !digits.bytes().all(|it| it.is_ascii_digit()) {
        return None;
    }
    let count: u64 = digits.parse().ok()?;
    let timeout = match unit {
        "H" => Duration::from_secs(count * 3600),
        "M" => Duration::from_secs(count * 60),
        "S" => Duration::from_secs(count),
        "m" => Duration::from_millis(count),
        "u" => Duration::from_micros(count),
        "n" => Duration::from_nanos(count),
        _ => return None,
    };
    Some(timeout.min(TIMEOUT_MAX))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn timeouts_have_units() {
        assert_eq!(parse_timeout("5S"), Some(Duration::from_secs(5)));
        assert_eq!(parse_timeout("99999999H"), Some(TIMEOUT_MAX));
        for bad in ["", "5", "S", "-1S", "123456789n", "5é", "5x"] {
            assert_eq!(parse_timeout(bad), None, "{bad}");
        }
    }
}
