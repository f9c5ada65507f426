//! Benchmark circuits: one with assignments like random numbers, one with assignments of bits.

use ark_ff::PrimeField;
use ark_relations::gr1cs::{
    ConstraintSynthesizer, ConstraintSystemRef, LinearCombination, SynthesisError,
};
use proofmill_circuits::gadgets::{Builder, Lc, Word};
use proofmill_circuits::sha256::hash_words;

/// The constraints of one block of SHA-256, at most: 17,471 for its compression, 512 for the bits
/// of a private message.
const BLOCK: usize = 17_471 + 512;

/// The constraints and instance variables that join a digest to public inputs.
const DIGEST: usize = 32;

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
    /// So many multiplications.
    Chain { constraints: usize },
    /// So many blocks of 64 bytes, padding included.
    Sha256 { blocks: usize },
}

// === impl Circuit ===

impl Circuit {
    /// The largest of its kind whose constraints and instance variables a domain of 2^`log_n`
    /// points holds.
    pub(super) fn sized(self, log_n: u8) -> anyhow::Result<Sized> {
        let points = 1_usize << log_n;
        match self {
            // Two of them are instance variables: the constant one and the last value.
            Self::Chain => Ok(Sized::Chain {
                constraints: points - 2,
            }),
            Self::Sha256 => {
                let blocks = (points - DIGEST.min(points)) / BLOCK;
                anyhow::ensure!(
                    blocks > 0,
                    "a block of SHA-256 takes {BLOCK} constraints: --log-n 15 or more"
                );
                Ok(Sized::Sha256 { blocks })
            }
        }
    }
}

// === impl Sized ===

impl Sized {
    /// As tables have it.
    pub(crate) const fn name(self) -> &'static str {
        match self {
            Self::Chain { .. } => "chain",
            Self::Sha256 { .. } => "sha256",
        }
    }

    /// About how many constraints it has.
    pub(crate) const fn constraints(self) -> usize {
        match self {
            Self::Chain { constraints } => constraints,
            Self::Sha256 { blocks } => blocks * BLOCK,
        }
    }

    /// Constraints or blocks.
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

/// The last product is public.
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

/// The digest is public, eight numbers of 32 bits.
fn sha256<F: PrimeField>(cs: ConstraintSystemRef<F>, blocks: usize) -> Result<(), SynthesisError> {
    let b = &mut Builder::new(cs)?;
    // 65 bits of the last block are padding: three words hold them.
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
        for (circuit, log_n, least) in [
            (Circuit::Chain, 10, 1 << 10),
            (Circuit::Sha256, 15, 17_000),
            (Circuit::Sha256, 17, 120_000),
        ] {
            let sized = circuit.sized(log_n).unwrap();
            let r1cs = R1cs::<Fr>::from_circuit(sized).unwrap();
            let points = r1cs.num_constraints() + r1cs.num_instance();
            assert!(
                (least..=1 << log_n).contains(&points),
                "{circuit:?} {points}"
            );
            let assignment = Assignment::from_circuit(sized).unwrap();
            r1cs.is_satisfied(assignment.z()).unwrap();
        }
        assert!(Circuit::Sha256.sized(14).is_err());
    }
}
