//! Checks of an engine's answer before it is used.
//!
//! An engine is another process, perhaps on another machine. Its answer contains the proof twice, as points
//! and as text, which may disagree. So only the points and numbers are used, which must be canonical, and the texts are
//! written anew from these.

use std::path::Path;

use proofmill_engine::{AnyProof, MalformedProof, ProofOf};
use proofmill_groth16::snarkjs::{
    curve_of_json, inputs_to_json, proof_to_json, read_json, verifying_key_from_json,
};
use proofmill_groth16::{
    Bls12_377, Bls12_381, Bn254, Curve, PreparedVerifyingKey, ProofError, SnarkCurve, VerifyError,
    verify,
};
use proofmill_r1cs::iden3::{FormatError, SCALAR_BYTES, WTNS_FORMAT, WtnsFile, canonical_from_le};

use super::proto;

/// A proof and its public inputs in snarkjs's format.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ProofTexts {
    /// `proof.json`.
    pub proof: String,
    /// `public.json`.
    pub public: String,
}

/// The reason that an engine's answer is refused.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum AnswerError {
    /// The curve is unknown.
    #[error("the engine's proof is over {0:?}, which is no curve")]
    Curve(String),
    /// The curve is not that of the verifying key.
    #[error("the engine's proof is over {found}, where the key is over {expected}")]
    OtherCurve {
        /// The curve of the proof.
        found: Curve,
        /// The curve of the key.
        expected: Curve,
    },
    /// The proof's bytes are malformed.
    #[error("the engine's proof is malformed: {0}")]
    Proof(#[from] ProofError),
    /// A public input is not a canonical number.
    #[error("public input {0} of the engine's proof is not below the field's prime")]
    Input(usize),
    /// The proof's public inputs are not those of the witness that was sent.
    #[error(
        "the engine's proof is of other public inputs than the witness's: the first is number {0}"
    )]
    OtherInputs(usize),
    /// The witness that was sent is malformed.
    #[error("the witness is malformed: {0}")]
    Witness(String),
    /// The proof does not hold under the verifying key.
    #[error("the engine's proof does not hold: {0}")]
    Invalid(#[from] VerifyError),
}

/// A verifying key for checking engines' proofs, over any curve.
#[derive(Clone, Debug)]
pub struct AnswerKey(KeyByCurve);

#[derive(Clone, Debug)]
enum KeyByCurve {
    Bn254(Box<PreparedVerifyingKey<Bn254>>),
    Bls12_381(Box<PreparedVerifyingKey<Bls12_381>>),
    Bls12_377(Box<PreparedVerifyingKey<Bls12_377>>),
}

/// Decodes and checks an engine's proof over `E`. With `witness`, the `.wtns` file or vector that was sent,
/// its public inputs must be those of the proof; with `key`, the proof must verify.
///
/// # Errors
///
/// See [`AnswerError`].
pub fn check_answer<E: SnarkCurve>(
    answer: &proto::Proof,
    witness: Option<&[u8]>,
    key: Option<&PreparedVerifyingKey<E>>,
) -> Result<ProofOf<E>, AnswerError> {
    let proof = ProofOf::decode(&answer.proof, &answer.public_inputs)?;
    check::<E>(&proof, witness, key)?;
    Ok(proof)
}

/// Decodes and checks a proof like [`check_answer`], over the curve that the answer names.
///
/// # Errors
///
/// See [`AnswerError`].
pub fn check_answer_of_any_curve(
    answer: &proto::Proof,
    witness: Option<&[u8]>,
    key: Option<&AnswerKey>,
) -> Result<AnyProof, AnswerError> {
    let mut curves = Curve::ALL.into_iter();
    let found = curves
        .find(|curve| curve.name() == answer.curve)
        .ok_or_else(|| AnswerError::Curve(answer.curve.chars().take(32).collect()))?;
    if let Some(key) = key.filter(|key| key.curve() != found) {
        let expected = key.curve();
        return Err(AnswerError::OtherCurve { found, expected });
    }
    let proof = AnyProof::decode(found, &answer.proof, &answer.public_inputs)?;
    check_proof(&proof, witness, key)?;
    Ok(proof)
}

