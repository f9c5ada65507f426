//! The commands for aggregates of Groth16 proofs.

use std::num::NonZeroU32;
use std::path::PathBuf;

use clap::{Args, Subcommand, ValueEnum};
use proofmill_aggregation::MAX_CAPACITY;
use proofmill_groth16::Curve;

use super::circuits::Threads;

const EXAMPLES: &str = "\
Examples, for eight proofs under one verifying key:
  proofmill aggregate setup --curve bn254 --capacity 8 -o string.srs
  proofmill aggregate key --srs string.srs --key verification_key.json:8 -o aggregate.key
  proofmill aggregate prove --srs string.srs --key aggregate.key proofs/ \\
                            -o all.proof --public all.public
  proofmill aggregate verify --key aggregate.key --public all.public all.proof

A reference string serves any number of proofs up to its capacity, of any circuits over its curve.
It comes from a trusted setup: let others contribute to it before anything depends on it.";

const SETUP_EXAMPLES: &str = "\
Examples:
  proofmill aggregate setup --curve bn254 --capacity 1000 -o string_0000.srs
  proofmill aggregate contribute string_0000.srs -o string.srs

The file takes 512 bytes for each proof of the capacity over bn254, and 768 over bls12-381.";

const CONTRIBUTE_EXAMPLES: &str = "\
Examples:
  proofmill aggregate contribute string_0000.srs -o string_0001.srs     by one party
  proofmill aggregate contribute string_0001.srs -o string_0002.srs     by another
  proofmill aggregate check string_0002.srs                             by everybody

Publish the digest that is printed: `check` lists the digests of all contributions. A string is
secure if at least one contributor discarded the secrets.";

const CHECK_EXAMPLES: &str = "\
Examples:
  proofmill aggregate check string.srs
  proofmill aggregate check string.srs --json | jq -r .digest";

const KEY_EXAMPLES: &str = "\
Examples:
  proofmill aggregate key --srs string.srs --key verification_key.json:8 -o aggregate.key
  proofmill aggregate key --srs string.srs --key a/vk.json:3 --key b/vk.json:5 -o aggregate.key

The second key is for eight proofs: the first three under a/vk.json, the others under b/vk.json.

The same string and verifying keys make the same file, byte for byte: to check a key from elsewhere,
make it again, or compare its digest.";

const PROVE_EXAMPLES: &str = "\
Examples:
  proofmill aggregate prove --srs string.srs --key aggregate.key proofs/ -o all.proof
  proofmill aggregate prove --srs string.srs --key aggregate.key a/proof.json b/proof.json \\
                            -o all.proof --public all.public

Proofs are found as `proofmill verify PATH...` finds them: JSON of snarkjs, or compact proofs called
`proof` or NAME.proof. The public inputs of proof.json are public.json, of a.proof a.public, of
a.json a.public.json. Folders are walked in sorted order. The first proofs are those under the key's
first verifying key, and so on.

Exit codes: 0 a valid aggregate is written; 1 a proof is not valid (the output names it), or
something failed; 2 the command line is wrong.";

const VERIFY_EXAMPLES: &str = "\
Examples:
  proofmill aggregate verify --key aggregate.key --inputs a/public.json b/public.json -- all.proof
  proofmill aggregate verify --key aggregate.key --public all.public all.proof
  proofmill verify all.proof           the same, with aggregate.key and all.public beside it
  proofmill aggregate verify --key aggregate.key --public range.public --range range.json \\
                             range.proof

Exit codes: 0 the aggregate is valid; 1 it is not; 2 the command line is wrong; 3 there is no
verdict: a file cannot be read, or the key is unusable.";

/// `proofmill aggregate`
#[derive(Debug, Subcommand)]
#[command(after_help = EXAMPLES)]
pub(crate) enum Aggregate {
    /// Make a reference string. Without contributions by others it is for development only.
    Setup(AggregateSetup),
    /// Add a contribution to a reference string, with secrets that are drawn and discarded.
    Contribute(Contribute),
    /// Check a reference string from any origin: its powers, and the chain of its contributions.
    Check(CheckString),
    /// Make the key for making and verifying aggregates.
    Key(AggregateKey),
    /// Verify Groth16 proofs, and make one proof of all of them.
    Prove(AggregateProve),
    /// Verify an aggregate.
    Verify(AggregateVerify),
}

