//! Compiled kernels on disk.
//!
//! A file holds one module for one architecture: eight bytes of magic, the version in four and the
//! cubin's length in eight, both little-endian, the BLAKE3 hash of the cubin, the cubin. Its name
//! begins with the module and the architecture and ends in a digest of the source: other kernels are
//! other files, and an old one is never read again.

use std::io::Write;
use std::path::{Path, PathBuf};

use super::modules::Module;

const MAGIC: &[u8; 8] = b"PMCUBIN\0";
const VERSION: u32 = 1;
const HEADER_BYTES: usize = 8 + 4 + 8 + blake3::OUT_LEN;
/// Largest file that is read. Every module is far smaller.
const FILE_BYTES_MAX: u64 = 64 << 20;

/// A folder of cubins.
#[derive(Clone, Debug)]
pub(crate) struct Cubins {
    folder: PathBuf,
}

// === impl Cubins ===

impl Cubins {
    pub(crate) fn new(folder: &Path) -> Self {
        Self {
            folder: folder.to_owned(),
        }
    }

    /// The module's cubin from its file. If the file is missing or damaged, `compile` makes the cubin, and it is
    /// stored for the next time; an error while storing it is ignored.
    pub(crate) fn get(
        &self,
        module: Module,
        architecture: &str,
        compile: impl FnOnce() -> Result<Vec<u8>, String>,
    ) -> Result<Vec<u8>, String> {
        let path = self.path(module, architecture);
        if let Some(cubin) = read(&path) {
            return Ok(cubin);
        }
        let cubin = compile()?;
        // After a failed write the next process compiles the module again, which is only slower.
        drop(self.write(&path, &cubin));
        Ok(cubin)
    }

    fn path(&self, module: Module, architecture: &str) -> PathBuf {
        let digest = blake3::hash(module.source().as_bytes()).to_hex();
        let digest = &digest[..16];
        self.folder
            .join(format!("{module}-{architecture}-{digest}.cubin"))
    }

    /// Writes a cubin to its file, completely or not at all.
    fn write(&self, path: &Path, cubin: &[u8]) -> std::io::Result<()> {
        std::fs::create_dir_all(&self.folder)?;
        let mut file = tempfile::NamedTempFile::new_in(&self.folder)?;
        file.write_all(MAGIC)?;
        file.write_all(&VERSION.to_le_bytes())?;
        file.write_all(&(cubin.len() as u64).to_le_bytes())?;
        file.write_all(blake3::hash(cubin).as_bytes())?;
        file.write_all(cubin)?;
        file.as_file().sync_all()?;
        file.persist(path).map_err(|error| error.error)?;
        std::fs::File::open(&self.folder)?.sync_all()
    }
}

/// The cubin in a file; `None` if the file is missing or damaged.
fn read(path: &Path) -> Option<Vec<u8>> {
    if std::fs::metadata(path).ok()?.len() > FILE_BYTES_MAX {
        return None;
    }
    let bytes = std::fs::read(path).ok()?;
    let (header, cubin) = bytes.split_at_checked(HEADER_BYTES)?;
    let expected = [
        MAGIC.as_slice(),
        &VERSION.to_le_bytes(),
        &(cubin.len() as u64).to_le_bytes(),
        blake3::hash(cubin).as_bytes(),
    ]
    .concat();
    (header == expected).then(|| cubin.to_vec())
}

#[cfg(test)]
mod tests {
    use super::{Cubins, Module};

    fn get(cubins: &Cubins, architecture: &str, made: &[u8]) -> Vec<u8> {
        cubins
            .get(Module::Sort, architecture, || Ok(made.to_vec()))
            .unwrap()
    }

    #[test]
    fn what_was_compiled_is_read_and_what_is_damaged_is_not() {
        let folder = tempfile::tempdir().unwrap();
        let cubins = Cubins::new(&folder.path().join("cubins"));
        assert_eq!(get(&cubins, "sm_90", b"first"), b"first");
        assert_eq!(get(&cubins, "sm_90", b"second"), b"first");
        assert_eq!(get(&cubins, "sm_80", b"other"), b"other");

        let path = cubins.path(Module::Sort, "sm_90");
        let whole = std::fs::read(&path).unwrap();
        for at in 0..whole.len() {
            let mut damaged = whole.clone();
            damaged[at] ^= 1;
            std::fs::write(&path, &damaged).unwrap();
            assert_eq!(get(&cubins, "sm_90", b"anew!"), b"anew!", "byte {at}");
            std::fs::write(&path, &whole[..at]).unwrap();
            assert_eq!(get(&cubins, "sm_90", b"anew!"), b"anew!", "{at} bytes");
        }
    }

    #[test]
    fn a_missing_folder_is_no_error() {
        let file = tempfile::NamedTempFile::new().unwrap();
        let cubins = Cubins::new(&file.path().join("cubins"));
        assert_eq!(get(&cubins, "sm_90", b"made"), b"made");
        assert_eq!(get(&cubins, "sm_90", b"again"), b"again");
    }

    #[test]
    fn an_error_of_the_compiler_is_passed_on() {
        let folder = tempfile::tempdir().unwrap();
        let made = Cubins::new(folder.path()).get(Module::Sort, "sm_90", || Err("no".into()));
        assert_eq!(made, Err("no".into()));
    }
}
