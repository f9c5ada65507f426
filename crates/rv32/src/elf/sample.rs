//! An executable for tests, whose fields can be changed.

/// Offset of the program headers.
pub(crate) const TABLE: usize = 52;
/// Number of program headers: code, data, zeros and the stack's flags.
pub(crate) const HEADERS: usize = 4;

const CODE: [u32; 3] = [0x0050_0513, 0x0000_0893, 0x0000_0073];
const DATA: [u8; 6] = [1, 2, 3, 4, 5, 6];

/// A valid executable: three instructions, six bytes of data and two words of zeros.
pub(crate) fn valid() -> Vec<u8> {
    let content = TABLE + 32 * HEADERS;
    let mut file = vec![0x7f, b'E', b'L', b'F', 1, 1, 1];
    file.resize(16, 0);
    file.extend([2, 0, 243, 0]);
    for word in [1, 0x1000, TABLE as u32, 0, 0] {
        file.extend(u32::to_le_bytes(word));
    }
    for half in [52, 32, HEADERS as u16, 40, 0, 0] {
        file.extend(half.to_le_bytes());
    }
    let content = content as u32;
    let headers = [
        [1, content, 0x1000, 0x1000, 12, 12, 5, 4],
        [1, content + 12, 0x0200_0000, 0x0200_0000, 6, 6, 4, 4],
        [1, 0, 0x0200_0008, 0x0200_0008, 0, 8, 6, 4],
        [0x6474_e551, 0, 0, 0, 0, 0, 6, 16],
    ];
    for field in headers.into_iter().flatten() {
        file.extend(u32::to_le_bytes(field));
    }
    file.extend(CODE.iter().flat_map(|word| word.to_le_bytes()));
    file.extend(DATA);
    file
}

/// The valid executable with a field of a program header replaced: 0 type, 1 offset, 2 virtual address, 3 physical address,
/// 4 bytes in the file, 5 bytes in memory, 6 flags, 7 alignment.
pub(crate) fn with_field(header: usize, field: usize, value: u32) -> Vec<u8> {
    with_bytes(TABLE + 32 * header + 4 * field, &value.to_le_bytes())
}

/// The valid executable with bytes replaced.
pub(crate) fn with_bytes(offset: usize, bytes: &[u8]) -> Vec<u8> {
    let mut file = valid();
    file[offset..offset + bytes.len()].copy_from_slice(bytes);
    file
}
