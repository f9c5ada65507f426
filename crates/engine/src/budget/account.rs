//! The byte budget and requests for reservations of it.

use std::cmp::Reverse;
use std::fmt;
use std::future::Future;
use std::pin::Pin;
use std::sync::{Arc, OnceLock, PoisonError, Weak};
use std::task::{Context, Poll, Waker};

use super::reservation::Reservation;
use super::state::{RequestPlace, State, Waiter};
use crate::interface::{BudgetStatus, Owner, OwnerUse, Priority};
use crate::sync::Mutex;

/// Gives back memory that is held but not in use.
pub(crate) trait Reclaim: Send + Sync {
    /// Drops reservations of at least `bytes` bytes before it returns, and returns true. If so many cannot
    /// be given back, drops nothing and returns false.
    fn reclaim(&self, bytes: u64) -> bool;
}

/// A number of bytes from which reservations are granted, by priority and then by arrival. Clones share it.
///
/// A reservation never grows: a holder that waited for more could wait for another holder that does the
/// same. A user reserves all that it needs at once, and gives back early what it no longer needs.
#[derive(Clone)]
pub(crate) struct Budget {
    shared: Arc<Shared>,
}

/// The error of a request for more bytes than the whole budget, which could never be granted.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{needed} bytes of a budget of {total}")]
pub(crate) struct OverBudget {
    /// The bytes asked for.
    pub(crate) needed: u64,
    /// The size of the budget, in bytes.
    pub(crate) total: u64,
}

pub(super) struct Shared {
    state: Mutex<State>,
    reclaimer: OnceLock<Weak<dyn Reclaim>>,
}

/// A waiting request. Dropping the future gives up the place in the order, and the bytes if they were
/// granted in the meantime.
struct Reserving<'a> {
    budget: &'a Budget,
    owner: Owner,
    bytes: u64,
    priority: Priority,
    /// The place of the request in the order; none before the first poll.
    place: Option<RequestPlace>,
}

// === impl Budget ===

impl Budget {
    pub(crate) fn new(total: u64) -> Self {
        let state = State {
            total,
            ..State::default()
        };
        Self {
            shared: Arc::new(Shared {
                state: Mutex::new(state),
                reclaimer: OnceLock::new(),
            }),
        }
    }

    /// Sets the reclaimer, which is asked for memory before a request waits. Only the first call has an
    /// effect.
    pub(crate) fn reclaim_from(&self, reclaimer: Weak<dyn Reclaim>) {
        // A second call is a mistake of this crate, which has one residency for each budget.
        let first = self.shared.reclaimer.set(reclaimer).is_ok();
        debug_assert!(first, "one reclaimer for each budget");
    }

    /// Waits until `bytes` bytes are reserved. The future may be dropped at any time.
    ///
    /// # Errors
    ///
    /// [`OverBudget`], at once, if the whole budget is smaller than `bytes`.
    pub(crate) async fn reserve(
        &self,
        owner: Owner,
        bytes: u64,
        priority: Priority,
    ) -> Result<Reservation, OverBudget> {
        let total = self.shared.with(|state| state.total);
        if bytes > total {
            return Err(OverBudget {
                needed: bytes,
                total,
            });
        }
        if bytes == 0 {
            // A request for nothing does not wait behind others.
            return Ok(Reservation::new(self.shared.clone(), owner, 0));
        }
        let reserving = Reserving {
            budget: self,
            owner,
            bytes,
            priority,
            place: None,
        };
        Ok(reserving.await)
    }

    /// Tries again to serve the first waiting request, after memory has become reclaimable.
    pub(crate) fn reconsider(&self) {
        self.shared.grant_waiting();
    }

    /// The size of the budget, in bytes.
    pub(crate) fn total(&self) -> u64 {
        self.shared.with(|state| state.total)
    }

    /// Bytes that are not reserved.
    pub(crate) fn free(&self) -> u64 {
        self.shared.with(|state| state.total - state.used)
    }

