//! The second interpreter. Registers are numbers from 0 to 2³² − 1 in 64 bits; memory is a map of bytes.

use std::collections::HashMap;

use super::table::lookup;

const TWO_32: i64 = 1 << 32;

/// State of an execution.
pub(crate) struct Reference {
    pub(crate) pc: i64,
    pub(crate) x: [i64; 32],
    pub(crate) bytes: HashMap<i64, u8>,
    /// Address of the last step's load or store.
    pub(crate) accessed: Option<i64>,
    code: HashMap<i64, u32>,
    input: Vec<u8>,
    pub(crate) read: usize,
    pub(crate) output: Vec<u8>,
}

/// End of a step that is not the next step.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Stop {
    Halt(i64),
    /// Name of the trap, and the address or number that it names.
    Trap(&'static str, i64),
}

/// A number as a signed one of 32 bits.
fn signed(value: i64) -> i64 {
    if value >= TWO_32 / 2 {
        value - TWO_32
    } else {
        value
    }
}

/// A number reduced to 32 bits.
fn wrapped(value: i64) -> i64 {
    value.rem_euclid(TWO_32)
}

/// Bits `high` to `low` of a word.
fn bits(word: u32, high: u32, low: u32) -> i64 {
    i64::from(word) >> low & ((1 << (high - low + 1)) - 1)
}

/// A number of some bits as a signed one.
fn extended(value: i64, width: u32) -> i64 {
    if value >> (width - 1) == 1 {
        value - (1 << width)
    } else {
        value
    }
}

/// The immediate by the letter of the format.
fn immediate(format: char, word: u32) -> i64 {
    match format {
        'I' => extended(bits(word, 31, 20), 12),
        'S' => extended(bits(word, 31, 25) * 32 + bits(word, 11, 7), 12),
        'B' => {
            let high = bits(word, 31, 31) * 4096 + bits(word, 7, 7) * 2048;
            extended(high + bits(word, 30, 25) * 32 + bits(word, 11, 8) * 2, 13)
        }
        'U' => bits(word, 31, 12) * 4096,
        'J' => {
            let high = bits(word, 31, 31) * (1 << 20) + bits(word, 19, 12) * 4096;
            extended(
                high + bits(word, 20, 20) * 2048 + bits(word, 30, 21) * 2,
                21,
            )
        }
        _ => unreachable!(),
    }
}

/// The result of an arithmetic instruction with a right operand that is a register's value or an immediate's.
fn arithmetic(mnemonic: &str, left: i64, right: i64) -> i64 {
    let (sl, sr) = (signed(left), signed(right));
    let by = right % 32;
    let quotient = |a: i64, b: i64| if b == 0 { -1 } else { a / b };
    let remainder = |a: i64, b: i64| if b == 0 { a } else { a - b * (a / b) };
    let high = |product: i128| (product >> 32) as i64;
    match mnemonic {
        "add" | "addi" => left + right,
        "sub" => left - right,
        "xor" | "xori" => left ^ right,
        "or" | "ori" => left | right,
        "and" | "andi" => left & right,
        "slt" | "slti" => i64::from(sl < sr),
        "sltu" | "sltiu" => i64::from(left < right),
        "sll" | "slli" => left << by,
        "srl" | "srli" => left >> by,
        "sra" | "srai" => sl >> by,
        "mul" => sl * sr,
        "mulh" => high(i128::from(sl) * i128::from(sr)),
        "mulhsu" => high(i128::from(sl) * i128::from(right)),
        "mulhu" => high(i128::from(left) * i128::from(right)),
        "div" => quotient(sl, sr),
        "divu" => quotient(left, right),
        "rem" => remainder(sl, sr),
        "remu" => remainder(left, right),
        _ => unreachable!("{mnemonic}"),
    }
}

impl Reference {
    /// The state before the first step.
    pub(crate) fn new(pc: u32, code: &[(u32, u32)], data: &[(u32, u32)], input: &[u8]) -> Self {
        let code = code
            .iter()
            .map(|(address, word)| (i64::from(*address), *word));
        let mut reference = Self {
            pc: pc.into(),
            x: [0; 32],
            bytes: HashMap::new(),
            accessed: None,
            code: code.collect(),
            input: input.to_vec(),
            read: 0,
            output: Vec::new(),
        };
        for (address, word) in data {
            reference.put(i64::from(*address), 4, i64::from(*word));
        }
        reference.x[2] = 0x0400_0000;
        reference
    }

    fn put(&mut self, address: i64, width: i64, value: i64) {
        for index in 0..width {
            self.bytes
                .insert(address + index, (value >> (8 * index)) as u8);
        }
    }

    /// A little-endian number of bytes.
    pub(crate) fn get(&self, address: i64, width: i64) -> i64 {
        let byte = |index| i64::from(*self.bytes.get(&(address + index)).unwrap_or(&0));
        (0..width).map(|index| byte(index) << (8 * index)).sum()
    }

