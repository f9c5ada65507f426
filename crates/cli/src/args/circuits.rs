//! The commands for circom circuits: proofs, keys.

use std::path::PathBuf;

use clap::{Args, Subcommand};

use super::engine::{EngineChoice, parse_engine_choice};
use super::solidity::ExportSolidity;
use crate::devices::Devices;

const PROVE_EXAMPLES: &str = "\
Examples:
  proofmill prove --zkey circuit.zkey --witness witness.wtns --proof proof.json --public public.json
  proofmill prove circuit.zkey witness.wtns proof.json public.json    the same
  snarkjs groth16 verify verification_key.json public.json proof.json";

const ZKEY_EXAMPLES: &str = "\
Examples:
  proofmill zkey info circuit.zkey
  proofmill zkey check circuit.zkey
  proofmill zkey export-vk circuit.zkey verification_key.json
  proofmill zkey export-solidity circuit.zkey Groth16Verifier.sol";

const SETUP_EXAMPLES: &str = "\
Examples:
  proofmill setup circuit.r1cs -o circuit.zkey
  proofmill setup circuit.r1cs --ptau powersOfTau28_hez_final_16.ptau -o circuit.zkey
  snarkjs zkey contribute circuit.zkey circuit_0001.zkey";

/// `proofmill prove`
#[derive(Debug, Args)]
#[command(
    after_help = PROVE_EXAMPLES,
    override_usage = "proofmill prove [OPTIONS] --zkey <ZKEY> --witness <WTNS> --proof <PROOF> --public <PUBLIC>\n       \
                      proofmill prove [OPTIONS] <ZKEY> <WTNS> <PROOF> <PUBLIC>"
)]
pub(crate) struct Prove {
    /// The four files, in the order of snarkjs: key, witness, proof (written) and public signals (written).
    #[arg(num_args = 4, value_names = ["ZKEY", "WTNS", "PROOF", "PUBLIC"],
          conflicts_with_all = ["zkey", "witness", "proof", "public"])]
    pub(crate) files: Vec<PathBuf>,
    /// The proving key, as `snarkjs groth16 setup` or `proofmill setup` make it.
    #[arg(long, value_name = "ZKEY", required_unless_present = "files")]
    pub(crate) zkey: Option<PathBuf>,
    /// The witness, as `snarkjs wtns calculate` or circom's C++ programs make it.
    #[arg(long, value_name = "WTNS", required_unless_present = "files")]
    pub(crate) witness: Option<PathBuf>,
    /// Where the proof is written.
    #[arg(long, value_name = "PROOF", required_unless_present = "files")]
    pub(crate) proof: Option<PathBuf>,
    /// Where the public signals are written.
    #[arg(long, value_name = "PUBLIC", required_unless_present = "files")]
    pub(crate) public: Option<PathBuf>,
    /// Do not check the key's points again if this very key was checked before.
    ///
    /// The first time, the key is checked as always, and its digest is recorded in
    /// `proofmill/checked-keys` of $XDG_STATE_HOME, or of ~/.local/state. A key whose digest is
    /// recorded is read without checking each point, which takes most of the time of loading.
    #[arg(long)]
    pub(crate) trust_key: bool,
    #[command(flatten)]
    pub(crate) key_safety: KeySafety,
    /// The running engine that makes the proof: `auto` for the one in .proofmill/engine, if it has this key;
    /// `off` for none; or the address of an engine on this machine.
    #[arg(long, env = "PROOFMILL_ENGINE", value_name = "WHICH", default_value = "auto",
          value_parser = parse_engine_choice)]
    pub(crate) engine: EngineChoice,
    #[command(flatten)]
    pub(crate) devices: DevicesArg,
    #[command(flatten)]
    pub(crate) threads: Threads,
    /// Print a summary as one JSON object on the last line of standard output.
    #[arg(long)]
    pub(crate) json: bool,
}

