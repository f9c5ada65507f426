//! Running a generator program.

use std::fs::Permissions;
use std::io;
use std::os::unix::fs::PermissionsExt;
use std::os::unix::process::ExitStatusExt;
use std::path::Path;
use std::pin::pin;
use std::process::Stdio;
use std::time::Duration;

use proofmill_files::MappedFile;
use proofmill_sandbox::{Confinement, Environment, LaunchError};
use proofmill_trace::TraceContext;
use rustix::process::{Pid, Signal, WaitId, WaitIdOptions, kill_process_group, waitid};
use tokio::io::AsyncReadExt;
use tokio::process::{Child, ChildStderr, Command};
use tokio_util::sync::CancellationToken;

use super::GeneratorProgram;
use crate::key::StepError;

/// Most bytes of a program's standard error in an error message.
const STDERR_MAX: usize = 2048;

/// Longest wait for the rest of a program's standard error after the program has ended.
const STDERR_WAIT: Duration = Duration::from_secs(1);

/// Runs a program that writes a witness, in a private directory that is removed afterwards. The output file
/// may have at most `limit` bytes. The program gets `trace`, the context of the job, in its environment.
///
/// # Errors
///
/// [`StepError::Permanent`] if the program fails, [`StepError::Retry`] if it could not be run, was ended by another
/// process or exceeded its time limit, [`StepError::Stopped`] if `stop` was raised.
pub(crate) async fn run(
    generator: &GeneratorProgram,
    inputs: &[u8],
    limit: u64,
    trace: Option<&TraceContext>,
    stop: &CancellationToken,
) -> Result<MappedFile, StepError> {
    let name = generator.program.display();
    let failed = |error: io::Error| StepError::Retry(format!("{name} could not run: {error}"));
    let folder = tempfile::Builder::new()
        .prefix("proofmill-witness-")
        .permissions(Permissions::from_mode(0o700))
        .tempdir()
        .map_err(failed)?;
    let (input, output) = (
        folder.path().join("input.json"),
        folder.path().join("output.wtns"),
    );
    write_private(&input, inputs).map_err(failed)?;
    let mut command = command(generator, &input, &output);
    command.current_dir(folder.path());
    command.envs(trace.into_iter().flat_map(TraceContext::variables));
    let mut child = start(&mut command)
        .map_err(|error| StepError::Retry(format!("{name} could not run: {error}")))?;
    let mut stderr = Stderr {
        stderr: child.stderr.take(),
        head: Vec::new(),
    };
    // Declared after the child, so that it is dropped first: once the child is reaped, another process
    // group may get its number.
    let group = Group::of(&child);
    let ended = async {
        let mut exited = pin!(group.exited());
        tokio::select! {
            exited = &mut exited => exited,
            () = stderr.read() => exited.await,
        }
    };
    tokio::select! {
        ended = ended => ended.map_err(failed)?,
        () = tokio::time::sleep(generator.time_limit) => {
            let limit = generator.time_limit;
            return Err(StepError::Retry(format!("{name} made no witness within {limit:?}")));
        }
        () = stop.cancelled() => return Err(StepError::Stopped),
    };
    drop(group);
    let status = child.wait().await.map_err(failed)?;
    if !status.success() {
        let why = format!(
            "{name} made no witness ({status}){}",
            stderr.shown(generator.keep_stderr).await
        );
        // A machine that shuts down or is out of memory ends it, which is not the fault of its input. A crash may be.
        let ends = [Signal::KILL, Signal::TERM, Signal::INT, Signal::HUP];
        let was_ended = status
            .signal()
            .is_some_and(|signal| ends.iter().any(|end| end.as_raw() == signal));
        return Err(match was_ended {
            true => StepError::Retry(why),
            false => StepError::Permanent(why),
        });
    }
    let written = std::fs::metadata(&output).map_or(0, |metadata| metadata.len());
    if written > limit {
        return Err(StepError::Permanent(format!(
            "{name} wrote {written} bytes, the limit is {limit}"
        )));
    }
    MappedFile::read(&output)
        .map_err(|error| StepError::Permanent(format!("{name} wrote no witness: {error}")))
}

/// The command of a generator that reads the file `input` and writes the file `output`.
fn command(generator: &GeneratorProgram, input: &Path, output: &Path) -> Command {
    let environment = Environment {
        inherit: generator.inherit_env.clone(),
        ..Environment::default()
    };
    let arguments = generator.args.iter().map(|argument| {
        argument
            .replace("{input}", &input.to_string_lossy())
            .replace("{output}", &output.to_string_lossy())
    });
    let stderr = match generator.keep_stderr {
        true => Stdio::piped(),
        false => Stdio::null(),
    };
    let mut command = Command::new(&generator.program);
    command
        .args(arguments)
        .env_clear()
        .envs(environment.variables())
        .stdin(Stdio::null())
        .stdout(Stdio::null())
        .stderr(stderr)
        // A process group of its own, so that processes which it starts are killed with it.
        .process_group(0)
        .kill_on_drop(true);
    command
}

