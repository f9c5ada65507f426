//! Untrusted containers: `cargo +nightly fuzz run container`.
#![no_main]

use std::io::Cursor;

use libfuzzer_sys::fuzz_target;
use proofmill_r1cs::iden3::{Container, ContainerWriter, Format, R1CS_FORMAT, WTNS_FORMAT};
use proofmill_r1cs_fuzz::{Counting, reading};

#[global_allocator]
static ALLOCATOR: Counting = Counting;

fn read(format: &'static Format, bytes: &[u8]) {
    let Ok(container) = reading(bytes.len(), || Container::parse(format, bytes)) else {
        return;
    };
    // A container that was read is written back to the same bytes.
    let mut out = ContainerWriter::new(Cursor::new(Vec::new()), format).unwrap();
    for (kind, content) in container.sections() {
        let mut cursor = container.section(kind).unwrap();
        assert_eq!(cursor.offset(), content.start as u64);
        let read = cursor.bytes(content.len()).unwrap();
        assert_eq!(read, &bytes[content]);
        assert!(cursor.u32().is_err());
        out.section(kind, read).unwrap();
    }
    assert_eq!(out.finish().unwrap().into_inner(), bytes);
}

fuzz_target!(|bytes: &[u8]| {
    read(&R1CS_FORMAT, bytes);
    read(&WTNS_FORMAT, bytes);
});
