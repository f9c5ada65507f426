//! All cases of the protocol, and those of products.

use ark_bls12_377::G1Projective;
use proofmill_accelerator::conformance::{self, Case};

use super::case::{ProtocolCase, Queue, refusal, text};
use super::{compute, memory, precompute};
use crate::host::CommandData;
use crate::nvme::opcode::{admin, log};
use crate::nvme::zkpu::ZkpuCapability;
use crate::nvme::{Command, Status};

/// Base-two logarithm of the largest products that [`products`] makes.
pub const LOG_N_MAX: u32 = 20;

/// A log page that no ZKPU has.
const UNKNOWN_LOG: u32 = 0x0d;
/// "Save" of Set Features.
const SAVE: u32 = 1 << 31;

/// The page's demands on a device with these capabilities: refusals with their statuses, and work after them.
pub fn protocol(capability: &ZkpuCapability) -> Vec<ProtocolCase> {
    let mut cases = admin_cases();
    if capability.has(ZkpuCapability::MEMORY_PERSONALITY) {
        cases.extend(memory::cases(capability));
        cases.extend(precompute::cases(capability));
    }
    if capability.has(ZkpuCapability::COMPUTE_PERSONALITY) {
        cases.extend(compute::cases(capability));
    }
    cases.push(refusals_are_counted());
    cases
}

/// The accelerator's cases for BLS12-377 G1: jobs, small products of every kind, and products of 2^5, 2^8 and every
/// second power up to 2^`max_log_n`, which is at most [`LOG_N_MAX`].
pub fn products(max_log_n: u32) -> Vec<Case> {
    let max_log_n = max_log_n.min(LOG_N_MAX);
    let logs = [5, 8].into_iter().chain((10..=LOG_N_MAX).step_by(2));
    let mut counts: Vec<usize> = logs
        .filter(|log| *log <= max_log_n)
        .map(|log| 1 << log)
        .collect();
    if !counts.contains(&(1 << max_log_n)) {
        counts.push(1 << max_log_n);
    }
    let mut cases = conformance::jobs::<G1Projective>();
    cases.extend(conformance::products::<G1Projective>());
    cases.extend(conformance::sized_products::<G1Projective>(&counts, 0));
    cases
}

fn admin_cases() -> Vec<ProtocolCase> {
    let identify = |cns: u32, nsid, set: u32| {
        Command::new(admin::IDENTIFY, nsid).with_dwords(&[cns, set << 24])
    };
    let refused = |what: &str, command, expected| {
        refusal(
            what,
            Queue::Admin,
            command,
            CommandData::ToHost(4096),
            expected,
        )
    };
    let page = |id: u32| Command::new(admin::GET_LOG_PAGE, 0).with_dwords(&[id | 127 << 16]);
    let no_data = |what: &str, command, expected| {
        refusal(what, Queue::Admin, command, CommandData::None, expected)
    };
    vec![
        no_data(
            "an unknown admin opcode",
            Command::new(0x54, 0),
            Status::INVALID_OPCODE,
        ),
        refused(
            "Identify of an unknown kind",
            identify(0x55, 0, 0),
            Status::INVALID_FIELD,
        ),
        refused(
            "Identify of namespace 4",
            identify(0, 4, 0),
            Status::INVALID_NAMESPACE,
        ),
        refused(
            "Identify of namespace 2 as one of blocks",
            identify(0, 2, 0),
            Status::INVALID_COMMAND_SET,
        ),
        refused(
            "Identify of namespace 2 by another command set",
            identify(5, 2, 4),
            Status::INVALID_COMMAND_SET,
        ),
        refusal(
            "an unknown log page",
            Queue::Admin,
            page(UNKNOWN_LOG),
            CommandData::ToHost(512),
            Status::INVALID_LOG_PAGE,
        ),
        no_data(
            "saving a feature",
            Command::new(admin::SET_FEATURES, 0).with_dwords(&[0x04 | SAVE, 0]),
            Status::FEATURE_NOT_SAVEABLE,
        ),
        no_data(
            "a second I/O command set combination",
            Command::new(admin::SET_FEATURES, 0).with_dwords(&[0x19, 1]),
            Status::INVALID_FIELD,
        ),
        ProtocolCase::new("the health page is there", move |device| {
            let answer = device
                .admin_command(page(log::ZKPU.into()), CommandData::ToHost(512))
                .map_err(text)?;
            match answer.data.first_chunk() {
                Some([1, 0]) => Ok(()),
                version => Err(format!("version {version:02x?} of the page, not 1")),
            }
        }),
    ]
}

fn refusals_are_counted() -> ProtocolCase {
    ProtocolCase::new(
        "refused commands are counted in the health page",
        |device| {
            let failed =
                || Ok::<_, String>(device.health().map_err(text)?.counters.commands_failed);
            let before = failed()?;
            let unknown = Command::new(0x55, 1);
            match device.io_command(unknown, CommandData::None) {
                Err(error) if error.status().is_some() => {}
                other => return Err(format!("an unknown opcode: {other:?}")),
            }
            match failed()? {
                after if after > before => Ok(()),
                after => Err(format!("{before} before and {after} after")),
            }
        },
    )
}
