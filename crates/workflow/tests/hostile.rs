//! Tests that damaged workflow files are refused or read without a panic.

mod support;

use std::path::Path;
use std::time::{Duration, Instant};

use proofmill_workflow::{
    Code, Diagnostic, JsonPointer, LocalHost, Rate, Workflow, check, graph, parse_duration,
    parse_size, render, validate, validate_file,
};
use proptest::prelude::*;
use support::FakeHost;

const SEEDS: [&str; 4] = [
    include_str!("../../../examples/proposer-flow/workflow.toml"),
    include_str!("../../../examples/multi-queue-join/workflow.toml"),
    include_str!("../../../examples/bitcoin-headers/workflow.toml"),
    include_str!("../../../examples/fan-out/workflow.toml"),
];

/// Fragments of the format's syntax.
const PIECES: [&str; 20] = [
    "0",
    "99999999999999999999",
    "-1",
    "1e308",
    "\"\"",
    "[]",
    "{}",
    "= ",
    "\"",
    "\n",
    "[[source]]\n",
    "[[queue]]\n",
    "[sequencer]\n",
    "kind = \"match\"",
    "k = {}",
    "é",
    "\0",
    "fan_out = true\n",
    "end = 18446744073709551615\n",
    "chunk = 1000000\n",
];

fn exercise(text: &str) {
    match validate(text, Path::new("w.toml"), &FakeHost) {
        Ok((workflow, warnings)) => {
            assert!(!warnings.iter().any(Diagnostic::is_error));
            assert_eq!(check(&workflow, &FakeHost), warnings);
            graph::mermaid(&workflow);
            graph::dot(&workflow);
        }
        Err(found) => {
            assert!(found.iter().any(Diagnostic::is_error));
            for fault in &found {
                let lines = text.lines().count().max(1) + 1;
                assert!(fault.line >= 1 && fault.line <= lines, "{fault}");
            }
            render(&found);
        }
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(400))]

    #[test]
    fn a_mutated_file(
        seed in 0..SEEDS.len(),
        edits in prop::collection::vec((any::<prop::sample::Index>(), 0..24usize, 0..30usize), 1..12),
    ) {
        let mut text: Vec<char> = SEEDS[seed].chars().collect();
        for (at, piece, length) in edits {
            let at = at.index(text.len().max(1)).min(text.len());
            let end = (at + length).min(text.len());
            match PIECES.get(piece) {
                Some(piece) => drop(text.splice(at..at, piece.chars())),
                None => drop(text.drain(at..end)),
            }
        }
        exercise(&text.into_iter().collect::<String>());
    }

    #[test]
    fn lines_taken_from_files(
        lines in prop::collection::vec((0..SEEDS.len(), any::<prop::sample::Index>()), 0..60),
    ) {
        let text: Vec<&str> = lines
            .iter()
            .map(|(seed, line)| {
                let lines: Vec<&str> = SEEDS[*seed].lines().collect();
                lines[line.index(lines.len())]
            })
            .collect();
        exercise(&text.join("\n"));
    }

    #[test]
    fn any_text(text in ".{0,200}") {
        exercise(&text);
        let _ = (parse_duration(&text), parse_size(&text), text.parse::<Rate>());
        let _ = JsonPointer::try_new(&text);
    }
}

#[test]
fn a_large_tangle_is_refused_in_good_time() {
    let mut text = String::from("name = \"tangle\"\n");
    let all: Vec<String> = (0..400).map(|n| format!("\"q{n}\"")).collect();
    for n in 0..400 {
        text.push_str(&format!(
            "[[collector]]\nname = \"c{n}\"\ninputs = [{}]\noutput = [\"q{n}\", \"r{n}\"]\n\
             strategy = {{ kind = \"sequential\", n = {} }}\n",
            all.join(","),
            n + 1
        ));
    }
    text.truncate(text.len().min(proofmill_workflow::MAX_FILE_SIZE));
    text.push('\n');
    let begin = Instant::now();
    exercise(&text);
    assert!(
        begin.elapsed() < Duration::from_secs(10),
        "{:?}",
        begin.elapsed()
    );
}

#[test]
fn files_that_cannot_be_read() {
    let folder = tempfile::tempdir().expect("a folder");
    let host = LocalHost::default();
    let code = |file: &Path| validate_file(file, &host).expect_err("a fault")[0].code;
    assert_eq!(code(&folder.path().join("none.toml")), Code::Unreadable);
    assert_eq!(code(folder.path()), Code::Unreadable);
    let bytes = folder.path().join("bytes.toml");
    std::fs::write(&bytes, b"name = \"\xff\"").expect("written");
    assert_eq!(code(&bytes), Code::Unreadable);
    let large = folder.path().join("large.toml");
    std::fs::write(&large, vec![b' '; proofmill_workflow::MAX_FILE_SIZE + 1]).expect("written");
    assert_eq!(code(&large), Code::TooLarge);
    assert_eq!(
        Workflow::load(&large).expect_err("a fault")[0].code,
        Code::TooLarge
    );
}
