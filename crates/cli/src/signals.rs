//! Ctrl-C: once to finish what is under way, twice to stop.

use proofmill_orchestrator::shutdown::{Level, Shutdown, Trigger, channel};
use tokio::signal::unix::{SignalKind, signal};

use crate::failure::Failure;
use crate::progress::Screen;

/// From now on SIGINT and SIGTERM drain first, and stop when they come again.
pub(crate) fn listen(screen: Screen) -> Result<Shutdown, Failure> {
    let (trigger, shutdown) = channel();
    let mut interrupt = signal(SignalKind::interrupt())?;
    let mut terminate = signal(SignalKind::terminate())?;
    tokio::spawn(async move {
        loop {
            tokio::select! {
                _ = interrupt.recv() => {}
                _ = terminate.recv() => {}
            }
            raise(&trigger, &screen);
        }
    });
    Ok(shutdown)
}

fn raise(trigger: &Trigger, screen: &Screen) {
    match trigger.level() {
        Level::Run => {
            screen.note("finishing what is under way; Ctrl-C again to stop now");
            trigger.raise(Level::Drain);
        }
        Level::Drain => {
            screen.note("stopping now; what is under way is handed back");
            trigger.raise(Level::Stop);
        }
        Level::Stop => std::process::exit(130),
    }
}
