//! The container: magic, version, sections.

use std::io::{self, Seek, SeekFrom, Write};
use std::ops::Range;

use super::{Cursor, FormatError, Reason};

/// The most sections a file may have: snarkjs's own have 11 at most.
pub const MAX_SECTIONS: u32 = 64;

/// Bytes before the first section.
const HEAD_BYTES: usize = 12;

/// A format of container: its magic, its version, and its kinds of section.
#[derive(Debug, PartialEq, Eq)]
pub struct Format {
    /// The usual file suffix, for example `.zkey`; messages name the format by it.
    pub name: &'static str,
    /// The first four bytes.
    pub magic: [u8; 4],
    /// The one version that is read and written.
    pub version: u32,
    /// The kinds of section of this format, each with its name for messages.
    pub sections: &'static [(u32, &'static str)],
}

/// A container whose head was read: the version is the format's, the sections fill the rest of the bytes
/// without a gap, and no kind occurs twice.
///
/// Sections of unknown kinds are kept and otherwise ignored.
#[derive(Clone, Debug)]
pub struct Container<'a> {
    format: &'static Format,
    bytes: &'a [u8],
    sections: Vec<Section>,
}

#[derive(Clone, Debug)]
struct Section {
    kind: u32,
    content: Range<usize>,
}

/// Writes a container's sections, one after the other, to a file or into memory.
///
/// Between [`begin`](Self::begin) and [`end`](Self::end) it is the section's content that is
/// written; lengths are filled in afterwards, so no section need be in memory.
#[derive(Debug)]
pub struct ContainerWriter<W> {
    out: W,
    sections: u32,
    /// Offset of the open section's content; `None` between sections.
    open: Option<u64>,
}

// === impl Format ===

impl Format {
    /// The name of a kind of section for messages; `None` if the format has no such kind.
    pub fn section_name(&self, kind: u32) -> Option<&'static str> {
        let (_, name) = self.sections.iter().find(|(known, _)| *known == kind)?;
        Some(name)
    }
}

// === impl Container ===

impl<'a> Container<'a> {
    /// Reads the head of a container of `format` and finds its sections. Nothing is copied.
    ///
    /// # Errors
    ///
    /// [`FormatError`] if the magic or version differs, a section reaches beyond the bytes or occurs twice,
    /// or bytes follow the last section.
    pub fn parse(format: &'static Format, bytes: &'a [u8]) -> Result<Self, FormatError> {
        let mut head = Cursor::new(format, None, bytes, 0);
        let magic = head.array::<4>()?;
        if magic != format.magic {
            let (found, expected) = (magic, format.magic);
            return Err(head.error_at(0, Reason::Magic { found, expected }));
        }
        let found = head.u32()?;
        if found != format.version {
            let expected = format.version;
            return Err(head.error_at(4, Reason::Version { found, expected }));
        }
        let found = head.u32()?;
        if found > MAX_SECTIONS {
            let limit = MAX_SECTIONS;
            return Err(head.error_at(8, Reason::TooManySections { found, limit }));
        }
        let mut sections: Vec<Section> = Vec::with_capacity(found as usize);
        for _ in 0..found {
            let start = head.offset();
            let kind = head.u32()?;
            head.set_section(Some(kind));
            if sections.iter().any(|section| section.kind == kind) {
                return Err(head.error_at(start, Reason::DuplicateSection));
            }
            let length = head.u64()?;
            let start = head.position();
            head.skip(length)?;
            let content = start..head.position();
            sections.push(Section { kind, content });
            head.set_section(None);
        }
        head.finish()?;
        Ok(Self {
            format,
            bytes,
            sections,
        })
    }

    /// The format.
    pub const fn format(&self) -> &'static Format {
        self.format
    }

    /// A cursor at the start of the section of this kind.
    ///
    /// # Errors
    ///
    /// [`Reason::MissingSection`], at the end of the file.
    pub fn section(&self, kind: u32) -> Result<Cursor<'a>, FormatError> {
        self.optional(kind).ok_or(FormatError {
            format: self.format,
            section: Some(kind),
            offset: self.bytes.len() as u64,
            reason: Reason::MissingSection,
        })
    }

    /// Like [`section`](Self::section), for an optional section: `None` if it is missing.
    pub fn optional(&self, kind: u32) -> Option<Cursor<'a>> {
        let section = self.sections.iter().find(|section| section.kind == kind)?;
        let content = &self.bytes[section.content.clone()];
        let base = section.content.start as u64;
        Some(Cursor::new(self.format, Some(kind), content, base))
    }

    /// The kind of each section and where its content lies in the file, in the file's order.
    pub fn sections(&self) -> impl Iterator<Item = (u32, Range<usize>)> {
        self.sections
            .iter()
            .map(|section| (section.kind, section.content.clone()))
    }

    /// The whole file.
    pub const fn bytes(&self) -> &'a [u8] {
        self.bytes
    }
}

// === impl ContainerWriter ===

impl<W: Write + Seek> ContainerWriter<W> {
    /// Starts a container of `format` at the start of `out`.
    ///
    /// # Errors
    ///
    /// Those of `out`.
    pub fn new(mut out: W, format: &Format) -> io::Result<Self> {
        out.write_all(&format.magic)?;
        out.write_all(&format.version.to_le_bytes())?;
        // The number of sections, when it is known.
        out.write_all(&[0; 4])?;
        Ok(Self {
            out,
            sections: 0,
            open: None,
        })
    }

    /// Starts a section: bytes written from here on are its content.
    ///
    /// # Errors
    ///
    /// Those of `out`.
    ///
    /// # Panics
    ///
    /// If the section before it was not ended.
    pub fn begin(&mut self, kind: u32) -> io::Result<()> {
        assert!(self.open.is_none(), "sections do not nest");
        self.out.write_all(&kind.to_le_bytes())?;
        self.out.write_all(&[0; 8])?;
        self.open = Some(self.out.stream_position()?);
        self.sections += 1;
        Ok(())
    }

    /// Ends the section.
    ///
    /// # Errors
    ///
    /// Those of `out`.
    ///
    /// # Panics
    ///
    /// If none was begun.
    pub fn end(&mut self) -> io::Result<()> {
        let start = self.open.take().expect("a section was begun");
        let end = self.out.stream_position()?;
        self.out.seek(SeekFrom::Start(start - 8))?;
        self.out.write_all(&(end - start).to_le_bytes())?;
        self.out.seek(SeekFrom::Start(end))?;
        Ok(())
    }

    /// A section with this content.
    ///
    /// # Errors
    ///
    /// Those of `out`.
    pub fn section(&mut self, kind: u32, content: &[u8]) -> io::Result<()> {
        self.begin(kind)?;
        self.out.write_all(content)?;
        self.end()
    }

    /// Completes the head and returns `out`, flushed, at its end.
    ///
    /// # Errors
    ///
    /// Those of `out`.
    ///
    /// # Panics
    ///
    /// If a section was not ended.
    pub fn finish(mut self) -> io::Result<W> {
        assert!(self.open.is_none(), "the last section was not ended");
        let end = self.out.stream_position()?;
        self.out.seek(SeekFrom::Start(HEAD_BYTES as u64 - 4))?;
        self.out.write_all(&self.sections.to_le_bytes())?;
        self.out.seek(SeekFrom::Start(end))?;
        self.out.flush()?;
        Ok(self.out)
    }
}

impl<W: Write> Write for ContainerWriter<W> {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.out.write(bytes)
    }

    fn flush(&mut self) -> io::Result<()> {
        self.out.flush()
    }
}
