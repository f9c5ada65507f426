//! Panics of one piece of work, caught and described, so that a service outlives a fault in code that it runs.
//!
//! ```
//! let products = [proofmill_panics::catch(|| 6 * 7), proofmill_panics::catch(|| panic!("no witness"))];
//! assert_eq!(products, [Ok(42), Err("no witness".to_owned())]);
//! ```

use std::panic::{AssertUnwindSafe, catch_unwind};

/// Runs `work`; an error is the message of its panic. A value that `work` was changing when it panicked may be half
/// changed, so the caller must not use it again.
///
/// # Errors
///
/// If `work` panics.
pub fn catch<T>(work: impl FnOnce() -> T) -> Result<T, String> {
    catch_unwind(AssertUnwindSafe(work)).map_err(|panic| {
        // `panic!` carries a `&str` where its message has no arguments, else a `String`.
        match panic.downcast_ref::<&str>() {
            Some(text) => (*text).to_owned(),
            None => match panic.downcast::<String>() {
                Ok(text) => *text,
                Err(_) => "without a message".to_owned(),
            },
        }
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_panic_is_known_by_its_message() {
        let number = 3;
        let messages = [
            catch(|| panic!("plain")),
            catch(|| panic!("number {number}")),
            catch(|| std::panic::panic_any(number)),
        ];
        assert_eq!(
            messages.map(Result::<(), _>::unwrap_err),
            ["plain", "number 3", "without a message"]
        );
    }
}
