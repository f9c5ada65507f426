//! A queue of commands to a device, whatever carries them there.

use std::fmt;
use std::sync::Arc;
use std::sync::mpsc::{Receiver, RecvTimeoutError, channel};
use std::time::Duration;

use crate::host::error::HostError;
use crate::host::initiator::{CommandData, Response};
use crate::nvme::Command;

/// Called once with a command's end, on the thread that learns of it: it must not wait.
pub type Callback = Box<dyn FnOnce(Result<Response, HostError>) + Send>;

/// A queue of commands.
pub trait Queue: fmt::Debug + Send + Sync {
    /// Sends a command. `callback` gets its end; it is not called if this fails.
    ///
    /// # Errors
    ///
    /// [`HostError::QueueFull`], or the error that ended the link.
    fn submit(
        &self,
        command: Command,
        data: CommandData,
        callback: Callback,
    ) -> Result<(), HostError>;

    /// The carrier of the commands.
    fn link(&self) -> Arc<dyn Link>;

    /// Whether a command with this many bytes of data comes to the device as it is.
    fn passes_on(&self, command: &Command, bytes: u32) -> bool {
        let _ = (command, bytes);
        true
    }

    /// Sends a command that is waited for.
    ///
    /// # Errors
    ///
    /// As for [`submit`](Self::submit).
    fn send(
        &self,
        name: &'static str,
        command: Command,
        data: CommandData,
    ) -> Result<Pending, HostError> {
        let (sender, answer) = channel();
        // The receiver may have given up.
        let callback = Box::new(move |response| drop(sender.send(response)));
        self.submit(command, data, callback)?;
        Ok(Pending {
            command: name,
            link: self.link(),
            answer,
        })
    }

    /// Executes a command.
    ///
    /// # Errors
    ///
    /// [`HostError`]. After [`HostError::TimedOut`] the link is ended.
    fn call(
        &self,
        name: &'static str,
        command: Command,
        data: CommandData,
        timeout: Duration,
    ) -> Result<Response, HostError> {
        self.send(name, command, data)?.wait(timeout)
    }
}

/// The carrier of a queue's commands. It ends once, with a reason.
pub trait Link: fmt::Debug + Send + Sync {
    /// Ends the link, and with it the commands that are under way. The first error counts.
    fn end(&self, error: HostError);

    /// The error that ended the link.
    fn failure(&self) -> Option<HostError>;
}

/// A command under way.
#[derive(Debug)]
pub struct Pending {
    command: &'static str,
    link: Arc<dyn Link>,
    answer: Receiver<Result<Response, HostError>>,
}

// === impl Pending ===

impl Pending {
    /// Waits for the command's end.
    ///
    /// # Errors
    ///
    /// [`HostError::Refused`] for a status other than success; [`HostError::TimedOut`], which ends the link; the error
    /// that ended the link.
    pub fn wait(self, timeout: Duration) -> Result<Response, HostError> {
        let response = match self.answer.recv_timeout(timeout) {
            Ok(response) => response?,
            Err(RecvTimeoutError::Timeout) => {
                let error = HostError::TimedOut {
                    command: self.command,
                    after: timeout,
                };
                self.link.end(error.clone());
                return Err(error);
            }
            Err(RecvTimeoutError::Disconnected) => {
                let failure = self.link.failure();
                return Err(failure.unwrap_or_else(|| HostError::Lost("its thread ended".into())));
            }
        };
        succeeded(self.command, response)
    }
}

/// The response, if its status is success.
pub(super) fn succeeded(command: &'static str, response: Response) -> Result<Response, HostError> {
    let completion = response.completion;
    if completion.status.is_success() {
        return Ok(response);
    }
    Err(HostError::Refused {
        command,
        status: completion.status,
        result: completion.result[0],
    })
}
