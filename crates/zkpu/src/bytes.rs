//! Little-endian integers at fixed offsets of fixed-size structures.
//!
//! Offsets are constants of a layout; a wrong one panics in that layout's own test.

pub(crate) fn u16_at(bytes: &[u8], at: usize) -> u16 {
    u16::from_le_bytes(array(bytes, at))
}

pub(crate) fn u32_at(bytes: &[u8], at: usize) -> u32 {
    u32::from_le_bytes(array(bytes, at))
}

pub(crate) fn u64_at(bytes: &[u8], at: usize) -> u64 {
    u64::from_le_bytes(array(bytes, at))
}

pub(crate) fn put_u16(bytes: &mut [u8], at: usize, value: u16) {
    put(bytes, at, &value.to_le_bytes());
}

pub(crate) fn put_u32(bytes: &mut [u8], at: usize, value: u32) {
    put(bytes, at, &value.to_le_bytes());
}

pub(crate) fn put_u64(bytes: &mut [u8], at: usize, value: u64) {
    put(bytes, at, &value.to_le_bytes());
}

/// Copies `value` to offset `at`.
pub(crate) fn put(bytes: &mut [u8], at: usize, value: &[u8]) {
    bytes[at..at + value.len()].copy_from_slice(value);
}

/// Writes text, cut to its field and filled with `fill`.
pub(crate) fn put_text(bytes: &mut [u8], at: usize, length: usize, text: &str, fill: u8) {
    let field = &mut bytes[at..at + length];
    field.fill(fill);
    for (to, from) in field.iter_mut().zip(text.bytes()) {
        *to = from;
    }
}

/// Text of a field: printable ASCII up to the first NUL, without the spaces at its end; other bytes become `?`.
pub(crate) fn text_at(bytes: &[u8], at: usize, length: usize) -> String {
    let field = &bytes[at..at + length];
    let end = field.iter().position(|byte| *byte == 0).unwrap_or(length);
    let printable = |byte: &u8| match byte {
        b' '..=b'~' => char::from(*byte),
        _ => '?',
    };
    let text: String = field[..end].iter().map(printable).collect();
    text.trim_end().to_owned()
}

fn array<const N: usize>(bytes: &[u8], at: usize) -> [u8; N] {
    let mut array = [0; N];
    array.copy_from_slice(&bytes[at..at + N]);
    array
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn text_is_cut_filled_and_trimmed() {
        let mut bytes = [0xff; 8];
        put_text(&mut bytes, 1, 4, "abcdef", b' ');
        assert_eq!(&bytes, b"\xffabcd\xff\xff\xff");
        put_text(&mut bytes, 1, 4, "a", b' ');
        assert_eq!(text_at(&bytes, 1, 4), "a");
        assert_eq!(text_at(b"a\x07\0z", 0, 4), "a?");
    }
}
