//! Proofs in files and folders, found by what the files hold and how they are called.

use std::collections::HashSet;
use std::io::{self, ErrorKind, Read};
use std::path::{Path, PathBuf};

use proofmill_aggregation::files::BEGINNING_BYTES;
use proofmill_aggregation::{Aggregate, AggregateKind, curve_of};
use proofmill_groth16::{Bn254, with_curve};
use proofmill_r1cs::iden3::open_regular;
use proofmill_verifier::Kind;
use proofmill_verifier::kinds::{Groth16Aggregate, Partition};

use super::statement::{
    AGGREGATE_KEYS, PARTITION_KEYS, VERIFYING_KEYS, nearest_key, statement_of, statement_of_parts,
};
use crate::args::verify::Verify;
use crate::content::Content;

/// Bytes of a file by which a proof is told from others.
const HEAD: u64 = 4096;

/// A rollup proof of `bb`, which tells by its length alone what it is.
const ROLLUP_PROOF_BYTES: u64 = 15_360;

/// What was found at a path.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Found {
    /// A proof, and what belongs to it.
    Proof(Candidate),
    /// Nothing can be said of it, and why.
    Unread { path: PathBuf, why: String },
}

/// A file that is taken for a proof.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Candidate {
    pub(crate) path: PathBuf,
    pub(crate) kind: Form,
    /// The file of its statement, if there is one.
    pub(crate) statement: Option<PathBuf>,
    /// The file of its verifying key, if there is one.
    pub(crate) key: Option<PathBuf>,
}

/// The kind of a proof, as far as a look at it tells.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Form {
    /// Groth16 in snarkjs's JSON, over the curve that it names.
    Snarkjs,
    /// The kind of that name.
    Kind(String),
    /// An aggregate, the kind of that name: its statement is never JSON.
    Aggregate(String),
    /// A proof of a circuit in parts, the kind of that name: its statement is JSON in a file that is called so, else
    /// bytes.
    Parts(String),
}

/// The paths to search, and what is known of the proofs there.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Sought<'a> {
    /// Files and folders.
    pub(crate) paths: &'a [PathBuf],
    /// The kind of proofs that do not tell it themselves.
    pub(crate) kind: Option<&'a str>,
    /// The key of all proofs.
    pub(crate) key: Option<&'a Path>,
    /// The statement of all proofs.
    pub(crate) inputs: Option<&'a Path>,
}

/// What was found by all paths.
#[derive(Debug, Default)]
pub(crate) struct Findings {
    pub(crate) found: Vec<Found>,
    /// Files in folders that are no proofs, statements of proofs and keys among them.
    pub(crate) others: usize,
}

/// A search for proofs.
struct Search<'a> {
    sought: &'a Sought<'a>,
    findings: Findings,
}

/// Why a file is looked at.
#[derive(Clone, Copy)]
enum Reason<'a> {
    /// The command line names it.
    Named,
    /// It is in a folder that the command line names.
    Within(&'a Path),
}

/// All proofs at some paths, in their order; those of a folder sorted by name.
pub(crate) fn find(sought: &Sought<'_>) -> Findings {
    let mut search = Search {
        sought,
        findings: Findings::default(),
    };
    for path in sought.paths {
        match std::fs::metadata(path) {
            Ok(found) if found.is_dir() => search.folder(path, path),
            _ => search.file(path, Reason::Named),
        }
    }
    search.leave_companions();
    search.findings
}

// === impl Form ===

impl Form {
    /// The names of keys for such proofs, the usual one first.
    pub(super) const fn key_names(&self) -> &'static [&'static str] {
        match self {
            Self::Aggregate(_) => &AGGREGATE_KEYS,
            Self::Parts(_) => &PARTITION_KEYS,
            Self::Snarkjs | Self::Kind(_) => &VERIFYING_KEYS,
        }
    }
}

// === impl Sought ===

impl<'a> Sought<'a> {
    /// The paths, the kind and the files that a command line names.
    pub(crate) fn of(args: &'a Verify) -> Self {
        Self {
            paths: &args.paths,
            kind: args.kind.as_deref(),
            key: args.key.as_deref(),
            inputs: args.inputs.as_deref(),
        }
    }
}

// === impl Search ===

