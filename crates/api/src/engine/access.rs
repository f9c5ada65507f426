//! Who may call over TCP: tokens, each of which is a client's.

use std::fmt;
use std::io::Read;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use proofmill_engine::RequestId;
use sha2::{Digest, Sha256};
use subtle::{ConditionallySelectable, ConstantTimeEq};
use tonic::service::Interceptor;
use tonic::{Request, Status};
use zeroize::Zeroizing;

/// Bytes of a file of secrets, at most.
const FILE_MAX: u64 = 1 << 20;
/// Characters of a token, at least: fewer could be guessed.
const TOKEN_MIN: usize = 16;
/// Characters of a token, at most.
const TOKEN_MAX: usize = 512;

/// A file of secrets cannot be used.
#[derive(Debug, thiserror::Error)]
pub enum AccessError {
    /// It cannot be read.
    #[error("cannot read {}: {source}", path.display())]
    File {
        /// Which.
        path: PathBuf,
        /// Why.
        source: std::io::Error,
    },
    /// Other users can read or change it.
    #[error("{} is a secret that everybody on this machine can get at: `chmod 600` it", .0.display())]
    Open(PathBuf),
    /// It does not hold what it should.
    #[error("{}: {why}", path.display())]
    Content {
        /// Which.
        path: PathBuf,
        /// What is wrong, and where.
        why: String,
    },
}

/// The clients that may call, and the digests of their tokens. What is compared are digests, all of
/// them each time, so that the time it takes tells nothing of a token.
#[derive(Clone)]
pub struct Tokens(Arc<[(Arc<str>, [u8; 32])]>);

/// The client whose token a call carries.
#[derive(Clone, Debug)]
pub(crate) struct Caller(pub(crate) Arc<str>);

/// Lets only calls with a token through, if there are tokens.
#[derive(Clone, Debug)]
pub(crate) struct Gate(pub(crate) Option<Tokens>);

/// What a file holds that nobody but its owner, and perhaps a group, may read.
///
/// # Errors
///
/// It cannot be read, or by everybody.
pub(crate) fn read_secret(path: &Path) -> Result<Zeroizing<String>, AccessError> {
    let failed = |source| AccessError::File {
        path: path.to_owned(),
        source,
    };
    let file = std::fs::File::open(path).map_err(failed)?;
    let metadata = file.metadata().map_err(failed)?;
    if metadata.permissions().mode() & 0o007 != 0 {
        return Err(AccessError::Open(path.to_owned()));
    }
    if metadata.len() > FILE_MAX {
        return Err(AccessError::Content {
            path: path.to_owned(),
            why: format!("{} bytes, at most {FILE_MAX} are read", metadata.len()),
        });
    }
    let mut text = Zeroizing::new(String::new());
    file.take(FILE_MAX)
        .read_to_string(&mut text)
        .map_err(failed)?;
    Ok(text)
}

// === impl Tokens ===

impl Tokens {
    /// Reads a file with a client's name and its token on each line, such as
    /// `rollup 7f3c…`; empty lines and what follows `#` are left out.
    ///
    /// # Errors
    ///
    /// The file cannot be read, or by everybody; or which line is malformed.
    pub fn read(path: &Path) -> Result<Self, AccessError> {
        let text = read_secret(path)?;
        Self::parse(&text).map_err(|why| AccessError::Content {
            path: path.to_owned(),
            why,
        })
    }

    fn parse(text: &str) -> Result<Self, String> {
        let mut tokens = Vec::new();
        for (index, line) in text.lines().enumerate() {
            let line = line.split('#').next().unwrap_or_default();
            let mut words = line.split_whitespace();
            let Some(client) = words.next() else { continue };
            let wrong = |why: String| format!("line {}: {why}", index + 1);
            let (Some(token), None) = (words.next(), words.next()) else {
                return Err(wrong("expected a client's name and its token".to_owned()));
            };
            // The rule for clients' names is the one of requests; the id does not matter here.
            RequestId::new(client, "any").map_err(wrong)?;
            if !(TOKEN_MIN..=TOKEN_MAX).contains(&token.len()) {
                return Err(wrong(format!(
                    "a token has {TOKEN_MIN} to {TOKEN_MAX} characters; `openssl rand -hex 32` makes one"
                )));
            }
            tokens.push((Arc::from(client), digest(token.as_bytes())));
        }
        if tokens.is_empty() {
            return Err("there is no token in it: write `CLIENT TOKEN` on a line".to_owned());
        }
        Ok(Self(tokens.into()))
    }

    /// The client whose token this is.
    fn client(&self, token: &[u8]) -> Option<Arc<str>> {
        let given = digest(token);
        let none = u32::MAX;
        let mut found = none;
        for (index, (_, known)) in (0..).zip(&*self.0) {
            found.conditional_assign(&index, given.ct_eq(known));
        }
        let (client, _) = self.0.get(usize::try_from(found).ok()?)?;
        Some(client.clone())
    }
}

fn digest(token: &[u8]) -> [u8; 32] {
    Sha256::digest(token).into()
}

impl fmt::Debug for Tokens {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_list()
            .entries(self.0.iter().map(|(client, _)| client))
            .finish()
    }
}

// === impl Gate ===

impl Interceptor for Gate {
    fn call(&mut self, mut request: Request<()>) -> Result<Request<()>, Status> {
        let Some(tokens) = &self.0 else {
            return Ok(request);
        };
        let header = request.metadata().get("authorization");
        let token = header
            .and_then(|value| value.as_bytes().strip_prefix(b"Bearer "))
            .ok_or_else(|| {
                Status::unauthenticated(
                    "this needs a token: the header `authorization: Bearer TOKEN`",
                )
            })?;
        let client = tokens
            .client(token)
            .ok_or_else(|| Status::unauthenticated("the token is none of the engine's"))?;
        request.extensions_mut().insert(Caller(client));
        Ok(request)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const FILE: &str =
        "# clients\nrollup 0123456789abcdef\n\nlight  fedcba9876543210 # a comment\n";

    #[test]
    fn a_token_is_its_clients() {
        let tokens = Tokens::parse(FILE).unwrap();
        let client = |token: &str| tokens.client(token.as_bytes());
        assert_eq!(client("0123456789abcdef").as_deref(), Some("rollup"));
        assert_eq!(client("fedcba9876543210").as_deref(), Some("light"));
        for wrong in ["", "0123456789abcde", "0123456789abcdeg", "rollup"] {
            assert_eq!(client(wrong), None, "{wrong}");
        }
        assert!(!format!("{tokens:?}").contains("0123"));
    }

    #[test]
    fn lines_that_are_no_tokens_are_named() {
        for (text, why) in [
            ("", "no token"),
            ("rollup", "line 1"),
            ("a 0123456789abcdef\nb short", "line 2: a token has"),
            ("a 0123456789abcdef more", "line 1"),
            ("ä 0123456789abcdef", "client name"),
        ] {
            let refused = Tokens::parse(text).unwrap_err();
            assert!(refused.contains(why), "{refused}");
        }
    }
}
