//! Header files.

use super::{HEADER_BYTES, Header};

/// The most headers one file may hold: four times what Bitcoin's main network has.
pub const MAX_HEADERS: usize = 4_000_000;

/// A header file that cannot be read.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum ParseError {
    /// There is no header.
    #[error("no header found: give raw 80-byte headers, or one header of 160 hex digits a line")]
    Empty,
    /// There are more than [`MAX_HEADERS`].
    #[error("more than {MAX_HEADERS} headers: split the file")]
    TooMany,
    /// A raw file ends within a header.
    #[error(
        "header {index} at offset {offset} has {found} bytes, not {HEADER_BYTES}: \
         the file is cut short or holds something else"
    )]
    Truncated {
        /// The header's index, from 0.
        index: usize,
        /// Offset of the header in bytes.
        offset: usize,
        /// The number of bytes left, below [`HEADER_BYTES`].
        found: usize,
    },
    /// A line has the wrong length.
    #[error("line {line} (header {index}) has {found} characters, not {}", 2 * HEADER_BYTES)]
    LineLength {
        /// The line, from 1.
        line: usize,
        /// The header's index, from 0.
        index: usize,
        /// The line's length in characters, without surrounding white space.
        found: usize,
    },
    /// A line holds something other than hexadecimal digits.
    #[error("line {line} (header {index}), column {column}: not a hex digit")]
    Digit {
        /// The line, from 1.
        line: usize,
        /// The header's index, from 0.
        index: usize,
        /// The column, from 1, without leading white space.
        column: usize,
    },
}

/// Reads a header file: raw 80-byte headers one after the other, or lines of 160 hexadecimal
/// digits (blank lines and lines that start with `#` are skipped).
///
/// A file is taken for text if all of it is printable ASCII, which raw headers never are: the
/// previous hash ends in zero bytes.
///
/// The headers are not checked: see [`check_chain`](super::check_chain).
///
/// # Errors
///
/// [`ParseError`], which names the header and the line or offset.
pub fn parse_headers(file: &[u8]) -> Result<Vec<Header>, ParseError> {
    let is_text = file
        .iter()
        .all(|b| b.is_ascii_graphic() || b.is_ascii_whitespace());
    let headers = if is_text {
        parse_lines(file)?
    } else {
        parse_raw(file)?
    };
    if headers.is_empty() {
        Err(ParseError::Empty)
    } else {
        Ok(headers)
    }
}

fn parse_raw(file: &[u8]) -> Result<Vec<Header>, ParseError> {
    let (headers, rest) = file.as_chunks::<HEADER_BYTES>();
    if headers.len() > MAX_HEADERS {
        return Err(ParseError::TooMany);
    }
    if !rest.is_empty() {
        let index = headers.len();
        let offset = index * HEADER_BYTES;
        return Err(ParseError::Truncated {
            index,
            offset,
            found: rest.len(),
        });
    }
    Ok(headers.iter().copied().map(Header::new).collect())
}

fn parse_lines(file: &[u8]) -> Result<Vec<Header>, ParseError> {
    let mut headers = Vec::new();
    for (number, text) in file.split(|b| *b == b'\n').enumerate() {
        let text = text.trim_ascii();
        if text.is_empty() || text[0] == b'#' {
            continue;
        }
        let (line, index) = (number + 1, headers.len());
        if index == MAX_HEADERS {
            return Err(ParseError::TooMany);
        }
        if let Some(position) = text.iter().position(|b| !b.is_ascii_hexdigit()) {
            return Err(ParseError::Digit {
                line,
                index,
                column: position + 1,
            });
        }
        let mut bytes = [0; HEADER_BYTES];
        hex::decode_to_slice(text, &mut bytes).map_err(|_| ParseError::LineLength {
            line,
            index,
            found: text.len(),
        })?;
        headers.push(Header::new(bytes));
    }
    Ok(headers)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::{MAINNET_0_31, mainnet_headers};

    #[test]
    fn both_forms_agree() {
        let headers = mainnet_headers();
        let raw: Vec<u8> = headers.iter().flat_map(|h| *h.as_bytes()).collect();
        assert_eq!(parse_headers(&raw), Ok(headers.clone()));
        let spaced = format!(
            "# mainnet\r\n\r\n  {}",
            MAINNET_0_31.replace('\n', " \r\n").to_uppercase()
        );
        assert_eq!(parse_headers(spaced.as_bytes()), Ok(headers));
    }

    #[test]
    fn errors_say_where() {
        let text = |edit: fn(&mut Vec<String>)| {
            let mut lines: Vec<String> = MAINNET_0_31.lines().map(str::to_owned).collect();
            edit(&mut lines);
            parse_headers(lines.join("\n").as_bytes())
                .unwrap_err()
                .to_string()
        };
        assert_eq!(
            text(|l| _ = l[2].pop()),
            "line 3 (header 2) has 159 characters, not 160"
        );
        assert_eq!(
            text(|l| l[3].push_str("00")),
            "line 4 (header 3) has 162 characters, not 160"
        );
        assert_eq!(
            text(|l| l[4].replace_range(6..7, "x")),
            "line 5 (header 4), column 7: not a hex digit"
        );
        let mut raw: Vec<u8> = mainnet_headers()
            .iter()
            .flat_map(|h| *h.as_bytes())
            .collect();
        raw.truncate(3 * 80 + 7);
        assert_eq!(
            parse_headers(&raw).unwrap_err(),
            ParseError::Truncated {
                index: 3,
                offset: 240,
                found: 7
            }
        );
        for empty in [&b""[..], b"\n \n", b"# nothing\n"] {
            assert_eq!(parse_headers(empty), Err(ParseError::Empty));
        }
    }

    #[test]
    fn too_many_headers_are_refused() {
        let raw = vec![0; (MAX_HEADERS + 1) * HEADER_BYTES];
        assert_eq!(parse_headers(&raw), Err(ParseError::TooMany));
    }

    proptest! {
        #[test]
        fn any_bytes_are_parsed_or_refused(bytes in proptest::collection::vec(any::<u8>(), 0..500)) {
            if let Ok(headers) = parse_headers(&bytes) {
                prop_assert!(!headers.is_empty());
                prop_assert!(headers.len() * HEADER_BYTES <= bytes.len());
            }
        }
    }
}