/// Starts a program that cannot gain privileges.
fn start(command: &mut Command) -> Result<Child, LaunchError> {
    let runtime = tokio::runtime::Handle::current();
    Confinement::Basic.launch(|| {
        // The launching thread is not one of the runtime's, so it must enter the runtime.
        let _entered = runtime.enter();
        command.spawn()
    })
}

fn write_private(path: &Path, content: &[u8]) -> io::Result<()> {
    use std::io::Write;
    use std::os::unix::fs::OpenOptionsExt;
    std::fs::OpenOptions::new()
        .write(true)
        .create_new(true)
        .mode(0o600)
        .open(path)?
        .write_all(content)
}

/// Reads a program's standard error and keeps the beginning.
struct Stderr {
    stderr: Option<ChildStderr>,
    head: Vec<u8>,
}

/// A process group. Dropping it kills the group, which must happen before its leader is reaped.
struct Group(Option<Pid>);

// === impl Stderr ===

impl Stderr {
    /// Reads to the end, so that the program never blocks on a full pipe. The future may be dropped and the
    /// function called again.
    async fn read(&mut self) {
        let mut buffer = [0; 1024];
        while let Some(stderr) = &mut self.stderr {
            match stderr.read(&mut buffer).await {
                Ok(read @ 1..) => {
                    let room = STDERR_MAX - self.head.len();
                    self.head.extend_from_slice(&buffer[..read.min(room)]);
                }
                Ok(0) | Err(_) => self.stderr = None,
            }
        }
    }

    /// The part of an error message that shows standard error, or says that it is not kept.
    async fn shown(mut self, kept: bool) -> String {
        if !kept {
            let why = "; its standard error is not kept, since it may quote the inputs";
            return why.to_owned();
        }
        // A process that left the group may hold the pipe open for ever.
        let _ = tokio::time::timeout(STDERR_WAIT, self.read()).await;
        error_text(&String::from_utf8_lossy(&self.head))
    }
}

/// The program's output with its most informative line first: tables show only the first line of an error.
fn error_text(stderr: &str) -> String {
    let stderr = stderr.trim();
    let mut lines = stderr
        .lines()
        .map(str::trim)
        .filter(|line| !line.is_empty());
    let Some(first) = lines.next() else {
        return "; it wrote nothing on standard error".to_owned();
    };
    let is_error = |line: &str| line.starts_with("Error") || line.contains("Error: ");
    let telling = match is_error(first) {
        true => first,
        false => lines.find(|line| is_error(line)).unwrap_or(first),
    };
    match telling == stderr {
        true => format!(": {stderr}"),
        false => format!(": {telling}\n{stderr}"),
    }
}

// === impl Group ===

impl Group {
    /// The group that a child leads. The child must not have been waited for.
    fn of(child: &Child) -> Self {
        let id = child.id();
        Self(id.and_then(|id| Pid::from_raw(id.cast_signed())))
    }

    /// Waits until the leader has exited, without reaping it. As long as the leader is a zombie, the
    /// group's number is not reused, so a signal to the group reaches no other process.
    async fn exited(&self) -> io::Result<()> {
        let Some(leader) = self.0 else {
            return Ok(());
        };
        // One blocking thread for each running program. It ends with the program, which is killed if this
        // future is dropped.
        let waited = tokio::task::spawn_blocking(move || {
            let options = WaitIdOptions::EXITED | WaitIdOptions::NOWAIT;
            rustix::io::retry_on_intr(|| waitid(WaitId::Pid(leader), options))
        });
        waited.await.map_err(io::Error::other)??;
        Ok(())
    }
}

impl Drop for Group {
    fn drop(&mut self) {
        if let Some(leader) = self.0 {
            // This fails if the leader has exited and left no other process, which is the usual case.
            let _ = kill_process_group(leader, Signal::KILL);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::error_text;

    #[test]
    fn the_most_informative_line_comes_first() {
        let stack = "/app/witness_calculator.js:167\n    throw new Error(err);\n    ^\n\n\
                     Error: Assert Failed.\nError in template Main line: 4\n    at run (a.js:1)\n";
        let text = error_text(stack);
        assert!(text.starts_with(": Error: Assert Failed.\n/app/"), "{text}");
        assert!(text.ends_with("at run (a.js:1)"), "{text}");
        let python = error_text("Traceback (most recent call last):\n  line 1\nValueError: no\n");
        assert!(python.starts_with(": ValueError: no\n"), "{python}");
        assert_eq!(error_text("no such input\n"), ": no such input");
        assert_eq!(error_text("one\ntwo"), ": one\none\ntwo");
        assert_eq!(error_text(" \n"), "; it wrote nothing on standard error");
    }
}
