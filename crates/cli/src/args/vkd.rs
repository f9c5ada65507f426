//! The commands for verifiable key directories.

use std::net::SocketAddr;
use std::path::PathBuf;

use clap::{Args, Subcommand};
use proofmill_api::{ConnectionLimits, TcpOptions, TlsFiles};
use proofmill_directory::chain::Checkpoint;
use proofmill_directory::circuit::LEVELS_PER_PART;
use proofmill_directory::{DEPTH, Digest};

use super::circuits::Threads;
use super::engine::size;
use super::partition::SetupArgs;

const EXAMPLES: &str = "\
Examples:
  proofmill vkd init directory
  echo '{\"key\": \"alice\", \"value\": \"the key of her phone\"}' | proofmill vkd update directory
  proofmill vkd lookup directory alice -o alice.proof
  proofmill vkd verify key --root ROOT --key alice alice.proof

Epochs are proved with keys that are made once; the keys' maker could forge proofs:
  proofmill vkd setup --updates 16 -o keys
  proofmill vkd prove directory --keys keys
  proofmill vkd verify chain --key keys/verifying.key directory

docs/key-directory.md says what is proved, and who must be trusted for what.";

const UPDATE_EXAMPLES: &str = "\
Examples:
  proofmill vkd update directory updates.jsonl
  echo '{\"key\": \"alice\", \"value\": \"1\"}' | proofmill vkd update directory
  echo '{\"key_hex\": \"00ff\", \"value_hex\": \"\"}' | proofmill vkd update directory -

Updates are made in their order, all or none.";

const SETUP_EXAMPLES: &str = "\
Examples:
  proofmill vkd setup --updates 16 -o keys
  proofmill partition info keys

One update is 4.7 million constraints in 16 parts. There are three keys, whatever the number of
updates; time and memory of a proof's aggregation grow with it.";

const PROVE_EXAMPLES: &str = "\
Examples:
  proofmill vkd prove directory --keys keys                 every epoch that has no record
  proofmill vkd prove directory --keys keys --epoch 7 --memory 4GiB

Finished work is kept in the directory, under `proving`, until the epoch's record is there: after
Ctrl-C, a signal or a power cut, run the same command again to continue. Many machines prove an
epoch with `vkd witness`, `partition prove --workflow` and `vkd publish`.";

const LOOKUP_EXAMPLES: &str = "\
Examples:
  proofmill vkd lookup directory alice -o alice.proof
  proofmill vkd lookup directory alice -o alice.proof.json --json
  proofmill vkd lookup directory 00ff --key-hex -o key.proof

An absent key has a proof too. A proof whose name ends in .json is written as JSON.";

const VERIFY_EXAMPLES: &str = "\
Examples:
  proofmill vkd verify key --root ROOT --key alice alice.proof
  proofmill vkd verify chain --key keys/verifying.key directory
  proofmill vkd verify chain --key verifying.key --from 12:ROOT epoch-13.json epoch-14.json

Exit codes: 0 valid; 1 not valid; 2 the command line is wrong; 3 there is no verdict: a file cannot
be read, or the key is unusable.";

const SERVE_EXAMPLES: &str = "\
Examples:
  proofmill vkd serve directory --listen 127.0.0.1:9473
  proofmill vkd serve directory --listen 0.0.0.0:9473 --tls-certificate directory.pem \\
                                --tls-key directory.key --tokens tokens

  curl -s http://127.0.0.1:9473/v1/root             the last epoch and its root
  curl -s http://127.0.0.1:9473/v1/keys/alice       the state of a key, with its proof
  curl -s 'http://127.0.0.1:9473/v1/keys?hex=00ff'  the same, of a key that is no text
  curl -s http://127.0.0.1:9473/v1/epochs/7         the record of an epoch

The answers are files for `proofmill vkd verify`. A new epoch is served within a second or two.";

const WITNESS_EXAMPLES: &str = "\
Examples:
  proofmill vkd witness directory --keys keys --epoch 7 --batch 0 -o batch-0.witness
  proofmill partition prove keys --witness batch-0.witness --workflow batch-0.toml \\
                                 --proof batch-0.proof --public batch-0.json
  proofmill run batch-0.toml
  proofmill vkd publish directory --keys keys --epoch 7 batch-0.proof";

