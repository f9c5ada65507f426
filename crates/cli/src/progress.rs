//! Progress on standard error while work goes on: bars on a terminal, plain lines otherwise.

use std::io::IsTerminal;
use std::sync::Arc;
use std::time::{Duration, Instant};

use indicatif::{MultiProgress, ProgressBar, ProgressStyle};
use proofmill_telemetry::{console_flush, console_line, console_printer};

use crate::output;

/// Progress display on standard error. Clones share it.
#[derive(Clone)]
pub(crate) struct Screen {
    bars: Option<MultiProgress>,
    began: Arc<Instant>,
}

/// One bar or spinner; empty where standard error is not a terminal.
pub(crate) struct Bar {
    bar: Option<ProgressBar>,
}

// === impl Screen ===

impl Screen {
    /// Uses bars if standard error is a terminal, else lines.
    pub(crate) fn open() -> Self {
        let bars = std::io::stderr().is_terminal().then(MultiProgress::new);
        if let Some(bars) = bars.clone() {
            // Lines printed by any part of the program go above the bars. The error of a terminal
            // that has been closed is ignored: there is nowhere to report it.
            console_printer(Some(Arc::new(move |text: &str| drop(bars.println(text)))));
        }
        Self {
            bars,
            began: Arc::new(Instant::now()),
        }
    }

    /// Leaves the bars as they are; later lines are printed below them.
    pub(crate) fn close(&self) {
        if self.has_bars() {
            console_flush(Duration::from_secs(1));
            console_printer(None);
        }
    }

    /// Whether bars are shown.
    pub(crate) fn has_bars(&self) -> bool {
        self.bars.is_some()
    }

    /// Prints a line, above the bars where there are any.
    pub(crate) fn note(&self, text: &str) {
        match &self.bars {
            Some(_) => console_line(output::plain(text)),
            None => {
                let seconds = self.began.elapsed().as_secs_f64();
                console_line(format!("[{seconds:7.1} s] {}", output::plain(text)));
            }
        }
    }

    /// Prints a line only where there are no bars.
    pub(crate) fn line(&self, text: &str) {
        if self.bars.is_none() {
            self.note(text);
        }
    }

    /// Runs `print`, which writes to standard output, with the bars hidden: it may be the same terminal.
    pub(crate) fn beside<T>(&self, print: impl FnOnce() -> T) -> T {
        match &self.bars {
            Some(bars) => bars.suspend(print),
            None => print(),
        }
    }

    /// A bar that ends at `total`; without a total it shows a count.
    pub(crate) fn bar(&self, name: &str, total: Option<u64>) -> Bar {
        let Some(bars) = &self.bars else {
            return Bar { bar: None };
        };
        let template = match total {
            Some(_) => "{prefix:>10} [{bar:32}] {pos}/{len} {msg}",
            None => "{prefix:>10} {pos} {msg}",
        };
        let style = ProgressStyle::with_template(template)
            .unwrap_or_else(|_| ProgressStyle::default_bar())
            .progress_chars("=> ");
        let bar = total.map_or_else(ProgressBar::no_length, ProgressBar::new);
        let bar = bars.add(bar.with_style(style).with_prefix(name.to_owned()));
        bar.tick();
        Bar { bar: Some(bar) }
    }

    /// A spinner with a text that changes, where there are bars.
    pub(crate) fn spinner(&self, text: &str) -> Bar {
        let Some(bars) = &self.bars else {
            return Bar { bar: None };
        };
        let bar = bars.add(ProgressBar::new_spinner().with_message(text.to_owned()));
        bar.enable_steady_tick(Duration::from_millis(120));
        Bar { bar: Some(bar) }
    }
}

// === impl Bar ===

impl Bar {
    /// Sets the position and the text beside it.
    pub(crate) fn set(&self, position: u64, text: &str) {
        if let Some(bar) = &self.bar {
            bar.set_position(position);
            bar.set_message(text.to_owned());
        }
    }

    /// Changes the text.
    pub(crate) fn say(&self, text: &str) {
        if let Some(bar) = &self.bar {
            bar.set_message(text.to_owned());
        }
    }

    /// Stops the bar and leaves it visible.
    pub(crate) fn finish(&self) {
        if let Some(bar) = &self.bar {
            bar.abandon();
        }
    }

    /// Removes the bar.
    pub(crate) fn clear(&self) {
        if let Some(bar) = &self.bar {
            bar.finish_and_clear();
        }
    }
}

/// A duration for people: `12 s`, `3 min 05 s`.
pub(crate) fn span(duration: Duration) -> String {
    let seconds = duration.as_secs();
    match seconds {
        0..10 => format!("{:.1} s", duration.as_secs_f64()),
        10..60 => format!("{seconds} s"),
        60..3600 => format!("{} min {:02} s", seconds / 60, seconds % 60),
        _ => format!("{} h {:02} min", seconds / 3600, seconds % 3600 / 60),
    }
}

/// The name of a range of blocks and the form of "have" that goes with it: (`block 8`, `has`).
pub(crate) fn blocks((first, last): (u64, u64)) -> (String, &'static str) {
    match first == last {
        true => (format!("block {first}"), "has"),
        false => (format!("blocks {first} to {last}"), "have"),
    }
}

/// A count with its noun: `1 proof`, `3 proofs`.
pub(crate) fn counted(count: usize, what: &str) -> String {
    if count == 1 {
        format!("1 {what}")
    } else {
        format!("{count} {what}s")
    }
}
