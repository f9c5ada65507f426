//! `proofmill zkey export-solidity`

use std::path::Path;

use proofmill_files::{MappedFile, Visibility};
use proofmill_groth16::snarkjs::{curve_of_json, verifying_key_from_json};
use proofmill_groth16::{Curve, KeyError, PointCheck, SnarkCurve, VerifyingKey, with_curve};
use proofmill_solidity::{ContractError, ContractOptions, is_generated, verifier_contract};

use super::verify::pairs::whole_document;
use super::zkey::parse;
use crate::args::solidity::ExportSolidity;
use crate::content::FileKind;
use crate::failure::Failure;
use crate::files::{FilePlan, OverwritePolicy, read, write};

/// The most bytes of a file that may be a contract of ours; the largest has about 100 kB.
const CONTRACT_BYTES_MAX: usize = 1 << 20;

/// The most bytes of a verifying key in Proofmill's own format that is read: there is no room in a contract for the
/// points of a larger one.
const OWN_KEY_BYTES_MAX: usize = 1 << 20;

/// Source of the verifying key.
enum KeyFile {
    Zkey(MappedFile),
    Json(Vec<u8>),
    /// A verifying key in Proofmill's own format.
    Own(Vec<u8>),
}

pub(crate) fn export(args: &ExportSolidity) -> Result<(), Failure> {
    let plan = FilePlan::default()
        .reads("the key", &args.key)
        .writes("the contract", &args.output);
    plan.check(OverwritePolicy::Anything)?;
    let key = KeyFile::open(&args.key)?;
    let options = ContractOptions {
        name: args.name.clone(),
        batch: args.batch,
    };
    let contract = with_curve!(key.curve(&args.key)?, E => {
        let key = key.verifying_key::<E>(&args.key)?;
        verifier_contract(&key, &options).map_err(|error| refused(&args.key, &error))?
    });
    if !args.force && !is_ours(&args.output) {
        let checked = plan.check(OverwritePolicy::Nothing);
        checked.map_err(|failure| {
            failure.help("name another file, or overwrite it with --force: it is no contract that this command wrote")
        })?;
    }
    write(&args.output, Visibility::Public, contract.as_bytes())
}

/// Whether the file can be made again by this command.
fn is_ours(path: &Path) -> bool {
    let found = read(path, CONTRACT_BYTES_MAX).ok();
    found.is_some_and(|bytes| std::str::from_utf8(&bytes).is_ok_and(is_generated))
}

fn refused(path: &Path, error: &ContractError) -> Failure {
    let failure = Failure::new(format!("{}: {error}", path.display()));
    match error {
        ContractError::Insecure(_) => failure.help(
            "take a key that others contributed to (`snarkjs zkey contribute`): with this one anyone can \
             have the contract accept anything",
        ),
        _ => failure,
    }
}

// === impl KeyFile ===

impl KeyFile {
    fn open(path: &Path) -> Result<Self, Failure> {
        let failed = |why: String| Failure::new(format!("{}: {why}", path.display()));
        let kind = FileKind::of_file(path).map_err(|error| failed(error.to_string()))?;
        match kind {
            Some(FileKind::Zkey) => return Ok(Self::Zkey(MappedFile::open(path)?)),
            Some(FileKind::Key) => {
                return Ok(Self::Own(read(path, OWN_KEY_BYTES_MAX).map_err(failed)?));
            }
            _ => {}
        }
        let help = "a key is a .zkey, a verification_key.json, as `proofmill zkey export-vk` writes it, or a \
                    .vk of Proofmill's own";
        let json = whole_document(path).map_err(|why| failed(why).help(help))?;
        if FileKind::of(&json) != Some(FileKind::VerifyingKey) {
            let why = "JSON, but not a verifying key (it has no vk_alpha_1)".to_owned();
            return Err(failed(why).help(help));
        }
        Ok(Self::Json(json))
    }

    fn curve(&self, path: &Path) -> Result<Curve, Failure> {
        let failed = |why: String| Failure::new(format!("{}: {why}", path.display()));
        match self {
            Self::Zkey(file) => Ok(parse(path, file)?.curve()),
            Self::Own(bytes) => {
                let is_other = |curve: &Curve| {
                    with_curve!(*curve, E => {
                        matches!(VerifyingKey::<E>::from_bytes(bytes), Err(KeyError::Curve { .. }))
                    })
                };
                let found = Curve::ALL.into_iter().find(|curve| !is_other(curve));
                found.ok_or_else(|| failed("a key of an unknown curve".to_owned()))
            }
            Self::Json(json) => curve_of_json(json)
                .map_err(|error| failed(error.to_string()))?
                .ok_or_else(|| failed("it names no curve".to_owned())),
        }
    }

    /// The verifying key; every point is checked to be of its group.
    fn verifying_key<E: SnarkCurve>(&self, path: &Path) -> Result<VerifyingKey<E>, Failure> {
        match self {
            Self::Zkey(file) => {
                let key = parse(path, file)?.verifying_key::<E>(PointCheck::Full);
                Ok(key.map_err(|error| error.in_file(path))?)
            }
            Self::Own(bytes) => VerifyingKey::from_bytes(bytes)
                .map_err(|error| Failure::new(format!("{}: {error}", path.display()))),
            Self::Json(json) => verifying_key_from_json(json)
                .map_err(|error| Failure::new(format!("{}: {error}", path.display()))),
        }
    }
}
