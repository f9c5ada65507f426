//! A case of the protocol, and what cases have in common.

use proofmill_accelerator::conformance::Case;

use crate::host::{CommandData, HostError, Zkpu};
use crate::nvme::{Command, Status};

/// A case of the page: it speaks to the device by the driver's commands.
#[derive(Debug)]
pub struct ProtocolCase {
    case: Case<Zkpu>,
    /// The command that is to be refused, and the bytes of its data.
    refused: Option<(Queue, Command, u32)>,
}

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
    let refused = Some((queue, command, data.length()));
    let case = Case::new(
        format!("{what} is refused: {expected}"),
        move |device: &Zkpu| {
            let found = status_of(device, queue, command, data.clone())?;
            match found.is(expected) {
                true => Ok(()),
                false => Err(format!("the answer is: {found}")),
            }
        },
    );
    ProtocolCase { case, refused }
}

// === impl ProtocolCase ===

impl ProtocolCase {
    pub(super) fn new(
        name: impl Into<String>,
        run: impl Fn(&Zkpu) -> Result<(), String> + Send + Sync + 'static,
    ) -> Self {
        Self {
            case: Case::new(name, run),
            refused: None,
        }
    }

    /// The demand, such as `an unknown log page is refused`.
    pub fn name(&self) -> &str {
        self.case.name()
    }

    /// Whether the case's command comes to the device as it is: a kernel refuses some by itself.
    pub fn reaches(&self, device: &Zkpu) -> bool {
        match &self.refused {
            Some((Queue::Io, command, bytes)) => device.passes_on(command, *bytes),
            _ => true,
        }
    }

    /// Runs the case. It leaves the device as it was, but for the content of its memory.
    ///
    /// # Errors
    ///
    /// The device's failing.
    pub fn run(&self, device: &Zkpu) -> Result<(), String> {
        self.case.run(device)
    }
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
