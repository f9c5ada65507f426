//! Mirage: Groth16 with a part of the witness that is committed to before the proof is made.
//!
//! The scheme is `cc-zkSNARK` of Kosba, Papadopoulos, Papamanthou and Song, "MIRAGE" (USENIX Security
//! 2020), and ccGro16 of Campanelli, Fiore and Querol, "LegoSNARK" (CCS 2019, appendix H), in the form that
//! Hekaton ("Horizontally-Scalable zkSNARKs via Proof Aggregation") gives it in section 5.1.1, whose
//! notation this module uses. The variables of a system are, in this order: the instance with its leading
//! one, the committed part of the witness, the rest of it ([`CommittedR1cs`]). A proof holds for public
//! inputs x and a commitment D if
//!
//! ```text
//! e(A, B) = e(α, β) · e(S, γ) · e(C, δ) · e(D, η)      with S = Σ xⱼ·[pⱼ(s)/γ]
//! ```
//!
//! so a challenge may be drawn from D, and the rest of the witness may depend on it.
//!
//! # Binding of a commitment
//!
//! A commitment binds the coefficients of D on the points \[pⱼ(s)/η\], which are the values that the system holds
//! for, and no more. It does not bind D itself: from a proof (A, B, C) with D anyone can make one with B + t·η and
//! D + t·A for any t, and a prover one with A + t·η and D + t·B (in the first group). So a protocol must not rely on
//! a proof having one commitment, and the extractor of the paper's definition, whose opening is of D itself, does
//! not exist. The extractor that protocols with challenges need exists in the algebraic group model: if values were
//! moved from D to A after a challenge, β times their points would remain, and nothing cancels them if the columns
//! of committed variables are independent.
//!
//! ```
//! use ark_ff::UniformRand;
//! use proofmill_groth16::{Bn254, mirage};
//! use proofmill_r1cs::{Assignment, R1cs};
//!
//! # fn main() -> Result<(), Box<dyn std::error::Error>> {
//! type Fr = ark_bn254::Fr;
//! # use ark_std::rand::{SeedableRng, rngs::StdRng};
//! # let rng = &mut StdRng::seed_from_u64(1);
//! // y = w·x: y and x are public, in places 1 and 2 after the leading one, and w is committed to.
//! let row = |variable| vec![vec![(Fr::from(1), variable)]];
//! let r1cs = R1cs::from_rows(3, 1, [row(3), row(2), row(1)])?;
//! let circuit = mirage::CommittedR1cs::new(&r1cs, 1)?;
//! let key = mirage::setup::<Bn254>(&[circuit], rng)?.remove(0);
//!
//! let w = Fr::from(7);
//! let (commitment, opening) = mirage::commit(&key, &[w], rng)?;
//! let x = Fr::rand(rng); // In a real protocol, a hash of the commitment.
//! let assignment = Assignment::new(&[w * x, x], &[w]);
//! let (proof, _) = mirage::prove(&key, &r1cs, &assignment, &opening, rng)?;
//!
//! let verifier = mirage::PreparedVerifyingKey::from(key.vk());
//! mirage::verify(&verifier, assignment.inputs().into(), &commitment, &proof)?;
//! # Ok(())
//! # }
//! ```
//!
//! # Differences from the paper
//!
//! * The proving key has the form of [`ProvingKey`](crate::ProvingKey), which saves transforms. As C(X) is folded
//!   into its L query, that query has a point for each committed variable too, −cⱼ(s)·Z(s)/Z(g)/δ. The proofs
//!   are those of the paper's prover.
//! * The plain prover makes a proof with that key, and [`Prover::complete`] subtracts κ_D·η from its C: stages,
//!   resident keys and devices are the plain ones.
//! * The key has \[η\]₁, which the paper's prover uses without naming it in the key.
//! * Columns of committed variables must be linearly independent, which [`CommittedR1cs::new`] checks. Otherwise
//!   D could be opened to two values; the paper does not discuss this case.
//! * e(α, β) is not in the key but computed from α and β, which the batch verifier needs anyway.
//! * Inputs that are known in advance can be prepared, as in section 6.3 ([`PreparedInputs`]).

mod circuit;
mod commitment;
mod commitment_key;
mod key_file;
mod keys;
mod prove;
mod resident;
mod setup;
mod verify;

pub use circuit::{CommittedR1cs, CommittedR1csError, unbound_variables};
pub use commitment::{Commitment, CommitmentError, Opening, OpeningError, commit};
pub use commitment_key::CommitmentKey;
pub use key_file::ProvingKeyInfo;
pub use keys::{ProvingKey, VerifyingKey};
pub use prove::{Prover, complete, prove};
pub use resident::ResidentKey;
pub use setup::{Setup, setup};
pub use verify::{
    Claim, Inputs, PreparedInputs, PreparedVerifyingKey, verify, verify_batch, weighted_product,
};
