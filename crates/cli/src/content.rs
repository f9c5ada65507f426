//! Recognizing the kind of a file by its first bytes, so that an error can name both the kind expected and the kind
//! given.

use std::io::{self, Read};
use std::path::Path;

use proofmill_aggregation::curve_of;
use proofmill_aggregation::files::BEGINNING_BYTES;
use proofmill_files::open_regular;
use proofmill_groth16::Curve;

use crate::failure::Failure;

/// Bytes read from the start of a file: enough to reach `vk_alpha_1` in a verifying key.
const HEAD_BYTES_MAX: u64 = 4096;

/// A kind of file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum FileKind {
    /// A snarkjs proving key (`.zkey`).
    Zkey,
    /// A circom witness (`.wtns`).
    Witness,
    /// Constraints compiled by circom (`.r1cs`).
    Circuit,
    /// Powers of tau (`.ptau`).
    PowersOfTau,
    /// A proving key in Proofmill's own format (`.key`).
    Key,
    /// A reference string for aggregation.
    ReferenceString,
    /// A key for aggregates of proofs.
    AggregateKey,
    /// An aggregate of proofs.
    Aggregate,
    /// A verifying key for circuits in parts.
    PartitionKey,
    /// A proof of a circuit in parts.
    PartitionProof,
    /// A snarkjs verifying key (JSON with `vk_alpha_1`).
    VerifyingKey,
    /// Any other JSON.
    Json,
}

/// The curve named in the header of a Proofmill file. Fails if the file is recognized as a kind other than `kind`.
pub(crate) fn curve_of_file(kind: FileKind, path: &Path) -> Result<Curve, Failure> {
    kind.expect(path)?;
    let shown = path.display();
    let mut head = Vec::new();
    open_regular(path)
        .and_then(|file| file.take(BEGINNING_BYTES as u64).read_to_end(&mut head))
        .map_err(|error| Failure::new(format!("{shown}: {error}")))?;
    let no_curve = || {
        Failure::new(format!(
            "{shown}: not {}, or cut short",
            kind.name_with_article()
        ))
    };
    curve_of(&head).ok_or_else(no_curve)
}

// === impl FileKind ===

impl FileKind {
    /// Recognizes a kind by the first bytes of a file; `None` if they match none.
    pub(crate) fn of(head: &[u8]) -> Option<Self> {
        let magics: [(&[u8], Self); 10] = [
            (b"zkey", Self::Zkey),
            (b"wtns", Self::Witness),
            (b"r1cs", Self::Circuit),
            (b"ptau", Self::PowersOfTau),
            (b"PMILLKEY", Self::Key),
            (b"PMILLAGS", Self::ReferenceString),
            (b"PMILLAGK", Self::AggregateKey),
            (b"PMILLAGG", Self::Aggregate),
            (b"PMILLPVK", Self::PartitionKey),
            (b"PMILLPPR", Self::PartitionProof),
        ];
        let named = magics.iter().find(|(magic, _)| head.starts_with(magic));
        if let Some((_, kind)) = named {
            return Some(*kind);
        }
        let text = head.trim_ascii_start();
        match text {
            [b'{', ..] if contains(text, b"\"vk_alpha_1\"") => Some(Self::VerifyingKey),
            [b'{', ..] => Some(Self::Json),
            // A workflow file may begin with a table: `[sequencer]`, `[[source]]`.
            [b'[', rest @ ..] => {
                let next = rest.trim_ascii_start().first()?;
                matches!(next, b'"' | b'{' | b']' | b'-' | b'0'..=b'9').then_some(Self::Json)
            }
            _ => None,
        }
    }

    /// The kind of the file at `path`.
    ///
    /// # Errors
    ///
    /// If it cannot be read, or is no regular file.
    pub(crate) fn of_file(path: &Path) -> io::Result<Option<Self>> {
        let mut head = Vec::new();
        open_regular(path)?
            .take(HEAD_BYTES_MAX)
            .read_to_end(&mut head)?;
        Ok(Self::of(&head))
    }