/// `proofmill zkey`
#[derive(Debug, Subcommand)]
#[command(after_help = ZKEY_EXAMPLES)]
pub(crate) enum Zkey {
    /// Show the curve, sizes and contributions of a key.
    Info(ZkeyInfo),
    /// Check a whole key: sizes, every point on its curve and in its group, no known weakness.
    Check(ZkeyCheck),
    /// Write the verifying key that belongs to a proving key, as snarkjs writes it.
    ExportVk(ZkeyExport),
    /// Write a Solidity contract that verifies the key's proofs on Ethereum.
    ///
    /// A key under which proofs prove nothing is refused. docs/settle-verifiers.md has what the contract costs and
    /// refuses.
    ExportSolidity(ExportSolidity),
}

/// `proofmill zkey info`
#[derive(Debug, Args)]
pub(crate) struct ZkeyInfo {
    /// The proving key.
    pub(crate) zkey: PathBuf,
    /// Print JSON.
    #[arg(long)]
    pub(crate) json: bool,
}

/// `proofmill zkey check`
#[derive(Debug, Args)]
pub(crate) struct ZkeyCheck {
    /// The proving key.
    pub(crate) zkey: PathBuf,
    #[command(flatten)]
    pub(crate) key_safety: KeySafety,
    #[command(flatten)]
    pub(crate) threads: Threads,
    /// Print JSON.
    #[arg(long)]
    pub(crate) json: bool,
}

/// `proofmill zkey export-vk`
#[derive(Debug, Args)]
pub(crate) struct ZkeyExport {
    /// The proving key.
    pub(crate) zkey: PathBuf,
    /// Where the verifying key is written.
    #[arg(value_name = "VK")]
    pub(crate) output: PathBuf,
    /// Overwrite another key there.
    #[arg(long)]
    pub(crate) force: bool,
}

/// `proofmill setup`
#[derive(Debug, Args)]
#[command(after_help = SETUP_EXAMPLES)]
pub(crate) struct Setup {
    /// The circuit, as circom compiles it with `--r1cs`.
    pub(crate) r1cs: PathBuf,
    /// Powers of tau of the circuit's curve; a file prepared for phase 2 is faster [default: secrets that
    /// are drawn and discarded].
    #[arg(long, value_name = "PTAU")]
    pub(crate) ptau: Option<PathBuf>,
    /// Check first that the file holds powers of one tau and the values that follow from them. This takes
    /// longer than the setup itself.
    #[arg(long)]
    pub(crate) verify_ptau: bool,
    /// Name under which the contribution to delta is recorded, with --ptau.
    #[arg(long, default_value = "proofmill setup")]
    pub(crate) name: String,
    /// Where the proving key is written.
    #[arg(short, long, value_name = "ZKEY")]
    pub(crate) output: PathBuf,
    /// Overwrite an existing file.
    #[arg(long)]
    pub(crate) force: bool,
    #[command(flatten)]
    pub(crate) threads: Threads,
    /// Print a summary as one JSON object on the last line of standard output.
    #[arg(long)]
    pub(crate) json: bool,
}

/// The `--devices` argument.
#[derive(Clone, Debug, Args)]
pub(crate) struct DevicesArg {
    /// Devices beside the processors: `auto` uses the cards of this machine where they are faster; `cpu` uses
    /// none; devices by name are used for everything they can do: cards such as `cuda:0,cuda:1`, and ZKPUs at
    /// NVMe/TCP addresses such as `nvme:127.0.0.1:4420`, which compute products over BLS12-377.
    #[arg(
        long,
        env = "PROOFMILL_DEVICES",
        value_name = "DEVICES",
        default_value = "auto"
    )]
    pub(crate) devices: Devices,
}

/// Whether keys under which proofs prove nothing may be used.
#[derive(Clone, Copy, Debug, Args)]
pub(crate) struct KeySafety {
    /// Use a key under which anyone can prove anything, such as one without a contribution to its second
    /// phase. For tests only.
    #[arg(long)]
    pub(crate) allow_insecure_key: bool,
}

/// The `--threads` argument.
#[derive(Clone, Copy, Debug, Args)]
pub(crate) struct Threads {
    /// Threads to compute with [default: one for each core].
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u16).range(1..=1024))]
    pub(crate) threads: Option<u16>,
}
