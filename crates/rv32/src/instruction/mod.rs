//! Instructions of RV32IM: their typed form, decoder, encoder and arithmetic.

mod arithmetic;
mod decode;
mod encode;
#[cfg(test)]
mod known_words;
mod operation;
mod register;
mod typed;

pub use decode::IllegalInstruction;
pub use encode::EncodeError;
pub use operation::{
    BranchOperation, ImmediateOperation, LoadOperation, RegisterOperation, StoreOperation,
};
pub use register::Register;
pub use typed::Instruction;
