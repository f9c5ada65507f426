//! Who may ask: whoever shows the token, and no page in a browser.

use std::net::IpAddr;
use std::sync::Arc;

use axum::extract::{Request, State};
use axum::http::header::{AUTHORIZATION, HOST, HeaderMap, ORIGIN};
use axum::http::{HeaderValue, StatusCode, header};
use axum::middleware::Next;
use axum::response::{IntoResponse, Response};
use ring::hmac;
use ring::rand::SystemRandom;

use crate::refused::Refused;

/// Fewest bytes of a token: fewer can be guessed.
const TOKEN_LEAST: usize = 16;

/// Most bytes of a token.
const TOKEN_MOST: usize = 4096;

/// What producers show, kept as its code under a key that only this process has: comparing codes
/// takes as long whatever is shown.
pub(super) struct Token {
    key: hmac::Key,
    code: hmac::Tag,
}

/// Keeps out who may not ask.
pub(super) struct Gate {
    pub(super) token: Option<Token>,
}

// === impl Token ===

impl Token {
    /// The token in the text of a file: white space around it is no part of it.
    pub(super) fn new(text: &str) -> Result<Self, String> {
        let token = text.trim_ascii();
        if !(TOKEN_LEAST..=TOKEN_MOST).contains(&token.len()) {
            return Err(format!(
                "a token has {TOKEN_LEAST} to {TOKEN_MOST} bytes: `openssl rand -hex 32` makes one"
            ));
        }
        if !token.bytes().all(|byte| byte.is_ascii_graphic()) {
            return Err("a token is ASCII, without white space".into());
        }
        let key = hmac::Key::generate(hmac::HMAC_SHA256, &SystemRandom::new())
            .map_err(|_| "the system gives no random numbers".to_owned())?;
        let code = hmac::sign(&key, token.as_bytes());
        Ok(Self { key, code })
    }

    fn is(&self, shown: &[u8]) -> bool {
        hmac::verify(&self.key, shown, self.code.as_ref()).is_ok()
    }
}

// === impl Gate ===

impl Gate {
    /// Lets a request pass, or answers it.
    pub(super) async fn pass(
        State(gate): State<Arc<Self>>,
        request: Request,
        next: Next,
    ) -> Response {
        let Err(refused) = gate.admit(request.headers()) else {
            return next.run(request).await;
        };
        let status = refused.status;
        let mut response = refused.into_response();
        let headers = response.headers_mut();
        if status == StatusCode::UNAUTHORIZED {
            let scheme = HeaderValue::from_static("Bearer");
            headers.insert(header::WWW_AUTHENTICATE, scheme);
        }
        // What it still sends is not read.
        headers.insert(header::CONNECTION, HeaderValue::from_static("close"));
        response
    }

    fn admit(&self, headers: &HeaderMap) -> Result<(), Refused> {
        let forbidden = |why: &str| Err(Refused::new(StatusCode::FORBIDDEN, why));
        if headers.contains_key(ORIGIN) {
            return forbidden("pages in a browser may not ask: there is an Origin header");
        }
        match &self.token {
            // A page in a browser has no token, whatever name it has given this machine.
            Some(token) if shown(headers).is_some_and(|shown| token.is(shown)) => Ok(()),
            Some(_) => Err(Refused::new(
                StatusCode::UNAUTHORIZED,
                "show the token of --submit-token: `Authorization: Bearer TOKEN`",
            )),
            None if is_local(headers) => Ok(()),
            None => forbidden(
                "without a token, ask by an address or as localhost: the Host header has another \
                 name",
            ),
        }
    }
}

/// The token that a request shows.
fn shown(headers: &HeaderMap) -> Option<&[u8]> {
    let value = headers.get(AUTHORIZATION)?.as_bytes();
    let (scheme, token) = value.split_at_checked(7)?;
    scheme.eq_ignore_ascii_case(b"bearer ").then_some(token)
}

/// Whether this machine is asked by an address, or as `localhost`: a page that has its own name
/// point here (DNS rebinding) asks by that name.
fn is_local(headers: &HeaderMap) -> bool {
    let mut hosts = headers.get_all(HOST).iter();
    let (Some(host), None) = (hosts.next(), hosts.next()) else {
        return false;
    };
    let Ok(host) = host.to_str() else {
        return false;
    };
    let name = match host.strip_prefix('[') {
        Some(rest) => rest.split(']').next().unwrap_or_default(),
        None => host.split(':').next().unwrap_or_default(),
    };
    name.eq_ignore_ascii_case("localhost") || name.parse::<IpAddr>().is_ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    const TOKEN: &str = "0123456789abcdef";

    fn status(token: Option<&str>, headers: &[(&'static str, &str)]) -> u16 {
        let token = token.map(|text| Token::new(text).expect("a token"));
        let mut map = HeaderMap::new();
        for (name, value) in headers {
            map.append(*name, value.parse().expect("a value"));
        }
        let refused = Gate { token }.admit(&map).err();
        refused.map_or(200, |refused| refused.status.as_u16())
    }

    #[test]
    fn without_a_token_only_an_address_or_localhost_is_asked() {
        for host in [
            "127.0.0.1",
            "127.0.0.1:9465",
            "localhost",
            "LOCALHOST:9465",
            "[::1]",
            "[::1]:9465",
        ] {
            assert_eq!(status(None, &[("host", host)]), 200, "{host}");
        }
        for host in [
            "evil.example",
            "evil.example:9465",
            "localhost.evil.example",
            "127.0.0.1.evil.example",
            "",
            "[",
            ":9465",
            "localhost@evil.example",
        ] {
            assert_eq!(status(None, &[("host", host)]), 403, "{host}");
        }
        assert_eq!(status(None, &[]), 403);
        let two = [("host", "localhost"), ("host", "evil.example")];
        assert_eq!(status(None, &two), 403);
    }

    #[test]
    fn a_page_is_refused_with_the_token_too() {
        for origin in ["null", "http://127.0.0.1:9465", "https://evil.example"] {
            let bearer = format!("Bearer {TOKEN}");
            let headers = [
                ("host", "127.0.0.1"),
                ("origin", origin),
                ("authorization", &bearer),
            ];
            assert_eq!(status(None, &headers), 403, "{origin}");
            assert_eq!(status(Some(TOKEN), &headers), 403, "{origin}");
        }
    }

    #[test]
    fn the_token_is_shown_whole() {
        let with = |value: &str| {
            let headers = [("host", "a.name.of.ours"), ("authorization", value)];
            status(Some(TOKEN), &headers)
        };
        assert_eq!(with(&format!("Bearer {TOKEN}")), 200);
        assert_eq!(with(&format!("bearer {TOKEN}")), 200);
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
            assert_eq!(with(wrong), 401, "{wrong}");
        }
        assert_eq!(status(Some(TOKEN), &[("host", "localhost")]), 401);
    }

    #[test]
    fn a_token_that_can_be_guessed_or_not_be_sent_is_refused() {
        let long = "x".repeat(5000);
        for (text, why) in [
            ("", "16 to 4096"),
            ("0123456789abcde\n", "16 to 4096"),
            (&long, "16 to 4096"),
            ("0123456789 abcdef", "white space"),
            ("0123456789äbcdef", "ASCII"),
        ] {
            let said = Token::new(text).err().expect("refused");
            assert!(said.contains(why), "{said}");
        }
        assert!(Token::new("0123456789abcdef\n").is_ok_and(|token| token.is(TOKEN.as_bytes())));
    }
}
