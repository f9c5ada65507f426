//! CRC-32C (Castagnoli), eight bytes a step.

/// The polynomial 1EDC6F41h, bits reversed.
const POLYNOMIAL: u32 = 0x82f6_3b78;

/// `TABLES[k][b]` is the remainder of byte `b` followed by `k` zero bytes.
static TABLES: [[u32; 256]; 8] = tables();

const fn tables() -> [[u32; 256]; 8] {
    let mut tables = [[0; 256]; 8];
    let mut byte = 0;
    while byte < 256 {
        let mut remainder = byte as u32;
        let mut bit = 0;
        while bit < 8 {
            remainder = remainder >> 1 ^ if remainder & 1 == 1 { POLYNOMIAL } else { 0 };
            bit += 1;
        }
        tables[0][byte] = remainder;
        byte += 1;
    }
    let mut k = 1;
    while k < 8 {
        let mut byte = 0;
        while byte < 256 {
            let before: u32 = tables[k - 1][byte];
            tables[k][byte] = before >> 8 ^ tables[0][(before & 0xff) as usize];
            byte += 1;
        }
        k += 1;
    }
    tables
}

/// The digest of NVMe/TCP: CRC-32C with all ones as its start and its final complement.
pub fn crc32c(bytes: &[u8]) -> u32 {
    let mut chunks = bytes.chunks_exact(8);
    let mut remainder = u32::MAX;
    for chunk in &mut chunks {
        let low = remainder ^ u32::from_le_bytes([chunk[0], chunk[1], chunk[2], chunk[3]]);
        let low = low.to_le_bytes();
        remainder = TABLES[7][usize::from(low[0])]
            ^ TABLES[6][usize::from(low[1])]
            ^ TABLES[5][usize::from(low[2])]
            ^ TABLES[4][usize::from(low[3])]
            ^ TABLES[3][usize::from(chunk[4])]
            ^ TABLES[2][usize::from(chunk[5])]
            ^ TABLES[1][usize::from(chunk[6])]
            ^ TABLES[0][usize::from(chunk[7])];
    }
    for byte in chunks.remainder() {
        let index = remainder.to_le_bytes()[0] ^ byte;
        remainder = remainder >> 8 ^ TABLES[0][usize::from(index)];
    }
    !remainder
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Values of RFC 3720, appendix B.4, and of SPDK's unit test.
    #[test]
    fn known_answers() {
        let rising: Vec<u8> = (0..32).collect();
        let falling: Vec<u8> = (0..32).rev().collect();
        let page: Vec<u8> = (0..4096).map(|i| i as u8).collect();
        let known: [(&[u8], u32); 10] = [
            (b"", 0),
            (b"1", 0x90f5_99e3),
            (b"1234567", 0x1242_97ea),
            (b"12345678", 0x6087_809a),
            (b"123456789", 0xe306_9283),
            (&[0; 32], 0x8a91_36aa),
            (&[0xff; 32], 0x62a8_ab43),
            (&rising, 0x46dd_794e),
            (&falling, 0x113f_db5c),
            (&page, 0x9c71_fe32),
        ];
        for (bytes, digest) in known {
            assert_eq!(crc32c(bytes), digest, "{} bytes", bytes.len());
        }
    }
}
