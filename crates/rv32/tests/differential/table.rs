//! Patterns of words, from the listings of RV32I and RV32M in The RISC-V Instruction Set Manual, Volume I, version 20240411,
//! chapter "RV32/64G Instruction Set Listings".

use std::sync::LazyLock;

/// A mnemonic beside its bits from 31 to 0. A letter or a dash stands for any bit, blanks separate fields.
const PATTERNS: &str = "
    lui     iiiiiiiiiiiiiiiiiiii      ddddd 0110111
    auipc   iiiiiiiiiiiiiiiiiiii      ddddd 0010111
    jal     iiiiiiiiiiiiiiiiiiii      ddddd 1101111
    jalr    iiiiiiiiiiii    sssss 000 ddddd 1100111
    beq     iiiiiii ttttt   sssss 000 iiiii 1100011
    bne     iiiiiii ttttt   sssss 001 iiiii 1100011
    blt     iiiiiii ttttt   sssss 100 iiiii 1100011
    bge     iiiiiii ttttt   sssss 101 iiiii 1100011
    bltu    iiiiiii ttttt   sssss 110 iiiii 1100011
    bgeu    iiiiiii ttttt   sssss 111 iiiii 1100011
    lb      iiiiiiiiiiii    sssss 000 ddddd 0000011
    lh      iiiiiiiiiiii    sssss 001 ddddd 0000011
    lw      iiiiiiiiiiii    sssss 010 ddddd 0000011
    lbu     iiiiiiiiiiii    sssss 100 ddddd 0000011
    lhu     iiiiiiiiiiii    sssss 101 ddddd 0000011
    sb      iiiiiii ttttt   sssss 000 iiiii 0100011
    sh      iiiiiii ttttt   sssss 001 iiiii 0100011
    sw      iiiiiii ttttt   sssss 010 iiiii 0100011
    addi    iiiiiiiiiiii    sssss 000 ddddd 0010011
    slti    iiiiiiiiiiii    sssss 010 ddddd 0010011
    sltiu   iiiiiiiiiiii    sssss 011 ddddd 0010011
    xori    iiiiiiiiiiii    sssss 100 ddddd 0010011
    ori     iiiiiiiiiiii    sssss 110 ddddd 0010011
    andi    iiiiiiiiiiii    sssss 111 ddddd 0010011
    slli    0000000 iiiii   sssss 001 ddddd 0010011
    srli    0000000 iiiii   sssss 101 ddddd 0010011
    srai    0100000 iiiii   sssss 101 ddddd 0010011
    add     0000000 ttttt   sssss 000 ddddd 0110011
    sub     0100000 ttttt   sssss 000 ddddd 0110011
    sll     0000000 ttttt   sssss 001 ddddd 0110011
    slt     0000000 ttttt   sssss 010 ddddd 0110011
    sltu    0000000 ttttt   sssss 011 ddddd 0110011
    xor     0000000 ttttt   sssss 100 ddddd 0110011
    srl     0000000 ttttt   sssss 101 ddddd 0110011
    sra     0100000 ttttt   sssss 101 ddddd 0110011
    or      0000000 ttttt   sssss 110 ddddd 0110011
    and     0000000 ttttt   sssss 111 ddddd 0110011
    fence   ---- ---- ----  ----- 000 ----- 0001111
    ecall   000000000000    00000 000 00000 1110011
    mul     0000001 ttttt   sssss 000 ddddd 0110011
    mulh    0000001 ttttt   sssss 001 ddddd 0110011
    mulhsu  0000001 ttttt   sssss 010 ddddd 0110011
    mulhu   0000001 ttttt   sssss 011 ddddd 0110011
    div     0000001 ttttt   sssss 100 ddddd 0110011
    divu    0000001 ttttt   sssss 101 ddddd 0110011
    rem     0000001 ttttt   sssss 110 ddddd 0110011
    remu    0000001 ttttt   sssss 111 ddddd 0110011
";

struct Pattern {
    mnemonic: &'static str,
    /// Bits that are fixed, and their values.
    mask: u32,
    value: u32,
    reads_rs1: bool,
    reads_rs2: bool,
}

/// Patterns by their opcode, the low seven bits, which all of them fix: a search of the whole table takes most of a test's
/// time.
static BY_OPCODE: LazyLock<Vec<Vec<&Pattern>>> = LazyLock::new(|| {
    let of = |opcode| {
        TABLE
            .iter()
            .filter(move |pattern| pattern.value & 0x7f == opcode)
    };
    (0..128).map(|opcode| of(opcode).collect()).collect()
});

static TABLE: LazyLock<Vec<Pattern>> = LazyLock::new(|| {
    let lines = PATTERNS.lines().map(str::trim);
    lines.filter(|line| !line.is_empty()).map(parse).collect()
});

fn parse(line: &'static str) -> Pattern {
    let (mnemonic, bits) = line.split_once(' ').unwrap();
    let bits: String = bits.split_whitespace().collect();
    assert_eq!(bits.len(), 32, "{line}");
    let where_bit = |is: fn(char) -> bool| {
        bits.chars()
            .fold(0, |mask, bit| mask << 1 | u32::from(is(bit)))
    };
    Pattern {
        mnemonic,
        mask: where_bit(|bit| bit.is_ascii_digit()),
        value: where_bit(|bit| bit == '1'),
        reads_rs1: bits.contains('s'),
        reads_rs2: bits.contains('t'),
    }
}

/// The mnemonic of a word, and the registers that it reads as rs1 and rs2.
pub(crate) fn lookup(word: u32) -> Option<(&'static str, Option<usize>, Option<usize>)> {
    let pattern = BY_OPCODE[(word & 0x7f) as usize]
        .iter()
        .find(|pattern| word & pattern.mask == pattern.value)?;
    if pattern.mnemonic == "ecall" {
        return Some(("ecall", Some(17), Some(10)));
    }
    let rs1 = pattern.reads_rs1.then_some((word >> 15) as usize % 32);
    let rs2 = pattern.reads_rs2.then_some((word >> 20) as usize % 32);
    Some((pattern.mnemonic, rs1, rs2))
}

/// All mnemonics.
pub(crate) fn mnemonics() -> impl Iterator<Item = &'static str> {
    TABLE.iter().map(|pattern| pattern.mnemonic)
}

#[test]
fn patterns_exclude_each_other() {
    assert_eq!(TABLE.len(), 39 + 8);
    assert!(TABLE.iter().all(|pattern| pattern.mask & 0x7f == 0x7f));
    for (index, first) in TABLE.iter().enumerate() {
        for second in &TABLE[..index] {
            let common = first.mask & second.mask;
            assert_ne!(first.value & common, second.value & common);
        }
    }
}
