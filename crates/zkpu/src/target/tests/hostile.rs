//! A million hostile PDUs.

use ark_std::rand::{Rng, SeedableRng, rngs::StdRng};

use super::*;
use crate::controller::tests::MEMORY;
use crate::nvme::opcode::memory;
use crate::tcp::IcReq;

/// A million PDUs, valid, nearly valid or garbage, against sessions of both queues: the controller answers or closes,
/// in bounded steps; the device asserts that nothing outside of its memory is touched; a host can still connect.
#[test]
fn a_million_hostile_pdus_are_answered_or_end_the_connection() {
    let mut rng = StdRng::seed_from_u64(11);
    let mut subsystem = Subsystem::new(Scripted::new());
    let (mut next_id, mut sent) = (1, 0_u32);
    let (mut answers, mut closed) = (0_u64, 0_u64);
    while sent < 1_000_000 {
        let digests = Digests {
            header: rng.r#gen(),
            data: rng.r#gen(),
        };
        let (mut admin, mut io) = connected(&mut subsystem, next_id, digests);
        let framing = Framing {
            digests,
            alignment: 0,
        };
        let mut tags: Vec<(u16, u16, u32)> = Vec::new();
        for _ in 0..2000 {
            let is_admin = rng.gen_range(0..4) == 0;
            let session = if is_admin {
                &mut admin.session
            } else {
                &mut io.session
            };
            let mut bytes = Vec::new();
            encode(
                &hostile_pdu(&mut rng, &mut tags, is_admin),
                framing,
                &mut bytes,
            );
            if rng.gen_range(0..20) == 0 {
                let at = rng.gen_range(0..bytes.len());
                bytes[at] = rng.r#gen();
            }
            session.push(&bytes);
            sent += 1;
            let mut runs = 0;
            while session.run(&mut subsystem, 0) {
                session.take_output();
                runs += 1;
                assert!(runs < RUNS_MAX, "a session that never ends");
            }
            let output = session.take_output();
            answers += u64::from(!output.is_empty());
            for pdu in pdus_or_none(&output, digests) {
                if let Pdu::R2t(request) = pdu {
                    tags.push((request.cid, request.tag, request.length));
                }
            }
            if rng.gen_range(0..8) == 0 {
                let error = if rng.r#gen() { 0 } else { 4 };
                subsystem.controller_mut().device_mut().end = Some(end(error));
                subsystem.poll();
            }
            subsystem.controller_mut().device_mut().cycles += rng.gen_range(0..1 << 21);
            subsystem.poll();
            if admin.session.is_closing() || io.session.is_closing() {
                closed += 1;
                break;
            }
        }
        subsystem.disconnect(ConnectionId(next_id + 1));
        subsystem.disconnect(ConnectionId(next_id));
        next_id += 2;
    }
    connected(&mut subsystem, next_id, BOTH);
    let counters = subsystem.controller().counters();
    // The test reaches what it is for: commands that succeed, jobs, closed connections.
    assert!(
        counters.commands > 100_000 && counters.commands > counters.commands_failed + 10_000,
        "{counters:?}"
    );
    assert!(
        counters.jobs_completed > 100 && answers > 100_000 && closed > 1000,
        "{answers} {closed} {counters:?}"
    );
}

fn pdus_or_none(bytes: &[u8], digests: Digests) -> Vec<Pdu> {
    if bytes.is_empty() {
        Vec::new()
    } else {
        pdus_of(bytes, digests)
    }
}

/// A command or data PDU whose fields are near the limits, or random.
fn hostile_pdu(rng: &mut StdRng, tags: &mut Vec<(u16, u16, u32)>, is_admin: bool) -> Pdu {
    if !tags.is_empty() && rng.gen_range(0..3) == 0 {
        let (cid, tag, length) = tags.swap_remove(rng.gen_range(0..tags.len()));
        let length = if rng.gen_range(0..8) == 0 {
            rng.gen_range(1..2048)
        } else {
            length.min(1 << 12)
        };
        let header = DataHeader {
            cid,
            tag,
            offset: if rng.gen_range(0..16) == 0 { 512 } else { 0 },
            is_last: rng.gen_range(0..8) > 0,
            is_success: false,
        };
        return Pdu::H2cData(header, vec![0x5a; length as usize].into());
    }
    if rng.gen_range(0..200) == 0 {
        return Pdu::IcReq(IcReq::default());
    }
    let command = hostile_command(rng, is_admin);
    with_sgl(rng, command, is_admin)
}

