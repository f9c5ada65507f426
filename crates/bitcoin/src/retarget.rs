//! The difficulty that Bitcoin's main network demands of a header, by its height and the headers
//! before it.

use super::{CompactTarget, Header, TargetError, U256};

/// Headers between two changes of the difficulty.
pub const INTERVAL: u64 = 2016;

/// The easiest target of the main network, which its first headers have.
pub const POW_LIMIT: CompactTarget = CompactTarget(0x1d00_ffff);

/// Seconds that [`INTERVAL`] headers are meant to take: two weeks.
const TIMESPAN: u32 = 14 * 24 * 60 * 60;

/// The difficulty of a chain up to some height, as far as it is known from the headers that were
/// [taken](Difficulty::take).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Difficulty {
    /// Height of the next header.
    height: u64,
    /// Bits and time of the header before it; nothing before the first.
    before: Option<(CompactTarget, u32)>,
    /// Time of the first header since the last change, if that was seen.
    since: Option<u32>,
}

/// A header whose bits are not those that the network demands at its height.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum RetargetError {
    /// The bits differ from the only ones allowed at this height.
    #[error("its bits are {found}, and at height {height} the main network demands {expected}")]
    Wrong {
        /// The header's height.
        height: u64,
        /// Its bits.
        found: CompactTarget,
        /// Bits that the rule demands.
        expected: CompactTarget,
    },
    /// The difficulty changes here, by a factor of four at most.
    #[error(
        "its bits are {found}: from {before} on, the difficulty changes by a factor of 4 at most"
    )]
    TooFar {
        /// Its bits.
        found: CompactTarget,
        /// Those of the header before.
        before: CompactTarget,
    },
    /// The bits are easier than the network ever allows.
    #[error("its bits are {0}, easier than {POW_LIMIT}, the easiest of the main network")]
    TooEasy(CompactTarget),
    /// The bits encode no valid target.
    #[error("its bits {0} are invalid: {1}")]
    Invalid(CompactTarget, TargetError),
}

// === impl Difficulty ===

impl Difficulty {
    /// The difficulty of a chain of which the first known header is at `height`.
    pub const fn starting_at(height: u64) -> Self {
        Self {
            height,
            before: None,
            since: None,
        }
    }

    /// Height of the next header.
    pub const fn height(&self) -> u64 {
        self.height
    }

    /// Takes the next header of the chain.
    ///
    /// Within an interval its bits must be those of the header before. Where the difficulty changes
    /// they must be what the times of the interval demand; if the interval's first header was not
    /// taken, they must be within a factor of four. Of the first header that is taken it is only
    /// known that no target is easier than [`POW_LIMIT`].
    ///
    /// # Errors
    /// [`RetargetError`]; the state is then unchanged.
    pub fn take(&mut self, header: &Header) -> Result<(), RetargetError> {
        let (found, height) = (header.bits(), self.height);
        let target = target(found)?;
        if target > self::target(POW_LIMIT)? {
            return Err(RetargetError::TooEasy(found));
        }
        let changes = height.is_multiple_of(INTERVAL);
        let expected = match (self.before, self.since) {
            _ if height == 0 => Some(POW_LIMIT),
            (Some((bits, _)), _) if !changes => Some(bits),
            (Some((bits, time)), Some(since)) => Some(next_bits(bits, since, time)?),
            (Some((bits, _)), None) => {
                let slowest = self::target(next_bits(bits, 0, u32::MAX)?)?;
                let fastest = self::target(next_bits(bits, 0, 0)?)?;
                if !(fastest..=slowest).contains(&target) {
                    return Err(RetargetError::TooFar {
                        found,
                        before: bits,
                    });
                }
                None
            }
            (None, _) => None,
        };
        if let Some(expected) = expected.filter(|expected| *expected != found) {
            return Err(RetargetError::Wrong {
                height,
                found,
                expected,
            });
        }
        if changes {
            self.since = Some(header.time());
        }
        self.before = Some((found, header.time()));
        self.height = height.saturating_add(1);
        Ok(())
    }

    /// A compact encoding, of 22 bytes.
    pub fn to_bytes(&self) -> Vec<u8> {
        let mut bytes = self.height.to_le_bytes().to_vec();
        let (bits, time) = self.before.unwrap_or((CompactTarget(0), 0));
        bytes.push(u8::from(self.before.is_some()));
        bytes.extend(bits.0.to_le_bytes());
        bytes.extend(time.to_le_bytes());
        bytes.push(u8::from(self.since.is_some()));
        bytes.extend(self.since.unwrap_or(0).to_le_bytes());
        bytes
    }

    /// Decodes what [`to_bytes`](Self::to_bytes) encodes; `None` for anything else.
    pub fn from_bytes(bytes: &[u8]) -> Option<Self> {
        let (height, rest) = bytes.split_first_chunk::<8>()?;
        let ([has_before], rest) = rest.split_first_chunk::<1>()?;
        let (bits, rest) = rest.split_first_chunk::<4>()?;
        let (time, rest) = rest.split_first_chunk::<4>()?;
        let ([has_since], rest) = rest.split_first_chunk::<1>()?;
        let since: &[u8; 4] = rest.try_into().ok()?;
        let before = (
            CompactTarget(u32::from_le_bytes(*bits)),
            u32::from_le_bytes(*time),
        );
        let decoded = Self {
            height: u64::from_le_bytes(*height),
            before: (*has_before == 1).then_some(before),
            since: (*has_since == 1).then_some(u32::from_le_bytes(*since)),
        };
        (decoded.to_bytes() == bytes).then_some(decoded)
    }
}

