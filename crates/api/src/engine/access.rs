//! Who may call over TCP: tokens, each of which is a client's.

use std::fmt;
use std::path::Path;
use std::sync::Arc;

use proofmill_bus::read_secret;
use proofmill_engine::RequestId;
use subtle::ConditionallySelectable;
use tonic::service::Interceptor;
use tonic::{Request, Status};

use crate::access::{AccessError, Token};

/// The clients that may call, and their tokens. A token is compared with all of them each time, so that
/// the time it takes tells nothing of whose it is.
#[derive(Clone)]
pub struct Tokens(Arc<[(Arc<str>, Token)]>);

/// The client whose token a call carries.
#[derive(Clone, Debug)]
pub(crate) struct Caller(pub(crate) Arc<str>);

/// Lets only calls with a token through, if there are tokens.
#[derive(Clone, Debug)]
pub(crate) struct Gate(pub(crate) Option<Tokens>);

// === impl Tokens ===

impl Tokens {
    /// Reads a file with a client's name and its token on each line, such as
    /// `rollup 7f3c…`; empty lines and what follows `#` are left out.
    ///
    /// # Errors
    ///
    /// The file cannot be read, or by everybody; or which line is malformed.
    pub async fn read(path: &Path) -> Result<Self, AccessError> {
        let text = read_secret(path).await?;
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
            let token = Token::try_new(token).map_err(wrong)?;
            tokens.push((Arc::from(client), token));
        }
        if tokens.is_empty() {
            return Err("there is no token in it: write `CLIENT TOKEN` on a line".to_owned());
        }
        Ok(Self(tokens.into()))
    }

    /// The client whose token this is.
    fn client(&self, shown: &Token) -> Option<Arc<str>> {
        let none = u32::MAX;
        let mut found = none;
        for (index, (_, known)) in (0..).zip(&*self.0) {
            found.conditional_assign(&index, known.is(shown));
        }
        let (client, _) = self.0.get(usize::try_from(found).ok()?)?;
        Some(client.clone())
    }
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
        let shown = Token::shown(request.metadata().as_ref()).ok_or_else(|| {
            Status::unauthenticated("this needs a token: the header `authorization: Bearer TOKEN`")
        })?;
        let client = tokens
            .client(&shown)
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
        let client = |word: &str| tokens.client(&Token::try_new(word).unwrap());
        assert_eq!(client("0123456789abcdef").as_deref(), Some("rollup"));
        assert_eq!(client("fedcba9876543210").as_deref(), Some("light"));
        for wrong in ["0123456789abcdeg", "0123456789abcdef0"] {
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
