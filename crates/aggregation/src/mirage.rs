//! Aggregates of Mirage proofs (section 5.3 and figure 6 of the Hekaton paper).
//!
//! Part i of n has a proof (Aᵢ, Bᵢ, Cᵢ), a commitment Dᵢ to a part of its witness, and is of a class with
//! γ, δ and η of its own; α and β are shared. It holds if
//!
//! ```text
//! e(Aᵢ, Bᵢ) = e(α, β) · e(Sᵢ, γ) · e(Cᵢ, δ) · e(Dᵢ, η),      Sᵢ = S₀ᵢ + x₁·S₁ᵢ + … + x_u·S_uᵢ
//! ```
//!
//! where x₁ … x_u are public inputs that all parts share, and the points Sⱼᵢ are known when the key is made: S₀ᵢ
//! covers the leading one and the constants of a part, such as its number. The verifying key has commitments to
//! the vectors Sⱼ, γ, δ and η, so its size does not depend on n.
//!
//! The commitment to all Dᵢ is made before the proof ([`MirageIndex::commit`]) and is part of the statement:
//! public inputs may be challenges derived from it. The proof is one of [`mpp`](crate::mpp) with X = (A, S, C, D),
//! Y = (B, γ, δ, η) and Z₀ = (Σ rⁱ)·e(α, β). A place beyond n has points at infinity for γ, δ and η, and the sum of
//! rⁱ is over n places: a prover's values there must satisfy e(A, B) = 1, and do not affect any part.

use ark_ec::AffineRepr;
use ark_ec::pairing::PairingOutput;
use proofmill_groth16::{Proof, VerifyingKey, mirage};
use proofmill_kernels::{fold, pairing};

use crate::aggregate::{Aggregate, AggregateKind};
use crate::commitment::Commitment;
use crate::index::{
    AggregateProveError, AggregateVerifyError, IndexError, check_classes, check_count,
    commit_classes,
};
use crate::mpp::{self, geometric_sum};
use crate::srs::{Srs, VerifierSrs};
use crate::torus::AggregationCurve;
use crate::transcript::Transcript;

/// The most vectors of public-input points, that with the coefficient one included.
pub const MAX_INPUTS: usize = 1 << 10;

/// A class of parts: what its verifying key has in the second group beside β.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct MirageClass<E: AggregationCurve> {
    /// γ.
    pub gamma: E::G2Affine,
    /// δ.
    pub delta: E::G2Affine,
    /// η.
    pub eta: E::G2Affine,
}

/// The n parts of a key, in their order.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct MirageParts<E: AggregationCurve> {
    /// α in the first group.
    pub alpha: E::G1Affine,
    /// β in the second group.
    pub beta: E::G2Affine,
    /// The classes.
    pub classes: Vec<MirageClass<E>>,
    /// The class of each part: n of them.
    pub class_of: Vec<u32>,
    /// S₀ … S_u, each with a point for each part. S₀ has the coefficient one.
    pub inputs: Vec<Vec<E::G1Affine>>,
}

/// A key to aggregate with.
#[derive(Clone, Debug)]
pub struct MirageIndex<E: AggregationCurve> {
    parts: MirageParts<E>,
    verifying_key: MirageVerifyingKey<E>,
}

/// A key to verify with: its size does not depend on the number of parts.
#[derive(Clone, Debug)]
pub struct MirageVerifyingKey<E: AggregationCurve> {
    pub(crate) srs: VerifierSrs<E>,
    pub(crate) count: usize,
    pub(crate) alpha_beta: PairingOutput<E>,
    /// CM₁ of S₀ … S_u.
    pub(crate) inputs: Vec<Commitment<E>>,
    /// CM₂ of γ, δ and η.
    pub(crate) constants: [Commitment<E>; 3],
    digest: [u8; 32],
}

/// The statement of an aggregate of Mirage proofs under a key: that all parts hold for these inputs, with
/// commitments that are committed to.
#[derive(Clone, Copy, Debug)]
pub struct MirageStatement<'a, E: AggregationCurve> {
    /// The protocol's messages before the aggregate, or their digest. The aggregate verifies with this context only.
    pub context: &'a [u8],
    /// The public inputs x₁ … x_u that all parts share.
    pub inputs: &'a [E::ScalarField],
    /// CM₁ of the parts' commitments D, of [`MirageIndex::commit`].
    pub commitment: &'a Commitment<E>,
}

// === impl MirageClass ===

impl<E: AggregationCurve> MirageClass<E> {
    /// γ, δ and η.
    pub(crate) fn constants(&self) -> Vec<E::G2Affine> {
        vec![self.gamma, self.delta, self.eta]
    }
}

// === impl MirageParts ===