impl Search<'_> {
    /// What is in a folder. Hidden files are left out, and links to folders are not followed.
    fn folder(&mut self, folder: &Path, root: &Path) {
        let entries = std::fs::read_dir(folder).and_then(Iterator::collect::<io::Result<Vec<_>>>);
        let mut entries = match entries {
            Ok(entries) => entries,
            Err(error) => return self.unread(folder, error.to_string()),
        };
        entries.sort_by_key(std::fs::DirEntry::file_name);
        for entry in entries {
            if entry.file_name().as_encoded_bytes().starts_with(b".") {
                continue;
            }
            let path = entry.path();
            match entry.file_type() {
                Ok(found) if found.is_dir() => self.folder(&path, root),
                Ok(found) if found.is_symlink() && path.is_dir() => self.findings.others += 1,
                Ok(_) => self.file(&path, Reason::Within(root)),
                Err(error) => self.unread(&path, error.to_string()),
            }
        }
    }

    fn file(&mut self, path: &Path, reason: Reason<'_>) {
        let looked = match look(path) {
            Ok(looked) => looked,
            // A pipe or a device in a folder is no proof.
            Err(error)
                if error.kind() == ErrorKind::InvalidInput
                    && matches!(reason, Reason::Within(_)) =>
            {
                self.findings.others += 1;
                return;
            }
            Err(error) => return self.unread(path, error.to_string()),
        };
        let is_called = matches!(reason, Reason::Named) || is_called_proof(path);
        match self.form(&looked, is_called) {
            Some(kind) => {
                let root = match reason {
                    Reason::Named => path.parent(),
                    Reason::Within(root) => Some(root),
                };
                let keys = kind.key_names();
                let statement_of = match &kind {
                    Form::Parts(_) => statement_of_parts,
                    _ => statement_of,
                };
                let (statement, key) = (self.sought.inputs, self.sought.key);
                let candidate = Candidate {
                    kind,
                    statement: statement.map(Path::to_owned).or_else(|| statement_of(path)),
                    key: key
                        .map(Path::to_owned)
                        .or_else(|| nearest_key(path, root, keys)),
                    path: path.to_owned(),
                };
                self.findings.found.push(Found::Proof(candidate));
            }
            None if matches!(reason, Reason::Within(_)) => self.findings.others += 1,
            None => self.unread(path, looked.no_proof()),
        }
    }

    fn form(&self, looked: &Looked, is_called: bool) -> Option<Form> {
        let told = looked.form(is_called);
        match self.sought.kind {
            Some(kind) if matches!(told, Some(Form::Aggregate(_))) => {
                Some(Form::Aggregate(kind.to_owned()))
            }
            Some(kind) if matches!(told, Some(Form::Parts(_))) => {
                Some(Form::Parts(kind.to_owned()))
            }
            Some(kind) if is_called || told.is_some() => Some(Form::Kind(kind.to_owned())),
            _ => told,
        }
    }

    /// Takes back what was said of files that are no proofs, where they are the statement or the key of a proof
    /// that is named beside them.
    fn leave_companions(&mut self) {
        let found = &mut self.findings.found;
        let belonging: HashSet<PathBuf> = found
            .iter()
            .filter_map(|found| match found {
                Found::Proof(candidate) => Some([&candidate.statement, &candidate.key]),
                Found::Unread { .. } => None,
            })
            .flatten()
            .flatten()
            .filter_map(|path| path.canonicalize().ok())
            .collect();
        let before = found.len();
        found.retain(|found| match found {
            Found::Proof(_) => true,
            Found::Unread { path, .. } => !path
                .canonicalize()
                .is_ok_and(|path| belonging.contains(&path)),
        });
        self.findings.others += before - found.len();
    }

    fn unread(&mut self, path: &Path, why: String) {
        let path = path.to_owned();
        self.findings.found.push(Found::Unread { path, why });
    }
}

/// The beginning of a file, and its length.
struct Looked {
    head: Vec<u8>,
    length: u64,
}

fn look(path: &Path) -> io::Result<Looked> {
    let file = open_regular(path)?;
    let length = file.metadata()?.len();
    let mut head = Vec::new();
    file.take(HEAD).read_to_end(&mut head)?;
    Ok(Looked { head, length })
}

/// Whether a file's name says that it is a proof: `proof`, `NAME.proof`.
fn is_called_proof(path: &Path) -> bool {
    path.file_name().is_some_and(|name| name == "proof")
        || path
            .extension()
            .is_some_and(|extension| extension == "proof")
}

