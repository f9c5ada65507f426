//! `proofmill verify`

use std::path::PathBuf;

use clap::Args;

use super::circuits::{KeySafety, Threads};

const EXAMPLES: &str = "\
Examples:
  proofmill verify proofs/                         every proof in a folder and those below
  proofmill verify a/proof.json b/proof.json       each with the public.json beside it
  proofmill verify proof.json --inputs public.json --key verification_key.json
  proofmill verify blobs/ --json | jq -c 'select(.valid == false)'
  proofmill verify --vk verification_key.json a.json a.public.json b.json b.public.json

Recognised proofs: JSON of snarkjs; aggregates (`proofmill aggregate prove`); proofs of circuits in
parts (`proofmill partition prove`); blobs, cells (KZG) and openings in Proofmill's own encodings;
and, by their size, rollup proofs of bb (15,360 bytes) and compact Groth16 proofs (128 bytes over
BN254, 192 over BLS12-381) in files called `proof` or NAME.proof.

Statements: public.json for proof.json, a.public for a.proof, a.public.json for a.json; for a
circuit in parts a.public.json or a.json, too.

Keys: the nearest verification_key.json or vk.json; for an aggregate aggregate.key, for a circuit in
parts verifying.key. The nearest is beside the proof, or in a folder above it, up to the folder that
is named on the command line, or to the current one.

Exit codes: 0 every proof is valid; 1 a proof is not valid, or the key of --vk is insecure; 2 the
command line is wrong; 3 some proofs have no verdict: a file is missing or cannot be read, or a key
is unusable; 130 stopped by a signal before every proof had a verdict.";

/// `proofmill verify`
#[derive(Clone, Debug, Args)]
#[command(
    after_help = EXAMPLES,
    override_usage = "proofmill verify [OPTIONS] <PATH>...\n       \
                      proofmill verify [OPTIONS] --vk <VK> <PROOF> <PUBLIC>..."
)]
pub(crate) struct Verify {
    /// Proofs, and folders of them, which are walked in sorted order. With --vk: pairs of a Groth16
    /// proof and its public signals.
    #[arg(required = true, value_name = "PATH")]
    pub(crate) paths: Vec<PathBuf>,
    /// The kind of proofs whose files do not show it, such as groth16-bls12-381 or kzg.
    #[arg(long, value_name = "KIND")]
    pub(crate) kind: Option<String>,
    /// The verifying key of every proof that needs one [default: the nearest verification_key.json].
    #[arg(long, value_name = "FILE")]
    pub(crate) key: Option<PathBuf>,
    /// The statement of the only proof: its public inputs [default: the public.json that belongs to it].
    #[arg(long, value_name = "FILE")]
    pub(crate) inputs: Option<PathBuf>,
    /// Verify pairs under this key, as `snarkjs zkey export verificationkey` or `proofmill zkey
    /// export-vk` write it.
    #[arg(long, value_name = "VK", conflicts_with_all = ["kind", "key", "inputs"])]
    pub(crate) vk: Option<PathBuf>,
    #[command(flatten)]
    pub(crate) key_safety: KeySafety,
    #[command(flatten)]
    pub(crate) threads: Threads,
    /// Print one JSON object for each proof, and a summary on the last line; with --vk one object for
    /// everything.
    #[arg(long)]
    pub(crate) json: bool,
}
