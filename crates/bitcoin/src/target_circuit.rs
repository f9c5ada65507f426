//! Circuit for the target of a header's bits, and for the check that a hash meets it.

use ark_ff::PrimeField;
use ark_relations::gr1cs::{SynthesisError, Variable};

use super::CompactTarget;
use proofmill_circuits::gadgets::{Bit, Builder, Lc};

/// Exponents whose target can be non-zero and fit 256 bits.
const EXPONENTS: std::ops::RangeInclusive<usize> = 1..=34;

/// A non-negative combination of variables with its value, below 2¹²⁸.
struct Half<F: PrimeField> {
    lc: Lc<F>,
    value: u128,
}

/// The low and the high half of a 256-bit number given by its bits, least significant first.
pub(super) fn halves<F: PrimeField>(number: &[Bit; 256]) -> [Lc<F>; 2] {
    [&number[..128], &number[128..]].map(|bits| {
        let mut lc = Lc::default();
        lc.add_number(F::one(), bits);
        lc
    })
}

fn half_values(number: &[Bit; 256]) -> [u128; 2] {
    [&number[..128], &number[128..]].map(|bits| {
        bits.iter()
            .enumerate()
            .fold(0, |value, (i, bit)| value | u128::from(bit.value()) << i)
    })
}

/// If `active`, enforces that the hash is at most the target of `bits`, and that this target is
/// valid: not zero, not negative, below 2²⁵⁶.
///
/// The exponent is decoded to one-hot selectors; a byte of the mantissa times the sum of the
/// selectors, each weighted by the power of 256 it puts that byte at, is that byte's part of the
/// target.
pub(super) fn enforce_target<F: PrimeField>(
    b: &mut Builder<F>,
    active: &Bit,
    bits: &[Bit; 32],
    hash: &[Bit; 256],
) -> Result<(), SynthesisError> {
    let one = F::one();
    let active_lc = || Lc::default().bit(one, active);
    let compact = CompactTarget(
        bits.iter()
            .enumerate()
            .fold(0, |value, (i, bit)| value | u32::from(bit.value()) << i),
    );

    let mut selectors = Vec::with_capacity(EXPONENTS.count());
    for exponent in EXPONENTS {
        let value = active.value() && compact.exponent() as usize == exponent;
        selectors.push((exponent, b.bit(value)?));
    }
    b.enforce_zero(|| {
        selectors
            .iter()
            .fold(Lc::default().bit(-one, active), |lc, (_, s)| lc.bit(one, s))
    })?;
    b.enforce(
        || {
            let mut exponent = Lc::default();
            exponent.add_number(one, &bits[24..]);
            exponent
        },
        active_lc,
        || {
            selectors
                .iter()
                .fold(Lc::default(), |lc, (e, s)| lc.bit(F::from(*e as u64), s))
        },
    )?;

    // The sign bit.
    b.enforce(|| Lc::default().bit(one, &bits[23]), active_lc, Lc::default)?;

    let mantissa = [&bits[..8], &bits[8..16], &bits[16..23]];
    let mut target: [Half<F>; 2] = std::array::from_fn(|_| Half {
        lc: Lc::default(),
        value: 0,
    });
    for (half, part) in target.iter_mut().enumerate() {
        for (byte, byte_bits) in mantissa.iter().enumerate() {
            let placed = selectors.iter().filter_map(|(exponent, selector)| {
                let position = (exponent + byte).checked_sub(3)?.checked_sub(16 * half)?;
                (position < 16).then_some((position, selector))
            });
            let weight: u128 = placed
                .clone()
                .map(|(position, selector)| u128::from(selector.value()) << (8 * position))
                .sum();
            let byte_value = byte_bits.iter().enumerate().fold(0u128, |value, (i, bit)| {
                value | u128::from(bit.value()) << i
            });
            let product = byte_value * weight;
            let variable = b.witness(F::from(product))?;
            b.enforce(
                || {
                    placed
                        .clone()
                        .fold(Lc::default(), |lc, (position, selector)| {
                            lc.bit(F::from(1u128 << (8 * position)), selector)
                        })
                },
                || number(byte_bits),
                || Lc::default().variable(one, variable),
            )?;
            part.lc = std::mem::take(&mut part.lc).variable(one, variable);
            part.value += product;
        }
    }
    enforce_no_overflow(b, &selectors, mantissa)?;
    enforce_not_zero(b, active, &target)?;
    enforce_at_most(b, active, hash, &target)
}

fn number<F: PrimeField>(bits: &[Bit]) -> Lc<F> {
    let mut lc = Lc::default();
    lc.add_number(F::one(), bits);
    lc
}

/// A mantissa byte that would land at position 32 or above is zero: the second byte with exponent
/// 34, the third with 33 or 34. Both products are at least zero, so their sum is zero only if both
/// are.
fn enforce_no_overflow<F: PrimeField>(
    b: &mut Builder<F>,
    selectors: &[(usize, Bit)],
    mantissa: [&[Bit]; 3],
) -> Result<(), SynthesisError> {
    let one = F::one();
    let selected = |least: usize| {
        selectors
            .iter()
            .filter(move |(exponent, _)| *exponent >= least)
            .map(|(_, bit)| bit)
    };
    let value = |bits: &[Bit]| {
        bits.iter()
            .enumerate()
            .fold(0u64, |v, (i, bit)| v | u64::from(bit.value()) << i)
    };
    let flag: u64 = selected(34).map(|bit| u64::from(bit.value())).sum();
    let product = b.witness(F::from(value(mantissa[1]) * flag))?;
    b.enforce(
        || selected(34).fold(Lc::default(), |lc, bit| lc.bit(one, bit)),
        || number(mantissa[1]),
        || Lc::default().variable(one, product),
    )?;
    b.enforce(
        || selected(33).fold(Lc::default(), |lc, bit| lc.bit(one, bit)),
        || number(mantissa[2]),
        || Lc::default().variable(-one, product),
    )
}