    /// Fails if the file at `path` is recognized as another kind. A file of no known kind passes: its reader reports
    /// the fault.
    pub(crate) fn expect(self, path: &Path) -> Result<(), Failure> {
        let shown = path.display();
        let found = Self::of_file(path)
            .map_err(|error| Failure::new(format!("{shown}: {error}")))?
            .filter(|found| *found != self);
        let Some(found) = found else {
            return Ok(());
        };
        let failure = Failure::new(format!(
            "{shown}: another kind of file: {}, not {}",
            found.name_with_article(),
            self.name_with_article()
        ));
        Err(match (self, found) {
            (Self::Witness, Self::Json) => failure.help(
                "compute the witness first: `snarkjs wtns calculate circuit.wasm input.json \
                 witness.wtns`; an engine does it with `proofmill engine prove --generator`",
            ),
            (Self::Zkey, Self::Circuit) => {
                failure.help("`proofmill setup` makes a key for a circuit")
            }
            (Self::AggregateKey, Self::VerifyingKey | Self::Key) => failure
                .help("`proofmill aggregate key` makes a key for aggregates from verifying keys"),
            (Self::Zkey, Self::Key) => failure.help(
                "keys of Proofmill's own are used by `proofmill engine serve`, with their \
                 constraints",
            ),
            _ => failure,
        })
    }

    /// Name for error messages, with its article and usual extension.
    pub(crate) fn name_with_article(self) -> &'static str {
        match self {
            Self::Zkey => "a proving key (.zkey)",
            Self::Witness => "a witness (.wtns)",
            Self::Circuit => "a circuit (.r1cs)",
            Self::PowersOfTau => "powers of tau (.ptau)",
            Self::Key => "a key of Proofmill's own (.key)",
            Self::ReferenceString => "a reference string for aggregation (.srs)",
            Self::AggregateKey => "a key for aggregates (.key)",
            Self::Aggregate => "an aggregate of proofs",
            Self::PartitionKey => "a verifying key for circuits in parts",
            Self::PartitionProof => "a proof of a circuit in parts",
            Self::VerifyingKey => "a verifying key (JSON)",
            Self::Json => "JSON",
        }
    }

    /// Whether files of this kind are JSON.
    pub(crate) fn is_json(self) -> bool {
        matches!(self, Self::VerifyingKey | Self::Json)
    }

    /// Whether a file of this kind is hard to make again (keys, their inputs, witnesses): output that the user did not
    /// explicitly allow to replace it never overwrites it.
    pub(crate) fn is_hard_to_recreate(self) -> bool {
        !matches!(self, Self::Json | Self::Aggregate | Self::PartitionProof)
    }
}

fn contains(text: &[u8], word: &[u8]) -> bool {
    text.windows(word.len()).any(|found| found == word)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn kinds_are_recognized_by_the_first_bytes() {
        let cases: [(&[u8], Option<FileKind>); 16] = [
            (b"zkey\x01\0\0\0", Some(FileKind::Zkey)),
            (b"wtns\x02", Some(FileKind::Witness)),
            (b"PMILLKEY\x01", Some(FileKind::Key)),
            (b"PMILLAGS\x01", Some(FileKind::ReferenceString)),
            (b"PMILLAGG\x01", Some(FileKind::Aggregate)),
            (b"PMILLPVK\x01", Some(FileKind::PartitionKey)),
            (b"PMILLPPR\x01", Some(FileKind::PartitionProof)),
            (b" {\"pi_a\": []}", Some(FileKind::Json)),
            (
                b"{\"protocol\":\"groth16\",\"vk_alpha_1\":[",
                Some(FileKind::VerifyingKey),
            ),
            (b"[\"7\"]", Some(FileKind::Json)),
            (b"[ 7 ]", Some(FileKind::Json)),
            (b"[[source]]\n", None),
            (b"[sequencer]", None),
            (b"name = \"a\"", None),
            (b"zke", None),
            (b"", None),
        ];
        for (head, expected) in cases {
            assert_eq!(FileKind::of(head), expected, "{}", head.escape_ascii());
        }
    }
}