/// A pairing-friendly curve.
#[derive(Clone, Copy, Debug, ValueEnum)]
pub(crate) enum CurveName {
    /// BN254, which circom and snarkjs call `bn128`.
    Bn254,
    /// BLS12-381.
    #[value(name = "bls12-381")]
    Bls12_381,
}

/// `proofmill aggregate setup`
#[derive(Debug, Args)]
#[command(after_help = SETUP_EXAMPLES)]
pub(crate) struct AggregateSetup {
    /// The curve of the proofs.
    #[arg(long, value_enum)]
    pub(crate) curve: CurveName,
    /// Most proofs in an aggregate, rounded up to a power of two.
    #[arg(long, value_name = "N",
          value_parser = clap::value_parser!(u32).range(1..=MAX_CAPACITY as i64))]
    pub(crate) capacity: u32,
    #[command(flatten)]
    pub(crate) output: OutputArg,
    #[command(flatten)]
    pub(crate) threads: Threads,
    /// Print a summary as one JSON object on the last line of standard output.
    #[arg(long)]
    pub(crate) json: bool,
}

/// `proofmill aggregate contribute`
#[derive(Debug, Args)]
#[command(after_help = CONTRIBUTE_EXAMPLES)]
pub(crate) struct Contribute {
    /// The reference string, which is left unchanged.
    pub(crate) srs: PathBuf,
    #[command(flatten)]
    pub(crate) output: OutputArg,
    #[command(flatten)]
    pub(crate) threads: Threads,
    /// Print a summary as one JSON object on the last line of standard output.
    #[arg(long)]
    pub(crate) json: bool,
}

/// `proofmill aggregate check`
#[derive(Debug, Args)]
#[command(after_help = CHECK_EXAMPLES)]
pub(crate) struct CheckString {
    /// The reference string.
    pub(crate) srs: PathBuf,
    #[command(flatten)]
    pub(crate) threads: Threads,
    /// Print JSON.
    #[arg(long)]
    pub(crate) json: bool,
}

/// `proofmill aggregate key`
#[derive(Debug, Args)]
#[command(after_help = KEY_EXAMPLES)]
pub(crate) struct AggregateKey {
    /// The reference string.
    #[arg(long, value_name = "SRS")]
    pub(crate) srs: PathBuf,
    /// A verifying key, as `proofmill zkey export-vk` or snarkjs write it, and the number of proofs
    /// under it. Repeated for several keys: the proofs are in this order.
    #[arg(long, value_name = "VK:COUNT", required = true, value_parser = key_and_count)]
    pub(crate) key: Vec<KeyAndCount>,
    #[command(flatten)]
    pub(crate) output: OutputArg,
    #[command(flatten)]
    pub(crate) threads: Threads,
    /// Print a summary as one JSON object on the last line of standard output.
    #[arg(long)]
    pub(crate) json: bool,
}

/// The output file; an existing file is not overwritten without `--force`.
#[derive(Debug, Args)]
pub(crate) struct OutputArg {
    /// The file to write.
    #[arg(short, long, value_name = "FILE", alias = "out")]
    pub(crate) output: PathBuf,
    /// Overwrite an existing file.
    #[arg(long)]
    pub(crate) force: bool,
}

