//! Namespaces 1 and 2: one memory by blocks and by bytes.

use super::*;
use crate::nvme::opcode::{memory, nvm};

const BLOCKS: u32 = (MEMORY / 512) as u32;

fn blocks(opcode: u8, first: u32, count: u32) -> Command {
    Command::new(opcode, 1).with_dwords(&[first, 0, count - 1])
}

fn bytes(opcode: u8, first: u32, length: u32) -> Command {
    Command::new(opcode, 2).with_dwords(&[first, 0, length])
}

#[test]
fn both_namespaces_show_one_memory() {
    let mut controller = enabled();
    let data: Vec<u8> = (0..1024).map(|i| i as u8).collect();
    assert_eq!(
        status(&mut controller, 1, blocks(nvm::WRITE, 3, 2), &data),
        Status::SUCCESS
    );
    let read = run(&mut controller, 1, bytes(memory::READ, 3 * 512 + 4, 8), &[]).unwrap();
    assert_eq!(read.data, [4, 5, 6, 7, 8, 9, 10, 11]);
    assert_eq!(
        status(
            &mut controller,
            1,
            bytes(memory::WRITE, 3 * 512, 4),
            &[9; 4]
        ),
        Status::SUCCESS
    );
    assert_eq!(
        status(&mut controller, 1, bytes(memory::FILL, 3 * 512 + 8, 4), &[]),
        Status::SUCCESS
    );
    let read = run(&mut controller, 1, blocks(nvm::READ, 3, 1), &[]).unwrap();
    assert_eq!(
        read.data[..16],
        [9, 9, 9, 9, 4, 5, 6, 7, 0, 0, 0, 0, 12, 13, 14, 15]
    );
    let counters = controller.counters();
    assert_eq!(
        (counters.bytes_from_host, counters.bytes_to_host),
        (1028, 520)
    );
}

#[test]
fn nothing_beyond_the_memory_is_read_or_written() {
    let mut controller = enabled();
    let last = blocks(nvm::WRITE, BLOCKS - 1, 1);
    assert_eq!(status(&mut controller, 1, last, &[1; 512]), Status::SUCCESS);
    assert_eq!(
        status(
            &mut controller,
            1,
            bytes(memory::READ, MEMORY as u32 - 4, 4),
            &[]
        ),
        Status::SUCCESS
    );
    assert_eq!(
        status(
            &mut controller,
            1,
            bytes(memory::READ, MEMORY as u32, 0),
            &[]
        ),
        Status::SUCCESS
    );
    assert_eq!(
        status(
            &mut controller,
            1,
            bytes(memory::WRITE, MEMORY as u32, 0),
            &[]
        ),
        Status::SUCCESS
    );
    let mut high = blocks(nvm::READ, 0, 1);
    high.cdw10[1] = 1 << 31;
    let mut far = bytes(memory::FILL, 0, 4);
    far.cdw10[1] = u32::MAX;
    for (command, data) in [
        (blocks(nvm::WRITE, BLOCKS - 1, 2), &[0; 1024][..]),
        (blocks(nvm::READ, BLOCKS, 1), &[]),
        (blocks(nvm::READ, u32::MAX, 1), &[]),
        (high, &[]),
        (far, &[]),
        (bytes(memory::WRITE, MEMORY as u32 - 4, 8), &[0; 8]),
        (bytes(memory::READ, MEMORY as u32 + 4, 0), &[]),
        (bytes(memory::FILL, 4, MEMORY as u32), &[]),
        (bytes(memory::FILL, 0, !3), &[]),
    ] {
        assert_eq!(
            status(&mut controller, 1, command, data),
            Status::LBA_OUT_OF_RANGE,
            "{command:?}"
        );
    }
}

#[test]
fn malformed_transfers_are_refused() {
    let mut controller = enabled();
    let mut protected = blocks(nvm::READ, 0, 1);
    protected.cdw10[2] |= 1 << 29;
    for (command, expected) in [
        (protected, Status::INVALID_FIELD),
        (blocks(nvm::READ, 0, 2049), Status::INVALID_FIELD),
        (bytes(memory::READ, 2, 4), Status::INVALID_FIELD),
        (bytes(memory::READ, 0, 6), Status::INVALID_FIELD),
        (bytes(memory::READ, 0, (1 << 20) + 4), Status::INVALID_FIELD),
        (bytes(0x01, 0, 4), Status::INVALID_OPCODE),
        (blocks(0x04, 0, 1), Status::INVALID_OPCODE),
        (Command::new(nvm::READ, 0), Status::INVALID_NAMESPACE),
        (Command::new(nvm::READ, 4), Status::INVALID_NAMESPACE),
        (Command::new(nvm::READ, u32::MAX), Status::INVALID_NAMESPACE),
        (Command::new(0x02, 3), Status::INVALID_OPCODE),
    ] {
        assert_eq!(
            status(&mut controller, 1, command, &[]),
            expected,
            "{command:?}"
        );
    }
    // Data of another length than the command's.
    let write = blocks(nvm::WRITE, 0, 1);
    assert_eq!(
        status(&mut controller, 1, write, &[0; 511]),
        Status::DATA_SGL_LENGTH_INVALID
    );
    // The largest transfer is a megabyte, which is this whole memory.
    assert_eq!(
        run(&mut controller, 1, blocks(nvm::READ, 0, 2048), &[])
            .unwrap()
            .data
            .len(),
        1 << 20
    );
}