/// `proofmill vkd`
#[derive(Debug, Subcommand)]
#[command(after_help = EXAMPLES)]
pub(crate) enum Vkd {
    /// Make an empty directory.
    Init(Init),
    /// Add an epoch of updates to a directory.
    Update(Update),
    /// Show the last epoch of a directory, and which epochs are proved.
    Info(Info),
    /// Make the keys to prove epochs with, for development.
    ///
    /// Anyone who runs this command, or can read its memory, could forge proofs.
    Setup(Setup),
    /// Prove that epochs keep the rules, and publish their records.
    Prove(Prove),
    /// Write the state of a key, present or absent, and its proof.
    Lookup(Lookup),
    /// Verify the state of a key, or a chain of epochs.
    Verify {
        #[command(subcommand)]
        command: Verify,
    },
    /// Serve a directory over HTTP, read only.
    Serve(Serve),
    /// Write the witness of a batch of updates, for a proof by other processes.
    Witness(Witness),
    /// Publish the record of an epoch whose batches were proved by other processes.
    Publish(Publish),
}

/// `proofmill vkd init`
#[derive(Debug, Args)]
pub(crate) struct Init {
    /// The directory: an empty folder, or one that does not exist yet.
    #[arg(value_name = "DIR")]
    pub(crate) directory: PathBuf,
    #[command(flatten)]
    pub(crate) depth: DepthArg,
    /// Print the epoch and the root as one JSON object.
    #[arg(long)]
    pub(crate) json: bool,
}

/// The levels of the tree, which are an option for tests and measurements only: of a tree of fewer levels keys collide.
#[derive(Clone, Copy, Debug, Args)]
pub(crate) struct DepthArg {
    /// Levels of the tree.
    #[arg(long, hide = true, value_name = "N", default_value_t = DEPTH,
          value_parser = clap::value_parser!(u32).range(1..=i64::from(DEPTH)))]
    pub(crate) depth: u32,
}

/// `proofmill vkd update`
#[derive(Debug, Args)]
#[command(after_help = UPDATE_EXAMPLES)]
pub(crate) struct Update {
    /// The directory.
    #[arg(value_name = "DIR")]
    pub(crate) directory: PathBuf,
    /// The updates, one JSON object on each line: `key` or `key_hex`, and `value` or `value_hex`; `-` for
    /// standard input.
    #[arg(value_name = "FILE", default_value = "-")]
    pub(crate) file: PathBuf,
    /// Print a summary as one JSON object on the last line of standard output.
    #[arg(long)]
    pub(crate) json: bool,
}

/// `proofmill vkd info`
#[derive(Debug, Args)]
pub(crate) struct Info {
    /// The directory.
    #[arg(value_name = "DIR")]
    pub(crate) directory: PathBuf,
    /// Print JSON.
    #[arg(long)]
    pub(crate) json: bool,
}

/// `proofmill vkd setup`
#[derive(Debug, Args)]
#[command(after_help = SETUP_EXAMPLES)]
pub(crate) struct Setup {
    /// Most updates of a batch. An epoch has as many batches as its updates need, each with its proof.
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..))]
    pub(crate) updates: u32,
    /// Levels of the tree in each part, a divisor of 128: more levels make fewer and larger parts.
    #[arg(long, value_name = "L", default_value_t = LEVELS_PER_PART,
          value_parser = clap::value_parser!(u32).range(1..=i64::from(DEPTH)))]
    pub(crate) levels: u32,
    #[command(flatten)]
    pub(crate) depth: DepthArg,
    #[command(flatten)]
    pub(crate) setup: SetupArgs,
}

