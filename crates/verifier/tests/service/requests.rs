//! Tests of requests: accepted, refused and withdrawn ones, and their outcome when the service ends.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::time::Duration;

use ark_ec::PrimeGroup;
use ark_grumpkin::Projective as Point;
use bytes::Bytes;
use proofmill_groth16::Bn254;
use proofmill_shutdown::Level;
use proofmill_verifier::isolation::Costs;
use proofmill_verifier::{
    Invalid, KeyDigest, KeyError, Kind, Kinds, NoRandomness, Options, Refused, Request, Status,
    Unavailable, UnusableKey,
};
use tower_service::Service as _;

use super::support::{Circuit, Running, id, verdicts};

/// The status of requests that have no verdict when the service stops.
const STOPPED: Status = Status::Unavailable(Unavailable::Stopped);

/// A kind whose proof is a word: `good`, `bad`, `panic`, or `wait`, which blocks until the test lets it go on.
struct Words {
    may_go_on: Arc<AtomicBool>,
    reduced: Arc<AtomicUsize>,
}

impl Kind for Words {
    type Key = ();
    type Claim = String;
    type Weight = u64;
    type Value = Point;

    fn name(&self) -> &str {
        "words"
    }

    fn has_keys(&self) -> bool {
        false
    }

    fn read_key(&self, _: &[u8]) -> Result<(), UnusableKey> {
        Err(UnusableKey::because("no keys"))
    }

    fn reduce(&self, _: Option<&Arc<()>>, _: &[u8], proof: &[u8]) -> Result<String, Invalid> {
        self.reduced.fetch_add(1, Ordering::Relaxed);
        let word = String::from_utf8(proof.to_vec()).map_err(Invalid::because)?;
        if word.starts_with("wait") {
            while !self.may_go_on.load(Ordering::Relaxed) {
                std::thread::yield_now();
            }
        }
        Ok(word)
    }

    fn draw_weights(&self, count: usize) -> Result<Vec<u64>, NoRandomness> {
        Ok(vec![3; count])
    }

    fn times(&self, weight: &u64, factor: u64) -> u64 {
        weight * factor
    }

    fn value(&self, claims: &[(&String, u64)]) -> Point {
        let terms = claims.iter().map(|(claim, weight)| match claim.as_str() {
            "panic" => panic!("a fault in a batch"),
            "bad" => Point::generator() * ark_grumpkin::Fr::from(*weight),
            _ => Point::default(),
        });
        terms.sum()
    }

    fn check(&self, claim: &String) -> Result<(), Invalid> {
        match claim.as_str() {
            "panic" => panic!("a fault alone"),
            "bad" => Err(Invalid("a bad word".into())),
            _ => Ok(()),
        }
    }

    fn costs(&self) -> Costs {
        Costs {
            fixed: 1.0,
            each: 1.0,
        }
    }
}

struct Desk {
    running: Running,
    may_go_on: Arc<AtomicBool>,
    reduced: Arc<AtomicUsize>,
}

fn words(change: impl FnOnce(&mut Options)) -> Desk {
    let (may_go_on, reduced) = <(Arc<AtomicBool>, Arc<AtomicUsize>)>::default();
    let mut options = Options::of(Kinds::none().with(Words {
        may_go_on: may_go_on.clone(),
        reduced: reduced.clone(),
    }));
    options.threads = 2;
    change(&mut options);
    Desk {
        running: Running::of(options),
        may_go_on,
        reduced,
    }
}

fn word(source: &str, id: &str, word: &'static str) -> Request {
    Request::new(source, id, "words", Bytes::from_static(word.as_bytes()))
}

#[tokio::test(flavor = "multi_thread")]
async fn a_panic_gives_no_verdict() {
    let desk = words(|_| {});
    // Both threads are busy until all requests have arrived, so that they form one batch.
    let mut requests = vec![word("a", "w1", "wait"), word("a", "w2", "wait")];
    requests.extend([
        word("a", "1", "good"),
        word("a", "2", "panic"),
        word("b", "3", "good"),
    ]);
    let handle = desk.running.handle.clone();
    let all = tokio::spawn(async move { verdicts(&handle, requests).await });
    while desk.running.handle.report().under_way < 5 {
        tokio::time::sleep(Duration::from_millis(1)).await;
    }
    desk.may_go_on.store(true, Ordering::Relaxed);
    let all = all.await.unwrap();
    let names: Vec<_> = all.iter().map(|verdict| verdict.status.name()).collect();
    assert_eq!(names, ["valid", "valid", "valid", "unavailable", "valid"]);
    assert!(
        matches!(&all[3].status, Status::Unavailable(Unavailable::Internal(why))
        if why == "a fault alone")
    );
    // A repeated attempt is verified anew.
    let again = desk
        .running
        .handle
        .verify(word("a", "2", "good"))
        .await
        .unwrap();
    assert_eq!(again.status, Status::Valid);
}

