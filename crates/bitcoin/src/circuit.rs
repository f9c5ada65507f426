//! The header-chain circuit.

use ark_ff::PrimeField;
use ark_relations::gr1cs::{ConstraintSynthesizer, ConstraintSystemRef, SynthesisError};

use super::target_circuit::{enforce_masked, enforce_target, halves};
use super::{
    ChainError, ChunkStatement, HEADER_BYTES, Header, MAX_SLOTS, StatementError, check_chain,
};
use proofmill_circuits::gadgets::{Bit, Builder, Lc, Word};
use proofmill_circuits::sha256;

/// Proves a [`ChunkStatement`]: that up to `slots` consecutive Bitcoin headers link a public
/// previous hash to a public last hash, and that each meets the target of its own bits.
///
/// The first `count` slots are active. A slot's previous-hash field *is* the digest of the slot
/// before it, so linking costs nothing; an inactive slot hashes zeros after that digest and has no
/// other constraint to meet. One slot takes about 51,900 constraints.
///
/// Public inputs are those of [`ChunkStatement::to_inputs`].
#[derive(Clone, Debug)]
pub struct HeaderChain {
    slots: usize,
    headers: Vec<Header>,
}

/// Headers a circuit cannot be built for.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum HeaderChainError {
    /// A header breaks the chain.
    #[error(transparent)]
    Chain(#[from] ChainError),
    /// There are no headers, or more than slots, or too many slots.
    #[error(transparent)]
    Count(#[from] StatementError),
}

// === impl HeaderChain ===

impl HeaderChain {
    /// The circuit without a witness, to make keys of.
    ///
    /// # Errors
    ///
    /// [`StatementError::Count`] unless there are 1 to [`MAX_SLOTS`] slots.
    pub fn blank(slots: usize) -> Result<Self, StatementError> {
        if (1..=MAX_SLOTS).contains(&slots) {
            Ok(Self {
                slots,
                headers: Vec::new(),
            })
        } else {
            Err(StatementError::Count {
                count: slots as u64,
                slots: MAX_SLOTS,
            })
        }
    }

    /// The circuit for these headers, after checking them natively.
    ///
    /// # Errors
    ///
    /// [`HeaderChainError::Chain`] names the first header that breaks the chain;
    /// [`HeaderChainError::Count`] unless there are 1 to `slots` headers.
    pub fn new(slots: usize, headers: &[Header]) -> Result<Self, HeaderChainError> {
        let circuit = Self::unchecked(slots, headers)?;
        check_chain(headers)?;
        Ok(circuit)
    }

    /// The circuit for these headers, valid or not: if they are not, no assignment it produces
    /// satisfies the constraints.
    ///
    /// # Errors
    ///
    /// [`StatementError::Count`] unless there are 1 to `slots` headers.
    pub fn unchecked(slots: usize, headers: &[Header]) -> Result<Self, StatementError> {
        let circuit = Self::blank(slots)?;
        if headers.is_empty() || headers.len() > slots {
            return Err(StatementError::Count {
                count: headers.len() as u64,
                slots,
            });
        }
        Ok(Self {
            headers: headers.to_vec(),
            ..circuit
        })
    }

    /// The statement of a proof by this circuit; `None` for a blank circuit.
    pub fn statement(&self) -> Option<ChunkStatement> {
        ChunkStatement::of(&self.headers)
    }

    /// The number of slots.
    pub const fn slots(&self) -> usize {
        self.slots
    }
}

impl<F: PrimeField> ConstraintSynthesizer<F> for HeaderChain {
    fn generate_constraints(self, cs: ConstraintSystemRef<F>) -> Result<(), SynthesisError> {
        let inputs = match self.statement() {
            Some(statement) => statement
                .to_inputs(self.slots)
                .map_err(|_| SynthesisError::AssignmentMissing)?,
            None if cs.is_in_setup_mode() => vec![F::zero(); 5 + self.slots],
            None => return Err(SynthesisError::AssignmentMissing),
        };
        let one = F::one();
        let mut b = Builder::new(cs)?;
        let inputs: Vec<_> = inputs
            .into_iter()
            .map(|value| b.input(value))
            .collect::<Result<_, _>>()?;
        let [prev_low, prev_high, last_low, last_high, count] =
            [inputs[0], inputs[1], inputs[2], inputs[3], inputs[4]];
        let slot_bits = &inputs[5..];

        let blank = Header::new([0; HEADER_BYTES]);
        let first = self.headers.first().unwrap_or(&blank).words();
        let mut previous = [Word::constant(0); 8];
        for (word, value) in previous.iter_mut().zip(&first[1..9]) {
            *word = Word::witness(&mut b, *value)?;
        }
        for (half, input) in halves::<F>(&number(&previous))
            .into_iter()
            .zip([prev_low, prev_high])
        {
            b.enforce_zero(|| half.variable(-one, input))?;
        }

        // The first slot is always active; the others' flags never rise again.
        let mut active = vec![Bit::constant(true)];
        for slot in 1..self.slots {
            let flag = b.bit(slot < self.headers.len())?;
            let before = active[slot - 1];
            b.enforce(
                || Lc::default().bit(one, &flag),
                || Lc::constant(one).bit(-one, &before),
                Lc::default,
            )?;
            active.push(flag);
        }
        b.enforce_zero(|| {
            active
                .iter()
                .fold(Lc::default().variable(-one, count), |lc, flag| {
                    lc.bit(one, flag)
                })
        })?;

        // The hash of the last active slot so far, as two halves and their values.
        let mut last: Option<[(Lc<F>, F); 2]> = None;
        for (slot, flag) in active.iter().enumerate() {
            let header = self.headers.get(slot);
            let (words, digest) = hash_header(&mut b, header, &previous)?;
            let hash = number(&digest);
            let bits = little_endian(&words[18]);
            enforce_masked(&mut b, flag, &bits, slot_bits[slot])?;
            enforce_target(&mut b, flag, &bits, &hash)?;

            let current = halves::<F>(&hash);
            let values = number_values::<F>(&hash);
            last = Some(match last {
                None => {
                    let [low, high] = current;
                    [(low, values[0]), (high, values[1])]
                }
                Some(before) => {
                    let mut chosen = Vec::with_capacity(2);
                    for ((now, value), (old, old_value)) in
                        current.into_iter().zip(values).zip(before)
                    {
                        let value = if flag.value() { value } else { old_value };
                        let out = Lc::default().variable(one, b.witness(value)?);
                        b.enforce(
                            || now.add(-one, &old),
                            || Lc::default().bit(one, flag),
                            || out.clone().add(-one, &old),
                        )?;
                        chosen.push((out, value));
                    }
                    let [low, high] =
                        <[_; 2]>::try_from(chosen).map_err(|_| SynthesisError::Unsatisfiable)?;
                    [low, high]
                }
            });
            previous = digest;
        }
        for (half, input) in last.into_iter().flatten().zip([last_low, last_high]) {
            b.enforce_zero(|| half.0.variable(-one, input))?;
        }
        b.finish()
    }
}

/// Allocates a header whose previous hash is `previous` and hashes it twice; returns the header's
/// words and the digest.
///
/// If the header claims another previous hash than `previous`, later values are computed from the claim: the
/// assignment is then inconsistent, as it should be.
fn hash_header<F: PrimeField>(
    b: &mut Builder<F>,
    header: Option<&Header>,
    previous: &[Word; 8],
) -> Result<([Word; 20], [Word; 8]), SynthesisError> {
    let values = header.map_or([0; 20], Header::words);
    let mut words = [Word::constant(0); 20];
    for (i, word) in words.iter_mut().enumerate() {
        *word = match (i, header) {
            (1..=8, Some(_)) => previous[i - 1].claiming(values[i]),
            (1..=8, None) => previous[i - 1],
            _ => Word::witness(b, values[i])?,
        };
    }
    let inner = sha256::hash_words(b, &words)?;
    let digest = sha256::hash_words(b, &inner)?;
    Ok((words, digest))
}

/// A big-endian word's bytes read as a little-endian number, least significant bit first.
fn little_endian(word: &Word) -> [Bit; 32] {
    std::array::from_fn(|i| word.byte(i / 8)[i % 8])
}

/// A digest as the little-endian number Bitcoin compares, least significant bit first.
fn number(digest: &[Word; 8]) -> [Bit; 256] {
    std::array::from_fn(|i| little_endian(&digest[i / 32])[i % 32])
}

fn number_values<F: PrimeField>(bits: &[Bit; 256]) -> [F; 2] {
    [&bits[..128], &bits[128..]].map(|bits| {
        F::from(
            bits.iter()
                .enumerate()
                .fold(0u128, |v, (i, bit)| v | u128::from(bit.value()) << i),
        )
    })
}
