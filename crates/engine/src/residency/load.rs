//! Loading a key from its files.

use std::fmt::Display;
use std::path::Path;
use std::sync::Arc;

use proofmill_files::MappedFile;
use proofmill_groth16::snarkjs::{CheckedKeyStore, ZkeyFile};
use proofmill_groth16::{
    PointCheck, ProvingKey, ResidentForm, ResidentKey, SnarkCurve, VerifyingKey, mirage, with_curve,
};
use proofmill_r1cs::iden3::R1csFile;
use proofmill_r1cs::{R1cs, load_precompiled};

use super::CheckedMemory;
use crate::interface::{CircuitSource, ConstraintsFrom};
use crate::key::{HotKey, Key, KeyPolicy};
use crate::options::KeyForm;
use crate::registry::{KeyFileInfo, Registered};

/// A loaded key.
pub(super) struct Loaded {
    pub(super) key: Arc<dyn Key>,
    /// Source of its matrices.
    pub(super) from: ConstraintsFrom,
}

/// Mapped files with the registered digests.
#[derive(Debug)]
pub(super) struct MappedFiles {
    /// The `.zkey`, or the precompiled constraints.
    file: MappedFile,
}

/// Maps a circuit's files and compares their digests with the registered ones.
///
/// # Errors
///
/// A message with the file and the fault.
pub(super) fn map(registered: &Registered) -> Result<MappedFiles, String> {
    let path = match &registered.source {
        CircuitSource::Zkey(path) => path,
        CircuitSource::System { constraints, .. } => {
            registered.precompiled.as_ref().unwrap_or(constraints)
        }
    };
    let file = MappedFile::open(path).map_err(text)?;
    if matches!(registered.source, CircuitSource::Zkey(_)) {
        expect_digest(
            path,
            &CheckedKeyStore::digest(&file),
            &registered.key_digest,
        )?;
    }
    Ok(MappedFiles { file })
}

/// Loads a key on the current rayon pool. Its memory must be reserved.
///
/// # Errors
///
/// A message with the file and the fault.
pub(super) fn load(
    registered: &Registered,
    form: KeyForm,
    policy: KeyPolicy,
    checked: &CheckedMemory,
    mapped: Option<MappedFiles>,
) -> Result<Loaded, String> {
    let points = match form {
        KeyForm::Plain | KeyForm::Shared => ResidentForm::Plain,
        KeyForm::Prepared { .. } => ResidentForm::Prepared {
            memory_limit: usize::try_from(registered.prepared(form)).unwrap_or(usize::MAX),
        },
    };
    let mapped = mapped.map_or_else(|| map(registered), Ok);
    let loaded = with_curve!(registered.curve, E => match &registered.source {
        CircuitSource::Zkey(path) => {
            let key = load_zkey::<E>(registered, path, mapped?, points, checked)?;
            policy.check(path, key.vk().require_secure())?;
            let from = ConstraintsFrom::Zkey;
            Ok(Loaded { key: Arc::new(HotKey::new(key, false)), from })
        }
        CircuitSource::System { constraints, key } => {
            let (system, from) = load_system(registered, constraints, mapped)?;
            let key = load_key::<E>(registered, key, system, points, checked, policy)?;
            Ok(Loaded { key: Arc::new(key), from })
        }
    });
    // The temporary memory of loading is no longer covered by a reservation.
    proofmill_kernels::release_memory();
    proofmill_memory::release_heap();
    loaded
}

fn load_zkey<E: SnarkCurve>(
    registered: &Registered,
    path: &Path,
    mapped: MappedFiles,
    points: ResidentForm,
    checked: &CheckedMemory,
) -> Result<ResidentKey<E>, String> {
    let file = mapped.file;
    let digest = &registered.key_digest;
    let known = checked.contains(digest);
    let key = ZkeyFile::of_mapped(&file)
        .and_then(|zkey| zkey.read::<E>(PointCheck::unless(known)))
        .map_err(|error| text(error.in_file(path)))?;
    // The digested content is the content that was read only if the file has not changed meanwhile.
    file.check_unchanged().map_err(text)?;
    if !known {
        checked.remember(digest, path).map_err(text)?;
    }
    drop(file);
    ResidentKey::from_zkey(key, points).map_err(|error| format!("{}: {error}", path.display()))
}

