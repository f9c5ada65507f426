//! Results of operations.
//!
//! Source: The RISC-V Instruction Set Manual, Volume I, version 20240411, sections 2.4 and 2.5.2, and chapter "M Extension
//! for Integer Multiplication and Division".

use super::{BranchOperation, LoadOperation, RegisterOperation, StoreOperation};

impl RegisterOperation {
    /// The result for a left and a right operand.
    pub const fn evaluate(self, left: u32, right: u32) -> u32 {
        let (signed_left, signed_right) = (left as i32, right as i32);
        match self {
            Self::Add => left.wrapping_add(right),
            Self::Sub => left.wrapping_sub(right),
            Self::Sll => left << (right & 31),
            Self::Slt => (signed_left < signed_right) as u32,
            Self::Sltu => (left < right) as u32,
            Self::Xor => left ^ right,
            Self::Srl => left >> (right & 31),
            Self::Sra => (signed_left >> (right & 31)) as u32,
            Self::Or => left | right,
            Self::And => left & right,
            Self::Mul => left.wrapping_mul(right),
            Self::Mulh => ((signed_left as i64 * signed_right as i64) >> 32) as u32,
            // |left| is at most 2³¹ and right below 2³², so the product fits 64 bits with its sign.
            Self::Mulhsu => ((signed_left as i64 * right as i64) >> 32) as u32,
            Self::Mulhu => ((left as u64 * right as u64) >> 32) as u32,
            Self::Div if right == 0 => u32::MAX,
            Self::Div => signed_left.wrapping_div(signed_right) as u32,
            Self::Divu if right == 0 => u32::MAX,
            Self::Divu => left / right,
            Self::Rem if right == 0 => left,
            Self::Rem => signed_left.wrapping_rem(signed_right) as u32,
            Self::Remu if right == 0 => left,
            Self::Remu => left % right,
        }
    }
}

impl BranchOperation {
    /// Whether the branch is taken for a left and a right operand.
    pub const fn is_taken(self, left: u32, right: u32) -> bool {
        match self {
            Self::Beq => left == right,
            Self::Bne => left != right,
            Self::Blt => (left as i32) < right as i32,
            Self::Bge => left as i32 >= right as i32,
            Self::Bltu => left < right,
            Self::Bgeu => left >= right,
        }
    }
}

impl LoadOperation {
    /// The loaded value, from the memory word that contains it. `address` is the byte address, aligned to the width; only
    /// its low two bits count.
    pub const fn extract(self, word: u32, address: u32) -> u32 {
        let low = word >> (8 * (address & 3));
        match self {
            Self::Lb => low as i8 as u32,
            Self::Lh => low as i16 as u32,
            Self::Lw => word,
            Self::Lbu => low as u8 as u32,
            Self::Lhu => low as u16 as u32,
        }
    }
}

impl StoreOperation {
    /// The memory word after a store of `value`, from the word before. `address` is the byte address, aligned to the
    /// width; only its low two bits count.
    pub const fn insert(self, word: u32, address: u32, value: u32) -> u32 {
        let mask: u32 = match self {
            Self::Sb => 0xff,
            Self::Sh => 0xffff,
            Self::Sw => return value,
        };
        let shift = 8 * (address & 3);
        word & !(mask << shift) | (value & mask) << shift
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const MINUS_ONE: u32 = u32::MAX;
    const LEAST: u32 = 1 << 31;

    #[test]
    fn division_by_zero_and_its_overflow_are_as_in_the_manual() {
        for dividend in [0, 1, 7, LEAST, MINUS_ONE] {
            assert_eq!(RegisterOperation::Div.evaluate(dividend, 0), MINUS_ONE);
            assert_eq!(RegisterOperation::Divu.evaluate(dividend, 0), MINUS_ONE);
            assert_eq!(RegisterOperation::Rem.evaluate(dividend, 0), dividend);
            assert_eq!(RegisterOperation::Remu.evaluate(dividend, 0), dividend);
        }
        assert_eq!(RegisterOperation::Div.evaluate(LEAST, MINUS_ONE), LEAST);
        assert_eq!(RegisterOperation::Rem.evaluate(LEAST, MINUS_ONE), 0);
        assert_eq!(RegisterOperation::Divu.evaluate(LEAST, MINUS_ONE), 0);
        assert_eq!(RegisterOperation::Remu.evaluate(LEAST, MINUS_ONE), LEAST);
        let minus_seven = 7u32.wrapping_neg();
        assert_eq!(
            RegisterOperation::Div.evaluate(minus_seven, 2),
            3u32.wrapping_neg()
        );
        assert_eq!(RegisterOperation::Rem.evaluate(minus_seven, 2), MINUS_ONE);
    }

    #[test]
    fn high_products_have_the_signs_of_their_operands() {
        assert_eq!(RegisterOperation::Mulh.evaluate(MINUS_ONE, MINUS_ONE), 0);
        assert_eq!(
            RegisterOperation::Mulhsu.evaluate(MINUS_ONE, MINUS_ONE),
            MINUS_ONE
        );
        assert_eq!(
            RegisterOperation::Mulhu.evaluate(MINUS_ONE, MINUS_ONE),
            MINUS_ONE - 1
        );
        assert_eq!(RegisterOperation::Mulh.evaluate(LEAST, LEAST), 1 << 30);
        assert_eq!(
            RegisterOperation::Mulhsu.evaluate(LEAST, LEAST),
            0xc000_0000
        );
        assert_eq!(
            RegisterOperation::Mulhsu.evaluate(LEAST, MINUS_ONE),
            0x8000_0000
        );
    }

    #[test]
    fn shifts_use_five_bits_of_the_amount() {
        assert_eq!(RegisterOperation::Sll.evaluate(1, 33), 2);
        assert_eq!(RegisterOperation::Srl.evaluate(LEAST, 63), 1);
        assert_eq!(RegisterOperation::Sra.evaluate(LEAST, 63), MINUS_ONE);
    }

    #[test]
    fn parts_of_words_are_little_endian() {
        let word = 0x8283_8485;
        assert_eq!(LoadOperation::Lbu.extract(word, 4), 0x85);
        assert_eq!(LoadOperation::Lb.extract(word, 7), 0xffff_ff82);
        assert_eq!(LoadOperation::Lh.extract(word, 2), 0xffff_8283);
        assert_eq!(LoadOperation::Lhu.extract(word, 0), 0x8485);
        assert_eq!(StoreOperation::Sb.insert(word, 1, 0x1234), 0x8283_3485);
        assert_eq!(StoreOperation::Sh.insert(word, 2, 0x1_1234), 0x1234_8485);
        assert_eq!(StoreOperation::Sw.insert(word, 0, 5), 5);
    }
}