/// `proofmill vkd prove`
#[derive(Debug, Args)]
#[command(after_help = PROVE_EXAMPLES)]
pub(crate) struct Prove {
    /// The directory.
    #[arg(value_name = "DIR")]
    pub(crate) directory: PathBuf,
    /// The folder with the keys, from `vkd setup`.
    #[arg(long, value_name = "KEYS")]
    pub(crate) keys: PathBuf,
    /// The epoch [default: each that has no record, in order].
    #[arg(long, value_name = "NUMBER", value_parser = clap::value_parser!(u64).range(1..))]
    pub(crate) epoch: Option<u64>,
    /// Most memory that proofs may take, beside the directory itself, which is held too. Keys are held in the
    /// fastest form that fits [default: no limit, and keys as they are].
    #[arg(long, value_name = "SIZE", value_parser = size)]
    pub(crate) memory: Option<u64>,
    #[command(flatten)]
    pub(crate) threads: Threads,
    /// Print a summary as one JSON object on the last line of standard output.
    #[arg(long)]
    pub(crate) json: bool,
}

/// `proofmill vkd lookup`
#[derive(Debug, Args)]
#[command(after_help = LOOKUP_EXAMPLES)]
pub(crate) struct Lookup {
    /// The directory.
    #[arg(value_name = "DIR")]
    pub(crate) directory: PathBuf,
    /// The key.
    pub(crate) key: String,
    /// The key is in hexadecimal digits.
    #[arg(long)]
    pub(crate) key_hex: bool,
    /// Where the proof is written.
    #[arg(short, long, value_name = "PROOF")]
    pub(crate) output: PathBuf,
    /// Print the state and the proof as one JSON object, as `vkd serve` answers it.
    #[arg(long)]
    pub(crate) json: bool,
}

/// `proofmill vkd verify`
#[derive(Debug, Subcommand)]
#[command(after_help = VERIFY_EXAMPLES)]
pub(crate) enum Verify {
    /// Verify that a key has a state under a root: a version and a value, or that it is absent.
    Key(VerifyKey),
    /// Verify that epochs follow each other, and that each keeps the rules.
    Chain(VerifyChain),
}

/// `proofmill vkd verify key`
#[derive(Debug, Args)]
#[command(after_help = VERIFY_EXAMPLES)]
pub(crate) struct VerifyKey {
    /// The root of an epoch, 64 hexadecimal digits, from a source that is trusted or from `vkd verify chain`.
    #[arg(long, value_name = "ROOT")]
    pub(crate) root: Digest,
    /// The key.
    #[arg(long, value_name = "KEY")]
    pub(crate) key: String,
    /// The key is in hexadecimal digits.
    #[arg(long)]
    pub(crate) key_hex: bool,
    /// Verify also that the key has this value.
    #[arg(long, value_name = "VALUE", conflicts_with = "value_hex")]
    pub(crate) value: Option<String>,
    /// The same, for a value in hexadecimal digits.
    #[arg(long, value_name = "DIGITS")]
    pub(crate) value_hex: Option<String>,
    /// The proof: a file of `vkd lookup`, or an answer of `vkd serve`, whose version and value are verified too.
    pub(crate) proof: PathBuf,
    #[command(flatten)]
    pub(crate) depth: DepthArg,
    /// Print JSON.
    #[arg(long)]
    pub(crate) json: bool,
}

/// `proofmill vkd verify chain`
#[derive(Debug, Args)]
#[command(after_help = VERIFY_EXAMPLES)]
pub(crate) struct VerifyChain {
    /// The verifying key: `verifying.key` of the folder that `vkd setup` made.
    #[arg(long, value_name = "KEY")]
    pub(crate) key: PathBuf,
    /// Begin after this epoch, whose root is trusted or was verified before [default: the empty directory].
    #[arg(long, value_name = "NUMBER:ROOT", value_parser = checkpoint)]
    pub(crate) from: Option<Checkpoint>,
    /// Records of consecutive epochs in their order, as files of a directory or as answers of `vkd serve`; or
    /// a directory, of which all records after --from are verified.
    #[arg(value_name = "RECORD|DIR", required = true)]
    pub(crate) records: Vec<PathBuf>,
    #[command(flatten)]
    pub(crate) depth: DepthArg,
    /// Print JSON.
    #[arg(long)]
    pub(crate) json: bool,
}

