//! Valid, cut and altered executables.

use super::sample::{HEADERS, TABLE, valid, with_bytes, with_field};
use super::*;
use crate::program::{ProgramError, SEGMENTS_MAX, SegmentKind};

fn fault(file: &[u8]) -> SegmentFault {
    match load(file) {
        Err(ElfError::Segment { fault, .. }) => fault,
        other => panic!("{other:?}"),
    }
}

#[test]
fn a_valid_file_is_loaded() {
    let program = load(&valid()).unwrap();
    assert_eq!(program.entry(), 0x1000);
    let code: Vec<_> = program.code_words().collect();
    assert_eq!(
        code,
        [
            (0x1000, 0x0050_0513),
            (0x1004, 0x0000_0893),
            (0x1008, 0x0000_0073)
        ]
    );
    let data: Vec<_> = program.data_words().collect();
    assert_eq!(data, [(0x0200_0000, 0x0403_0201), (0x0200_0004, 0x0605)]);
}

#[test]
fn a_file_cut_at_any_length_is_refused() {
    let file = valid();
    for length in 0..file.len() {
        let error = load(&file[..length]).unwrap_err();
        assert!(
            matches!(error, ElfError::Truncated { .. }),
            "{length}: {error}"
        );
    }
    // The section headers, symbols and debug information after the segments count for nothing.
    let mut longer = file.clone();
    longer.extend([0xff; 100]);
    assert_eq!(load(&longer), load(&file));
}

/// Every byte of the headers, changed in every bit: refused, or without an effect, or another program.
#[test]
fn a_changed_bit_of_a_header_has_its_effect() {
    let file = valid();
    let original = load(&file).unwrap();
    let mut unchanged = Vec::new();
    for offset in 0..TABLE + 32 * HEADERS {
        for bit in 0..8 {
            let mut changed = file.clone();
            changed[offset] ^= 1 << bit;
            if load(&changed).is_ok_and(|program| program.digest() == original.digest()) {
                unchanged.push(offset);
            }
        }
    }
    unchanged.dedup();
    for offset in unchanged {
        let without_effect = match offset {
            // Version of the operating system's interface and padding, section header table.
            8..16 | 32..36 | 46..52 => true,
            TABLE.. => match ((offset - TABLE) / 32, (offset - TABLE) % 32 / 4) {
                // The segment flagged for the stack, if its type stays one that is ignored.
                (3, field) => field > 0,
                // Physical address and alignment; read and write flags; a segment of zeros.
                (_, 3 | 7) | (0..=2, 6) | (2, 0 | 1 | 2 | 5) => true,
                // A length of six bytes or seven rounds to the same words.
                (1, 5) => true,
                _ => false,
            },
            _ => false,
        };
        assert!(without_effect, "offset {offset}");
    }
}

#[test]
fn header_fields_have_one_accepted_value() {
    let cases: [(usize, &[u8], HeaderField); 12] = [
        (0, b"\x7fELG", HeaderField::Magic),
        (4, &[2], HeaderField::Class),
        (5, &[2], HeaderField::Encoding),
        (6, &[0], HeaderField::IdentificationVersion),
        (7, &[3], HeaderField::OsAbi),
        (16, &[3, 0], HeaderField::Type),
        (18, &[62, 0], HeaderField::Machine),
        (20, &[2], HeaderField::Version),
        (36, &[1], HeaderField::Flags),
        (36, &[4], HeaderField::Flags),
        (40, &[64, 0], HeaderField::HeaderBytes),
        (42, &[56, 0], HeaderField::ProgramHeaderBytes),
    ];
    for (offset, bytes, expected) in cases {
        match load(&with_bytes(offset, bytes)) {
            Err(ElfError::Header { field, .. }) => assert_eq!(field, expected),
            other => panic!("{expected}: {other:?}"),
        }
    }
    assert_eq!(
        load(&with_bytes(36, &[1])).unwrap_err().to_string(),
        "header field e_flags is 0x1, not 0x0: compile for rv32im with the ilp32 convention, without compressed \
         instructions"
    );
}

