//! Fuzz target: any text is read, checked, rendered and drawn without a panic.
#![no_main]

use std::path::Path;

use libfuzzer_sys::fuzz_target;
use proofmill_workflow::{Host, Program, ProgramFault, check, graph, render, validate};

struct Anything;

impl Host for Anything {
    fn program(&self, _: &Program) -> Result<(), ProgramFault> {
        Ok(())
    }

    fn is_file(&self, _: &Path) -> bool {
        true
    }

    fn provers(&self) -> Vec<&str> {
        vec!["bitcoin.prove", "bitcoin.verify"]
    }

    fn strategies(&self) -> Vec<&str> {
        vec![]
    }
}

fuzz_target!(|text: &str| {
    match validate(text, Path::new("workflow.toml"), &Anything) {
        Ok((workflow, warnings)) => {
            assert_eq!(check(&workflow, &Anything), warnings);
            graph::mermaid(&workflow);
            graph::dot(&workflow);
        }
        Err(found) => {
            assert!(found.iter().any(|found| found.is_error()));
            render(&found);
        }
    }
});
