//! The first questions to a simulator.

use std::time::{Duration, Instant};

use crate::circuit::frames::{Answer, Frame, Request};
use crate::circuit::process::{Heard, Process};
use crate::nvme::opcode::admin;
use crate::nvme::{Command, IDENTIFY_BYTES, IdentifyController, property};

/// Registers that never change, and the subsystem's name.
#[derive(Clone, Debug)]
pub(super) struct Registers {
    /// CAP.
    pub(super) capabilities: u64,
    /// VS.
    pub(super) version: u32,
    /// Name of the subsystem.
    pub(super) subsystem: String,
}

/// The first tag after those of these questions.
pub(super) const TAGS: u32 = 100;
/// Time for an answer: a simulator boots the firmware before the first.
const ANSWER_TIMEOUT: Duration = Duration::from_secs(30);

/// Asks, and leaves the controller disabled.
pub(super) fn ask(process: &mut Process) -> Result<Registers, String> {
    let mut tag = 0;
    let mut call = |request: Request| {
        tag += 1;
        process.send(tag, &request);
        wait(process, tag)
    };
    let mut register = |offset| match call(Request::Register { offset })? {
        Answer::Value(value) => Ok(value),
        other => Err(format!("{other:?} for a register")),
    };
    let capabilities = u64::from(register(property::CAP)?) | u64::from(register(4)?) << 32;
    let version = register(property::VS)?;
    let identify = Command::new(admin::IDENTIFY, 0).with_dwords(&[1]);
    let identity = match call(Request::Command {
        queue: 0,
        entry: identify.encode(),
        to_circuit: Vec::new(),
        from_circuit: IDENTIFY_BYTES as u32,
    })? {
        Answer::Completion { status, data, .. } if status.is_success() => {
            IdentifyController::decode(&data)
        }
        other => return Err(format!("{other:?} for Identify Controller")),
    };
    let identity = identity.filter(|identity| identity.zkpu.is_some());
    let identity = identity.ok_or("it is no ZKPU, by its Identify Controller data")?;
    match call(Request::Reset { configuration: 0 })? {
        Answer::Done { is_ok: true } => {}
        other => return Err(format!("{other:?} for a reset")),
    }
    Ok(Registers {
        capabilities,
        version,
        subsystem: identity.subsystem,
    })
}

fn wait(process: &mut Process, tag: u32) -> Result<Answer, String> {
    let deadline = Instant::now() + ANSWER_TIMEOUT;
    loop {
        let left = deadline.saturating_duration_since(Instant::now());
        match process.wait(left) {
            Heard::Frame(Frame { tag: of, answer }) if of == tag => return Ok(answer),
            Heard::Frame(_) => {}
            Heard::End(reason) => return Err(reason),
            Heard::Nothing => {
                return Err(format!("no answer in {} s", ANSWER_TIMEOUT.as_secs()));
            }
        }
    }
}
