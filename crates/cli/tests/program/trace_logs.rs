//! The trace in log lines.

use serde_json::Value;

use crate::operate::site;
use crate::support::finish;

/// Trace of block 1 of the workflow `site`, which its names determine.
const TRACE: &str = "751ed53ce6f86c1e6de7c7d233b7faab";

/// Messages of the log lines about block 1, whose attempt fails for good.
const LINES: [&str; 3] = [
    "the attempt has failed",
    "an attempt has failed",
    "a task is in the dead-letter queue",
];

/// The log of a mill in which block 1 fails.
fn log(format: &str) -> String {
    let site = site("kind = \"range\"\nend = 2", "");
    site.mark("poison-1");
    let ran = finish(&mut site.mill(&["--log", "info", "--log-format", format]));
    ran.failed(1, "1 task is in the dead-letter queue").stderr
}

#[test]
fn json_lines_about_attempts_and_dead_letters_name_the_trace_of_the_block() {
    let log = log("json");
    let lines = log.lines().filter(|line| line.starts_with('{'));
    let lines: Vec<Value> = lines
        .map(|line| serde_json::from_str(line).expect("JSON"))
        .collect();
    for message in LINES {
        let is = |line: &&Value| line["fields"]["message"] == message;
        let line = lines.iter().find(is);
        let line = line.unwrap_or_else(|| panic!("no {message:?} in {log}"));
        let of_span = &line["span"]["trace_id"];
        let trace = of_span.as_str().or(line["fields"]["trace_id"].as_str());
        assert_eq!(trace, Some(TRACE), "{line}");
        let task = line["span"]["task"].as_str();
        let task = task.or(line["fields"]["task"].as_str());
        assert_eq!(task, Some("prove/1/0"), "{line}");
    }
    // Nothing fails about the others.
    assert_eq!(log.matches("the attempt has failed").count(), 1, "{log}");
}

#[test]
fn human_lines_about_attempts_and_dead_letters_name_the_trace_of_the_block() {
    let log = log("human");
    for message in LINES {
        let line = log.lines().find(|line| line.contains(message));
        let line = line.unwrap_or_else(|| panic!("no {message:?} in {log}"));
        assert!(line.contains(&format!("trace_id={TRACE}")), "{line}");
    }
}
