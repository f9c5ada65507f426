//! The page at `/` of a port: what is here, and where that is explained.

use std::fmt::Write;

/// Where the documents are.
const DOCUMENTS: &str = concat!(env!("CARGO_PKG_REPOSITORY"), "/blob/main/docs");

/// What a port answers to `GET /`. All texts are the program's own.
#[derive(Clone, Copy, Debug)]
pub struct FrontPage<'a> {
    /// What answers here, such as `proofmill engine`.
    pub title: &'a str,
    /// What it is for, in a sentence or two.
    pub about: &'a str,
    /// Paths that can be read, and what each shows.
    pub links: &'a [(&'a str, &'a str)],
    /// What else is answered here, and how to ask.
    pub calls: &'a [(&'a str, &'a str)],
    /// The document that explains it, a file's name in `docs`.
    pub document: &'a str,
}

/// The media type of what [`FrontPage::html`] makes.
pub const FRONT_PAGE_TYPE: &str = "text/html; charset=utf-8";

// === impl FrontPage ===

impl FrontPage<'_> {
    /// The page.
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
        // A String takes whatever is written to it.
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
