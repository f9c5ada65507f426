//! The error for an engine that cannot be reached, with advice.

use proofmill_bus::certificate_remedy;

use super::client::{Address, ClientError};

/// The error of a failed connection, with advice where the cause is known; `answered` tells whether an
/// engine ever answered at the address.
pub(super) fn unreachable(address: &Address, why: String, answered: bool) -> ClientError {
    let is_tls = matches!(address, Address::Tcp(uri) if uri.scheme_str() == Some("https"));
    let remedy = if is_tls {
        certificate_remedy(&why, "--ca").or_else(|| no_tls(&why).then(|| NOT_TLS.to_owned()))
    } else {
        let is_tcp = matches!(address, Address::Tcp(_));
        (is_tcp && !answered && no_http2(&why)).then(|| NOT_PLAIN.to_owned())
    };
    ClientError::Unreachable {
        address: address.clone(),
        why: match remedy {
            Some(remedy) => format!("{why}; {remedy}"),
            None => why,
        },
    }
}

const NOT_TLS: &str = "the server there does not seem to use TLS: an engine without \
                       --tls-certificate is addressed as http://HOST:PORT";

const NOT_PLAIN: &str = "the server there does not speak gRPC without TLS: an engine with \
                         --tls-certificate is addressed as https://HOST:PORT with --ca, and the \
                         port is that of --listen, not of --http";

/// Whether a connection with TLS met a peer without TLS: an answer in the clear, or the end of the
/// connection, which may arrive before that answer if the peer has not read everything.
fn no_tls(why: &str) -> bool {
    let signs = [
        "invalidcontenttype",
        "received corrupt message",
        "handshake eof",
        "connection reset",
        "broken pipe",
    ];
    has_one(why, &signs)
}

/// Whether a connection without TLS got something other than HTTP/2 before any answer. The first bytes of
/// TLS look like a frame that is too large. A peer with HTTP/1 closes the connection, which is a reset if
/// the peer has not read everything, or may close it before the call is written.
fn no_http2(why: &str) -> bool {
    let signs = [
        "frame with invalid size",
        "frame_size_error",
        "connection closed",
        "connection reset",
        "connection was not ready",
        "broken pipe",
    ];
    has_one(why, &signs)
}

/// Whether one of these signs, given in lower case, occurs; systems and libraries differ in case.
fn has_one(why: &str, signs: &[&str]) -> bool {
    let why = why.to_lowercase();
    signs.iter().any(|sign| why.contains(sign))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn who_speaks_something_else_is_told_from_who_is_not_there() {
        let said = |address: &str, why: &str| {
            let address = address.parse().expect("an address");
            unreachable(&address, why.to_owned(), false).to_string()
        };
        let plain = said("http://a:1", "http2 error: frame with invalid size");
        assert!(plain.contains("https://HOST:PORT with --ca"), "{plain}");
        let reset = said("http://a:1", "connection error: connection reset");
        assert!(reset.contains("of --listen, not of --http"), "{reset}");
        let by_system = "connection error: Connection reset by peer (os error 104)";
        let reset = said("http://a:1", by_system);
        assert!(reset.contains("of --listen, not of --http"), "{reset}");
        let early = "transport error: operation was canceled: connection was not ready";
        let early = said("http://a:1", early);
        assert!(early.contains("of --listen, not of --http"), "{early}");
        for why in [
            "received corrupt message of type InvalidContentType",
            "tls handshake eof",
            by_system,
        ] {
            let tls = said("https://a:1", why);
            assert!(tls.contains("addressed as http://HOST:PORT"), "{tls}");
        }
        let unknown = said("https://a:1", "invalid peer certificate: UnknownIssuer");
        assert!(unknown.contains("with --ca"), "{unknown}");
        // An engine that answered before and is gone was an engine.
        let address = "http://a:1".parse().expect("an address");
        let gone = unreachable(&address, "connection closed".to_owned(), true).to_string();
        assert!(gone.ends_with(": connection closed"), "{gone}");
        for address in ["http://a:1", "https://a:1", "unix:a"] {
            let refused = said(address, "connection refused");
            assert!(refused.ends_with(": connection refused"), "{refused}");
        }
    }
}
