//! Instructions to words.

use thiserror::Error;

use super::{Instruction, Register};

/// A field whose value the instruction's format cannot hold.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Error)]
pub enum EncodeError {
    /// An immediate, offset or shift amount out of its range.
    #[error("{field} {value} is outside of {least} to {most}")]
    OutOfRange {
        /// Name of the field in [`Instruction`].
        field: &'static str,
        /// Its value.
        value: i64,
        /// Least value of the field.
        least: i64,
        /// Greatest value of the field.
        most: i64,
    },
    /// A value whose low bits the format has no room for.
    #[error("{field} {value} is not a multiple of {multiple}")]
    NotAMultiple {
        /// Name of the field in [`Instruction`].
        field: &'static str,
        /// Its value.
        value: i64,
        /// Number that the value has to be a multiple of.
        multiple: u32,
    },
}

impl Instruction {
    /// The word of the instruction.
    ///
    /// # Errors
    /// An offset or immediate is outside of the range documented at its field.
    pub fn encode(self) -> Result<u32, EncodeError> {
        Ok(match self {
            Self::Lui { rd, immediate } => 0x37 | to(rd) | page(immediate)?,
            Self::Auipc { rd, immediate } => 0x17 | to(rd) | page(immediate)?,
            Self::Jal { rd, offset } => 0x6f | to(rd) | jump_offset(offset)?,
            Self::Jalr { rd, rs1, offset } => {
                0x67 | to(rd) | left(rs1) | upper_immediate("offset", offset)?
            }
            Self::Branch {
                operation,
                rs1,
                rs2,
                offset,
            } => 0x63 | operation.funct3() << 12 | left(rs1) | right(rs2) | branch_offset(offset)?,
            Self::Load {
                operation,
                rd,
                rs1,
                offset,
            } => {
                let address = left(rs1) | upper_immediate("offset", offset)?;
                0x03 | operation.funct3() << 12 | to(rd) | address
            }
            Self::Store {
                operation,
                rs1,
                rs2,
                offset,
            } => {
                let offset = ranged("offset", offset, -2048, 2047)? as u32;
                let split = (offset & 31) << 7 | (offset >> 5) << 25;
                0x23 | operation.funct3() << 12 | left(rs1) | right(rs2) | split
            }
            Self::Immediate {
                operation,
                rd,
                rs1,
                immediate,
            } => {
                let field = if operation.is_shift() {
                    let amount = ranged("immediate", immediate, 0, 31)? as u32;
                    operation.register_operation().funct7() << 25 | amount << 20
                } else {
                    upper_immediate("immediate", immediate)?
                };
                0x13 | operation.funct3() << 12 | to(rd) | left(rs1) | field
            }
            Self::Register {
                operation,
                rd,
                rs1,
                rs2,
            } => {
                let function = operation.funct3() << 12 | operation.funct7() << 25;
                0x33 | function | to(rd) | left(rs1) | right(rs2)
            }
            Self::Fence { ordering, rd, rs1 } => {
                let ordering = ranged("ordering", i32::from(ordering), 0, 4095)? as u32;
                0x0f | to(rd) | left(rs1) | ordering << 20
            }
            Self::EnvironmentCall => 0x73,
        })
    }
}

fn to(rd: Register) -> u32 {
    u32::from(rd.number()) << 7
}

fn left(rs1: Register) -> u32 {
    u32::from(rs1.number()) << 15
}

fn right(rs2: Register) -> u32 {
    u32::from(rs2.number()) << 20
}

fn ranged(field: &'static str, value: i32, least: i32, most: i32) -> Result<i32, EncodeError> {
    if (least..=most).contains(&value) {
        Ok(value)
    } else {
        Err(EncodeError::OutOfRange {
            field,
            value: value.into(),
            least: least.into(),
            most: most.into(),
        })
    }
}

fn even(value: i32) -> Result<i32, EncodeError> {
    if value % 2 == 0 {
        Ok(value)
    } else {
        Err(EncodeError::NotAMultiple {
            field: "offset",
            value: value.into(),
            multiple: 2,
        })
    }
}

/// The immediate of format U.
fn page(immediate: u32) -> Result<u32, EncodeError> {
    if immediate.is_multiple_of(4096) {
        Ok(immediate)
    } else {
        Err(EncodeError::NotAMultiple {
            field: "immediate",
            value: immediate.into(),
            multiple: 4096,
        })
    }
}

/// The immediate of format I.
fn upper_immediate(field: &'static str, value: i32) -> Result<u32, EncodeError> {
    Ok((ranged(field, value, -2048, 2047)? as u32) << 20)
}

/// The offset of format B.
fn branch_offset(offset: i32) -> Result<u32, EncodeError> {
    let bits = ranged("offset", even(offset)?, -4096, 4094)? as u32;
    Ok((bits >> 12) << 31 | (bits & 0x7e0) << 20 | (bits & 0x1e) << 7 | (bits & 0x800) >> 4)
}

/// The offset of format J.
fn jump_offset(offset: i32) -> Result<u32, EncodeError> {
    let bits = ranged("offset", even(offset)?, -(1 << 20), (1 << 20) - 2)? as u32;
    Ok((bits >> 20) << 31 | (bits & 0x7fe) << 20 | (bits & 0x800) << 9 | bits & 0xf_f000)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::instruction::{BranchOperation, ImmediateOperation, StoreOperation};

    const X: Register = Register::A0;

    #[test]
    fn values_out_of_range_are_refused() {
        let jump = |offset| Instruction::Jal { rd: X, offset };
        let branch = |offset| Instruction::Branch {
            operation: BranchOperation::Beq,
            rs1: X,
            rs2: X,
            offset,
        };
        let store = |offset| Instruction::Store {
            operation: StoreOperation::Sw,
            rs1: X,
            rs2: X,
            offset,
        };
        let shift = |immediate| Instruction::Immediate {
            operation: ImmediateOperation::Srai,
            rd: X,
            rs1: X,
            immediate,
        };
        let accepted = [
            jump(-(1 << 20)),
            jump((1 << 20) - 2),
            branch(-4096),
            branch(4094),
            store(-2048),
            store(2047),
            shift(0),
            shift(31),
        ];
        for instruction in accepted {
            let word = instruction.encode().unwrap();
            assert_eq!(Instruction::decode(word), Ok(instruction));
        }
        let refused = [
            jump(-(1 << 20) - 2),
            jump(1 << 20),
            jump(3),
            branch(-4098),
            branch(4096),
            branch(1),
            store(-2049),
            store(2048),
            shift(-1),
            shift(32),
            Instruction::Lui {
                rd: X,
                immediate: 1,
            },
            Instruction::Fence {
                ordering: 4096,
                rd: X,
                rs1: X,
            },
        ];
        for instruction in refused {
            assert!(instruction.encode().is_err(), "{instruction:?}");
        }
        assert_eq!(
            store(2048).encode().unwrap_err().to_string(),
            "offset 2048 is outside of -2048 to 2047"
        );
    }
}
