//! Tests of the log on a NATS server.

use std::collections::HashSet;
use std::sync::Arc;
use std::time::Duration;

use async_nats::jetstream::message::PublishMessage;
use futures_util::FutureExt;
use proofmill_bus::{
    AppendError, ConnectError, Connection, Credentials, JetStreamLog, Leases, Log, NatsOptions, Op,
    Seq, Sweeper, open_blobs, until_durable,
};
use proofmill_nats_server::{Cluster, NatsServer};

use crate::scenario::{batch, check_entries, entries, key};

fn block_on<F: Future>(future: F) -> F::Output {
    tokio::runtime::Builder::new_multi_thread()
        .worker_threads(2)
        .enable_all()
        .build()
        .unwrap()
        .block_on(future)
}

/// Longest wait for anything, on a machine that may give a process no time for several seconds.
const PATIENCE: Duration = Duration::from_secs(60);

async fn connect(url: &str) -> Connection {
    let mut options = NatsOptions::new(url);
    options.connect_timeout = PATIENCE;
    Connection::open(options).await.unwrap()
}

async fn append(log: &JetStreamLog, n: u64) -> Seq {
    log.append(batch(n)).await.unwrap()
}

#[test]
fn batches_survive_in_order_and_the_stream_stays_small() {
    let server = NatsServer::start();
    block_on(async {
        let connection = connect(&server.url()).await;
        let log = JetStreamLog::open(&connection, "w").await.unwrap();
        for n in 0..5000 {
            // Accepted at once, although it has not reached the server.
            let seq = log.append(batch(n)).now_or_never().unwrap().unwrap();
            if n % 10 == 0 {
                until_durable(&mut log.durable(), seq).await.unwrap();
            }
        }
        assert_eq!(check_entries(&log).await, Some(4999));
        log.close().await.unwrap();
        let again = JetStreamLog::open(&connection, "w").await.unwrap();
        assert_eq!(check_entries(&again).await, Some(4999));
        append(&again, 5000).await;
        assert_eq!(check_entries(&again).await, Some(5000));
        let found = again.get(&key("task.4999")).await.unwrap().unwrap();
        assert_eq!(found.seq, Seq(4999 * 3 + 1));
    });
    let mut bytes = 0;
    for file in walk(&server.dir().join("store")) {
        bytes += file.metadata().unwrap().len();
    }
    assert!(bytes < 24 << 20, "{bytes} bytes of files for 41 records");
}

fn walk(dir: &std::path::Path) -> Vec<std::path::PathBuf> {
    let mut files = Vec::new();
    for entry in std::fs::read_dir(dir).unwrap() {
        let path = entry.unwrap().path();
        if path.is_dir() {
            files.extend(walk(&path));
        } else {
            files.push(path);
        }
    }
    files
}

/// A record that stays for ever among many short-lived ones must not keep the stream from
/// shrinking.
#[test]
fn old_records_are_carried_along() {
    let server = NatsServer::start();
    block_on(async {
        let connection = connect(&server.url()).await;
        let log = JetStreamLog::open(&connection, "w").await.unwrap();
        log.append(vec![Op::put(key("old"), "still here")])
            .await
            .unwrap();
        for n in 0..600_u32 {
            let value = vec![n as u8; 100_000];
            let seq = log.append(vec![Op::put(key("new"), value)]).await.unwrap();
            until_durable(&mut log.durable(), seq).await.unwrap();
        }
        for log in [&log, &JetStreamLog::open(&connection, "w").await.unwrap()] {
            let found = entries(log).await;
            assert_eq!(found.len(), 2);
            assert_eq!(
                (found[0].seq, &found[0].value[..]),
                (Seq(1), &b"still here"[..])
            );
            assert_eq!(found[1].seq, Seq(601));
            assert_eq!(log.get(&key("old")).await.unwrap().unwrap(), found[0]);
        }
        let stream = async_nats::jetstream::new(async_nats::connect(server.url()).await.unwrap());
        let mut stream = stream.get_stream("proofmill_log_w").await.unwrap();
        let bytes = stream.info().await.unwrap().state.bytes;
        assert!(bytes < 40 << 20, "{bytes} bytes for 100 kB of records");
    });
}

