//! Arguments of `proofmill dlq`.

use std::path::PathBuf;

use clap::{ArgGroup, Args, Subcommand};

use super::engine::CredentialArgs;
use super::{DlqTask, DlqTasks, KeysArg, MillArgs};

#[derive(Debug, Subcommand)]
pub(crate) enum Dlq {
    /// List the dead letters.
    List(MillArgs),
    /// Show one dead letter: its payload, and every attempt with its output.
    Show(DlqTask),
    /// Put dead letters back into their queues and reset their attempts.
    Retry(DlqTasks),
    /// Drop dead letters for good.
    ///
    /// The sequencer still waits for their blocks, and the command names them. Submit each again, or submit
    /// a placeholder to the sequencer's own queue, which is emitted in its place.
    Drop(DlqTasks),
    /// Write a file with everything needed to run dead letters again on another machine.
    ///
    /// The file holds the tasks, their inputs, every recorded attempt, and the settings of their stages: program,
    /// arguments, names of variables, limits. Inputs may be witnesses, and arguments are in it as the workflow file has
    /// them: give it to people who may see them. Values of variables are not in it. The file is readable by its owner
    /// alone.
    Bundle(DlqBundle),
    /// Run the dead letters of a bundle again, without a mill, and say whether they fail as recorded.
    ///
    /// A bundle says which program runs, and with which arguments: run only bundles of people you trust, or add
    /// --strict. Programs, native provers (with --keys) and engines (with --engine) can be run; collectors and the
    /// sequencer run nothing.
    Replay(DlqReplay),
}

#[derive(Debug, Args)]
#[command(group = ArgGroup::new("letters").required(true))]
pub(crate) struct DlqBundle {
    #[command(flatten)]
    pub(crate) mill: MillArgs,
    /// The task, as STAGE/BLOCK/PART.
    #[arg(group = "letters")]
    pub(crate) task: Option<String>,
    /// Every dead letter, at most 1000.
    #[arg(long, group = "letters")]
    pub(crate) all: bool,
    /// The file to write [default: STAGE-BLOCK-PART.bundle, or dead-letters.bundle].
    #[arg(short, long, value_name = "FILE")]
    pub(crate) output: Option<PathBuf>,
    /// Put in the stages' programs. Files that a program loads are not put in.
    #[arg(long)]
    pub(crate) with_program: bool,
    /// Overwrite the file.
    #[arg(long)]
    pub(crate) force: bool,
}

const REPLAY_EXIT_CODES: &str = "\
Exit codes: 0 every task failed as recorded; 1 a task had another result: it succeeded, failed in another
way, or no failure is recorded; 3 no answer: the bundle cannot be read, or a task cannot be run here; 2 the
command line is wrong; 130 stopped by a signal.
The same failure has the same exit code and the same reason, which names the signal or the exit code and the
last line of the program's output; paths of scratch directories may differ.";

#[derive(Debug, Args)]
#[command(after_help = REPLAY_EXIT_CODES)]
pub(crate) struct DlqReplay {
    /// The bundle.
    pub(crate) bundle: PathBuf,
    /// Only this task, as STAGE/BLOCK/PART.
    #[arg(long, value_name = "TASK")]
    pub(crate) task: Option<String>,
    /// Run this program [default: the one in the bundle, else the recorded path].
    #[arg(long, value_name = "FILE")]
    pub(crate) program: Option<PathBuf>,
    /// Run programs in the strict sandbox, even if their stage's is the basic one.
    #[arg(long)]
    pub(crate) strict: bool,
    /// The engine for stages that engines prove: unix:PATH, http://HOST:PORT or https://HOST:PORT.
    #[arg(long, value_name = "ADDRESS", help_heading = "Engine")]
    pub(crate) engine: Option<String>,
    #[command(flatten)]
    pub(crate) credentials: CredentialArgs,
    #[command(flatten)]
    pub(crate) keys: KeysArg,
    /// Keep inputs, outputs and the program's output in this new or empty folder.
    #[arg(long, value_name = "DIR")]
    pub(crate) keep: Option<PathBuf>,
    /// Print JSON.
    #[arg(long)]
    pub(crate) json: bool,
}
