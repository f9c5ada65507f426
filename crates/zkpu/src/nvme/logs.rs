//! Standard log pages: error information, health, firmware slot, commands supported and effects.

use crate::bytes::{put, put_u16, put_u32, put_u64, u16_at, u32_at, u64_at};
use crate::nvme::opcode::{admin, memory, nvm, program, set};

/// Bytes of an entry of the error log.
const ERROR_BYTES: usize = 64;
/// Unit of data read and written in the health log page.
const DATA_UNIT_BYTES: u64 = 512_000;

/// An entry of the error log page.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct ErrorEntry {
    /// Number of the error since power-on; 0 = empty.
    pub number: u64,
    /// Submission queue; FFFFh = of no command.
    pub queue: u16,
    /// Command identifier; FFFFh = of no command.
    pub cid: u16,
    /// The completion's status field, without its phase bit.
    pub status: u16,
    /// First block of the command, if it has one.
    pub lba: u64,
    /// Namespace.
    pub nsid: u32,
}

/// Values of the health log page that a ZKPU sets.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct HealthLog {
    /// Whether the device is fenced by a fault.
    pub is_fenced: bool,
    /// Bytes read by hosts.
    pub bytes_read: u64,
    /// Bytes written by hosts.
    pub bytes_written: u64,
    /// Errors logged since power-on.
    pub errors: u64,
}

impl ErrorEntry {
    fn encode(&self) -> [u8; ERROR_BYTES] {
        let mut bytes = [0; ERROR_BYTES];
        put_u64(&mut bytes, 0, self.number);
        put_u16(&mut bytes, 8, self.queue);
        put_u16(&mut bytes, 10, self.cid);
        put_u16(&mut bytes, 12, self.status << 1);
        put_u16(&mut bytes, 14, 0xffff);
        put_u64(&mut bytes, 16, self.lba);
        put_u32(&mut bytes, 24, self.nsid);
        bytes
    }

    /// Reads an entry; `None` if it is shorter than 64 bytes.
    pub fn decode(bytes: &[u8]) -> Option<Self> {
        (bytes.len() >= ERROR_BYTES).then(|| Self {
            number: u64_at(bytes, 0),
            queue: u16_at(bytes, 8),
            cid: u16_at(bytes, 10),
            status: u16_at(bytes, 12) >> 1,
            lba: u64_at(bytes, 16),
            nsid: u32_at(bytes, 24),
        })
    }
}

impl HealthLog {
    /// Writes the page, 512 bytes. Its data units are thousands of 512 bytes, rounded up.
    pub fn encode(&self) -> Vec<u8> {
        let mut page = vec![0; 512];
        if self.is_fenced {
            page[0] = 0x04; // reliability degraded
        }
        page[3] = 100;
        page[4] = 10;
        put_u64(&mut page, 32, self.bytes_read.div_ceil(DATA_UNIT_BYTES));
        put_u64(&mut page, 48, self.bytes_written.div_ceil(DATA_UNIT_BYTES));
        put_u64(&mut page, 176, self.errors);
        page
    }
}

/// The error log page: `entries` slots of 64 bytes, newest first.
pub fn error_log<'a>(
    newest_first: impl Iterator<Item = &'a ErrorEntry>,
    entries: usize,
) -> Vec<u8> {
    let mut page = vec![0; entries * ERROR_BYTES];
    for (to, entry) in page.chunks_exact_mut(ERROR_BYTES).zip(newest_first) {
        to.copy_from_slice(&entry.encode());
    }
    page
}

/// The firmware log page: slot 1 is active.
pub fn firmware_log(revision: &str) -> Vec<u8> {
    let mut page = vec![0; 512];
    page[0] = 1;
    let mut text = [b' '; 8];
    for (to, from) in text.iter_mut().zip(revision.bytes()) {
        *to = from;
    }
    put(&mut page, 8, &text);
    page
}

/// Bytes of the page of effects; its I/O commands begin at [`EFFECTS_IO`].
const EFFECTS_BYTES: usize = 4096;
const EFFECTS_IO: usize = 1024;
/// Effects of a command: it is supported, and it may change the content of a namespace (CSUPP, LBCC).
const READS: u32 = 1;
const WRITES: u32 = 1 | 1 << 1;

/// The log page Commands Supported and Effects of a command set; `None` for a set that no namespace has. Linux makes devices
/// of namespaces only for sets that have it.
pub fn effects_log(command_set: u8) -> Option<Vec<u8>> {
    let of_set: &[(u8, u32)] = match command_set {
        set::NVM => &[
            (nvm::FLUSH, READS),
            (nvm::WRITE, WRITES),
            (nvm::READ, READS),
            (nvm::START, WRITES),
            (nvm::WAIT, READS),
            (nvm::CANCEL, READS),
            (nvm::SET_BASE, READS),
            (nvm::PRECOMPUTE, WRITES),
        ],
        set::MEMORY => &[
            (memory::FILL, WRITES),
            (memory::READ, READS),
            (memory::WRITE, WRITES),
        ],
        set::PROGRAMS => &[(program::EXECUTE, WRITES)],
        _ => return None,
    };
    let mut page = vec![0; EFFECTS_BYTES];
    let common = [
        admin::GET_LOG_PAGE,
        admin::IDENTIFY,
        admin::ABORT,
        admin::SET_FEATURES,
        admin::GET_FEATURES,
        admin::EVENT_REQUEST,
        admin::KEEP_ALIVE,
    ];
    let of_programs = [
        admin::LOAD_PROGRAM,
        admin::PROGRAM_ACTIVATION,
        admin::RANGE_SET_MANAGEMENT,
    ];
    let programs = match command_set {
        set::PROGRAMS => &of_programs[..],
        _ => &[],
    };
    for opcode in common.iter().chain(programs) {
        put_u32(&mut page, 4 * usize::from(*opcode), READS);
    }
    for (opcode, effects) in of_set {
        put_u32(&mut page, EFFECTS_IO + 4 * usize::from(*opcode), *effects);
    }
    Some(page)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Offsets of libnvme's `struct nvme_error_log_page`.
    #[test]
    fn an_error_has_its_fields_where_tools_look() {
        let entry = ErrorEntry {
            number: 3,
            queue: 1,
            cid: 9,
            status: 0x4002,
            lba: 77,
            nsid: 1,
        };
        let page = error_log([entry].iter(), 16);
        assert_eq!(page.len(), 1024);
        assert_eq!(
            &page[..28],
            &[
                3, 0, 0, 0, 0, 0, 0, 0, 1, 0, 9, 0, 4, 0x80, 0xff, 0xff, 77, 0, 0, 0, 0, 0, 0, 0,
                1, 0, 0, 0
            ]
        );
        assert_eq!(ErrorEntry::decode(&page), Some(entry));
    }

    #[test]
    fn health_and_firmware_have_their_sizes() {
        let health = HealthLog {
            is_fenced: true,
            bytes_read: 5 * 512_000,
            bytes_written: 5 * 512_000 + 1,
            errors: 7,
        };
        let page = health.encode();
        assert_eq!(
            (page.len(), page[0], page[32], page[48], page[176]),
            (512, 4, 5, 6, 7)
        );
        assert_eq!(&firmware_log("1.0")[..16], b"\x01\0\0\0\0\0\0\x001.0     ");
    }
}