#[test]
fn a_batch_larger_than_a_message_is_atomic() {
    let server = NatsServer::with_config("max_payload: 200000");
    block_on(async {
        let connection = connect(&server.url()).await;
        let log = JetStreamLog::open(&connection, "w").await.unwrap();
        let ops = (0..40)
            .map(|n| Op::put(key(&format!("big.{n}")), vec![n; 50_000]))
            .collect();
        let seq = log.append(ops).await.unwrap();
        until_durable(&mut log.durable(), seq).await.unwrap();
        let again = JetStreamLog::open(&connection, "w").await.unwrap();
        let found = entries(&again).await;
        assert_eq!(found.len(), 40);
        for (entry, n) in found.iter().zip(0..) {
            assert_eq!(entry.value, vec![n; 50_000]);
        }
        assert_eq!(again.get(&key("big.7")).await.unwrap().unwrap(), found[7]);
    });
}

#[test]
fn a_new_writer_shuts_the_old_one_out() {
    let server = NatsServer::start();
    block_on(async {
        let old = JetStreamLog::open(&connect(&server.url()).await, "w")
            .await
            .unwrap();
        let seq = append(&old, 0).await;
        until_durable(&mut old.durable(), seq).await.unwrap();
        let new = JetStreamLog::open(&connect(&server.url()).await, "w")
            .await
            .unwrap();
        // Accepted by the old writer, but never durable.
        let seq = append(&old, 1).await;
        let waited = until_durable(&mut old.durable(), seq).await;
        let Err(AppendError::Failed(failure)) = waited else {
            panic!("{waited:?}");
        };
        assert!(failure.reason.contains("another process"), "{failure}");
        assert!(matches!(
            old.append(batch(2)).await,
            Err(AppendError::Failed(_))
        ));
        assert_eq!(check_entries(&new).await, Some(0));
        append(&new, 1).await;
        assert_eq!(check_entries(&new).await, Some(1));
    });
}

/// Two writers repeatedly take the log from each other: each batch is in it once, in the order in
/// which it was acknowledged to its writer.
#[test]
fn competing_writers_lose_nothing_durable() {
    let server = NatsServer::start();
    block_on(async {
        let url = server.url();
        let fighter = |name: &'static str| {
            let url = url.clone();
            async move {
                let connection = connect(&url).await;
                let mut durable = Vec::new();
                for round in 0..30 {
                    let log = JetStreamLog::open(&connection, "w").await.unwrap();
                    for n in 0..20 {
                        let mine = key(&format!("{name}.{round}.{n}"));
                        let Ok(seq) = log.append(vec![Op::put_new(mine.clone(), "x")]).await else {
                            break;
                        };
                        if until_durable(&mut log.durable(), seq).await.is_err() {
                            break;
                        }
                        durable.push((seq, mine));
                    }
                }
                durable
            }
        };
        let (a, b) = tokio::join!(tokio::spawn(fighter("a")), tokio::spawn(fighter("b")));
        let mut promised = [a.unwrap(), b.unwrap()].concat();
        promised.sort();
        let log = JetStreamLog::open(&connect(&url).await, "w").await.unwrap();
        let found: Vec<_> = entries(&log)
            .await
            .into_iter()
            .map(|entry| (entry.seq, entry.key))
            .collect();
        assert!(promised.len() > 100, "{} batches", promised.len());
        for record in &promised {
            assert!(found.contains(record), "{record:?} was durable");
        }
    });
}

#[test]
fn an_outage_costs_time_and_nothing_else() {
    let mut server = NatsServer::start();
    block_on(async {
        let connection = connect(&server.url()).await;
        let log = Arc::new(JetStreamLog::open(&connection, "w").await.unwrap());
        let mut next = 0;
        let mut last = Seq(0);
        for round in 0..3 {
            for _ in 0..50 {
                last = append(&log, next).await;
                next += 1;
            }
            if round == 1 {
                server.pause();
                for _ in 0..50 {
                    last = append(&log, next).await;
                    next += 1;
                }
                tokio::time::sleep(Duration::from_secs(6)).await;
                server.resume();
            } else {
                server.kill();
                for _ in 0..50 {
                    last = append(&log, next).await;
                    next += 1;
                }
                tokio::time::sleep(Duration::from_millis(300)).await;
                server.restart();
            }
            until_durable(&mut log.durable(), last).await.unwrap();
            assert_eq!(check_entries(&*log).await, Some(next - 1));
        }
    });
}

