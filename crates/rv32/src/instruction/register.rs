//! Numbers of registers.

use std::fmt;

/// Number of an integer register, 0 to 31. Register 0 always reads as zero.
///
/// Source: The RISC-V Instruction Set Manual, Volume I, version 20240411, section 2.1; names of the calling convention
/// (`sp`, `a0`, `a7`) from the RISC-V ABIs Specification, version 1.0.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Register(u8);

impl Register {
    /// Number of registers.
    pub const COUNT: usize = 32;
    /// Register 0, which always reads as zero.
    pub const ZERO: Self = Self(0);
    /// The stack pointer, register 2.
    pub const SP: Self = Self(2);
    /// The first argument and the result of a call, register 10.
    pub const A0: Self = Self(10);
    /// The number of an environment call, register 17.
    pub const A7: Self = Self(17);

    /// The register of a number, or `None` from 32 on.
    pub const fn new(number: u8) -> Option<Self> {
        if number < 32 {
            Some(Self(number))
        } else {
            None
        }
    }

    /// All registers, from 0 to 31.
    pub fn all() -> impl Iterator<Item = Self> {
        (0..32).map(Self)
    }

    /// The register in five bits of an instruction word; higher bits of `field` are dropped.
    pub(super) const fn from_field(field: u32) -> Self {
        Self((field & 31) as u8)
    }

    /// The number, 0 to 31.
    pub const fn number(self) -> u8 {
        self.0
    }

    /// The number as an index into an array of [`Register::COUNT`].
    pub const fn index(self) -> usize {
        self.0 as usize
    }
}

impl fmt::Display for Register {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "x{}", self.0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_end_at_31() {
        assert_eq!(Register::new(31).map(Register::number), Some(31));
        assert_eq!(Register::new(32), None);
        assert_eq!(Register::all().count(), Register::COUNT);
        assert_eq!(Register::A7.to_string(), "x17");
    }
}