    /// The current state. Its count of evictions is 0: the residency fills that in.
    pub(crate) fn status(&self) -> BudgetStatus {
        self.shared.with(|state| {
            let mut owners: Vec<OwnerUse> = state
                .owners
                .iter()
                .map(|(owner, bytes)| OwnerUse {
                    owner: *owner,
                    bytes: *bytes,
                })
                .collect();
            owners.sort_by_key(|used| Reverse(used.bytes));
            BudgetStatus {
                total: state.total,
                used: state.used,
                peak: state.peak,
                waiting: u32::try_from(state.waiters.len()).unwrap_or(u32::MAX),
                waiting_bytes: state.waiters.values().map(|waiter| waiter.bytes).sum(),
                owners,
                evictions: 0,
            }
        })
    }
}

impl fmt::Debug for Budget {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (used, total) = self.shared.with(|state| (state.used, state.total));
        write!(f, "Budget({used} of {total} bytes)")
    }
}

// === impl Shared ===

impl Shared {
    pub(super) fn with<T>(&self, act: impl FnOnce(&mut State) -> T) -> T {
        // No code panics under this lock in the middle of a change, so a poisoned lock is safe to use.
        act(&mut self.state.lock().unwrap_or_else(PoisonError::into_inner))
    }

    /// Grants waiting requests as long as they fit, and reclaims memory for the first that does not. Called
    /// after every change that may let one be granted: bytes given back, a request that came or went, a key
    /// that became idle.
    pub(super) fn grant_waiting(&self) {
        loop {
            let (wakers, missing) = self.with(|state| {
                let wakers = state.grant();
                if state.reclaiming {
                    state.changed = true;
                    return (wakers, None);
                }
                let missing = state.missing();
                state.reclaiming = missing.is_some();
                state.changed = false;
                (wakers, missing)
            });
            wakers.into_iter().for_each(Waker::wake);
            let Some(missing) = missing else { return };
            // The lock is not held here, as dropping reclaimed reservations calls this function again.
            let reclaimer = self.reclaimer.get().and_then(Weak::upgrade);
            let reclaimed = reclaimer.is_some_and(|reclaimer| reclaimer.reclaim(missing));
            let again = self.with(|state| {
                state.reclaiming = false;
                state.changed
            });
            if !reclaimed && !again {
                return;
            }
        }
    }
}

// === impl Reserving ===

impl Future for Reserving<'_> {
    type Output = Reservation;

    fn poll(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Reservation> {
        let this = &mut *self;
        let shared = &this.budget.shared;
        let place = match this.place {
            Some(place) => place,
            None => {
                // The waker is stored before any grant can happen, so that no wake-up is lost.
                let place = shared.with(|state| {
                    let place = (Reverse(this.priority), state.next);
                    state.next += 1;
                    let waiter = Waiter {
                        owner: this.owner,
                        bytes: this.bytes,
                        waker: Some(context.waker().clone()),
                    };
                    state.waiters.insert(place, waiter);
                    place
                });
                this.place = Some(place);
                shared.grant_waiting();
                place
            }
        };
        let waits = shared.with(|state| match state.waiters.get_mut(&place) {
            Some(waiter) => {
                waiter.waker = Some(context.waker().clone());
                true
            }
            None => false,
        });
        if waits {
            return Poll::Pending;
        }
        this.place = None;
        Poll::Ready(Reservation::new(shared.clone(), this.owner, this.bytes))
    }
}

impl Drop for Reserving<'_> {
    fn drop(&mut self) {
        let Some(place) = self.place else { return };
        let shared = &self.budget.shared;
        shared.with(|state| {
            if state.waiters.remove(&place).is_none() {
                // The request was granted, but the future was dropped before it returned the bytes.
                state.give_back(self.owner, self.bytes);
            }
        });
        shared.grant_waiting();
    }
}
