//! A limit on failed logins of each peer.

use std::collections::HashMap;
use std::sync::{Mutex, PoisonError};
use std::time::Duration;

use tokio::time::Instant;

use crate::connections::Peer;

/// Failures that a peer may have at once.
const FAILURES_MAX: u32 = 10;

/// Time after which one more is allowed.
const REFILL: Duration = Duration::from_secs(10);

/// Most peers that are remembered; the one that failed longest ago is forgotten for a new one.
const PEERS_MAX: usize = 4096;

/// The failed logins. Peers without an address, as in tests, count as one.
#[derive(Default)]
pub(super) struct LoginLimiter(Mutex<HashMap<Option<Peer>, Failures>>);

struct Failures {
    count: u32,
    /// Time to which the count belongs.
    since: Instant,
}

// === impl LoginLimiter ===

impl LoginLimiter {
    /// Begins an attempt to log in, which counts as a failure until [`LoginLimiter::note_success`]: attempts at the same time
    /// are limited too. Returns whether the peer may try.
    pub(super) fn begin_attempt(&self, peer: Option<Peer>) -> bool {
        let now = Instant::now();
        let mut peers = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if peers.len() >= PEERS_MAX && !peers.contains_key(&peer) {
            let oldest = peers.iter().min_by_key(|(_, failures)| failures.since);
            let oldest = oldest.map(|(peer, _)| *peer);
            oldest.map(|oldest| peers.remove(&oldest));
        }
        let failures = peers.entry(peer).or_insert(Failures {
            count: 0,
            since: now,
        });
        failures.forgive(now);
        let may_try = failures.count < FAILURES_MAX;
        failures.count += u32::from(may_try);
        may_try
    }

    /// Notes that an attempt that was begun has not failed.
    pub(super) fn note_success(&self, peer: Option<Peer>) {
        let mut peers = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(failures) = peers.get_mut(&peer) {
            failures.count = failures.count.saturating_sub(1);
        }
    }
}

// === impl Failures ===

impl Failures {
    fn forgive(&mut self, now: Instant) {
        while self.count > 0 && now.duration_since(self.since) >= REFILL {
            self.count -= 1;
            self.since += REFILL;
        }
        if self.count == 0 {
            self.since = now;
        }
    }
}

#[cfg(test)]
mod tests {
    use std::net::SocketAddr;

    use super::*;
    use crate::connections::Address;

    fn peer(text: &str) -> Option<Peer> {
        text.parse::<SocketAddr>().expect("an address").peer()
    }

    #[tokio::test(start_paused = true)]
    async fn failures_are_limited_for_each_peer_and_forgiven_in_time() {
        let limiter = LoginLimiter::default();
        let (guesser, other) = (peer("192.0.2.1:1"), peer("192.0.2.2:1"));
        for _ in 0..FAILURES_MAX {
            assert!(limiter.begin_attempt(guesser));
            limiter.note_success(guesser);
        }
        for _ in 0..FAILURES_MAX {
            assert!(limiter.begin_attempt(guesser));
        }
        // Another port is no other peer.
        let same = peer("192.0.2.1:2");
        assert!(!limiter.begin_attempt(same) && limiter.begin_attempt(other));
        tokio::time::advance(REFILL).await;
        assert!(limiter.begin_attempt(guesser) && !limiter.begin_attempt(guesser));
        tokio::time::advance(REFILL * FAILURES_MAX).await;
        for _ in 0..FAILURES_MAX {
            assert!(limiter.begin_attempt(guesser));
        }
        assert!(!limiter.begin_attempt(guesser));
    }

    #[tokio::test(start_paused = true)]
    async fn peers_are_bounded() {
        let limiter = LoginLimiter::default();
        for number in 0..PEERS_MAX + 10 {
            let text = format!("10.0.{}.{}:1", number / 256, number % 256);
            limiter.begin_attempt(peer(&text));
            tokio::time::advance(Duration::from_millis(1)).await;
        }
        let peers = limiter.0.lock().expect("no panic").len();
        assert_eq!(peers, PEERS_MAX);
    }
}
