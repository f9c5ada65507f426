//! Words of instructions, made without the encoder of the crate, and random programs.

use rand::Rng;
use rand::rngs::StdRng;
use rand::seq::IndexedRandom;

/// Operands at which results change their sign, wrap around or are undefined elsewhere.
pub(crate) const EDGES: [u32; 18] = [
    0,
    1,
    2,
    3,
    31,
    32,
    33,
    0x7ff,
    0x800,
    0xffff,
    0x1_0000,
    0x7fff_fffe,
    0x7fff_ffff,
    0x8000_0000,
    0x8000_0001,
    0xffff_8000,
    0xffff_fffe,
    0xffff_ffff,
];

/// Registers that hold addresses of data and of code. Random instructions seldom write them.
const LOW: u32 = 8;
const HIGH: u32 = 9;
const LINK: u32 = 5;

/// Word of format R, with `funct7` and `funct3`.
pub(crate) fn register(funct7: u32, funct3: u32, rd: u32, rs1: u32, rs2: u32) -> u32 {
    funct7 << 25 | rs2 << 20 | rs1 << 15 | funct3 << 12 | rd << 7 | 0x33
}

/// Word of format I.
pub(crate) fn immediate(opcode: u32, funct3: u32, rd: u32, rs1: u32, value: u32) -> u32 {
    (value & 0xfff) << 20 | rs1 << 15 | funct3 << 12 | rd << 7 | opcode
}

/// Word of format S.
fn store(funct3: u32, rs1: u32, rs2: u32, offset: u32) -> u32 {
    let offset = offset & 0xfff;
    (offset >> 5) << 25 | rs2 << 20 | rs1 << 15 | funct3 << 12 | (offset & 31) << 7 | 0x23
}

/// Word of format B, for an offset in the 13 bits of the field.
pub(crate) fn branch(funct3: u32, rs1: u32, rs2: u32, offset: u32) -> u32 {
    let (high, low) = (offset >> 5 & 0x3f, offset & 0x1e);
    let moved = (offset >> 12 & 1) << 31 | high << 25 | low << 7 | (offset >> 11 & 1) << 7;
    moved | rs2 << 20 | rs1 << 15 | funct3 << 12 | 0x63
}

/// Word of format J, for an offset from 0 to 2046.
fn jump(rd: u32, offset: u32) -> u32 {
    (offset >> 1 & 0x3ff) << 21 | rd << 7 | 0x6f
}

/// Two words that put a value into a register.
pub(crate) fn set(rd: u32, value: u32) -> [u32; 2] {
    let page = value.wrapping_add(0x800) & 0xffff_f000;
    [page | rd << 7 | 0x37, immediate(0x13, 0, rd, rd, value)]
}

/// Number of words that set the registers of a random program.
pub(crate) const PROLOGUE: u64 = 2 * 31;

/// Maker of random programs.
pub(crate) struct Generator<'a> {
    pub(crate) random: &'a mut StdRng,
    /// Environment calls that the program makes most of the time, so that few of them trap.
    calls: &'static [u32],
}

impl<'a> Generator<'a> {
    pub(crate) fn new(random: &'a mut StdRng) -> Self {
        const CALLS: [&[u32]; 4] = [&[1, 2, 4], &[1, 3, 5], &[1, 2, 5], &[1, 2, 3, 4, 5]];
        let calls = CALLS.choose(random).unwrap();
        Self { random, calls }
    }

    /// Words that set all registers, and `count` random instructions.
    pub(crate) fn program(&mut self, count: usize) -> Vec<u32> {
        let mut words = Vec::new();
        for rd in 1..32 {
            let value = match rd {
                LOW => 0x0200_0000 + self.random.random_range(0x7f0..0x1800),
                HIGH => 0x0400_0000 - self.random.random_range(0x7f0..0x1800),
                _ => self.value(),
            };
            words.extend(set(
                rd,
                if matches!(rd, LOW | HIGH) {
                    value & !3
                } else {
                    value
                },
            ));
        }
        while words.len() < count {
            self.instruction(&mut words);
        }
        words
    }

