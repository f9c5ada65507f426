//! What a file holds, by how it begins: to say what was expected where another kind of file was given.

use std::io::{self, Read};
use std::path::Path;

use proofmill_aggregation::curve_of;
use proofmill_aggregation::files::BEGINNING_BYTES;
use proofmill_groth16::Curve;
use proofmill_r1cs::iden3::open_regular;

use crate::failure::Failure;

/// Bytes of a file that are looked at: a verifying key names one of its points before.
const HEAD: u64 = 4096;

/// What a file holds.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Content {
    /// A proving key of snarkjs.
    Zkey,
    /// A witness of circom.
    Witness,
    /// Constraints that circom compiled.
    Circuit,
    /// Powers of tau.
    PowersOfTau,
    /// A key of ours.
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
    /// A verifying key of snarkjs.
    VerifyingKey,
    /// Other JSON.
    Json,
}

/// The curve that a file of ours names, which must be of this kind.
pub(crate) fn curve_of_file(content: Content, path: &Path) -> Result<Curve, Failure> {
    content.expect(path)?;
    let shown = path.display();
    let mut head = Vec::new();
    open_regular(path)
        .and_then(|file| file.take(BEGINNING_BYTES as u64).read_to_end(&mut head))
        .map_err(|error| Failure::new(format!("{shown}: {error}")))?;
    let no_curve = || Failure::new(format!("{shown}: not {}, or cut short", content.named()));
    curve_of(&head).ok_or_else(no_curve)
}

// === impl Content ===

impl Content {
    /// By the first bytes; nothing if they say nothing.
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
        if let Some((_, content)) = named {
            return Some(*content);
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

    /// Of the file at `path`.
    ///
    /// # Errors
    ///
    /// If it cannot be read, or is no regular file.
    pub(crate) fn of_file(path: &Path) -> io::Result<Option<Self>> {
        let mut head = Vec::new();
        open_regular(path)?.take(HEAD).read_to_end(&mut head)?;
        Ok(Self::of(&head))
    }

    /// That the file at `path` does not hold something else; whether it holds this is for its reader to
    /// say.
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
            found.named(),
            self.named()
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

    /// For an error: with its article and its usual extension.
    pub(crate) fn named(self) -> &'static str {
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

    /// Whether it is JSON.
    pub(crate) fn is_json(self) -> bool {
        matches!(self, Self::VerifyingKey | Self::Json)
    }

    /// Whether it is hard to come by again, so that no proof or picture takes its place: keys, what they
    /// are made from, and witnesses.
    pub(crate) fn is_precious(self) -> bool {
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
    fn contents_are_told_by_their_first_bytes() {
        let cases: [(&[u8], Option<Content>); 16] = [
            (b"zkey\x01\0\0\0", Some(Content::Zkey)),
            (b"wtns\x02", Some(Content::Witness)),
            (b"PMILLKEY\x01", Some(Content::Key)),
            (b"PMILLAGS\x01", Some(Content::ReferenceString)),
            (b"PMILLAGG\x01", Some(Content::Aggregate)),
            (b"PMILLPVK\x01", Some(Content::PartitionKey)),
            (b"PMILLPPR\x01", Some(Content::PartitionProof)),
            (b" {\"pi_a\": []}", Some(Content::Json)),
            (
                b"{\"protocol\":\"groth16\",\"vk_alpha_1\":[",
                Some(Content::VerifyingKey),
            ),
            (b"[\"7\"]", Some(Content::Json)),
            (b"[ 7 ]", Some(Content::Json)),
            (b"[[source]]\n", None),
            (b"[sequencer]", None),
            (b"name = \"a\"", None),
            (b"zke", None),
            (b"", None),
        ];
        for (head, expected) in cases {
            assert_eq!(Content::of(head), expected, "{}", head.escape_ascii());
        }
    }
}
