//! The key with which calls are made.

use std::fmt;

use hyper::header::HeaderValue;
use proofmill_http::SecretError;
use proofmill_workflow::Secret;

/// Shortest key accepted, bytes.
const BYTES_MIN: usize = 8;

/// Longest key accepted, bytes.
const BYTES_MAX: usize = 4096;

/// The API key of a team. Never shown; its memory is not overwritten, since the headers of requests hold it too.
#[derive(Clone)]
pub struct Token(HeaderValue);

// === impl Token ===

impl Token {
    /// Reads the key from the variable or the file that the workflow names. White space around it is removed.
    ///
    /// # Errors
    /// It cannot be read, others can access its file, it is too short or too long, or has characters that a header cannot have.
    pub fn read(of: &Secret) -> Result<Self, SecretError> {
        let text = proofmill_http::Secret::read(of, BYTES_MIN..=BYTES_MAX)?;
        Self::new(text.expose()).ok_or_else(|| {
            SecretError::unfit(of, "is too short, or has characters that a key cannot have")
        })
    }

    /// The key `text`; `None` if it is too short, or has characters that a key cannot have.
    pub(crate) fn new(text: &str) -> Option<Self> {
        let text = text.trim();
        if text.len() < BYTES_MIN || !text.bytes().all(|byte| byte.is_ascii_graphic()) {
            return None;
        }
        let mut value = HeaderValue::try_from(format!("Bearer {text}")).ok()?;
        value.set_sensitive(true);
        Some(Self(value))
    }

    /// Value of the header `Authorization`.
    pub(crate) fn header(&self) -> HeaderValue {
        self.0.clone()
    }
}

impl fmt::Debug for Token {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Token")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_key_has_characters_of_a_header_and_is_never_shown() {
        let token = Token::new(" secret-key-1").expect("a key");
        assert_eq!(
            token.header().to_str().expect("text"),
            "Bearer secret-key-1"
        );
        assert_eq!(format!("{token:?} {:?}", token.header()), "Token Sensitive");
        for bad in [
            "two words here",
            "     short",
            "a\u{e9}\u{e9}\u{e9}",
            "line\nline",
        ] {
            assert!(Token::new(bad).is_none(), "{bad:?}");
        }
    }
}
