//! Statements of Mirage's shape that hold, made from known logarithms; no circuit is needed.

use ark_ec::pairing::Pairing;
use ark_ec::{CurveGroup, PrimeGroup};
use ark_ff::{Field, UniformRand};
use ark_std::rand::rngs::StdRng;
use ark_std::rand::{Rng, SeedableRng};
use proofmill_aggregation::{
    Aggregate, AggregationCurve, Commitment, MirageClass, MirageIndex, MirageParts,
    MirageStatement, Srs,
};
use proofmill_groth16::Proof;

/// Parts, their shared public inputs, and what proves them.
#[derive(Clone)]
pub(crate) struct Case<E: AggregationCurve> {
    pub(crate) parts: MirageParts<E>,
    pub(crate) inputs: Vec<E::ScalarField>,
    pub(crate) proofs: Vec<Proof<E>>,
    pub(crate) d: Vec<E::G1Affine>,
}

/// A case with its keys, commitment and aggregate.
pub(crate) struct Proved<E: AggregationCurve> {
    pub(crate) index: MirageIndex<E>,
    pub(crate) commitment: Commitment<E>,
    pub(crate) aggregate: Aggregate<E>,
}

pub(crate) fn rng(seed: u64) -> StdRng {
    StdRng::seed_from_u64(seed)
}

pub(crate) fn srs<E: AggregationCurve>(capacity: usize) -> Srs<E> {
    Srs::setup(capacity, &mut rng(capacity as u64)).unwrap()
}

pub(crate) fn first<E: Pairing>(scalar: E::ScalarField) -> E::G1Affine {
    (E::G1::generator() * scalar).into_affine()
}

pub(crate) fn second<E: Pairing>(scalar: E::ScalarField) -> E::G2Affine {
    (E::G2::generator() * scalar).into_affine()
}

/// The context of all statements that no test changes.
pub(crate) const CONTEXT: &[u8] = b"what was said before";

pub(crate) const fn statement<'a, E: AggregationCurve>(
    inputs: &'a [E::ScalarField],
    commitment: &'a Commitment<E>,
) -> MirageStatement<'a, E> {
    MirageStatement {
        context: CONTEXT,
        inputs,
        commitment,
    }
}

// === impl Case ===

impl<E: AggregationCurve> Case<E> {
    /// `count` parts of random classes, with `shared` public inputs.
    pub(crate) fn random(rng: &mut StdRng, count: usize, classes: usize, shared: usize) -> Self {
        let mut draw = || E::ScalarField::rand(rng);
        let (alpha, beta) = (draw(), draw());
        let secrets: Vec<[E::ScalarField; 3]> =
            (0..classes).map(|_| [draw(), draw(), draw()]).collect();
        let inputs: Vec<_> = (0..shared).map(|_| draw()).collect();
        let class_of: Vec<u32> = (0..count)
            .map(|_| rng.gen_range(0..classes as u32))
            .collect();
        let mut points = vec![Vec::new(); shared + 1];
        let (mut proofs, mut d) = (Vec::new(), Vec::new());
        for class in &class_of {
            let [gamma, delta, eta] = secrets[*class as usize];
            let mut draw = || E::ScalarField::rand(rng);
            let mut s = E::ScalarField::from(0u64);
            for (number, points) in points.iter_mut().enumerate() {
                let scalar = draw();
                points.push(first::<E>(scalar));
                s += match number {
                    0 => scalar,
                    number => inputs[number - 1] * scalar,
                };
            }
            let (a, b, of_d) = (draw(), draw(), draw());
            let rest = a * b - alpha * beta - s * gamma - of_d * eta;
            let c = rest * delta.inverse().unwrap();
            proofs.push(Proof {
                a: first::<E>(a),
                b: second::<E>(b),
                c: first::<E>(c),
            });
            d.push(first::<E>(of_d));
        }
        let classes = secrets.iter().map(|secrets| {
            let [gamma, delta, eta] = secrets.map(second::<E>);
            MirageClass { gamma, delta, eta }
        });
        Self {
            parts: MirageParts {
                alpha: first::<E>(alpha),
                beta: second::<E>(beta),
                classes: classes.collect(),
                class_of,
                inputs: points,
            },
            inputs,
            proofs,
            d,
        }
    }

    /// True if every part's equation holds, by arkworks' pairings.
    pub(crate) fn holds(&self) -> bool {
        let parts = &self.parts;
        (0..self.proofs.len()).all(|part| {
            let class = &parts.classes[parts.class_of[part] as usize];
            let mut s: E::G1 = parts.inputs[0][part].into();
            for (points, input) in parts.inputs[1..].iter().zip(&self.inputs) {
                s += points[part] * input;
            }
            let proof = &self.proofs[part];
            let right = E::multi_pairing(
                [parts.alpha, s.into_affine(), proof.c, self.d[part]],
                [parts.beta, class.gamma, class.delta, class.eta],
            );
            E::pairing(proof.a, proof.b) == right
        })
    }

    pub(crate) fn prove(&self, srs: &Srs<E>) -> Proved<E> {
        let index = MirageIndex::new(srs, self.parts.clone()).unwrap();
        self.prove_with(srs, index)
    }

    pub(crate) fn statement<'a>(&'a self, commitment: &'a Commitment<E>) -> MirageStatement<'a, E> {
        statement(&self.inputs, commitment)
    }

    /// Proves with a given index, whose key may be for other parts.
    pub(crate) fn prove_with(&self, srs: &Srs<E>, index: MirageIndex<E>) -> Proved<E> {
        let commitment = index.commit(srs, &self.d).unwrap();
        let aggregate = index
            .aggregate(srs, self.statement(&commitment), &self.proofs, &self.d)
            .unwrap();
        Proved {
            index,
            commitment,
            aggregate,
        }
    }
}

// === impl Proved ===

impl<E: AggregationCurve> Proved<E> {
    pub(crate) fn verifies(&self, inputs: &[E::ScalarField]) -> bool {
        let key = self.index.verifying_key();
        key.verify(statement(inputs, &self.commitment), &self.aggregate)
            .is_ok()
    }
}
