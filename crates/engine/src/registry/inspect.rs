//! Reading a circuit's files for its registration.

use std::fmt::Display;
use std::fs;
use std::path::{Path, PathBuf};

use ark_ec::pairing::Pairing;
use proofmill_files::MappedFile;
use proofmill_groth16::snarkjs::{CheckedKeyStore, ZkeyFile};
use proofmill_groth16::{Curve, PointCheck, READING_WINDOW_BYTES, with_curve};
use proofmill_r1cs::iden3::{R1csFile, SCALAR_BYTES};
use proofmill_r1cs::{PRECOMPILED_FORMAT, PrecompiledFile, R1cs};

use super::{KeyFileInfo, KeyPoints, Registered};
use crate::interface::{CircuitSource, Error, Registration, check_name};
use crate::key::KeyPolicy;

/// Bytes in memory for each entry of a matrix while it is sorted: positions, columns and indices.
const ENTRY_BYTES: u64 = 24;
/// Bytes for each point of the domain while entries are counted.
const ROW_BYTES: u64 = 16;
/// Bytes of an entry of a sorted matrix: its column and the index of its value.
const SORTED_ENTRY_BYTES: u64 = 8;
/// Bytes of the row offsets of a point in both sorted matrices.
const SORTED_ROW_BYTES: u64 = 8;
/// Estimated number of distinct values of entries: circuits have few of them, among many more entries.
const DISTINCT_VALUES_ESTIMATE: u64 = 1 << 14;

/// A registration whose name is valid and whose files exist. [`inspect`] reads their content.
#[derive(Clone, Debug)]
pub(crate) struct Inspection {
    name: String,
    source: CircuitSource,
    /// Bytes to reserve before the files are read.
    pub(crate) bytes: u64,
}

// === impl Inspection ===

impl Inspection {
    /// Checks the name and finds the files.
    ///
    /// # Errors
    ///
    /// [`Error::Name`], [`Error::Circuit`].
    pub(crate) fn new(registration: Registration) -> Result<Self, Error> {
        check_name(&registration.name)?;
        let (source, bytes) = match registration.source {
            CircuitSource::Zkey(path) => {
                let (path, bytes) = found(&path)?;
                (CircuitSource::Zkey(path), bytes)
            }
            CircuitSource::System { constraints, key } => {
                let (constraints, bytes) = found(&constraints)?;
                let (key, _) = found(&key)?;
                // The file is mapped, and read into matrices that are smaller than it.
                (CircuitSource::System { constraints, key }, 2 * bytes)
            }
        };
        Ok(Self {
            name: registration.name,
            source,
            bytes,
        })
    }
}

/// Reads the circuit's properties from its files, on the current rayon pool. A `.r1cs` file is precompiled
/// into the folder `precompiled`.
///
/// # Errors
///
/// [`Error::Circuit`] if the files are malformed or do not belong together, or `policy` refuses the key.
pub(crate) fn inspect(
    inspection: &Inspection,
    policy: KeyPolicy,
    precompiled: &Path,
) -> Result<Registered, Error> {
    match &inspection.source {
        CircuitSource::Zkey(path) => inspect_zkey(inspection, policy, path),
        CircuitSource::System { constraints, key } => {
            let (registered, info) = inspect_system(inspection, constraints, key, precompiled)?;
            info.check_key(key, policy)?;
            Ok(registered)
        }
    }
}

fn inspect_zkey(
    inspection: &Inspection,
    policy: KeyPolicy,
    path: &Path,
) -> Result<Registered, Error> {
    let file = MappedFile::open(path).map_err(unusable)?;
    let zkey = ZkeyFile::of_mapped(&file).map_err(|error| unusable(error.in_file(path)))?;
    with_curve!(zkey.curve(), E => {
        let vk = zkey
            .verifying_key::<E>(PointCheck::Full)
            .map_err(|error| unusable(error.in_file(path)))?;
        policy
            .check(path, vk.require_secure())
            .map_err(Error::Circuit)?;
    });
    let header = *zkey.header();
    let entries = u64::from(zkey.coefficients());
    let rows = u64::from(header.domain_size);
    let sorting = ENTRY_BYTES * entries + ROW_BYTES * rows;
    // Sections are read one after the other, and the memory of each is given back.
    let sections = zkey
        .container()
        .sections()
        .map(|(_, content)| content.len());
    let window = sections.max().unwrap_or(0).min(READING_WINDOW_BYTES) as u64;
    let queries = zkey.query_points();
    let points = KeyPoints {
        queries: queries.map_err(|error| unusable(error.in_file(path)))?,
        matrices: SORTED_ENTRY_BYTES * entries
            + SORTED_ROW_BYTES * rows
            + SCALAR_BYTES as u64 * entries.min(DISTINCT_VALUES_ESTIMATE),
    };
    let key_digest = CheckedKeyStore::digest(&file);
    file.check_unchanged().map_err(unusable)?;
    let bytes = file.len() as u64;
    let constraints = [0; 32];
    Ok(Registered {
        id: Registered::id_of(header.curve, &constraints, &key_digest),
        name: inspection.name.clone(),
        source: inspection.source.clone(),
        curve: header.curve,
        variables: header.variables.into(),
        public: header.public.into(),
        domain: header.domain_size.into(),
        constraints,
        key_digest,
        precompiled: None,
        file_bytes: bytes,
        // The matrices are sorted after everything is read.
        load_bytes: in_memory(bytes) + window.max(sorting),
        points: Some(points),
    })
}

