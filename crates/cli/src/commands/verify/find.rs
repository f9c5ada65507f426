//! Finding proofs in files and folders, by the content and the names of the files.

use std::collections::HashSet;
use std::io::{self, ErrorKind, Read};
use std::path::{Path, PathBuf};

use proofmill_aggregation::files::BEGINNING_BYTES;
use proofmill_aggregation::{Aggregate, AggregateKind, curve_of};
use proofmill_files::open_regular;
use proofmill_groth16::{Bn254, with_curve};
use proofmill_partition::with_partition_curve;
use proofmill_verifier::Kind;
use proofmill_verifier::kinds::{Groth16Aggregate, Partition};

use super::statement::{
    AGGREGATE_KEYS, PARTITION_KEYS, VERIFYING_KEYS, nearest_key, statement_of, statement_of_parts,
};
use crate::args::verify::Verify;
use crate::content::FileKind;

/// Bytes read from the start of a file to recognize its kind.
const HEAD_BYTES_MAX: u64 = 4096;

/// Length of a rollup proof of `bb`, whose format has no other mark.
const ROLLUP_PROOF_BYTES: u64 = 15_360;

/// A proof, or a path that could not be read as one.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Found {
    /// A proof with its statement and key.
    Proof(Candidate),
    /// A path without a verdict, and the reason.
    Unread { path: PathBuf, why: String },
}

/// A file recognized as a proof.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Candidate {
    pub(crate) path: PathBuf,
    pub(crate) kind: RecognizedKind,
    /// The file of its statement, if there is one.
    pub(crate) statement: Option<PathBuf>,
    /// The file of its verifying key, if there is one.
    pub(crate) key: Option<PathBuf>,
}

/// The kind of a proof, as recognized by the start of its file.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum RecognizedKind {
    /// Groth16 in snarkjs's JSON; the curve is in the file.
    Snarkjs,
    /// The verifier's kind of this name.
    Kind(String),
    /// An aggregate of this kind; its statement is never JSON.
    Aggregate(String),
    /// A proof of a circuit in parts, of this kind; its statement is JSON if the file's name ends in `.json`, else
    /// bytes.
    Parts(String),
}

/// The paths to search, and what the command line says about the proofs there.
#[derive(Clone, Copy, Debug)]
pub(crate) struct SearchOptions<'a> {
    /// Files and folders.
    pub(crate) paths: &'a [PathBuf],
    /// The kind of proofs whose files do not show it.
    pub(crate) kind: Option<&'a str>,
    /// The verifying key of all proofs; overrides keys found beside them.
    pub(crate) key: Option<&'a Path>,
    /// The statement of all proofs; overrides statements found beside them.
    pub(crate) inputs: Option<&'a Path>,
}

/// Result of a search: the proofs, and a count of other files.
#[derive(Debug, Default)]
pub(crate) struct Findings {
    pub(crate) found: Vec<Found>,
    /// Number of files that are not proofs, including statements and keys.
    pub(crate) others: usize,
}

/// A search for proofs.
struct Search<'a> {
    options: &'a SearchOptions<'a>,
    findings: Findings,
}

/// The reason why a file is examined.
#[derive(Clone, Copy)]
enum Reason<'a> {
    /// The command line names it.
    Named,
    /// It is below this folder, which the command line names.
    Within(&'a Path),
}

/// Finds all proofs at the given paths, in the paths' order; those of a folder are sorted by name.
pub(crate) fn find(options: &SearchOptions<'_>) -> Findings {
    let mut search = Search {
        options,
        findings: Findings::default(),
    };
    for path in options.paths {
        match std::fs::metadata(path) {
            Ok(found) if found.is_dir() => search.folder(path, path),
            _ => search.file(path, Reason::Named),
        }
    }
    search.drop_statements_and_keys();
    search.findings
}

// === impl RecognizedKind ===