/// Waits until all three copies of the log are equal. The next server to stop may be the one that the others catch up
/// from, and the stream of a nats-server that is still starting may stay without a leader when another one stops.
async fn until_caught_up(url: &str) {
    let context = async_nats::jetstream::new(async_nats::connect(url).await.unwrap());
    for _ in 0..1200 {
        tokio::time::sleep(Duration::from_millis(100)).await;
        let Ok(stream) = context.get_stream("proofmill_log_w").await else {
            continue;
        };
        let cluster = stream.cached_info().cluster.as_ref();
        let copies = cluster.map_or(&[][..], |cluster| &cluster.replicas);
        if copies.len() == 2 && copies.iter().all(|copy| copy.current && !copy.offline) {
            return;
        }
    }
    panic!("a restarted server has not caught up within two minutes");
}

#[test]
fn a_cluster_that_loses_a_server_at_a_time_loses_nothing() {
    let mut cluster = Cluster::start(3, "");
    block_on(async {
        let mut options = NatsOptions::new(&cluster.url());
        options.replicas = 3;
        options.connect_timeout = PATIENCE;
        let connection = Connection::open(options).await.unwrap();
        let log = JetStreamLog::open(&connection, "w").await.unwrap();
        let mut next = 0;
        for round in 0..6 {
            let down = round % 3;
            cluster.servers[down].kill();
            let mut last = Seq(0);
            for _ in 0..100 {
                last = append(&log, next).await;
                next += 1;
            }
            until_durable(&mut log.durable(), last).await.unwrap();
            cluster.servers[down].restart();
            for _ in 0..20 {
                last = append(&log, next).await;
                next += 1;
            }
            until_durable(&mut log.durable(), last).await.unwrap();
            until_caught_up(&cluster.servers[(down + 1) % 3].url()).await;
        }
        assert_eq!(check_entries(&log).await, Some(next - 1));
        let again = JetStreamLog::open(&connection, "w").await.unwrap();
        assert_eq!(check_entries(&again).await, Some(next - 1));
    });
}

/// The lease is renewed for longer than its lifetime.
#[test]
fn leases_have_one_holder() {
    let server = NatsServer::start();
    // A holder that the machine gives no time for a lifetime loses its lease, so longer ones are tried too.
    let held = [1500, 10_000, 40_000]
        .map(Duration::from_millis)
        .into_iter();
    let held = held.enumerate().any(|(number, ttl)| {
        block_on(async {
            let mut options = NatsOptions::new(&server.url());
            options.connect_timeout = PATIENCE;
            options.prefix = format!("held{number}");
            options.lease_ttl = ttl;
            let connection = Connection::open(options).await.unwrap();
            let leases = Leases::open(&connection).await.unwrap();
            assert_eq!(leases.ttl(), ttl);
            let _first = leases.try_take("w", "a").await.unwrap().unwrap();
            assert!(leases.try_take("other", "b").await.unwrap().is_some());
            let other = leases.try_take("w", "b").await.unwrap();
            tokio::time::sleep(ttl * 2).await;
            other.is_none()
                && leases.holder("w").await.unwrap().as_deref() == Some("a")
                && leases.try_take("w", "b").await.unwrap().is_none()
        })
    });
    assert!(held, "a lease that is renewed ends");
}

/// A lease can be taken at once if it was given back, and after its lifetime if its holder is gone.
#[test]
fn leases_end() {
    let server = NatsServer::start();
    block_on(async {
        let connection = connect(&server.url()).await;
        let leases = Leases::open(&connection).await.unwrap();
        let mut taken = None;
        // If the machine stalls, the first holder's answer may come too late, so there are several tries.
        for key in ["w", "x", "y"] {
            let first = leases.try_take(key, "a").await.unwrap().unwrap();
            let term = first.term();
            first.give_back().await;
            if let Some(second) = leases.try_take(key, "b").await.unwrap() {
                assert!(second.term() > term);
                taken = Some((key, second));
                break;
            }
        }
        let (key, second) = taken.expect("a lease that was given back is free at once");
        drop(second);
        let third = tokio::time::timeout(PATIENCE, leases.take(key, "c")).await;
        let third = third.expect("a lease that is not renewed ends");
        // The lease is overwritten with another holder's name, and the holder notices.
        put_lease(&server, key, "d").await;
        tokio::time::timeout(PATIENCE, third.lost()).await.unwrap();
    });
}

