//! The file behind a workflow: its text, and where in it each field stands.

use std::collections::HashMap;
use std::ops::Range;
use std::path::{Path, PathBuf};
use std::sync::Arc;

/// The text a workflow was read from, with the place of every field.
#[derive(Clone, Debug)]
pub struct Document {
    file: PathBuf,
    text: Arc<str>,
    spans: HashMap<String, Range<usize>>,
}

// === impl Document ===

impl Document {
    pub(crate) fn new(file: &Path, text: &str) -> Self {
        Self { file: file.to_owned(), text: text.into(), spans: HashMap::new() }
    }

    /// The file's name, as given.
    pub fn file(&self) -> &Path {
        &self.file
    }

    /// The file's text.
    pub fn text(&self) -> &str {
        &self.text
    }

    /// Where the field `path` stands, in bytes.
    pub(crate) fn span(&self, path: &str) -> Option<Range<usize>> {
        self.spans.get(path).cloned()
    }

    pub(crate) fn mark(&mut self, path: String, span: Range<usize>) {
        self.spans.entry(path).or_insert(span);
    }

    /// Line and column (both from 1; the column counts characters) of a byte, and the text of
    /// that line.
    pub(crate) fn place(&self, at: usize) -> (usize, usize, &str) {
        let mut at = at.min(self.text.len());
        while !self.text.is_char_boundary(at) {
            at -= 1;
        }
        let start = self.text[..at].rfind('\n').map_or(0, |newline| newline + 1);
        let end = self.text[start..].find('\n').map_or(self.text.len(), |length| start + length);
        let line = self.text[..start].bytes().filter(|&byte| byte == b'\n').count() + 1;
        let column = self.text[start..at].chars().count() + 1;
        (line, column, self.text[start..end].trim_end_matches('\r'))
    }
}