/// The bits after an interval from `first` to `last`, seconds since 1970: Bitcoin Core's
/// `CalculateNextWorkRequired`.
fn next_bits(bits: CompactTarget, first: u32, last: u32) -> Result<CompactTarget, RetargetError> {
    let took = i64::from(last) - i64::from(first);
    let (least, most) = (TIMESPAN / 4, TIMESPAN * 4);
    let took = u32::try_from(took.max(0)).map_or(most, |took| took.clamp(least, most));
    let limit = target(POW_LIMIT)?;
    let next = target(bits)?
        .checked_mul(took)
        .and_then(|product| product.checked_div(U256::from(u128::from(TIMESPAN))));
    // Beyond 256 bits is beyond the limit.
    Ok(CompactTarget::of(
        next.map_or(limit, |next| next.min(limit)),
    ))
}

fn target(bits: CompactTarget) -> Result<U256, RetargetError> {
    bits.target()
        .map_err(|why| RetargetError::Invalid(bits, why))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::mainnet_headers;

    /// The cases of Bitcoin Core's `pow_tests`.
    #[test]
    fn the_next_difficulty_is_bitcoin_cores() {
        for (first, last, bits, next) in [
            (1_261_130_161, 1_262_152_739, 0x1d00_ffff, 0x1d00_d86a),
            (1_231_006_505, 1_233_061_996, 0x1d00_ffff, 0x1d00_ffff),
            (1_279_008_237, 1_279_297_671, 0x1c05_a3f4, 0x1c01_68fd),
            (1_263_163_443, 1_269_211_443, 0x1c38_7f6f, 0x1d00_e1fd),
        ] {
            let found = next_bits(CompactTarget(bits), first, last);
            assert_eq!(found, Ok(CompactTarget(next)));
        }
    }

    /// A header with these bits and this time, and nothing else right.
    fn header(bits: u32, time: u32) -> Header {
        let mut bytes = [0; 80];
        bytes[68..72].copy_from_slice(&time.to_le_bytes());
        bytes[72..76].copy_from_slice(&bits.to_le_bytes());
        Header::new(bytes)
    }

    #[test]
    fn the_main_networks_headers_are_taken_and_easier_ones_are_not() {
        let mut difficulty = Difficulty::starting_at(0);
        for (index, header) in mainnet_headers().iter().enumerate() {
            let mut easier = *header.as_bytes();
            easier[72..76].copy_from_slice(&0x207f_ffff_u32.to_le_bytes());
            let refused = difficulty.take(&Header::new(easier));
            let easiest = CompactTarget(0x207f_ffff);
            assert_eq!(refused, Err(RetargetError::TooEasy(easiest)), "{index}");
            assert_eq!(difficulty.take(header), Ok(()), "{index}");
        }
        assert_eq!(difficulty.height(), 32);
        let harder = difficulty.take(&header(0x1c00_ffff, 0));
        assert!(matches!(
            harder,
            Err(RetargetError::Wrong { height: 32, .. })
        ));
    }

    #[test]
    fn the_difficulty_changes_after_an_interval_as_its_times_demand() {
        // Blocks 30240 to 32256: the first change of the main network.
        let mut difficulty = Difficulty::starting_at(30_240);
        let (first, last) = (1_261_130_161, 1_262_152_739);
        for height in 30_240..32_256 {
            let time = if height == 30_240 { first } else { last };
            let bytes = difficulty.to_bytes();
            assert_eq!(Difficulty::from_bytes(&bytes), Some(difficulty));
            assert_eq!(Difficulty::from_bytes(&bytes[1..]), None);
            assert_eq!(difficulty.take(&header(0x1d00_ffff, time)), Ok(()));
        }
        let unchanged = difficulty.take(&header(0x1d00_ffff, last));
        let expected = CompactTarget(0x1d00_d86a);
        assert!(
            matches!(unchanged, Err(RetargetError::Wrong { expected: of, .. }) if of == expected)
        );
        assert_eq!(difficulty.take(&header(0x1d00_d86a, last)), Ok(()));
    }

    #[test]
    fn a_change_whose_interval_was_not_seen_is_within_a_factor_of_four() {
        let mut difficulty = Difficulty::starting_at(68_543);
        assert_eq!(difficulty.take(&header(0x1c05_a3f4, 5)), Ok(()));
        let mut far = difficulty;
        let found = far.take(&header(0x1c01_0000, 6));
        assert!(
            matches!(found, Err(RetargetError::TooFar { .. })),
            "{found:?}"
        );
        assert_eq!(difficulty.take(&header(0x1c01_68fd, 6)), Ok(()));
        // From here on it is exact.
        let found = difficulty.take(&header(0x1c01_68fe, 7));
        assert!(
            matches!(found, Err(RetargetError::Wrong { .. })),
            "{found:?}"
        );
    }
}
