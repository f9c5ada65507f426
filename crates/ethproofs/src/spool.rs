//! Files of the proofs that the site does not have yet, one for each block.

use std::fs::{self, File};
use std::io::{self, Read as _};
use std::path::{Path, PathBuf};

use proofmill_files::{open_regular, write_small_durably};
use sha2::{Digest as _, Sha256};

use crate::call::Proof;

/// Beginning of a file, with the version of its format.
const MAGIC: &[u8; 8] = b"PMETHP1\n";

/// Bytes before the proof: the beginning, five numbers, and the digest of all else.
const HEAD_BYTES: usize = 8 + 5 * 8 + 32;

/// End of a file's name.
const SUFFIX: &str = ".proof";

/// Beginning of the name of a file that is being written.
const NEW: &str = ".new-";

/// A proof that is kept.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Kept {
    /// Block.
    pub block: u64,
    /// The proof.
    pub proof: Proof,
    /// Time at which it was made, milliseconds since 1970-01-01 UTC.
    pub proved_ms: u64,
}

/// The folder of the files.
#[derive(Clone, Debug)]
pub struct Spool {
    folder: PathBuf,
}

// === impl Spool ===

impl Spool {
    /// The proofs in `folder`, which must exist. Removes what an earlier process was writing when it was killed, and
    /// files that are damaged.
    ///
    /// # Errors
    /// The folder cannot be read.
    pub fn open(folder: &Path) -> io::Result<(Self, Vec<Kept>)> {
        let spool = Self {
            folder: folder.to_owned(),
        };
        let mut kept = Vec::new();
        for entry in fs::read_dir(folder)? {
            let name = entry?.file_name();
            let Some(name) = name.to_str() else { continue };
            let Some(block) = name.strip_suffix(SUFFIX) else {
                if name.starts_with(NEW) {
                    // It is tried again at the next start.
                    let _ = fs::remove_file(folder.join(name));
                }
                continue;
            };
            let Ok(block) = block.parse::<u64>() else {
                continue;
            };
            match spool.inspect(block) {
                Ok(found) => kept.push(found),
                Err(error) => {
                    tracing::warn!(block, %error, "a proof that was kept for Ethproofs is removed");
                    spool.remove(block);
                }
            }
        }
        kept.sort_unstable_by_key(|it| it.block);
        Ok((spool, kept))
    }

    /// Keeps a proof. It is durable when this returns.
    ///
    /// # Errors
    /// Those of the file system.
    pub fn keep(&self, kept: &Kept, proof: &[u8]) -> io::Result<()> {
        let mut bytes = Vec::with_capacity(HEAD_BYTES + proof.len());
        bytes.extend_from_slice(MAGIC);
        for number in numbers(kept) {
            bytes.extend_from_slice(&number.to_le_bytes());
        }
        let digest = digest(&bytes, proof);
        bytes.extend_from_slice(&digest);
        bytes.extend_from_slice(proof);
        write_small_durably(&self.path(kept.block), &bytes, NEW)
    }

    /// The bytes of a block's proof.
    ///
    /// # Errors
    /// The file cannot be read, or is damaged.
    pub fn read(&self, block: u64) -> io::Result<Vec<u8>> {
        let mut file = open_regular(&self.path(block))?;
        let (head, kept) = read_head(&mut file, block)?;
        let mut proof = Vec::new();
        // One more byte shows that the file is too long.
        let limit = kept.proof.bytes.saturating_add(1);
        file.take(limit).read_to_end(&mut proof)?;
        let is_whole = proof.len() as u64 == kept.proof.bytes;
        if !is_whole || head[HEAD_BYTES - 32..] != digest(&head[..HEAD_BYTES - 32], &proof) {
            return Err(damaged("its digest differs"));
        }
        Ok(proof)
    }

    /// Removes a block's proof.
    pub fn remove(&self, block: u64) {
        if let Err(error) = fs::remove_file(self.path(block))
            && error.kind() != io::ErrorKind::NotFound
        {
            tracing::warn!(block, %error, "a proof that Ethproofs has, or need not have, stays in its file");
        }
    }