/// `proofmill vkd serve`
#[derive(Debug, Args)]
#[command(after_help = SERVE_EXAMPLES)]
pub(crate) struct Serve {
    /// The directory.
    #[arg(value_name = "DIR")]
    pub(crate) directory: PathBuf,
    /// Listen on this TCP address; port 0 for any free port. Beyond loopback it needs a certificate and tokens.
    #[arg(long, value_name = "ADDRESS")]
    pub(crate) listen: SocketAddr,
    /// The certificate for that address (PEM).
    #[arg(long, value_name = "FILE", requires = "tls_key")]
    pub(crate) tls_certificate: Option<PathBuf>,
    /// The certificate's key (PEM); it must not be readable by everybody.
    #[arg(long, value_name = "FILE", requires = "tls_certificate")]
    pub(crate) tls_key: Option<PathBuf>,
    /// Serve only the clients in this file: a client's name and its token on each line. The file must not be
    /// readable by everybody.
    #[arg(long, value_name = "FILE")]
    pub(crate) tokens: Option<PathBuf>,
}

/// `proofmill vkd witness`
#[derive(Debug, Args)]
#[command(after_help = WITNESS_EXAMPLES)]
pub(crate) struct Witness {
    #[command(flatten)]
    pub(crate) epoch: EpochArgs,
    /// The batch, from 0.
    #[arg(long, value_name = "NUMBER")]
    pub(crate) batch: usize,
    /// Where the witness is written. It is secret: it shows which keys were updated.
    #[arg(short, long, value_name = "FILE")]
    pub(crate) output: PathBuf,
    /// Print a summary as one JSON object on the last line of standard output.
    #[arg(long)]
    pub(crate) json: bool,
}

/// `proofmill vkd publish`
#[derive(Debug, Args)]
#[command(after_help = WITNESS_EXAMPLES)]
pub(crate) struct Publish {
    #[command(flatten)]
    pub(crate) epoch: EpochArgs,
    /// The proofs of all batches, in their order. They are verified first.
    #[arg(value_name = "PROOF", required = true)]
    pub(crate) proofs: Vec<PathBuf>,
    /// Print a summary as one JSON object on the last line of standard output.
    #[arg(long)]
    pub(crate) json: bool,
}

/// An epoch of a directory, and the keys that determine its batches.
#[derive(Debug, Args)]
pub(crate) struct EpochArgs {
    /// The directory.
    #[arg(value_name = "DIR")]
    pub(crate) directory: PathBuf,
    /// The folder with the keys, from `vkd setup`; of them only the sizes and the verifying key are read.
    #[arg(long, value_name = "KEYS")]
    pub(crate) keys: PathBuf,
    /// The epoch.
    #[arg(long = "epoch", value_name = "NUMBER")]
    pub(crate) number: u64,
}

// === impl Serve ===

impl Serve {
    /// The TCP port.
    pub(crate) fn tcp(&self) -> TcpOptions {
        let tls = self.tls_certificate.clone().zip(self.tls_key.clone());
        TcpOptions {
            address: self.listen,
            tls: tls.map(|(certificate, key)| TlsFiles { certificate, key }),
            tokens: self.tokens.clone(),
            connections: ConnectionLimits::default(),
        }
    }
}

/// Parses `NUMBER:ROOT`.
fn checkpoint(text: &str) -> Result<Checkpoint, String> {
    let (number, root) = text
        .split_once(':')
        .ok_or("expected an epoch's number and its root, as NUMBER:ROOT")?;
    let number = number
        .parse()
        .map_err(|_| format!("{number:?} is not the number of an epoch"))?;
    let root = root.parse().map_err(|error| format!("{root:?}: {error}"))?;
    Ok(Checkpoint { number, root })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn checkpoints_have_a_number_and_a_root() {
        let root = "0f".repeat(32);
        let parsed = checkpoint(&format!("12:{root}")).expect("a checkpoint");
        assert_eq!((parsed.number, parsed.root.to_string()), (12, root.clone()));
        for (text, why) in [
            (root.as_str(), "NUMBER:ROOT"),
            ("x:00", "\"x\" is not the number"),
            ("-1:00", "\"-1\" is not the number"),
            ("1:00", "64 lower-case hexadecimal digits"),
        ] {
            let error = checkpoint(text).expect_err(text);
            assert!(error.contains(why), "{error}");
        }
    }
}