#[tokio::test(flavor = "multi_thread")]
async fn the_same_request_is_verified_once() {
    let desk = words(|_| {});
    let handle = &desk.running.handle;
    let [first, second] = [(); 2].map(|()| handle.submit(word("a", "1", "wait")));
    let (first, second) = (first.await.unwrap(), second.await.unwrap());
    let conflict = handle.submit(word("a", "1", "good")).await;
    assert_eq!(conflict.unwrap_err(), Refused::Conflict("1".into()));
    desk.may_go_on.store(true, Ordering::Relaxed);
    assert_eq!(first.await.status, Status::Valid);
    assert_eq!(second.await.status, Status::Valid);
    let known = handle.verify(word("a", "1", "wait")).await.unwrap();
    assert_eq!(known.status, Status::Valid);
    assert_eq!(desk.reduced.load(Ordering::Relaxed), 1);
    // The same id of another source is another request.
    let other = handle.verify(word("b", "1", "bad")).await.unwrap();
    assert_eq!(other.status, Status::Invalid(Invalid("a bad word".into())));
}

#[tokio::test(flavor = "multi_thread")]
async fn deadlines_and_cancellations_are_answered_at_once() {
    let desk = words(|_| {});
    let handle = &desk.running.handle;
    let [first, second] = [word("a", "w1", "wait"), word("a", "w2", "wait")];
    let late = Request {
        deadline: Some(Duration::from_millis(20)),
        ..word("a", "late", "good")
    };
    let first = handle.submit(first).await.unwrap();
    let second = handle.submit(second).await.unwrap();
    let late = handle.submit(late).await.unwrap();
    let taken_back = handle.submit(word("a", "back", "good")).await.unwrap();
    assert_eq!(
        late.await.status,
        Status::Unavailable(Unavailable::Deadline)
    );
    assert!(handle.cancel("a", "", "back"));
    assert!(!handle.cancel("a", "", "back"));
    assert_eq!(
        taken_back.await.status,
        Status::Unavailable(Unavailable::Cancelled)
    );
    assert_eq!(handle.cancel_source("a", ""), 2);
    for pending in [first, second] {
        assert_eq!(
            pending.await.status,
            Status::Unavailable(Unavailable::Cancelled)
        );
    }
    desk.may_go_on.store(true, Ordering::Relaxed);
}

#[tokio::test(flavor = "multi_thread")]
async fn where_there_is_no_room_requests_wait() {
    let desk = words(|options| options.limits.requests = 3);
    let handle = desk.running.handle.clone();
    let requests = (0..40).map(|number| match number {
        0 | 1 => word("a", &id(number), "wait"),
        _ => word("a", &id(number), "good"),
    });
    let requests: Vec<_> = requests.collect();
    let all = tokio::spawn(async move { verdicts(&handle, requests).await });
    while desk.running.handle.report().under_way < 3 {
        tokio::time::sleep(Duration::from_millis(1)).await;
    }
    // No more come.
    tokio::time::sleep(Duration::from_millis(50)).await;
    assert_eq!(desk.running.handle.report().under_way, 3);
    // A request is answered when its deadline passes.
    let late = Request {
        deadline: Some(Duration::from_millis(10)),
        ..word("a", "late", "good")
    };
    let late = desk.running.handle.verify(late).await.unwrap();
    assert_eq!(late.status, Status::Unavailable(Unavailable::Deadline));
    desk.may_go_on.store(true, Ordering::Relaxed);
    let all = all.await.unwrap();
    assert!(all.iter().all(|verdict| verdict.status == Status::Valid));
}

