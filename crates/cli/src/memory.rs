//! A background task that returns unused pages of this process to the system.

use std::time::Duration;

use tokio::time::MissedTickBehavior;

/// Interval at which unused pages are returned. A returned page becomes resident again only when it is used.
const PERIOD: Duration = Duration::from_secs(10);

/// Starts a task that returns unused heap and program pages to the system, first after one second and then every
/// [`PERIOD`].
pub(crate) fn start_releasing_pages() {
    tokio::spawn(async {
        let mut ticks = tokio::time::interval(PERIOD);
        ticks.set_missed_tick_behavior(MissedTickBehavior::Delay);
        ticks.tick().await;
        // A person who starts a process and inspects its memory does so within the first period.
        ticks.reset_after(Duration::from_secs(1));
        loop {
            ticks.tick().await;
            proofmill_memory::release_heap();
            proofmill_memory::release_program_pages();
        }
    });
}