    fn value(&mut self) -> u32 {
        match self.random.random_range(0..3) {
            0 => *EDGES.choose(self.random).unwrap(),
            1 => EDGES
                .choose(self.random)
                .unwrap()
                .wrapping_add(self.random.random_range(0..9))
                .wrapping_sub(4),
            _ => self.random.random(),
        }
    }

    fn source(&mut self) -> u32 {
        self.random.random_range(0..32)
    }

    fn destination(&mut self) -> u32 {
        let rd = self.random.random_range(0..32);
        let keep = self.random.random_range(0..64) != 0;
        if keep && matches!(rd, LOW | HIGH | LINK) {
            3
        } else {
            rd
        }
    }

    /// A distance for an access of a width, mostly aligned.
    fn distance(&mut self, width: u32) -> u32 {
        let any = self.random.random_range(0..4096);
        if self.random.random_range(0..64) == 0 {
            any
        } else {
            any / width * width
        }
    }

    fn base(&mut self) -> u32 {
        match self.random.random_range(0..400) {
            0 => self.source(),
            1..200 => LOW,
            _ => HIGH,
        }
    }

    /// A distance forward, mostly to an instruction.
    fn forward(&mut self) -> u32 {
        let instructions = 4 * self.random.random_range(1..8);
        instructions + 2 * u32::from(self.random.random_range(0..300) == 0)
    }

    /// Appends one random instruction, or a few that belong together.
    fn instruction(&mut self, words: &mut Vec<u32>) {
        let (rd, rs1, rs2) = (self.destination(), self.source(), self.source());
        let funct3 = self.random.random_range(0..8);
        match self.random.random_range(0..100) {
            0..25 => {
                let alternate = matches!(funct3, 0 | 5) && self.random.random();
                words.push(register(u32::from(alternate) << 5, funct3, rd, rs1, rs2));
            }
            25..45 => words.push(register(1, funct3, rd, rs1, rs2)),
            45..62 => {
                let value = match funct3 {
                    1 => self.random.random_range(0..32),
                    5 => self.random.random_range(0..32) | self.random.random_range(0..2) << 10,
                    _ => self.random.random(),
                };
                words.push(immediate(0x13, funct3, rd, rs1, value));
            }
            62..66 => {
                let opcode = *[0x37, 0x17].choose(self.random).unwrap();
                words.push(self.random.random::<u32>() & 0xffff_f000 | rd << 7 | opcode);
            }
            66..76 => {
                let (funct3, width) = *[(0, 1), (1, 2), (2, 4), (4, 1), (5, 2)]
                    .choose(self.random)
                    .unwrap();
                let (base, distance) = (self.base(), self.distance(width));
                words.push(immediate(0x03, funct3, rd, base, distance));
            }
            76..86 => {
                let funct3 = self.random.random_range(0..3);
                let (base, distance) = (self.base(), self.distance(1 << funct3));
                words.push(store(funct3, base, rs2, distance));
            }
            86..93 => {
                let funct3 = *[0, 1, 4, 5, 6, 7].choose(self.random).unwrap();
                let forward = self.forward();
                words.push(branch(funct3, rs1, rs2, forward));
            }
            93..95 => {
                let forward = self.forward();
                words.push(jump(rd, forward));
            }
            95..96 => {
                // An indirect jump: over up to five words, and by an odd distance as well.
                let distance = self.forward() + 4 + self.random.random_range(0..2);
                words.extend([LINK << 7 | 0x17, immediate(0x67, 0, rd, LINK, distance)]);
            }
            96..97 => words.push(self.random.random::<u32>() & 0xffff_8f80 | 0x0f),
            97..99 => {
                let call = match self.random.random_range(0..200) {
                    0 => self.random.random_range(0..8),
                    _ => *self.calls.choose(self.random).unwrap(),
                };
                words.extend([immediate(0x13, 0, 17, 0, call), 0x73]);
            }
            _ if self.random.random_range(0..10) == 0 => words.push(self.random.random()),
            _ => {}
        }
    }
}
