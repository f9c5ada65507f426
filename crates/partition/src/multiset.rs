//! The multiset that all parts share: puts and takes, and whether they match.

use std::collections::HashMap;
use std::fmt;

use ark_ff::{PrimeField, batch_inversion};
use sha2::{Digest, Sha256};

use crate::PartitionError;

/// The most values that the transfers of all parts have together, multiplicities included. It is far below the
/// field's characteristic, modulo which values are counted.
pub const MAX_TRANSFER_VALUES: usize = u32::MAX as usize;

/// Domain of the point at which a prover compares its own puts and takes.
const POINT_DOMAIN: &[u8] = b"proofmill/partition/multiset/1";

/// The kind of a transfer: of a value into the multiset, or out of it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Transfer {
    /// A value is put once ([`Part::put`](crate::Part::put)).
    Put,
    /// A value is put a private number of times ([`Part::put_times`](crate::Part::put_times)).
    PutTimes,
    /// A value is taken once ([`Part::take`](crate::Part::take)).
    Take,
}

/// A transfer with its value.
#[derive(Clone, Copy)]
pub(crate) struct Valued<F> {
    pub(crate) kind: Transfer,
    pub(crate) value: F,
    /// The multiplicity: −1 for a take.
    pub(crate) times: F,
}

// === impl Transfer ===

impl Transfer {
    /// Committed values of a transfer: its value, and its multiplicity if that is private.
    pub(crate) const fn values(self) -> usize {
        match self {
            Self::Put | Self::Take => 1,
            Self::PutTimes => 2,
        }
    }

    /// The byte for it in digests and files.
    pub(crate) const fn code(self) -> u8 {
        match self {
            Self::Put => 6,
            Self::PutTimes => 7,
            Self::Take => 8,
        }
    }

    /// The transfer of a byte.
    pub(crate) fn from_code(code: u8) -> Option<Self> {
        let all = [Self::Put, Self::PutTimes, Self::Take];
        all.into_iter().find(|transfer| transfer.code() == code)
    }
}

impl fmt::Display for Transfer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Put => "put",
            Self::PutTimes => "put with a multiplicity",
            Self::Take => "take",
        })
    }
}

/// Committed values of these transfers.
pub(crate) fn num_values(transfers: &[Transfer]) -> usize {
    transfers.iter().map(|transfer| transfer.values()).sum()
}

/// Transfers with their values, which are as many as [`num_values`].
pub(crate) fn valued<F: PrimeField>(
    transfers: &[Transfer],
    values: &[F],
) -> impl Iterator<Item = Valued<F>> {
    let mut values = values.iter().copied();
    transfers.iter().map(move |kind| {
        let value = values.next().unwrap_or_default();
        let times = match kind {
            Transfer::Put => F::one(),
            Transfer::PutTimes => values.next().unwrap_or_default(),
            Transfer::Take => -F::one(),
        };
        Valued {
            kind: *kind,
            value,
            times,
        }
    })
}

/// Σ times/(α − value) over these transfers. A fraction with the denominator 0 counts as 0.
pub(crate) fn sum<F: PrimeField>(transfers: &[Transfer], values: &[F], alpha: F) -> F {
    let mut inverses: Vec<F> = valued(transfers, values)
        .map(|transfer| alpha - transfer.value)
        .collect();
    batch_inversion(&mut inverses);
    let fractions = valued(transfers, values).zip(inverses);
    fractions
        .map(|(transfer, inverse)| transfer.times * inverse)
        .sum()
}

/// Checks that everything put is taken: the transfers of all parts with their values, part after part.
///
/// The sums of both sides are compared at one point first, which takes no memory. The point is fixed: a prover who
/// deceives itself here fails to prove later.
pub(crate) fn check<'a, F: PrimeField, I>(parts: impl Fn() -> I) -> Result<(), PartitionError>
where
    I: Iterator<Item = (&'a [Transfer], &'a [F])>,
{
    let point = F::from_le_bytes_mod_order(&Sha256::digest(POINT_DOMAIN));
    let sums = parts().map(|(transfers, values)| sum(transfers, values, point));
    if sums.sum::<F>().is_zero() {
        return Ok(());
    }
    match unmatched(parts) {
        Some((part, transfer, kind)) => Err(PartitionError::Unmatched {
            part,
            transfer,
            kind,
        }),
        // The point was one of the values.
        None => Ok(()),
    }
}

