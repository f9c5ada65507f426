//! The structured reference string of rollup proofs on disk.
//!
//! Little-endian: magic (8 bytes), version (4), binary logarithm of the number of points (4), the
//! points as x and y coordinates (32 bytes each), SHA-256 of all of that (32). Every such file has
//! the same bytes, so the checksum is a constant, and a file with other points is refused.

use std::fs::File;
use std::io::{self, Read, Write};
use std::path::{Path, PathBuf};

use ark_ff::{BigInt, PrimeField};
use proofmill_files::{FileError, Visibility, write_whole};
use rayon::iter::ParallelIterator;
use rayon::slice::ParallelSlice;
use sha2::{Digest, Sha256};

use crate::{Base, Point, ROLLUP_LOG_SIZE, Srs};

const MAGIC: [u8; 8] = *b"PMILLSRS";
const VERSION: u32 = 1;
const HEAD_BYTES: usize = 16;
const COORDINATE_BYTES: usize = 32;
const POINT_BYTES: usize = 2 * COORDINATE_BYTES;
const CHECKSUM_BYTES: usize = 32;
const FILE_BYTES: usize = HEAD_BYTES + (POINT_BYTES << ROLLUP_LOG_SIZE) + CHECKSUM_BYTES;

/// The checksum of the points that [`Srs::derive`] derives, which a test compares with the digest
/// that barretenberg pins.
const CHECKSUM: [u8; CHECKSUM_BYTES] = [
    0xc9, 0x16, 0xbc, 0xa3, 0x7e, 0x01, 0xe5, 0xfd, 0x89, 0xac, 0x81, 0x7f, 0x41, 0x21, 0x60, 0x92,
    0xf5, 0xbd, 0xe0, 0x1c, 0xbf, 0x08, 0xab, 0xba, 0x7c, 0xcf, 0xa8, 0x55, 0x2f, 0xe9, 0x07, 0x27,
];

/// The reason why the points cannot be loaded from a file or stored in it.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum SrsFileError {
    /// The file system refused.
    #[error("{}: {source}", path.display())]
    Io {
        /// The file.
        path: PathBuf,
        /// The file system's error.
        source: io::Error,
    },
    /// The file cannot be written.
    #[error(transparent)]
    Write(#[from] FileError),
    /// The file does not begin with the magic of SRS points.
    #[error("{}: no file of SRS points: it begins with other bytes", path.display())]
    Magic {
        /// The file.
        path: PathBuf,
    },
    /// The file is of another version.
    #[error(
        "{}: SRS points of version {found}: this release reads version {VERSION}; remove the file, \
         and it is made again",
        path.display()
    )]
    Version {
        /// The file.
        path: PathBuf,
        /// The file's version.
        found: u32,
    },
    /// The file is cut short, lengthened or changed.
    #[error("{}: damaged: {what}; remove the file, and it is made again", path.display())]
    Damaged {
        /// The file.
        path: PathBuf,
        /// The check that failed.
        what: String,
    },
}

// === impl Srs ===

impl Srs {
    /// The 2¹⁵ points of rollup proofs from the file at `path`. If there is no file, they are derived and
    /// written there. An existing file is never replaced.
    ///
    /// # Errors
    ///
    /// [`SrsFileError`] if an existing file does not hold the points, or a new one cannot be written.
    pub fn load_or_derive(path: &Path) -> Result<Self, SrsFileError> {
        match Self::load(path) {
            Err(SrsFileError::Io { source, .. }) if source.kind() == io::ErrorKind::NotFound => {
                let srs = Self::derive(ROLLUP_LOG_SIZE);
                srs.store(path)?;
                Ok(srs)
            }
            loaded => loaded,
        }
    }

    /// The 2¹⁵ points of rollup proofs from a file.
    ///
    /// # Errors
    ///
    /// [`SrsFileError`] if it does not hold them, byte for byte.
    pub fn load(path: &Path) -> Result<Self, SrsFileError> {
        let bytes = read(path).map_err(|source| SrsFileError::Io {
            path: path.to_owned(),
            source,
        })?;
        check(&bytes, path)?;
        let points = bytes[HEAD_BYTES..FILE_BYTES - CHECKSUM_BYTES]
            .par_chunks_exact(POINT_BYTES)
            .map(|bytes| {
                let (x, y) = bytes.split_at(COORDINATE_BYTES);
                // The constant checksum ensures that the points are on the curve.
                Some(Point::new_unchecked(coordinate(x)?, coordinate(y)?))
            })
            .collect::<Option<Vec<_>>>()
            .expect("the file that has the checksum holds coordinates");
        Ok(Self::from_points(points))
    }

    /// Writes the 2¹⁵ points of rollup proofs to a file atomically.
    ///
    /// # Errors
    ///
    /// [`SrsFileError::Write`] if the file system refuses; the file at `path` is then unchanged.
    ///
    /// # Panics
    ///
    /// If these are not 2¹⁵ points.
    pub fn store(&self, path: &Path) -> Result<(), SrsFileError> {
        assert_eq!(
            self.log_size(),
            ROLLUP_LOG_SIZE,
            "other than rollup proofs have"
        );
        let bytes = self.file_bytes();
        write_whole(path, Visibility::Public, |file| file.write_all(&bytes))?;
        Ok(())
    }

