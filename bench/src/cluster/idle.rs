//! Memory of an idle dispatcher and an idle collector.

use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::time::Duration;

use anyhow::Context;

use crate::harness::{Common, Program, Report, StateDisk, Target, memory};

/// Arguments of `proofmill-bench cluster idle`.
#[derive(Debug, clap::Args)]
pub(crate) struct Args {
    #[command(flatten)]
    common: Common,
    /// Seconds of idling before the memory is read
    #[arg(long, default_value_t = 10)]
    seconds: u64,
    #[command(flatten)]
    program: Program,
}

/// A process that is killed when this is dropped.
struct RoleProcess(Child);

impl Drop for RoleProcess {
    fn drop(&mut self) {
        // Killing fails if the process has ended by itself.
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

/// Measures and reports.
pub(crate) async fn run(args: &Args) -> anyhow::Result<()> {
    let disk = StateDisk::fresh(&args.common)?;
    let dir = disk.state("idle");
    let bus = disk.bus(&dir).context(
        "the roles of a cluster are measured: give --bus jetstream, which starts a server",
    )?;
    std::fs::create_dir_all(&dir)?;
    let program = args.program.find()?;
    let file = Path::new(env!("CARGO_MANIFEST_DIR"))
        .join("../examples/fan-in/workflow.toml")
        .canonicalize()?;
    let start = |role: &str| -> anyhow::Result<RoleProcess> {
        let mut command = Command::new(&program);
        command.arg(role).arg(&file);
        command.args(["--bus", &bus.servers.join(",")]);
        command.args(["--bus-prefix", &bus.prefix]);
        command.current_dir(&dir).stdin(Stdio::null());
        command.stdout(Stdio::null()).stderr(Stdio::null());
        Ok(RoleProcess(
            command.spawn().context("cannot start proofmill")?,
        ))
    };
    let _coordinator = start("coordinator")?;
    let mut roles = Vec::new();
    for (role, most) in [
        ("dispatcher", Target::AtMost(14.0)),
        ("collector", Target::AtMost(8.0)),
        ("sequencer", Target::None),
    ] {
        roles.push((role, most, start(role)?));
    }
    tokio::time::sleep(Duration::from_secs(args.seconds)).await;
    let mut report = Report::new("Idle: memory of waiting roles", &disk);
    for (role, most, RoleProcess(child)) in &mut roles {
        anyhow::ensure!(child.try_wait()?.is_none(), "the {role} has ended");
        let memory = memory(child.id()).context("the system does not say what memory it has")?;
        let mb = |bytes: u64| bytes as f64 / 1e6;
        let paper = match *role {
            "dispatcher" => "14 MB",
            "collector" => "8 MB",
            _ => "",
        };
        let name = format!("{role}, resident");
        report.figure(&name, mb(memory.resident), "MB", *most, paper);
        let name = format!("{role}, private part of it");
        report.figure(&name, mb(memory.anonymous), "MB", Target::None, "");
        report.put(&format!("{role}_resident"), memory.resident);
        report.put(&format!("{role}_anonymous"), memory.anonymous);
    }
    report.note("resident: with the pages of the program's file, which processes share");
    report.finish(&args.common)
}
