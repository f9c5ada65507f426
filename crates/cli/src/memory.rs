//! What a process that mostly waits gives back.

use std::time::Duration;

use tokio::time::MissedTickBehavior;

/// After the start, and then again and again: the pages that were used once come back only with use.
const PERIOD: Duration = Duration::from_secs(10);

/// Gives back, now and then, the pages of the heap and of the program that are not used.
pub(crate) fn settle() {
    tokio::spawn(async {
        let mut ticks = tokio::time::interval(PERIOD);
        ticks.set_missed_tick_behavior(MissedTickBehavior::Delay);
        ticks.tick().await;
        // Whoever starts a process and looks at it does so sooner than after a period.
        ticks.reset_after(Duration::from_secs(1));
        loop {
            ticks.tick().await;
            proofmill_kernels::release_heap();
            proofmill_kernels::release_program_pages();
        }
    });
}
