//! The order of accesses: which addresses each part has, by part and by address.

use std::ops::Range;

/// The addresses of both traces. Addresses are numbers from 1 without gaps, those of the public
/// inputs first; so are the entries of both traces: before the first part's come as many as there
/// are public inputs.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct AccessOrder {
    /// The address of each access, part after part.
    by_part: Vec<u32>,
    /// The end of each address's entries in the trace by address.
    ends: Vec<u32>,
    /// The first entry of each part, and the end.
    starts: Vec<usize>,
}

// === impl AccessOrder ===

impl AccessOrder {
    /// The order of these accesses, sorted by address with a counting sort.
    ///
    /// # Panics
    ///
    /// If [`checked`](Self::checked) refuses the accesses, which the recorder prevents.
    pub(crate) fn new(by_part: Vec<u32>, starts: Vec<usize>) -> Self {
        match Self::checked(by_part, starts) {
            Ok(order) => order,
            Err(reason) => panic!("{reason}"),
        }
    }

    /// Like [`new`](Self::new), for untrusted accesses; the error names the rule that they break.
    pub(crate) fn checked(by_part: Vec<u32>, starts: Vec<usize>) -> Result<Self, &'static str> {
        if starts.last() != Some(&by_part.len()) || !starts.is_sorted() {
            return Err("parts that have all accesses");
        }
        if u32::try_from(by_part.len()).is_err() {
            return Err("places of 32 bits");
        }
        if !by_part
            .iter()
            .take(starts[0])
            .copied()
            .eq(1..=starts[0] as u32)
        {
            return Err("public inputs with the first addresses");
        }
        match ends(&by_part) {
            Some(ends) => Ok(Self {
                by_part,
                ends,
                starts,
            }),
            None => Err("addresses without gaps"),
        }
    }

    /// The number of parts.
    pub(crate) const fn parts(&self) -> usize {
        self.starts.len() - 1
    }

    /// The number of entries of each trace, those of public inputs included.
    pub(crate) const fn entries(&self) -> usize {
        self.by_part.len()
    }

    /// The number of addresses, which are numbers from 1.
    pub(crate) const fn num_addresses(&self) -> usize {
        self.ends.len()
    }

    /// The address of each access, part after part, public inputs first.
    pub(crate) fn addresses(&self) -> &[u32] {
        &self.by_part
    }

    /// The entries of a part, in either trace.
    pub(crate) fn range(&self, part: usize) -> Range<usize> {
        self.starts[part]..self.starts[part + 1]
    }

    /// The entries before the first part.
    pub(crate) fn public(&self) -> Range<usize> {
        0..self.starts[0]
    }

    /// Addresses of the trace by part.
    pub(crate) fn by_part(&self, range: Range<usize>) -> &[u32] {
        &self.by_part[range]
    }

    /// Addresses of the trace by address.
    pub(crate) fn by_address(&self, range: Range<usize>) -> Vec<u32> {
        let mut addresses = Vec::with_capacity(range.len());
        let mut address = self.address_of(range.start);
        for entry in range {
            while self.ends[address as usize - 1] as usize <= entry {
                address += 1;
            }
            addresses.push(address);
        }
        addresses
    }

    /// The address before a part's share of the trace by address; 0 for the first.
    pub(crate) fn address_before(&self, part: usize) -> u32 {
        let last = self.starts[part].checked_sub(1);
        last.map_or(0, |entry| self.address_of(entry))
    }

    /// The address of an entry of the trace by address; one beyond the last for one beyond the last.
    fn address_of(&self, entry: usize) -> u32 {
        1 + self.ends.partition_point(|end| *end as usize <= entry) as u32
    }

    /// The bytes that it takes in memory.
    pub(crate) fn bytes(&self) -> usize {
        size_of_val(&self.by_part[..]) + size_of_val(&self.ends[..]) + size_of_val(&self.starts[..])
    }

    /// Values of the trace by address, from those of the trace by part, which need not be the same at each access of
    /// an address.
    #[cfg(test)]
    pub(crate) fn sorted<F: Copy>(&self, range: Range<usize>, values: &[F]) -> Vec<F> {
        let mut order: Vec<usize> = (0..self.by_part.len()).collect();
        order.sort_by_key(|place| self.by_part[*place]);
        order[range].iter().map(|place| values[*place]).collect()
    }
}

/// The end of each address's entries when accesses are sorted; `None` unless the addresses are all numbers from 1 to
/// the largest.
fn ends(by_part: &[u32]) -> Option<Vec<u32>> {
    let largest = by_part.iter().max().map_or(0, |address| *address as usize);
    // Without gaps there are no more addresses than accesses.
    if largest > by_part.len() {
        return None;
    }
    let mut ends = vec![0u32; largest];
    for address in by_part {
        *ends.get_mut((*address as usize).checked_sub(1)?)? += 1;
    }
    let mut total = 0;
    for end in &mut ends {
        if *end == 0 {
            return None;
        }
        total += *end;
        *end = total;
    }
    Some(ends)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn entries_are_sorted_by_address_and_then_by_place() {
        // Two public inputs; parts of three accesses, none, and two.
        let order = AccessOrder::new(vec![1, 2, 3, 1, 3, 2, 3], vec![2, 5, 5, 7]);
        assert_eq!((order.parts(), order.entries()), (3, 7));
        assert_eq!(order.by_address(0..7), [1, 1, 2, 2, 3, 3, 3]);
        assert_eq!(order.sorted(0..7, b"abcdefg"), b"adbfceg");
        assert_eq!(order.by_part(order.range(2)), [2, 3]);
        let before = [0, 1, 2].map(|part| order.address_before(part));
        assert_eq!(before, [1, 3, 3]);
        assert_eq!(order.by_address(order.public()), [1, 1]);
    }

    #[test]
    fn nothing_is_sorted() {
        let order = AccessOrder::new(Vec::new(), vec![0, 0]);
        assert_eq!((order.entries(), order.address_before(0)), (0, 0));
    }

    #[test]
    #[should_panic(expected = "addresses without gaps")]
    fn gaps_are_refused() {
        AccessOrder::new(vec![1, 3], vec![0, 2]);
    }

    #[test]
    #[should_panic(expected = "addresses without gaps")]
    fn address_zero_is_refused() {
        AccessOrder::new(vec![0, 1], vec![0, 2]);
    }

    #[test]
    #[should_panic(expected = "public inputs with the first addresses")]
    fn public_inputs_have_the_first_addresses() {
        AccessOrder::new(vec![2, 1], vec![2, 2]);
    }

    #[test]
    fn parts_have_all_accesses_once() {
        let refused = |starts| AccessOrder::checked(vec![1, 2, 3], starts).is_err();
        assert!(refused(vec![]) && refused(vec![0, 2]) && refused(vec![0, 4]));
        assert!(refused(vec![0, 3, 2, 3]) && refused(vec![4, 3]));
        assert!(!refused(vec![0, 1, 1, 3]) && !refused(vec![3]));
    }
}