impl<E: AggregationCurve> MirageParts<E> {
    /// Checks that the classes exist, and that there are points for each part.
    pub(crate) fn check_shape(&self) -> Result<(), IndexError> {
        check_classes(&self.class_of, self.classes.len())?;
        if self.inputs.is_empty() || self.inputs.len() > MAX_INPUTS {
            return Err(IndexError::Inputs(self.inputs.len()));
        }
        let expected = self.class_of.len();
        for (input, points) in self.inputs.iter().enumerate() {
            if points.len() != expected {
                return Err(IndexError::InputPoints {
                    input,
                    expected,
                    found: points.len(),
                });
            }
        }
        Ok(())
    }

    /// Checks that no class has a key that is known to be insecure.
    fn require_secure(&self) -> Result<(), IndexError> {
        for (number, class) in self.classes.iter().enumerate() {
            let key = mirage::VerifyingKey::<E> {
                plain: VerifyingKey {
                    circuit: [0; 32],
                    alpha_g1: self.alpha,
                    beta_g2: self.beta,
                    gamma_g2: class.gamma,
                    delta_g2: class.delta,
                    // Points of inputs are looked at where the key itself is.
                    instance: vec![E::G1Affine::generator()],
                },
                eta_g2: class.eta,
                committed: 0,
            };
            key.require_secure()
                .map_err(|source| IndexError::Insecure {
                    key: number,
                    source,
                })?;
        }
        Ok(())
    }
}

// === impl MirageIndex ===

impl<E: AggregationCurve> MirageIndex<E> {
    /// Makes the keys for these parts (Agg.G of figure 6). A verifier without trust in another's key makes its own.
    ///
    /// # Errors
    ///
    /// [`IndexError`] if the string is too small or the parts are inconsistent.
    pub fn new(srs: &Srs<E>, parts: MirageParts<E>) -> Result<Self, IndexError> {
        let count = parts.class_of.len();
        let key = srs.commitment_key(count)?;
        parts.check_shape()?;
        parts.require_secure()?;
        let constants = [
            |class: &MirageClass<E>| class.gamma,
            |class: &MirageClass<E>| class.delta,
            |class: &MirageClass<E>| class.eta,
        ];
        let constants = constants.map(|of| {
            let values: Vec<_> = parts.classes.iter().map(of).collect();
            commit_classes(key, &parts.class_of, &values)
        });
        let inputs = parts.inputs.iter();
        let inputs = inputs.map(|points| key.commit_first(points)).collect();
        let alpha_beta = pairing::product::<E>(&[parts.alpha], &[parts.beta]);
        let srs = srs.verifier();
        let verifying_key = MirageVerifyingKey::new(srs, count, alpha_beta, inputs, constants);
        Ok(Self {
            parts,
            verifying_key,
        })
    }

    /// The key to verify with.
    pub const fn verifying_key(&self) -> &MirageVerifyingKey<E> {
        &self.verifying_key
    }

    /// The parts.
    pub const fn parts(&self) -> &MirageParts<E> {
        &self.parts
    }

    /// CM₁ of the parts' commitments D (Agg.C of figure 6).
    ///
    /// # Errors
    ///
    /// [`AggregateProveError`] if the string is not the key's, or there is not one for each part.
    pub fn commit(
        &self,
        srs: &Srs<E>,
        d: &[E::G1Affine],
    ) -> Result<Commitment<E>, AggregateProveError> {
        self.check(srs, "commitments", d.len())?;
        Ok(srs.commitment_key(d.len())?.commit_first(d))
    }

    /// Proves the statement (Agg.P of figure 6). Of proofs that do not hold the aggregate does not verify.
    ///
    /// # Errors
    ///
    /// [`AggregateProveError`] if the string is not the key's, or the numbers are not.
    pub fn aggregate(
        &self,
        srs: &Srs<E>,
        statement: MirageStatement<'_, E>,
        proofs: &[Proof<E>],
        d: &[E::G1Affine],
    ) -> Result<Aggregate<E>, AggregateProveError> {
        self.check(srs, "commitments", d.len())?;
        self.check(srs, "proofs", proofs.len())?;
        let expected = self.parts.inputs.len() - 1;
        check_count("shared public inputs", expected, statement.inputs.len())?;
        let key = srs.commitment_key(proofs.len())?;
        let (a, c): (Vec<_>, Vec<_>) = proofs.iter().map(|proof| (proof.a, proof.c)).unzip();
        let b: Vec<_> = proofs.iter().map(|proof| proof.b).collect();
        let both = key.commit_both(&a, &b);
        let of_c = key.commit_first(&c);
        let s = combined_inputs::<E>(&self.parts.inputs, statement.inputs);
        let mut transcript = self.verifying_key.transcript(statement);
        let r = proofs_challenge(&both, &of_c, &mut transcript);
        let vectors = mpp::Vectors {
            first: vec![&a, &s, &c, d],
            second: &b,
            class_of: &self.parts.class_of,
            constants: self.constants(),
        };
        let products = mpp::prove(key, r, &vectors, &mut transcript);
        Ok(Aggregate {
            kind: AggregateKind::Mirage,
            both,
            c: of_c,
            products,
        })
    }

