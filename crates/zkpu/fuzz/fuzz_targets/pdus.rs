//! Any bytes are split into PDUs without a panic, in at most one step for each eight bytes, within the limits; and
//! what was read is written and read again: `cargo +nightly fuzz run pdus`.
#![no_main]

use libfuzzer_sys::fuzz_target;
use proofmill_zkpu::tcp::{Digests, Framing, Limits, Pdu, PduDecoder, Receiver, encode};

const LIMITS: Limits = Limits {
    capsule_data: 8_192,
    data: 1 << 16,
};

fn decoder(receiver: Receiver, digests: Digests, is_initialized: bool) -> PduDecoder {
    let mut decoder = PduDecoder::new(receiver, LIMITS);
    if is_initialized {
        decoder.initialized(digests);
    }
    decoder
}

fn data_bytes(pdu: &Pdu) -> usize {
    match pdu {
        Pdu::CapsuleCmd(_, data) | Pdu::H2cData(_, data) | Pdu::C2hData(_, data) => data.bytes.len(),
        _ => 0,
    }
}

fuzz_target!(|input: &[u8]| {
    // The first byte has the settings of the connection.
    let Some((&settings, stream)) = input.split_first() else {
        return;
    };
    let receiver = [Receiver::Controller, Receiver::Host][usize::from(settings & 1)];
    let is_initialized = settings & 2 != 0;
    let digests = Digests {
        header: settings & 4 != 0,
        data: settings & 8 != 0,
    };
    let framing = Framing {
        digests,
        alignment: settings >> 4,
    };
    let mut reader = decoder(receiver, digests, is_initialized);
    reader.push(stream);
    for _ in 0..=stream.len() / 8 {
        let Ok(Some(pdu)) = reader.next_pdu() else {
            return;
        };
        assert!(data_bytes(&pdu) <= LIMITS.data);
        if has_corrupt_data(&pdu) {
            continue;
        }
        let mut written = Vec::new();
        encode(&pdu, framing, &mut written);
        let mut again = decoder(receiver, digests, is_initialized);
        again.push(&written);
        assert_eq!(again.next_pdu(), Ok(Some(pdu)));
        assert_eq!(again.buffered(), 0);
    }
    panic!("a PDU takes eight bytes at least");
});

fn has_corrupt_data(pdu: &Pdu) -> bool {
    match pdu {
        Pdu::CapsuleCmd(_, data) | Pdu::H2cData(_, data) | Pdu::C2hData(_, data) => data.is_corrupt,
        _ => false,
    }
}
