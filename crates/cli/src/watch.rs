//! Frames that are drawn again and again on a terminal, until a key ends them.

use std::io::IsTerminal;
use std::time::Duration;

use ratatui::buffer::Buffer;
use ratatui::crossterm::event::{self, Event, KeyCode, KeyEventKind, KeyModifiers};
use ratatui::crossterm::terminal;
use ratatui::layout::Rect;
use tokio::sync::mpsc;

use crate::failure::Failure;

/// Columns and rows of a frame that is printed to a pipe.
const PRINTED_SIZE: (u16, u16) = (110, 44);
/// Help for the keys, in the last line.
const KEYS_RUNNING: &str = "q, Esc: end   space: pause";
const KEYS_PAUSED: &str = "q, Esc: end   space: resume   (paused)";
/// Interval at which the keyboard thread checks whether it should end.
const KEY_POLL_INTERVAL: Duration = Duration::from_millis(100);

/// The data of a frame.
pub(crate) struct Shown<'a, S> {
    /// The latest state.
    pub(crate) now: &'a S,
    /// The state before.
    pub(crate) before: Option<&'a S>,
    /// Help for the keys.
    pub(crate) keys: &'static str,
    /// The reason why there is no later state, if the last question failed.
    pub(crate) lost: Option<&'a str>,
}

/// Reaction to a state that cannot be had any more.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum OnLoss {
    /// The error ends the command.
    End,
    /// The last state stays on the screen, with the error, and the question is repeated.
    AskAgain,
}

/// Whether one frame is to be printed as text, since it was asked for or nobody watches.
pub(crate) fn prints_once(once: bool) -> bool {
    once || !std::io::stdout().is_terminal()
}

/// Columns and rows of a frame that is printed once.
pub(crate) fn printed_size() -> (u16, u16) {
    match std::io::stdout().is_terminal() {
        true => terminal::size().unwrap_or(PRINTED_SIZE),
        false => PRINTED_SIZE,
    }
}

/// Draws frames on the terminal until a key ends them. The terminal is as before when this returns.
pub(crate) async fn watch<S>(
    first: S,
    every: Duration,
    on_loss: OnLoss,
    ask: impl AsyncFnMut() -> Result<S, Failure>,
    draw: impl FnMut(&Shown<'_, S>, Rect, &mut Buffer),
) -> Result<(), Failure> {
    let mut terminal = ratatui::try_init()
        .map_err(|error| Failure::new(format!("cannot use this terminal: {error}")))?;
    let watched = frames(first, every, on_loss, ask, draw, &mut terminal).await;
    ratatui::restore();
    watched
}

async fn frames<S>(
    first: S,
    every: Duration,
    on_loss: OnLoss,
    mut ask: impl AsyncFnMut() -> Result<S, Failure>,
    mut draw: impl FnMut(&Shown<'_, S>, Rect, &mut Buffer),
    terminal: &mut ratatui::DefaultTerminal,
) -> Result<(), Failure> {
    let mut keys = keys();
    let mut frames = tokio::time::interval(every);
    frames.set_missed_tick_behavior(tokio::time::MissedTickBehavior::Delay);
    let (mut before, mut now) = (None, first);
    let mut lost: Option<String> = None;
    let mut held = false;
    loop {
        terminal.draw(|page| {
            let shown = Shown {
                now: &now,
                before: before.as_ref(),
                keys: if held { KEYS_PAUSED } else { KEYS_RUNNING },
                lost: lost.as_deref(),
            };
            draw(&shown, page.area(), page.buffer_mut());
        })?;
        // A question that takes long does not hold up the keys.
        let next = async {
            frames.tick().await;
            ask().await
        };
        tokio::select! {
            next = next, if !held => match (next, on_loss) {
                (Ok(next), _) => {
                    lost = None;
                    before = Some(std::mem::replace(&mut now, next));
                }
                (Err(failure), OnLoss::AskAgain) => lost = Some(failure.message().to_owned()),
                (Err(failure), OnLoss::End) => return Err(failure),
            },
            key = keys.recv() => match key {
                Some(Event::Key(key)) if key.kind != KeyEventKind::Release => {
                    let interrupted = key.code == KeyCode::Char('c')
                        && key.modifiers.contains(KeyModifiers::CONTROL);
                    if interrupted || matches!(key.code, KeyCode::Char('q') | KeyCode::Esc) {
                        return Ok(());
                    }
                    held ^= key.code == KeyCode::Char(' ');
                }
                Some(_) => {}
                None => return Ok(()),
            }
        }
    }
}

/// Terminal events, read by a thread that ends when the receiver is dropped or raw mode ends.
fn keys() -> mpsc::Receiver<Event> {
    let (sender, receiver) = mpsc::channel(16);
    std::thread::spawn(move || {
        while terminal::is_raw_mode_enabled().unwrap_or(false) && !sender.is_closed() {
            match event::poll(KEY_POLL_INTERVAL) {
                Ok(false) => {}
                Ok(true) => {
                    let Ok(event) = event::read() else { return };
                    if sender.blocking_send(event).is_err() {
                        return;
                    }
                }
                Err(_) => return,
            }
        }
    });
    receiver
}
