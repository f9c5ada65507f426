//! The failure of a job in one line.

use proofmill_api::engine::proto::{Job, JobState};

/// Most characters of a failure in a table.
const BRIEF_MAX: usize = 100;

/// A job's state, with the shortened failure if it failed. `engine job` shows the full failure.
pub(super) fn state(job: &Job) -> String {
    let name = JobState::short_name(job.state);
    match brief(job) {
        Some(why) => format!("{name}: {why}"),
        None => name.to_owned(),
    }
}

/// First line of a job's failure, without the names of its circuit and partition where these are clear. `None` if it
/// did not fail.
pub(super) fn brief(job: &Job) -> Option<String> {
    let first = job.failure.lines().next()?;
    let about = match (&job.circuits[..], job.partitions) {
        ([circuit], 1) => format!("partition 0 of circuit {circuit}: "),
        _ => String::new(),
    };
    let line = first.strip_prefix(&*about).unwrap_or(first).trim();
    let line = without_folder(line);
    let more = line.chars().count() > BRIEF_MAX || job.failure.lines().count() > 1;
    let shown: String = line.chars().take(BRIEF_MAX).collect();
    Some(if more { format!("{shown} …") } else { shown })
}

/// Removes the folder from a program's path at the start of a line, so that the reason after it stays visible.
fn without_folder(line: &str) -> &str {
    let program = line.split(' ').next().unwrap_or_default();
    match program.strip_prefix('/').and_then(|path| path.rfind('/')) {
        Some(end) => &line[end + 2..],
        None => line,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn failed(why: &str) -> Job {
        Job {
            state: JobState::Failed.into(),
            failure: why.to_owned(),
            circuits: vec!["mul".to_owned()],
            partitions: 1,
            ..Job::default()
        }
    }

    #[test]
    fn a_stack_of_many_lines_is_one_short_line() {
        let stack = "partition 0 of circuit mul: node made no witness (exit status: 1): Error: no\n\
                     a.js:1\n  at x\n  at y";
        assert_eq!(
            state(&failed(stack)),
            "failed: node made no witness (exit status: 1): Error: no …"
        );
        let long = "é".repeat(5000);
        assert_eq!(
            state(&failed(&long)).chars().count(),
            "failed: ".len() + BRIEF_MAX + 2
        );
        assert_eq!(state(&failed("short")), "failed: short");
        let deep = format!("/{}/bad.sh made no witness: no", "deep/".repeat(50));
        assert_eq!(state(&failed(&deep)), "failed: bad.sh made no witness: no");
        assert_eq!(state(&failed("/ is no program")), "failed: / is no program");
        assert_eq!(state(&Job::default()), JobState::short_name(0));
    }
}