/// Checks a decoded proof like [`check_answer_of_any_curve`].
///
/// # Errors
///
/// See [`AnswerError`].
pub(super) fn check_proof(
    proof: &AnyProof,
    witness: Option<&[u8]>,
    key: Option<&AnswerKey>,
) -> Result<(), AnswerError> {
    match (proof, key) {
        (AnyProof::Bn254(proof), None) => check(proof, witness, None),
        (AnyProof::Bls12_381(proof), None) => check(proof, witness, None),
        (AnyProof::Bls12_377(proof), None) => check(proof, witness, None),
        (AnyProof::Bn254(proof), Some(AnswerKey(KeyByCurve::Bn254(key)))) => {
            check(proof, witness, Some(&**key))
        }
        (AnyProof::Bls12_381(proof), Some(AnswerKey(KeyByCurve::Bls12_381(key)))) => {
            check(proof, witness, Some(&**key))
        }
        (AnyProof::Bls12_377(proof), Some(AnswerKey(KeyByCurve::Bls12_377(key)))) => {
            check(proof, witness, Some(&**key))
        }
        (proof, Some(key)) => Err(AnswerError::OtherCurve {
            found: proof.curve(),
            expected: key.curve(),
        }),
    }
}

fn check<E: SnarkCurve>(
    made: &ProofOf<E>,
    witness: Option<&[u8]>,
    key: Option<&PreparedVerifyingKey<E>>,
) -> Result<(), AnswerError> {
    if let Some(witness) = witness {
        let sent = public_inputs::<E>(witness, made.public.len())?;
        let mut pairs = sent.iter().zip(&made.public);
        if let Some(i) = pairs.position(|(sent, proved)| sent != proved) {
            return Err(AnswerError::OtherInputs(i + 1));
        }
    }
    if let Some(key) = key {
        verify(key, &made.public, &made.proof)?;
    }
    Ok(())
}

/// The first `count` values of a witness after the leading one.
fn public_inputs<E: SnarkCurve>(
    witness: &[u8],
    count: usize,
) -> Result<Vec<E::ScalarField>, AnswerError> {
    if witness.starts_with(&WTNS_FORMAT.magic) {
        let malformed = |error: FormatError| AnswerError::Witness(error.to_string());
        let file = WtnsFile::parse(witness).map_err(malformed)?;
        return file.leading(count).map_err(malformed);
    }
    let mut values = witness.chunks_exact(SCALAR_BYTES).skip(1);
    (0..count)
        .map(|i| {
            let value = values.next().and_then(canonical_from_le);
            value.ok_or_else(|| {
                AnswerError::Witness(format!("value {} is missing or not canonical", i + 1))
            })
        })
        .collect()
}

// === impl ProofTexts ===

impl<E: SnarkCurve> From<&ProofOf<E>> for ProofTexts {
    fn from(made: &ProofOf<E>) -> Self {
        Self {
            proof: proof_to_json(&made.proof),
            public: inputs_to_json(&made.public),
        }
    }
}

impl From<&AnyProof> for ProofTexts {
    fn from(made: &AnyProof) -> Self {
        match made {
            AnyProof::Bn254(made) => made.into(),
            AnyProof::Bls12_381(made) => made.into(),
            AnyProof::Bls12_377(made) => made.into(),
        }
    }
}

// === impl AnswerError ===

impl From<MalformedProof> for AnswerError {
    fn from(error: MalformedProof) -> Self {
        match error {
            MalformedProof::Input(number) => Self::Input(number),
            MalformedProof::Proof(error) => Self::Proof(error),
        }
    }
}

// === impl AnswerKey ===

impl AnswerKey {
    fn curve(&self) -> Curve {
        match self.0 {
            KeyByCurve::Bn254(_) => Curve::Bn254,
            KeyByCurve::Bls12_381(_) => Curve::Bls12_381,
            KeyByCurve::Bls12_377(_) => Curve::Bls12_377,
        }
    }

    /// Reads `verification_key.json`, and refuses an insecure key, under which proofs prove nothing.
    ///
    /// # Errors
    ///
    /// A message with the path of the file and the fault.
    pub fn load(path: &Path) -> Result<Self, String> {
        let unusable = |why: &dyn std::fmt::Display| format!("{}: {why}", path.display());
        let json = read_json(path).map_err(|error| error.to_string())?;
        let curve = curve_of_json(&json).map_err(|error| unusable(&error))?;
        let curve = curve.ok_or_else(|| unusable(&"the key names no curve"))?;
        Ok(Self(match curve {
            Curve::Bn254 => KeyByCurve::Bn254(prepared(&json).map_err(|why| unusable(&why))?),
            Curve::Bls12_381 => {
                KeyByCurve::Bls12_381(prepared(&json).map_err(|why| unusable(&why))?)
            }
            Curve::Bls12_377 => {
                KeyByCurve::Bls12_377(prepared(&json).map_err(|why| unusable(&why))?)
            }
        }))
    }
}

fn prepared<E: SnarkCurve>(json: &[u8]) -> Result<Box<PreparedVerifyingKey<E>>, String> {
    let key = verifying_key_from_json::<E>(json).map_err(|error| error.to_string())?;
    key.require_secure().map_err(|error| error.to_string())?;
    Ok(Box::new(key.into()))
}
