//! Valid inputs for fuzzing to start from.

use proofmill_bus::hostile::log_messages;

/// Streams of one frame, as a single message and in pieces.
pub fn frames() -> Vec<Vec<u8>> {
    let records: [(&str, &[u8]); 3] = [
        ("task.prove.1.0", b"\x01value"),
        ("cursor", b"\x01\x05\x07"),
        ("source.blocks", &[0; 40]),
    ];
    let of = |limit| {
        let mut stream = Vec::new();
        for message in log_messages(&records, limit) {
            stream.extend((message.len() as u16 * 2 + 1).to_le_bytes());
            stream.extend(&message[..]);
        }
        stream
    };
    [1 << 10, 60, 30].map(of).to_vec()
}

/// Subjects of pieces, each with the header that states the blob's length.
pub fn blob_pieces() -> Vec<Vec<u8>> {
    let name = "ab".repeat(32);
    [("0", "12345"), ("17", ""), ("18446744073709551615", "x")]
        .map(|(piece, size)| format!("proofmill.blob.{name}.{piece}\n{size}").into_bytes())
        .to_vec()
}
