//! The framing of fuzzed calls; also used by the fuzz target `calls`.

/// The body of a gRPC call. The lower bits of `framing` choose whether `content` is one message, messages
/// that each begin with their length, or a body that may end anywhere. The highest bit marks messages as
/// compressed.
pub(crate) fn framed(framing: u8, content: &[u8]) -> Vec<u8> {
    let framed = |message: &[u8]| {
        let mut bytes = vec![framing >> 7];
        bytes.extend((message.len() as u32).to_be_bytes());
        bytes.extend(message);
        bytes
    };
    match framing & 3 {
        0 | 1 => framed(content),
        2 => {
            // Each message begins with its length.
            let (mut rest, mut bytes) = (content, Vec::new());
            while let [length, after @ ..] = rest {
                let (message, after) = after.split_at(after.len().min((*length).into()));
                bytes.extend(framed(message));
                rest = after;
            }
            bytes
        }
        _ => content.to_vec(),
    }
}