#[tokio::test(flavor = "multi_thread")]
async fn a_drain_answers_everything_and_takes_nothing_more() {
    let desk = words(|_| {});
    let handle = &desk.running.handle;
    let mut pending = Vec::new();
    for number in 0..30 {
        let request = word("a", &id(number), if number < 2 { "wait" } else { "bad" });
        pending.push(handle.submit(request).await.unwrap());
    }
    desk.running.trigger.raise(Level::Drain);
    // The service may still have to see it; a request that it takes until then is answered like the others.
    let closing = async {
        // Each is another one: one that is under way may come again.
        for number in pending.len().. {
            let request = word("b", &id(number), "bad");
            let mut late = handle.submit(request).await.unwrap();
            match tokio::time::timeout(Duration::ZERO, &mut late).await {
                Ok(verdict) if verdict.status == STOPPED => break,
                Ok(verdict) => assert_eq!(verdict.status.name(), "invalid"),
                Err(_) => pending.push(late),
            }
            tokio::time::sleep(Duration::from_millis(1)).await;
        }
    };
    let closed = tokio::time::timeout(Duration::from_secs(60), closing).await;
    closed.expect("it closes");
    desk.may_go_on.store(true, Ordering::Relaxed);
    desk.running.task.await.unwrap();
    for (number, pending) in pending.into_iter().enumerate() {
        let name = pending.await.status.name();
        assert_eq!(name, if number < 2 { "valid" } else { "invalid" });
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_stop_answers_everything_at_once() {
    let desk = words(|options| options.limits.requests = 1);
    let handle = &desk.running.handle;
    let pending = handle.submit(word("a", "1", "wait")).await.unwrap();
    let waiting = tokio::spawn({
        let handle = handle.clone();
        async move { handle.submit(word("a", "2", "good")).await.unwrap().await }
    });
    // So that it waits for room, most often; the answer is the same if it comes later.
    tokio::time::sleep(Duration::from_millis(20)).await;
    desk.running.trigger.raise(Level::Stop);
    desk.running.task.await.unwrap();
    assert_eq!(pending.await.status, STOPPED);
    assert_eq!(waiting.await.unwrap().status, STOPPED);
    let late = handle.verify(word("a", "3", "good")).await.unwrap();
    assert_eq!(late.status, STOPPED);
    desk.may_go_on.store(true, Ordering::Relaxed);
}

#[tokio::test(flavor = "multi_thread")]
async fn the_service_ends_when_its_trigger_is_dropped() {
    let desk = words(|_| {});
    let pending = desk
        .running
        .handle
        .submit(word("a", "1", "wait"))
        .await
        .unwrap();
    drop(desk.running.trigger);
    desk.running.task.await.unwrap();
    assert_eq!(pending.await.status, STOPPED);
    desk.may_go_on.store(true, Ordering::Relaxed);
}

#[tokio::test(flavor = "multi_thread")]
async fn unacceptable_requests_are_refused_with_a_reason() {
    let desk = words(|options| options.request_bytes = 10);
    let handle = &desk.running.handle;
    let long = handle
        .submit(word("a", "1", "a word of many letters"))
        .await;
    assert_eq!(
        long.unwrap_err(),
        Refused::TooLarge {
            found: 22,
            limit: 10
        }
    );
    for length in [0, 129] {
        let refused = handle.submit(word("a", &"x".repeat(length), "good")).await;
        assert_eq!(refused.unwrap_err(), Refused::Id(length));
    }
    let long = Request {
        source: "x".repeat(129).into(),
        ..word("a", "1", "good")
    };
    assert_eq!(handle.submit(long).await.unwrap_err(), Refused::Source(129));
    let unknown = Request::new("a", "1", "spells", "good");
    let unknown = handle
        .verify(unknown)
        .await
        .unwrap()
        .status
        .reason()
        .unwrap();
    assert_eq!(
        unknown,
        "no kind of proof is called \"spells\": there are words"
    );
}

#[tokio::test(flavor = "multi_thread")]
async fn keys_belong_to_the_client_that_added_them() {
    let running = Running::of(Options::of(Kinds::all(None)));
    let handle = &running.handle;
    let kind = "groth16-bn254";
    let mut circuit = Circuit::<Bn254>::new(1, 1);
    let proven = circuit.prove();
    let absent = KeyDigest::of(kind, &circuit.key_json());
    let verdict = handle
        .verify(proven.json("a", "1", kind, absent))
        .await
        .unwrap();
    assert_eq!(
        verdict.status,
        Status::Unavailable(Unavailable::UnknownKey(absent))
    );
    let keyless = Request::new("a", "1", kind, "");
    let verdict = handle.verify(keyless).await.unwrap();
    assert_eq!(verdict.status, Status::Unavailable(Unavailable::NoKey));

    let key = handle.add_key("a", kind, circuit.key_json()).await.unwrap();
    assert_eq!(key, absent);
    assert_eq!(handle.keys("a").len(), 1);
    let verdict = handle
        .verify(proven.json("a", "1", kind, key))
        .await
        .unwrap();
    assert_eq!(verdict.status, Status::Valid);
    let others = handle
        .verify(proven.json("b", "1", kind, key))
        .await
        .unwrap();
    assert_eq!(
        others.status,
        Status::Unavailable(Unavailable::UnknownKey(key))
    );
    assert!(handle.remove_key("a", key));
    assert!(!handle.remove_key("a", key));
    assert!(handle.keys("a").is_empty());

    let garbage = handle.add_key("a", kind, Bytes::from_static(b"{}")).await;
    assert!(matches!(garbage, Err(KeyError::Unusable(_))), "{garbage:?}");
    let unknown = handle.add_key("a", "spells", Bytes::new()).await;
    assert!(matches!(unknown, Err(KeyError::UnknownKind { .. })));
}

#[tokio::test(flavor = "multi_thread")]
async fn it_is_a_tower_service() {
    let desk = words(|_| {});
    let mut service = desk.running.handle.clone();
    std::future::poll_fn(|context| service.poll_ready(context))
        .await
        .unwrap();
    let verdict = service.call(word("a", "1", "good")).await.unwrap();
    assert_eq!(verdict.status, Status::Valid);
    assert_eq!(verdict.stats.batch, 1);
}
