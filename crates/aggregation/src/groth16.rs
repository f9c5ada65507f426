//! Aggregates of plain Groth16 proofs, under one key or several (the use of SnarkPack,
//! eprint.iacr.org/2021/529).
//!
//! Proof i is under key κ(i) and has public inputs that the verifier knows:
//!
//! ```text
//! e(Aᵢ, Bᵢ) = e(α, β) · e(Sᵢ, γ) · e(Cᵢ, δ)         with α, β, γ, δ of κ(i)
//! ```
//!
//! **How it differs from SnarkPack**, which proves Σ rⁱ·Cᵢ by a second argument (MIPP) beside TIPP, for one key.
//! Here C is a column of [`mpp`](crate::mpp) like any other, against the vector of δ: X = (A, C), Y = (B, δ). So there
//! is one argument: two elements of the target group more in all instead of four for each round, nothing more
//! to fold, and several keys come for nothing, since the vector of δ has one value for each key. The commitment to it is made
//! with the key, from sums over the places of each key, in as many pairings as there are keys. The rest is
//! Z₀: for each key (Σ rⁱ)·e(α, β) and e(Σ rⁱ·Sᵢ, γ), sums over its proofs; e(α, β) is known beforehand. The verifier's
//! pairings are 8 and one for each key.

use ark_ec::CurveGroup;
use ark_ec::pairing::PairingOutput;
use ark_ff::{AdditiveGroup, Field};
use proofmill_groth16::{Proof, VerifyingKey};
use proofmill_kernels::{msm, pairing};

use crate::aggregate::{Aggregate, AggregateKind};
use crate::commitment::Commitment;
use crate::index::{
    AggregateProveError, AggregateVerifyError, IndexError, check_classes, check_count,
    commit_classes,
};
use crate::mirage::proofs_challenge;
use crate::mpp;
use crate::srs::{Srs, VerifierSrs, powers_of};
use crate::torus::AggregationCurve;
use crate::transcript::Transcript;

/// The most verifying keys of one aggregate. Each takes a pairing when a key is read, and one in every
/// verification.
pub const MAX_KEYS: usize = 1 << 12;

/// The key with which aggregates of n Groth16 proofs are made and verified: the verifying keys, and the
/// number of each proof's.
#[derive(Clone, Debug)]
pub struct Groth16Index<E: AggregationCurve> {
    pub(crate) srs: VerifierSrs<E>,
    pub(crate) keys: Vec<VerifyingKey<E>>,
    alpha_beta: Vec<PairingOutput<E>>,
    pub(crate) key_of: Vec<u32>,
    /// CM₂ of δ.
    pub(crate) delta: Commitment<E>,
    digest: [u8; 32],
}

// === impl Groth16Index ===

impl<E: AggregationCurve> Groth16Index<E> {
    /// An index for `key_of.len()` proofs, proof i under `keys[key_of[i]]`. The points of the keys must be in
    /// their groups, as those of decoded keys are.
    ///
    /// # Errors
    ///
    /// [`IndexError`] if the string is too small, an index in `key_of` is out of range, or a key is insecure.
    pub fn new(
        srs: &Srs<E>,
        keys: Vec<VerifyingKey<E>>,
        key_of: Vec<u32>,
    ) -> Result<Self, IndexError> {
        let commitment_key = srs.commitment_key(key_of.len())?;
        check_keys(&keys, &key_of)?;
        let deltas: Vec<_> = keys.iter().map(|key| key.delta_g2).collect();
        let delta = commit_classes(commitment_key, &key_of, &deltas);
        Ok(Self::assemble(srs.verifier(), keys, key_of, delta))
    }

    /// Assembles an index of checked keys and indices, and the commitment to δ.
    pub(crate) fn assemble(
        srs: VerifierSrs<E>,
        keys: Vec<VerifyingKey<E>>,
        key_of: Vec<u32>,
        delta: Commitment<E>,
    ) -> Self {
        let alpha_beta = keys.iter();
        let alpha_beta =
            alpha_beta.map(|key| pairing::product::<E>(&[key.alpha_g1], &[key.beta_g2]));
        let alpha_beta = alpha_beta.collect();
        let mut transcript = Transcript::new::<E>("groth16 key");
        transcript.absorb("reference string", &srs.digest());
        transcript.absorb_number("keys", keys.len() as u64);
        for key in &keys {
            transcript.absorb("key", &key.to_bytes());
        }
        let numbers: Vec<u8> = key_of.iter().flat_map(|key| key.to_le_bytes()).collect();
        transcript.absorb("key of each proof", &numbers);
        transcript.absorb_elements("delta", &delta.0);
        Self {
            srs,
            keys,
            alpha_beta,
            key_of,
            delta,
            digest: transcript.digest("digest"),
        }
    }

    /// A digest of all of the key.
    pub const fn digest(&self) -> [u8; 32] {
        self.digest
    }

    /// The number of proofs.
    pub fn count(&self) -> usize {
        self.key_of.len()
    }

    /// The verifying keys.
    pub fn keys(&self) -> &[VerifyingKey<E>] {
        &self.keys
    }

    /// For each proof, the index of its key among [`keys`](Self::keys).
    pub fn key_of(&self) -> &[u32] {
        &self.key_of
    }