/// A number near a limit, or random.
fn near(rng: &mut StdRng) -> u32 {
    match rng.gen_range(0..6) {
        0 => rng.r#gen(),
        1 => (MEMORY / 512) as u32 - rng.gen_range(0..4),
        2 => MEMORY as u32 - 4 * rng.gen_range(0..64),
        3 => 0,
        _ => rng.gen_range(0..64),
    }
}

fn hostile_command(rng: &mut StdRng, is_admin: bool) -> Command {
    let mut command = Command {
        cid: rng.gen_range(0..40),
        flags: if rng.gen_range(0..50) == 0 {
            rng.r#gen()
        } else {
            Command::FLAG_SGL
        },
        nsid: rng.gen_range(0..5),
        ..Command::default()
    };
    command.cdw10 = std::array::from_fn(|_| near(rng));
    command.cdw2 = [near(rng), near(rng)];
    command.metadata = near(rng).into();
    if is_admin {
        let known = [
            0x02, 0x06, 0x08, 0x09, 0x0a, 0x0c, 0x18, 0x85, 0x88, 0x89, 0x7f,
        ];
        command.opcode = known[rng.gen_range(0..known.len())];
        if command.opcode == admin::GET_LOG_PAGE {
            command.cdw10[0] = [1, 2, 3, 0xc0, 0xc1][rng.gen_range(0..5)] | 127 << 16;
            command.cdw10[1] = 0;
        }
        if command.opcode == 0x7f {
            // Property Get; a Property Set of CC would end the association each time.
            command.nsid = 4;
        }
    } else {
        let known = [0x00, 0x01, 0x02, 0x05, 0x80, 0x84, 0x88, 0x8c, 0x90];
        command.opcode = known[rng.gen_range(0..known.len())];
        if rng.r#gen() {
            // A job that could run, or a transfer within memory.
            command.nsid = if command.opcode == 0x05 { 2 } else { 1 };
            match command.opcode {
                nvm::START => {
                    command.cdw10 = [0, 8, 16, 2, 13 | 1 << 8 | rng.gen_range(0..2) << 24, 1]
                }
                nvm::PRECOMPUTE => {
                    command.cdw10 = [0, 64, 0, 2, 13 | 2 << 8 | rng.gen_range(0..2) << 24, 1]
                }
                nvm::WRITE | nvm::READ => {
                    command.cdw10[..3].copy_from_slice(&[rng.gen_range(0..100), 0, 1])
                }
                memory::WRITE => command.cdw10[..3].copy_from_slice(&[64, 0, 256]),
                _ => command.cdw10[0] = rng.gen_range(0..40),
            }
        }
    }
    command
}

/// A capsule whose SGL mostly fits the command.
fn with_sgl(rng: &mut StdRng, mut command: Command, is_admin: bool) -> Pdu {
    let length = match (command.opcode, command.nsid) {
        (0x02, _) if is_admin => 512,
        (0x06, _) if is_admin => 4096,
        (0x89, _) => command.cdw10[1].min(4) * 32,
        (0x01 | 0x02, 1) => (command.cdw10[2] & 0xffff).saturating_add(1).min(4096) * 512,
        (0x02 | 0x05, 2) => command.cdw10[2] & 0x1f_ffff,
        (0x01, 3) => 96,
        _ => 0,
    };
    let is_write = command.opcode & 3 == 1;
    if is_write && length <= 4096 && rng.r#gen() {
        command.sgl = Sgl::in_capsule(length);
        return Pdu::CapsuleCmd(command.encode(), vec![0xa5; length as usize].into());
    }
    command.sgl = Sgl::transport(if rng.gen_range(0..30) == 0 {
        rng.r#gen()
    } else {
        length
    });
    Pdu::CapsuleCmd(command.encode(), Payload::default())
}
