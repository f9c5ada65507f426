//! The contracts' text: templates with places like `{{NAME}}`.

use std::fmt::Write as _;

/// Puts `values` into the places of `template`: `("NAME", …)` into `{{NAME}}`.
///
/// # Panics
///
/// If a place has no value: templates and callers are parts of this crate, which its tests compare.
pub(crate) fn fill(template: &str, values: &[(&str, String)]) -> String {
    let mut filled = String::with_capacity(2 * template.len());
    let mut rest = template;
    while let Some((before, after)) = rest.split_once("{{") {
        let (place, after) = after.split_once("}}").expect("each place ends");
        let value = values.iter().find(|(name, _)| *name == place);
        let (_, value) = value.unwrap_or_else(|| panic!("a value for {{{{{place}}}}}"));
        filled.push_str(before);
        filled.push_str(value);
        rest = after;
    }
    filled.push_str(rest);
    filled
}

/// A named part of a table of bytes.
pub(crate) struct Part {
    /// Comment that says what it is.
    pub(crate) name: String,
    /// Its bytes, not empty.
    pub(crate) bytes: Vec<u8>,
}

/// The parts as one `bytes` literal of Solidity: hexadecimal literals that follow each other, of at most `line_bytes`
/// bytes each, under a comment for each part.
pub(crate) fn bytes_literal(parts: &[Part], line_bytes: usize) -> String {
    let mut lines = Vec::new();
    for part in parts {
        lines.push(format!("        // {}", part.name));
        for line in part.bytes.chunks(line_bytes) {
            let mut text = "        hex\"".to_owned();
            for byte in line {
                write!(text, "{byte:02x}").expect("a string takes it");
            }
            lines.push(text + "\"");
        }
    }
    lines.join("\n")
}
