//! Operations within an instruction format, named by the manual's mnemonics.
//!
//! Source: The RISC-V Instruction Set Manual, Volume I, version 20240411, chapters "RV32I Base Integer Instruction Set"
//! and "M Extension for Integer Multiplication and Division", and "RV32/64G Instruction Set Listings" for `funct3` and
//! `funct7`.

/// Condition of a branch.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum BranchOperation {
    /// Equal.
    Beq,
    /// Not equal.
    Bne,
    /// Less, signed.
    Blt,
    /// Greater or equal, signed.
    Bge,
    /// Less, unsigned.
    Bltu,
    /// Greater or equal, unsigned.
    Bgeu,
}

/// Width and extension of a load.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum LoadOperation {
    /// One byte, sign-extended.
    Lb,
    /// Two bytes, sign-extended.
    Lh,
    /// Four bytes.
    Lw,
    /// One byte, zero-extended.
    Lbu,
    /// Two bytes, zero-extended.
    Lhu,
}

/// Width of a store.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum StoreOperation {
    /// The low byte of the register.
    Sb,
    /// The low two bytes of the register.
    Sh,
    /// All four bytes of the register.
    Sw,
}

/// Operation on a register and an immediate.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum ImmediateOperation {
    /// Sum.
    Addi,
    /// 1 if less, signed, else 0.
    Slti,
    /// 1 if less, unsigned, else 0. The immediate is sign-extended first.
    Sltiu,
    /// Bitwise exclusive or.
    Xori,
    /// Bitwise or.
    Ori,
    /// Bitwise and.
    Andi,
    /// Shift left by 0 to 31.
    Slli,
    /// Shift right by 0 to 31, filled with zeros.
    Srli,
    /// Shift right by 0 to 31, filled with the sign.
    Srai,
}

/// Operation on two registers.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum RegisterOperation {
    /// Sum.
    Add,
    /// Difference.
    Sub,
    /// Shift left by the low five bits of the right operand.
    Sll,
    /// 1 if less, signed, else 0.
    Slt,
    /// 1 if less, unsigned, else 0.
    Sltu,
    /// Bitwise exclusive or.
    Xor,
    /// Shift right by the low five bits of the right operand, filled with zeros.
    Srl,
    /// Shift right by the low five bits of the right operand, filled with the sign.
    Sra,
    /// Bitwise or.
    Or,
    /// Bitwise and.
    And,
    /// Low 32 bits of the product.
    Mul,
    /// High 32 bits of the product of signed by signed.
    Mulh,
    /// High 32 bits of the product of signed (left) by unsigned (right).
    Mulhsu,
    /// High 32 bits of the product of unsigned by unsigned.
    Mulhu,
    /// Signed quotient, rounded toward zero; −1 for a divisor of zero, −2³¹ for −2³¹ / −1.
    Div,
    /// Unsigned quotient; 2³² − 1 for a divisor of zero.
    Divu,
    /// Signed remainder with the sign of the dividend; the dividend for a divisor of zero, 0 for −2³¹ / −1.
    Rem,
    /// Unsigned remainder; the dividend for a divisor of zero.
    Remu,
}

// === impl BranchOperation ===

impl BranchOperation {
    /// All six conditions.
    pub const ALL: [Self; 6] = [
        Self::Beq,
        Self::Bne,
        Self::Blt,
        Self::Bge,
        Self::Bltu,
        Self::Bgeu,
    ];

    /// The field `funct3`.
    pub const fn funct3(self) -> u32 {
        match self {
            Self::Beq => 0,
            Self::Bne => 1,
            Self::Blt => 4,
            Self::Bge => 5,
            Self::Bltu => 6,
            Self::Bgeu => 7,
        }
    }
}

// === impl LoadOperation ===

impl LoadOperation {
    /// All five loads.
    pub const ALL: [Self; 5] = [Self::Lb, Self::Lh, Self::Lw, Self::Lbu, Self::Lhu];