/// `proofmill aggregate prove`
#[derive(Debug, Args)]
#[command(after_help = PROVE_EXAMPLES)]
pub(crate) struct AggregateProve {
    /// Proofs, and folders of them.
    #[arg(required = true, value_name = "PATH")]
    pub(crate) paths: Vec<PathBuf>,
    /// The reference string that the key was made with.
    #[arg(long, value_name = "SRS")]
    pub(crate) srs: PathBuf,
    /// The key, as `proofmill aggregate key` makes it.
    #[arg(long, value_name = "KEY")]
    pub(crate) key: PathBuf,
    /// Where the aggregate is written.
    #[arg(short, long, value_name = "AGGREGATE", alias = "out")]
    pub(crate) output: PathBuf,
    /// Where the public inputs of all proofs are written, in their order, each in 32 little-endian
    /// bytes: what `verify --public` takes.
    #[arg(long, value_name = "PUBLIC")]
    pub(crate) public: Option<PathBuf>,
    #[command(flatten)]
    pub(crate) threads: Threads,
    /// Print a summary as one JSON object on the last line of standard output.
    #[arg(long)]
    pub(crate) json: bool,
}

/// `proofmill aggregate verify`
#[derive(Debug, Args)]
#[command(
    after_help = VERIFY_EXAMPLES,
    override_usage = "proofmill aggregate verify [OPTIONS] --key <KEY> --inputs <FILE>... -- <AGGREGATE>\n       \
                      proofmill aggregate verify [OPTIONS] --key <KEY> --public <PUBLIC> <AGGREGATE>"
)]
pub(crate) struct AggregateVerify {
    /// The aggregate.
    pub(crate) aggregate: PathBuf,
    /// The key, as `proofmill aggregate key` makes it.
    #[arg(long, value_name = "KEY")]
    pub(crate) key: PathBuf,
    /// The public inputs of each proof, in the order of the proofs: public.json files of snarkjs.
    #[arg(long, value_name = "FILE", num_args = 1.., required_unless_present = "public",
          conflicts_with = "public")]
    pub(crate) inputs: Vec<PathBuf>,
    /// The public inputs of all proofs, as `proofmill aggregate prove --public` writes them.
    #[arg(long, value_name = "PUBLIC")]
    pub(crate) public: Option<PathBuf>,
    /// A range of Bitcoin headers that the proofs must be of together: range.json, as `proofmill
    /// demo --aggregate` writes it. Each chunk must begin where the chunk before it ends.
    #[arg(long, value_name = "RANGE")]
    pub(crate) range: Option<PathBuf>,
    #[command(flatten)]
    pub(crate) threads: Threads,
    /// Print JSON.
    #[arg(long)]
    pub(crate) json: bool,
}

/// A verifying key's file, and the number of proofs under it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct KeyAndCount {
    pub(crate) path: PathBuf,
    pub(crate) count: NonZeroU32,
}

/// Parses `VK:COUNT`.
fn key_and_count(text: &str) -> Result<KeyAndCount, String> {
    let split = text.rsplit_once(':').filter(|(path, _)| !path.is_empty());
    let (path, count) = split.ok_or(
        "expected a verifying key and the number of proofs under it, such as \
         verification_key.json:8",
    )?;
    let count: NonZeroU32 = count
        .parse()
        .map_err(|_| format!("{count:?} is not a number of proofs"))?;
    if count.get() as usize > MAX_CAPACITY {
        return Err(format!(
            "{count} proofs: an aggregate has {MAX_CAPACITY} at most"
        ));
    }
    let path = path.into();
    Ok(KeyAndCount { path, count })
}

// === impl CurveName ===

impl From<CurveName> for Curve {
    fn from(name: CurveName) -> Self {
        match name {
            CurveName::Bn254 => Self::Bn254,
            CurveName::Bls12_381 => Self::Bls12_381,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn counts_follow_the_last_colon() {
        let parsed = |text: &str| {
            let parsed = key_and_count(text).ok();
            parsed.map(|it| (it.path.display().to_string(), it.count.get()))
        };
        assert_eq!(parsed("vk.json:8"), Some(("vk.json".into(), 8)));
        assert_eq!(parsed("a:b.json:1"), Some(("a:b.json".into(), 1)));
        for wrong in [
            "vk.json",
            ":8",
            "vk.json:",
            "vk.json:0",
            "vk.json:-1",
            "vk.json:1048577",
        ] {
            assert_eq!(parsed(wrong), None, "{wrong}");
        }
    }
}
