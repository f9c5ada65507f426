//! A program: its entry, its code and its initial data.

use std::ops::Range;

use sha2::{Digest, Sha256};
use thiserror::Error;

use crate::memory_map::{CODE_REGION, DATA_REGION};

/// Greatest number of segments of a program.
pub const SEGMENTS_MAX: usize = 16;

/// First bytes of what [`Program::digest`] hashes. The number changes with the encoding.
const DIGEST_DOMAIN: &[u8] = b"proofmill-rv32 program 1\0";

/// Kind of a segment, which fixes the region of its addresses.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SegmentKind {
    /// Instructions, in [`CODE_REGION`].
    Code,
    /// Everything else, in [`DATA_REGION`].
    Data,
}

/// A contiguous part of a program.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Segment {
    /// What the segment holds.
    pub kind: SegmentKind,
    /// Address of the first word, a multiple of 4.
    pub address: u32,
    /// Initial words, little-endian in memory.
    pub words: Vec<u32>,
    /// Further words that are zero at the start. Zero for code.
    pub zero_words: u32,
}

/// A checked program: segments do not overlap and lie in their regions, and the entry is an address of code.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Program {
    entry: u32,
    /// Code and data, each in increasing address order.
    code: Vec<Segment>,
    data: Vec<Segment>,
}

/// Reason why segments are no program.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
pub enum ProgramError {
    /// More than [`SEGMENTS_MAX`] segments.
    #[error(
        "{count} segments, of which {SEGMENTS_MAX} are allowed; merge them in the linker script"
    )]
    TooManySegments {
        /// Number of segments.
        count: usize,
    },
    /// A segment's address is not a multiple of 4.
    #[error(
        "the segment at {address:#010x} does not begin at a multiple of 4; align it in the linker script"
    )]
    MisalignedSegment {
        /// First address of the segment.
        address: u32,
    },
    /// A segment without words.
    #[error("the segment at {address:#010x} is empty; leave it out")]
    EmptySegment {
        /// First address of the segment.
        address: u32,
    },
    /// A code segment with zeros beyond its words.
    #[error(
        "the code segment at {address:#010x} is longer in memory than in the file; code has to be given in full"
    )]
    CodeNotGiven {
        /// First address of the segment.
        address: u32,
    },
    /// A segment that is not within the region of its kind.
    #[error(
        "the segment {start:#010x}..{end:#010x} is {kind:?}, and not within {:#010x}..{:#010x}; link with the script of this crate",
        .region.start,
        .region.end
    )]
    OutsideRegion {
        /// Kind of the segment.
        kind: SegmentKind,
        /// First address of the segment.
        start: u32,
        /// Address after the segment; up to 2³⁵.
        end: u64,
        /// Addresses that the kind may have.
        region: Range<u32>,
    },
    /// Two segments share an address.
    #[error(
        "the segments at {first:#010x} and {second:#010x} overlap; separate them in the linker script"
    )]
    Overlap {
        /// First address of the lower segment.
        first: u32,
        /// First address of the upper segment.
        second: u32,
    },
    /// The entry is not the address of an instruction.
    #[error(
        "the entry {entry:#010x} is not a multiple of 4 within a code segment; check the entry symbol"
    )]
    EntryOutsideCode {
        /// The entry.
        entry: u32,
    },
}

// === impl SegmentKind ===

impl SegmentKind {
    /// Addresses that a segment of the kind may have.
    pub const fn region(self) -> Range<u32> {
        match self {
            Self::Code => CODE_REGION,
            Self::Data => DATA_REGION,
        }
    }
}

// === impl Segment ===

impl Segment {
    /// Address after the last word; up to 2³⁵ before the segment is checked.
    fn end(&self) -> u64 {
        u64::from(self.address) + 4 * (self.words.len() as u64 + u64::from(self.zero_words))
    }

    fn check(&self) -> Result<(), ProgramError> {
        let address = self.address;
        if !address.is_multiple_of(4) {
            return Err(ProgramError::MisalignedSegment { address });
        }
        if self.end() == u64::from(address) {
            return Err(ProgramError::EmptySegment { address });
        }
        if self.kind == SegmentKind::Code && self.zero_words > 0 {
            return Err(ProgramError::CodeNotGiven { address });
        }
        let region = self.kind.region();
        if address < region.start || self.end() > u64::from(region.end) {
            return Err(ProgramError::OutsideRegion {
                kind: self.kind,
                start: address,
                end: self.end(),
                region,
            });
        }
        Ok(())
    }

    fn addressed_words(&self) -> impl Iterator<Item = (u32, u32)> + Clone + '_ {
        (self.address..).step_by(4).zip(self.words.iter().copied())
    }
}

