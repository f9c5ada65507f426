//! Writes valid PDUs, commands and pages as seeds for the fuzzer.

use std::fs;

use proofmill_zkpu::nvme::opcode::{admin, feature, log, memory, nvm, program};
use proofmill_zkpu::nvme::{Command, DiscoveryEntry, discovery_log, firmware_log};
use proofmill_zkpu::tcp::{DataHeader, Digests, Framing, IcReq, IcResp, Payload, Pdu, encode};

fn save(target: &str, name: &str, bytes: &[u8]) {
    let folder = format!("{}/corpus/{target}", env!("CARGO_MANIFEST_DIR"));
    fs::create_dir_all(&folder).expect("the folder can be made");
    fs::write(format!("{folder}/{name}"), bytes).expect("a seed");
}

fn commands() -> Vec<(u8, Command)> {
    let log_of = |page: u8| {
        Command::new(admin::GET_LOG_PAGE, 0).with_dwords(&[u32::from(page) | 1087 / 4 << 16])
    };
    let mut commands: Vec<(u8, Command)> = [log::ERRORS, log::HEALTH, log::ZKPU, log::JOBS]
        .into_iter()
        .map(|page| (0, log_of(page)))
        .collect();
    for structure in 0..4 {
        commands.push((
            0,
            Command::new(admin::IDENTIFY, 0).with_dwords(&[structure]),
        ));
    }
    for id in [
        feature::QUEUES,
        feature::KEEP_ALIVE,
        feature::EVENTS,
        feature::JOB_TIMEOUT,
    ] {
        commands.push((
            0,
            Command::new(admin::SET_FEATURES, 0).with_dwords(&[id.into(), 1]),
        ));
    }
    for opcode in [
        nvm::WRITE,
        nvm::READ,
        nvm::START,
        nvm::WAIT,
        nvm::CANCEL,
        nvm::SET_BASE,
    ] {
        commands.push((
            1,
            Command::new(opcode, 1).with_dwords(&[0, 0, 1, 13 | 1 << 8]),
        ));
    }
    for opcode in [memory::FILL, memory::READ, memory::WRITE] {
        commands.push((1, Command::new(opcode, 2).with_dwords(&[0, 0, 512])));
    }
    commands.push((
        1,
        Command::new(program::EXECUTE, 3).with_dwords(&[1, 1, 64]),
    ));
    commands
}

fn pdus() -> Vec<Pdu> {
    let digests = Digests {
        header: true,
        data: true,
    };
    let payload = |bytes: &[u8]| Payload {
        bytes: bytes.to_vec(),
        is_corrupt: false,
    };
    let header = DataHeader {
        cid: 1,
        tag: 2,
        offset: 0,
        is_last: true,
        is_success: false,
    };
    vec![
        Pdu::IcReq(IcReq {
            digests,
            ..IcReq::default()
        }),
        Pdu::IcResp(IcResp {
            digests,
            host_data_max: 1 << 16,
            ..IcResp::default()
        }),
        Pdu::CapsuleCmd(Command::new(nvm::WRITE, 1).encode(), payload(&[7; 512])),
        Pdu::CapsuleResp([0; 16]),
        Pdu::H2cData(header, payload(&[8; 64])),
        Pdu::C2hData(header, payload(&[9; 64])),
    ]
}

fn main() {
    let mut all = Vec::new();
    for (queue, command) in commands() {
        // 255 is no index of an opcode: the command keeps its own.
        let record = [&[queue, 255][..], &command.encode()].concat();
        save(
            "commands",
            &format!("{queue}-{}-{}", command.opcode, all.len()),
            &record,
        );
        all.extend(record);
    }
    save("commands", "all", &all);
    for (number, pdu) in pdus().iter().enumerate() {
        // Both digests, and whether the connection is initialized; parts of 255 bytes.
        for choice in 0..8_u8 {
            let digests = Digests {
                header: choice & 1 != 0,
                data: choice & 2 != 0,
            };
            let mut bytes = vec![choice, 255];
            encode(
                pdu,
                Framing {
                    digests,
                    alignment: 0,
                },
                &mut bytes,
            );
            save("pdus", &format!("{number}-{choice}"), &bytes);
        }
    }
    let entry = DiscoveryEntry {
        subsystem: "nqn.2026-01.org.proofmill:zkpu:1".into(),
        address: "127.0.0.1".into(),
        port: "4420".into(),
        is_ipv6: false,
    };
    save("pages", "discovery", &discovery_log(1, &[entry]));
    save("pages", "firmware", &firmware_log("1.0"));
}
