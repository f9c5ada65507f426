//! Sessions of visitors who have logged in.
//!
//! A session is known by a random id of 256 bits, of which the server keeps the digest only, and has a second random number
//! that each change must carry, so that another page cannot have the browser make one.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use sha2::{Digest, Sha256};
use subtle::ConstantTimeEq;
use tokio::time::Instant;

use super::visitors::{Role, random_text};

/// Time after the last request, or after the last page was closed or hidden, at which a session ends.
const IDLE_MAX: Duration = Duration::from_secs(30 * 60);

/// Age at which a session ends.
const AGE_MAX: Duration = Duration::from_secs(12 * 60 * 60);

/// Most sessions at a time, and of one client: the one that was used longest ago ends for a new one.
const SESSIONS_MAX: usize = 256;
const SESSIONS_OF_CLIENT_MAX: usize = 16;

/// Digest of a session's id.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct SessionKey([u8; 32]);

/// A visitor who has logged in.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Visitor {
    /// Name of the client.
    pub(super) name: Arc<str>,
    pub(super) role: Role,
    /// Number that changes must carry.
    pub(super) csrf: Arc<str>,
    pub(super) session: SessionKey,
}

/// The sessions that have not ended.
#[derive(Default)]
pub(super) struct Sessions(Mutex<BTreeMap<SessionKey, Session>>);

struct Session {
    visitor: Visitor,
    began: Instant,
    used: Instant,
}

// === impl Visitor ===

impl Visitor {
    /// Whether a number is the one that this visitor's changes carry, compared in constant time.
    pub(super) fn has_csrf(&self, shown: &[u8]) -> bool {
        self.csrf.as_bytes().ct_eq(shown).into()
    }
}

// === impl Sessions ===

impl Sessions {
    /// Begins a session. Returns its id, which only the visitor's browser keeps.
    pub(super) fn begin(&self, name: Arc<str>, role: Role) -> Result<String, String> {
        let (id, csrf) = (random_text()?, random_text()?);
        let (key, now) = (key_of(&id), Instant::now());
        let visitor = Visitor {
            name,
            role,
            csrf: csrf.into(),
            session: key,
        };
        let mut sessions = self.open(now);
        let is_same = |session: &Session| session.visitor.name == visitor.name;
        if sessions.values().filter(|it| is_same(it)).count() >= SESSIONS_OF_CLIENT_MAX {
            end_oldest(&mut sessions, is_same);
        }
        if sessions.len() >= SESSIONS_MAX {
            end_oldest(&mut sessions, |_| true);
        }
        let (began, used) = (now, now);
        sessions.insert(
            key,
            Session {
                visitor,
                began,
                used,
            },
        );
        Ok(id)
    }

    /// The visitor of a session, which is used now.
    pub(super) fn visit(&self, id: &str) -> Option<Visitor> {
        self.touch(key_of(id))
    }

    /// As [`Sessions::visit`], for a stream that goes on.
    pub(super) fn touch(&self, key: SessionKey) -> Option<Visitor> {
        let now = Instant::now();
        let mut sessions = self.open(now);
        let session = sessions.get_mut(&key)?;
        session.used = now;
        Some(session.visitor.clone())
    }

    /// Ends a session.
    pub(super) fn end(&self, key: SessionKey) {
        self.open(Instant::now()).remove(&key);
    }

    /// The sessions, without those that have ended by now.
    fn open(&self, now: Instant) -> MutexGuard<'_, BTreeMap<SessionKey, Session>> {
        // No code panics while the lock is held.
        let mut sessions = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        sessions.retain(|_, session| {
            now.duration_since(session.used) < IDLE_MAX
                && now.duration_since(session.began) < AGE_MAX
        });
        sessions
    }
}

fn end_oldest(sessions: &mut BTreeMap<SessionKey, Session>, is_meant: impl Fn(&Session) -> bool) {
    let meant = sessions.iter().filter(|(_, session)| is_meant(session));
    let oldest = meant.min_by_key(|(_, session)| session.used);
    if let Some(key) = oldest.map(|(key, _)| *key) {
        sessions.remove(&key);
    }
}

fn key_of(id: &str) -> SessionKey {
    SessionKey(Sha256::digest(id.as_bytes()).into())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn begin(sessions: &Sessions, name: &str) -> String {
        let id = sessions.begin(name.into(), Role::Viewer);
        id.expect("random numbers")
    }

    #[tokio::test(start_paused = true)]
    async fn a_session_ends_when_it_is_idle_old_or_ended() {
        let sessions = Sessions::default();
        let (idle, busy, ended) = (
            begin(&sessions, "a"),
            begin(&sessions, "b"),
            begin(&sessions, "c"),
        );
        let key = sessions.visit(&ended).expect("there").session;
        sessions.end(key);
        assert!(sessions.visit(&ended).is_none() && sessions.touch(key).is_none());
        assert!(sessions.visit("").is_none() && sessions.visit(&idle[1..]).is_none());
        let mut left = AGE_MAX;
        let step = Duration::from_secs(20 * 60);
        while left > step {
            tokio::time::advance(step).await;
            left -= step;
            assert!(sessions.visit(&busy).is_some(), "{left:?} before its end");
        }
        assert!(sessions.visit(&idle).is_none());
        tokio::time::advance(step).await;
        assert!(sessions.visit(&busy).is_none());
    }

    #[tokio::test(start_paused = true)]
    async fn sessions_are_bounded_and_the_one_unused_longest_ends_first() {
        let sessions = Sessions::default();
        let other = begin(&sessions, "other");
        let mut ids = Vec::new();
        for _ in 0..SESSIONS_OF_CLIENT_MAX {
            tokio::time::advance(Duration::from_secs(1)).await;
            ids.push(begin(&sessions, "a"));
        }
        tokio::time::advance(Duration::from_secs(1)).await;
        assert!(sessions.visit(&ids[0]).is_some());
        ids.push(begin(&sessions, "a"));
        let open = |id: &String| sessions.touch(key_of(id)).is_some();
        assert!(open(&ids[0]) && !open(&ids[1]) && open(&ids[2]) && open(&other));
        for number in 0..SESSIONS_MAX {
            begin(&sessions, &format!("client {number}"));
        }
        assert_eq!(sessions.open(Instant::now()).len(), SESSIONS_MAX);
    }

    #[test]
    fn ids_and_numbers_are_random_and_compared_whole() {
        let sessions = Sessions::default();
        let (a, b) = (begin(&sessions, "a"), begin(&sessions, "a"));
        assert_eq!((a.len(), b.len()), (64, 64));
        let (a, b) = (sessions.visit(&a), sessions.visit(&b));
        let (a, b) = (a.expect("there"), b.expect("there"));
        assert!(a.has_csrf(a.csrf.as_bytes()) && !a.has_csrf(b.csrf.as_bytes()));
        assert!(!a.has_csrf(b"") && !a.has_csrf(&a.csrf.as_bytes()[1..]));
    }
}
