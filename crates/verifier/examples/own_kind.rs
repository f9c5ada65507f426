//! A kind of proof of one's own, in one file: Schnorr signatures over Grumpkin, verified in batches
//! like any other proof.
//!
//! A signature (R, s) by the key P of a message holds if s·G − R − e·P is zero, where e is a hash of
//! all of them. That combination is the claim; under random weights the claims of a batch are one.
//!
//! `cargo run -p proofmill-verifier --example own_kind`

use std::sync::Arc;

use ark_ec::{CurveGroup, PrimeGroup, VariableBaseMSM};
use ark_ff::PrimeField;
use ark_grumpkin::{Affine as Point, Fr as Scalar, Projective as Sum};
use ark_serialize::{CanonicalDeserialize, CanonicalSerialize};
use ark_std::UniformRand;
use ark_std::rand::SeedableRng;
use ark_std::rand::rngs::StdRng;
use proofmill_verifier::isolation::Costs;
use proofmill_verifier::{
    Invalid, Kind, Kinds, NoRandomness, Options, Request, Service, UnusableKey, draw_weights,
};
use sha2::{Digest, Sha256};

/// Schnorr signatures: a key is a point, a statement is the message, a proof is R and s.
struct Schnorr;

/// s·G − R − e·P, not added up yet.
struct Claim {
    points: [Point; 3],
    scalars: [Scalar; 3],
}

/// Bytes of a compressed point and of a scalar.
const SIZE: usize = 32;

impl Kind for Schnorr {
    type Key = Point;
    type Claim = Claim;
    type Weight = Scalar;
    type Value = Sum;

    fn name(&self) -> &str {
        "schnorr-grumpkin"
    }

    fn has_keys(&self) -> bool {
        true
    }

    fn read_key(&self, bytes: &[u8]) -> Result<Point, UnusableKey> {
        point(bytes).map_err(UnusableKey::because)
    }

    fn reduce(
        &self,
        key: Option<&Arc<Point>>,
        message: &[u8],
        proof: &[u8],
    ) -> Result<Claim, Invalid> {
        let key = **key.ok_or(Invalid("no key".into()))?;
        let (commitment, response) = proof
            .split_at_checked(SIZE)
            .ok_or(Invalid("too short".into()))?;
        let commitment = point(commitment).map_err(|reason| Invalid(reason.into()))?;
        let response = match response.len() {
            SIZE => Scalar::deserialize_compressed(response).map_err(Invalid::because)?,
            _ => return Err(Invalid("s has 32 bytes".into())),
        };
        let challenge = challenge(&commitment, &key, message);
        Ok(Claim {
            points: [Sum::generator().into_affine(), commitment, key],
            scalars: [response, -Scalar::from(1), -challenge],
        })
    }

    fn draw_weights(&self, count: usize) -> Result<Vec<Scalar>, NoRandomness> {
        draw_weights(count)
    }

    fn times(&self, weight: &Scalar, factor: u64) -> Scalar {
        *weight * Scalar::from(factor)
    }

    fn value(&self, claims: &[(&Claim, Scalar)]) -> Sum {
        let points: Vec<_> = claims.iter().flat_map(|(claim, _)| claim.points).collect();
        let weighted = |(claim, weight): &(&Claim, Scalar)| claim.scalars.map(|it| it * *weight);
        let scalars: Vec<_> = claims.iter().flat_map(weighted).collect();
        Sum::msm_unchecked(&points, &scalars)
    }

    fn check(&self, claim: &Claim) -> Result<(), Invalid> {
        match self.value(&[(claim, Scalar::from(1))]) == Sum::default() {
            true => Ok(()),
            false => Err(Invalid(
                "the signature is not of this message and key".into(),
            )),
        }
    }

    fn costs(&self) -> Costs {
        Costs {
            fixed: 1.0,
            each: 1.0,
        }
    }
}

fn point(bytes: &[u8]) -> Result<Point, &'static str> {
    let point = (bytes.len() == SIZE).then(|| Point::deserialize_compressed(bytes).ok());
    point.flatten().ok_or("no compressed point")
}

fn challenge(commitment: &Point, key: &Point, message: &[u8]) -> Scalar {
    let mut hash = Sha256::new();
    hash.update(encoded(commitment));
    hash.update(encoded(key));
    hash.update(message);
    Scalar::from_le_bytes_mod_order(&hash.finalize())
}

fn encoded(value: &impl CanonicalSerialize) -> Vec<u8> {
    let mut bytes = Vec::new();
    value.serialize_compressed(&mut bytes).expect("memory");
    bytes
}

#[tokio::main]
async fn main() -> Result<(), Box<dyn std::error::Error>> {
    let (service, verifier) = Service::open(Options::of(Kinds::none().with(Schnorr)))?;
    let (trigger, shutdown) = proofmill_shutdown::channel();
    let running = tokio::spawn(service.run(shutdown));

    let rng = &mut StdRng::seed_from_u64(1);
    let secret = Scalar::rand(rng);
    let key = (Sum::generator() * secret).into_affine();
    let digest = verifier
        .add_key("me", "schnorr-grumpkin", encoded(&key).into())
        .await?;
    let mut pending = Vec::new();
    for number in 0..8_u64 {
        let message = number.to_be_bytes();
        let nonce = Scalar::rand(rng);
        let commitment = (Sum::generator() * nonce).into_affine();
        let mut response = nonce + challenge(&commitment, &key, &message) * secret;
        if number == 5 {
            response += Scalar::from(1);
        }
        let proof = [encoded(&commitment), encoded(&response)].concat();
        let request = Request::new("me", &number.to_string(), "schnorr-grumpkin", proof)
            .under(digest, message.to_vec());
        pending.push(verifier.submit(request).await?);
    }
    for (number, pending) in pending.into_iter().enumerate() {
        let verdict = pending.await;
        println!(
            "{number}: {} in a batch of {}",
            verdict.status.name(),
            verdict.stats.batch
        );
        assert_eq!(verdict.status.is_valid(), number != 5);
    }
    trigger.raise(proofmill_shutdown::Level::Drain);
    running.await?;
    Ok(())
}
