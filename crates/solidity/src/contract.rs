//! A verifying key's contract.

use ark_ff::{BigInteger, PrimeField};
use proofmill_groth16::{Curve, InsecureKey, SnarkCurve, VerifyingKey};

use crate::encoding::{Encoding, UnsupportedCurve, WORD_BYTES, keccak256, key_digest};
use crate::name::{ContractName, NameError};
use crate::template::{Part, bytes_literal, fill};

/// The most bytes of a contract's code: EIP-170.
pub(crate) const CODE_BYTES_MAX: usize = 24_576;

/// Bytes of a contract's code beside the points of its public inputs, at most: with a batch verifier, over either curve,
/// as solc 0.8.37 compiles it with its optimiser. `contracts/test/verifier-limits.test.mjs` compiles the largest
/// contracts.
const CODE_BYTES_OTHER: usize = 5_120;

/// Options of a contract.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ContractOptions {
    /// The contract's name.
    pub name: ContractName,
    /// Whether the contract also has `verifyProofs`, which verifies many proofs in one call.
    pub batch: bool,
}

/// The reason why there is no contract for a key.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum ContractError {
    /// The curve has no precompiles.
    #[error(transparent)]
    Curve(#[from] UnsupportedCurve),
    /// Proofs under the key prove nothing.
    #[error(transparent)]
    Insecure(#[from] InsecureKey),
    /// The contract's name.
    #[error(transparent)]
    Name(#[from] NameError),
    /// The circuit has no public inputs, so a proof says nothing about what is settled.
    #[error(
        "the circuit has no public inputs: a proof of it says nothing that a contract could use"
    )]
    NoInputs,
    /// The points of the public inputs do not fit into a contract.
    #[error(
        "{found} public inputs: a contract over {curve} can have at most {max}, since their points are in its code; \
         make one public input of them in the circuit, by a hash"
    )]
    TooManyInputs {
        /// The curve.
        curve: Curve,
        /// Public inputs of the circuit.
        found: usize,
        /// The most for this curve.
        max: usize,
    },
}

/// The most public inputs that a contract over this curve can have: each has its point in the contract's code, which the
/// EVM limits to 24,576 bytes (EIP-170).
///
/// # Errors
///
/// [`UnsupportedCurve`].
pub fn inputs_max(curve: Curve) -> Result<usize, UnsupportedCurve> {
    let term_bytes = Encoding::of(curve)?.g1_bytes() + WORD_BYTES;
    // The point of the leading one is no input's.
    Ok((CODE_BYTES_MAX - CODE_BYTES_OTHER) / term_bytes - 1)
}

/// The Solidity source of a contract that verifies proofs under `key`: over BN254 with the interface of snarkjs's
/// contracts, over BLS12-381 with `verifyProof(bytes,uint256[])`.
///
/// # Errors
///
/// [`ContractError`]; among others for keys that [`VerifyingKey::require_secure`] refuses.
pub fn verifier_contract<E: SnarkCurve>(
    key: &VerifyingKey<E>,
    options: &ContractOptions,
) -> Result<String, ContractError> {
    let max = inputs_max(E::CURVE)?;
    key.require_secure()?;
    let inputs = match key.instance.len().saturating_sub(1) {
        0 => return Err(ContractError::NoInputs),
        found if found > max => {
            return Err(ContractError::TooManyInputs {
                curve: E::CURVE,
                found,
                max,
            });
        }
        inputs => inputs,
    };
    let (single, batch) = templates(E::CURVE)?;
    let digest = key_digest(key)?;
    let batch = match options.batch {
        true => fill(batch, &batch_values(E::CURVE, &digest)),
        false => String::new(),
    };
    let encoding = Encoding::of(E::CURVE)?;
    // One word a line where a coordinate is a word; else one coordinate.
    let line_bytes = encoding.coordinate_bytes;
    let gas_needed = gas_needed(E::CURVE, inputs as u64);
    let input_noun = if inputs == 1 { "input" } else { "inputs" };
    let values = [
        ("VERSION", env!("CARGO_PKG_VERSION").to_owned()),
        ("NAME", options.name.to_string()),
        ("INPUTS", inputs.to_string()),
        ("INPUT_NOUN", input_noun.to_owned()),
        ("INPUT_BYTES", (inputs * WORD_BYTES).to_string()),
        (
            "MSM_BYTES",
            (inputs * (encoding.g1_bytes() + WORD_BYTES)).to_string(),
        ),
        ("KEY_DIGEST", hex_word(&digest)),
        ("R", hex_word(&modulus::<E::ScalarField>())),
        ("GAS_NEEDED", gas_needed.to_string()),
        ("CALL_GAS", call_gas(gas_needed, inputs as u64).to_string()),
        (
            "INSTANCE",
            bytes_literal(&instance(key, encoding), line_bytes),
        ),
        ("PAIRS", bytes_literal(&pairs(key, encoding), line_bytes)),
        ("BATCH", batch),
    ];
    Ok(fill(single, &values))
}

