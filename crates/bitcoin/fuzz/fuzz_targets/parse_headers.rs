//! Untrusted header files: `cargo +nightly fuzz run parse_headers`.
#![no_main]

use libfuzzer_sys::fuzz_target;
use proofmill_bitcoin::{Header, check_chain, parse_headers, total_work};

fuzz_target!(|bytes: &[u8]| {
    if let Ok(headers) = parse_headers(bytes) {
        let raw: Vec<u8> = headers.iter().flat_map(|header| *header.as_bytes()).collect();
        // Headers of printable ASCII alone would be taken for text; no valid header is.
        if !raw.iter().all(|byte| byte.is_ascii_graphic() || byte.is_ascii_whitespace()) {
            assert_eq!(parse_headers(&raw).as_ref(), Ok(&headers), "raw headers read back");
        }
        let valid = check_chain(&headers).is_ok();
        let work = total_work(headers.iter().map(Header::bits));
        assert!(!valid || work.is_ok(), "a valid header has work");
    }
});
