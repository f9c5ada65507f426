//! A case of the protocol, and what cases have in common.

use std::fmt;

use crate::host::{CommandData, HostError, Zkpu};
use crate::nvme::{Command, Status};

type Run = Box<dyn Fn(&Zkpu) -> Result<(), String> + Send + Sync>;

/// A case: what the page asks of a device, and a run that finds out.
pub struct ProtocolCase {
    name: String,
    run: Run,
}

/// Queue of a command.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Queue {
    Admin,
    Io,
}

// === impl ProtocolCase ===

impl ProtocolCase {
    pub(super) fn new(
        name: impl Into<String>,
        run: impl Fn(&Zkpu) -> Result<(), String> + Send + Sync + 'static,
    ) -> Self {
        Self {
            name: name.into(),
            run: Box::new(run),
        }
    }

    /// A command that must be refused with this status.
    pub(super) fn refusal(
        what: &str,
        queue: Queue,
        command: Command,
        data: CommandData,
        expected: Status,
    ) -> Self {
        Self::new(format!("{what} is refused: {expected}"), move |device| {
            let found = status_of(device, queue, command, data.clone())?;
            match found.is(expected) {
                true => Ok(()),
                false => Err(format!("the answer is: {found}")),
            }
        })
    }

    /// What the device must do.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// Runs the case. It leaves the device as it was, but for the content of its memory.
    ///
    /// # Errors
    ///
    /// What the device did instead.
    pub fn run(&self, device: &Zkpu) -> Result<(), String> {
        (self.run)(device)
    }
}

impl fmt::Debug for ProtocolCase {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ProtocolCase")
            .field("name", &self.name)
            .finish_non_exhaustive()
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
