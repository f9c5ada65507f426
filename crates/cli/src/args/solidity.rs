//! The commands for proofs on Ethereum: contracts, calldata.

use std::path::PathBuf;

use clap::Args;
use proofmill_solidity::ContractName;

use super::aggregate::CurveName;

const EXPORT_EXAMPLES: &str = "\
Examples:
  proofmill zkey export-solidity circuit.zkey Groth16Verifier.sol
  proofmill zkey export-solidity vk.json HeaderVerifier.sol --name HeaderVerifier --batch

Over BN254 `verifyProof` of the contract is called like that of `snarkjs zkey export
solidityverifier`. Over BLS12-381 it is verifyProof(bytes,uint256[]), and the chain needs the
precompiles of EIP-2537. `proofmill calldata` makes the calldata for both.";

const CALLDATA_EXAMPLES: &str = "\
Examples:
  proofmill calldata proof.json public.json
  proofmill calldata proof.json public.json --abi
  proofmill calldata --batch --abi 1/proof.json 1/public.json 2/proof.json 2/public.json
  cast call $VERIFIER $(proofmill calldata proof.json public.json --abi)

Without --abi and --json the arguments are printed as text: over BN254 what `snarkjs zkey export
soliditycalldata` prints; over BLS12-381 the proof in hexadecimal, then the public inputs.";

/// `proofmill zkey export-solidity`
#[derive(Debug, Args)]
#[command(after_help = EXPORT_EXAMPLES)]
pub(crate) struct ExportSolidity {
    /// The proving key, its verification_key.json, or a verifying key of Proofmill's own (.vk), over BN254 or
    /// BLS12-381.
    pub(crate) key: PathBuf,
    /// Where the contract is written.
    #[arg(value_name = "SOL")]
    pub(crate) output: PathBuf,
    /// The contract's name.
    #[arg(long, value_name = "NAME", default_value_t)]
    pub(crate) name: ContractName,
    /// Give the contract a function `verifyProofs`, too, which verifies many proofs in one call, for less gas each.
    #[arg(long)]
    pub(crate) batch: bool,
    /// Overwrite a file there that this command did not write.
    #[arg(long)]
    pub(crate) force: bool,
}

/// `proofmill calldata`
#[derive(Debug, Args)]
#[command(
    after_help = CALLDATA_EXAMPLES,
    override_usage = "proofmill calldata [OPTIONS] <PROOF> <PUBLIC>\n       \
                      proofmill calldata [OPTIONS] --batch <PROOF> <PUBLIC>..."
)]
pub(crate) struct Calldata {
    /// A proof and its public signals, as `proofmill prove` and snarkjs write them; with --batch several pairs.
    #[arg(required = true, value_name = "FILE")]
    pub(crate) files: Vec<PathBuf>,
    /// Call `verifyProofs` with all pairs: of a contract that was exported with --batch.
    #[arg(long)]
    pub(crate) batch: bool,
    /// The curve of proofs whose files do not name it.
    #[arg(long, value_enum, value_name = "CURVE")]
    pub(crate) curve: Option<CurveName>,
    /// Print the whole calldata in hexadecimal: the function's selector and its ABI-encoded arguments.
    #[arg(long, conflicts_with = "json")]
    pub(crate) abi: bool,
    /// Print one JSON object with the function, its selector, the proofs, the public inputs and the calldata.
    #[arg(long)]
    pub(crate) json: bool,
}
