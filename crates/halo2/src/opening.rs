//! The multi-point opening that ends a proof: many evaluations of many polynomials as one inner-product
//! argument.

use std::collections::HashMap;

use ark_ff::{AdditiveGroup, Field, One, Zero, batch_inversion};

use crate::transcript::Transcript;
use crate::{Invalid, Point, Scalar};

/// A polynomial of a proof, by the origin of its commitment.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) enum Commitment {
    /// The polynomial committed to by the proof's point of this number.
    Proof(usize),
    /// The polynomial committed to by the key's point of this number.
    Key(usize),
    /// The quotient polynomial, committed to in pieces.
    Quotient,
}

/// Claimed evaluations of polynomials, in the order in which they were pushed.
#[derive(Debug)]
pub(crate) struct Queries {
    /// The polynomials, in the order of the first query of each.
    polynomials: Vec<Polynomial>,
    numbers: HashMap<Commitment, usize>,
    /// Distinct rotations, each below the number of rows, in the order of the first query at each: those of the
    /// key's queries, at most 64, and four more.
    rotations: Vec<u64>,
    /// Binary logarithm of the number of rows.
    k: u32,
}

/// A polynomial and its evaluations.
#[derive(Debug)]
struct Polynomial {
    commitment: Commitment,
    points: Points,
    /// Evaluations, each with the index of its rotation.
    evaluations: Vec<(u32, Scalar)>,
}

/// Numbers of rotations: a bit for each.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
struct Points(u128);

/// Polynomials that are evaluated at the same points, combined by powers of x₁.
struct Set {
    points: Points,
    /// Evaluations, in the order of the set's rotations.
    evaluations: Vec<Scalar>,
    /// The next power.
    power: Scalar,
}

/// The polynomials of an opening as one.
struct CombinedPolynomials {
    sets: Vec<Set>,
    /// The set and the power of x₁ of each polynomial.
    coefficients: Vec<(usize, Scalar)>,
}

/// The opening as a combination of points.
pub(crate) struct Opening {
    /// The coefficient of each polynomial.
    pub(crate) coefficients: Vec<(Commitment, Scalar)>,
    /// Points of the opening, and theirs.
    pub(crate) points: Vec<Point>,
    pub(crate) scalars: Vec<Scalar>,
    /// The same as in a [`Claim`](crate::Claim).
    pub(crate) constant: Scalar,
    pub(crate) hiding: Scalar,
    pub(crate) value: Scalar,
    pub(crate) folded: Scalar,
    pub(crate) challenges: Vec<Scalar>,
}

// === impl Queries ===

impl Queries {
    /// No queries yet, for circuits of 2^k rows.
    pub(crate) fn new(k: u32) -> Self {
        Self {
            polynomials: Vec::new(),
            numbers: HashMap::new(),
            rotations: Vec::new(),
            k,
        }
    }

    /// Adds the claim that a polynomial has a value at ω^rotation·x.
    ///
    /// # Errors
    ///
    /// [`Invalid::DuplicateQuery`] if there is already a claim for this polynomial and rotation: with two claims,
    /// neither would be proved.
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
        }) as u32;
        let number = *self.numbers.entry(commitment).or_insert_with(|| {
            self.polynomials.push(Polynomial {
                commitment,
                points: Points::default(),
                evaluations: Vec::new(),
            });
            self.polynomials.len() - 1
        });
        let polynomial = &mut self.polynomials[number];
        if !polynomial.points.insert(point) {
            return Err(Invalid::DuplicateQuery);
        }
        polynomial.evaluations.push((point, evaluation));
        Ok(())
    }

    /// Joins the polynomials of each set by powers of x₁, the last polynomial first.
    fn combine(&self, x_1: Scalar) -> CombinedPolynomials {
        let mut sets: Vec<Set> = Vec::new();
        let mut known: HashMap<Points, usize> = HashMap::new();
        let mut numbers = Vec::with_capacity(self.polynomials.len());
        for Polynomial { points, .. } in &self.polynomials {
            numbers.push(*known.entry(*points).or_insert_with(|| {
                sets.push(Set {
                    evaluations: vec![Scalar::ZERO; points.0.count_ones() as usize],
                    points: *points,
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
                set.evaluations[set.points.place(*point)] += *evaluation * set.power;
            }
            set.power *= x_1;
        }
        CombinedPolynomials { sets, coefficients }
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
        let combined = self.combine(x_1);
        let quotient = transcript.point()?;
        let x_3 = transcript.challenge();
        let evaluations = transcript.scalars(combined.sets.len())?;
        let rotated = |rotation: &u64| x * omega.pow([*rotation]);
        let points: Vec<Scalar> = self.rotations.iter().map(rotated).collect();
        let mut value = Scalar::ZERO;
        for (set, evaluation) in combined.sets.iter().zip(&evaluations) {
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
        let polynomials = self.polynomials.iter().zip(&combined.coefficients);
        let mut opening = Opening {
            coefficients: polynomials.map(coefficient).collect(),
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

// === impl Points ===

impl Points {
    /// Adds the point of this number; true if it was not in the set.
    fn insert(&mut self, number: u32) -> bool {
        let before = self.0;
        self.0 |= 1 << number;
        self.0 != before
    }

    /// The number of points in the set whose number is lower.
    fn place(self, number: u32) -> usize {
        (self.0 & ((1 << number) - 1)).count_ones() as usize
    }

    /// The points in the set, selected from `all` by number.
    fn of(self, all: &[Scalar]) -> Vec<Scalar> {
        let numbered = all.iter().enumerate();
        let own = numbered.filter(|(number, _)| self.0 >> number & 1 != 0);
        own.map(|(_, point)| *point).collect()
    }
}

// === impl Set ===

impl Set {
    /// `(evaluation − r(x₃)) / ∏(x₃ − p)`, where r has the set's evaluations at its points p. `None` if x₃ is
    /// one of the points or two of them are equal.
    fn quotient(&self, points: &[Scalar], evaluation: Scalar, x_3: Scalar) -> Option<Scalar> {
        let points = self.points.of(points);
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
        // b: the powers of x, folded by the rounds.
        let (mut folded_power, mut power) = (Scalar::one(), x);
        for challenge in self.challenges.iter().rev() {
            folded_power *= Scalar::one() + *challenge * power;
            power.square_in_place();
        }
        self.value = self.folded * folded_power * z;
        Ok(())
    }
}
