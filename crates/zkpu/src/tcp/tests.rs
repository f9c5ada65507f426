//! Byte strings of the specification, every framing read back, every bad header, a million mutated PDUs.

use ark_std::rand::{Rng, RngCore, SeedableRng, rngs::StdRng};

use super::*;

const LIMITS: Limits = Limits {
    capsule_data: 8192,
    data: 1 << 16,
};

const FRAMINGS: [Framing; 4] = [
    Framing {
        digests: Digests {
            header: false,
            data: false,
        },
        alignment: 0,
    },
    Framing {
        digests: Digests {
            header: true,
            data: false,
        },
        alignment: 0,
    },
    Framing {
        digests: Digests {
            header: false,
            data: true,
        },
        alignment: 15,
    },
    Framing {
        digests: Digests {
            header: true,
            data: true,
        },
        alignment: 31,
    },
];

/// One PDU of each type, as each side sends it.
fn pdus(rng: &mut StdRng) -> Vec<Pdu> {
    let mut data = |most: usize| {
        let mut bytes = vec![0; rng.gen_range(1..=most)];
        rng.fill_bytes(&mut bytes);
        Payload::from(bytes)
    };
    let header = DataHeader {
        cid: 3,
        tag: 9,
        offset: 4096,
        is_last: true,
        is_success: false,
    };
    vec![
        Pdu::IcReq(IcReq {
            r2ts_max: 1,
            ..IcReq::default()
        }),
        Pdu::IcResp(IcResp {
            host_data_max: 1 << 17,
            ..IcResp::default()
        }),
        Pdu::H2cTermReq(Terminate {
            error: 2,
            information: 0,
            header: vec![4; 24],
        }),
        Pdu::C2hTermReq(Terminate {
            error: 1,
            information: 3,
            header: vec![6; 128],
        }),
        Pdu::CapsuleCmd([7; 64], Payload::default()),
        Pdu::CapsuleCmd([8; 64], data(8192)),
        Pdu::CapsuleResp([9; 16]),
        Pdu::H2cData(header, data(60_000)),
        Pdu::C2hData(
            DataHeader {
                is_success: true,
                ..header
            },
            data(60_000),
        ),
        Pdu::R2t(ReadyToTransfer {
            cid: 3,
            tag: 9,
            offset: 0,
            length: 4096,
        }),
    ]
}

fn receiver_of(pdu: &Pdu) -> Receiver {
    match pdu.kind() {
        Kind::IcReq | Kind::H2cTermReq | Kind::CapsuleCmd | Kind::H2cData => Receiver::Controller,
        _ => Receiver::Host,
    }
}

fn decoder_for(pdu: &Pdu, framing: Framing) -> PduDecoder {
    let mut decoder = PduDecoder::new(receiver_of(pdu), LIMITS);
    if !matches!(pdu.kind(), Kind::IcReq | Kind::IcResp) {
        decoder.initialized(framing.digests);
    }
    decoder
}

fn bytes_of(pdu: &Pdu, framing: Framing) -> Vec<u8> {
    let mut bytes = Vec::new();
    encode(pdu, framing, &mut bytes);
    bytes
}

