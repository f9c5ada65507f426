//! 32-bit words and sums of words modulo 2³².

use ark_ff::PrimeField;
use ark_relations::gr1cs::SynthesisError;

use super::builder::DIGIT_BITS;
use super::{Bit, Builder, Lc};

/// A 32-bit word, least significant bit first.
#[derive(Clone, Copy, Debug)]
pub struct Word(pub [Bit; 32]);

// === impl Word ===

impl Word {
    /// A constant word.
    pub fn constant(value: u32) -> Self {
        Self(std::array::from_fn(|i| Bit::constant(value >> i & 1 == 1)))
    }

    /// A private word: 32 variables, 32 constraints.
    pub fn witness<F: PrimeField>(b: &mut Builder<F>, value: u32) -> Result<Self, SynthesisError> {
        let mut bits = [Bit::constant(false); 32];
        for (i, bit) in bits.iter_mut().enumerate() {
            *bit = b.bit(value >> i & 1 == 1)?;
        }
        Ok(Self(bits))
    }

    /// The word's value; meaningless while keys are set up.
    pub fn value(&self) -> u32 {
        self.0
            .iter()
            .enumerate()
            .fold(0, |v, (i, bit)| v | u32::from(bit.value()) << i)
    }

    /// The same variables claiming another value: see [`Bit::claiming`].
    pub fn claiming(self, value: u32) -> Self {
        Self(std::array::from_fn(|i| {
            self.0[i].claiming(value >> i & 1 == 1)
        }))
    }

    /// Rotation to the right.
    pub fn rotate_right(&self, by: usize) -> Self {
        Self(std::array::from_fn(|i| self.0[(i + by) % 32]))
    }

    /// Shift to the right.
    pub fn shift_right(&self, by: usize) -> Self {
        Self(std::array::from_fn(|i| {
            if i + by < 32 {
                self.0[i + by]
            } else {
                Bit::constant(false)
            }
        }))
    }

    /// The bits of big-endian byte `index` (0 is the most significant), least significant first.
    pub fn byte(&self, index: usize) -> &[Bit] {
        let low = 24 - 8 * index;
        &self.0[low..low + 8]
    }

    /// Applies a function of three bits to each position.
    pub fn map3<F: PrimeField>(
        b: &mut Builder<F>,
        [x, y, z]: [&Word; 3],
        f: impl Fn(&mut Builder<F>, Bit, Bit, Bit) -> Result<Bit, SynthesisError>,
    ) -> Result<Word, SynthesisError> {
        let mut out = [Bit::constant(false); 32];
        for (i, bit) in out.iter_mut().enumerate() {
            *bit = f(b, x.0[i], y.0[i], z.0[i])?;
        }
        Ok(Word(out))
    }

    /// The value if every bit is a constant.
    fn as_constant(&self) -> Option<u32> {
        self.0.iter().all(Bit::is_constant).then(|| self.value())
    }

    /// The largest value that the word can take, given its constant bits.
    fn max(&self) -> u64 {
        self.0.iter().enumerate().fold(0, |max, (i, bit)| {
            max | u64::from(!bit.is_constant() || bit.value()) << i
        })
    }
}

/// A sum of words, to be taken modulo 2³² when it is reduced to a word.
#[derive(Clone, Debug, Default)]
pub struct Sum {
    plus: Vec<Word>,
    minus: Vec<Word>,
    constant: u64,
}

// === impl Sum ===

impl Sum {
    /// Adds a word.
    pub fn plus(mut self, word: &Word) -> Self {
        match word.as_constant() {
            Some(value) => self.constant += u64::from(value),
            None => self.plus.push(*word),
        }
        self
    }

    /// Subtracts a word.
    pub fn minus(mut self, word: &Word) -> Self {
        match word.as_constant() {
            // −v ≡ 2³² − v: the sum never goes below zero.
            Some(value) => self.constant += (1 << 32) - u64::from(value),
            None => {
                self.constant += 1 << 32;
                self.minus.push(*word);
            }
        }
        self
    }

    /// Adds a constant.
    pub fn plus_constant(mut self, value: u32) -> Self {
        self.constant += u64::from(value);
        self
    }

    /// Adds another sum.
    pub fn plus_sum(mut self, other: &Sum) -> Self {
        self.plus.extend_from_slice(&other.plus);
        self.minus.extend_from_slice(&other.minus);
        self.constant += other.constant;
        self
    }

    fn value(&self) -> u64 {
        let plus: u64 = self.plus.iter().map(|w| u64::from(w.value())).sum();
        let minus: u64 = self.minus.iter().map(|w| u64::from(w.value())).sum();
        self.constant + plus - minus
    }

    /// The sum modulo 2³²: one constraint for each bit of the largest possible sum, and a seventh
    /// of one for the equation.
    ///
    /// # Errors
    ///
    /// [`SynthesisError::Unsatisfiable`] if the sum could reach 2³⁶, too much for a digit of a
    /// packed equation; otherwise whatever the constraint system returns.
    pub fn reduce<F: PrimeField>(&self, b: &mut Builder<F>) -> Result<Word, SynthesisError> {
        let constant = self.constant & u64::from(u32::MAX);
        if self.minus.is_empty() {
            match self.plus.as_slice() {
                [] => return Ok(Word::constant(constant as u32)),
                [word] if constant == 0 => return Ok(*word),
                _ => {}
            }
        }
        let max = self.constant + self.plus.iter().map(Word::max).sum::<u64>();
        let bits = (64 - max.leading_zeros()).max(32) as usize;
        if bits > DIGIT_BITS {
            return Err(SynthesisError::Unsatisfiable);
        }
        let value = self.value();
        let mut out = Vec::with_capacity(bits);
        for i in 0..bits {
            out.push(b.bit(value >> i & 1 == 1)?);
        }
        b.defer_zero(|| {
            let mut lc = Lc::constant(F::from(self.constant));
            for word in &self.plus {
                lc.add_number(F::one(), &word.0);
            }
            for word in &self.minus {
                lc.add_number(-F::one(), &word.0);
            }
            lc.add_number(-F::one(), &out);
            lc
        })?;
        Ok(Word(std::array::from_fn(|i| out[i])))
    }
}
