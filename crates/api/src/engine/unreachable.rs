//! What to say of an engine that does not answer.

use proofmill_bus::certificate_remedy;

use super::client::{Address, ClientError};

/// The error of a connection that there is none of, with what to do about it where that is known; `answered`
/// if an engine ever answered there.
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

const NOT_TLS: &str = "it seems that whoever listens there does not speak TLS: an engine without \
                       --tls-certificate is asked by http://HOST:PORT";

const NOT_PLAIN: &str = "whoever listens there does not speak gRPC without TLS: an engine with \
                         --tls-certificate is asked by https://HOST:PORT with --ca, and the port is that of \
                         --listen, not of --http";

/// Whether what came on a connection with TLS was none: an answer in the clear, or an end of the connection
/// which overtook it, as it may where the listener has not read all.
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

/// Whether what came on a connection without TLS, instead of a first answer, was no HTTP/2: the first bytes of
/// TLS are those of a frame that is too large, and who speaks HTTP/1 only closes the connection, which is a
/// reset where it has not read all; or it is closed before the call is written, and so never ready for it.
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

/// Whether one of these signs, in lower case, is there: systems and libraries write the same in both cases.
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
            assert!(tls.contains("asked by http://HOST:PORT"), "{tls}");
        }
        let unknown = said("https://a:1", "invalid peer certificate: UnknownIssuer");
        assert!(unknown.contains("with --ca"), "{unknown}");
        // An engine that has answered, and is gone, is an engine.
        let address = "http://a:1".parse().expect("an address");
        let gone = unreachable(&address, "connection closed".to_owned(), true).to_string();
        assert!(gone.ends_with(": connection closed"), "{gone}");
        for address in ["http://a:1", "https://a:1", "unix:a"] {
            let refused = said(address, "connection refused");
            assert!(refused.ends_with(": connection refused"), "{refused}");
        }
    }
}
