//! `proofmill dlq replay`

use std::path::{Path, PathBuf};

use bytes::Bytes;
use proofmill_files::{Visibility, make_private_directory};
use proofmill_orchestrator::bundle::{
    BUNDLE_BYTES_MAX, Bundle, EngineAccess, NotReplayed, ProgramRun, Replay, ReplayOptions,
    Replayed, Verdict, Work,
};
use proofmill_orchestrator::executor::CancellationToken;
use proofmill_orchestrator::record::DeadRecord;
use serde_json::{Value, json};

use crate::args::dlq::DlqReplay;
use crate::failure::Failure;
use crate::progress::counted;
use crate::{files, output, provers, signals};

/// A letter's run, or the reason why there was none.
struct Report<'a> {
    letter: &'a DeadRecord,
    program: Option<ProgramRun>,
    unset: Vec<String>,
    outcome: Result<Replayed, NotReplayed>,
}

pub(super) async fn run(args: DlqReplay) -> Result<(), Failure> {
    let bundle = read(&args.bundle)?;
    let letters = selected(&bundle, args.task.as_deref())?;
    let keep = args.keep.as_deref().map(new_folder).transpose()?;
    let folder = tempfile::Builder::new()
        .prefix("proofmill-replay-")
        .tempdir()?;
    let options = ReplayOptions {
        registry: provers::registry(&args.keys.keys),
        folder: folder.path().to_owned(),
        program: args.program,
        strict: args.strict,
        engine: args.engine.map(|address| EngineAccess {
            address,
            token: args.credentials.token,
            ca: args.credentials.ca,
        }),
    };
    let cancel = CancellationToken::new();
    let signalled = signals::first_signal()?;
    let on_signal = cancel.clone();
    tokio::spawn(async move {
        signalled.await;
        on_signal.cancel();
    });
    let mut reports = Vec::with_capacity(letters.len());
    for (number, letter) in letters.into_iter().enumerate() {
        let report = replay(&bundle, letter, &options, &cancel).await;
        if matches!(report.outcome, Err(NotReplayed::Cancelled)) {
            return Err(Failure::interrupted("stopped before the end of the run"));
        }
        if let Some(keep) = &keep {
            save(&bundle, &report, &keep.join((number + 1).to_string()))?;
        }
        if !args.json {
            output::raw(output::plain(&text(&bundle, &report)).as_bytes())?;
        }
        reports.push(report);
    }
    if args.json {
        let letters: Vec<Value> = reports.iter().map(json_of).collect();
        let facts = bundle.facts();
        let made_by = json!({
            "version": facts.program_version, "os": facts.os, "arch": facts.arch, "at_ms": facts.made_at_ms,
        });
        let answer = json!({ "workflow": facts.workflow, "made_by": made_by, "letters": letters });
        output::line(answer.to_string())?;
    }
    result(&reports)
}

/// The command's result: exit code 3 if a letter was not run, 1 if one had another result.
fn result(reports: &[Report<'_>]) -> Result<(), Failure> {
    let count = |wanted: fn(&Report<'_>) -> bool| reports.iter().filter(|it| wanted(it)).count();
    let all = counted(reports.len(), "task");
    let not_run = count(|report| report.outcome.is_err());
    if not_run > 0 {
        let failure = Failure::no_verdict(format!("{not_run} of {all} could not be run again"));
        let helps = reports
            .iter()
            .filter_map(|report| report.outcome.as_ref().err());
        return Err(match helps.filter_map(help).next() {
            Some(help) => failure.help(help),
            None => failure,
        });
    }
    let is_same = |report: &Report<'_>| matches!(&report.outcome, Ok(replayed) if matches!(replayed.verdict, Verdict::Same { .. }));
    match reports.iter().filter(|report| !is_same(report)).count() {
        0 => Ok(()),
        others => Err(Failure::new(format!(
            "{others} of {all} had another result than recorded"
        ))),
    }
}

/// Advice for a letter that was not run.
fn help(reason: &NotReplayed) -> Option<&'static str> {
    match reason {
        NotReplayed::NoProgram { .. } => {
            Some("name the program with --program FILE, or make the bundle with --with-program")
        }
        NotReplayed::NoEngine { .. } => Some("name an engine with --engine ADDRESS"),
        _ => None,
    }
}

fn read(path: &Path) -> Result<Bundle, Failure> {
    let named = |why: String| Failure::no_verdict(format!("{}: {why}", path.display()));
    let file = files::read(path, BUNDLE_BYTES_MAX).map_err(named)?;
    Bundle::decode(&Bytes::from(file)).map_err(|error| named(error.to_string()))
}

fn selected<'a>(bundle: &'a Bundle, task: Option<&str>) -> Result<Vec<&'a DeadRecord>, Failure> {
    let is_named = |letter: &&DeadRecord| task.is_none_or(|it| letter.task.id.to_string() == it);
    let letters: Vec<&DeadRecord> = bundle.letters().iter().filter(is_named).collect();
    match (letters.is_empty(), task) {
        (true, Some(task)) => {
            let held = bundle.letters().iter().take(5);
            let held: Vec<String> = held.map(|letter| letter.task.id.to_string()).collect();
            let failure = Failure::usage(format!("the bundle does not hold {task}"));
            Err(failure.help(format!("it holds {}", held.join(", "))))
        }
        _ => Ok(letters),
    }
}

