//! Frames on pipes: a length in four little-endian bytes, and as many bytes.

use std::io::{ErrorKind, Read, Write};

use proofmill_aggregation::sharded::MAX_MESSAGE_BYTES;

/// Bytes of a frame beside its content.
pub(super) const HEAD_BYTES: usize = 4;

/// Writes a frame.
pub(super) fn write_frame(out: &mut impl Write, content: &[u8]) -> anyhow::Result<()> {
    anyhow::ensure!(
        content.len() <= MAX_MESSAGE_BYTES,
        "a frame of {} bytes",
        content.len()
    );
    let mut frame = (content.len() as u32).to_le_bytes().to_vec();
    frame.extend(content);
    out.write_all(&frame)?;
    out.flush()?;
    Ok(())
}

/// Reads a frame; `None` at the end of the input.
pub(super) fn read_frame(input: &mut impl Read) -> anyhow::Result<Option<Vec<u8>>> {
    let mut head = [0; HEAD_BYTES];
    match input.read_exact(&mut head) {
        Err(error) if error.kind() == ErrorKind::UnexpectedEof => return Ok(None),
        read => read?,
    }
    let length = u32::from_le_bytes(head) as usize;
    anyhow::ensure!(length <= MAX_MESSAGE_BYTES, "a frame of {length} bytes");
    let mut content = vec![0; length];
    input.read_exact(&mut content)?;
    Ok(Some(content))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn frames_come_back() {
        let mut bytes = Vec::new();
        for content in [&b""[..], b"one", &[7; MAX_MESSAGE_BYTES]] {
            write_frame(&mut bytes, content).unwrap();
        }
        let input = &mut &bytes[..];
        assert_eq!(read_frame(input).unwrap().unwrap(), b"");
        assert_eq!(read_frame(input).unwrap().unwrap(), b"one");
        assert_eq!(read_frame(input).unwrap().unwrap().len(), MAX_MESSAGE_BYTES);
        assert!(read_frame(input).unwrap().is_none());
        assert!(read_frame(&mut &[1, 0, 0, 0][..]).is_err());
        assert!(read_frame(&mut &[0, 0, 1, 1][..]).is_err());
        assert!(write_frame(&mut bytes, &[0; MAX_MESSAGE_BYTES + 1]).is_err());
    }
}
