//! Access tokens of clients.

use std::fmt;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use hyper::HeaderMap;
use hyper::header::AUTHORIZATION;
use proofmill_bus::{SecretError, read_secret};
use proofmill_engine::RequestId;
use sha2::{Digest, Sha256};
use subtle::{Choice, ConditionallySelectable, ConstantTimeEq};

/// Least length of a token, in bytes: shorter ones can be guessed.
const TOKEN_BYTES_MIN: usize = 16;

/// Greatest length of a token, in bytes.
const TOKEN_BYTES_MAX: usize = 4096;

/// The reason that a file of tokens or keys cannot be used.
#[derive(Debug, thiserror::Error)]
pub enum AccessError {
    /// The file is a secret, but cannot be read, or can be read by other users.
    #[error(transparent)]
    Secret(#[from] SecretError),
    /// The file cannot be read.
    #[error("cannot read {}", path.display())]
    File {
        /// The path of the file.
        path: PathBuf,
        /// The cause.
        #[source]
        source: std::io::Error,
    },
    /// The content of the file is invalid.
    #[error("{}: {why}", path.display())]
    Content {
        /// The path of the file.
        path: PathBuf,
        /// The fault, and its place in the file.
        why: String,
    },
}

/// The digest of a token. Digests are compared in constant time, so that timing reveals nothing about a
/// token.
#[derive(Clone, Copy)]
pub(crate) struct Token([u8; 32]);

/// The clients that may call, with their tokens and rights. A token is compared with the tokens of all clients each
/// time, so that timing does not reveal its client.
pub(crate) struct Clients<R>(Arc<[Client<R>]>);

/// A client, identified by its token.
pub(crate) struct Client<R> {
    pub(crate) name: Arc<str>,
    token: Token,
    pub(crate) rights: R,
}

// === impl Clients ===

impl<R> Clients<R> {
    /// Reads a file with a client's name, its token and its rights on each line; empty lines and comments
    /// after `#` are ignored. `rights` parses the words after the token, and returns a message if they are
    /// invalid.
    ///
    /// If there is a `sole_client`, a line of one word is a token of that client.
    pub(crate) async fn read(
        path: &Path,
        sole_client: Option<&str>,
        rights: impl Fn(&[&str]) -> Result<R, String>,
    ) -> Result<Self, AccessError> {
        let text = read_secret(path).await?;
        Self::parse(&text, sole_client, rights).map_err(|why| AccessError::Content {
            path: path.to_owned(),
            why,
        })
    }

    pub(crate) fn parse(
        text: &str,
        sole_client: Option<&str>,
        rights: impl Fn(&[&str]) -> Result<R, String>,
    ) -> Result<Self, String> {
        let mut clients: Vec<Client<R>> = Vec::new();
        for (index, line) in text.lines().enumerate() {
            let at_line = |why: String| format!("line {}: {why}", index + 1);
            let line = line.split('#').next().unwrap_or_default();
            let words: Vec<&str> = line.split_whitespace().collect();
            let (name, token, rest) = match (&*words, sole_client) {
                ([], _) => continue,
                ([token], Some(name)) => (name, *token, &[][..]),
                ([name, token, rest @ ..], _) => (*name, *token, rest),
                ([_], None) => {
                    return Err(at_line("expected a client's name and its token".to_owned()));
                }
            };
            // Clients' names follow the same rule as in requests; the id does not matter here.
            RequestId::new(name, "any").map_err(at_line)?;
            let token = Token::try_new(token).map_err(at_line)?;
            let other = clients.iter().find(|it| it.token.matches(&token).into());
            if let Some(other) = other {
                return Err(at_line(format!(
                    "the token is that of {:?} already",
                    &*other.name
                )));
            }
            clients.push(Client {
                name: name.into(),
                token,
                rights: rights(rest).map_err(at_line)?,
            });
        }
        if clients.is_empty() {
            return Err("there is no token in it: write `CLIENT TOKEN` on a line".to_owned());
        }
        Ok(Self(clients.into()))
    }

    /// The client of this token; none if it is unknown.
    pub(crate) fn find_by_token(&self, shown: &Token) -> Option<&Client<R>> {
        let none = u32::MAX;
        let mut found = none;
        for (index, client) in (0..).zip(&*self.0) {
            found.conditional_assign(&index, client.token.matches(shown));
        }
        self.0.get(usize::try_from(found).ok()?)
    }

