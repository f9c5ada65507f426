//! The page's files, built into the program: `web/console` in the repository.

use axum::http::{HeaderMap, HeaderValue, StatusCode, header};
use axum::response::{IntoResponse, Response};

/// A file: its path on the server, its media type, and its content.
struct Asset {
    path: &'static str,
    media_type: &'static str,
    content: &'static str,
}

macro_rules! assets {
    ($($path:literal, $media_type:literal, $file:literal;)*) => {
        &[$(Asset {
            path: $path,
            media_type: $media_type,
            content: include_str!(concat!("../../../../web/console/", $file)),
        }),*]
    };
}

const ASSETS: &[Asset] = assets! {
    "/", "text/html; charset=utf-8", "index.html";
    "/actions.js", "text/javascript; charset=utf-8", "actions.js";
    "/answers.js", "text/javascript; charset=utf-8", "answers.js";
    "/console.css", "text/css; charset=utf-8", "console.css";
    "/drawing.js", "text/javascript; charset=utf-8", "drawing.js";
    "/elements.js", "text/javascript; charset=utf-8", "elements.js";
    "/engine-content.js", "text/javascript; charset=utf-8", "engine-content.js";
    "/engine.html", "text/html; charset=utf-8", "engine.html";
    "/engine.js", "text/javascript; charset=utf-8", "engine.js";
    "/folded.js", "text/javascript; charset=utf-8", "folded.js";
    "/live.js", "text/javascript; charset=utf-8", "live.js";
    "/main.js", "text/javascript; charset=utf-8", "main.js";
    "/redraw.js", "text/javascript; charset=utf-8", "redraw.js";
    "/service.js", "text/javascript; charset=utf-8", "service.js";
    "/session.js", "text/javascript; charset=utf-8", "session.js";
    "/verifier.html", "text/html; charset=utf-8", "verifier.html";
    "/verifier.js", "text/javascript; charset=utf-8", "verifier.js";
    "/views/audit.js", "text/javascript; charset=utf-8", "views/audit.js";
    "/views/block.js", "text/javascript; charset=utf-8", "views/block.js";
    "/views/chain.js", "text/javascript; charset=utf-8", "views/chain.js";
    "/views/dead.js", "text/javascript; charset=utf-8", "views/dead.js";
    "/views/engines.js", "text/javascript; charset=utf-8", "views/engines.js";
    "/views/graph.js", "text/javascript; charset=utf-8", "views/graph.js";
    "/views/login.js", "text/javascript; charset=utf-8", "views/login.js";
    "/views/parts.js", "text/javascript; charset=utf-8", "views/parts.js";
    "/views/stages.js", "text/javascript; charset=utf-8", "views/stages.js";
    "/views/waterfall.js", "text/javascript; charset=utf-8", "views/waterfall.js";
    "/views/workers.js", "text/javascript; charset=utf-8", "views/workers.js";
};

/// The rights of a page of this server: its own scripts and styles, and requests to its own server.
const POLICY: &str = "default-src 'none'; script-src 'self'; style-src 'self'; connect-src 'self'; img-src 'self' data:; \
                      base-uri 'none'; form-action 'none'; frame-ancestors 'none'";

/// The file at a path.
pub(crate) fn asset(path: &str) -> Response {
    match ASSETS.iter().find(|asset| asset.path == path) {
        Some(asset) => ([(header::CONTENT_TYPE, asset.media_type)], asset.content).into_response(),
        None => (StatusCode::NOT_FOUND, "no such page\n").into_response(),
    }
}

/// Headers of every answer. A page with scripts of its own brings a policy of its own.
pub(super) fn protect(headers: &mut HeaderMap) {
    headers
        .entry(header::CONTENT_SECURITY_POLICY)
        .or_insert(HeaderValue::from_static(POLICY));
    let fixed = [
        (header::X_CONTENT_TYPE_OPTIONS, "nosniff"),
        (header::REFERRER_POLICY, "no-referrer"),
        (header::CACHE_CONTROL, "no-store"),
    ];
    for (name, value) in fixed {
        headers.insert(name, HeaderValue::from_static(value));
    }
    let name = header::HeaderName::from_static("cross-origin-resource-policy");
    headers.insert(name, HeaderValue::from_static("same-origin"));
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::path::Path;

    /// Each file of `web/console` is served, and each import of a script is one of them.
    #[test]
    fn every_file_of_the_page_is_built_in() {
        let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../web/console");
        let mut files = Vec::new();
        for folder in [folder.clone(), folder.join("views")] {
            let entries = std::fs::read_dir(folder).expect("the page's folder");
            let paths = entries.map(|entry| entry.expect("an entry").path());
            files.extend(paths.filter(|path| path.is_file()));
        }
        assert_eq!(files.len(), ASSETS.len(), "{files:?}");
        for asset in ASSETS.iter().filter(|asset| asset.path.ends_with(".js")) {
            let base = asset.path.rsplit_once('/').map_or("", |(base, _)| base);
            for line in asset
                .content
                .lines()
                .filter(|line| line.starts_with("import "))
            {
                let name = line.split('"').nth(1).expect("a path in quotes");
                let path = match name.strip_prefix("../") {
                    Some(above) => format!("/{above}"),
                    None => format!("{base}/{}", name.trim_start_matches("./")),
                };
                assert!(
                    ASSETS.iter().any(|it| it.path == path),
                    "{}: {name}",
                    asset.path
                );
            }
        }
    }
}
