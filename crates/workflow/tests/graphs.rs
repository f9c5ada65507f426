//! The graphs of the examples, compared with committed snapshots. `UPDATE_SNAPSHOTS=1` rewrites
//! them.

use std::path::Path;

use proofmill_workflow::{Workflow, graph, render};

#[track_caller]
fn compare(example: &str, extension: &str, draw: fn(&Workflow) -> String) {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR"));
    let file = folder.join(format!("../../examples/{example}/workflow.toml"));
    let workflow = Workflow::load(&file).unwrap_or_else(|found| panic!("{}", render(&found)));
    let snapshot = folder.join(format!("tests/snapshots/{example}.{extension}"));
    let drawn = draw(&workflow);
    if std::env::var_os("UPDATE_SNAPSHOTS").is_some() {
        std::fs::write(&snapshot, &drawn).expect("written");
    }
    let committed = std::fs::read_to_string(&snapshot).expect("a committed picture");
    assert_eq!(drawn, committed, "{}", snapshot.display());
}

#[test]
fn mermaid() {
    for example in ["fan-out", "multi-queue-join", "proposer-flow"] {
        compare(example, "mmd", graph::mermaid);
    }
}

#[test]
fn dot() {
    for example in ["bitcoin-headers", "parallel"] {
        compare(example, "dot", graph::dot);
    }
}

#[test]
fn markup_in_a_name_stays_text() {
    let text = r#"
name = "a"
[[source]]
name = "s"
kind = "submit"
output = "q"
[[dispatcher]]
name = "d"
input = "q"
executor = { kind = "native", prover = "\"];<b>\\\n#" }
"#;
    let workflow = Workflow::parse(text, "w.toml").unwrap_or_else(|found| panic!("{found:?}"));
    let mermaid = graph::mermaid(&workflow);
    assert!(
        mermaid.contains("s1[\"d<br/>#34;]#59;#60;b#62;\\ #35;<br/>1 worker\"]"),
        "{mermaid}"
    );
    let dot = graph::dot(&workflow);
    assert!(
        dot.contains(r#"label="d\n\"];<b>\\ #\n1 worker"];"#),
        "{dot}"
    );
}