    /// γ, δ and η of each class.
    fn constants(&self) -> Vec<Vec<E::G2Affine>> {
        let classes = self.parts.classes.iter();
        classes.map(MirageClass::constants).collect()
    }

    fn check(
        &self,
        srs: &Srs<E>,
        what: &'static str,
        found: usize,
    ) -> Result<(), AggregateProveError> {
        if srs.digest() != self.verifying_key.srs.digest() {
            return Err(AggregateProveError::OtherSrs);
        }
        check_count(what, self.verifying_key.count, found)
    }
}

// === impl MirageVerifyingKey ===

impl<E: AggregationCurve> MirageVerifyingKey<E> {
    pub(crate) fn new(
        srs: VerifierSrs<E>,
        count: usize,
        alpha_beta: PairingOutput<E>,
        inputs: Vec<Commitment<E>>,
        constants: [Commitment<E>; 3],
    ) -> Self {
        let mut transcript = Transcript::new::<E>("mirage key");
        transcript.absorb("reference string", &srs.digest());
        transcript.absorb_number("parts", count as u64);
        transcript.absorb_elements("e(alpha, beta)", &[alpha_beta]);
        transcript.absorb_number("inputs", inputs.len() as u64);
        for commitment in &inputs {
            transcript.absorb_elements("commitment to an input", &commitment.0);
        }
        for (commitment, label) in constants.iter().zip(["gamma", "delta", "eta"]) {
            transcript.absorb_elements(label, &commitment.0);
        }
        Self {
            srs,
            count,
            alpha_beta,
            inputs,
            constants,
            digest: transcript.digest("digest"),
        }
    }

    /// The number of parts.
    pub const fn count(&self) -> usize {
        self.count
    }

    /// The number of public inputs that all parts share.
    pub const fn shared_inputs(&self) -> usize {
        self.inputs.len() - 1
    }

    /// A digest of all of the key.
    pub const fn digest(&self) -> [u8; 32] {
        self.digest
    }

    /// Checks that the aggregate shows the statement (Agg.V of figure 6).
    ///
    /// # Errors
    ///
    /// [`AggregateVerifyError`] unless they do.
    pub fn verify(
        &self,
        statement: MirageStatement<'_, E>,
        aggregate: &Aggregate<E>,
    ) -> Result<(), AggregateVerifyError> {
        let inputs = statement.inputs;
        if inputs.len() != self.shared_inputs() {
            return Err(AggregateVerifyError::Count {
                what: "shared public inputs",
                expected: self.shared_inputs(),
                found: inputs.len(),
            });
        }
        if aggregate.kind != AggregateKind::Mirage {
            return Err(AggregateVerifyError::Invalid);
        }
        let mut transcript = self.transcript(statement);
        let r: E::ScalarField = proofs_challenge(&aggregate.both, &aggregate.c, &mut transcript);
        let one = E::ScalarField::from(1u64);
        let scalars = std::iter::once(&one).chain(inputs);
        let s = self.inputs.iter().copied().zip(scalars.copied());
        let claim = mpp::Claim {
            size: self.count.next_power_of_two(),
            r,
            both: aggregate.both,
            first: vec![
                s.collect(),
                vec![(aggregate.c, one)],
                vec![(*statement.commitment, one)],
            ],
            second: self.constants.to_vec(),
            product: vec![(self.alpha_beta, geometric_sum(r, self.count))],
            pairs: Vec::new(),
        };
        if mpp::verify(&self.srs, claim, &aggregate.products, &mut transcript) {
            Ok(())
        } else {
            Err(AggregateVerifyError::Invalid)
        }
    }

    /// The statement.
    pub(crate) fn transcript(&self, statement: MirageStatement<'_, E>) -> Transcript {
        let mut transcript = Transcript::new::<E>("mirage aggregate");
        transcript.absorb("key", &self.digest);
        transcript.absorb_number("proofs", self.count as u64);
        transcript.absorb("context", statement.context);
        transcript.absorb_scalars("shared public inputs", statement.inputs);
        transcript.absorb_elements("commitment to D", &statement.commitment.0);
        transcript
    }
}

/// S₀ + x₁·S₁ + … + x_u·S_u.
pub(crate) fn combined_inputs<E: AggregationCurve>(
    points: &[Vec<E::G1Affine>],
    inputs: &[E::ScalarField],
) -> Vec<E::G1Affine> {
    let mut s = points[0].clone();
    for (points, input) in points[1..].iter().zip(inputs) {
        s = fold::<E::G1>(&s, points, *input);
    }
    s
}

/// r, when the commitments to the proofs are fixed.
pub(crate) fn proofs_challenge<E: AggregationCurve>(
    both: &Commitment<E>,
    c: &Commitment<E>,
    transcript: &mut Transcript,
) -> E::ScalarField {
    transcript.absorb_elements("commitment to A and B", &both.0);
    transcript.absorb_elements("commitment to C", &c.0);
    transcript.scalar("r")
}
