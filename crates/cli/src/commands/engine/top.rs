//! `proofmill engine top`

use std::io::IsTerminal;
use std::time::Duration;

use proofmill_api::engine::Client;
use proofmill_api::engine::proto::EngineStatus;
use ratatui::crossterm::event::{self, Event, KeyCode, KeyEventKind, KeyModifiers};
use ratatui::crossterm::terminal;
use tokio::sync::mpsc;

use super::{connect, frame, refused};
use crate::args::engine::Top;
use crate::failure::Failure;
use crate::output;

/// Columns and rows of a frame printed by `--once`.
const PRINTED_SIZE: (u16, u16) = (110, 44);
/// Help for the keys, in the last line.
const KEYS_RUNNING: &str = "q, Esc: end   space: pause";
const KEYS_PAUSED: &str = "q, Esc: end   space: resume   (paused)";
/// Interval at which the keyboard thread checks whether it should end.
const KEY_POLL_INTERVAL: Duration = Duration::from_millis(100);

pub(crate) async fn run(args: &Top) -> Result<(), Failure> {
    let client = connect(&args.query.engine).await?;
    let ask = || async { client.status().await.map_err(|error| refused(&error)) };
    if args.query.json {
        return output::line(serde_json::to_string(&ask().await?)?);
    }
    if args.once || !std::io::stdout().is_terminal() {
        let (columns, rows) = terminal::size().unwrap_or(PRINTED_SIZE);
        let is_terminal = std::io::stdout().is_terminal();
        let (columns, rows) = if is_terminal {
            (columns, rows)
        } else {
            PRINTED_SIZE
        };
        return output::line(frame::text(&ask().await?, columns, rows));
    }
    let first = ask().await?;
    let mut terminal = ratatui::try_init()
        .map_err(|error| Failure::new(format!("cannot use this terminal: {error}")))?;
    let watched = watch(
        &client,
        first,
        &mut terminal,
        Duration::from_millis(args.every),
    )
    .await;
    ratatui::restore();
    watched
}

async fn watch(
    client: &Client,
    first: EngineStatus,
    terminal: &mut ratatui::DefaultTerminal,
    every: Duration,
) -> Result<(), Failure> {
    let mut keys = keys();
    let mut frames = tokio::time::interval(every);
    let (mut before, mut now) = (None, first);
    let mut held = false;
    loop {
        terminal.draw(|page| {
            let area = page.area();
            let keys = if held { KEYS_PAUSED } else { KEYS_RUNNING };
            frame::draw(&now, before.as_ref(), Some(keys), area, page.buffer_mut());
        })?;
        tokio::select! {
            _ = frames.tick(), if !held => {
                let next = client.status().await.map_err(|error| refused(&error))?;
                before = Some(std::mem::replace(&mut now, next));
            }
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