impl RecognizedKind {
    /// File names of keys for proofs of this kind, the usual one first.
    pub(super) const fn key_names(&self) -> &'static [&'static str] {
        match self {
            Self::Aggregate(_) => &AGGREGATE_KEYS,
            Self::Parts(_) => &PARTITION_KEYS,
            Self::Snarkjs | Self::Kind(_) => &VERIFYING_KEYS,
        }
    }
}

// === impl SearchOptions ===

impl<'a> SearchOptions<'a> {
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
    /// Searches a folder and those below it. Hidden files are left out, and links to folders are not followed.
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
        let head = match read_head(path) {
            Ok(head) => head,
            // A pipe or a device in a folder is not a proof.
            Err(error)
                if error.kind() == ErrorKind::InvalidInput
                    && matches!(reason, Reason::Within(_)) =>
            {
                self.findings.others += 1;
                return;
            }
            Err(error) => return self.unread(path, error.to_string()),
        };
        let is_named_as_proof = matches!(reason, Reason::Named) || has_proof_name(path);
        match self.recognize(&head, is_named_as_proof) {
            Some(kind) => {
                let root = match reason {
                    Reason::Named => path.parent(),
                    Reason::Within(root) => Some(root),
                };
                let keys = kind.key_names();
                let statement_of = match &kind {
                    RecognizedKind::Parts(_) => statement_of_parts,
                    _ => statement_of,
                };
                let (statement, key) = (self.options.inputs, self.options.key);
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
            None => self.unread(path, head.reason_for_no_proof()),
        }
    }

    fn recognize(&self, head: &FileHead, is_named_as_proof: bool) -> Option<RecognizedKind> {
        let recognized = head.recognize(is_named_as_proof);
        match self.options.kind {
            Some(kind) if matches!(recognized, Some(RecognizedKind::Aggregate(_))) => {
                Some(RecognizedKind::Aggregate(kind.to_owned()))
            }
            Some(kind) if matches!(recognized, Some(RecognizedKind::Parts(_))) => {
                Some(RecognizedKind::Parts(kind.to_owned()))
            }
            Some(kind) if is_named_as_proof || recognized.is_some() => {
                Some(RecognizedKind::Kind(kind.to_owned()))
            }
            _ => recognized,
        }
    }

    /// Drops the errors on files that are not proofs where such a file is the statement or the key of a proof named
    /// beside it.
    fn drop_statements_and_keys(&mut self) {
        let found = &mut self.findings.found;
        let companions: HashSet<PathBuf> = found
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
                .is_ok_and(|path| companions.contains(&path)),
        });
        self.findings.others += before - found.len();
    }

    fn unread(&mut self, path: &Path, why: String) {
        let path = path.to_owned();
        self.findings.found.push(Found::Unread { path, why });
    }
}

/// The start of a file, up to [`HEAD_BYTES_MAX`] bytes, and the file's length.
struct FileHead {
    head: Vec<u8>,
    length: u64,
}

fn read_head(path: &Path) -> io::Result<FileHead> {
    let file = open_regular(path)?;
    let length = file.metadata()?.len();
    let mut head = Vec::new();
    file.take(HEAD_BYTES_MAX).read_to_end(&mut head)?;
    Ok(FileHead { head, length })
}

/// Whether a file is named as a proof: `proof` or `NAME.proof`.
fn has_proof_name(path: &Path) -> bool {
    path.file_name().is_some_and(|name| name == "proof")
        || path
            .extension()
            .is_some_and(|extension| extension == "proof")
}

// === impl FileHead ===

