//! SIGINT and SIGTERM: the first drains (work under way is finished), the second stops.

use std::sync::Arc;
use std::time::Duration;

use futures_util::future::BoxFuture;
use proofmill_orchestrator::shutdown::{Level, Shutdown, Trigger, channel};
use proofmill_process::running_programs;
use tokio::signal::unix::{SignalKind, signal};
use tokio::time::Instant;

use crate::args::DrainArg;
use crate::failure::Failure;
use crate::progress::{Screen, counted, span};

/// Delay before a drain first reports what it waits for, and the interval between later reports. The first comes soon
/// because the person who pressed Ctrl-C is likely watching.
const REPORT_DELAYS: (Duration, Duration) = (Duration::from_secs(2), Duration::from_secs(15));

/// Most items listed by name in one line; the rest are only counted.
const LISTED_NAMES_MAX: usize = 3;

/// Describes what a drain is waiting for; `None` if that is unknown.
pub(crate) type DescribeWait = Arc<dyn Fn() -> BoxFuture<'static, Option<String>> + Send + Sync>;

/// Installs the handlers: the first SIGINT or SIGTERM drains, the next one or the end of `--drain-timeout` stops. While
/// it drains, the running programs that it waits for are reported.
pub(crate) fn listen(screen: Screen, drain: DrainArg) -> Result<Shutdown, Failure> {
    listen_with_description(screen, drain, Arc::new(|| Box::pin(async { None })))
}

/// As [`listen`], with `describe_wait` to describe the work under way; where it returns `None`, running programs are
/// listed.
pub(crate) fn listen_with_description(
    screen: Screen,
    drain: DrainArg,
    describe_wait: DescribeWait,
) -> Result<Shutdown, Failure> {
    let (trigger, shutdown) = channel();
    let trigger = Arc::new(trigger);
    let mut interrupt = signal(SignalKind::interrupt())?;
    let mut terminate = signal(SignalKind::terminate())?;
    let signalled = (trigger.clone(), screen.clone());
    tokio::spawn(async move {
        loop {
            tokio::select! {
                _ = interrupt.recv() => {}
                _ = terminate.recv() => {}
            }
            advance(&signalled.0, &signalled.1);
        }
    });
    let mut draining = shutdown.clone();
    tokio::spawn(async move {
        draining.reached(Level::Drain).await;
        let ended = stop_after(&trigger, &screen, drain.drain_timeout, describe_wait);
        tokio::select! {
            () = ended => {}
            () = draining.reached(Level::Stop) => {}
        }
    });
    Ok(shutdown)
}

/// Completes at the first SIGINT or SIGTERM, for a command that has nothing to finish and only prints its result so
/// far. The second signal exits the process at once with code 130.
pub(crate) fn first_signal() -> Result<impl Future<Output = ()>, Failure> {
    let mut interrupt = signal(SignalKind::interrupt())?;
    let mut terminate = signal(SignalKind::terminate())?;
    let (sender, receiver) = tokio::sync::oneshot::channel();
    tokio::spawn(async move {
        let mut sender = Some(sender);
        loop {
            tokio::select! {
                _ = interrupt.recv() => {}
                _ = terminate.recv() => {}
            }
            match sender.take() {
                // The receiver may have been dropped.
                Some(sender) => drop(sender.send(())),
                None => std::process::exit(130),
            }
        }
    });
    Ok(async move {
        let _ = receiver.await;
    })
}

/// Advances to the next level: drain, stop, or exit at once.
fn advance(trigger: &Trigger, screen: &Screen) {
    match trigger.level() {
        Level::Run => {
            screen.note("finishing the work under way; Ctrl-C again to stop now");
            trigger.raise(Level::Drain);
        }
        Level::Drain => {
            screen.note("stopping now; the work under way is handed back");
            trigger.raise(Level::Stop);
        }
        Level::Stop => std::process::exit(130),
    }
}

/// Reports what a drain waits for, and stops the process's work once the drain has taken `time_max`.
async fn stop_after(
    trigger: &Trigger,
    screen: &Screen,
    time_max: Duration,
    describe_wait: DescribeWait,
) {
    let until = Instant::now() + time_max;
    let mut next = Instant::now() + REPORT_DELAYS.0;
    loop {
        tokio::time::sleep_until(next.min(until)).await;
        let waited_for = describe_wait().await.or_else(running_program_names);
        let waited_for = waited_for.unwrap_or_else(|| "the work under way".to_owned());
        let left = until.saturating_duration_since(Instant::now());
        if left.is_zero() {
            screen.note(&format!(
                "not finished within {} (--drain-timeout): stopping now, {waited_for} is handed back",
                span(time_max)
            ));
            trigger.raise(Level::Stop);
            return;
        }
        screen.note(&format!(
            "waiting for {waited_for}; stopping in {}",
            span(left)
        ));
        next += REPORT_DELAYS.1;
    }
}

/// A list of the programs that this process runs; `None` if there are none.
fn running_program_names() -> Option<String> {
    let running = running_programs();
    let listed = running.iter().map(|program| {
        let since = span(program.elapsed);
        format!("{} (for {since})", program.task)
    });
    count_and_first_names("program", running.len(), listed)
}

/// A count and the first [`LISTED_NAMES_MAX`] names, as in `5 tasks: t0, t1, t2 and 2 more`; `None` if the count is 0.
pub(crate) fn count_and_first_names(
    noun: &str,
    count: usize,
    named: impl Iterator<Item = String>,
) -> Option<String> {
    let listed: Vec<String> = named.take(LISTED_NAMES_MAX).collect();
    let more = match count.saturating_sub(listed.len()) {
        0 => String::new(),
        more => format!(" and {more} more"),
    };
    (count > 0).then(|| format!("{}: {}{more}", counted(count, noun), listed.join(", ")))
}

#[cfg(test)]
mod tests {
    use super::count_and_first_names;

    #[test]
    fn the_first_are_named_and_the_rest_counted() {
        let named = |count: usize| {
            count_and_first_names("task", count, (0..count).map(|n| format!("t{n}")))
        };
        assert_eq!(named(0), None);
        assert_eq!(named(1).as_deref(), Some("1 task: t0"));
        assert_eq!(named(5).as_deref(), Some("5 tasks: t0, t1, t2 and 2 more"));
    }
}
