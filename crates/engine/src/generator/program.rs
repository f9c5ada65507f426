//! Running another program.

use std::fs::Permissions;
use std::io;
use std::os::unix::fs::PermissionsExt;
use std::path::Path;
use std::process::Stdio;

use proofmill_r1cs::iden3::MappedFile;
use proofmill_sandbox::{Confinement, Environment, LaunchError};
use tokio::io::AsyncReadExt;
use tokio::process::{Child, Command};

use super::GeneratorProgram;
use crate::key::{StepError, Stop};

/// Bytes of what a program says on standard error that an error message shows.
const SAID: usize = 2048;

/// Makes a witness with a program, in a private directory that is removed afterwards.
///
/// # Errors
///
/// [`StepError::Permanent`] if the program refuses, [`StepError::Retry`] if it could not run or took
/// too long, [`StepError::Stopped`].
pub(crate) async fn run(
    generator: &GeneratorProgram,
    inputs: &[u8],
    limit: u64,
    stop: &Stop,
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
    let environment = Environment {
        inherit: generator.inherit_env.clone(),
        ..Environment::default()
    };
    let arguments = generator.args.iter().map(|argument| {
        argument
            .replace("{input}", &input.to_string_lossy())
            .replace("{output}", &output.to_string_lossy())
    });
    let mut child = start(
        Command::new(&generator.program)
            .args(arguments)
            .env_clear()
            .envs(environment.variables())
            .current_dir(folder.path())
            .stdin(Stdio::null())
            .stdout(Stdio::null())
            .stderr(Stdio::piped())
            // A group of its own, so that what it started ends with it.
            .process_group(0)
            .kill_on_drop(true),
    )
    .map_err(|error| StepError::Retry(format!("{name} could not run: {error}")))?;
    let group = Group(child.id());
    let ended = tokio::select! {
        ended = wait(&mut child) => ended.map_err(failed)?,
        () = tokio::time::sleep(generator.time_limit) => {
            let limit = generator.time_limit;
            return Err(StepError::Retry(format!("{name} made no witness within {limit:?}")));
        }
        () = stop.raised() => return Err(StepError::Stopped),
    };
    drop(group);
    let (status, said) = ended;
    if !status.success() {
        // What it says may quote the inputs: it goes to whoever submitted them, and into no log.
        return Err(StepError::Permanent(format!(
            "{name} made no witness ({status}): {}",
            String::from_utf8_lossy(&said).trim()
        )));
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

/// Starts a program that gains no rights.
fn start(command: &mut Command) -> Result<Child, LaunchError> {
    let runtime = tokio::runtime::Handle::current();
    Confinement::Basic.launch(|| {
        // The thread that starts it is none of the runtime's.
        let _entered = runtime.enter();
        command.spawn()
    })
}

/// Waits for the end, while reading what it says so that it does not wait for a reader.
async fn wait(child: &mut Child) -> io::Result<(std::process::ExitStatus, Vec<u8>)> {
    let mut said = Vec::new();
    if let Some(mut stderr) = child.stderr.take() {
        (&mut stderr)
            .take(SAID as u64)
            .read_to_end(&mut said)
            .await?;
        tokio::io::copy(&mut stderr, &mut tokio::io::sink()).await?;
    }
    Ok((child.wait().await?, said))
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

/// A process group, killed when this is dropped.
struct Group(Option<u32>);

impl Drop for Group {
    fn drop(&mut self) {
        let leader = self
            .0
            .and_then(|id| rustix::process::Pid::from_raw(id.cast_signed()));
        if let Some(leader) = leader {
            // Most often it has ended, and there is nobody to kill.
            let _ = rustix::process::kill_process_group(leader, rustix::process::Signal::KILL);
        }
    }
}
