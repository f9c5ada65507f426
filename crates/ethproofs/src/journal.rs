//! The file of the score: a line for each record, so that the window survives the process.

use std::fs::{File, OpenOptions};
use std::io::{self, Read as _, Write as _};
use std::os::unix::fs::OpenOptionsExt as _;
use std::path::{Path, PathBuf};

use proofmill_files::write_small;

use crate::score::Score;

/// Name of the file.
const NAME: &str = "score";

/// Most bytes of the file that are read; it is made anew long before.
const BYTES_MAX: u64 = 64 << 20;

/// Number of lines at which the file is made anew: more than a window has.
const LINES_MAX: usize = 400_000;

/// A change of the score.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Record {
    /// The mill has accepted a block.
    Accepted {
        /// Block.
        block: u64,
        /// Time, milliseconds since 1970-01-01 UTC.
        at_ms: u64,
    },
    /// The mill has proved a block.
    Proved {
        /// Block.
        block: u64,
        /// Time that the proof took, milliseconds.
        proving_ms: u64,
    },
    /// The site has the block's proof.
    Reported {
        /// Block.
        block: u64,
    },
}

/// The open file. Its writes are not synced: after a loss of power the last records may lack.
#[derive(Debug)]
pub struct Journal {
    path: PathBuf,
    file: File,
    lines: usize,
}

// === impl Record ===

impl Record {
    fn line(self) -> String {
        match self {
            Self::Accepted { block, at_ms } => format!("accepted {block} {at_ms}\n"),
            Self::Proved { block, proving_ms } => format!("proved {block} {proving_ms}\n"),
            Self::Reported { block } => format!("reported {block}\n"),
        }
    }

    fn parse(line: &str) -> Option<Self> {
        let mut words = line.split(' ');
        let name = words.next()?;
        let mut number = || words.next()?.parse().ok();
        let record = match name {
            "accepted" => Self::Accepted {
                block: number()?,
                at_ms: number()?,
            },
            "proved" => Self::Proved {
                block: number()?,
                proving_ms: number()?,
            },
            "reported" => Self::Reported { block: number()? },
            _ => return None,
        };
        words.next().is_none().then_some(record)
    }
}

// === impl Journal ===

impl Journal {
    /// Opens the file in `folder`, notes its records in `score` as of `now_ms`, and makes it anew. Lines that cannot be read
    /// are left out: the last one may be cut.
    ///
    /// # Errors
    /// Those of the file system.
    pub fn open(folder: &Path, score: &mut Score, now_ms: u64) -> io::Result<Self> {
        let path = folder.join(NAME);
        let mut bytes = Vec::new();
        match File::open(&path) {
            Ok(file) => {
                file.take(BYTES_MAX).read_to_end(&mut bytes)?;
            }
            Err(error) if error.kind() == io::ErrorKind::NotFound => {}
            Err(error) => return Err(error),
        }
        let mut damaged = 0_u64;
        // A line without its end may lack digits.
        let whole = bytes.iter().rposition(|byte| *byte == b'\n').unwrap_or(0);
        for line in bytes[..whole].split(|byte| *byte == b'\n') {
            let line = std::str::from_utf8(line).ok();
            match line.and_then(Record::parse) {
                Some(record) => score.note(record),
                None => damaged += 1,
            }
        }
        if damaged > 0 && whole > 0 {
            tracing::warn!(file = %path.display(), damaged, "lines of the score cannot be read and are left out");
        }
        score.expire(now_ms);
        let (file, lines) = rewrite(&path, score)?;
        Ok(Self { path, file, lines })
    }

    /// Appends records. Makes the file anew from `score`, which has them, when it has grown long.
    ///
    /// # Errors
    /// Those of the file system.
    pub fn append(&mut self, records: &[Record], score: &Score) -> io::Result<()> {
        if self.lines.saturating_add(records.len()) > LINES_MAX {
            (self.file, self.lines) = rewrite(&self.path, score)?;
            return Ok(());
        }
        let text: String = records.iter().map(|record| record.line()).collect();
        self.file.write_all(text.as_bytes())?;
        self.lines += records.len();
        Ok(())
    }
}

/// Writes the records of the score, and opens the file for more. Returns it with its number of lines.
fn rewrite(path: &Path, score: &Score) -> io::Result<(File, usize)> {
    let mut lines = 0;
    let mut text = String::new();
    for record in score.records() {
        text.push_str(&record.line());
        lines += 1;
    }
    write_small(path, text.as_bytes(), ".new-")?;
    let mut options = OpenOptions::new();
    let file = options.append(true).create(true).mode(0o600).open(path)?;
    Ok((file, lines))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn open(folder: &Path) -> (Journal, Score) {
        let mut score = Score::new(1);
        let journal = Journal::open(folder, &mut score, 0).expect("opened");
        (journal, score)
    }

    #[test]
    fn the_score_survives_with_a_cut_line_and_damage() {
        let folder = tempfile::tempdir().expect("a folder");
        let (mut journal, mut score) = open(folder.path());
        let records = [
            Record::Accepted {
                block: 7,
                at_ms: 10,
            },
            Record::Accepted {
                block: 8,
                at_ms: 20,
            },
            Record::Proved {
                block: 7,
                proving_ms: 9,
            },
            Record::Reported { block: 7 },
        ];
        records.iter().for_each(|record| score.note(*record));
        journal.append(&records, &score).expect("written");
        drop(journal);
        let path = folder.path().join(NAME);
        let text = std::fs::read_to_string(&path).expect("text");
        assert_eq!(text.lines().count(), 4);
        std::fs::write(
            &path,
            format!("{text}what\n\u{1}\nproved 8 9 9\nreported 8\nproved 8 1"),
        )
        .expect("written");
        let (journal, again) = open(folder.path());
        assert_eq!(again.scores(0), score.scores(0));
        assert!(again.is_reported(7) && again.is_unproved(8));
        assert_eq!(journal.lines, 4);
        std::fs::write(&path, [0xff; 100]).expect("written");
        assert_eq!(open(folder.path()).1.scores(0).blocks, 0);
    }

    #[test]
    fn the_file_is_made_anew_when_it_is_long() {
        let folder = tempfile::tempdir().expect("a folder");
        let (mut journal, mut score) = open(folder.path());
        let record = Record::Accepted { block: 1, at_ms: 1 };
        score.note(record);
        journal
            .append(&vec![record; LINES_MAX], &score)
            .expect("written");
        assert_eq!(journal.lines, LINES_MAX);
        journal.append(&[record], &score).expect("written");
        assert_eq!(journal.lines, 1);
        journal.append(&[record], &score).expect("written");
        let text = std::fs::read_to_string(folder.path().join(NAME)).expect("text");
        assert_eq!(text, "accepted 1 1\naccepted 1 1\n");
    }
}