    fn file_bytes(&self) -> Vec<u8> {
        let mut bytes = Vec::with_capacity(FILE_BYTES);
        bytes.extend(MAGIC);
        bytes.extend(VERSION.to_le_bytes());
        bytes.extend(self.log_size().to_le_bytes());
        for point in self.points() {
            for coordinate in [point.x, point.y] {
                for word in coordinate.into_bigint().0 {
                    bytes.extend(word.to_le_bytes());
                }
            }
        }
        let checksum = Sha256::digest(&bytes);
        bytes.extend(checksum);
        bytes
    }
}

/// The file's bytes; one more than there should be at most, so that a file of any size is refused
/// without being read.
fn read(path: &Path) -> io::Result<Vec<u8>> {
    let mut bytes = Vec::with_capacity(FILE_BYTES + 1);
    let limit = FILE_BYTES as u64 + 1;
    File::open(path)?.take(limit).read_to_end(&mut bytes)?;
    Ok(bytes)
}

/// Checks that these are the bytes of the one file there is.
fn check(bytes: &[u8], path: &Path) -> Result<(), SrsFileError> {
    let path = || path.to_owned();
    let damaged = |what| SrsFileError::Damaged { path: path(), what };
    let Some((magic, rest)) = bytes.split_first_chunk() else {
        return Err(damaged(format!("only {} bytes", bytes.len())));
    };
    if *magic != MAGIC {
        return Err(SrsFileError::Magic { path: path() });
    }
    let version = rest.first_chunk().map(|word| u32::from_le_bytes(*word));
    if let Some(found) = version
        && found != VERSION
    {
        return Err(SrsFileError::Version {
            path: path(),
            found,
        });
    }
    if bytes.len() != FILE_BYTES {
        let length = match bytes.len() {
            short if short < FILE_BYTES => format!("{short} bytes"),
            _ => format!("more than {FILE_BYTES} bytes"),
        };
        return Err(damaged(format!("{length} instead of {FILE_BYTES}")));
    }
    let (content, checksum) = bytes.split_at(FILE_BYTES - CHECKSUM_BYTES);
    if Sha256::digest(content)[..] != CHECKSUM || *checksum != CHECKSUM {
        return Err(damaged("its checksum is another".into()));
    }
    Ok(())
}

fn coordinate(bytes: &[u8]) -> Option<Base> {
    let mut words = [0u64; 4];
    for (word, bytes) in words.iter_mut().zip(bytes.chunks_exact(8)) {
        *word = u64::from_le_bytes(bytes.try_into().ok()?);
    }
    Base::from_bigint(BigInt::new(words))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A name, a change of the file, and the expected error message.
    type Case = (&'static str, fn(&mut Vec<u8>), &'static str);

    const DAMAGES: [Case; 8] = [
        ("empty", Vec::clear, "damaged: only 0 bytes"),
        ("magic", |bytes| bytes[0] ^= 1, "no file of SRS points"),
        (
            "version",
            |bytes| bytes[8] = 2,
            "version 2: this release reads version 1",
        ),
        ("size", |bytes| bytes[12] = 14, "its checksum is another"),
        (
            "head only",
            |bytes| bytes.truncate(16),
            "16 bytes instead of 2097200",
        ),
        (
            "a point",
            |bytes| bytes[1 << 20] ^= 1,
            "its checksum is another",
        ),
        (
            "checksum",
            |bytes| bytes[FILE_BYTES - 1] ^= 1,
            "its checksum is another",
        ),
        (
            "a byte more",
            |bytes| bytes.push(0),
            "more than 2097200 bytes",
        ),
    ];

    #[test]
    fn points_are_stored_and_loaded_and_damage_is_refused() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("points.srs");
        let srs = Srs::load_or_derive(&path).unwrap();
        let whole = std::fs::read(&path).unwrap();
        assert_eq!(whole.len(), FILE_BYTES);
        assert_eq!(whole[FILE_BYTES - CHECKSUM_BYTES..], CHECKSUM);
        assert_eq!(Srs::load_or_derive(&path).unwrap(), srs);
        assert_eq!(srs.prefix(4), Srs::derive(4));

        for (name, change, expected) in DAMAGES {
            let mut bytes = whole.clone();
            change(&mut bytes);
            std::fs::write(&path, &bytes).unwrap();
            let error = Srs::load_or_derive(&path).unwrap_err().to_string();
            assert!(
                error.contains(expected) && error.contains("points.srs"),
                "{name}: {error}"
            );
            assert_eq!(
                std::fs::read(&path).unwrap(),
                bytes,
                "{name}: a file is never replaced"
            );
        }
        let left: Vec<_> = std::fs::read_dir(folder.path()).unwrap().collect();
        assert_eq!(left.len(), 1, "temporary files are left: {left:?}");
    }

    /// Points of one's own with a checksum that fits them are no SRS either.
    #[test]
    fn other_points_are_refused() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("points.srs");
        let points = vec![Srs::derive(0).points()[0]; 1 << ROLLUP_LOG_SIZE];
        Srs::from_points(points).store(&path).unwrap();
        let error = Srs::load(&path).unwrap_err();
        assert!(matches!(error, SrsFileError::Damaged { .. }), "{error}");
    }

    #[test]
    fn a_folder_that_is_not_there_is_named() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("nowhere").join("points.srs");
        let error = Srs::load(&path).unwrap_err().to_string();
        assert!(error.contains("nowhere"), "{error}");
    }
}