impl FileHead {
    /// The kind of the proof; `None` if the file is not one. The length alone decides only if `is_named_as_proof`: the
    /// file's name marks it as a proof, or the command line names it.
    fn recognize(&self, is_named_as_proof: bool) -> Option<RecognizedKind> {
        let kind = |name: &str| Some(RecognizedKind::Kind(name.to_owned()));
        if self.head.starts_with(b"PMKZ") {
            return kind("kzg");
        }
        if self.head.starts_with(b"PMIO") {
            return kind("grumpkin-ipa");
        }
        match FileKind::of(&self.head) {
            Some(FileKind::Aggregate) => {
                return aggregate(&self.head).map(RecognizedKind::Aggregate);
            }
            Some(FileKind::PartitionProof) => {
                return in_parts(&self.head).map(RecognizedKind::Parts);
            }
            Some(FileKind::Json) => {
                let is_proof = self.head.windows(6).any(|word| word == b"\"pi_a\"");
                return is_proof.then_some(RecognizedKind::Snarkjs);
            }
            Some(_) => return None,
            None => {}
        }
        match self.length {
            ROLLUP_PROOF_BYTES if is_named_as_proof => kind("grumpkin-ipa"),
            128 if is_named_as_proof => kind("groth16-bn254"),
            192 if is_named_as_proof => kind("groth16-bls12-381"),
            _ => None,
        }
    }

    fn reason_for_no_proof(&self) -> String {
        match FileKind::of(&self.head) {
            Some(FileKind::Aggregate) => {
                "an aggregate of a kind, or over a curve, that this release does not know".into()
            }
            Some(FileKind::PartitionProof) => {
                "a proof of a circuit in parts over a curve that this release does not know".into()
            }
            Some(FileKind::Json) => "JSON, but not a proof of snarkjs: it has no `pi_a`".into(),
            Some(content) => format!("{}, not a proof", content.name_with_article()),
            None if self.length == 0 => "the file is empty".into(),
            None => {
                "the file does not show the kind of its proof: name the kind with --kind".into()
            }
        }
    }
}

/// The kind of an aggregate, by the start of its file.
fn aggregate(head: &[u8]) -> Option<String> {
    // The header names the curve; the type parameter does not matter here.
    let (kind, curve) = Aggregate::<Bn254>::kind_and_curve(head)?;
    match kind {
        AggregateKind::Groth16 => {
            Some(with_curve!(curve, E => Groth16Aggregate::<E>::new().name().to_owned()))
        }
        AggregateKind::Mirage => None,
    }
}

/// The kind of a proof of a circuit in parts, by the start of its file.
fn in_parts(head: &[u8]) -> Option<String> {
    let curve = curve_of(head.get(..BEGINNING_BYTES)?)?;
    with_partition_curve!(curve, E => Partition::<E>::new().name().to_owned()).ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn proofs_are_recognized_by_content_and_by_length_only_with_a_proofs_name() {
        let form = |head: &[u8], length, is_named_as_proof| {
            let head = head.to_vec();
            FileHead { head, length }.recognize(is_named_as_proof)
        };
        let kind = |name: &str| Some(RecognizedKind::Kind(name.to_owned()));
        assert_eq!(
            form(b"{\"pi_a\": []}", 12, false),
            Some(RecognizedKind::Snarkjs)
        );
        assert_eq!(form(b"PMKZ\x01", 5, false), kind("kzg"));
        assert_eq!(form(b"PMIO\x01", 5, false), kind("grumpkin-ipa"));
        let mut head = b"PMILLAGG\x01\0\0\0\x01\0\0\0bls12-381".to_vec();
        head.resize(64, 0);
        let name = "groth16-aggregate-bls12-381".to_owned();
        assert_eq!(
            form(&head, 64, false),
            Some(RecognizedKind::Aggregate(name))
        );
        // An aggregate of Mirage proofs.
        head[12] = 2;
        assert_eq!(form(&head, 64, true), None);
        let mut head = b"PMILLPPR\x01\0\0\0bls12-381".to_vec();
        head.resize(64, 0);
        let name = "partition-bls12-381".to_owned();
        assert_eq!(form(&head, 64, false), Some(RecognizedKind::Parts(name)));
        // A proof over an unknown curve.
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
