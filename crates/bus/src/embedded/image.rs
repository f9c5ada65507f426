//! An image of the database in memory: the file, with the committed pages of its write-ahead log
//! applied. Nothing on disk is created, changed or locked, so a log can be read on a full or
//! read-only disk, and inspected after damage before SQLite removes the traces.
//!
//! The layout of a write-ahead log is <https://www.sqlite.org/fileformat2.html#walformat>.

use std::collections::HashMap;
use std::fs::{File, OpenOptions};
use std::io::{self, Read};
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};

use rusqlite::Connection;
use rustix::fs::OFlags;

use super::verify::StoreError;

const WAL_HEADER: usize = 32;
const FRAME_HEADER: usize = 24;
/// The write-ahead log's magic number. Its lowest bit is set if checksums are over big-endian
/// words.
const WAL_MAGIC: u32 = 0x377f_0682;
const WAL_VERSION: u32 = 3_007_000;
/// Bytes of the database's header with the read and write version: 2 with a write-ahead log, else
/// 1.
const JOURNAL_VERSIONS: std::ops::Range<usize> = 18..20;

/// The write-ahead log of a database.
pub(super) fn wal_file(database: &Path) -> PathBuf {
    let mut name = database.as_os_str().to_owned();
    name.push("-wal");
    name.into()
}

/// Opens a copy of `database` in memory, with or without the committed pages of its write-ahead
/// log.
pub(super) fn open(database: &Path, with_wal: bool) -> Result<Connection, StoreError> {
    let mut pages = read(database)?;
    if with_wal {
        match read(&wal_file(database)) {
            Ok(wal) => apply(&mut pages, &wal),
            Err(error) if error.kind() == io::ErrorKind::NotFound => {}
            Err(error) => return Err(error.into()),
        }
    }
    // The pages of the write-ahead log have been applied, so the image must not expect one.
    if let Some(versions) = pages.get_mut(JOURNAL_VERSIONS)
        && versions == [2, 2]
    {
        versions.fill(1);
    }
    let mut db = Connection::open_in_memory()?;
    db.deserialize_read_exact(rusqlite::MAIN_DB, &pages[..], pages.len(), true)?;
    db.pragma_update(None, "trusted_schema", false)?;
    Ok(db)
}

fn read(path: &Path) -> io::Result<Vec<u8>> {
    let mut options = OpenOptions::new();
    options.custom_flags(OFlags::NOFOLLOW.bits().cast_signed());
    let mut file: File = options.read(true).open(path)?;
    let mut bytes = Vec::new();
    file.read_to_end(&mut bytes)?;
    Ok(bytes)
}

/// Applies the pages of every transaction committed in `wal`. Stops, as SQLite does, at the first
/// frame whose checksum is wrong.
fn apply(pages: &mut Vec<u8>, wal: &[u8]) {
    let Some((header, mut rest)) = wal.split_at_checked(WAL_HEADER) else {
        return;
    };
    let number = |bytes: &[u8], at: usize| {
        let word = bytes[at..].first_chunk().copied().unwrap_or_default();
        u32::from_be_bytes(word)
    };
    let (magic, size) = (number(header, 0), number(header, 8) as usize);
    let is_big_endian = magic & 1 == 1;
    if magic & !1 != WAL_MAGIC
        || number(header, 4) != WAL_VERSION
        || !(512..=65_536).contains(&size)
        || !size.is_power_of_two()
    {
        return;
    }
    let mut sum = checksum((0, 0), &header[..24], is_big_endian);
    if sum != (number(header, 24), number(header, 28)) {
        return;
    }
    // A page that is allocated and freed in one transaction is counted but never written, so a
    // database may have more pages than its files contain. This bounds the memory used.
    let most = 4 * (pages.len() + wal.len()) / size + 1024;
    let mut uncommitted: HashMap<u32, &[u8]> = HashMap::new();
    while let Some((frame, content)) = rest.split_at_checked(FRAME_HEADER)
        && let Some((content, more)) = content.split_at_checked(size)
    {
        rest = more;
        let (page, committed) = (number(frame, 0), number(frame, 4));
        sum = checksum(sum, &frame[..8], is_big_endian);
        sum = checksum(sum, content, is_big_endian);
        if page == 0
            || frame[8..16] != header[16..24]
            || sum != (number(frame, 16), number(frame, 20))
        {
            return;
        }
        uncommitted.insert(page, content);
        if committed > 0 {
            pages.resize((committed as usize).min(most) * size, 0);
            for (page, content) in uncommitted.drain() {
                let at = (page as usize - 1) * size;
                if let Some(place) = pages.get_mut(at..at + size) {
                    place.copy_from_slice(content);
                }
            }
        }
    }
}

/// Extends the running checksum of a write-ahead log over `bytes`, whose length is a multiple of 8.
fn checksum((mut a, mut b): (u32, u32), bytes: &[u8], is_big_endian: bool) -> (u32, u32) {
    let (pairs, _) = bytes.as_chunks::<8>();
    for [a0, a1, a2, a3, b0, b1, b2, b3] in pairs {
        let word = if is_big_endian {
            u32::from_be_bytes
        } else {
            u32::from_le_bytes
        };
        a = a.wrapping_add(word([*a0, *a1, *a2, *a3])).wrapping_add(b);
        b = b.wrapping_add(word([*b0, *b1, *b2, *b3])).wrapping_add(a);
    }
    (a, b)
}