    pub(crate) fn iter(&self) -> impl Iterator<Item = &Client<R>> {
        self.0.iter()
    }
}

impl<R> Clone for Clients<R> {
    fn clone(&self) -> Self {
        Self(self.0.clone())
    }
}

impl<R> fmt::Debug for Clients<R> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_list()
            .entries(self.0.iter().map(|client| &client.name))
            .finish()
    }
}

// === impl Token ===

impl Token {
    /// Checks the form of a token and computes its digest.
    pub(crate) fn try_new(word: &str) -> Result<Self, String> {
        if !(TOKEN_BYTES_MIN..=TOKEN_BYTES_MAX).contains(&word.len()) {
            return Err(format!(
                "a token has {TOKEN_BYTES_MIN} to {TOKEN_BYTES_MAX} bytes: `openssl rand -hex 32` makes one"
            ));
        }
        if !word.bytes().all(|byte| byte.is_ascii_graphic()) {
            return Err("a token is ASCII, without white space".into());
        }
        Ok(Self::digest(word.as_bytes()))
    }

    /// The token that a request shows, in the header `authorization: Bearer TOKEN`.
    pub(crate) fn shown(headers: &HeaderMap) -> Option<Self> {
        let value = headers.get(AUTHORIZATION)?.as_bytes();
        let (scheme, token) = value.split_at_checked(7)?;
        let is_bearer = scheme.eq_ignore_ascii_case(b"bearer ");
        is_bearer.then(|| Self::digest(token))
    }

    /// Whether the tokens are equal, compared in constant time.
    fn matches(&self, other: &Self) -> Choice {
        self.0.ct_eq(&other.0)
    }

    fn digest(bytes: &[u8]) -> Self {
        Self(Sha256::digest(bytes).into())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn tokens_that_are_short_or_not_printable_ascii_are_refused() {
        let long = "x".repeat(5000);
        for (word, why) in [
            ("", "16 to 4096"),
            ("0123456789abcde", "16 to 4096"),
            (&long, "16 to 4096"),
            ("0123456789 abcdef", "white space"),
            ("0123456789äbcdef", "ASCII"),
        ] {
            let message = Token::try_new(word).err().expect("refused");
            assert!(message.contains(why), "{message}");
        }
    }

    const FILE: &str =
        "# clients\nrollup 0123456789abcdef\n\nlight  fedcba9876543210 # a comment\n";

    /// The words after a token, joined.
    fn words(words: &[&str]) -> Result<String, String> {
        match words {
            ["wrong"] => Err("no such right".to_owned()),
            words => Ok(words.join(" ")),
        }
    }

    #[test]
    fn a_token_identifies_its_client() {
        let clients = Clients::parse(FILE, None, words).expect("clients");
        let find = |word: &str| {
            let shown = Token::try_new(word).expect("a token");
            clients.find_by_token(&shown).map(|client| &*client.name)
        };
        assert_eq!(find("0123456789abcdef"), Some("rollup"));
        assert_eq!(find("fedcba9876543210"), Some("light"));
        for wrong in ["0123456789abcdeg", "0123456789abcdef0"] {
            assert_eq!(find(wrong), None, "{wrong}");
        }
        assert!(!format!("{clients:?}").contains("0123"));
    }

    #[test]
    fn malformed_lines_are_named() {
        for (text, why) in [
            ("", "no token"),
            ("rollup", "line 1"),
            ("a 0123456789abcdef\nb short", "line 2: a token has"),
            ("a 0123456789abcdef wrong", "line 1: no such right"),
            ("ä 0123456789abcdef", "client name"),
            (
                "a 0123456789abcdef\nb 0123456789abcdef",
                "line 2: the token is that of \"a\" already",
            ),
        ] {
            let refused = Clients::parse(text, None, words).expect_err("refused");
            assert!(refused.contains(why), "{refused}");
        }
    }

    #[test]
    fn a_line_of_one_word_is_a_token_where_one_client_is_enough() {
        let text = "0123456789abcdef\nb fedcba9876543210 x y";
        let clients = Clients::parse(text, Some("sole"), words).expect("clients");
        let clients: Vec<_> = clients
            .iter()
            .map(|client| (&*client.name, &*client.rights))
            .collect();
        assert_eq!(clients, [("sole", ""), ("b", "x y")]);
    }

    #[test]
    fn only_the_whole_bearer_token_matches() {
        let token = Token::try_new("0123456789abcdef").expect("a token");
        let is = |value: &str| {
            let mut headers = HeaderMap::new();
            headers.insert(AUTHORIZATION, value.parse().expect("a value"));
            Token::shown(&headers).is_some_and(|shown| token.matches(&shown).into())
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
