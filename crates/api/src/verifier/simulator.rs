//! The simulator of the verification service: a page without dependencies, with its scripts and styles inside it.

use axum::http::header;
use axum::response::{Html, IntoResponse, Response};
use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use sha2::{Digest, Sha256};

const PAGE: &str = include_str!("../../../../docs/verifier-simulator.html");

/// The page. Its policy allows the scripts and styles that are in it, by their digests, and no request to anywhere.
pub(super) async fn simulator() -> Response {
    let headers = [(header::CONTENT_SECURITY_POLICY, policy())];
    (headers, Html(PAGE)).into_response()
}

fn policy() -> String {
    let (scripts, styles) = (digests("script"), digests("style"));
    format!(
        "default-src 'none'; script-src{scripts}; style-src{styles}; img-src data:; base-uri 'none'; form-action 'none'; \
         frame-ancestors 'none'"
    )
}

/// The digests of the contents of the page's elements of this name, each after a space.
fn digests(name: &str) -> String {
    let (opening, closing) = (format!("<{name}"), format!("</{name}>"));
    let elements = PAGE.split(&opening).skip(1);
    let contents = elements.filter_map(|element| {
        let (content, _) = element.split_once(&closing)?;
        Some(content.split_once('>')?.1)
    });
    contents
        .map(|content| format!(" 'sha256-{}'", STANDARD.encode(Sha256::digest(content))))
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_policy_has_a_digest_for_each_script_and_style_and_allows_nothing_else() {
        let policy = policy();
        assert_eq!(policy.matches("'sha256-").count(), 4, "{policy}");
        assert!(policy.contains("style-src 'sha256-"), "{policy}");
        for wide in ["unsafe", "'self'", "http", "*", "connect-src"] {
            assert!(!policy.contains(wide), "{wide}: {policy}");
        }
    }
}
