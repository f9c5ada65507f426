//! Addresses of code, data and the stack.
//!
//! | addresses | holds |
//! |---|---|
//! | `0x0000_0000`..`0x0000_1000` | nothing, so that null pointers trap |
//! | `0x0000_1000`..`0x0200_0000` | code: executed, neither loaded nor stored |
//! | `0x0200_0000`..`0x0400_0000` | data, heap and stack: loaded and stored, not executed |
//! | `0x0400_0000`.. | nothing |
//!
//! The data region is aligned to its size: an address is in it if bit 25 is set and the higher bits are zero, which is
//! cheap to prove. Code and data are separate so that a memory argument never has to contain code.

use std::ops::Range;

/// Addresses of code. Below are 4 KiB that hold nothing.
pub const CODE_REGION: Range<u32> = 0x0000_1000..DATA_REGION.start;

/// Addresses of data. All 32 MiB may be loaded and stored; what the program leaves undefined is zero at the start.
pub const DATA_REGION: Range<u32> = 0x0200_0000..0x0400_0000;

/// Value of the stack pointer at the start: the end of the data region. The stack grows downward.
pub const STACK_TOP: u32 = DATA_REGION.end;
