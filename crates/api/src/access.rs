//! Tokens: what whoever asks has to show.

use std::path::{Path, PathBuf};

use hyper::HeaderMap;
use hyper::header::AUTHORIZATION;
use proofmill_bus::{SecretError, read_secret};
use sha2::{Digest, Sha256};
use subtle::{Choice, ConstantTimeEq};

/// Fewest bytes of a token: fewer can be guessed.
const TOKEN_LEAST: usize = 16;

/// Most bytes of a token.
const TOKEN_MOST: usize = 4096;

/// A file that says who may ask cannot be used.
#[derive(Debug, thiserror::Error)]
pub enum AccessError {
    /// It is a secret, and cannot be read, or by everybody.
    #[error(transparent)]
    Secret(#[from] SecretError),
    /// It cannot be read.
    #[error("cannot read {}", path.display())]
    File {
        /// Which.
        path: PathBuf,
        /// Why.
        #[source]
        source: std::io::Error,
    },
    /// It does not hold what it should.
    #[error("{}: {why}", path.display())]
    Content {
        /// Which.
        path: PathBuf,
        /// What is wrong, and where.
        why: String,
    },
}

/// A token, kept as its digest. What is compared are digests, so that the time it takes tells nothing
/// of the token.
#[derive(Clone, Copy)]
pub(crate) struct Token([u8; 32]);

// === impl Token ===

impl Token {
    /// The token of a word.
    pub(crate) fn try_new(word: &str) -> Result<Self, String> {
        if !(TOKEN_LEAST..=TOKEN_MOST).contains(&word.len()) {
            return Err(format!(
                "a token has {TOKEN_LEAST} to {TOKEN_MOST} bytes: `openssl rand -hex 32` makes one"
            ));
        }
        if !word.bytes().all(|byte| byte.is_ascii_graphic()) {
            return Err("a token is ASCII, without white space".into());
        }
        Ok(Self::of(word.as_bytes()))
    }

    /// The token in a file of nothing else: white space around it is no part of it.
    pub(crate) async fn read(path: &Path) -> Result<Self, AccessError> {
        let text = read_secret(path).await?;
        Self::try_new(text.trim_ascii()).map_err(|why| AccessError::Content {
            path: path.to_owned(),
            why,
        })
    }

    /// The token that a request shows: `authorization: Bearer TOKEN`.
    pub(crate) fn shown(headers: &HeaderMap) -> Option<Self> {
        let value = headers.get(AUTHORIZATION)?.as_bytes();
        let (scheme, token) = value.split_at_checked(7)?;
        let is_bearer = scheme.eq_ignore_ascii_case(b"bearer ");
        is_bearer.then(|| Self::of(token))
    }

    pub(crate) fn is(&self, other: &Self) -> Choice {
        self.0.ct_eq(&other.0)
    }

    fn of(bytes: &[u8]) -> Self {
        Self(Sha256::digest(bytes).into())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_token_that_can_be_guessed_or_not_be_sent_is_refused() {
        let long = "x".repeat(5000);
        for (word, why) in [
            ("", "16 to 4096"),
            ("0123456789abcde", "16 to 4096"),
            (&long, "16 to 4096"),
            ("0123456789 abcdef", "white space"),
            ("0123456789äbcdef", "ASCII"),
        ] {
            let said = Token::try_new(word).err().expect("refused");
            assert!(said.contains(why), "{said}");
        }
    }

    #[test]
    fn the_token_is_shown_whole() {
        let token = Token::try_new("0123456789abcdef").expect("a token");
        let is = |value: &str| {
            let mut headers = HeaderMap::new();
            headers.insert(AUTHORIZATION, value.parse().expect("a value"));
            Token::shown(&headers).is_some_and(|shown| token.is(&shown).into())
        };
        assert!(is("Bearer 0123456789abcdef") && is("bearer 0123456789abcdef"));
        for wrong in [
            "",
            "Bearer",
            "Bearer ",
            "Bearer 0123456789abcde",
            "Bearer 0123456789abcdef0",
            "Bearer 0123456789abcdeF",
            "Basic 0123456789abcdef",
            "0123456789abcdef",
        ] {
            assert!(!is(wrong), "{wrong}");
        }
        assert!(Token::shown(&HeaderMap::new()).is_none());
    }
}
