//! The HTML page at `/` of an HTTP port: the service's name, its paths and calls, and its documentation.

use std::fmt::Write;

/// URL of the folder of documents.
const DOCUMENTS: &str = concat!(env!("CARGO_PKG_REPOSITORY"), "/blob/main/docs");

/// Content of the page that answers `GET /`. Texts are inserted unescaped: they must be the program's own.
#[derive(Clone, Copy, Debug)]
pub struct FrontPage<'a> {
    /// Name of the program and service, such as `proofmill engine`.
    pub title: &'a str,
    /// Purpose of the service, in a sentence or two.
    pub about: &'a str,
    /// Paths to link to, each with a description of its content.
    pub links: &'a [(&'a str, &'a str)],
    /// Other calls that the port answers, such as `POST /v1/x`, each with a description.
    pub calls: &'a [(&'a str, &'a str)],
    /// Name of the service's document, a file in `docs`.
    pub document: &'a str,
}

/// The media type of what [`FrontPage::html`] makes.
pub const FRONT_PAGE_TYPE: &str = "text/html; charset=utf-8";

// === impl FrontPage ===

impl FrontPage<'_> {
    /// The page as HTML.
    pub fn html(&self) -> String {
        let Self {
            title,
            about,
            document,
            ..
        } = self;
        let mut page = format!(
            "<!doctype html>\n<html lang=\"en\">\n<meta charset=\"utf-8\">\n<title>{title}</title>\n\
             <h1>{title}</h1>\n<p>{about}</p>\n<ul>\n"
        );
        // Writing into a String cannot fail.
        for (path, what) in self.links {
            let _ = writeln!(page, "<li><a href=\"{path}\">{path}</a>: {what}</li>");
        }
        for (call, what) in self.calls {
            let _ = writeln!(page, "<li><code>{call}</code>: {what}</li>");
        }
        let _ = writeln!(
            page,
            "</ul>\n<p>Documentation: <a href=\"{DOCUMENTS}/{document}\">docs/{document}</a></p>\n</html>"
        );
        page
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_page_says_what_is_here_and_where_the_documents_are() {
        let page = FrontPage {
            title: "proofmill engine",
            about: "It proves.",
            links: &[("/metrics", "counts")],
            calls: &[("POST /v1/x", "takes x")],
            document: "engine.md",
        };
        let html = page.html();
        for expected in [
            "<h1>proofmill engine</h1>",
            "<a href=\"/metrics\">",
            "<code>POST /v1/x</code>: takes x",
            "/blob/main/docs/engine.md\">docs/engine.md</a>",
            "https://",
        ] {
            assert!(html.contains(expected), "no {expected:?} in {html}");
        }
    }
}
