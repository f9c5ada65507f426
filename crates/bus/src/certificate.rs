//! Advice for a server's certificate that is refused.

/// Advice for an error `why` of a TLS connection: the fault of the server's certificate, and the
/// remedy. `None` if the error is not about a certificate. `ca_option` is the command-line option
/// that names an authority.
pub fn certificate_remedy(why: &str, ca_option: &str) -> Option<String> {
    let has = |sign: &str| why.contains(sign);
    if !has("invalid peer certificate") && !has("not valid for name") {
        return None;
    }
    let remedy = if has("not valid for any names") {
        "its certificate has no name in it (subjectAltName): make one with the names and \
         addresses by which clients connect to it"
    } else if has("not valid for name") || has("NotValidForName") {
        "connect to it by a name that its certificate has"
    } else if has("CaUsedAsEndEntity") {
        "its certificate is an authority's (CA:TRUE), signed by itself, and may only sign others: make one \
         for the server with CA:FALSE, signed by it; docs/engine.md has the commands"
    } else if has("UnsupportedCertVersion") {
        "its certificate is of an old version, without extensions: make one with subjectAltName; \
         docs/engine.md has the commands"
    } else if has("not valid yet") || has("NotValidYet") {
        "its certificate is not valid yet: set this machine's clock, or the server's when it is made"
    } else if has("expired") || has("Expired") {
        "its certificate is not valid any more: make another one, or set this machine's clock"
    } else {
        return Some(format!(
            "its certificate is not of an authority that is trusted here: name the authority's \
             certificate with {ca_option}"
        ));
    };
    Some(remedy.to_owned())
}

#[cfg(test)]
mod tests {
    use super::certificate_remedy;

    #[test]
    fn faults_of_certificates_are_named() {
        for (why, what) in [
            ("invalid peer certificate: UnknownIssuer", "with --ca"),
            (
                "invalid peer certificate: Other(OtherError(CaUsedAsEndEntity))",
                "CA:FALSE",
            ),
            (
                "invalid peer certificate: certificate expired: verification time 2",
                "not valid any more",
            ),
            (
                "invalid peer certificate: certificate not valid for name \"a\"; certificate is only \
                 valid for DnsName(\"b\")",
                "by a name that its certificate has",
            ),
            (
                "invalid peer certificate: certificate not valid for name \"a\"; certificate is not \
                 valid for any names (according to its subjectAltName extension)",
                "no name in it",
            ),
        ] {
            let remedy = certificate_remedy(why, "--ca").unwrap_or_default();
            assert!(remedy.contains(what), "{why}: {remedy}");
        }
        assert_eq!(certificate_remedy("connection refused", "--ca"), None);
        assert_eq!(certificate_remedy("received fatal alert", "--ca"), None);
    }
}