// === impl Program ===

impl Program {
    /// Checks segments, in any order, and the address of the first instruction.
    ///
    /// # Errors
    /// See [`ProgramError`].
    pub fn new(entry: u32, mut segments: Vec<Segment>) -> Result<Self, ProgramError> {
        if segments.len() > SEGMENTS_MAX {
            return Err(ProgramError::TooManySegments {
                count: segments.len(),
            });
        }
        segments.iter().try_for_each(Segment::check)?;
        segments.sort_by_key(|segment| segment.address);
        for pair in segments.windows(2) {
            if pair[0].end() > u64::from(pair[1].address) {
                return Err(ProgramError::Overlap {
                    first: pair[0].address,
                    second: pair[1].address,
                });
            }
        }
        let (code, data) = segments
            .into_iter()
            .partition(|segment| segment.kind == SegmentKind::Code);
        let program = Self { entry, code, data };
        if program.code_word(entry).is_none() {
            return Err(ProgramError::EntryOutsideCode { entry });
        }
        Ok(program)
    }

    /// Address of the first instruction.
    pub fn entry(&self) -> u32 {
        self.entry
    }

    /// Addresses of code, in increasing order.
    pub fn code_ranges(&self) -> impl Iterator<Item = Range<u32>> + '_ {
        // The ends of checked segments are at most the end of a region.
        self.code
            .iter()
            .map(|segment| segment.address..segment.end() as u32)
    }

    /// Code words with their addresses, in increasing order.
    pub fn code_words(&self) -> impl Iterator<Item = (u32, u32)> + Clone + '_ {
        self.code.iter().flat_map(Segment::addressed_words)
    }

    /// Data words that are not zero at the start, with their addresses, in increasing order.
    pub fn data_words(&self) -> impl Iterator<Item = (u32, u32)> + Clone + '_ {
        self.data
            .iter()
            .flat_map(Segment::addressed_words)
            .filter(|(_, word)| *word != 0)
    }

    /// The code word at an address, or `None` if the address is misaligned or outside of code.
    pub fn code_word(&self, address: u32) -> Option<u32> {
        if !address.is_multiple_of(4) {
            return None;
        }
        // At most 16 segments, and one in most programs.
        self.code.iter().find_map(|segment| {
            let index = address.checked_sub(segment.address)? / 4;
            segment.words.get(index as usize).copied()
        })
    }

    /// SHA-256 of the entry, the code words with their addresses, and the non-zero data words with theirs.
    ///
    /// The hashed bytes are `"proofmill-rv32 program 1\0"`; the entry; the number of code words, and of each its address
    /// and the word; the same for data words that are not zero. Numbers are 32-bit little-endian, addresses increase.
    /// The division into segments does not count: programs that execute alike have the same digest.
    pub fn digest(&self) -> [u8; 32] {
        let mut hasher = Sha256::new();
        hasher.update(DIGEST_DOMAIN);
        hasher.update(self.entry.to_le_bytes());
        hash_words(&mut hasher, self.code_words());
        hash_words(&mut hasher, self.data_words());
        hasher.finalize().into()
    }
}

