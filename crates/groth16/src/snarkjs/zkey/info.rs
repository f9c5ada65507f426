//! Summary of a key file, for display.

use proofmill_r1cs::iden3::FormatError;

use super::{ContributionHash, ZkeyFile, ZkeyHeader};
use crate::{PointCheck, Weakness, with_curve};

/// Summary of a key file.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ZkeyInfo {
    /// Curve, domain, variables and public inputs.
    pub header: ZkeyHeader,
    /// The number of entries of A and B.
    pub coefficients: u32,
    /// The file's sections, in their order.
    pub sections: Vec<SectionInfo>,
    /// The circuit hash as snarkjs prints it; `None` if the file has no record of contributions.
    pub circuit_hash: Option<ContributionHash>,
    /// The contributions to the key, in order.
    pub contributions: Vec<ContributionInfo>,
    /// The reasons why proofs under the key prove nothing; none for the key of an honest setup.
    pub weaknesses: Vec<Weakness>,
}

/// A section.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SectionInfo {
    /// The section's kind.
    pub kind: u32,
    /// The section's name in messages; `None` for a kind that Groth16 keys do not have.
    pub name: Option<&'static str>,
    /// Offset of the section's content in the file, in bytes.
    pub offset: u64,
    /// Size of the section's content, in bytes.
    pub bytes: u64,
}

/// A contribution.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ContributionInfo {
    /// The contributor's name, if there is one. It is untrusted, so control characters are replaced.
    pub name: Option<String>,
    /// The contribution hash as snarkjs prints it.
    pub hash: ContributionHash,
    /// Whether a random beacon made it.
    pub beacon: bool,
}

impl ZkeyFile<'_> {
    /// Summary of the file: its headers, sections, contributions and verifying key, whose points
    /// are checked; no other points are read.
    ///
    /// # Errors
    ///
    /// [`FormatError`] if the contributions or the verifying key are malformed.
    pub fn info(&self) -> Result<ZkeyInfo, FormatError> {
        let (weaknesses, circuit_hash, contributions) = with_curve!(self.curve(), E => {
            let weaknesses = self.verifying_key::<E>(PointCheck::Full)?.weaknesses();
            match self.read_contributions::<E>(PointCheck::Full)? {
                None => (weaknesses, None, Vec::new()),
                Some(contributions) => (
                    weaknesses,
                    Some(ContributionHash(contributions.circuit_hash)),
                    contributions
                        .list
                        .iter()
                        .map(|contribution| ContributionInfo {
                            name: contribution.name.as_deref().map(printable),
                            hash: contribution.hash(),
                            beacon: contribution.kind == 1,
                        })
                        .collect(),
                ),
            }
        });
        let container = self.container();
        Ok(ZkeyInfo {
            header: *self.header(),
            coefficients: self.coefficients(),
            sections: container
                .sections()
                .map(|(kind, content)| SectionInfo {
                    kind,
                    name: container.format().section_name(kind),
                    offset: content.start as u64,
                    bytes: content.len() as u64,
                })
                .collect(),
            circuit_hash,
            contributions,
            weaknesses,
        })
    }
}

fn printable(name: &[u8]) -> String {
    String::from_utf8_lossy(name)
        .chars()
        .map(|c| {
            if c.is_control() {
                char::REPLACEMENT_CHARACTER
            } else {
                c
            }
        })
        .collect()
}
