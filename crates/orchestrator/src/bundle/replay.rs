//! Running a bundled letter again.

use std::fs;
use std::io::{self, Write};
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use proofmill_files::open_regular;
use proofmill_process::{MachineFailure, find_program};
use proofmill_workflow as file;
use sha2::{Digest as _, Sha256};

use super::container::Bundle;
use super::facts::{BundledFile, Stage, Work};
use super::same::{has_same_output, is_same};
use crate::executor::{CancellationToken, Execution, Executor, Product, Unfinished};
use crate::mill::{self, Registry};
use crate::record::{DeadRecord, Failure};

/// Limit on processes and threads of a program that is confined though its stage is not; that of a workflow file.
const PIDS_LIMIT: u32 = 4096;

/// Parses to the stage whose settings are replaced by a bundle's.
const TEMPLATE: &str = r#"name = "replay"
[[source]]
name = "source"
kind = "submit"
output = "input"
[[dispatcher]]
name = "stage"
input = "input"
executor = "#;

/// Choices for running letters again.
#[derive(Clone)]
pub struct ReplayOptions {
    /// Provers and clients of engines.
    pub registry: Registry,
    /// A private directory for scratch directories, and for files of the bundle.
    pub folder: PathBuf,
    /// The program to run, instead of the bundle's or the recorded one.
    pub program: Option<PathBuf>,
    /// Whether programs run in the strict sandbox, even if the stage's is the basic one.
    pub strict: bool,
    /// Access to an engine, for stages that are proved by engines.
    pub engine: Option<EngineAccess>,
}

/// An engine, and the client's credentials.
#[derive(Clone, Debug)]
pub struct EngineAccess {
    /// Address as in a workflow file: `unix:PATH`, `http://HOST:PORT` or `https://HOST:PORT`.
    pub address: String,
    /// A file with the client's token.
    pub token: Option<PathBuf>,
    /// A file with the authority of the engine's certificate.
    pub ca: Option<PathBuf>,
}

/// A letter that can be run.
pub struct Replay<'a> {
    bundle: &'a Bundle,
    letter: &'a DeadRecord,
    executor: Arc<dyn Executor>,
    program: Option<ProgramRun>,
    unset: Vec<String>,
}

/// The program that a replay runs.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ProgramRun {
    /// Its file.
    pub path: PathBuf,
    /// SHA-256 of the file.
    pub digest: [u8; 32],
    /// Whether the file is the one of the machine where the bundle was made; `None` if that one was not read.
    pub is_recorded: Option<bool>,
}

/// The result of a run.
#[derive(Clone, Debug)]
pub struct Replayed {
    /// The failure of this run, or its product.
    pub result: Result<Product, Failure>,
    /// The comparison with the recorded attempts.
    pub verdict: Verdict,
}

/// A result in comparison with the recorded attempts.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Verdict {
    /// The failure of this attempt, the latest that is the same.
    Same {
        /// Number of the attempt.
        attempt: u32,
        /// Whether the output is the same too, scratch directories aside.
        output: bool,
    },
    /// Another failure than every recorded one.
    OtherFailure,
    /// No failure.
    Success,
    /// A failure, and none is recorded: the letter died without an attempt.
    NoneRecorded,
}

/// The reason why a letter was not run to its end.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum NotReplayed {
    /// The stage runs nothing.
    #[error(
        "stage {stage:?} is a {kind}: it runs no program, prover or engine that could be run again"
    )]
    NothingToRun {
        /// The stage.
        stage: String,
        /// `collector` or `sequencer`.
        kind: String,
    },
    /// The program is not in the bundle, and not on this machine.
    #[error(
        "the program of stage {stage:?}, {program}, is neither in the bundle nor on this machine"
    )]
    NoProgram {
        /// The stage.
        stage: String,
        /// The program as the workflow file names it.
        program: String,
    },
    /// The stage needs an engine.
    #[error(
        "stage {stage:?} is proved by an engine that has circuit {circuit:?}, and none is named"
    )]
    NoEngine {
        /// The stage.
        stage: String,
        /// The circuit.
        circuit: String,
    },
    /// The stage cannot be set up here.
    #[error("stage {stage:?} cannot be set up: {why}")]
    Setup {
        /// The stage.
        stage: String,
        /// The reason.
        why: String,
    },
    /// The machine failed: that is no result of the task.
    #[error("this machine failed, not the task: {0}")]
    Machine(MachineFailure),
    /// The run was cancelled.
    #[error("cancelled")]
    Cancelled,
}

// === impl Replay ===

