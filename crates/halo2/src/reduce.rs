//! All the work that is for one proof: from its bytes to a combination of points that must be zero.
//!
//! Points and scalars are read, and challenges are drawn, in the order of `plonk/verifier.rs` of
//! halo2_proofs; the protocol is described in zcash.github.io/halo2, "Proving system".

use std::sync::Arc;

use ark_ff::{AdditiveGroup, Field, One, Zero};

use crate::arguments::{Challenges, Circuit, LookupEvaluations, Product, Rows, Shared};
use crate::opening::{Commitment, Opening, Queries};
use crate::transcript::Transcript;
use crate::{Claim, Invalid, Point, Scalar, VerifyingKey};

/// Commitments in a proof, which precede its evaluations. Numbers are indices into `points`.
struct Commitments {
    points: Vec<Point>,
    circuits: Vec<CircuitCommitments>,
    /// The polynomial that hides the quotient.
    random: usize,
    /// The first piece of the quotient.
    quotient: usize,
}

/// Places of one circuit's points.
#[derive(Default)]
struct CircuitCommitments {
    instance: usize,
    advice: usize,
    products: usize,
    /// Input and table of each lookup.
    lookups: usize,
    lookup_products: usize,
}

/// The evaluations that a proof contains.
struct ProofEvaluations {
    circuits: Vec<Circuit>,
    shared: Shared,
    random: Scalar,
}

/// Reduces a proof. `instances` are the commitments to the public inputs: the columns of the first circuit,
/// then those of the next.
pub(crate) fn reduce(
    key: &Arc<VerifyingKey>,
    instances: Vec<Point>,
    circuits: usize,
    proof: &[u8],
) -> Result<Claim, Invalid> {
    let mut transcript = Transcript::new(proof);
    transcript.add_scalar(&key.digest);
    for commitment in &instances {
        transcript.add_point(commitment)?;
    }
    let (commitments, challenges) = Commitments::read(key, instances, circuits, &mut transcript)?;
    let evaluated = ProofEvaluations::read(key, circuits, &mut transcript)?;
    let x = challenges.x;
    let power = (0..key.k).fold(x, |power, _| power.square());
    if x.is_zero() {
        return Err(Invalid::Challenge);
    }
    let rows = Rows::at(key, x, power).ok_or(Invalid::Challenge)?;
    let mut quotient = Scalar::ZERO;
    for circuit in &evaluated.circuits {
        circuit.join_constraints(&mut quotient, key, &evaluated.shared, rows, &challenges);
    }
    let vanishing = (power - Scalar::one()).inverse();
    quotient *= vanishing.ok_or(Invalid::Challenge)?;
    let queries = queries(key, &commitments, &evaluated, quotient)?;
    let opening = queries.open(&mut transcript, x, key.omega)?;
    transcript.expect_end()?;
    Ok(claim(key, commitments, opening, power))
}

// === impl Commitments ===

impl Commitments {
    fn read(
        key: &VerifyingKey,
        instances: Vec<Point>,
        count: usize,
        transcript: &mut Transcript<'_>,
    ) -> Result<(Self, Challenges), Invalid> {
        let mut points = instances;
        let mut circuits: Vec<CircuitCommitments> = (0..count)
            .map(|number| CircuitCommitments {
                instance: number * key.instance_columns,
                ..Default::default()
            })
            .collect();
        // Appends points, and gives the place of the first.
        let mut read = |transcript: &mut Transcript<'_>, count: usize| -> Result<usize, Invalid> {
            let place = points.len();
            points.extend(transcript.points(count)?);
            Ok(place)
        };
        for circuit in &mut circuits {
            circuit.advice = read(transcript, key.advice_columns)?;
        }
        let theta = transcript.challenge();
        for circuit in &mut circuits {
            circuit.lookups = read(transcript, 2 * key.lookups.len())?;
        }
        let beta = transcript.challenge();
        let gamma = transcript.challenge();
        for circuit in &mut circuits {
            circuit.products = read(transcript, key.permutation_products())?;
        }
        for circuit in &mut circuits {
            circuit.lookup_products = read(transcript, key.lookups.len())?;
        }
        let random = read(transcript, 1)?;
        let y = transcript.challenge();
        let quotient = read(transcript, key.quotient_pieces())?;
        let x = transcript.challenge();
        let challenges = Challenges {
            theta,
            beta,
            gamma,
            y,
            x,
        };
        let commitments = Self {
            points,
            circuits,
            random,
            quotient,
        };
        Ok((commitments, challenges))
    }
}

// === impl ProofEvaluations ===