/// ICReq and ICResp by `struct nvme_tcp_icreq_pdu`, R2T by `struct nvme_tcp_r2t_pdu`, a term request by SPDK's
/// `struct spdk_nvme_tcp_term_req_hdr`, H2CData with both digests by `struct nvme_tcp_data_pdu`.
#[test]
fn known_bytes() {
    let both = Digests {
        header: true,
        data: true,
    };
    let request = Pdu::IcReq(IcReq {
        format: 0,
        alignment: 1,
        digests: both,
        r2ts_max: 2,
    });
    let bytes = bytes_of(&request, FRAMINGS[3]);
    assert_eq!(bytes.len(), 128);
    assert_eq!(
        bytes[..20],
        [
            0, 0, 128, 0, 128, 0, 0, 0, 0, 0, 1, 3, 2, 0, 0, 0, 0, 0, 0, 0
        ]
    );

    let r2t = Pdu::R2t(ReadyToTransfer {
        cid: 0x0201,
        tag: 0x0403,
        offset: 0x1000,
        length: 0x2000,
    });
    let expected = [
        9, 0, 24, 0, 24, 0, 0, 0, 1, 2, 3, 4, 0, 0x10, 0, 0, 0, 0x20, 0, 0, 0, 0, 0, 0,
    ];
    assert_eq!(bytes_of(&r2t, FRAMINGS[0]), expected);

    let terminate = Pdu::C2hTermReq(Terminate {
        error: 1,
        information: 0x0102_0304,
        header: vec![0xaa; 8],
    });
    let mut expected = vec![
        3, 0, 24, 0, 32, 0, 0, 0, 1, 0, 4, 3, 2, 1, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0,
    ];
    expected.extend([0xaa; 8]);
    assert_eq!(bytes_of(&terminate, FRAMINGS[3]), expected);

    let header = DataHeader {
        cid: 5,
        tag: 6,
        offset: 7,
        is_last: true,
        is_success: false,
    };
    let framing = Framing {
        digests: both,
        alignment: 0,
    };
    let bytes = bytes_of(&Pdu::H2cData(header, b"123456789".to_vec().into()), framing);
    let fields = [
        6, 7, 24, 28, 41, 0, 0, 0, 5, 0, 6, 0, 7, 0, 0, 0, 9, 0, 0, 0, 0, 0, 0, 0,
    ];
    assert_eq!(bytes[..24], fields);
    assert_eq!(bytes[24..28], crc32c(&fields).to_le_bytes());
    assert_eq!(bytes[28..37], *b"123456789");
    assert_eq!(bytes[37..], [0x83, 0x92, 0x06, 0xe3]);
}

#[test]
fn every_pdu_is_read_back_in_every_framing_however_it_is_cut() {
    let mut rng = StdRng::seed_from_u64(1);
    for framing in FRAMINGS {
        for pdu in pdus(&mut rng) {
            let bytes = bytes_of(&pdu, framing);
            let mut decoder = decoder_for(&pdu, framing);
            let mut rest = &bytes[..];
            while rest.len() > 1 {
                let (part, after) = rest.split_at(rng.gen_range(1..rest.len()));
                decoder.push(part);
                assert_eq!(
                    decoder.next_pdu(),
                    Ok(None),
                    "{:?} is not whole",
                    pdu.kind()
                );
                rest = after;
            }
            decoder.push(rest);
            assert_eq!(decoder.next_pdu(), Ok(Some(pdu)));
            assert_eq!(decoder.next_pdu(), Ok(None));
            assert_eq!(decoder.buffered(), 0);
        }
    }
}

/// The error of a PDU whose byte `at` is replaced.
fn error_with(pdu: &Pdu, framing: Framing, at: usize, byte: u8) -> Option<(FatalError, u32)> {
    let mut bytes = bytes_of(pdu, framing);
    bytes[at] = byte;
    let mut decoder = decoder_for(pdu, framing);
    decoder.push(&bytes);
    let error = decoder.next_pdu().err()?;
    Some((error.fatal, error.information))
}

