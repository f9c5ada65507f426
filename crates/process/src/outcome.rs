//! The outcome of a task, derived from the end of its program.

use std::os::unix::process::ExitStatusExt as _;
use std::process::ExitStatus;

use bytes::Bytes;
use rustix::process::Signal;

use super::attempt::Outcome;
use super::capture::Captured;
use super::machine::MachineFailure;
use super::memory::MemoryWatch;
use super::scratch::NoOutput;

/// `EX_DATAERR` of `sysexits.h`: the input is invalid, and will be next time.
const EX_DATAERR: i32 = 65;

/// Maximum number of characters of a program's output quoted in a reason.
const QUOTE: usize = 200;

/// The outcome after exit code 0, which depends on the output.
pub(super) fn from_output(
    output: Result<Bytes, NoOutput>,
    disk_full: Option<&MachineFailure>,
) -> Outcome {
    let why = match output {
        Ok(output) => return Outcome::Succeeded(output),
        Err(why) => why,
    };
    let of_machine = match &why {
        NoOutput::Unreadable(error) => MachineFailure::of("cannot read the output", error),
        NoOutput::Missing => disk_full.cloned(),
        NoOutput::NotAFile | NoOutput::TooLarge { .. } => None,
    };
    of_machine.map_or_else(
        || Outcome::Failed {
            reason: format!("exited with code 0, but {why}"),
        },
        Outcome::Machine,
    )
}

/// The outcome of any other end that was the program's own. If its file system was full, not
/// because of its own files, the failure is attributed to the machine; but exit code 65, which
/// states that the input is invalid, is believed.
pub(super) fn from_failure(
    status: ExitStatus,
    stdout: &Captured,
    stderr: &Captured,
    memory: &MemoryWatch,
    disk_full: Option<&MachineFailure>,
) -> Outcome {
    if let Some(failure) = disk_full
        && status.code() != Some(EX_DATAERR)
    {
        return Outcome::Machine(failure.clone());
    }
    let mut reason = match (status.code(), status.signal()) {
        (Some(EX_DATAERR), _) => "exited with code 65 (EX_DATAERR)".to_owned(),
        (Some(code), _) => format!("exited with code {code}"),
        (None, Some(signal)) => killed_by(signal),
        (None, None) => format!("ended with {status}"),
    };
    if let Some(line) = stderr.last_line(QUOTE).or_else(|| stdout.last_line(QUOTE)) {
        reason = format!("{reason}: {line}");
    }
    if let Some(note) = memory.suspicion(status.signal().is_some(), stderr) {
        reason = format!("{reason} ({note})");
    }
    if status.code() == Some(EX_DATAERR) {
        Outcome::Permanent { reason }
    } else {
        Outcome::Failed { reason }
    }
}

fn killed_by(signal: i32) -> String {
    let name = [
        (Signal::ABORT, "SIGABRT"),
        (Signal::BUS, "SIGBUS"),
        (Signal::FPE, "SIGFPE"),
        (Signal::ILL, "SIGILL"),
        (Signal::INT, "SIGINT"),
        (Signal::SEGV, "SIGSEGV"),
        (Signal::TERM, "SIGTERM"),
    ];
    if signal == Signal::KILL.as_raw() {
        return "killed by signal 9 (SIGKILL) from outside: the kernel when memory ran out, or a \
                person"
            .to_owned();
    }
    match name.iter().find(|(known, _)| known.as_raw() == signal) {
        Some((_, name)) => format!("killed by signal {signal} ({name})"),
        None => format!("killed by signal {signal}"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn signals_are_named_where_they_have_a_name() {
        assert_eq!(killed_by(11), "killed by signal 11 (SIGSEGV)");
        assert_eq!(killed_by(50), "killed by signal 50");
        assert!(killed_by(9).contains("SIGKILL"));
    }
}