/// The target's halves are non-negative, so it is zero only if their sum is.
fn enforce_not_zero<F: PrimeField>(
    b: &mut Builder<F>,
    active: &Bit,
    [low, high]: &[Half<F>; 2],
) -> Result<(), SynthesisError> {
    let sum = F::from(low.value) + F::from(high.value);
    let inverse = if active.value() {
        sum.inverse().unwrap_or_default()
    } else {
        F::zero()
    };
    let inverse = b.witness(inverse)?;
    b.enforce(
        || low.lc.clone().add(F::one(), &high.lc),
        || Lc::default().variable(F::one(), inverse),
        || Lc::default().bit(F::one(), active),
    )
}

/// hash ≤ target, by subtraction with one borrow: both differences fit 128 bits.
fn enforce_at_most<F: PrimeField>(
    b: &mut Builder<F>,
    active: &Bit,
    hash: &[Bit; 256],
    target: &[Half<F>; 2],
) -> Result<(), SynthesisError> {
    let one = F::one();
    let values = half_values(hash);
    let lcs = halves(hash);
    let borrow = b.bit(active.value() && values[0] > target[0].value)?;
    let radix = F::from(2u64).pow([128]);
    for half in 0..2 {
        let borrowed = if half == 0 {
            0
        } else {
            u128::from(borrow.value())
        };
        let difference = target[half]
            .value
            .wrapping_sub(values[half])
            .wrapping_sub(borrowed);
        let difference = if active.value() { difference } else { 0 };
        let mut bits = Vec::with_capacity(128);
        for i in 0..128 {
            bits.push(b.bit(difference >> i & 1 == 1)?);
        }
        let weight = if half == 0 { radix } else { -one };
        b.enforce(
            || {
                target[half]
                    .lc
                    .clone()
                    .add(-one, &lcs[half])
                    .bit(weight, &borrow)
            },
            || Lc::default().bit(one, active),
            || number(&bits),
        )?;
    }
    Ok(())
}

/// `if active { value } else { 0 } = out`.
pub(super) fn enforce_masked<F: PrimeField>(
    b: &mut Builder<F>,
    active: &Bit,
    value: &[Bit],
    out: Variable,
) -> Result<(), SynthesisError> {
    b.enforce(
        || number(value),
        || Lc::default().bit(F::one(), active),
        || Lc::default().variable(F::one(), out),
    )
}

#[cfg(test)]
mod tests {
    use ark_bls12_381::Fr;
    use ark_relations::gr1cs::ConstraintSystem;
    use proptest::prelude::*;

    use super::*;
    use crate::U256;

    fn satisfied(active: bool, bits: u32, hash: &[u8; 32]) -> bool {
        let cs = ConstraintSystem::<Fr>::new_ref();
        let mut b = Builder::new(cs.clone()).unwrap();
        let mut allocate = |value: bool| b.bit(value).unwrap();
        let flag = allocate(active);
        let bits = std::array::from_fn(|i| allocate(bits >> i & 1 == 1));
        let hash = std::array::from_fn(|i| allocate(hash[i / 8] >> (i % 8) & 1 == 1));
        enforce_target(&mut b, &flag, &bits, &hash).unwrap();
        b.finish().unwrap();
        cs.is_satisfied().unwrap()
    }

    fn native(bits: u32, hash: &[u8; 32]) -> bool {
        CompactTarget(bits)
            .target()
            .is_ok_and(|target| U256::from_le_bytes(hash) <= target)
    }

    /// Exponents around every edge, mantissas with each byte zero or not and both signs; hashes at,
    /// just above and far below the target.
    #[test]
    fn agrees_with_the_native_check_at_the_edges() {
        let mut accepted = 0;
        for exponent in (0..=5).chain(15..=21).chain(30..=36).chain([255]) {
            for mantissa in [
                0, 1, 0x80, 0xff, 0x100, 0xff00, 0x1_0000, 0x7f_ffff, 0x80_0000, 0xff_ffff,
            ] {
                let bits = exponent << 24 | mantissa;
                let target = CompactTarget(bits).target().unwrap_or(U256::ZERO);
                let above = target.checked_add(U256::from(1)).unwrap_or(target);
                for hash in [U256::ZERO, target, above, !U256::ZERO].map(U256::to_le_bytes) {
                    let expected = native(bits, &hash);
                    assert_eq!(
                        satisfied(true, bits, &hash),
                        expected,
                        "{bits:#010x} {hash:?}"
                    );
                    assert!(
                        satisfied(false, bits, &hash),
                        "inactive {bits:#010x} {hash:?}"
                    );
                    accepted += usize::from(expected);
                }
            }
        }
        assert!(accepted > 100, "only {accepted} cases were valid");
    }

    proptest! {
        #[test]
        fn agrees_with_the_native_check(
            exponent in 0u32..40,
            mantissa in 0u32..1 << 24,
            mut hash in any::<[u8; 32]>(),
            zeros in 0usize..32,
        ) {
            hash[32 - zeros..].fill(0);
            let bits = exponent << 24 | mantissa;
            prop_assert_eq!(satisfied(true, bits, &hash), native(bits, &hash));
        }
    }
}