fn hash_words(hasher: &mut Sha256, words: impl Iterator<Item = (u32, u32)> + Clone) {
    // Both regions together have less than 2³² words.
    hasher.update((words.clone().count() as u32).to_le_bytes());
    for (address, word) in words {
        hasher.update(address.to_le_bytes());
        hasher.update(word.to_le_bytes());
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn code(address: u32, words: &[u32]) -> Segment {
        Segment {
            kind: SegmentKind::Code,
            address,
            words: words.to_vec(),
            zero_words: 0,
        }
    }

    fn data(address: u32, words: &[u32], zero_words: u32) -> Segment {
        Segment {
            kind: SegmentKind::Data,
            address,
            words: words.to_vec(),
            zero_words,
        }
    }

    #[test]
    fn words_are_listed_in_increasing_order_without_zeros() {
        let segments = vec![
            data(0x0200_0010, &[7, 0, 8], 4),
            code(0x3000, &[3]),
            data(0x0200_0000, &[0, 5], 0),
            code(0x1000, &[0x73, 0]),
        ];
        let program = Program::new(0x1004, segments).unwrap();
        let code: Vec<_> = program.code_words().collect();
        assert_eq!(code, [(0x1000, 0x73), (0x1004, 0), (0x3000, 3)]);
        let data: Vec<_> = program.data_words().collect();
        assert_eq!(data, [(0x0200_0004, 5), (0x0200_0010, 7), (0x0200_0018, 8)]);
        let ranges: Vec<_> = program.code_ranges().collect();
        assert_eq!(ranges, [0x1000..0x1008, 0x3000..0x3004]);
        assert_eq!(program.code_word(0x1000), Some(0x73));
        for address in [0, 0xffc, 0x1002, 0x1008, 0x2ffc, 0x3004, 0x0200_0004, !3] {
            assert_eq!(program.code_word(address), None, "{address:#x}");
        }
    }

    #[test]
    fn a_segment_outside_of_its_region_is_refused() {
        let main = code(0x1000, &[0x73]);
        let refused = [
            code(0xffc, &[0, 0]),
            code(0x01ff_fffc, &[0, 0]),
            code(0x0200_0000, &[0]),
            data(0x2000, &[0], 0),
            data(0x03ff_fffc, &[0, 0], 0),
            data(0x0200_0000, &[], 0x80_0001),
            data(0xffff_fffc, &[1], u32::MAX),
        ];
        for segment in refused {
            let result = Program::new(0x1000, vec![main.clone(), segment.clone()]);
            assert!(
                matches!(result, Err(ProgramError::OutsideRegion { start, .. }) if start == segment.address)
            );
        }
        for segment in [
            code(0x01ff_fffc, &[0]),
            data(0x0200_0000, &[], 0x80_0000),
            data(0x03ff_fffc, &[1], 0),
        ] {
            assert!(Program::new(0x1000, vec![main.clone(), segment]).is_ok());
        }
    }

    #[test]
    fn malformed_segments_are_refused() {
        let main = || code(0x1000, &[0x73, 0x73]);
        let refused = |segment| Program::new(0x1000, vec![main(), segment]).unwrap_err();
        assert_eq!(
            refused(data(0x0200_0002, &[1], 0)),
            ProgramError::MisalignedSegment {
                address: 0x0200_0002
            }
        );
        assert_eq!(
            refused(data(0x0200_0000, &[], 0)),
            ProgramError::EmptySegment {
                address: 0x0200_0000
            }
        );
        let mut padded = code(0x2000, &[1]);
        padded.zero_words = 1;
        assert_eq!(
            refused(padded),
            ProgramError::CodeNotGiven { address: 0x2000 }
        );
        assert_eq!(
            refused(code(0x1004, &[1])),
            ProgramError::Overlap {
                first: 0x1000,
                second: 0x1004
            }
        );
        let low = data(0x0200_0000, &[1], 2);
        let high = data(0x0200_0008, &[1], 0);
        assert_eq!(
            Program::new(0x1000, vec![high, main(), low]),
            Err(ProgramError::Overlap {
                first: 0x0200_0000,
                second: 0x0200_0008
            })
        );
        assert_eq!(
            Program::new(0x1000, vec![main(); 17]),
            Err(ProgramError::TooManySegments { count: 17 })
        );
        for entry in [0, 0x1002, 0x1008, 0x0200_0000] {
            assert_eq!(
                Program::new(entry, vec![main(), data(0x0200_0000, &[1], 0)]),
                Err(ProgramError::EntryOutsideCode { entry })
            );
        }
    }

    #[test]
    fn the_digest_covers_entry_addresses_and_words() {
        let digest = |entry, segments| Program::new(entry, segments).unwrap().digest();
        let base = || vec![code(0x1000, &[1, 2]), data(0x0200_0000, &[3, 0], 0)];
        let expected = digest(0x1000, base());
        // Computed with the SHA-256 of Python of the documented bytes.
        let hex: String = expected.iter().map(|byte| format!("{byte:02x}")).collect();
        assert_eq!(
            hex,
            "21982a75153834dbbe3f1c4a68cc97cf593a69431b0720654bb39302b8c4f754"
        );
        let same = vec![
            code(0x1000, &[1]),
            code(0x1004, &[2]),
            data(0x0200_0000, &[3], 9),
        ];
        assert_eq!(digest(0x1000, same), expected);
        let others = [
            digest(0x1004, base()),
            digest(
                0x1000,
                vec![code(0x1000, &[1, 3]), data(0x0200_0000, &[3], 0)],
            ),
            digest(
                0x1000,
                vec![code(0x1000, &[1, 2, 0]), data(0x0200_0000, &[3], 0)],
            ),
            digest(
                0x1000,
                vec![code(0x1000, &[1, 2]), data(0x0200_0004, &[3], 0)],
            ),
            digest(
                0x1000,
                vec![code(0x1000, &[1, 2]), data(0x0200_0000, &[4], 0)],
            ),
            digest(0x1000, vec![code(0x1000, &[1, 2])]),
        ];
        for (index, other) in others.iter().enumerate() {
            assert_ne!(*other, expected);
            assert!(!others[..index].contains(other));
        }
    }
}