    /// The field `funct3`.
    pub const fn funct3(self) -> u32 {
        match self {
            Self::Lb => 0,
            Self::Lh => 1,
            Self::Lw => 2,
            Self::Lbu => 4,
            Self::Lhu => 5,
        }
    }

    /// Width in bytes: 1, 2 or 4.
    pub const fn width_bytes(self) -> u32 {
        match self {
            Self::Lb | Self::Lbu => 1,
            Self::Lh | Self::Lhu => 2,
            Self::Lw => 4,
        }
    }
}

// === impl StoreOperation ===

impl StoreOperation {
    /// All three stores.
    pub const ALL: [Self; 3] = [Self::Sb, Self::Sh, Self::Sw];

    /// The field `funct3`.
    pub const fn funct3(self) -> u32 {
        match self {
            Self::Sb => 0,
            Self::Sh => 1,
            Self::Sw => 2,
        }
    }

    /// Width in bytes: 1, 2 or 4.
    pub const fn width_bytes(self) -> u32 {
        1 << self.funct3()
    }
}

// === impl ImmediateOperation ===

impl ImmediateOperation {
    /// All nine operations.
    pub const ALL: [Self; 9] = [
        Self::Addi,
        Self::Slti,
        Self::Sltiu,
        Self::Xori,
        Self::Ori,
        Self::Andi,
        Self::Slli,
        Self::Srli,
        Self::Srai,
    ];

    /// The operation on two registers that computes the same of the register and the immediate.
    pub const fn register_operation(self) -> RegisterOperation {
        match self {
            Self::Addi => RegisterOperation::Add,
            Self::Slti => RegisterOperation::Slt,
            Self::Sltiu => RegisterOperation::Sltu,
            Self::Xori => RegisterOperation::Xor,
            Self::Ori => RegisterOperation::Or,
            Self::Andi => RegisterOperation::And,
            Self::Slli => RegisterOperation::Sll,
            Self::Srli => RegisterOperation::Srl,
            Self::Srai => RegisterOperation::Sra,
        }
    }

    /// The field `funct3`.
    pub const fn funct3(self) -> u32 {
        self.register_operation().funct3()
    }

    /// Whether the immediate is a shift amount of 0 to 31.
    pub const fn is_shift(self) -> bool {
        matches!(self, Self::Slli | Self::Srli | Self::Srai)
    }
}

// === impl RegisterOperation ===

impl RegisterOperation {
    /// All eighteen operations.
    pub const ALL: [Self; 18] = [
        Self::Add,
        Self::Sub,
        Self::Sll,
        Self::Slt,
        Self::Sltu,
        Self::Xor,
        Self::Srl,
        Self::Sra,
        Self::Or,
        Self::And,
        Self::Mul,
        Self::Mulh,
        Self::Mulhsu,
        Self::Mulhu,
        Self::Div,
        Self::Divu,
        Self::Rem,
        Self::Remu,
    ];

    /// The field `funct3`.
    pub const fn funct3(self) -> u32 {
        match self {
            Self::Add | Self::Sub | Self::Mul => 0,
            Self::Sll | Self::Mulh => 1,
            Self::Slt | Self::Mulhsu => 2,
            Self::Sltu | Self::Mulhu => 3,
            Self::Xor | Self::Div => 4,
            Self::Srl | Self::Sra | Self::Divu => 5,
            Self::Or | Self::Rem => 6,
            Self::And | Self::Remu => 7,
        }
    }

    /// The field `funct7`.
    pub const fn funct7(self) -> u32 {
        match self {
            Self::Sub | Self::Sra => 0x20,
            Self::Mul
            | Self::Mulh
            | Self::Mulhsu
            | Self::Mulhu
            | Self::Div
            | Self::Divu
            | Self::Rem
            | Self::Remu => 0x01,
            _ => 0x00,
        }
    }
}