/// Overwrites a lease with another holder's name.
async fn put_lease(server: &NatsServer, key: &str, holder: &'static str) {
    let client = async_nats::connect(server.url()).await.unwrap();
    let context = async_nats::jetstream::new(client);
    let stream = context.get_stream("proofmill_leaders").await.unwrap();
    let base = stream.cached_info().config.subjects[0].trim_end_matches('>');
    let subject = format!("{base}{key}");
    loop {
        let last = stream.get_last_raw_message_by_subject(&subject).await;
        // It has none if it has just expired.
        let message = PublishMessage::build()
            .payload(holder.into())
            .expected_last_subject_sequence(last.map_or(0, |last| last.sequence));
        let sent = context.send_publish(subject.clone(), message).await;
        // It may have been renewed meanwhile.
        if sent.unwrap().await.is_ok() {
            return;
        }
    }
}

#[test]
fn blobs_on_the_server() {
    let server = NatsServer::start();
    block_on(async {
        let connection = connect(&server.url()).await;
        let blobs = open_blobs(&connection).await.unwrap();
        let large: Vec<u8> = (0..3_000_000_u32)
            .map(|n| (n.wrapping_mul(n) >> 7) as u8)
            .collect();
        let digest = blobs.put(large.clone().into()).await.unwrap();
        assert_eq!(blobs.put(large.clone().into()).await.unwrap(), digest);
        let empty = blobs.put(bytes::Bytes::new()).await.unwrap();
        let blobs = open_blobs(&connection).await.unwrap();
        assert_eq!(blobs.get(&digest).await.unwrap(), large);
        assert_eq!(blobs.get(&empty).await.unwrap(), "");
        assert!(blobs.contains(&digest).await.unwrap());
        let live = [empty].into();
        let mut sweeper = Sweeper::new(blobs.clone(), Duration::ZERO);
        assert!(sweeper.scan(&live).await.unwrap().is_empty());
        let scan = sweeper.scan(&live).await.unwrap();
        let swept = sweeper.remove(scan, &live).await.unwrap();
        assert_eq!((swept.deleted, swept.kept, swept.bytes), (1, 1, 3_000_000));
        assert!(!blobs.contains(&digest).await.unwrap());
        assert!(blobs.get(&digest).await.is_err());
        blobs.delete(&digest).await.unwrap();
    });
}

/// A leader that sweeps knows other processes' holds only through the stream.
#[test]
fn blobs_that_others_hold_or_put_again_are_not_swept() {
    let server = NatsServer::start();
    block_on(async {
        let connection = connect(&server.url()).await;
        let blobs = open_blobs(&connection).await.unwrap().for_workflow("w");
        let elsewhere = open_blobs(&connection).await.unwrap().for_workflow("w");
        let (proof, held) = elsewhere.put_held(vec![7; 600_000].into()).await.unwrap();
        let again = blobs.put("again".into()).await.unwrap();
        let nobody = HashSet::new();
        let mut sweeper = Sweeper::new(blobs.clone(), Duration::ZERO);
        sweeper.scan(&nobody).await.unwrap();
        elsewhere.renew_held().await.unwrap();
        elsewhere.put("again".into()).await.unwrap();
        assert!(sweeper.scan(&nobody).await.unwrap().is_empty());

        // Between the look and the deletion.
        let scan = sweeper.scan(&nobody).await.unwrap();
        elsewhere.renew_held().await.unwrap();
        elsewhere.put("again".into()).await.unwrap();
        let swept = sweeper.remove(scan, &nobody).await.unwrap();
        assert_eq!((swept.deleted, swept.kept), (0, 2));
        assert_eq!(blobs.get(&proof).await.unwrap(), vec![7; 600_000]);
        assert_eq!(blobs.get(&again).await.unwrap(), "again");

        drop(held);
        sweeper.scan(&nobody).await.unwrap();
        let scan = sweeper.scan(&nobody).await.unwrap();
        let swept = sweeper.remove(scan, &nobody).await.unwrap();
        assert_eq!((swept.deleted, swept.bytes), (2, 600_005));
        assert_eq!(sweeper.scan(&nobody).await.unwrap().kept(), 0);
    });
}

