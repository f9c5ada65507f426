//! The wall clock, as records and spans have it.

use std::time::{SystemTime, UNIX_EPOCH};

/// The present time, milliseconds since 1970-01-01 UTC; 0 on a clock before that.
pub fn wall_ms() -> u64 {
    let wall = SystemTime::now().duration_since(UNIX_EPOCH);
    u64::try_from(wall.unwrap_or_default().as_millis()).unwrap_or(u64::MAX)
}
