//! Unit tests of the budget; `tests/budget_model.rs` model-checks the interleavings of its threads.

use std::future::Future;
use std::pin::pin;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex};
use std::task::{Context, Poll, Waker};

use rand::{Rng, SeedableRng, rngs::StdRng};

use crate::budget::{Budget, OverBudget, Reclaim, Reservation};
use crate::interface::{JobId, Owner, Priority};

const OWNER_ONE: Owner = Owner::Registration;
const OWNER_TWO: Owner = Owner::Partition(JobId([2; 16]), 0);

fn poll_once<T>(future: impl Future<Output = T>) -> Option<T> {
    match pin!(future).poll(&mut Context::from_waker(Waker::noop())) {
        Poll::Ready(value) => Some(value),
        Poll::Pending => None,
    }
}

fn take(budget: &Budget, owner: Owner, bytes: u64) -> Reservation {
    poll_once(budget.reserve(owner, bytes, Priority::Normal))
        .expect("does not wait")
        .expect("fits")
}

#[test]
fn reservations_are_counted_and_given_back() {
    let budget = Budget::new(100);
    let mut first = take(&budget, OWNER_ONE, 60);
    let mut second = first.split(20, OWNER_TWO);
    assert_eq!((first.bytes(), second.bytes()), (40, 20));
    first.shrink_to(30);
    second.merge(take(&budget, OWNER_ONE, 5));
    let status = budget.status();
    assert_eq!((status.used, status.peak, status.total), (55, 60, 100));
    let held: Vec<_> = status
        .owners
        .iter()
        .map(|one| (one.owner, one.bytes))
        .collect();
    assert_eq!(held, [(OWNER_ONE, 30), (OWNER_TWO, 25)]);
    drop((first, second));
    assert_eq!((budget.status().used, budget.status().owners), (0, vec![]));
}

#[test]
fn a_request_above_the_total_is_refused_at_once() {
    let budget = Budget::new(100);
    let refused =
        poll_once(budget.reserve(OWNER_ONE, 101, Priority::Critical)).expect("does not wait");
    let expected = OverBudget {
        needed: 101,
        total: 100,
    };
    assert_eq!(refused.unwrap_err(), expected);
}

#[test]
fn a_large_request_at_the_head_is_not_starved_by_small_ones() {
    let budget = Budget::new(100);
    let held = take(&budget, OWNER_ONE, 50);
    let mut large = pin!(budget.reserve(OWNER_TWO, 80, Priority::Normal));
    let mut context = Context::from_waker(Waker::noop());
    assert!(large.as_mut().poll(&mut context).is_pending());
    let mut small = pin!(budget.reserve(OWNER_TWO, 10, Priority::Normal));
    assert!(
        small.as_mut().poll(&mut context).is_pending(),
        "no overtaking"
    );
    drop(held);
    let Poll::Ready(Ok(large)) = large.as_mut().poll(&mut context) else {
        panic!("the large one is served first");
    };
    let Poll::Ready(Ok(_small)) = small.as_mut().poll(&mut context) else {
        panic!("and the small one fits beside it");
    };
    assert_eq!(large.bytes(), 80);
}

#[test]
fn requests_are_granted_by_priority_and_then_by_arrival() {
    let budget = Budget::new(1);
    let held = take(&budget, OWNER_ONE, 1);
    let order = Arc::new(Mutex::new(Vec::new()));
    let runtime = tokio::runtime::Builder::new_current_thread()
        .build()
        .unwrap();
    runtime.block_on(async {
        let mut waiting = Vec::new();
        for (number, priority) in [
            (0, Priority::Low),
            (1, Priority::Normal),
            (2, Priority::Critical),
            (3, Priority::Normal),
        ] {
            let (budget, order) = (budget.clone(), order.clone());
            waiting.push(tokio::spawn(async move {
                let one = budget.reserve(OWNER_TWO, 1, priority).await.unwrap();
                order.lock().unwrap().push(number);
                drop(one);
            }));
            tokio::task::yield_now().await;
        }
        drop(held);
        for one in waiting {
            one.await.unwrap();
        }
    });
    assert_eq!(*order.lock().unwrap(), [2, 1, 3, 0]);
}

