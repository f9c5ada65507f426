//! circom and snarkjs, as programs.

use std::ffi::OsStr;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::sync::OnceLock;

use crate::support::{Finished, finish};

/// Where the circuits and the tools lie.
pub(crate) fn home() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/circom")
}

/// The circom compiler, where the circuits are: it finds what they include only from there.
pub(crate) fn circom() -> Command {
    tool("circom2/cli.js", &home())
}

/// snarkjs, run to its end.
pub(crate) fn snarkjs<S: AsRef<OsStr>>(
    folder: &Path,
    args: impl IntoIterator<Item = S>,
) -> Finished {
    finish(tool("snarkjs/build/cli.cjs", folder).args(args))
}

/// A tool of `node_modules`. Node itself comes from the machine, the rest from `npm ci`.
fn tool(script: &str, folder: &Path) -> Command {
    static NODE: OnceLock<bool> = OnceLock::new();
    let there = *NODE.get_or_init(|| {
        let version = Command::new("node").arg("--version").output();
        version.is_ok_and(|output| output.status.success())
    });
    assert!(
        there,
        "circom and snarkjs run on Node.js: install Node.js 18 or newer, with npm, and run `make test`"
    );
    let script = home().join("node_modules").join(script);
    assert!(
        script.exists(),
        "circom and snarkjs are not installed: run `make interop-tools`, or `make test`, which does \
         ({} is not there)",
        script.display()
    );
    let mut command = Command::new("node");
    command.arg(script).current_dir(folder).stdin(Stdio::null());
    command
}