    /// Head of a block's file; the proof is not read.
    fn inspect(&self, block: u64) -> io::Result<Kept> {
        let mut file = open_regular(&self.path(block))?;
        let (_, kept) = read_head(&mut file, block)?;
        let expected = kept.proof.bytes.checked_add(HEAD_BYTES as u64);
        if expected != Some(file.metadata()?.len()) {
            return Err(damaged("its length differs"));
        }
        Ok(kept)
    }

    fn path(&self, block: u64) -> PathBuf {
        self.folder.join(format!("{block:010}{SUFFIX}"))
    }
}

fn numbers(kept: &Kept) -> [u64; 5] {
    let proof = kept.proof;
    let cycles = proof.cycles.unwrap_or(0);
    [
        kept.block,
        proof.proving_ms,
        cycles,
        kept.proved_ms,
        proof.bytes,
    ]
}

fn read_head(file: &mut File, block: u64) -> io::Result<([u8; HEAD_BYTES], Kept)> {
    let mut head = [0; HEAD_BYTES];
    file.read_exact(&mut head)?;
    let (words, _) = head[8..HEAD_BYTES - 32].as_chunks::<8>();
    let mut words = words.iter().map(|word| u64::from_le_bytes(*word));
    let mut number = || words.next().unwrap_or(0);
    let (of_block, proving_ms, cycles) = (number(), number(), number());
    let (proved_ms, bytes) = (number(), number());
    if head[..8] != MAGIC[..] || of_block != block {
        return Err(damaged("it is no proof of this block"));
    }
    let proof = Proof {
        proving_ms,
        cycles: Some(cycles).filter(|it| *it > 0),
        bytes,
    };
    let kept = Kept {
        block,
        proof,
        proved_ms,
    };
    Ok((head, kept))
}

fn digest(head: &[u8], proof: &[u8]) -> [u8; 32] {
    Sha256::new()
        .chain_update(head)
        .chain_update(proof)
        .finalize()
        .into()
}

fn damaged(why: &str) -> io::Error {
    io::Error::new(io::ErrorKind::InvalidData, why)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn kept(block: u64, bytes: u64) -> Kept {
        Kept {
            block,
            proof: Proof {
                proving_ms: 9_000 + block,
                cycles: (block > 7).then_some(55),
                bytes,
            },
            proved_ms: 1_800_000_000_000,
        }
    }

    #[test]
    fn proofs_survive_the_process() {
        let folder = tempfile::tempdir().expect("a folder");
        let (spool, found) = Spool::open(folder.path()).expect("opened");
        assert!(found.is_empty());
        spool.keep(&kept(8, 3), b"abc").expect("kept");
        spool.keep(&kept(7, 0), b"").expect("kept");
        fs::write(folder.path().join(".new-x"), "half").expect("written");
        fs::write(folder.path().join("note"), "x").expect("written");
        let (spool, found) = Spool::open(folder.path()).expect("opened");
        assert_eq!(found, [kept(7, 0), kept(8, 3)]);
        assert_eq!(spool.read(8).expect("read"), b"abc");
        spool.remove(8);
        spool.remove(8);
        assert_eq!(Spool::open(folder.path()).expect("opened").1, [kept(7, 0)]);
        assert!(!folder.path().join(".new-x").exists() && folder.path().join("note").exists());
    }

    #[test]
    fn every_damaged_byte_is_noticed() {
        let folder = tempfile::tempdir().expect("a folder");
        let (spool, _) = Spool::open(folder.path()).expect("opened");
        spool.keep(&kept(8, 3), b"abc").expect("kept");
        let path = spool.path(8);
        let whole = fs::read(&path).expect("read");
        for at in 0..whole.len() {
            let mut bytes = whole.clone();
            bytes[at] ^= 1;
            fs::write(&path, &bytes).expect("written");
            assert!(spool.read(8).is_err(), "{at}");
        }
        for bytes in [&whole[..whole.len() - 1], &whole[..HEAD_BYTES - 1], b""] {
            fs::write(&path, bytes).expect("written");
            assert!(Spool::open(folder.path()).expect("opened").1.is_empty());
            assert!(!path.exists());
        }
        let mut long = whole.clone();
        long.push(0);
        fs::write(&path, &long).expect("written");
        assert!(spool.read(8).is_err());
    }
}