#[test]
fn a_request_that_is_dropped_blocks_nobody_and_keeps_nothing() {
    let budget = Budget::new(100);
    let held = take(&budget, OWNER_ONE, 50);
    let mut context = Context::from_waker(Waker::noop());
    let mut small = pin!(budget.reserve(OWNER_TWO, 40, Priority::Normal));
    {
        let mut large = pin!(budget.reserve(OWNER_TWO, 80, Priority::Normal));
        assert!(large.as_mut().poll(&mut context).is_pending());
        assert!(small.as_mut().poll(&mut context).is_pending());
    }
    assert!(small.as_mut().poll(&mut context).is_ready());
    {
        let mut granted = pin!(budget.reserve(OWNER_TWO, 90, Priority::Normal));
        assert!(granted.as_mut().poll(&mut context).is_pending());
        drop(held);
        // Granted by now, and dropped before it was polled again.
    }
    assert_eq!(budget.status().used, 0);
}

/// Reservations that can be reclaimed, one by one.
struct Idle(Mutex<Vec<Reservation>>);

impl Reclaim for Idle {
    fn reclaim(&self, bytes: u64) -> bool {
        let mut held = self.0.lock().unwrap();
        if held.iter().map(Reservation::bytes).sum::<u64>() < bytes {
            return false;
        }
        let mut given = 0;
        while given < bytes {
            let one = held.remove(0);
            given += one.bytes();
            drop(one);
        }
        true
    }
}

#[test]
fn idle_memory_is_reclaimed_before_a_request_waits_and_only_if_it_suffices() {
    let budget = Budget::new(100);
    let idle: Arc<Idle> = Arc::new(Idle(Mutex::new(vec![
        take(&budget, OWNER_ONE, 20),
        take(&budget, OWNER_ONE, 20),
    ])));
    let reclaimer: Arc<dyn Reclaim> = idle.clone();
    budget.reclaim_from(Arc::downgrade(&reclaimer));
    let first = take(&budget, OWNER_TWO, 70);
    assert_eq!(idle.0.lock().unwrap().len(), 1, "one was enough");
    let mut context = Context::from_waker(Waker::noop());
    let mut waiting = pin!(budget.reserve(OWNER_TWO, 60, Priority::Normal));
    assert!(waiting.as_mut().poll(&mut context).is_pending());
    assert_eq!(
        idle.0.lock().unwrap().len(),
        1,
        "it would not have been enough"
    );
    drop(first);
    assert!(waiting.as_mut().poll(&mut context).is_ready());
    assert_eq!(idle.0.lock().unwrap().len(), 1, "nothing had to go");
}

#[test]
fn many_threads_reserve_split_shrink_and_give_up_without_a_byte_lost() {
    const TOTAL: u64 = 1000;
    let budget = Budget::new(TOTAL);
    let held = Arc::new(AtomicU64::new(0));
    let runtime = tokio::runtime::Builder::new_multi_thread()
        .worker_threads(4)
        .build()
        .unwrap();
    runtime.block_on(async {
        let tasks = (0..64u64).map(|seed| {
            let (budget, held) = (budget.clone(), held.clone());
            tokio::spawn(async move {
                let mut rng = StdRng::seed_from_u64(seed);
                for _ in 0..200 {
                    let bytes = rng.random_range(1..=TOTAL);
                    let priority = Priority::ALL[rng.random_range(0..4)];
                    let reserve = budget.reserve(OWNER_ONE, bytes, priority);
                    if rng.random_bool(0.2) {
                        // Dropped after one turn of the other tasks, granted or not.
                        let mut reserve = Box::pin(reserve);
                        let _ = poll_once(reserve.as_mut());
                        tokio::task::yield_now().await;
                        continue;
                    }
                    let mut one = reserve.await.unwrap();
                    let now_held = held.fetch_add(bytes, Ordering::SeqCst) + bytes;
                    assert!(now_held <= TOTAL);
                    let mut two = one.split(rng.random_range(0..=bytes), OWNER_TWO);
                    tokio::task::yield_now().await;
                    held.fetch_sub(bytes, Ordering::SeqCst);
                    one.shrink_to(bytes / 3);
                    if rng.random_bool(0.5) {
                        two.merge(one);
                    }
                }
            })
        });
        for task in tasks.collect::<Vec<_>>() {
            task.await.unwrap();
        }
    });
    let status = budget.status();
    assert_eq!((status.used, status.waiting, status.owners), (0, 0, vec![]));
    assert!(status.peak <= TOTAL);
}