fn load_key<E: SnarkCurve>(
    registered: &Registered,
    path: &Path,
    system: R1cs<E::ScalarField>,
    points: ResidentForm,
    checked: &CheckedMemory,
    policy: KeyPolicy,
) -> Result<HotKey<E>, String> {
    let unusable = |error: &dyn std::fmt::Display| format!("{}: {error}", path.display());
    let info = KeyFileInfo::of(path, registered.curve).map_err(|error| unusable(&error))?;
    expect_digest(path, &info.checksum, &registered.key_digest)?;
    let known = checked.contains(&info.checksum);
    let check = PointCheck::unless(known);
    let require_circuit = |vk: &VerifyingKey<E>| match vk.circuit == registered.constraints {
        true => Ok(()),
        false => Err(unusable(&"the key is for another circuit")),
    };
    let system = Arc::new(system);
    // The file may have been replaced since its checksum was read.
    let hot = if info.is_mirage {
        let key = mirage::ProvingKey::<E>::load_known(path, check, &info.checksum);
        let key = key.map_err(|error| unusable(&error))?;
        require_circuit(&key.plain.vk)?;
        policy.check(path, key.vk().require_secure())?;
        let key = mirage::ResidentKey::new(key, system, points);
        HotKey::committed(key.map_err(|error| unusable(&error))?)
    } else {
        let key = ProvingKey::<E>::load_known(path, check, &info.checksum);
        let key = key.map_err(|error| unusable(&error))?;
        require_circuit(&key.vk)?;
        policy.check(path, key.vk.require_secure())?;
        let key = ResidentKey::new(key, system, points);
        HotKey::new(key.map_err(|error| unusable(&error))?, true)
    };
    if !known {
        checked.remember(&info.checksum, path).map_err(text)?;
    }
    Ok(hot)
}

/// Reads the constraints from the precompiled file, or from the `.r1cs` file if that one cannot be used;
/// this is logged and shown in the status.
fn load_system<F: ark_ff::PrimeField>(
    registered: &Registered,
    constraints: &Path,
    mapped: Result<MappedFiles, String>,
) -> Result<(R1cs<F>, ConstraintsFrom), String> {
    let precompiled = mapped.and_then(|mapped| {
        let system = load_precompiled::<F>(&mapped.file).map_err(text)?;
        expect_digest(
            mapped.file.path(),
            &system.digest(),
            &registered.constraints,
        )?;
        Ok(system)
    });
    let ours = registered
        .precompiled
        .as_deref()
        .filter(|path| *path != constraints);
    match (precompiled, ours) {
        (Ok(system), _) => Ok((system, ConstraintsFrom::Precompiled)),
        (Err(why), None) => Err(why),
        (Err(why), Some(path)) => {
            tracing::warn!(
                circuit = registered.name,
                why,
                "precompiled again from the .r1cs"
            );
            let file = MappedFile::open(constraints).map_err(text)?;
            let system = R1csFile::parse(&file)
                .and_then(|circuit| circuit.system::<F>())
                .map_err(|error| text(error.in_file(constraints)))?;
            expect_digest(constraints, &system.digest(), &registered.constraints)?;
            system.save_precompiled(path).map_err(text)?;
            Ok((system, ConstraintsFrom::R1cs))
        }
    }
}

fn expect_digest(path: &Path, found: &[u8; 32], expected: &[u8; 32]) -> Result<(), String> {
    if found == expected {
        return Ok(());
    }
    Err(format!(
        "{}: not the file that was registered: register it under another name, or put the old one \
         back",
        path.display()
    ))
}

fn text(error: impl Display) -> String {
    error.to_string()
}
