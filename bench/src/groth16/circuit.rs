//! Benchmark circuits: one with assignments like random numbers, one with assignments of bits.

use ark_ff::PrimeField;
use ark_relations::gr1cs::{
    ConstraintSynthesizer, ConstraintSystemRef, LinearCombination, SynthesisError,
};
use proofmill_circuits::gadgets::{Builder, Lc, Word};
use proofmill_circuits::sha256::hash_words;

/// Most constraints of one block of SHA-256: 17,471 of the compression, and 512 for the bits of a
/// private message.
const BLOCK_CONSTRAINTS: usize = 17_471 + 512;

/// Number of constraints and instance variables that make a digest public.
const DIGEST_CONSTRAINTS: usize = 32;

/// A kind of circuit.
#[derive(Clone, Copy, Debug, PartialEq, Eq, clap::ValueEnum)]
pub(super) enum Circuit {
    /// xᵢ₊₂ = xᵢ₊₁ · xᵢ: each value is like a random number
    Chain,
    /// The SHA-256 of a private message: nearly all values are bits
    Sha256,
}

/// A circuit of a size, with its witness.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Sized {
    /// A chain of `constraints` multiplications.
    Chain { constraints: usize },
    /// The SHA-256 of `blocks` blocks of 64 bytes, padding included.
    Sha256 { blocks: usize },
}

// === impl Circuit ===

impl Circuit {
    /// The largest circuit of this kind whose constraints and instance variables fit in a domain of
    /// 2^`log_n` points.
    pub(super) fn sized(self, log_n: u8) -> anyhow::Result<Sized> {
        let points = 1_usize << log_n;
        match self {
            // Two points are for the instance variables: the constant one and the last value.
            Self::Chain => Ok(Sized::Chain {
                constraints: points - 2,
            }),
            Self::Sha256 => {
                let blocks = (points - DIGEST_CONSTRAINTS.min(points)) / BLOCK_CONSTRAINTS;
                anyhow::ensure!(
                    blocks > 0,
                    "a block of SHA-256 takes {BLOCK_CONSTRAINTS} constraints: --log-n 15 or more"
                );
                Ok(Sized::Sha256 { blocks })
            }
        }
    }
}

// === impl Sized ===

impl Sized {
    /// The name of the kind in tables.
    pub(crate) const fn name(self) -> &'static str {
        match self {
            Self::Chain { .. } => "chain",
            Self::Sha256 { .. } => "sha256",
        }
    }

    /// The approximate number of constraints.
    pub(crate) const fn constraints(self) -> usize {
        match self {
            Self::Chain { constraints } => constraints,
            Self::Sha256 { blocks } => blocks * BLOCK_CONSTRAINTS,
        }
    }

    /// The size in the unit of the kind: constraints of a chain, blocks of SHA-256.
    pub(crate) const fn size(self) -> usize {
        match self {
            Self::Chain { constraints } => constraints,
            Self::Sha256 { blocks } => blocks,
        }
    }
}

impl<F: PrimeField> ConstraintSynthesizer<F> for Sized {
    fn generate_constraints(self, cs: ConstraintSystemRef<F>) -> Result<(), SynthesisError> {
        match self {
            Self::Chain { constraints } => chain(&cs, constraints),
            Self::Sha256 { blocks } => sha256(cs, blocks),
        }
    }
}

/// Constraints of a chain of products, of which the last one is public.
fn chain<F: PrimeField>(
    cs: &ConstraintSystemRef<F>,
    constraints: usize,
) -> Result<(), SynthesisError> {
    let mut values = [F::from(3_u64), F::from(5_u64)];
    for _ in 0..constraints {
        values = [values[1], values[0] * values[1]];
    }
    let last = cs.new_input_variable(|| Ok(values[1]))?;

    let mut values = [F::from(3_u64), F::from(5_u64)];
    let mut variables = [
        cs.new_witness_variable(|| Ok(values[0]))?,
        cs.new_witness_variable(|| Ok(values[1]))?,
    ];
    for step in 0..constraints {
        values = [values[1], values[0] * values[1]];
        let product = if step + 1 == constraints {
            last
        } else {
            cs.new_witness_variable(|| Ok(values[1]))?
        };
        let [left, right] = variables;
        cs.enforce_r1cs_constraint(
            || LinearCombination::from(left),
            || LinearCombination::from(right),
            || LinearCombination::from(product),
        )?;
        variables = [right, product];
    }
    Ok(())
}

/// Constraints of the SHA-256 of a private message. The digest is public, as eight numbers of 32 bits.
fn sha256<F: PrimeField>(cs: ConstraintSystemRef<F>, blocks: usize) -> Result<(), SynthesisError> {
    let b = &mut Builder::new(cs)?;
    // The padding of the last block takes 65 bits, in three words.
    let words = (0..16 * blocks as u32 - 3)
        .map(|index| Word::witness(b, index.wrapping_mul(0x9e37_79b9)))
        .collect::<Result<Vec<_>, _>>()?;
    for word in hash_words(b, &words)? {
        let input = b.input(F::from(word.value()))?;
        b.enforce_zero(|| {
            let mut difference = Lc::default().variable(-F::one(), input);
            difference.add_number(F::one(), &word.0);
            difference
        })?;
    }
    std::mem::replace(b, Builder::new(ConstraintSystemRef::None)?).finish()
}

#[cfg(test)]
mod tests {
    use super::*;
    use ark_bls12_381::Fr;
    use proofmill_r1cs::{Assignment, R1cs};

    #[test]
    fn circuits_fill_their_domains_and_are_satisfied() {
        for (circuit, log_n, points_min) in [
            (Circuit::Chain, 10, 1 << 10),
            (Circuit::Sha256, 15, 17_000),
            (Circuit::Sha256, 17, 120_000),
        ] {
            let sized = circuit.sized(log_n).unwrap();
            let r1cs = R1cs::<Fr>::from_circuit(sized).unwrap();
            let points = r1cs.num_constraints() + r1cs.num_instance();
            assert!(
                (points_min..=1 << log_n).contains(&points),
                "{circuit:?} {points}"
            );
            let assignment = Assignment::from_circuit(sized).unwrap();
            r1cs.is_satisfied(assignment.z()).unwrap();
        }
        assert!(Circuit::Sha256.sized(14).is_err());
    }
}
