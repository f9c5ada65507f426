//! The data region, in pages that are allocated by the first store.

use crate::memory_map::DATA_REGION;

const PAGE_WORDS: usize = 1024;
const PAGES: usize = (DATA_REGION.end - DATA_REGION.start) as usize / 4 / PAGE_WORDS;

type Page = [u32; PAGE_WORDS];

/// Words of the data region; zero where none was stored.
#[derive(Clone, Debug)]
pub(super) struct Memory {
    pages: Vec<Option<Box<Page>>>,
}

// === impl Memory ===

impl Memory {
    /// Memory that contains words at addresses of the data region.
    pub(super) fn new(words: impl Iterator<Item = (u32, u32)>) -> Self {
        let mut memory = Self {
            pages: vec![None; PAGES],
        };
        for (address, word) in words {
            memory.store(address, word);
        }
        memory
    }

    /// The word that contains the byte of an address, or `None` outside of the data region.
    pub(super) fn load(&self, address: u32) -> Option<u32> {
        let (page, word) = place(address)?;
        Some(self.pages[page].as_ref().map_or(0, |page| page[word]))
    }

    /// Replaces the word that contains the byte of an address of the data region.
    pub(super) fn store(&mut self, address: u32, value: u32) {
        let (page, word) = place(address).expect("addresses are checked before a store");
        self.pages[page].get_or_insert_with(|| Box::new([0; PAGE_WORDS]))[word] = value;
    }
}

/// Index of the page and of the word in it.
fn place(address: u32) -> Option<(usize, usize)> {
    if !DATA_REGION.contains(&address) {
        return None;
    }
    let word = (address - DATA_REGION.start) as usize / 4;
    Some((word / PAGE_WORDS, word % PAGE_WORDS))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn words_are_zero_until_stored() {
        let first = DATA_REGION.start;
        let last = DATA_REGION.end - 4;
        let mut memory = Memory::new([(first + 4096, 9)].into_iter());
        assert_eq!(memory.load(first + 4096), Some(9));
        for address in [first, first + 4092, first + 4100, last, last + 3] {
            assert_eq!(memory.load(address), Some(0));
        }
        memory.store(last, 7);
        assert_eq!(memory.load(last), Some(7));
        for address in [0, first - 1, last + 4, u32::MAX] {
            assert_eq!(memory.load(address), None);
        }
        assert_eq!(memory.pages.iter().flatten().count(), 2);
    }
}
