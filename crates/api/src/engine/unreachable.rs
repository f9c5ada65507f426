//! The error for an engine that cannot be reached, with advice.

use proofmill_bus::certificate_remedy;

use super::{Address, ClientError};

/// The error of a failed connection, with advice where the cause is known; `answered` tells whether an
/// engine ever answered at the address.
pub(super) fn unreachable(address: &Address, why: String, answered: bool) -> ClientError {
    let is_tls = matches!(address, Address::Tcp(uri) if uri.scheme_str() == Some("https"));
    let remedy = if is_tls {
        certificate_remedy(&why, "--ca")
            .or_else(|| peer_lacks_tls(&why).then(|| TRY_WITHOUT_TLS.to_owned()))
    } else {
        let is_tcp = matches!(address, Address::Tcp(_));
        (is_tcp && !answered && peer_lacks_http2(&why)).then(|| TRY_WITH_TLS.to_owned())
    };
    ClientError::Unreachable {
        address: address.clone(),
        why: match remedy {
            Some(remedy) => format!("{why}; {remedy}"),
            None => why,
        },
    }
}

const TRY_WITHOUT_TLS: &str = "the server there does not seem to use TLS: an engine without \
                       --tls-certificate is addressed as http://HOST:PORT";

const TRY_WITH_TLS: &str = "the server there does not speak gRPC without TLS: an engine with \
                         --tls-certificate is addressed as https://HOST:PORT with --ca, and the \
                         port is that of --listen, not of --http";

/// Whether a connection with TLS met a peer without TLS: an answer in the clear, or the end of the
/// connection, which may arrive before that answer if the peer has not read everything.
fn peer_lacks_tls(why: &str) -> bool {
    let signs = [
        "invalidcontenttype",
        "received corrupt message",
        "handshake eof",
        "connection reset",
        "broken pipe",
    ];
    contains_any(why, &signs)
}

/// Whether a connection without TLS got something other than HTTP/2 before any answer. The first bytes of
/// TLS look like a frame that is too large. A peer with HTTP/1 closes the connection, which is a reset if
/// the peer has not read everything, or may close it before the call is written.
fn peer_lacks_http2(why: &str) -> bool {
    let signs = [
        "frame with invalid size",
        "frame_size_error",
        "connection closed",
        "connection reset",
        "connection was not ready",
        "broken pipe",
    ];
    contains_any(why, &signs)
}

/// Whether one of these signs, given in lower case, occurs; systems and libraries differ in case.
fn contains_any(why: &str, signs: &[&str]) -> bool {
    let why = why.to_lowercase();
    signs.iter().any(|sign| why.contains(sign))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_server_of_another_protocol_is_told_from_a_missing_one() {
        let message = |address: &str, why: &str| {
            let address = address.parse().expect("an address");
            unreachable(&address, why.to_owned(), false).to_string()
        };
        let plain = message("http://a:1", "http2 error: frame with invalid size");
        assert!(plain.contains("https://HOST:PORT with --ca"), "{plain}");
        let reset = message("http://a:1", "connection error: connection reset");
        assert!(reset.contains("of --listen, not of --http"), "{reset}");
        let by_system = "connection error: Connection reset by peer (os error 104)";
        let reset = message("http://a:1", by_system);
        assert!(reset.contains("of --listen, not of --http"), "{reset}");
        let early = "transport error: operation was canceled: connection was not ready";
        let early = message("http://a:1", early);
        assert!(early.contains("of --listen, not of --http"), "{early}");
        for why in [
            "received corrupt message of type InvalidContentType",
            "tls handshake eof",
            by_system,
        ] {
            let tls = message("https://a:1", why);
            assert!(tls.contains("addressed as http://HOST:PORT"), "{tls}");
        }
        let unknown = message("https://a:1", "invalid peer certificate: UnknownIssuer");
        assert!(unknown.contains("with --ca"), "{unknown}");
        // An engine that answered before and is gone was an engine.
        let address = "http://a:1".parse().expect("an address");
        let gone = unreachable(&address, "connection closed".to_owned(), true).to_string();
        assert!(gone.ends_with(": connection closed"), "{gone}");
        for address in ["http://a:1", "https://a:1", "unix:a"] {
            let refused = message(address, "connection refused");
            assert!(refused.ends_with(": connection refused"), "{refused}");
        }
    }
}
