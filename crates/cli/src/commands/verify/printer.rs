//! Output of verdicts on files, as text or as JSON.

use std::path::Path;
use std::time::Duration;

use proofmill_verifier::{Status, Unavailable};
use serde_json::json;

use super::find::{Candidate, Found};
use super::read::SubmittedProof;
use super::tally::Tally;
use crate::args::verify::Verify;
use crate::failure::Failure;
use crate::output;
use crate::progress::{Bar, Screen, counted, span};

/// Prints verdicts as they arrive, and counts them.
pub(super) struct VerdictPrinter {
    screen: Screen,
    bar: Bar,
    is_json: bool,
    tally: Tally,
}

/// Verdict on a file.
enum Verdict {
    Valid,
    /// The proof is not valid, for this reason.
    Invalid(String),
    /// No verdict, for this reason.
    Unread(String),
}

// === impl VerdictPrinter ===

impl VerdictPrinter {
    pub(super) fn new(args: &Verify, screen: &Screen, all: usize) -> Self {
        Self {
            screen: screen.clone(),
            bar: screen.bar("verified", Some(all as u64)),
            is_json: args.json,
            // Every proof is undecided at the start.
            tally: Tally {
                all,
                undecided: all,
                ..Tally::default()
            },
        }
    }

    /// Waits for a verdict, and prints it.
    pub(super) async fn print_verdict(&mut self, submitted: SubmittedProof) -> Result<(), Failure> {
        let SubmittedProof {
            found,
            kind,
            verdict,
        } = submitted;
        let verdict = match verdict {
            Err(why) => Verdict::Unread(why),
            Ok(pending) => match pending.await.status {
                Status::Valid => Verdict::Valid,
                Status::Invalid(reason) => Verdict::Invalid(reason.to_string()),
                // The proof stays undecided.
                Status::Unavailable(Unavailable::Stopped) => return Ok(()),
                Status::Unavailable(reason) => Verdict::Unread(reason.to_string()),
            },
        };
        self.tally.undecided -= 1;
        match verdict {
            Verdict::Valid => {}
            Verdict::Invalid(_) => self.tally.invalid += 1,
            Verdict::Unread(_) => self.tally.unread += 1,
        }
        let line = match self.is_json {
            true => Some(to_json(&found, kind.as_deref(), &verdict).to_string()),
            false => line(&found, &verdict),
        };
        if let Some(line) = line {
            self.screen.beside(|| output::line(line))?;
        }
        let decided = self.tally.all - self.tally.undecided;
        let text = match self.tally.invalid {
            0 => String::new(),
            invalid => format!("{invalid} not valid"),
        };
        self.bar.set(decided as u64, &text);
        Ok(())
    }

    /// Prints the last line and returns the command's result. `others` counts files that are not proofs.
    pub(super) fn summary(self, others: usize, elapsed: Duration) -> Result<(), Failure> {
        let Tally {
            all,
            invalid,
            unread,
            undecided,
        } = self.tally;
        self.bar.clear();
        let valid = self.tally.valid();
        let line = if self.is_json {
            json!({
                "proofs": all,
                "valid": valid,
                "invalid": invalid,
                "unread": unread,
                "undecided": undecided,
                "others": others,
                "seconds": elapsed.as_secs_f64(),
            })
            .to_string()
        } else {
            let mut parts = vec![format!("{valid} valid")];
            for (count, what) in [
                (invalid, "not valid"),
                (unread, "without a verdict"),
                (undecided, "not decided"),
            ] {
                if count > 0 {
                    parts.push(format!("{count} {what}"));
                }
            }
            format!(
                "{}: {}, in {}",
                counted(all, "proof"),
                parts.join(", "),
                span(elapsed)
            )
        };
        self.screen.beside(|| output::line(line))?;
        self.tally.result()
    }
}

// === impl Found ===

impl Found {
    fn path(&self) -> &Path {
        match self {
            Self::Proof(Candidate { path, .. }) | Self::Unread { path, .. } => path,
        }
    }
}

/// The line for a verdict; `None` for a valid proof, which prints nothing.
fn line(found: &Found, verdict: &Verdict) -> Option<String> {
    let path = found.path().display();
    let line = match verdict {
        Verdict::Valid => return None,
        Verdict::Invalid(why) => format!("INVALID  {path}: {why}"),
        Verdict::Unread(why) => format!("unread   {path}: {why}"),
    };
    Some(output::plain(&line))
}

fn to_json(found: &Found, kind: Option<&str>, verdict: &Verdict) -> serde_json::Value {
    let (valid, why) = match verdict {
        Verdict::Valid => (Some(true), None),
        Verdict::Invalid(why) => (Some(false), Some(why)),
        Verdict::Unread(why) => (None, Some(why)),
    };
    let (statement, key) = match found {
        Found::Proof(candidate) => (&candidate.statement, &candidate.key),
        Found::Unread { .. } => (&None, &None),
    };
    let name = |path: &Path| path.to_string_lossy().into_owned();
    json!({
        "proof": name(found.path()),
        "kind": kind,
        "statement": statement.as_deref().map(name),
        "key": key.as_deref().map(name),
        "valid": valid,
        "why": why,
    })
}