impl<'a> Replay<'a> {
    /// Sets the letter's stage up.
    ///
    /// # Errors
    /// The stage cannot be run on this machine, or with these options.
    pub fn new(
        bundle: &'a Bundle,
        letter: &'a DeadRecord,
        options: &ReplayOptions,
    ) -> Result<Self, NotReplayed> {
        let name = letter.task.id.stage.to_string();
        let setup = |why: String| NotReplayed::Setup {
            stage: name.clone(),
            why,
        };
        let Some(stage) = bundle.facts().stages.get(&name) else {
            return Err(setup("the bundle lacks it".to_owned()));
        };
        let (executor, program) = executor_of(&name, stage, bundle, options)?;
        let mut dispatcher = template(&executor).map_err(setup)?;
        dispatcher.name.clone_from(&name);
        dispatcher.fan_out = stage.fan_out;
        dispatcher.time_limit = stage.time_limit_ms.map(Duration::from_millis);
        let mut unset = Vec::new();
        fill_in(
            &mut dispatcher,
            stage,
            program.as_ref(),
            options,
            &mut unset,
        );
        if let (file::Executor::Engine(engine), Some(key)) =
            (&mut dispatcher.executor, stage.work.file())
        {
            let path = options.folder.join("verifying_key.json");
            let written = write_bundled(bundle, key, &path, 0o600);
            written.map_err(|error| setup(error.to_string()))?;
            engine.verifying_key = Some(path);
        }
        // An engine remembers jobs by workflow and task: this run is another job than the one that failed.
        let workflow = format!("replay-{:016x}", crate::id::fresh_number());
        let scratch = options.folder.join("scratch");
        let executor = mill::executor(&workflow, &dispatcher, &options.registry, &scratch);
        Ok(Self {
            bundle,
            letter,
            executor: executor.map_err(|error| setup(proofmill_bus::with_sources(&error)))?,
            program,
            unset,
        })
    }

    /// The program that will run, if the stage has one.
    pub fn program(&self) -> Option<&ProgramRun> {
        self.program.as_ref()
    }

    /// Names of variables that the workflow file sets and that this process does not have: their values are not in a
    /// bundle.
    pub fn unset_variables(&self) -> &[String] {
        &self.unset
    }

    /// Runs the attempt once, with the number of the last recorded one.
    ///
    /// # Errors
    /// The run was cancelled, or the machine failed.
    pub async fn run(&self, cancel: CancellationToken) -> Result<Replayed, NotReplayed> {
        let Some(input) = self.bundle.input(self.letter) else {
            return Err(NotReplayed::Setup {
                stage: self.letter.task.id.stage.to_string(),
                why: "the letter is of another bundle".to_owned(),
            });
        };
        let last = self.letter.attempts.last();
        let execution = Execution {
            task: Arc::new(self.letter.task.clone()),
            attempt: last.map_or(1, |attempt| attempt.number),
            input,
            trace: None,
            cancel: cancel.clone(),
        };
        let mut results = self.executor.execute(vec![execution]).await;
        if cancel.is_cancelled() {
            return Err(NotReplayed::Cancelled);
        }
        let result = match results.pop() {
            Some(Ok(product)) => Ok(product),
            Some(Err(Unfinished::Failed(failure))) => Err(failure),
            Some(Err(Unfinished::Machine(failure))) => return Err(NotReplayed::Machine(failure)),
            None => return Err(NotReplayed::Cancelled),
        };
        let verdict = self.verdict(&result);
        Ok(Replayed { result, verdict })
    }

    fn verdict(&self, result: &Result<Product, Failure>) -> Verdict {
        let Err(failure) = result else {
            return Verdict::Success;
        };
        let attempts = &self.letter.attempts;
        let same = attempts.iter().rev();
        let mut same = same.filter(|attempt| is_same(&attempt.failure, failure));
        match same.next() {
            Some(attempt) => Verdict::Same {
                attempt: attempt.number,
                output: has_same_output(&attempt.failure, failure),
            },
            None if attempts.is_empty() => Verdict::NoneRecorded,
            None => Verdict::OtherFailure,
        }
    }
}

/// The executor of the stage as a workflow file states it, and the program that it runs.
fn executor_of(
    name: &str,
    stage: &Stage,
    bundle: &Bundle,
    options: &ReplayOptions,
) -> Result<(String, Option<ProgramRun>), NotReplayed> {
    match &stage.work {
        Work::Program { program, file, .. } => {
            let run = program_run(name, program, file.as_ref(), bundle, options)?;
            let executor = "{ kind = \"process\", program = \"./program\" }";
            Ok((executor.to_owned(), Some(run)))
        }
        Work::Native { .. } => Ok((
            "{ kind = \"native\", prover = \"prover\" }".to_owned(),
            None,
        )),
        Work::Engine { circuit, .. } => match &options.engine {
            None => Err(NotReplayed::NoEngine {
                stage: name.to_owned(),
                circuit: circuit.clone(),
            }),
            Some(engine) => {
                // A JSON string is a basic string of TOML.
                let address = serde_json::to_string(&engine.address).unwrap_or_default();
                let executor =
                    format!("{{ kind = \"engine\", circuit = \"c\", endpoints = [{address}] }}");
                Ok((executor, None))
            }
        },
        Work::Gathers(kind) => Err(NotReplayed::NothingToRun {
            stage: name.to_owned(),
            kind: kind.clone(),
        }),
    }
}

