//! The text of a workflow file.

use std::fmt::Write as _;
use std::path::Path;

/// The text of a workflow file as it grows.
#[derive(Debug, Default)]
pub(super) struct Text(String);

// === impl Text ===

impl Text {
    pub(super) fn comment(&mut self, text: &str) {
        self.line(&format!("# {text}"));
    }

    pub(super) fn line(&mut self, line: &str) {
        self.0.push_str(line);
        self.0.push('\n');
    }

    /// Begins an element of an array of tables.
    pub(super) fn table(&mut self, name: &str) {
        // Writing into a string cannot fail.
        let _ = writeln!(self.0, "\n[[{name}]]");
    }

    /// Begins a single table.
    pub(super) fn table_once(&mut self, name: &str) {
        let _ = writeln!(self.0, "\n[{name}]");
    }

    pub(super) fn text(&mut self, name: &str, value: &str) {
        let _ = writeln!(self.0, "{name} = {}", quoted(value));
    }

    pub(super) fn number(&mut self, name: &str, value: u64) {
        let _ = writeln!(self.0, "{name} = {value}");
    }

    pub(super) fn list(&mut self, name: &str, values: &[String]) {
        let values: Vec<String> = values.iter().map(|value| quoted(value)).collect();
        let _ = writeln!(self.0, "{name} = [{}]", values.join(", "));
    }

    pub(super) fn program(&mut self, name: &str, program: &Path, inherit_env: &[String]) {
        let program = quoted(&program.to_string_lossy());
        let inherited: Vec<String> = inherit_env.iter().map(|name| quoted(name)).collect();
        let inherited = match &inherited[..] {
            [] => String::new(),
            names => format!(", inherit_env = [{}]", names.join(", ")),
        };
        let _ = writeln!(
            self.0,
            "{name} = {{ kind = \"process\", program = {program}{inherited} }}"
        );
    }

    pub(super) fn matching(&mut self, size: u32, pointer: &str) {
        let pointer = quoted(pointer);
        let _ = writeln!(
            self.0,
            "strategy = {{ kind = \"match\", k = {size}, group_by = {pointer} }}"
        );
    }

    pub(super) fn sequential(&mut self, blocks: u64) {
        let _ = writeln!(
            self.0,
            "strategy = {{ kind = \"sequential\", n = {blocks} }}"
        );
    }

    pub(super) fn range(&mut self, by: &str) {
        let _ = writeln!(
            self.0,
            "strategy = {{ kind = \"range\", by = {} }}",
            quoted(by)
        );
    }

    pub(super) fn finish(self) -> String {
        self.0
    }
}

fn quoted(text: &str) -> String {
    toml::Value::String(text.to_owned()).to_string()
}
