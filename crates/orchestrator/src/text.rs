//! Parts of texts with a limit in bytes, cut between characters.

/// The beginning of a text, at most `bytes` bytes.
pub fn beginning_of(text: &str, bytes: usize) -> &str {
    let mut end = bytes.min(text.len());
    while !text.is_char_boundary(end) {
        end -= 1;
    }
    &text[..end]
}

/// The end of a text, at most `bytes` bytes.
pub fn end_of(text: &str, bytes: usize) -> &str {
    let mut start = text.len().saturating_sub(bytes);
    while !text.is_char_boundary(start) {
        start += 1;
    }
    &text[start..]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn texts_are_cut_between_characters() {
        for (bytes, beginning, end) in [
            (0, "", ""),
            (1, "a", "b"),
            (2, "a", "b"),
            (3, "aé", "éb"),
            (4, "aéb", "aéb"),
            (9, "aéb", "aéb"),
        ] {
            assert_eq!(beginning_of("aéb", bytes), beginning, "{bytes}");
            assert_eq!(end_of("aéb", bytes), end, "{bytes}");
        }
    }
}
