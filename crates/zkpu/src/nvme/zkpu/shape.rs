//! Windows and levels.

use crate::nvme::zkpu::{SCALAR_BITS, TABLE_ENTRY_BYTES};

/// Window and levels of a table and of the jobs that use it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Shape {
    /// Bits of a digit.
    pub window: u8,
    /// Multiples of each point in the table.
    pub levels: u8,
}

// === impl Shape ===

impl Shape {
    /// Digits of a scalar.
    pub const fn digits(self) -> u32 {
        SCALAR_BITS.div_ceil(self.window as u32)
    }

    /// Digits that remain for each entry of the table.
    pub const fn passes(self) -> u32 {
        self.digits().div_ceil(self.levels as u32)
    }

    /// Doublings between two levels of a table.
    pub const fn doublings(self) -> u32 {
        self.window as u32 * self.passes()
    }

    /// Bytes of a table of `count` points; no overflow for any count of 32 bits.
    pub const fn table_bytes(self, count: u32) -> u64 {
        count as u64 * self.levels as u64 * TABLE_ENTRY_BYTES
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn shapes_follow_the_page() {
        let shape = Shape {
            window: 13,
            levels: 1,
        };
        assert_eq!((shape.digits(), shape.passes()), (20, 20));
        let shape = Shape {
            window: 15,
            levels: 17,
        };
        assert_eq!(
            (shape.digits(), shape.passes(), shape.table_bytes(2)),
            (17, 1, 2 * 17 * 144)
        );
    }
}
