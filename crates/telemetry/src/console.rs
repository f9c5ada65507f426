//! Standard error, one line at a time, without ever blocking the writer.
//!
//! A reader that stalls (a full pipe, a paused terminal) must not stall the mill: lines wait in a bounded
//! buffer; those that do not fit are dropped and counted. A closed reader is not an error, as there is no
//! other place to report it.

use std::io::{self, Write};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::mpsc::{self, Receiver, SyncSender, TrySendError};
use std::sync::{Arc, Mutex, OnceLock, PoisonError};
use std::time::Duration;

use tracing_subscriber::fmt::MakeWriter;

/// Lines that wait for the reader, at most.
const WAITING: usize = 4096;

/// Shows a line some other way than by writing it.
type Printer = Arc<dyn Fn(&str) + Send + Sync>;

struct Console {
    lines: SyncSender<Message>,
    left_out: Arc<AtomicU64>,
    printer: Arc<Mutex<Option<Printer>>>,
}

enum Message {
    Line(String),
    Flush(SyncSender<()>),
}

/// Writes log lines to the console.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct ConsoleWriter;

/// Shows a line on standard error, soon.
pub fn console_line(text: impl Into<String>) {
    let console = console();
    if let Err(TrySendError::Full(_)) = console.lines.try_send(Message::Line(text.into())) {
        console.left_out.fetch_add(1, Ordering::Relaxed);
    }
}

/// Lines go through `printer` from now on (progress bars, which must make room for them), or
/// straight to standard error again.
pub fn console_printer(printer: Option<Printer>) {
    *console()
        .printer
        .lock()
        .unwrap_or_else(PoisonError::into_inner) = printer;
}

/// Waits until every line so far is shown, for at most `limit`. Returns whether they are.
#[expect(
    clippy::disallowed_methods,
    reason = "whoever waits for the console has nothing else to do"
)]
pub fn console_flush(limit: Duration) -> bool {
    let (done, shown) = mpsc::sync_channel(1);
    let deadline = std::time::Instant::now() + limit;
    let mut message = Message::Flush(done);
    loop {
        match console().lines.try_send(message) {
            Ok(()) => break,
            Err(TrySendError::Full(back)) if std::time::Instant::now() < deadline => {
                message = back;
                std::thread::sleep(Duration::from_millis(10));
            }
            Err(_) => return false,
        }
    }
    let left = deadline.saturating_duration_since(std::time::Instant::now());
    shown.recv_timeout(left).is_ok()
}

fn console() -> &'static Console {
    static CONSOLE: OnceLock<Console> = OnceLock::new();
    CONSOLE.get_or_init(|| {
        let (lines, incoming) = mpsc::sync_channel(WAITING);
        let left_out = Arc::new(AtomicU64::new(0));
        let printer = Arc::new(Mutex::new(None));
        let (counted, shown_by) = (left_out.clone(), printer.clone());
        // Without the thread (no more can be had) lines are counted as left out, and nothing else.
        let _ = std::thread::Builder::new()
            .name("console".to_owned())
            .spawn(move || show(&incoming, &counted, &shown_by));
        Console {
            lines,
            left_out,
            printer,
        }
    })
}

fn show(incoming: &Receiver<Message>, left_out: &AtomicU64, printer: &Mutex<Option<Printer>>) {
    while let Ok(message) = incoming.recv() {
        match message {
            Message::Line(text) => {
                print(&text, printer);
                let missing = left_out.swap(0, Ordering::Relaxed);
                if missing > 0 {
                    print(
                        &format!("({missing} lines left out: nobody read them in time)"),
                        printer,
                    );
                }
            }
            Message::Flush(done) => {
                // The caller may have stopped waiting.
                let _ = done.try_send(());
            }
        }
    }
}

fn print(text: &str, printer: &Mutex<Option<Printer>>) {
    let printer = printer
        .lock()
        .unwrap_or_else(PoisonError::into_inner)
        .clone();
    match printer {
        Some(printer) => printer(text),
        None => {
            let mut whole = String::with_capacity(text.len() + 1);
            whole.push_str(text);
            whole.push('\n');
            // Standard error may be closed: see above.
            let _ = io::stderr().write_all(whole.as_bytes());
        }
    }
}

// === impl ConsoleWriter ===

impl Write for ConsoleWriter {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        let text = String::from_utf8_lossy(bytes);
        console_line(text.strip_suffix('\n').unwrap_or(&text));
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

impl<'a> MakeWriter<'a> for ConsoleWriter {
    type Writer = Self;

    fn make_writer(&'a self) -> Self {
        *self
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_go_through_the_printer_in_order_and_a_stalled_one_holds_nobody_up() {
        let seen = Arc::new(Mutex::new(Vec::new()));
        let gate = Arc::new(Mutex::new(()));
        let (kept, waits) = (seen.clone(), gate.clone());
        console_printer(Some(Arc::new(move |text: &str| {
            let _turn = waits.lock().expect("the gate");
            kept.lock().expect("the lines").push(text.to_owned());
        })));
        console_line("one");
        console_line("two");
        assert!(console_flush(Duration::from_secs(30)));
        assert_eq!(*seen.lock().expect("the lines"), ["one", "two"]);

        let closed = gate.lock().expect("the gate");
        for number in 0..2 * WAITING {
            console_line(number.to_string());
        }
        assert!(!console_flush(Duration::from_millis(20)));
        drop(closed);
        assert!(console_flush(Duration::from_secs(30)));
        console_line("last");
        assert!(console_flush(Duration::from_secs(30)));
        let seen = seen.lock().expect("the lines");
        assert!(
            seen.iter().any(|line| line.contains("lines left out")),
            "{}",
            seen.len()
        );
        assert_eq!(seen.last().map(String::as_str), Some("last"));
    }
}
