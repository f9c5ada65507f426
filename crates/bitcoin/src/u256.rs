//! The few operations on 256-bit numbers that targets and work need.

use std::fmt;
use std::ops::Not;

/// An unsigned 256-bit number, printed as 64 hexadecimal digits.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub struct U256([u64; 4]);

// === impl U256 ===

impl U256 {
    /// Zero.
    pub const ZERO: Self = Self([0; 4]);

    /// The number of 32 little-endian bytes.
    pub fn from_le_bytes(bytes: &[u8; 32]) -> Self {
        let mut limbs = [0; 4];
        for (i, byte) in bytes.iter().enumerate() {
            limbs[i / 8] |= u64::from(*byte) << (8 * (i % 8));
        }
        Self(limbs)
    }

    /// 32 little-endian bytes.
    pub fn to_le_bytes(self) -> [u8; 32] {
        std::array::from_fn(|i| (self.0[i / 8] >> (8 * (i % 8))) as u8)
    }

    /// The low and the high 128 bits.
    pub const fn halves(self) -> (u128, u128) {
        (
            self.0[0] as u128 | (self.0[1] as u128) << 64,
            self.0[2] as u128 | (self.0[3] as u128) << 64,
        )
    }

    /// Whether the number is zero.
    pub fn is_zero(self) -> bool {
        self.0 == [0; 4]
    }

    /// self + other, nothing on overflow.
    pub fn checked_add(self, other: Self) -> Option<Self> {
        let (sum, carry) = self.overflowing_add(other);
        (!carry).then_some(sum)
    }

    /// self · factor, nothing on overflow.
    pub fn checked_mul(self, factor: u32) -> Option<Self> {
        let mut out = [0; 4];
        let mut carry = 0u128;
        for (out, limb) in out.iter_mut().zip(self.0) {
            let product = u128::from(limb) * u128::from(factor) + carry;
            *out = product as u64;
            carry = product >> 64;
        }
        (carry == 0).then_some(Self(out))
    }

    fn overflowing_add(self, other: Self) -> (Self, bool) {
        let mut out = [0; 4];
        let mut carry = false;
        for ((out, x), y) in out.iter_mut().zip(self.0).zip(other.0) {
            let (sum, first) = x.overflowing_add(y);
            let (sum, second) = sum.overflowing_add(u64::from(carry));
            *out = sum;
            carry = first | second;
        }
        (Self(out), carry)
    }

    fn wrapping_sub(self, other: Self) -> Self {
        self.overflowing_add(!other)
            .0
            .overflowing_add(Self::from(1))
            .0
    }

    fn bit(self, index: usize) -> u64 {
        self.0[index / 64] >> (index % 64) & 1
    }

    /// ⌊self / divisor⌋, `None` for a zero divisor. Binary long division: 256 steps.
    pub fn checked_div(self, divisor: Self) -> Option<Self> {
        if divisor.is_zero() {
            return None;
        }
        let mut quotient = [0; 4];
        let mut remainder = Self::ZERO;
        for index in (0..256).rev() {
            // The bit shifted out makes the remainder exceed any divisor.
            let (doubled, carry) = remainder.overflowing_add(remainder);
            remainder = doubled;
            remainder.0[0] |= self.bit(index);
            if carry || remainder >= divisor {
                remainder = remainder.wrapping_sub(divisor);
                quotient[index / 64] |= 1 << (index % 64);
            }
        }
        Some(Self(quotient))
    }
}

impl From<u128> for U256 {
    fn from(value: u128) -> Self {
        Self([value as u64, (value >> 64) as u64, 0, 0])
    }
}

impl Not for U256 {
    type Output = Self;

    fn not(self) -> Self {
        Self(self.0.map(Not::not))
    }
}

impl Ord for U256 {
    fn cmp(&self, other: &Self) -> std::cmp::Ordering {
        self.0.iter().rev().cmp(other.0.iter().rev())
    }
}

impl PartialOrd for U256 {
    fn partial_cmp(&self, other: &Self) -> Option<std::cmp::Ordering> {
        Some(self.cmp(other))
    }
}

impl fmt::Display for U256 {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let [a, b, c, d] = self.0;
        write!(f, "{d:016x}{c:016x}{b:016x}{a:016x}")
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    proptest! {
        #[test]
        fn small_numbers_agree_with_u128(x in any::<u128>(), y in 1..u128::MAX) {
            let (a, b) = (U256::from(x), U256::from(y));
            prop_assert_eq!(a.checked_div(b), Some(U256::from(x / y)));
            prop_assert_eq!(a.cmp(&b), x.cmp(&y));
            prop_assert_eq!(U256::from_le_bytes(&a.to_le_bytes()), a);
            prop_assert_eq!(a.checked_add(!a), Some(!U256::ZERO));
        }

        /// x = (x / y)·y + r with r < y, the product taken by repeated doubling.
        #[test]
        fn division_has_a_small_remainder(x in any::<[u64; 4]>(), y in any::<[u64; 4]>()) {
            let (x, y) = (U256(x), U256(y));
            prop_assume!(!y.is_zero());
            let q = x.checked_div(y).unwrap();
            let mut product = U256::ZERO;
            for index in (0..256).rev() {
                product = product.checked_add(product).unwrap();
                if q.bit(index) == 1 {
                    product = product.checked_add(y).unwrap();
                }
            }
            prop_assert!(product <= x);
            prop_assert!(x.wrapping_sub(product) < y);
        }
    }

    #[test]
    fn edges() {
        let max = !U256::ZERO;
        assert_eq!(max.checked_div(U256::ZERO), None);
        assert_eq!(max.checked_div(max), Some(U256::from(1)));
        assert_eq!(max.checked_div(U256::from(1)), Some(max));
        assert_eq!(max.checked_add(U256::from(1)), None);
    }
}
