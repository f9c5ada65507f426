//! Standard output, which carries only the result that a command was asked for.

use std::io::{ErrorKind, Write};

use crate::failure::Failure;

/// Writes a line. A reader that has closed the pipe (`| head -1`) is not an error.
pub(crate) fn line(text: impl AsRef<str>) -> Result<(), Failure> {
    let mut whole = String::with_capacity(text.as_ref().len() + 1);
    whole.push_str(text.as_ref());
    whole.push('\n');
    raw(whole.as_bytes())
}

/// Writes bytes as they are.
pub(crate) fn raw(bytes: &[u8]) -> Result<(), Failure> {
    let mut stdout = std::io::stdout().lock();
    match stdout.write_all(bytes).and_then(|()| stdout.flush()) {
        Err(error) if error.kind() != ErrorKind::BrokenPipe => Err(Failure::new(format!(
            "cannot write to standard output: {error}"
        ))),
        _ => Ok(()),
    }
}

/// Escapes control characters, other than line ends and tabs, in text from outside (a program's output, an error, a
/// name), so that it cannot move the terminal's cursor or change its colours.
pub(crate) fn plain(text: &str) -> String {
    let mut shown = String::with_capacity(text.len());
    for character in text.chars() {
        if character.is_control() && !matches!(character, '\n' | '\t') {
            shown.extend(character.escape_default());
        } else {
            shown.push(character);
        }
    }
    shown
}

#[cfg(test)]
mod tests {
    #[test]
    fn escapes_do_not_reach_the_terminal() {
        assert_eq!(
            super::plain("a\tb\n\x1b[31mred\u{9b}"),
            "a\tb\n\\u{1b}[31mred\\u{9b}"
        );
    }
}
