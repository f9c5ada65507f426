//! The multi-point opening that ends a proof: many evaluations of many polynomials as one inner-product
//! argument.

use std::collections::{BTreeSet, HashMap};

use ark_ff::{AdditiveGroup, Field, One, Zero, batch_inversion};

use crate::transcript::Transcript;
use crate::{Invalid, Point, Scalar};

/// What is committed to.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) enum Commitment {
    /// By a point of the proof, by number.
    Own(usize),
    /// By a point of the key, by number.
    Key(usize),
    /// By the pieces of the quotient polynomial.
    Quotient,
}

/// Evaluations of polynomials, in the order in which they are asked for.
#[derive(Debug)]
pub(crate) struct Queries {
    /// By the first query of each.
    polynomials: Vec<Polynomial>,
    numbers: HashMap<Commitment, usize>,
    /// Rotations, below the number of rows, by the first query at each.
    rotations: Vec<u64>,
    /// Binary logarithm of the number of rows.
    k: u32,
}

/// A polynomial and its evaluations.
#[derive(Debug)]
struct Polynomial {
    commitment: Commitment,
    /// By the number of the rotation.
    evaluations: Vec<(usize, Scalar)>,
}

/// Polynomials that are evaluated at the same points, joined by powers of x₁.
struct Set {
    /// Numbers of rotations, in order.
    points: Vec<usize>,
    evaluations: Vec<Scalar>,
    /// The next power.
    power: Scalar,
}

/// The polynomials of an opening as one.
struct Joined {
    sets: Vec<Set>,
    /// For each polynomial its set and its power of x₁.
    coefficients: Vec<(usize, Scalar)>,
}

/// The opening as a combination of points.
pub(crate) struct Opening {
    /// For each polynomial its coefficient.
    pub(crate) coefficients: Vec<(Commitment, Scalar)>,
    /// Points of the opening, and theirs.
    pub(crate) points: Vec<Point>,
    pub(crate) scalars: Vec<Scalar>,
    /// As in a [`Claim`](crate::Claim).
    pub(crate) constant: Scalar,
    pub(crate) hiding: Scalar,
    pub(crate) value: Scalar,
    pub(crate) folded: Scalar,
    pub(crate) challenges: Vec<Scalar>,
}

// === impl Queries ===

impl Queries {
    /// None yet, of circuits of 2^k rows.
    pub(crate) fn new(k: u32) -> Self {
        Self {
            polynomials: Vec::new(),
            numbers: HashMap::new(),
            rotations: Vec::new(),
            k,
        }
    }

    /// That a polynomial has a value at ω^rotation·x.
    ///
    /// # Errors
    ///
    /// [`Invalid::Twice`] if it has one there already: with two of them it would have neither.
    pub(crate) fn push(
        &mut self,
        commitment: Commitment,
        rotation: i32,
        evaluation: Scalar,
    ) -> Result<(), Invalid> {
        let rotation = i64::from(rotation).rem_euclid(1 << self.k) as u64;
        let known = self.rotations.iter().position(|known| *known == rotation);
        let point = known.unwrap_or_else(|| {
            self.rotations.push(rotation);
            self.rotations.len() - 1
        });
        let number = *self.numbers.entry(commitment).or_insert_with(|| {
            self.polynomials.push(Polynomial {
                commitment,
                evaluations: Vec::new(),
            });
            self.polynomials.len() - 1
        });
        let evaluations = &mut self.polynomials[number].evaluations;
        if evaluations.iter().any(|(known, _)| *known == point) {
            return Err(Invalid::Twice);
        }
        evaluations.push((point, evaluation));
        Ok(())
    }

    /// Joins the polynomials of each set by powers of x₁, the last polynomial first.
    fn join(&self, x_1: Scalar) -> Joined {
        let mut sets: Vec<Set> = Vec::new();
        let mut numbers = Vec::with_capacity(self.polynomials.len());
        for polynomial in &self.polynomials {
            let points: BTreeSet<_> = polynomial.evaluations.iter().map(|(p, _)| *p).collect();
            let points: Vec<_> = points.into_iter().collect();
            let known = sets.iter().position(|set| set.points == points);
            numbers.push(known.unwrap_or_else(|| {
                sets.push(Set {
                    evaluations: vec![Scalar::ZERO; points.len()],
                    points,
                    power: Scalar::one(),
                });
                sets.len() - 1
            }));
        }
        let mut coefficients = vec![(0, Scalar::ZERO); numbers.len()];
        for (number, polynomial) in self.polynomials.iter().enumerate().rev() {
            let set = &mut sets[numbers[number]];
            coefficients[number] = (numbers[number], set.power);
            for (point, evaluation) in &polynomial.evaluations {
                let place = set.points.iter().position(|p| p == point);
                let place = place.expect("a point of the set");
                set.evaluations[place] += *evaluation * set.power;
            }
            set.power *= x_1;
        }
        Joined { sets, coefficients }
    }