impl ProofEvaluations {
    fn read(
        key: &VerifyingKey,
        count: usize,
        transcript: &mut Transcript<'_>,
    ) -> Result<Self, Invalid> {
        let mut circuits = vec![Circuit::default(); count];
        for circuit in &mut circuits {
            circuit.instance = transcript.scalars(key.instance_queries.len())?;
        }
        for circuit in &mut circuits {
            circuit.advice = transcript.scalars(key.advice_queries.len())?;
        }
        let fixed = transcript.scalars(key.fixed_queries.len())?;
        let random = transcript.scalar()?;
        let permutation = transcript.scalars(key.permutation.len())?;
        for circuit in &mut circuits {
            circuit.products = Product::read_all(key.permutation_products(), transcript)?;
        }
        for circuit in &mut circuits {
            let lookups = key.lookups.iter();
            let lookups = lookups.map(|_| LookupEvaluations::read(transcript));
            circuit.lookups = lookups.collect::<Result<_, _>>()?;
        }
        Ok(Self {
            circuits,
            shared: Shared { fixed, permutation },
            random,
        })
    }
}

/// The claimed evaluations of all polynomials, in the order in which the opening reads them.
fn queries(
    key: &VerifyingKey,
    commitments: &Commitments,
    evaluated: &ProofEvaluations,
    quotient: Scalar,
) -> Result<Queries, Invalid> {
    let mut queries = Queries::new(key.k);
    for (places, circuit) in commitments.circuits.iter().zip(&evaluated.circuits) {
        for (query, evaluation) in key.instance_queries.iter().zip(&circuit.instance) {
            let commitment = Commitment::Proof(places.instance + query.column);
            queries.push(commitment, query.rotation, *evaluation)?;
        }
        for (query, evaluation) in key.advice_queries.iter().zip(&circuit.advice) {
            let commitment = Commitment::Proof(places.advice + query.column);
            queries.push(commitment, query.rotation, *evaluation)?;
        }
        push_products(&mut queries, key, places, circuit)?;
        for (number, lookup) in circuit.lookups.iter().enumerate() {
            let product = Commitment::Proof(places.lookup_products + number);
            let [input, table] = [0, 1].map(|i| Commitment::Proof(places.lookups + 2 * number + i));
            queries.push(product, 0, lookup.product)?;
            queries.push(input, 0, lookup.input)?;
            queries.push(table, 0, lookup.table)?;
            queries.push(input, -1, lookup.input_before)?;
            queries.push(product, 1, lookup.product_next)?;
        }
    }
    for (query, evaluation) in key.fixed_queries.iter().zip(&evaluated.shared.fixed) {
        queries.push(Commitment::Key(query.column), query.rotation, *evaluation)?;
    }
    for (number, evaluation) in evaluated.shared.permutation.iter().enumerate() {
        let commitment = Commitment::Key(key.fixed_commitments.len() + number);
        queries.push(commitment, 0, *evaluation)?;
    }
    queries.push(Commitment::Quotient, 0, quotient)?;
    queries.push(Commitment::Proof(commitments.random), 0, evaluated.random)?;
    Ok(queries)
}

fn push_products(
    queries: &mut Queries,
    key: &VerifyingKey,
    places: &CircuitCommitments,
    circuit: &Circuit,
) -> Result<(), Invalid> {
    let commitment = |number| Commitment::Proof(places.products + number);
    for (number, product) in circuit.products.iter().enumerate() {
        queries.push(commitment(number), 0, product.here)?;
        queries.push(commitment(number), 1, product.next)?;
    }
    let last_row = -(key.blinding_factors as i32 + 1);
    for (number, product) in circuit.products.iter().enumerate().rev() {
        if let Some(last) = product.last {
            queries.push(commitment(number), last_row, last)?;
        }
    }
    Ok(())
}

/// Puts the opening's coefficients to the points; x^n is given.
fn claim(
    key: &Arc<VerifyingKey>,
    commitments: Commitments,
    opening: Opening,
    power: Scalar,
) -> Claim {
    let Commitments {
        mut points,
        quotient,
        ..
    } = commitments;
    let mut scalars = vec![Scalar::ZERO; points.len()];
    let key_points = key.fixed_commitments.len() + key.permutation_commitments.len();
    let mut key_scalars = vec![Scalar::ZERO; key_points];
    for (commitment, coefficient) in opening.coefficients {
        match commitment {
            Commitment::Proof(number) => scalars[number] += coefficient,
            Commitment::Key(number) => key_scalars[number] += coefficient,
            Commitment::Quotient => {
                let mut coefficient = coefficient;
                for scalar in &mut scalars[quotient..quotient + key.quotient_pieces()] {
                    *scalar += coefficient;
                    coefficient *= power;
                }
            }
        }
    }
    points.extend(opening.points);
    scalars.extend(opening.scalars);
    Claim {
        key: Arc::clone(key),
        constant: opening.constant,
        hiding: opening.hiding,
        value: opening.value,
        folded: opening.folded,
        challenges: opening.challenges,
        key_scalars,
        points,
        scalars,
    }
}
