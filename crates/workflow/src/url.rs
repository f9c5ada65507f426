//! Addresses of HTTP servers.

use std::fmt;

use http::Uri;
use http::uri::{Authority, PathAndQuery};

use crate::value::InvalidValue;

/// The address of an HTTP server: `http://HOST[:PORT][/PATH]`, or `https`.
///
/// `Display` and `Debug` leave out path and query, which often hold an API key.
#[derive(Clone, PartialEq, Eq)]
pub struct HttpUrl {
    tls: bool,
    authority: Authority,
    path: PathAndQuery,
}

// === impl HttpUrl ===

impl HttpUrl {
    /// Longest address accepted, in bytes.
    pub const MAX_LEN: usize = 2048;

    /// Reads an address.
    ///
    /// # Errors
    /// If it is longer than [`HttpUrl::MAX_LEN`], is not such an address, or names a user: the
    /// user's password would be readable in the file.
    pub fn try_new(text: &str) -> Result<Self, InvalidValue> {
        if text.len() > Self::MAX_LEN {
            let length = text.len();
            return Err(InvalidValue(format!(
                "an address of {length} bytes is longer than {}",
                Self::MAX_LEN
            )));
        }
        // The text is not shown: it may hold a key.
        let bad = |why: &str| InvalidValue(format!("not the address of an HTTP server: {why}"));
        let uri: Uri = text.parse().map_err(|_| bad("it does not parse"))?;
        let tls = match uri.scheme_str() {
            Some("http") => false,
            Some("https") => true,
            _ => return Err(bad("it does not begin with http:// or https://")),
        };
        let parts = uri.into_parts();
        let authority = parts.authority.filter(|found| !found.host().is_empty());
        let authority = authority.ok_or_else(|| bad("it names no host"))?;
        if authority.as_str().contains('@') {
            return Err(bad("it names a user"));
        }
        // `http` accepts any text after the colon and parses it as a port only when asked.
        let after_host = authority.as_str().strip_prefix(authority.host());
        if after_host.is_some_and(|rest| !rest.is_empty()) && authority.port_u16().is_none() {
            return Err(bad("its port is not a number from 0 to 65535"));
        }
        if text.contains('#') {
            return Err(bad("it has a fragment"));
        }
        let path = parts
            .path_and_query
            .unwrap_or_else(|| PathAndQuery::from_static("/"));
        Ok(Self {
            tls,
            authority,
            path,
        })
    }

    /// Whether the scheme is `https`.
    pub fn is_tls(&self) -> bool {
        self.tls
    }

    /// The host: a name or an address. An IPv6 address is in brackets.
    pub fn host(&self) -> &str {
        self.authority.host()
    }

    /// The port; if the address has none, 80 for `http` and 443 for `https`.
    pub fn port(&self) -> u16 {
        let usual = if self.tls { 443 } else { 80 };
        self.authority.port_u16().unwrap_or(usual)
    }

    /// Host and port as written in the address: the value of the header `Host`.
    pub fn authority(&self) -> &str {
        self.authority.as_str()
    }

    /// The address of `path`, which begins with `/`, below this one, whose query is left out.
    ///
    /// # Errors
    /// As [`HttpUrl::try_new`].
    pub fn below(&self, path: &str) -> Result<Self, InvalidValue> {
        let scheme = if self.tls { "https" } else { "http" };
        let own = self.path.path().trim_end_matches('/');
        Self::try_new(&format!("{scheme}://{}{own}{path}", self.authority))
    }

    /// Path and query, at least `/`. They may hold a key.
    pub fn path(&self) -> &str {
        self.path.as_str()
    }
}

impl fmt::Display for HttpUrl {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let scheme = if self.tls { "https" } else { "http" };
        write!(f, "{scheme}://{}", self.authority)
    }
}

impl fmt::Debug for HttpUrl {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "HttpUrl({self})")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn addresses_are_taken_apart_and_keep_their_secrets() {
        let url = HttpUrl::try_new("https://node.example:8545/v3/secret?x=1").unwrap();
        assert!(url.is_tls());
        assert_eq!((url.host(), url.port()), ("node.example", 8545));
        assert_eq!(url.authority(), "node.example:8545");
        assert_eq!(url.path(), "/v3/secret?x=1");
        assert_eq!(format!("{url:?}"), "HttpUrl(https://node.example:8545)");
        for (text, port) in [
            ("http://[::1]", 80),
            ("https://h", 443),
            ("http://h?q", 80),
            ("http://h:8080/", 8080),
        ] {
            assert_eq!(HttpUrl::try_new(text).unwrap().port(), port, "{text}");
        }
        for wrong in [
            "",
            "node:8545",
            "http://",
            "http:///path",
            "ftp://h",
            "http:// x",
            "http://me:secret@node",
            "http://h:99999",
            "http://h:x",
            "http://h/#secret",
            &format!("http://h/{}", "secret".repeat(400)),
        ] {
            let error = HttpUrl::try_new(wrong).expect_err(wrong);
            assert!(!error.to_string().contains("secret"), "{error}");
        }
    }
}
