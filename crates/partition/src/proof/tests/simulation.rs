//! Zero knowledge: with the trapdoor of the classes' keys, proofs of any statement can be made without a witness,
//! and both verifiers accept them. So a proof reveals nothing beyond the statement.

use ark_ec::{CurveGroup, PrimeGroup};
use ark_ff::{Field, UniformRand, Zero};
use proofmill_aggregation::MirageStatement;
use proofmill_groth16::mirage::VerifyingKey as ClassKey;
use proofmill_groth16::{Bls12_381, Bn254, Proof};

use super::case::{rng, srs, verdict};
use crate::Partition;
use crate::proof::{Index, PartitionCurve, PartitionProof, SHARED};
use crate::tests::chain::Chain;
use crate::tree::{ARITY, Path, compress};

/// Secrets of a class's key.
struct Trapdoor<F> {
    gamma: F,
    delta: F,
    eta: F,
    /// The logarithm of each instance variable's point.
    instance: Vec<F>,
}

fn first<E: PartitionCurve>(logarithm: E::ScalarField) -> E::G1Affine {
    (E::G1::generator() * logarithm).into_affine()
}

fn second<E: PartitionCurve>(logarithm: E::ScalarField) -> E::G2Affine {
    (E::G2::generator() * logarithm).into_affine()
}

fn simulated<E: PartitionCurve>(parts: usize) {
    let rng = &mut rng(8);
    let partition = Partition::<E::ScalarField>::new(&Chain::blank(parts)).unwrap();
    let (alpha, beta) = (E::ScalarField::rand(rng), E::ScalarField::rand(rng));
    let mut trapdoors = Vec::new();
    let mut keys = Vec::new();
    for class in partition.classes() {
        let mut draw = || E::ScalarField::rand(rng);
        let (gamma, delta, eta) = (draw(), draw(), draw());
        let instance: Vec<_> = (0..class.system().num_instance()).map(|_| draw()).collect();
        keys.push(ClassKey::<E> {
            plain: proofmill_groth16::VerifyingKey {
                circuit: class.digest(),
                alpha_g1: first::<E>(alpha),
                beta_g2: second::<E>(beta),
                gamma_g2: second::<E>(gamma),
                delta_g2: second::<E>(delta),
                instance: instance.iter().map(|of| first::<E>(*of)).collect(),
            },
            eta_g2: second::<E>(eta),
            committed: class.layout().committed,
        });
        trapdoors.push(Trapdoor {
            gamma,
            delta,
            eta,
            instance,
        });
    }
    let srs = srs::<E>(parts, 1);
    let index = Index::new(partition, keys, &srs).unwrap();
    // Except by chance, no witness has these public inputs.
    let inputs: Vec<_> = (0..3).map(|_| E::ScalarField::rand(rng)).collect();

    let d: Vec<_> = (0..parts).map(|_| E::ScalarField::rand(rng)).collect();
    let points: Vec<_> = d.iter().map(|d| first::<E>(*d)).collect();
    let commitment = index.parts().commit(&srs, &points).unwrap();
    let statement = index.verifying_key().statement(&inputs, &commitment);
    let public = index.partition().public_state();
    let leaf = public.leaf(&inputs, &statement.challenges()).unwrap();
    let mut node = leaf.hash();
    let children = (0..public.depth()).map(|_| {
        let mut four = [E::ScalarField::zero(); ARITY].map(|_| E::ScalarField::rand(rng));
        four[0] = node;
        node = compress(&four);
        four
    });
    let public_path = Path::new(children.collect());
    let shared = statement.shared(node);
    assert_eq!(shared.len(), SHARED);
    let proofs: Vec<Proof<E>> = (0..parts)
        .map(|part| {
            let partition = index.partition();
            let trapdoor = &trapdoors[partition.class_of(part).unwrap()];
            let instance = partition.instance(part, node, &statement.challenges());
            let s: E::ScalarField = trapdoor
                .instance
                .iter()
                .zip(instance.unwrap())
                .map(|(p, x)| *p * x)
                .sum();
            let (a, b) = (E::ScalarField::rand(rng), E::ScalarField::rand(rng));
            let rest = a * b - alpha * beta - s * trapdoor.gamma - d[part] * trapdoor.eta;
            Proof {
                a: first::<E>(a),
                b: second::<E>(b),
                c: first::<E>(rest * trapdoor.delta.inverse().unwrap()),
            }
        })
        .collect();
    let of_parts = MirageStatement {
        context: &statement.context(node, &public_path),
        inputs: &shared,
        commitment: &commitment,
    };
    let aggregate = index
        .parts()
        .aggregate(&srs, of_parts, &proofs, &points)
        .unwrap();
    let proof = PartitionProof {
        commitment,
        root: node,
        public_path,
        aggregate,
    };
    let key = index.verifying_key().to_bytes();
    assert!(verdict::<E>(&key, &inputs, &proof.to_bytes()));
}

#[test]
fn a_simulator_s_proof_is_accepted() {
    simulated::<Bn254>(5);
    simulated::<Bls12_381>(2);
}
