//! Bytes of an executable to a program.

use super::{ElfError, HeaderField, SegmentFault};
use crate::program::{Program, SEGMENTS_MAX, Segment, SegmentKind};

/// Greatest length of an executable, bytes.
pub const ELF_BYTES_MAX: usize = 16 << 20;

const HEADER_BYTES: u32 = 52;
const PROGRAM_HEADER_BYTES: u32 = 32;

/// Fields of the header with one accepted value: offset, length in bytes, and the value.
const FIXED: [(HeaderField, usize, usize, u32); 11] = [
    (HeaderField::Magic, 0, 4, 0x464c_457f),
    (HeaderField::Class, 4, 1, 1),
    (HeaderField::Encoding, 5, 1, 1),
    (HeaderField::IdentificationVersion, 6, 1, 1),
    (HeaderField::OsAbi, 7, 1, 0),
    // ET_EXEC.
    (HeaderField::Type, 16, 2, 2),
    // EM_RISCV.
    (HeaderField::Machine, 18, 2, 243),
    (HeaderField::Version, 20, 4, 1),
    // Neither compressed instructions, nor floating point in registers, nor RV32E, nor total store order.
    (HeaderField::Flags, 36, 4, 0),
    (HeaderField::HeaderBytes, 40, 2, HEADER_BYTES),
    (HeaderField::ProgramHeaderBytes, 42, 2, PROGRAM_HEADER_BYTES),
];

/// `p_type` of segments that are loaded.
const PT_LOAD: u32 = 1;
/// `p_type` of segments without an effect on the program: null, note, program headers, stack flags, pages read-only after
/// relocation, and RISC-V attributes.
const IGNORED: [u32; 6] = [0, 4, 6, 0x6474_e551, 0x6474_e552, 0x7000_0003];

const EXECUTE: u32 = 1;
const WRITE: u32 = 2;
const READ: u32 = 4;

/// Loads a static executable. Section headers, symbols and relocations are not read.
///
/// Executable segments are code, all others data. Read-only data is not protected from stores.
///
/// # Errors
/// See [`ElfError`]. Memory is allocated only for bytes that the file contains.
pub fn load(bytes: &[u8]) -> Result<Program, ElfError> {
    if bytes.len() > ELF_BYTES_MAX {
        return Err(ElfError::TooLarge { bytes: bytes.len() });
    }
    let header = part(bytes, "file header", 0, HEADER_BYTES)?;
    for (field, offset, length, expected) in FIXED {
        let value = number(header, offset, length);
        if value != expected {
            return Err(ElfError::Header {
                field,
                value,
                expected,
            });
        }
    }
    let entry = number(header, 24, 4);
    let table_offset = number(header, 28, 4);
    let count = number(header, 44, 2) as u16;
    if count == 0 || usize::from(count) > SEGMENTS_MAX {
        return Err(ElfError::ProgramHeaderCount { count });
    }
    let table_bytes = u32::from(count) * PROGRAM_HEADER_BYTES;
    let table = part(bytes, "program header table", table_offset, table_bytes)?;

    let mut segments = Vec::new();
    let mut loaded_bytes = 0;
    for (index, header) in table
        .chunks_exact(PROGRAM_HEADER_BYTES as usize)
        .enumerate()
    {
        let placed = Placed::read(header).map_err(|fault| ElfError::Segment { index, fault })?;
        if let Some(placed) = placed {
            let content = part(bytes, "segment", placed.offset, placed.file_bytes)?;
            // Without this limit, headers could name the same bytes again and again.
            loaded_bytes += content.len();
            if loaded_bytes > bytes.len() {
                return Err(ElfError::SharedBytes);
            }
            segments.push(placed.segment(content));
        }
    }
    Ok(Program::new(entry, segments)?)
}

/// A program header of type `PT_LOAD`, checked.
struct Placed {
    kind: SegmentKind,
    offset: u32,
    address: u32,
    file_bytes: u32,
    memory_bytes: u32,
}

// === impl Placed ===

impl Placed {
    /// The segment of a program header, or `None` if nothing is loaded for it.
    fn read(header: &[u8]) -> Result<Option<Self>, SegmentFault> {
        let field = |index: usize| number(header, 4 * index, 4);
        let (kind, offset, address, file_bytes, memory_bytes, flags) =
            (field(0), field(1), field(2), field(4), field(5), field(6));
        if IGNORED.contains(&kind) {
            return Ok(None);
        }
        if kind != PT_LOAD {
            return Err(SegmentFault::Kind { kind });
        }
        if flags == 0 || flags & !(READ | WRITE | EXECUTE) != 0 {
            return Err(SegmentFault::Flags { flags });
        }
        let kind = match (flags & EXECUTE != 0, flags & WRITE != 0) {
            (true, true) => return Err(SegmentFault::WritableCode),
            (true, false) => SegmentKind::Code,
            (false, _) => SegmentKind::Data,
        };
        if file_bytes > memory_bytes {
            return Err(SegmentFault::Sizes {
                file_bytes,
                memory_bytes,
            });
        }
        if kind == SegmentKind::Code && !file_bytes.is_multiple_of(4) {
            return Err(SegmentFault::PartialInstruction { bytes: file_bytes });
        }
        let placed = Self {
            kind,
            offset,
            address,
            file_bytes,
            memory_bytes,
        };
        Ok((memory_bytes > 0).then_some(placed))
    }

    /// The segment in words. A last word that the file has only in part is filled with zeros.
    fn segment(&self, content: &[u8]) -> Segment {
        let words: Vec<u32> = content
            .chunks(4)
            .map(|bytes| number(bytes, 0, bytes.len()))
            .collect();
        let zero_words = self.memory_bytes.div_ceil(4) - self.file_bytes.div_ceil(4);
        Segment {
            kind: self.kind,
            address: self.address,
            words,
            zero_words,
        }
    }
}

/// The bytes from `offset`, or the error that names the part of the file.
fn part<'a>(
    bytes: &'a [u8],
    part: &'static str,
    offset: u32,
    length: u32,
) -> Result<&'a [u8], ElfError> {
    let end = u64::from(offset) + u64::from(length);
    if end > bytes.len() as u64 {
        return Err(ElfError::Truncated {
            part,
            end,
            bytes: bytes.len(),
        });
    }
    // Both are at most the length of the file.
    Ok(&bytes[offset as usize..end as usize])
}

/// A little-endian number of one to four bytes, within `bytes`.
fn number(bytes: &[u8], offset: usize, length: usize) -> u32 {
    bytes[offset..offset + length]
        .iter()
        .rev()
        .fold(0, |value, byte| value << 8 | u32::from(*byte))
}
