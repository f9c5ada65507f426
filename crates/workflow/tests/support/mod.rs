//! A fake host, and shortcuts for checking a text.
#![allow(dead_code, reason = "each test file uses some of it")]

use std::path::Path;

use proofmill_workflow::{
    Code, Diagnostic, Host, Program, ProgramFault, Workflow, render, validate,
};

/// A host with the provers `test.prove`, whose results can be checked again before they are emitted, and
/// `test.checked`, whose results can be checked before they count. In its folders
/// `good.sh` can be executed, `plain.sh` cannot, and nothing else exists.
#[derive(Default)]
pub(crate) struct FakeHost;

impl Host for FakeHost {
    fn program(&self, program: &Program) -> Result<(), ProgramFault> {
        match program {
            Program::File(path) if path.ends_with("good.sh") => Ok(()),
            Program::File(path) if path.ends_with("plain.sh") => Err(ProgramFault::NotExecutable),
            _ => Err(ProgramFault::Missing),
        }
    }

    fn is_file(&self, _: &Path) -> bool {
        false
    }

    fn provers(&self) -> Vec<&str> {
        vec!["test.prove", "test.checked"]
    }

    fn strategies(&self) -> Vec<&str> {
        Vec::new()
    }

    fn emission_checks(&self) -> Vec<&str> {
        vec!["test.prove"]
    }

    fn result_checks(&self) -> Vec<&str> {
        vec!["test.checked"]
    }
}

/// The workflow of a text without faults, in the folder `/w`.
#[track_caller]
pub(crate) fn sound(text: &str) -> Workflow {
    match validate(text, Path::new("/w/w.toml"), &FakeHost) {
        Ok((workflow, _)) => workflow,
        Err(found) => panic!("{}", render(&found)),
    }
}

/// All diagnostics of a text.
pub(crate) fn found(text: &str) -> Vec<Diagnostic> {
    match validate(text, Path::new("w.toml"), &FakeHost) {
        Ok((_, warnings)) => warnings,
        Err(found) => found,
    }
}

/// The codes of all diagnostics of a text.
pub(crate) fn codes(text: &str) -> Vec<Code> {
    found(text).iter().map(|found| found.code).collect()
}

/// The first fault of a kind, which must exist and have advice.
#[track_caller]
pub(crate) fn fault(text: &str, code: Code) -> Diagnostic {
    let found = found(text);
    let Some(fault) = found.iter().find(|found| found.code == code) else {
        panic!("no {code} in: {found:#?}");
    };
    assert!(
        !fault.help.is_empty() && !fault.message.is_empty(),
        "{fault}"
    );
    fault.clone()
}

/// The text with further tables appended.
pub(crate) fn with(text: &str, more: &str) -> String {
    format!("{text}\n{more}")
}