    /// The mnemonic of the next instruction, if there is one.
    pub(crate) fn mnemonic(&self) -> Option<&'static str> {
        lookup(*self.code.get(&self.pc)?).map(|(mnemonic, ..)| mnemonic)
    }

    /// Executes one instruction. After a trap nothing is changed.
    pub(crate) fn step(&mut self) -> Result<(), Stop> {
        let Some(&word) = self.code.get(&self.pc) else {
            return Err(Stop::Trap("fetch", self.pc));
        };
        let Some((mnemonic, ..)) = lookup(word) else {
            return Err(Stop::Trap("illegal", word.into()));
        };
        let pc = self.pc;
        let left = self.x[bits(word, 19, 15) as usize];
        let right = self.x[bits(word, 24, 20) as usize];
        let mut next = pc + 4;
        let mut result = None;
        self.accessed = None;
        match mnemonic {
            "lui" => result = Some(immediate('U', word)),
            "auipc" => result = Some(pc + immediate('U', word)),
            "jal" | "jalr" => {
                result = Some(pc + 4);
                next = match mnemonic {
                    "jal" => wrapped(pc + immediate('J', word)),
                    _ => wrapped(left + immediate('I', word)) / 2 * 2,
                };
            }
            "beq" | "bne" | "blt" | "bge" | "bltu" | "bgeu" => {
                let holds = match mnemonic {
                    "beq" => left == right,
                    "bne" => left != right,
                    "blt" => signed(left) < signed(right),
                    "bge" => signed(left) >= signed(right),
                    "bltu" => left < right,
                    _ => left >= right,
                };
                if holds {
                    next = wrapped(pc + immediate('B', word));
                }
            }
            "lb" | "lh" | "lw" | "lbu" | "lhu" => result = Some(self.load(mnemonic, left, word)?),
            "sb" | "sh" | "sw" => self.store(mnemonic, left, right, word)?,
            "fence" => {}
            "ecall" => {
                if self.x[17] == 0 {
                    return Err(Stop::Halt(self.x[10]));
                }
                if let Some(value) = self.call()? {
                    self.x[10] = value;
                }
            }
            "slli" | "srli" | "srai" => {
                result = Some(arithmetic(mnemonic, left, bits(word, 24, 20)));
            }
            _ if mnemonic.ends_with('i') || mnemonic == "sltiu" => {
                result = Some(arithmetic(mnemonic, left, wrapped(immediate('I', word))));
            }
            _ => result = Some(arithmetic(mnemonic, left, right)),
        }
        if next % 4 != 0 {
            return Err(Stop::Trap("target", next));
        }
        let rd = bits(word, 11, 7) as usize;
        if let Some(value) = result.filter(|_| rd != 0) {
            self.x[rd] = wrapped(value);
        }
        self.pc = next;
        Ok(())
    }

    fn load(&mut self, mnemonic: &str, base: i64, word: u32) -> Result<i64, Stop> {
        let address = wrapped(base + immediate('I', word));
        let width = match mnemonic {
            "lb" | "lbu" => 1,
            "lh" | "lhu" => 2,
            _ => 4,
        };
        checked(address, width, ["load misaligned", "load fault"])?;
        self.accessed = Some(address);
        let value = self.get(address, width);
        Ok(match mnemonic {
            "lb" => extended(value, 8),
            "lh" => extended(value, 16),
            _ => value,
        })
    }

    fn store(&mut self, mnemonic: &str, base: i64, value: i64, word: u32) -> Result<(), Stop> {
        let address = wrapped(base + immediate('S', word));
        let width = match mnemonic {
            "sb" => 1,
            "sh" => 2,
            _ => 4,
        };
        checked(address, width, ["store misaligned", "store fault"])?;
        self.accessed = Some(address);
        self.put(address, width, value);
        Ok(())
    }

    /// An environment call, as the table in the README describes it.
    fn call(&mut self) -> Result<Option<i64>, Stop> {
        let left = self.input.len() - self.read;
        let argument = self.x[10];
        match self.x[17] {
            1 => Ok(Some(left as i64)),
            2 if left == 0 => Ok(Some(TWO_32 - 1)),
            2 => {
                self.read += 1;
                Ok(Some(self.input[self.read - 1].into()))
            }
            3 if left > 0 && !self.read.is_multiple_of(4) => {
                Err(Stop::Trap("input misaligned", self.read as i64))
            }
            3 => {
                let mut word = 0;
                for index in 0..4 {
                    if let Some(byte) = self.input.get(self.read) {
                        word += i64::from(*byte) << (8 * index);
                        self.read += 1;
                    }
                }
                Ok(Some(word))
            }
            4 => {
                self.output.push((argument % 256) as u8);
                Ok(None)
            }
            5 if !self.output.len().is_multiple_of(4) => {
                Err(Stop::Trap("output misaligned", self.output.len() as i64))
            }
            5 => {
                for index in 0..4 {
                    self.output.push((argument >> (8 * index) & 255) as u8);
                }
                Ok(None)
            }
            number => Err(Stop::Trap("call", number)),
        }
    }
}

fn checked(address: i64, width: i64, [misaligned, fault]: [&'static str; 2]) -> Result<(), Stop> {
    if address % width != 0 {
        return Err(Stop::Trap(misaligned, address));
    }
    if !(0x0200_0000..0x0400_0000).contains(&address) {
        return Err(Stop::Trap(fault, address));
    }
    Ok(())
}