    /// Proves that all proofs hold for their public inputs, given without the leading one. Of proofs that do
    /// not hold the aggregate does not verify.
    ///
    /// # Errors
    ///
    /// [`AggregateProveError`] if the string is not the key's, or the numbers are not.
    pub fn aggregate(
        &self,
        srs: &Srs<E>,
        inputs: &[Vec<E::ScalarField>],
        proofs: &[Proof<E>],
    ) -> Result<Aggregate<E>, AggregateProveError> {
        if srs.digest() != self.srs.digest() {
            return Err(AggregateProveError::OtherSrs);
        }
        check_count("proofs", self.count(), proofs.len())?;
        self.check_inputs(inputs)?;
        let key = srs.commitment_key(proofs.len())?;
        let (a, c): (Vec<_>, Vec<_>) = proofs.iter().map(|proof| (proof.a, proof.c)).unzip();
        let b: Vec<_> = proofs.iter().map(|proof| proof.b).collect();
        let both = key.commit_both(&a, &b);
        let of_c = key.commit_first(&c);
        let mut transcript = self.transcript(inputs);
        let r = proofs_challenge(&both, &of_c, &mut transcript);
        let vectors = mpp::Vectors {
            first: vec![&a, &c],
            second: &b,
            class_of: &self.key_of,
            constants: self.keys.iter().map(|key| vec![key.delta_g2]).collect(),
        };
        let products = mpp::prove(key, r, &vectors, &mut transcript);
        Ok(Aggregate {
            kind: AggregateKind::Groth16,
            both,
            c: of_c,
            products,
        })
    }

    /// Checks that there are proofs of all these public inputs, given without the leading one.
    ///
    /// # Errors
    ///
    /// [`AggregateVerifyError`] unless the aggregate shows it.
    pub fn verify(
        &self,
        inputs: &[Vec<E::ScalarField>],
        aggregate: &Aggregate<E>,
    ) -> Result<(), AggregateVerifyError> {
        if let Err(AggregateProveError::Count {
            what,
            expected,
            found,
        }) = self.check_inputs(inputs)
        {
            return Err(AggregateVerifyError::Count {
                what,
                expected,
                found,
            });
        }
        if aggregate.kind != AggregateKind::Groth16 {
            return Err(AggregateVerifyError::Invalid);
        }
        let mut transcript = self.transcript(inputs);
        let r: E::ScalarField = proofs_challenge(&aggregate.both, &aggregate.c, &mut transcript);
        let scalars = self.input_sums(inputs, r);
        let sums = self.keys.iter().zip(&scalars);
        let sums: Vec<_> = sums
            .map(|(key, scalars)| msm::<E::G1>(&key.instance, scalars))
            .collect();
        let gammas = self.keys.iter().map(|key| key.gamma_g2);
        let alpha_beta = self.alpha_beta.iter().zip(&scalars);
        let claim = mpp::Claim {
            size: self.count().next_power_of_two(),
            r,
            both: aggregate.both,
            first: vec![vec![(aggregate.c, E::ScalarField::ONE)]],
            second: vec![self.delta],
            product: alpha_beta.map(|(of, scalars)| (*of, scalars[0])).collect(),
            pairs: E::G1::normalize_batch(&sums)
                .into_iter()
                .zip(gammas)
                .collect(),
        };
        if mpp::verify(&self.srs, claim, &aggregate.products, &mut transcript) {
            Ok(())
        } else {
            Err(AggregateVerifyError::Invalid)
        }
    }

    /// For each key, Σ rⁱ·xᵢⱼ over its proofs, for the leading one and each public input j.
    fn input_sums(
        &self,
        inputs: &[Vec<E::ScalarField>],
        r: E::ScalarField,
    ) -> Vec<Vec<E::ScalarField>> {
        let keys = self.keys.iter();
        let mut sums: Vec<_> = keys
            .map(|key| vec![E::ScalarField::ZERO; key.instance.len()])
            .collect();
        let powers = powers_of(r, self.count());
        for ((inputs, key), power) in inputs.iter().zip(&self.key_of).zip(powers) {
            let (leading, rest) = sums[*key as usize]
                .split_first_mut()
                .expect("a key without points is not secure");
            *leading += power;
            for (sum, input) in rest.iter_mut().zip(inputs) {
                *sum += power * input;
            }
        }
        sums
    }

    /// Checks that there are as many public inputs as the keys have.
    pub(crate) fn check_inputs(
        &self,
        inputs: &[Vec<E::ScalarField>],
    ) -> Result<(), AggregateProveError> {
        check_count("lists of public inputs", self.count(), inputs.len())?;
        for (inputs, key) in inputs.iter().zip(&self.key_of) {
            let expected = self.keys[*key as usize].instance.len() - 1;
            check_count("public inputs of a proof", expected, inputs.len())?;
        }
        Ok(())
    }

    /// The statement.
    pub(crate) fn transcript(&self, inputs: &[Vec<E::ScalarField>]) -> Transcript {
        let mut transcript = Transcript::new::<E>("groth16 aggregate");
        transcript.absorb("key", &self.digest);
        transcript.absorb_number("proofs", self.count() as u64);
        for inputs in inputs {
            transcript.absorb_scalars("public inputs of a proof", inputs);
        }
        transcript
    }
}

/// Checks that every proof is under one of the keys, and that no key is known to be insecure.
pub(crate) fn check_keys<E: AggregationCurve>(
    keys: &[VerifyingKey<E>],
    key_of: &[u32],
) -> Result<(), IndexError> {
    if keys.len() > MAX_KEYS {
        return Err(IndexError::Keys(keys.len()));
    }
    check_classes(key_of, keys.len())?;
    for (key, of) in keys.iter().enumerate() {
        of.require_secure()
            .map_err(|source| IndexError::Insecure { key, source })?;
    }
    Ok(())
}