    /// Reads the opening and reduces it (`poly/multiopen/verifier.rs` of halo2_proofs).
    pub(crate) fn open(
        &self,
        transcript: &mut Transcript<'_>,
        x: Scalar,
        omega: Scalar,
    ) -> Result<Opening, Invalid> {
        let x_1 = transcript.challenge();
        let x_2 = transcript.challenge();
        let joined = self.join(x_1);
        let quotient = transcript.point()?;
        let x_3 = transcript.challenge();
        let evaluations = transcript.scalars(joined.sets.len())?;
        let rotated = |rotation: &u64| x * omega.pow([*rotation]);
        let points: Vec<Scalar> = self.rotations.iter().map(rotated).collect();
        let mut value = Scalar::ZERO;
        for (set, evaluation) in joined.sets.iter().zip(&evaluations) {
            let term = set.quotient(&points, *evaluation, x_3);
            value = value * x_2 + term.ok_or(Invalid::Challenge)?;
        }
        let x_4 = transcript.challenge();
        // The quotient and then the sets, each by the next lower power of x₄.
        let mut powers = vec![Scalar::one()];
        for evaluation in &evaluations {
            value = value * x_4 + evaluation;
            powers.push(powers[powers.len() - 1] * x_4);
        }
        powers.reverse();
        let coefficient = |(polynomial, (set, power)): (&Polynomial, &(usize, Scalar))| {
            (polynomial.commitment, *power * powers[set + 1])
        };
        let joined = self.polynomials.iter().zip(&joined.coefficients);
        let mut opening = Opening {
            coefficients: joined.map(coefficient).collect(),
            points: vec![quotient],
            scalars: vec![powers[0]],
            constant: -value,
            hiding: Scalar::ZERO,
            value: Scalar::ZERO,
            folded: Scalar::ZERO,
            challenges: Vec::new(),
        };
        opening.read_argument(transcript, x_3, self.k)?;
        Ok(opening)
    }
}

// === impl Set ===

impl Set {
    /// `(evaluation − r(x₃)) / ∏(x₃ − p)`, where r has the set's evaluations at its points p. Nothing,
    /// if x₃ is one of them or they are not different.
    fn quotient(&self, points: &[Scalar], evaluation: Scalar, x_3: Scalar) -> Option<Scalar> {
        let points: Vec<Scalar> = self.points.iter().map(|number| points[*number]).collect();
        let vanishing: Scalar = points.iter().map(|point| x_3 - point).product();
        // r(x₃) = Σ evaluationᵢ·∏(x₃ − pⱼ)/(pᵢ − pⱼ), j ≠ i; the product by x₃ − pᵢ, too, is vanishing.
        let mut sum = evaluation * vanishing.inverse()?;
        for (i, (point, own)) in points.iter().zip(&self.evaluations).enumerate() {
            let others = points.iter().enumerate().filter(|(j, _)| *j != i);
            let differences: Scalar = others.map(|(_, other)| *point - other).product();
            sum -= *own * (differences * (x_3 - point)).inverse()?;
        }
        Some(sum)
    }
}

// === impl Opening ===

impl Opening {
    /// Reads the inner-product argument (`poly/commitment/verifier.rs` of halo2_proofs).
    fn read_argument(
        &mut self,
        transcript: &mut Transcript<'_>,
        x: Scalar,
        k: u32,
    ) -> Result<(), Invalid> {
        self.points.push(transcript.point()?);
        self.scalars.push(transcript.challenge());
        let z = transcript.challenge();
        for _ in 0..k {
            let round = transcript.points(2)?;
            self.points.extend(round);
            let challenge = transcript.challenge();
            if challenge.is_zero() {
                return Err(Invalid::Challenge);
            }
            self.challenges.push(challenge);
        }
        let mut inverses = self.challenges.clone();
        batch_inversion(&mut inverses);
        for (inverse, challenge) in inverses.iter().zip(&self.challenges) {
            self.scalars.extend([*inverse, *challenge]);
        }
        self.folded = -transcript.scalar()?;
        self.hiding = -transcript.scalar()?;
        // b: what the rounds fold the powers of x to.
        let (mut folded_power, mut power) = (Scalar::one(), x);
        for challenge in self.challenges.iter().rev() {
            folded_power *= Scalar::one() + *challenge * power;
            power.square_in_place();
        }
        self.value = self.folded * folded_power * z;
        Ok(())
    }
}