#[test]
fn bad_headers_are_fatal_and_name_their_field() {
    use FatalError::{InvalidHeaderField, LimitExceeded};
    let field = |at| Some((InvalidHeaderField, at));
    let bare = FRAMINGS[0];
    let command = Pdu::CapsuleCmd([1; 64], vec![2; 16].into());
    assert_eq!(error_with(&command, bare, 0, 8), field(0), "no such type");
    assert_eq!(
        error_with(&command, bare, 0, 5),
        field(0),
        "a type for hosts"
    );
    assert_eq!(
        error_with(&command, bare, 1, 1),
        field(1),
        "a header digest that was not agreed"
    );
    assert_eq!(
        error_with(&command, bare, 1, 2),
        field(1),
        "a data digest that was not agreed"
    );
    assert_eq!(
        error_with(&command, FRAMINGS[3], 1, 1),
        field(1),
        "no data digest"
    );
    assert_eq!(error_with(&command, bare, 2, 71), field(2), "header length");
    assert_eq!(
        error_with(&command, bare, 3, 68),
        field(3),
        "data within the header"
    );
    assert_eq!(
        error_with(&command, bare, 3, 74),
        field(3),
        "data off its alignment"
    );
    assert_eq!(
        error_with(&command, bare, 3, 132),
        field(3),
        "data beyond the largest alignment"
    );
    assert_eq!(error_with(&command, bare, 3, 88), field(4), "no data left");
    assert_eq!(
        error_with(&command, bare, 4, 71),
        field(4),
        "shorter than its header"
    );
    assert_eq!(
        error_with(&command, bare, 6, 1),
        Some((LimitExceeded, 4)),
        "64 KiB in a capsule"
    );
}

#[test]
fn bad_lengths_of_data_and_header_digests_are_fatal() {
    use FatalError::{HeaderDigestError, InvalidHeaderField, LimitExceeded};
    let field = |at| Some((InvalidHeaderField, at));
    let bare = FRAMINGS[0];
    let data = Pdu::H2cData(
        DataHeader {
            cid: 1,
            tag: 1,
            offset: 0,
            is_last: true,
            is_success: false,
        },
        vec![0; 16].into(),
    );
    assert_eq!(
        error_with(&data, bare, 16, 15),
        field(16),
        "another length than its data"
    );
    assert_eq!(
        error_with(&data, bare, 7, 1),
        Some((LimitExceeded, 4)),
        "16 MiB"
    );
    let with_digest = error_with(&data, FRAMINGS[1], 8, 2);
    assert!(matches!(with_digest, Some((HeaderDigestError, _))));
    let request = Pdu::IcReq(IcReq::default());
    assert_eq!(error_with(&request, bare, 4, 127), field(4));
    let terminate = Pdu::H2cTermReq(Terminate {
        error: 1,
        information: 0,
        header: vec![0; 128],
    });
    assert_eq!(error_with(&terminate, bare, 4, 153), field(4));
}

#[test]
fn the_order_of_initialization_is_kept() {
    let mut decoder = PduDecoder::new(Receiver::Controller, LIMITS);
    decoder.push(&bytes_of(
        &Pdu::CapsuleCmd([0; 64], Payload::default()),
        FRAMINGS[0],
    ));
    assert_eq!(
        decoder.next_pdu().unwrap_err().fatal,
        FatalError::SequenceError
    );

    let mut decoder = PduDecoder::new(Receiver::Controller, LIMITS);
    decoder.initialized(Digests::default());
    decoder.push(&bytes_of(&Pdu::IcReq(IcReq::default()), FRAMINGS[0]));
    assert_eq!(
        decoder.next_pdu().unwrap_err().fatal,
        FatalError::SequenceError
    );
}

#[test]
fn corrupt_data_is_marked_and_the_stream_goes_on() {
    let pdu = Pdu::CapsuleCmd([1; 64], vec![2; 16].into());
    let mut bytes = bytes_of(&pdu, FRAMINGS[3]);
    let last = bytes.len() - 1;
    bytes[last] ^= 1;
    bytes.extend(bytes_of(&pdu, FRAMINGS[3]));
    let mut decoder = decoder_for(&pdu, FRAMINGS[3]);
    decoder.push(&bytes);
    let Ok(Some(Pdu::CapsuleCmd(_, data))) = decoder.next_pdu() else {
        panic!("no command");
    };
    assert!(data.is_corrupt);
    assert_eq!(decoder.next_pdu(), Ok(Some(pdu)));
}