fn inspect_system(
    inspection: &Inspection,
    constraints: &Path,
    key: &Path,
    folder: &Path,
) -> Result<(Registered, KeyFileInfo), Error> {
    let file = MappedFile::open(constraints).map_err(unusable)?;
    let (field, digest, precompiled) = if file.starts_with(&PRECOMPILED_FORMAT.magic) {
        let header = *PrecompiledFile::parse(&file)
            .map_err(|error| unusable(error.in_file(constraints)))?
            .header();
        (header.prime, header.digest, constraints.to_owned())
    } else {
        let circuit =
            R1csFile::parse(&file).map_err(|error| unusable(error.in_file(constraints)))?;
        let field = circuit.header().prime;
        let (digest, path) = with_curve!(Curve::from(field), E => {
            let system: R1cs<<E as Pairing>::ScalarField> = circuit
                .system()
                .map_err(|error| unusable(error.in_file(constraints)))?;
            let digest = system.digest();
            let path = folder.join(format!("{}.pmcs", hex::encode(digest)));
            system
                .save_precompiled(&path)
                .map_err(|error| Error::Storage(error.to_string()))?;
            (digest, path)
        });
        (field, digest, path)
    };
    let key_file = KeyFileInfo::of(key, Curve::from(field))
        .map_err(|error| Error::Circuit(format!("{}: {error}", key.display())))?;
    let info = key_file.plain;
    if Curve::from(field) != info.curve || info.circuit != digest {
        return Err(Error::Circuit(format!(
            "{} is the key of another circuit than {}: name the two that belong together",
            key.display(),
            constraints.display()
        )));
    }
    let constraint_bytes = length(&precompiled)?;
    let key_bytes = length(key)?;
    // The constraints are read, from one file or the other, before the key.
    let read_bytes = constraint_bytes.max(length(constraints)?);
    let reading_key = in_memory(key_bytes) + key_bytes.min(READING_WINDOW_BYTES as u64);
    let registered = Registered {
        id: Registered::id_of(info.curve, &digest, &key_file.checksum),
        name: inspection.name.clone(),
        source: inspection.source.clone(),
        curve: info.curve,
        variables: info.variables as u64,
        public: info.instance as u64 - 1,
        domain: info.domain as u64,
        constraints: digest,
        key_digest: key_file.checksum,
        precompiled: Some(precompiled),
        file_bytes: key_bytes + constraint_bytes,
        // While the key is read, the constraints' matrices are in memory; before that, their file is
        // mapped.
        load_bytes: read_bytes + read_bytes.max(reading_key),
        points: Some(KeyPoints {
            queries: info.points,
            matrices: constraint_bytes + key_file.committed_bytes,
        }),
    };
    Ok((registered, key_file))
}

/// Bytes in memory of points that take `bytes` in a file: each point has a flag of its own in memory,
/// padded to a word.
pub(crate) const fn in_memory(bytes: u64) -> u64 {
    bytes + bytes / 8 + 4096
}

/// The file's absolute path and its length in bytes.
fn found(path: &Path) -> Result<(PathBuf, u64), Error> {
    let unreadable = |error| Error::Circuit(format!("{}: {error}", path.display()));
    let absolute = fs::canonicalize(path).map_err(unreadable)?;
    let bytes = length(&absolute)?;
    if absolute.to_str().is_none() {
        let shown = absolute.display();
        return Err(Error::Circuit(format!("{shown}: the path is not UTF-8")));
    }
    Ok((absolute, bytes))
}

fn length(path: &Path) -> Result<u64, Error> {
    fs::metadata(path)
        .map(|metadata| metadata.len())
        .map_err(|error| Error::Circuit(format!("{}: {error}", path.display())))
}

fn unusable(error: impl Display) -> Error {
    Error::Circuit(error.to_string())
}
