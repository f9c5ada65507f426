//! Decisions about one transaction, by the state of the chain: no input or output.

use crate::chain::Inclusion;
use crate::fees::{FeePolicy, Fees, Market};
use crate::journal::Entry;

/// Rounds after which a transaction is given up whose nonce is used by none of its attempts, or cannot be used since a lower one
/// is free: a node may show the account's new nonce before the receipt, or be behind.
pub(crate) const MISSING_ROUNDS: u32 = 8;

/// Maximum number of replacements of one transaction. The bound of the fees ends them earlier as a rule.
pub(crate) const ATTEMPTS_MAX: usize = 64;

/// Rules of settlement that do not depend on the chain's state.
#[derive(Clone, Copy, Debug)]
pub struct Rules {
    /// Number of blocks, its own included, after which a transaction counts as settled. At least 1.
    pub confirmations: u64,
    /// Number of blocks after which no reorganisation is expected to undo a transaction.
    pub finality: u64,
    /// Bounds of the fees.
    pub fees: FeePolicy,
}

/// State of the chain with regard to a transaction.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Seen {
    /// Number of the last block.
    pub head: u64,
    /// Prices of the next block.
    pub market: Market,
    /// The account's next nonce.
    pub nonce: u64,
    /// Whether each nonce from the account's next one up to this transaction's is given to a transaction of the journal.
    pub follows: bool,
    /// Place of the transaction, by any of its attempts.
    pub inclusion: Option<Inclusion>,
}

/// Next step for a transaction.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Step {
    /// It is in a block that is too young to count.
    Wait,
    /// It counts as settled, and may be undone by a reorganisation.
    Settled(Inclusion),
    /// It is settled or has failed, and no reorganisation is expected to undo that.
    Final(Inclusion),
    /// It is in a block, and had no effect.
    Reverted(Inclusion),
    /// It is in no block: it is offered again.
    Offer,
    /// It is in no block for long: it is replaced by one with these fees.
    Replace(Fees),
    /// Its nonce seems to be used by another transaction of the account, or a lower nonce is free.
    Missing,
}

/// Next step for `entry` at `now_ms`, in milliseconds since 1970-01-01 UTC.
pub(crate) fn decide(entry: &Entry, rules: &Rules, seen: &Seen, now_ms: u64) -> Step {
    let Some(inclusion) = seen.inclusion else {
        if seen.nonce > entry.nonce || !seen.follows {
            return Step::Missing;
        }
        if is_due(entry, rules, now_ms) && entry.attempts.len() < ATTEMPTS_MAX {
            let fees = rules.fees.replacement(entry.fees(), seen.market);
            return fees.map_or(Step::Offer, Step::Replace);
        }
        return Step::Offer;
    };
    // A block counts as its own first confirmation. A node that is behind shows a head below the block.
    let depth = seen.head.saturating_add(1).saturating_sub(inclusion.block);
    if depth < rules.confirmations.max(1) {
        Step::Wait
    } else if depth >= rules.finality.max(rules.confirmations) {
        Step::Final(inclusion)
    } else if inclusion.succeeded {
        Step::Settled(inclusion)
    } else {
        Step::Reverted(inclusion)
    }
}

/// Whether a transaction that is in no block may be replaced. A clock that was set back must not prevent it.
pub(crate) fn is_due(entry: &Entry, rules: &Rules, now_ms: u64) -> bool {
    match now_ms.checked_sub(entry.signed_ms()) {
        Some(age_ms) => u128::from(age_ms) >= rules.fees.replace_after.as_millis(),
        None => true,
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;
    use crate::journal::{Attempt, EmissionRange};

    const RULES: Rules = Rules {
        confirmations: 3,
        finality: 10,
        fees: FeePolicy {
            max_fee: 1000,
            replace_after: Duration::from_secs(30),
        },
    };

    fn entry() -> Entry {
        Entry {
            nonce: 5,
            to: [0; 20],
            emissions: vec![EmissionRange { first: 1, last: 2 }],
            data: Vec::new(),
            gas_limit: 1,
            attempts: vec![Attempt {
                hash: [1; 32],
                max_fee: 100,
                priority_fee: 1,
                signed_ms: 1_000_000,
            }],
            raw: Vec::new(),
        }
    }

    fn seen(head: u64, nonce: u64, block: Option<u64>, succeeded: bool) -> Seen {
        let inclusion = |block| Inclusion {
            block,
            succeeded,
            gas_used: 1,
            gas_price: 1,
        };
        Seen {
            head,
            nonce,
            follows: true,
            market: Market {
                base_fee: 40,
                priority_fee: 1,
            },
            inclusion: block.map(inclusion),
        }
    }

    fn step(seen: Seen, now_ms: u64) -> Step {
        decide(&entry(), &RULES, &seen, now_ms)
    }

    #[test]
    fn a_transaction_counts_after_its_confirmations() {
        for (head, expected) in [
            (99, "Wait"),
            (100, "Wait"),
            (101, "Wait"),
            (102, "Settled"),
            (108, "Settled"),
            (109, "Final"),
        ] {
            let step = format!("{:?}", step(seen(head, 6, Some(100), true), 0));
            assert!(step.starts_with(expected), "{head}: {step}");
        }
        let failed = step(seen(102, 6, Some(100), false), 0);
        assert!(matches!(failed, Step::Reverted(_)), "{failed:?}");
        let failed = step(seen(109, 6, Some(100), false), 0);
        assert!(matches!(failed, Step::Final(found) if !found.succeeded));
    }

    #[test]
    fn a_transaction_in_no_block_is_offered_again_and_replaced_when_it_is_due() {
        assert_eq!(step(seen(100, 5, None, true), 1_029_999), Step::Offer);
        let replaced = step(seen(100, 5, None, true), 1_030_000);
        assert!(
            matches!(replaced, Step::Replace(fees) if fees.max_fee == 113),
            "{replaced:?}"
        );
        let early = step(seen(100, 5, None, true), 0);
        assert!(matches!(early, Step::Replace(_)), "the clock was set back");
        let mut above_a_gap = seen(100, 4, None, true);
        above_a_gap.follows = false;
        assert_eq!(step(above_a_gap, 1_000_000), Step::Missing);
        assert_eq!(step(seen(100, 6, None, true), 2_000_000), Step::Missing);
        let mut entry = entry();
        entry.attempts = vec![entry.attempts[0].clone(); ATTEMPTS_MAX];
        let step = decide(&entry, &RULES, &seen(100, 5, None, true), 2_000_000);
        assert_eq!(step, Step::Offer);
        entry.attempts.truncate(1);
        entry.attempts[0].max_fee = 950;
        let step = decide(&entry, &RULES, &seen(100, 5, None, true), 2_000_000);
        assert_eq!(step, Step::Offer, "the bound allows no replacement");
    }
}