/// A length that is claimed and does not come takes no memory.
#[test]
fn nothing_is_allocated_for_a_claim() {
    let mut decoder = PduDecoder::new(
        Receiver::Host,
        Limits {
            capsule_data: 0,
            data: 1 << 30,
        },
    );
    decoder.initialized(Digests::default());
    decoder.push(&[7, 0, 24, 24, 0, 0, 0, 0x20]);
    assert_eq!(decoder.next_pdu(), Ok(None));
    assert!(decoder.buffer_capacity() < 4096);
}

/// A million PDUs, whole or mutated, in streams of a few: the decoder takes at most one step for each eight bytes
/// and one more, and what it returns is within its limits.
#[test]
fn a_million_mutated_pdus_neither_panic_nor_hang() {
    let mut rng = StdRng::seed_from_u64(2);
    let small = |rng: &mut StdRng| -> Vec<Pdu> {
        let mut all = pdus(rng);
        for pdu in &mut all {
            if let Pdu::CapsuleCmd(_, data) | Pdu::H2cData(_, data) | Pdu::C2hData(_, data) = pdu {
                data.bytes.truncate(64);
            }
        }
        all
    };
    let samples: Vec<Pdu> = (0..10).flat_map(|_| small(&mut rng)).collect();
    let (mut fed, mut good, mut bad, mut pending) = (0_u32, 0_u32, 0_u32, 0_u32);
    while fed < 1_000_000 {
        let framing = FRAMINGS[rng.gen_range(0..4)];
        let first = &samples[rng.gen_range(0..samples.len())];
        let mut decoder = decoder_for(first, framing);
        let mut stream = Vec::new();
        let is_alike = |pdu: &&Pdu| {
            let is_init = |pdu: &Pdu| matches!(pdu.kind(), Kind::IcReq | Kind::IcResp);
            receiver_of(pdu) == receiver_of(first) && is_init(pdu) == is_init(first)
        };
        let alike: Vec<&Pdu> = samples.iter().filter(is_alike).collect();
        for _ in 0..rng.gen_range(1..6) {
            let pdu = alike[rng.gen_range(0..alike.len())];
            let mut bytes = bytes_of(pdu, framing);
            mutate(&mut bytes, &mut rng);
            stream.extend(bytes);
            fed += 1;
        }
        for part in stream.chunks(rng.gen_range(1..=stream.len().max(2))) {
            decoder.push(part);
            let steps_max = decoder.buffered() / 8 + 1;
            let mut steps = 0;
            let outcome = loop {
                steps += 1;
                assert!(steps <= steps_max, "a PDU takes eight bytes at least");
                match decoder.next_pdu() {
                    Ok(Some(pdu)) => {
                        good += 1;
                        if let Pdu::CapsuleCmd(_, data) | Pdu::H2cData(_, data) = &pdu {
                            assert!(data.bytes.len() <= LIMITS.data);
                        }
                    }
                    Ok(None) => break Ok(()),
                    Err(error) => break Err(error),
                }
            };
            if outcome.is_err() {
                bad += 1;
                break;
            }
        }
        pending += u32::from(decoder.buffered() > 0);
    }
    // Each outcome is common: the test exercises more than refusals.
    assert!(
        good > 100_000 && bad > 100_000 && pending > 10_000,
        "{good} {bad} {pending}"
    );
}

/// Nothing, a few bytes, or the length: replaced.
fn mutate(bytes: &mut Vec<u8>, rng: &mut StdRng) {
    match rng.gen_range(0..6) {
        0 | 1 => {}
        2 => {
            let at = rng.gen_range(0..8);
            bytes[at] = rng.r#gen();
        }
        3 => {
            for _ in 0..rng.gen_range(1..5) {
                let at = rng.gen_range(0..bytes.len());
                bytes[at] ^= 1 << rng.gen_range(0..8);
            }
        }
        4 => bytes.truncate(rng.gen_range(0..bytes.len())),
        _ => {
            let length: u32 = rng.gen_range(0..200);
            bytes[4..8].copy_from_slice(&length.to_le_bytes());
        }
    }
}
