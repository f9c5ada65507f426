//! Counts of verdicts, and the exit code that follows from them.

use crate::failure::Failure;

/// Counts of the verdicts on proofs.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Tally {
    /// All proofs.
    pub(super) all: usize,
    pub(super) invalid: usize,
    /// Proofs without a verdict because a file cannot be read.
    pub(super) unread: usize,
    /// Proofs without a verdict because the command was stopped.
    pub(super) undecided: usize,
}

// === impl Tally ===

impl Tally {
    pub(super) fn valid(&self) -> usize {
        self.all - self.invalid - self.unread - self.undecided
    }

    /// The command's result: exit code 130 if stopped, 1 if a proof is not valid, 3 if a file cannot be read.
    pub(super) fn result(&self) -> Result<(), Failure> {
        let Self {
            all,
            invalid,
            unread,
            undecided,
        } = *self;
        if undecided > 0 {
            let known = match invalid {
                0 => String::new(),
                _ => format!("; of the others {}", not_valid(invalid, all - undecided)),
            };
            return Err(Failure::interrupted(format!(
                "stopped: no verdict on {undecided} of {all} proofs{known}"
            )));
        }
        let and_unread = match unread {
            0 => String::new(),
            unread => format!("; no verdict on {unread}, whose files cannot be read"),
        };
        match (invalid, unread, all) {
            (0, 0, _) => Ok(()),
            (0, _, 1) => Err(Failure::no_verdict("no verdict: a file cannot be read")),
            (0, unread, all) => Err(Failure::no_verdict(format!(
                "no verdict on {unread} of {all} proofs: their files cannot be read"
            ))),
            (_, _, 1) => Err(Failure::new("the proof is not valid")),
            (invalid, _, all) => Err(Failure::new(format!(
                "{}{and_unread}",
                not_valid(invalid, all)
            ))),
        }
    }
}

fn not_valid(invalid: usize, all: usize) -> String {
    let verb = if invalid == 1 { "is" } else { "are" };
    format!("{invalid} of {all} proofs {verb} not valid")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_worst_verdict_decides_unless_the_command_was_stopped() {
        for (invalid, unread, undecided, code) in [
            (0, 0, 0, None),
            (0, 2, 0, Some(3)),
            (1, 0, 0, Some(1)),
            (1, 2, 0, Some(1)),
            (1, 2, 1, Some(130)),
            (0, 0, 5, Some(130)),
        ] {
            let tally = Tally {
                all: 5,
                invalid,
                unread,
                undecided,
            };
            let result = tally.result().err().map(|failure| failure.code);
            assert_eq!(result, code, "{tally:?}");
        }
    }
}