/// Whether a Solidity source was written by [`verifier_contract`], of any version: by its second line.
pub fn is_generated(source: &str) -> bool {
    let line = source.lines().nth(1);
    line.is_some_and(|line| line.starts_with("// Generated by Proofmill "))
}

/// The contract's text, and that of its batch verifier.
const fn templates(curve: Curve) -> Result<(&'static str, &'static str), UnsupportedCurve> {
    match curve {
        Curve::Bn254 => Ok((
            include_str!("templates/bn254.sol"),
            include_str!("templates/bn254_batch.sol"),
        )),
        Curve::Bls12_381 => Ok((
            include_str!("templates/bls12_381.sol"),
            include_str!("templates/bls12_381_batch.sol"),
        )),
        curve => Err(UnsupportedCurve(curve)),
    }
}

/// The places of the batch verifiers' templates. Their weights are hashed with a prefix of this curve and key.
fn batch_values(curve: Curve, key_digest: &[u8; 32]) -> [(&'static str, String); 2] {
    let tag = format!("proofmill/groth16/{}/batch/v1", curve.name());
    let domain = keccak256(&[tag.as_bytes(), key_digest].concat());
    [("DOMAIN_TAG", tag), ("DOMAIN", hex_word(&domain))]
}

/// The table INSTANCE: each point, and a zero word for its scalar.
fn instance<E: SnarkCurve>(key: &VerifyingKey<E>, encoding: Encoding) -> Vec<Part> {
    let parts = key.instance.iter().enumerate();
    parts
        .map(|(i, point)| Part {
            name: format!("IC[{i}], then zeros in the place of its scalar"),
            bytes: [encoding.point(point), vec![0; WORD_BYTES]].concat(),
        })
        .collect()
}

/// The table PAIRS: the pairing's input, with zeros in the places of A, B, C and L.
fn pairs<E: SnarkCurve>(key: &VerifyingKey<E>, encoding: Encoding) -> Vec<Part> {
    let part = |name: &str, bytes| Part {
        name: name.to_owned(),
        bytes,
    };
    let (g1, g2) = (encoding.g1_bytes(), encoding.g2_bytes());
    vec![
        part("zeros in the places of A, B and C", vec![0; g1 + g2 + g1]),
        part("-delta", encoding.point(&-key.delta_g2)),
        part("zeros in the place of L", vec![0; g1]),
        part("-gamma", encoding.point(&-key.gamma_g2)),
        part("alpha", encoding.point(&key.alpha_g1)),
        part("-beta", encoding.point(&-key.beta_g2)),
    ]
}

/// The constant GAS_NEEDED, as the templates explain it.
const fn gas_needed(curve: Curve, inputs: u64) -> u64 {
    let (prices, between) = match curve {
        // EIP-1108.
        Curve::Bn254 => (
            inputs * (6_000 + 150) + 45_000 + 4 * 34_000,
            2_000 + 500 * inputs,
        ),
        // EIP-2537.
        _ => (inputs * 12_000 + 375 + 37_700 + 4 * 32_600, 2_000),
    };
    (prices * 64).div_ceil(63) + between
}

/// Gas for a whole call of `verifyProof` that is never answered `NotEnoughGas`, with its steps before the precompiles.
const fn call_gas(gas_needed: u64, inputs: u64) -> u64 {
    let whole = gas_needed + 5_000 + 300 * inputs;
    whole.next_multiple_of(1_000)
}

fn modulus<F: PrimeField>() -> [u8; WORD_BYTES] {
    let bytes = F::MODULUS.to_bytes_be();
    bytes
        .try_into()
        .expect("a scalar field's modulus is a word")
}

fn hex_word(word: &[u8; WORD_BYTES]) -> String {
    format!("0x{}", hex::encode(word))
}