/// Makes a private folder, or checks that it is empty.
fn new_folder(path: &Path) -> Result<PathBuf, Failure> {
    let failed = |error: std::io::Error| {
        Failure::usage(format!("cannot keep files in {}: {error}", path.display()))
    };
    make_private_directory(path).map_err(failed)?;
    match std::fs::read_dir(path).map_err(failed)?.next() {
        Some(_) => Err(Failure::usage(format!("{} is not empty", path.display()))
            .help("name a new or an empty folder with --keep")),
        None => Ok(path.to_owned()),
    }
}

async fn replay<'a>(
    bundle: &'a Bundle,
    letter: &'a DeadRecord,
    options: &ReplayOptions,
    cancel: &CancellationToken,
) -> Report<'a> {
    match Replay::new(bundle, letter, options) {
        Ok(replay) => Report {
            letter,
            program: replay.program().cloned(),
            unset: replay.unset_variables().to_vec(),
            outcome: replay.run(cancel.clone()).await,
        },
        Err(reason) => Report {
            letter,
            program: None,
            unset: Vec::new(),
            outcome: Err(reason),
        },
    }
}

// === impl Report ===

impl Report<'_> {
    /// The verdict as one word for programs.
    fn word(&self) -> &'static str {
        match &self.outcome {
            Err(_) => "not_run",
            Ok(replayed) => match replayed.verdict {
                Verdict::Same { .. } => "same",
                Verdict::OtherFailure => "other_failure",
                Verdict::Success => "success",
                Verdict::NoneRecorded => "none_recorded",
            },
        }
    }

    /// The verdict in words.
    fn sentence(&self) -> String {
        let replayed = match &self.outcome {
            Ok(replayed) => replayed,
            Err(reason) => return format!("not run: {reason}"),
        };
        match replayed.verdict {
            Verdict::Same { attempt, output } => {
                let differs = if output {
                    ""
                } else {
                    "; the rest of its output differs"
                };
                format!("the same failure, as in attempt {attempt}{differs}")
            }
            Verdict::OtherFailure => "another failure".to_owned(),
            Verdict::Success => "no failure: it succeeded".to_owned(),
            Verdict::NoneRecorded => {
                "a failure, and no attempt is recorded to compare it with".to_owned()
            }
        }
    }
}

