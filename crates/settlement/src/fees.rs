//! Fees of transactions by EIP-1559: the first offer, and higher ones that replace it.

use std::time::Duration;

/// Increase of a replacement over the transaction before it, in per mille. Nodes ask for at least 10 %, some for 12.5 %.
const INCREASE_PER_MILLE: u128 = 125;

/// Bounds of what is offered for a unit of gas.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct FeePolicy {
    /// Maximum price of a unit of gas, in wei, priority fee included. Nothing is sent while the chain's base fee is above it.
    pub max_fee: u128,
    /// Time after which a transaction that is in no block is replaced by one that offers more.
    pub replace_after: Duration,
}

/// The offer of one transaction, in wei for a unit of gas.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Fees {
    /// `maxFeePerGas`: the most that is paid, base fee included.
    pub max_fee: u128,
    /// `maxPriorityFeePerGas`: the part that the block's proposer gets.
    pub priority_fee: u128,
}

/// Prices of the chain's next block, in wei for a unit of gas.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Market {
    /// The base fee.
    pub base_fee: u128,
    /// The priority fee that the node suggests.
    pub priority_fee: u128,
}

// === impl FeePolicy ===

impl FeePolicy {
    /// The first offer: twice the base fee, so that it holds for some full blocks, and the suggested priority fee; at most half of
    /// [`max_fee`](Self::max_fee) if that is enough for now, so that there is room for replacements.
    /// `None` while the base fee leaves no room for a priority fee below [`max_fee`](Self::max_fee).
    pub fn first(&self, market: Market) -> Option<Fees> {
        let room = self.max_fee.checked_sub(market.base_fee)?;
        if room == 0 {
            return None;
        }
        let priority_fee = market.priority_fee.clamp(1, room);
        let wanted = market
            .base_fee
            .saturating_mul(2)
            .saturating_add(priority_fee);
        let needed = market.base_fee.saturating_add(priority_fee);
        let bound = match needed <= self.max_fee / 2 {
            true => self.max_fee / 2,
            false => self.max_fee,
        };
        Some(Fees {
            max_fee: wanted.min(bound),
            priority_fee,
        })
    }

    /// The offer that replaces `before`: both fees are higher by the increase that nodes demand, and at least those of a
    /// first offer. `None` if that is above [`max_fee`](Self::max_fee).
    pub fn replacement(&self, before: Fees, market: Market) -> Option<Fees> {
        let raised = Fees {
            max_fee: raise(before.max_fee),
            priority_fee: raise(before.priority_fee),
        };
        if raised.max_fee > self.max_fee {
            return None;
        }
        let fresh = self.first(market).unwrap_or(raised);
        let priority_fee = raised.priority_fee.max(fresh.priority_fee);
        let max_fee = raised.max_fee.max(fresh.max_fee).max(priority_fee);
        (max_fee <= self.max_fee).then_some(Fees {
            max_fee,
            priority_fee,
        })
    }
}

// === impl Fees ===

impl Fees {
    /// Whether a block with this base fee may contain the transaction.
    pub fn allow(&self, base_fee: u128) -> bool {
        self.max_fee > base_fee
    }
}

/// `fee` with the increase of a replacement, rounded up.
fn raise(fee: u128) -> u128 {
    let increase = fee.saturating_mul(INCREASE_PER_MILLE).div_ceil(1000);
    fee.saturating_add(increase.max(1))
}

#[cfg(test)]
mod tests {
    use super::*;

    const POLICY: FeePolicy = FeePolicy {
        max_fee: 1000,
        replace_after: Duration::from_secs(1),
    };

    fn market(base_fee: u128, priority_fee: u128) -> Market {
        Market {
            base_fee,
            priority_fee,
        }
    }

    fn fees(max_fee: u128, priority_fee: u128) -> Fees {
        Fees {
            max_fee,
            priority_fee,
        }
    }

    #[test]
    fn the_first_offer_is_within_the_bound() {
        assert_eq!(POLICY.first(market(100, 10)), Some(fees(210, 10)));
        assert_eq!(POLICY.first(market(100, 0)), Some(fees(201, 1)));
        assert_eq!(POLICY.first(market(990, 100)), Some(fees(1000, 10)));
        assert_eq!(POLICY.first(market(1000, 10)), None);
        assert_eq!(POLICY.first(market(u128::MAX, u128::MAX)), None);
    }

    #[test]
    fn replacements_rise_until_the_bound() {
        let mut offer = fees(100, 1);
        let mut count = 0;
        while let Some(next) = POLICY.replacement(offer, market(10, 1)) {
            assert!(
                next.max_fee * 1000 >= offer.max_fee * 1125,
                "{offer:?} {next:?}"
            );
            assert!(next.priority_fee * 1000 >= offer.priority_fee * 1125);
            assert!(next.max_fee <= POLICY.max_fee && next.priority_fee <= next.max_fee);
            (offer, count) = (next, count + 1);
        }
        assert!((15..25).contains(&count), "{count}");
        // A spike of the base fee is followed at once.
        assert_eq!(
            POLICY.replacement(fees(100, 1), market(300, 5)),
            Some(fees(500, 5))
        );
        // What the node suggests may be above the bound: the increase is enough.
        let offer = POLICY.replacement(fees(100, 1), market(2000, 5));
        assert_eq!(offer, Some(fees(113, 2)));
    }
}
