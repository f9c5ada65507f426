//! Entry points: checks of a text, of a file, or of a workflow that was read earlier.

use std::path::Path;

use super::checker::Checker;
use super::{chains, cycles, ethproofs, flow, groups, queues, scaling, stages, verification};
use crate::decode::{Decoded, MAX_FILE_SIZE, decode};
use crate::diagnostic::{Code, Diagnostic};
use crate::document::{Document, Field};
use crate::host::Host;
use crate::model::Workflow;

/// Checks the meaning of a workflow: its graph, its groups, and its needs of the machine.
///
/// Returns every fault found (at most a few hundred), in the order of the file. The workflow may
/// run if none of them [is an error](Diagnostic::is_error).
pub fn check(workflow: &Workflow, host: &dyn Host) -> Vec<Diagnostic> {
    let mut checker = Checker::new(workflow, host);
    stages::check(&mut checker);
    scaling::check(&mut checker);
    ethproofs::check(&mut checker);
    check_graph(&mut checker);
    in_order(checker.found)
}

fn check_graph(checker: &mut Checker<'_>) {
    queues::check(checker);
    chains::check(checker);
    verification::check(checker);
    let cyclic = cycles::check(checker);
    if !cyclic {
        let flows = flow::flows(&checker.linked);
        groups::check(checker, &flows);
    }
}

/// Reads and checks the text of a workflow file. `file` is the name in faults; relative paths in
/// the text are resolved against its folder.
///
/// # Errors
/// Every fault found, if at least one of them is an error. Where a fault is likely to cause others
/// (a stage that cannot be read, for example), the checks that depend on it are skipped; queues without a writer or a
/// reader are reported unless a name that cannot be read may be the missing one.
pub fn validate(
    text: &str,
    file: &Path,
    host: &dyn Host,
) -> Result<(Workflow, Vec<Diagnostic>), Vec<Diagnostic>> {
    let decoded = decode(text, file);
    let faults = decoded.faults;
    let (Some(workflow), Some(mentions)) = (decoded.workflow, decoded.mentions) else {
        return Err(in_order(faults.list));
    };
    let mut checker = Checker::new(&workflow, host);
    stages::check(&mut checker);
    scaling::check(&mut checker);
    ethproofs::check(&mut checker);
    if faults.graph_unreliable {
        checker.found.retain(|found| !rests_on_graph(found.code));
        queues::check_mentions(&mut checker, &mentions);
    } else {
        check_graph(&mut checker);
    }
    let mut found = checker.found;
    // A field with a fault was read as its default, so faults that follow from its value are
    // dropped. Those of the machine and of queues' names do not follow from other fields.
    found.retain(|found| {
        let table = |field: &str| field.split('.').next().unwrap_or_default().to_owned();
        asks_host(found.code)
            || names_queue(found.code)
            || !faults
                .list
                .iter()
                .any(|fault| table(&fault.field) == table(&found.field))
    });
    found.extend(faults.list);
    let found = in_order(found);
    if found.iter().any(Diagnostic::is_error) {
        Err(found)
    } else {
        Ok((workflow, found))
    }
}

/// Reads and checks a workflow file.
///
/// # Errors
/// As [`validate`]; also if the file cannot be read.
pub fn validate_file(
    file: &Path,
    host: &dyn Host,
) -> Result<(Workflow, Vec<Diagnostic>), Vec<Diagnostic>> {
    let text = read(file).map_err(|fault| vec![*fault])?;
    validate(&text, file, host)
}

fn asks_host(code: Code) -> bool {
    matches!(
        code,
        Code::MissingProgram
            | Code::ProgramNotExecutable
            | Code::MissingFile
            | Code::UnknownProver
            | Code::UnknownStrategy
            | Code::NoWorkers
    )
}

fn names_queue(code: Code) -> bool {
    matches!(code, Code::UnknownQueue | Code::UnreadQueue)
}

fn rests_on_graph(code: Code) -> bool {
    matches!(
        code,
        Code::FanOutToNobody
            | Code::AcceptWithFanOut
            | Code::EmptyRange
            | Code::UnknownGroup
            | Code::BadFallback
            | Code::UncoveredStage
            | Code::UnknownStage
            | Code::NothingEmitted
    )
}

fn in_order(mut found: Vec<Diagnostic>) -> Vec<Diagnostic> {
    found.sort_by_key(|found| (found.line, found.column, found.code));
    found
}

fn read(file: &Path) -> Result<String, Box<Diagnostic>> {
    let fault = |code, message: String, help: &str| {
        let document = Document::new(file, "");
        Box::new(Diagnostic::new(
            &document,
            code,
            &Field::root(),
            message,
            help,
        ))
    };
    let size = std::fs::metadata(file)
        .map_err(|error| {
            let help = "give the path of a workflow file";
            fault(
                Code::Unreadable,
                format!("the file cannot be read: {error}"),
                help,
            )
        })?
        .len();
    if size > MAX_FILE_SIZE as u64 {
        let message = format!("the file has {size} bytes, more than {MAX_FILE_SIZE}");
        return Err(fault(Code::TooLarge, message, "split the workflow"));
    }
    let bytes = std::fs::read(file).map_err(|error| {
        let help = "give the path of a file that you may read";
        fault(
            Code::Unreadable,
            format!("the file cannot be read: {error}"),
            help,
        )
    })?;
    String::from_utf8(bytes).map_err(|error| {
        let at = error.utf8_error().valid_up_to();
        let message = format!("byte {at} of the file is not UTF-8");
        fault(Code::Unreadable, message, "save the file as UTF-8")
    })
}

impl Workflow {
    /// Reads the text of a workflow file: syntax, fields, types and ranges. [`check`] checks its
    /// meaning. `file` is the name in faults; relative paths in the text are resolved against its
    /// folder.
    ///
    /// # Errors
    /// Every fault found.
    pub fn parse(text: &str, file: impl AsRef<Path>) -> Result<Self, Vec<Diagnostic>> {
        let Decoded {
            workflow, faults, ..
        } = decode(text, file.as_ref());
        match workflow {
            Some(workflow) if faults.list.is_empty() => Ok(workflow),
            _ => Err(in_order(faults.list)),
        }
    }

    /// Reads a workflow file, as [`Workflow::parse`].
    ///
    /// # Errors
    /// Every fault found; also if the file cannot be read.
    pub fn load(file: impl AsRef<Path>) -> Result<Self, Vec<Diagnostic>> {
        let file = file.as_ref();
        let text = read(file).map_err(|fault| vec![*fault])?;
        Self::parse(&text, file)
    }
}
