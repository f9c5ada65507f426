//! Any bytes are loaded and executed without a panic: `cargo +nightly fuzz run elf`.
#![no_main]

use libfuzzer_sys::fuzz_target;
use proofmill_rv32::elf;
use proofmill_rv32_fuzz::execute;

fuzz_target!(|bytes: &[u8]| {
    let Ok(program) = elf::load(bytes) else {
        return;
    };
    assert!(4 * program.code_words().count() <= bytes.len());
    assert_eq!(elf::load(bytes).as_ref(), Ok(&program));
    execute(&program, b"an input of 23 bytes...");
});
