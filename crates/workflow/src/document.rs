//! The text of a workflow file, and the position of each field in it.

use std::collections::HashMap;
use std::ops::Range;
use std::path::{Path, PathBuf};
use std::sync::Arc;

/// The text that a workflow was read from, with the byte range of every field.
#[derive(Clone, Debug)]
pub struct Document {
    file: PathBuf,
    text: Arc<str>,
    /// Fields by [`Field::key`].
    spans: HashMap<String, Range<usize>>,
    /// Names of tables in messages: `dispatcher[1]` is shown as `dispatcher "prove"`.
    labels: HashMap<String, String>,
    /// For each section, the index in the file of each table that was read without a fault.
    kept: HashMap<&'static str, Vec<usize>>,
}

/// A field of the file: a table, and the path from that table to a value.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Field {
    base: String,
    rest: String,
}

// === impl Field ===

impl Field {
    /// The file as a whole.
    pub(crate) fn root() -> Self {
        Self {
            base: String::new(),
            rest: String::new(),
        }
    }

    /// The table `[section]`.
    pub(crate) fn table(section: &str) -> Self {
        Self {
            base: section.to_owned(),
            rest: String::new(),
        }
    }

    /// The table `[[section]]` at `index`, counted in the file.
    pub(crate) fn element(section: &str, index: usize) -> Self {
        Self {
            base: format!("{section}[{index}]"),
            rest: String::new(),
        }
    }

    /// The field `key` of this table.
    pub(crate) fn child(&self, key: &str) -> Self {
        if self.base.is_empty() {
            return Self::table(key);
        }
        Self {
            base: self.base.clone(),
            rest: format!("{}.{key}", self.rest),
        }
    }

    /// The item `index` of this list.
    pub(crate) fn item(&self, index: usize) -> Self {
        Self {
            base: self.base.clone(),
            rest: format!("{}[{index}]", self.rest),
        }
    }

    /// The path from the top of the file, as in `dispatcher[1].executor.program`.
    pub(crate) fn key(&self) -> String {
        format!("{}{}", self.base, self.rest)
    }
}

// === impl Document ===

impl Document {
    pub(crate) fn new(file: &Path, text: &str) -> Self {
        Self {
            file: file.to_owned(),
            text: text.into(),
            spans: HashMap::new(),
            labels: HashMap::new(),
            kept: HashMap::new(),
        }
    }

    /// The file's name, as given.
    pub fn file(&self) -> &Path {
        &self.file
    }

    /// The file's text.
    pub fn text(&self) -> &str {
        &self.text
    }

    /// Records the byte range of a field.
    pub(crate) fn mark(&mut self, field: &Field, span: Range<usize>) {
        self.spans.insert(field.key(), span);
    }

    /// Records the name that messages show for a table.
    pub(crate) fn name(&mut self, field: &Field, label: String) {
        self.labels.insert(field.base.clone(), label);
    }

    /// Records that table `index` of `section` in the file became the model's next element.
    pub(crate) fn keep(&mut self, section: &'static str, index: usize) {
        self.kept.entry(section).or_default().push(index);
    }

    /// The table that the model's element `index` of `section` was read from.
    pub(crate) fn origin(&self, section: &'static str, index: usize) -> Field {
        let index = self
            .kept
            .get(section)
            .and_then(|kept| kept.get(index))
            .copied();
        Field::element(section, index.unwrap_or(0))
    }

    /// Whether the file has this field.
    pub(crate) fn has(&self, field: &Field) -> bool {
        self.spans.contains_key(&field.key())
    }

    /// The byte range of the field; else of its nearest parent; else `0..0`.
    pub(crate) fn span(&self, field: &Field) -> Range<usize> {
        let mut key = field.key();
        loop {
            if let Some(span) = self.spans.get(&key) {
                return span.clone();
            }
            match key.rfind(['.', '[']) {
                Some(at) => key.truncate(at),
                None => return 0..0,
            }
        }
    }

    /// The field's name in messages, as in `dispatcher "prove".t_ack`.
    pub(crate) fn label(&self, field: &Field) -> String {
        let base = self
            .labels
            .get(&field.base)
            .map_or(field.base.as_str(), String::as_str);
        format!("{base}{}", field.rest)
    }

    /// Line and column (both from 1; the column counts characters) of a byte, and the text of
    /// that line from its beginning.
    pub(crate) fn place(&self, at: usize) -> (usize, usize, &str) {
        let mut at = at.min(self.text.len());
        while !self.text.is_char_boundary(at) {
            at -= 1;
        }
        let start = self.text[..at].rfind('\n').map_or(0, |newline| newline + 1);
        let end = self.text[start..]
            .find('\n')
            .map_or(self.text.len(), |length| start + length);
        let line = self.text[..start]
            .bytes()
            .filter(|&byte| byte == b'\n')
            .count()
            + 1;
        let column = self.text[start..at].chars().count() + 1;
        (line, column, self.text[start..end].trim_end_matches('\r'))
    }
}