/// The first take of a value that is taken more often than put; else the first put of one that is put more often;
/// else the first transfer of one whose numbers differ. Part, index in the part, kind.
fn unmatched<'a, F: PrimeField, I>(parts: impl Fn() -> I) -> Option<(usize, usize, Transfer)>
where
    I: Iterator<Item = (&'a [Transfer], &'a [F])>,
{
    let mut surplus: HashMap<F, F> = HashMap::new();
    for (transfers, values) in parts() {
        for transfer in valued(transfers, values) {
            *surplus.entry(transfer.value).or_default() += transfer.times;
        }
    }
    surplus.retain(|_, times| !times.is_zero());
    let first = |is_it: &dyn Fn(Transfer, bool) -> bool| {
        parts().enumerate().find_map(|(part, (transfers, values))| {
            let mut all = valued(transfers, values).enumerate();
            all.find_map(|(index, Valued { kind, value, .. })| {
                let times = surplus.get(&value)?;
                // Small numbers are surpluses, and those near the characteristic are deficits.
                let is_surplus = times.into_bigint() <= F::MODULUS_MINUS_ONE_DIV_TWO;
                is_it(kind, is_surplus).then_some((part, index, kind))
            })
        })
    };
    first(&|kind, is_surplus| kind == Transfer::Take && !is_surplus)
        .or_else(|| first(&|kind, is_surplus| kind != Transfer::Take && is_surplus))
        .or_else(|| first(&|_, _| true))
}

#[cfg(test)]
mod tests {
    use ark_bn254::Fr;
    use ark_ff::Field;

    use super::*;
    use Transfer::{Put, PutTimes, Take};

    fn refusal(parts: &[(&[Transfer], &[i64])]) -> Option<(usize, usize, Transfer)> {
        let values: Vec<Vec<Fr>> = parts
            .iter()
            .map(|(_, values)| values.iter().copied().map(Fr::from).collect())
            .collect();
        let parts = || {
            let kinds = parts.iter().map(|(transfers, _)| *transfers);
            kinds.zip(values.iter().map(|values| &values[..]))
        };
        match check(parts) {
            Ok(()) => None,
            Err(PartitionError::Unmatched {
                part,
                transfer,
                kind,
            }) => Some((part, transfer, kind)),
            Err(error) => panic!("{error}"),
        }
    }

    #[test]
    fn everything_put_is_taken_in_any_order() {
        assert_eq!(refusal(&[]), None);
        assert_eq!(
            refusal(&[(&[Take], &[5]), (&[], &[]), (&[Put], &[5])]),
            None
        );
        let both: [Transfer; 4] = [Put, Take, Take, Put];
        assert_eq!(refusal(&[(&both, &[5, 5, 6, 6])]), None);
        let table: [Transfer; 5] = [PutTimes, Take, PutTimes, Take, PutTimes];
        assert_eq!(refusal(&[(&table, &[5, 2, 5, 6, 0, 5, 7, 0])]), None);
        assert_eq!(refusal(&[(&[PutTimes, Put], &[5, -1, 5])]), None);
    }

    #[test]
    fn the_first_unmatched_transfer_is_named() {
        let wrong_take = refusal(&[(&[Put, Put], &[4, 5]), (&[Take, Take], &[4, 6])]);
        assert_eq!(wrong_take, Some((1, 1, Take)));
        assert_eq!(refusal(&[(&[Put], &[0])]), Some((0, 0, Put)));
        let twice = refusal(&[(&[Take, Put, Take], &[5, 5, 5])]);
        assert_eq!(twice, Some((0, 0, Take)));
        let table = refusal(&[(&[PutTimes], &[5, 3]), (&[Take, Take], &[5, 5])]);
        assert_eq!(table, Some((0, 0, PutTimes)));
        assert_eq!(refusal(&[(&[PutTimes], &[5, -3])]), Some((0, 0, PutTimes)));
    }

    /// A value at which the sums cannot be compared.
    #[test]
    fn the_point_itself_may_be_a_value() {
        let point = Fr::from_le_bytes_mod_order(&Sha256::digest(POINT_DOMAIN));
        let transfers = [Put, Take];
        let check = |values: [Fr; 2]| check(|| std::iter::once((&transfers[..], &values[..])));
        assert!(check([point, point]).is_ok());
        assert!(check([point, point + Fr::ONE]).is_err());
        let table = [PutTimes, PutTimes];
        let values = [point, Fr::ONE, point, -Fr::ONE];
        assert_eq!(sum(&table, &values, point), Fr::from(0u64));
    }

    #[test]
    fn codes_come_back() {
        for transfer in [Put, PutTimes, Take] {
            assert_eq!(Transfer::from_code(transfer.code()), Some(transfer));
        }
        assert_eq!(Transfer::from_code(5), None);
        assert_eq!(num_values(&[Put, PutTimes, Take]), 4);
    }
}
