//! The compact form of a target, and the work that it represents.

use std::fmt;

use super::U256;

/// A header's `bits`: a target as one byte of exponent and three of mantissa.
///
/// Decoded as Bitcoin Core's `arith_uint256::SetCompact` does: `mantissa · 256^(exponent − 3)`
/// with a 23-bit mantissa, the 24th bit being a sign.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct CompactTarget(pub u32);

/// The reason why a compact target encodes no valid target. A header with such bits is invalid.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum TargetError {
    /// The target is zero, which no hash meets.
    #[error("the target is zero")]
    Zero,
    /// The sign bit is set.
    #[error("the sign bit is set")]
    Negative,
    /// The target does not fit in 256 bits.
    #[error("the target exceeds 256 bits")]
    Overflow,
}

// === impl CompactTarget ===

impl CompactTarget {
    /// The exponent: the target's length in bytes.
    pub const fn exponent(self) -> u32 {
        self.0 >> 24
    }

    /// The mantissa, 23 bits.
    pub const fn mantissa(self) -> u32 {
        self.0 & 0x007f_ffff
    }

    /// The target.
    ///
    /// # Errors
    ///
    /// [`TargetError`] for what Bitcoin Core's proof-of-work check rejects whatever the network:
    /// zero, negative, or beyond 256 bits. The network's own limit is not applied.
    pub fn target(self) -> Result<U256, TargetError> {
        let (exponent, mantissa) = (self.exponent(), self.mantissa());
        let mut bytes = [0; 32];
        for (i, byte) in mantissa.to_le_bytes()[..3].iter().enumerate() {
            // Bytes below position 0 are shifted out; a non-zero one above 31 overflows.
            let Some(position) = (exponent as usize + i).checked_sub(3) else {
                continue;
            };
            match bytes.get_mut(position) {
                Some(slot) => *slot = *byte,
                None if *byte == 0 => {}
                None => return Err(TargetError::Overflow),
            }
        }
        let target = U256::from_le_bytes(&bytes);
        if target.is_zero() {
            Err(TargetError::Zero)
        } else if self.0 & 0x0080_0000 != 0 {
            Err(TargetError::Negative)
        } else {
            Ok(target)
        }
    }

    /// The compact form of a target, rounded down: Bitcoin Core's `arith_uint256::GetCompact`.
    pub fn of(target: U256) -> Self {
        let bytes = target.to_le_bytes();
        let length = bytes
            .iter()
            .rposition(|byte| *byte != 0)
            .map_or(0, |at| at + 1);
        // The three highest bytes, of which the highest must not look like a sign.
        let at = |from_top: usize| {
            let index = length.checked_sub(from_top);
            u32::from(index.map_or(0, |index| bytes[index]))
        };
        let mantissa = at(1) << 16 | at(2) << 8 | at(3);
        if mantissa & 0x0080_0000 == 0 {
            Self((length as u32) << 24 | mantissa)
        } else {
            Self((length as u32 + 1) << 24 | mantissa >> 8)
        }
    }

    /// The expected number of hashes to meet the target, ⌊2²⁵⁶ / (target + 1)⌋: Bitcoin Core's
    /// `GetBlockProof`.
    ///
    /// # Errors
    ///
    /// As for [`target`](Self::target).
    pub fn work(self) -> Result<U256, TargetError> {
        let target = self.target()?;
        // 2²⁵⁶ / (t + 1) = (2²⁵⁶ − t − 1) / (t + 1) + 1, and a decoded target is below 2²⁵⁶ − 1.
        let divisor = target
            .checked_add(U256::from(1))
            .ok_or(TargetError::Overflow)?;
        let quotient = (!target)
            .checked_div(divisor)
            .ok_or(TargetError::Overflow)?;
        quotient
            .checked_add(U256::from(1))
            .ok_or(TargetError::Overflow)
    }
}

impl fmt::Display for CompactTarget {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "0x{:08x}", self.0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn target(bits: u32) -> Result<String, TargetError> {
        let text = CompactTarget(bits).target()?.to_string();
        Ok(text.trim_start_matches('0').to_owned())
    }

    /// The cases of Bitcoin Core's `bignum_SetCompact` test that concern validity.
    #[test]
    fn decodes_as_bitcoin_core_does() {
        for zero in [
            0,
            0x0012_3456,
            0x0100_3456,
            0x0200_0056,
            0x0300_0000,
            0x0400_0000,
        ] {
            assert_eq!(target(zero), Err(TargetError::Zero), "{zero:#x}");
        }
        for zero in [
            0x0092_3456,
            0x0180_3456,
            0x0280_0056,
            0x0380_0000,
            0x0480_0000,
        ] {
            assert_eq!(target(zero), Err(TargetError::Zero), "{zero:#x}");
        }
        assert_eq!(target(0x0112_3456).as_deref(), Ok("12"));
        assert_eq!(target(0x0200_8000).as_deref(), Ok("80"));
        assert_eq!(target(0x0500_9234).as_deref(), Ok("92340000"));
        assert_eq!(target(0x0492_3456), Err(TargetError::Negative));
        assert_eq!(target(0x0412_3456).as_deref(), Ok("12345600"));
        assert_eq!(
            target(0x2012_3456).unwrap(),
            format!("123456{}", "0".repeat(58))
        );
        assert_eq!(target(0xff12_3456), Err(TargetError::Overflow));
        assert_eq!(target(0xff00_0000), Err(TargetError::Zero));
        assert_eq!(
            target(0x2200_00ff).unwrap(),
            format!("ff{}", "0".repeat(62))
        );
        assert_eq!(target(0x2200_0100), Err(TargetError::Overflow));
        assert_eq!(
            target(0x2100_ffff).unwrap(),
            format!("ffff{}", "0".repeat(60))
        );
        assert_eq!(target(0x2101_0000), Err(TargetError::Overflow));
        assert_eq!(target(0x2300_0001), Err(TargetError::Overflow));
    }

    #[test]
    fn encodes_as_bitcoin_core_does() {
        for bits in [
            0x0500_9234,
            0x0412_3456,
            0x2012_3456,
            0x1d00_ffff,
            0x1c05_a3f4,
        ] {
            let target = CompactTarget(bits).target().unwrap();
            assert_eq!(CompactTarget::of(target), CompactTarget(bits));
        }
        assert_eq!(CompactTarget::of(U256::ZERO), CompactTarget(0));
        assert_eq!(
            CompactTarget::of(U256::from(0x80)),
            CompactTarget(0x0200_8000)
        );
        assert_eq!(
            CompactTarget::of(U256::from(0x12)),
            CompactTarget(0x0112_0000)
        );
    }

    #[test]
    fn work_of_known_targets() {
        // Difficulty 1: 2³² + 2¹⁶ + 1 hashes.
        assert_eq!(
            CompactTarget(0x1d00_ffff).work(),
            Ok(U256::from(0x1_0001_0001))
        );
        // The regression-test network's target, about 2²⁵⁵.
        assert_eq!(CompactTarget(0x207f_ffff).work(), Ok(U256::from(2)));
    }
}