#[test]
fn limits_are_checked_first() {
    let mut file = valid();
    file.resize(ELF_BYTES_MAX, 0);
    assert!(load(&file).is_ok());
    file.push(0);
    assert_eq!(
        load(&file),
        Err(ElfError::TooLarge {
            bytes: ELF_BYTES_MAX + 1
        })
    );
    for count in [0, SEGMENTS_MAX as u16 + 1, u16::MAX] {
        assert_eq!(
            load(&with_bytes(44, &count.to_le_bytes())),
            Err(ElfError::ProgramHeaderCount { count })
        );
    }
}

#[test]
fn writable_code_is_refused() {
    assert_eq!(fault(&with_field(0, 6, 7)), SegmentFault::WritableCode);
    assert_eq!(fault(&with_field(0, 6, 3)), SegmentFault::WritableCode);
    assert_eq!(fault(&with_field(1, 6, 7)), SegmentFault::WritableCode);
}

#[test]
fn segments_for_a_dynamic_loader_are_refused() {
    for kind in [2, 3, 7, 0x7fff_ffff] {
        assert_eq!(fault(&with_field(3, 0, kind)), SegmentFault::Kind { kind });
    }
    for kind in [0, 4, 6, 0x6474_e552, 0x7000_0003] {
        assert!(load(&with_field(3, 0, kind)).is_ok());
    }
}

#[test]
fn inconsistent_segments_are_refused() {
    for flags in [0, 8, 0x8000_0005] {
        assert_eq!(
            fault(&with_field(0, 6, flags)),
            SegmentFault::Flags { flags }
        );
    }
    assert_eq!(
        fault(&with_field(1, 5, 5)),
        SegmentFault::Sizes {
            file_bytes: 6,
            memory_bytes: 5
        }
    );
    assert_eq!(
        fault(&with_field(0, 4, 10)),
        SegmentFault::PartialInstruction { bytes: 10 }
    );
    for offset in [1000, u32::MAX] {
        assert!(matches!(
            load(&with_field(0, 1, offset)),
            Err(ElfError::Truncated {
                part: "segment",
                ..
            })
        ));
    }
}

#[test]
fn headers_cannot_multiply_the_bytes_of_the_file() {
    // The data segment becomes nearly the whole file, in addition to the code.
    let mut file = with_field(1, 1, 0);
    let length = file.len() as u32;
    for field in [4, 5] {
        let at = TABLE + 32 + 4 * field;
        file[at..at + 4].copy_from_slice(&length.to_le_bytes());
    }
    assert_eq!(load(&file), Err(ElfError::SharedBytes));
}

#[test]
fn faults_of_the_program_are_passed_on() {
    let program = |file: Vec<u8>| match load(&file) {
        Err(ElfError::Program(error)) => error,
        other => panic!("{other:?}"),
    };
    assert_eq!(
        program(with_bytes(24, &[2])),
        ProgramError::EntryOutsideCode { entry: 0x1002 }
    );
    assert_eq!(
        program(with_field(2, 2, 0x0200_0004)),
        ProgramError::Overlap {
            first: 0x0200_0000,
            second: 0x0200_0004
        }
    );
    assert_eq!(
        program(with_field(0, 5, 16)),
        ProgramError::CodeNotGiven { address: 0x1000 }
    );
    assert_eq!(
        program(with_field(1, 2, 0x0200_0001)),
        ProgramError::MisalignedSegment {
            address: 0x0200_0001
        }
    );
    assert!(matches!(
        program(with_field(1, 2, 0x0001_0000)),
        ProgramError::OutsideRegion {
            kind: SegmentKind::Data,
            ..
        }
    ));
    assert!(matches!(
        program(with_field(2, 5, u32::MAX)),
        ProgramError::OutsideRegion { .. }
    ));
}
