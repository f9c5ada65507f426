//! A case of the protocol, and what cases have in common.

use proofmill_accelerator::conformance::Case;

use crate::host::{CommandData, HostError, Zkpu};
use crate::nvme::{Command, Status};

/// A case of the page: it speaks to the device by the driver's commands.
pub type ProtocolCase = Case<Zkpu>;

/// Queue of a command.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Queue {
    Admin,
    Io,
}

/// A command that must be refused with this status.
pub(super) fn refusal(
    what: &str,
    queue: Queue,
    command: Command,
    data: CommandData,
    expected: Status,
) -> ProtocolCase {
    Case::new(
        format!("{what} is refused: {expected}"),
        move |device: &Zkpu| {
            let found = status_of(device, queue, command, data.clone())?;
            match found.is(expected) {
                true => Ok(()),
                false => Err(format!("the answer is: {found}")),
            }
        },
    )
}

/// The status that a command ends with.
pub(super) fn status_of(
    device: &Zkpu,
    queue: Queue,
    command: Command,
    data: CommandData,
) -> Result<Status, String> {
    let answer = match queue {
        Queue::Admin => device.admin_command(command, data),
        Queue::Io => device.io_command(command, data),
    };
    match answer {
        Ok(_) => Ok(Status::SUCCESS),
        Err(HostError::Refused { status, .. }) => Ok(status),
        Err(error) => Err(error.to_string()),
    }
}

/// An error of the driver as text.
pub(super) fn text(error: HostError) -> String {
    error.to_string()
}