/// Each leader knows the records of its own workflow only; sweeps once deleted the blobs of others.
#[test]
fn a_workflow_does_not_sweep_another_s_blobs() {
    let server = NatsServer::start();
    block_on(async {
        let connection = connect(&server.url()).await;
        let shared = open_blobs(&connection).await.unwrap();
        let (one, other) = (
            shared.clone().for_workflow("one"),
            shared.clone().for_workflow("an-other_1"),
        );
        let digest = one.put("a witness".into()).await.unwrap();
        let before = shared.put("of an earlier release".into()).await.unwrap();
        assert_eq!(other.put("a witness".into()).await.unwrap(), digest);
        let nobody = HashSet::new();
        let mut sweeper = Sweeper::new(other.clone(), Duration::ZERO);
        sweeper.scan(&nobody).await.unwrap();
        let scan = sweeper.scan(&nobody).await.unwrap();
        assert_eq!(sweeper.remove(scan, &nobody).await.unwrap().deleted, 1);
        assert!(!other.contains(&digest).await.unwrap());
        assert_eq!(one.get(&digest).await.unwrap(), "a witness");
        assert_eq!(one.get(&before).await.unwrap(), "of an earlier release");
    });
}

#[test]
fn impossible_sizes_are_refused_with_a_reason() {
    let unfit = |url: String, change: fn(&mut NatsOptions)| {
        let mut options = NatsOptions::new(&url);
        change(&mut options);
        block_on(async move {
            let connection = match Connection::open(options).await {
                Ok(connection) => connection,
                Err(error) => return error.to_string(),
            };
            match JetStreamLog::open(&connection, "w").await {
                Ok(_) => panic!("it fits"),
                Err(error) => error.to_string(),
            }
        })
    };
    let plain = NatsServer::start();
    let says = unfit("nats://127.0.0.1:1".into(), |_| {});
    assert!(
        says.contains("cannot connect to nats://127.0.0.1:1"),
        "{says}"
    );
    let says = unfit(plain.url(), |options| options.replicas = 2);
    assert!(says.contains("1, 3 or 5"), "{says}");
    let says = unfit(plain.url(), |options| options.replicas = 3);
    assert!(says.contains("replicas"), "{says}");
    let says = unfit(plain.url(), |options| options.prefix = "a.b".into());
    assert!(says.contains("the prefix"), "{says}");
    let small = NatsServer::with_config("max_payload: 100000");
    let says = unfit(small.url(), |_| {});
    assert!(says.contains("max_payload"), "{says}");
    let without = NatsServer::with_config("jetstream: disabled");
    let says = unfit(without.url(), |_| {});
    assert!(says.contains("--jetstream"), "{says}");
    let closed = NatsServer::with_config("authorization { user: a, password: geheim }");
    let says = unfit(closed.url(), |_| {});
    assert!(says.contains("cannot connect"), "{says}");
    let says = unfit(closed.url(), |options| {
        options.credentials = Credentials::UserPassword {
            user: "a".into(),
            password: "falsch".into(),
        };
    });
    assert!(
        says.contains("cannot connect") && !says.contains("falsch"),
        "{says}"
    );
    block_on(async {
        let mut options = NatsOptions::new(&closed.url());
        options.connect_timeout = PATIENCE;
        options.credentials = Credentials::UserPassword {
            user: "a".into(),
            password: "geheim".into(),
        };
        Connection::open(options).await.unwrap();
        let missing = Connection::open(NatsOptions {
            credentials: Credentials::CredentialsFile("/nowhere".into()),
            ..NatsOptions::new(&closed.url())
        });
        assert!(matches!(missing.await, Err(ConnectError::Secret(_))));
    });
}
