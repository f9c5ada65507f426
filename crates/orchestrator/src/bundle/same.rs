//! Comparing a failure with a recorded one.

use crate::record::Failure;

/// Beginning of the name of a run's scratch directory, after the directory of its root.
const RUN: &str = "/run-";

/// Text in place of a scratch directory.
const SCRATCH: &str = "SCRATCH";

/// Whether two failures are the same: exit code, whether another attempt may help, and the reason, in which scratch
/// directories may differ. A reason has the signal or the exit code and the last line of the program's output. Time,
/// worker and the rest of the output do not count.
pub(super) fn is_same(one: &Failure, other: &Failure) -> bool {
    one.permanent == other.permanent
        && one.exit == other.exit
        && without_scratch(&one.reason) == without_scratch(&other.reason)
}

/// Whether the two failures have the same output, in which scratch directories may differ.
pub(super) fn has_same_output(one: &Failure, other: &Failure) -> bool {
    without_scratch(&one.stdout) == without_scratch(&other.stdout)
        && without_scratch(&one.stderr) == without_scratch(&other.stderr)
}

/// A program's text with `SCRATCH` in place of every path of a run's scratch directory, `…/run-PID-NUMBER`.
fn without_scratch(text: &str) -> String {
    let mut plain = String::with_capacity(text.len());
    let mut rest = text;
    while let Some(at) = rest.find(RUN) {
        let after = &rest[at + RUN.len()..];
        let Some(name) = run_name_length(after) else {
            plain.push_str(&rest[..at + RUN.len()]);
            rest = after;
            continue;
        };
        let before = &rest[..at];
        let begin = before.rfind(|it: char| it.is_whitespace() || "'\"`=:([<,".contains(it));
        let begin = begin.map_or(0, |begin| {
            begin + before[begin..].chars().next().map_or(0, char::len_utf8)
        });
        plain.push_str(&before[..begin]);
        plain.push_str(SCRATCH);
        rest = &after[name..];
    }
    plain.push_str(rest);
    plain
}

/// Length of `PID-NUMBER` at the beginning of a text; `None` if it begins otherwise.
fn run_name_length(text: &str) -> Option<usize> {
    let digits = |text: &str| text.bytes().take_while(u8::is_ascii_digit).count();
    let pid = digits(text);
    let number = text[pid..].strip_prefix('-').map(digits)?;
    (pid > 0 && number > 0).then_some(pid + 1 + number)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn scratch_directories_are_left_out_and_nothing_else() {
        for (text, plain) in [
            (
                "cannot open '/a b/s/run-12-3/input.json': /tmp/x/run-4-0, no",
                "cannot open '/a SCRATCH/input.json': SCRATCH, no",
            ),
            (
                "IN=/é/run-1-2 /run-7 run-1-2 /run-x/",
                "IN=SCRATCH /run-7 run-1-2 /run-x/",
            ),
            ("no path", "no path"),
        ] {
            assert_eq!(without_scratch(text), plain);
        }
    }

    #[test]
    fn the_reason_and_the_exit_decide() {
        let failed = |reason: &str, exit, permanent, stderr: &str| Failure {
            permanent,
            reason: reason.to_owned(),
            exit,
            stderr: stderr.to_owned(),
            wall_ms: 5,
            ..Failure::default()
        };
        let recorded = failed("exited with code 3: /s/run-1-2/x", Some(3), false, "a");
        let again = failed("exited with code 3: /t/run-9-0/x", Some(3), false, "b");
        assert!(is_same(&recorded, &again));
        assert!(!has_same_output(&recorded, &again));
        for other in [
            failed("exited with code 3: /t/run-9-0/y", Some(3), false, ""),
            failed("exited with code 3: /t/run-9-0/x", Some(4), false, ""),
            failed("exited with code 3: /t/run-9-0/x", Some(3), true, ""),
        ] {
            assert!(!is_same(&recorded, &other));
        }
    }
}
