//! Model check of the budget's source: a scheduler tries the interleavings of its threads, all of them for
//! a few small histories, and random ones for larger histories. A deadlock fails the test; a lost wake-up
//! is one.

use std::sync::Arc;

use budget::{Budget, Reclaim, Reservation};
use interface::{Owner, Priority};
use shuttle::future::block_on;
use shuttle::thread;

#[expect(
    dead_code,
    unused_imports,
    reason = "the model uses a part of what the engine does"
)]
#[path = "../src/budget/mod.rs"]
mod budget;

/// The items that the budget's source imports from its crate.
mod interface {
    pub(crate) use proofmill_engine::{BudgetStatus, JobId, Owner, OwnerUse, Priority};
}

/// The model's locks.
mod sync {
    pub(crate) use shuttle::sync::Mutex;
}

const OWNER: Owner = Owner::Registration;
const KEYS: Owner = Owner::Partition(interface::JobId([0; 16]), 0);

/// One thread: reserves bytes, and gives them back.
fn reserve(budget: &Budget, bytes: u64, priority: Priority) {
    let one = block_on(budget.reserve(OWNER, bytes, priority)).expect("fits");
    assert_eq!(one.bytes(), bytes);
}

fn all_given_back(budget: &Budget) {
    let status = budget.status();
    assert_eq!((status.used, status.waiting), (0, 0));
    assert!(status.peak <= status.total);
}

/// Three requests that do not fit beside each other.
fn contention() {
    let budget = Budget::new(2);
    let requests = [
        (2, Priority::Normal),
        (1, Priority::Normal),
        (2, Priority::Critical),
    ];
    let threads = requests.map(|(bytes, priority)| {
        let budget = budget.clone();
        thread::spawn(move || reserve(&budget, bytes, priority))
    });
    for thread in threads {
        thread.join().unwrap();
    }
    all_given_back(&budget);
}

/// A request is dropped at any moment, waiting or granted, and the one behind it still succeeds.
fn giving_up() {
    let budget = Budget::new(2);
    let held = block_on(budget.reserve(OWNER, 1, Priority::Normal)).unwrap();
    let gives_up = {
        let budget = budget.clone();
        thread::spawn(move || {
            let mut wanted = Box::pin(budget.reserve(OWNER, 2, Priority::High));
            let mut context = std::task::Context::from_waker(std::task::Waker::noop());
            let _ = wanted.as_mut().poll(&mut context);
            thread::yield_now();
        })
    };
    let waits = {
        let budget = budget.clone();
        thread::spawn(move || reserve(&budget, 1, Priority::Normal))
    };
    drop(held);
    gives_up.join().unwrap();
    waits.join().unwrap();
    all_given_back(&budget);
}

/// Keys in use, and keys that can be evicted.
struct Keys {
    idle: sync::Mutex<Vec<Reservation>>,
}

impl Reclaim for Keys {
    fn reclaim(&self, bytes: u64) -> bool {
        let mut idle = self.idle.lock().unwrap();
        let enough = idle.iter().map(Reservation::bytes).sum::<u64>() >= bytes;
        let going = if enough {
            std::mem::take(&mut *idle)
        } else {
            Vec::new()
        };
        drop(idle);
        enough && !going.is_empty()
    }
}

/// A key becomes idle while a request finds that there is nothing to reclaim.
fn becoming_idle() {
    let budget = Budget::new(2);
    let keys: Arc<Keys> = Arc::new(Keys {
        idle: sync::Mutex::new(Vec::new()),
    });
    let reclaimer: Arc<dyn Reclaim> = keys.clone();
    budget.reclaim_from(Arc::downgrade(&reclaimer));
    let key = block_on(budget.reserve(KEYS, 1, Priority::Normal)).unwrap();
    let waits = [2, 2].map(|bytes| {
        let budget = budget.clone();
        thread::spawn(move || reserve(&budget, bytes, Priority::Normal))
    });
    keys.idle.lock().unwrap().push(key);
    budget.reconsider();
    for thread in waits {
        thread.join().unwrap();
    }
    all_given_back(&budget);
}

/// A reservation is split while others wait for its parts.
fn parts() {
    let budget = Budget::new(3);
    let mut whole = block_on(budget.reserve(OWNER, 3, Priority::Normal)).unwrap();
    let waits = [1, 2].map(|bytes| {
        let budget = budget.clone();
        thread::spawn(move || reserve(&budget, bytes, Priority::Normal))
    });
    let part = whole.split(1, KEYS);
    whole.shrink_to(1);
    whole.merge(part);
    drop(whole);
    for thread in waits {
        thread.join().unwrap();
    }
    all_given_back(&budget);
}

const HISTORIES: [fn(); 4] = [contention, giving_up, becoming_idle, parts];

#[test]
fn no_request_is_forgotten_in_the_first_interleavings_of_each_history() {
    for history in HISTORIES {
        shuttle::check_dfs(history, Some(20_000));
    }
}

#[test]
fn no_request_is_forgotten_in_random_interleavings() {
    for history in HISTORIES {
        shuttle::check_random(history, 2_000);
        shuttle::check_pct(history, 2_000, 3);
    }
}
