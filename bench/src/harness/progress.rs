//! Progress on standard error: a bar on a terminal, a line now and then elsewhere.

use std::io::IsTerminal;
use std::sync::Mutex;
use std::time::{Duration, Instant};

use indicatif::{ProgressBar, ProgressStyle};

/// Shortest time between two lines of progress where standard error is no terminal.
const PLAIN_INTERVAL: Duration = Duration::from_secs(2);

/// Progress of a run.
pub(crate) struct Progress {
    bar: ProgressBar,
    label: String,
    total: u64,
    /// Time of the last plain line; `None` on a terminal.
    plain: Option<Mutex<Instant>>,
}

// === impl Progress ===

impl Progress {
    pub(crate) fn new(label: &str, total: usize) -> Self {
        let total = total as u64;
        let terminal = std::io::stderr().is_terminal();
        let bar = if terminal {
            ProgressBar::new(total)
        } else {
            ProgressBar::hidden()
        };
        let style = ProgressStyle::with_template("{msg} {wide_bar} {pos}/{len} {eta}");
        bar.set_style(style.unwrap_or_else(|_| ProgressStyle::default_bar()));
        bar.set_message(label.to_owned());
        let plain = (!terminal).then(|| Mutex::new(Instant::now()));
        Self {
            bar,
            label: label.to_owned(),
            total,
            plain,
        }
    }

    pub(crate) fn add(&self, more: u64) {
        self.set(usize::try_from(self.bar.position() + more).unwrap_or(usize::MAX));
    }

    pub(crate) fn set(&self, done: usize) {
        self.bar.set_position(done as u64);
        let Some(last) = &self.plain else { return };
        let Ok(mut last) = last.lock() else { return };
        if last.elapsed() >= PLAIN_INTERVAL {
            *last = Instant::now();
            eprintln!("{}: {done}/{}", self.label, self.total);
        }
    }
}

impl Drop for Progress {
    fn drop(&mut self) {
        self.bar.finish_and_clear();
    }
}