fn text(bundle: &Bundle, report: &Report<'_>) -> String {
    let letter = report.letter;
    let mut lines = vec![format!("{}: {}", letter.task.id, report.sentence())];
    if let Some(program) = &report.program {
        let relation = match program.is_recorded {
            Some(true) => "the recorded program",
            Some(false) => "another program than the recorded one",
            None => "the recorded program's digest is unknown",
        };
        let digest = hex::encode(&program.digest[..6]);
        lines.push(format!(
            "  program   {} (SHA-256 {digest}…: {relation})",
            program.path.display()
        ));
    }
    if !report.unset.is_empty() {
        lines.push(format!(
            "  not set   {}: set in the workflow file, and not here",
            report.unset.join(", ")
        ));
    }
    let facts = bundle.facts();
    let own = (std::env::consts::OS, std::env::consts::ARCH);
    if (&*facts.os, &*facts.arch) != own {
        lines.push(format!(
            "  machine   {} {}; recorded on {} {}",
            own.0, own.1, facts.os, facts.arch
        ));
    }
    match letter.attempts.last() {
        Some(last) => lines.push(format!(
            "  recorded  {} (attempt {}, after {} ms)",
            last.failure.reason, last.number, last.failure.wall_ms
        )),
        None => lines.push(format!(
            "  recorded  no attempt; it died because: {}",
            letter.reason
        )),
    }
    match report.outcome.as_ref().map(|replayed| &replayed.result) {
        Ok(Err(failure)) => {
            lines.push(format!(
                "  now       {} (after {} ms)",
                failure.reason, failure.wall_ms
            ));
        }
        Ok(Ok(product)) => {
            let bytes: usize = product.outputs.iter().map(|(_, bytes)| bytes.len()).sum();
            let ran = product.ran.as_millis();
            lines.push(format!(
                "  now       an output of {bytes} bytes (after {ran} ms)"
            ));
        }
        Err(_) => {}
    }
    lines.push(String::new());
    lines.join("\n")
}

fn json_of(report: &Report<'_>) -> Value {
    let letter = report.letter;
    let failure = |failure: &proofmill_orchestrator::record::Failure| {
        json!({
            "reason": failure.reason, "permanent": failure.permanent, "exit": failure.exit,
            "stdout": failure.stdout, "stderr": failure.stderr, "wall_ms": failure.wall_ms,
        })
    };
    let attempts = letter.attempts.iter();
    let attempts = attempts.map(|attempt| {
        let mut value = failure(&attempt.failure);
        value["number"] = attempt.number.into();
        value["worker"] = attempt.worker.to_string().into();
        value
    });
    let mut value = json!({
        "task": letter.task.id.to_string(),
        "verdict": report.word(),
        "text": report.sentence(),
        "reason": letter.reason,
        "recorded": attempts.collect::<Vec<Value>>(),
        "unset_variables": report.unset,
    });
    if let Some(program) = &report.program {
        value["program"] = json!({
            "path": program.path, "sha256": hex::encode(program.digest), "is_recorded": program.is_recorded,
        });
    }
    match report.outcome.as_ref().map(|replayed| &replayed.result) {
        Ok(Err(now)) => value["now"] = failure(now),
        Ok(Ok(product)) => {
            let sizes = product.outputs.iter().map(|(_, bytes)| bytes.len());
            value["now"] = json!({
                "output_bytes": sizes.collect::<Vec<usize>>(),
                "wall_ms": u64::try_from(product.ran.as_millis()).unwrap_or(u64::MAX),
            });
        }
        Err(_) => {}
    }
    value
}

/// Writes the files of a letter's run to a new folder; their names do not come from the bundle.
fn save(bundle: &Bundle, report: &Report<'_>, folder: &Path) -> Result<(), Failure> {
    make_private_directory(folder)
        .map_err(|error| Failure::new(format!("cannot make {}: {error}", folder.display())))?;
    let write =
        |name: &str, bytes: &[u8]| files::write(&folder.join(name), Visibility::Private, bytes);
    write("report.json", json_of(report).to_string().as_bytes())?;
    let stages = &bundle.facts().stages;
    let stage = stages.get(&*report.letter.task.id.stage);
    if let Some(Work::Program { .. } | Work::Native { .. } | Work::Engine { .. }) =
        stage.map(|stage| &stage.work)
        && let Some(Ok(input)) = bundle.input(report.letter).map(|it| it.to_program_input())
    {
        write("input", &input)?;
    }
    match report.outcome.as_ref().map(|replayed| &replayed.result) {
        Ok(Ok(product)) => {
            for (number, (_, output)) in product.outputs.iter().enumerate() {
                write(&format!("output-{}", number + 1), output)?;
            }
        }
        Ok(Err(failure)) => {
            write("stdout", failure.stdout.as_bytes())?;
            write("stderr", failure.stderr.as_bytes())?;
        }
        Err(_) => {}
    }
    Ok(())
}