// === impl Looked ===

impl Looked {
    /// What kind of proof it is. By its length alone only if its name says that it is one.
    fn form(&self, is_called: bool) -> Option<Form> {
        let kind = |name: &str| Some(Form::Kind(name.to_owned()));
        if self.head.starts_with(b"PMKZ") {
            return kind("kzg");
        }
        if self.head.starts_with(b"PMIO") {
            return kind("grumpkin-ipa");
        }
        match Content::of(&self.head) {
            Some(Content::Aggregate) => return aggregate(&self.head).map(Form::Aggregate),
            Some(Content::PartitionProof) => return in_parts(&self.head).map(Form::Parts),
            Some(Content::Json) => {
                let is_proof = self.head.windows(6).any(|word| word == b"\"pi_a\"");
                return is_proof.then_some(Form::Snarkjs);
            }
            Some(_) => return None,
            None => {}
        }
        match self.length {
            ROLLUP_PROOF_BYTES if is_called => kind("grumpkin-ipa"),
            128 if is_called => kind("groth16-bn254"),
            192 if is_called => kind("groth16-bls12-381"),
            _ => None,
        }
    }

    fn no_proof(&self) -> String {
        match Content::of(&self.head) {
            Some(Content::Aggregate) => {
                "an aggregate of a kind, or over a curve, that this release does not know".into()
            }
            Some(Content::PartitionProof) => {
                "a proof of a circuit in parts over a curve that this release does not know".into()
            }
            Some(Content::Json) => "JSON, and no proof of snarkjs: there is no `pi_a` in it".into(),
            Some(content) => format!("{}, not a proof", content.named()),
            None if self.length == 0 => "the file is empty".into(),
            None => "nothing in it tells what kind of proof it is: name it with --kind".into(),
        }
    }
}

/// The kind of an aggregate that begins so.
fn aggregate(head: &[u8]) -> Option<String> {
    // The curve is in the head, whichever is asked.
    let (kind, curve) = Aggregate::<Bn254>::kind_and_curve(head)?;
    match kind {
        AggregateKind::Groth16 => {
            Some(with_curve!(curve, E => Groth16Aggregate::<E>::new().name().to_owned()))
        }
        AggregateKind::Mirage => None,
    }
}

/// The kind of a proof of a circuit in parts that begins so.
fn in_parts(head: &[u8]) -> Option<String> {
    let curve = curve_of(head.get(..BEGINNING_BYTES)?)?;
    Some(with_curve!(curve, E => Partition::<E>::new().name().to_owned()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn proofs_are_told_by_what_they_hold_and_by_length_only_under_their_name() {
        let form = |head: &[u8], length, is_called| {
            let head = head.to_vec();
            Looked { head, length }.form(is_called)
        };
        let kind = |name: &str| Some(Form::Kind(name.to_owned()));
        assert_eq!(form(b"{\"pi_a\": []}", 12, false), Some(Form::Snarkjs));
        assert_eq!(form(b"PMKZ\x01", 5, false), kind("kzg"));
        assert_eq!(form(b"PMIO\x01", 5, false), kind("grumpkin-ipa"));
        let mut head = b"PMILLAGG\x01\0\0\0\x01\0\0\0bls12-381".to_vec();
        head.resize(64, 0);
        let name = "groth16-aggregate-bls12-381".to_owned();
        assert_eq!(form(&head, 64, false), Some(Form::Aggregate(name)));
        // Of Mirage proofs.
        head[12] = 2;
        assert_eq!(form(&head, 64, true), None);
        let mut head = b"PMILLPPR\x01\0\0\0bls12-381".to_vec();
        head.resize(64, 0);
        let name = "partition-bls12-381".to_owned();
        assert_eq!(form(&head, 64, false), Some(Form::Parts(name)));
        // Of another curve.
        head[20] = b'7';
        assert_eq!(form(&head, 64, true), None);
        for (length, name) in [
            (15_360, "grumpkin-ipa"),
            (128, "groth16-bn254"),
            (192, "groth16-bls12-381"),
        ] {
            assert_eq!(form(&[1; 64], length, true), kind(name));
            assert_eq!(form(&[1; 64], length, false), None);
        }
        for none in [&b"{\"vk_alpha_1\": []}"[..], b"[\"7\"]", b"zkey", b""] {
            assert_eq!(form(none, none.len() as u64, true), None);
        }
    }
}
