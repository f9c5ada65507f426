//! Posts or calls with any bytes to the intake are answered: see `tests/intake/hostile.rs`.
#![no_main]

use libfuzzer_sys::fuzz_target;

#[path = "../../tests/intake/hostile.rs"]
mod hostile;

fuzz_target!(|input: &[u8]| hostile::answer(input));