/// A dispatcher with this executor and the defaults of a workflow file.
fn template(executor: &str) -> Result<file::Dispatcher, String> {
    let text = format!("{TEMPLATE}{executor}\n");
    let here = std::path::absolute("replay.toml").map_err(|error| error.to_string())?;
    let workflow = file::Workflow::parse(&text, here).map_err(|found| file::render(&found))?;
    let mut stages = workflow.dispatchers.into_iter();
    stages.next().ok_or_else(|| "it has no stage".to_owned())
}

/// Fills in the settings of the bundle. `unset` gets the names of variables without a value here.
fn fill_in(
    dispatcher: &mut file::Dispatcher,
    stage: &Stage,
    program: Option<&ProgramRun>,
    options: &ReplayOptions,
    unset: &mut Vec<String>,
) {
    match (&mut dispatcher.executor, &stage.work) {
        (
            file::Executor::Process(process),
            Work::Program {
                args,
                variables,
                inherit_env,
                strict_pids_limit,
                input_flag,
                output_flag,
                memory_limit,
                ..
            },
        ) => {
            if let Some(run) = program {
                process.program = file::Program::File(run.path.clone());
            }
            process.args.clone_from(args);
            let has_value = |name: &&String| std::env::var_os(name).is_some();
            unset.extend(variables.iter().filter(|name| !has_value(name)).cloned());
            process.inherit_env.clone_from(inherit_env);
            process.inherit_env.extend(variables.iter().cloned());
            let limit = strict_pids_limit.or(options.strict.then_some(PIDS_LIMIT));
            process.sandbox = limit.map_or(file::Sandbox::Basic, |pids_limit| {
                file::Sandbox::Strict { pids_limit }
            });
            process.input_flag.clone_from(input_flag);
            process.output_flag.clone_from(output_flag);
            process.memory_limit = *memory_limit;
        }
        (
            file::Executor::Native { prover, params },
            Work::Native {
                prover: recorded,
                params: recorded_params,
            },
        ) => {
            prover.clone_from(recorded);
            params.clone_from(recorded_params);
        }
        (
            file::Executor::Engine(engine),
            Work::Engine {
                circuit,
                generator,
                patience_ms,
                ..
            },
        ) => {
            engine.circuit.clone_from(circuit);
            engine.generator.clone_from(generator);
            engine.patience = Duration::from_millis(*patience_ms);
            if let Some(access) = &options.engine {
                engine.token.clone_from(&access.token);
                engine.ca.clone_from(&access.ca);
            }
        }
        _ => {}
    }
}

/// The program to run: the one of the options, else the bundle's, else the recorded one if this machine has it.
fn program_run(
    stage: &str,
    program: &str,
    file: Option<&BundledFile>,
    bundle: &Bundle,
    options: &ReplayOptions,
) -> Result<ProgramRun, NotReplayed> {
    let setup = |path: &Path, error: io::Error| NotReplayed::Setup {
        stage: stage.to_owned(),
        why: format!("the program {}: {error}", path.display()),
    };
    let bundled = file.filter(|file| file.included);
    let path = match (&options.program, bundled) {
        (Some(named), _) => std::path::absolute(named).map_err(|error| setup(named, error))?,
        (None, Some(file)) => {
            let path = options.folder.join("program");
            write_bundled(bundle, file, &path, 0o700).map_err(|error| setup(&path, error))?;
            path
        }
        (None, None) => {
            let path = find_program(Path::new(program));
            if !path.is_file() {
                return Err(NotReplayed::NoProgram {
                    stage: stage.to_owned(),
                    program: program.to_owned(),
                });
            }
            path
        }
    };
    let mut hasher = Sha256::new();
    let read = open_regular(&path).and_then(|mut file| io::copy(&mut file, &mut hasher));
    read.map_err(|error| setup(&path, error))?;
    let digest: [u8; 32] = hasher.finalize().into();
    let is_recorded = file.map(|file| file.digest == digest);
    Ok(ProgramRun {
        path,
        digest,
        is_recorded,
    })
}

/// Writes a file of the bundle, replacing one that an earlier letter has written.
fn write_bundled(bundle: &Bundle, file: &BundledFile, path: &Path, mode: u32) -> io::Result<()> {
    let content = bundle.file(&file.digest);
    let content = content.ok_or_else(|| io::Error::other("the bundle lacks its content"))?;
    match fs::remove_file(path) {
        Err(error) if error.kind() != io::ErrorKind::NotFound => return Err(error),
        _ => {}
    }
    let mut options = fs::OpenOptions::new();
    let options = options.write(true).create_new(true).mode(mode);
    options.open(path)?.write_all(content)
}
