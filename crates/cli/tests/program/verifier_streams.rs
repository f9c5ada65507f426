//! Streams of `proofmill verifier serve` that end early: closed by the client, with the client's process, for lack of
//! room, or by a stop of the verifier.

use proofmill_api::verifier::proto::verify_request::Ask;
use proofmill_api::verifier::proto::verify_response::Answer;
use proofmill_api::verifier::proto::{CancelSourceRequest, Proof, VerificationStatus};
use rustix::process::Signal;
use tokio::sync::mpsc;
use tonic::{Code, Request};

use crate::engine_network::private;
use crate::operate::get_as;
use crate::support::{eventually, folder};
use crate::verifier_network::{Talk, connect, ended, listening, outgoing, rollup, runtime};

/// The sum of a metric's values in the lines that hold all of these words.
fn sum(page: &str, words: &[&str]) -> f64 {
    let lines = page.lines().filter(|line| !line.starts_with('#'));
    let lines = lines.filter(|line| words.iter().all(|word| line.contains(word)));
    let values = lines.map(|line| line.rsplit(' ').next().expect("a value"));
    values
        .map(|value| value.parse::<f64>().expect("a number"))
        .sum()
}

#[test]
fn requests_are_taken_back_by_number_and_by_source() {
    let folder = folder();
    let (verifier, url) = listening(folder.path(), &["--batch", "1", "--threads", "1"]);
    // So many that some are left where this test waits long for its turn of the processor.
    let peers = 900;
    let (other, asked) = (1000, 1001);
    runtime().block_on(async {
        let mut client = connect(&url).await;
        let mut talk = Talk::open(&mut client).await;
        let from = |source: &str| {
            let Ask::Proof(of) = rollup() else {
                unreachable!("a proof");
            };
            Ask::Proof(Proof {
                source: source.to_owned(),
                ..of
            })
        };
        for request in 0..peers {
            talk.ask(request, from("peer")).await;
        }
        talk.ask(other, from("other")).await;
        talk.ask(asked, Ask::Cancel(peers - 1)).await;
        // They are under way: the stream has been read up to here.
        let mut counted = false;
        let mut unavailable = Vec::new();
        let mut answered = 0;
        while !counted {
            match talk.answer().await.expect("no end").expect("an answer") {
                (request, Answer::Count(count)) if request == asked => {
                    assert_eq!(count, 1);
                    counted = true;
                }
                (request, Answer::Result(result)) => {
                    answered += 1;
                    if result.status() == VerificationStatus::Unavailable {
                        unavailable.push(request);
                    }
                }
                other => panic!("{other:?}"),
            }
        }
        // By another call, from the same client.
        let request = CancelSourceRequest {
            source: "peer".to_owned(),
        };
        let count = client
            .cancel_source(request)
            .await
            .expect("asked")
            .into_inner()
            .count;
        assert!(count > 0, "nothing was left to take back");
        for _ in answered..peers + 1 {
            let (request, result) = talk.result().await;
            if result.status() == VerificationStatus::Unavailable {
                assert!(result.error_message.contains("cancelled"), "{result:?}");
                unavailable.push(request);
            }
        }
        assert!(unavailable.contains(&(peers - 1)));
        assert!(!unavailable.contains(&other), "another source's");
        assert_eq!(unavailable.len() as u64, count + 1);
    });
    ended(verifier);
}

#[test]
fn requests_of_a_disconnected_client_are_cancelled() {
    let folder = folder();
    let more = ["--batch", "1", "--threads", "1", "--http", "127.0.0.1:0"];
    let (verifier, url) = listening(folder.path(), &more);
    let line = verifier.line("the verifier takes");
    let http = line
        .rsplit("http://")
        .next()
        .expect("an address")
        .trim()
        .to_owned();
    let metrics = || get_as(&http, "/metrics", "host: localhost");
    // So many that some are left where this test waits long for its turn of the processor.
    let asked = 900;
    runtime().block_on(async {
        let mut client = connect(&url).await;
        let mut talk = Talk::open(&mut client).await;
        for request in 0..asked {
            talk.ask(request, rollup()).await;
        }
        talk.ask(asked, Ask::Cancel(asked)).await;
        // All are under way once this is answered.
        while !matches!(talk.answer().await, Ok(Some((_, Answer::Count(0))))) {}
    });
    // The runtime is gone, and the connection with it.
    let page = eventually("nothing is under way", || {
        let page = metrics();
        (sum(&page, &["proofmill_verifier_under_way"]) == 0.0).then_some(page)
    });
    let verdicts = |status: &str| {
        let label = format!("status=\"{status}\"");
        sum(&page, &["proofmill_verifier_verdicts_total", &label])
    };
    assert!(verdicts("unavailable") > 0.0, "{page}");
    assert!(verdicts("valid") < asked as f64, "{page}");
    // And the next one is served.
    runtime().block_on(async {
        let mut client = connect(&url).await;
        let mut talk = Talk::open(&mut client).await;
        talk.ask(1, rollup()).await;
        assert_eq!(talk.result().await.1.status(), VerificationStatus::Valid);
    });
    let stderr = ended(verifier);
    assert!(!stderr.contains("panicked"), "{stderr}");
}

/// With room for four requests of a source, of which the connections of one token are one.
#[test]
fn a_stream_without_room_waits_and_connections_of_a_client_share_it() {
    let folder = folder();
    let token = "0123456789abcdef0123456789abcdef";
    private(&folder.path().join("tokens"), &format!("rollup {token}\n"));
    let more = [
        ["--source-requests", "4"],
        ["--batch", "1"],
        ["--threads", "1"],
        ["--tokens", "tokens"],
        ["--http", "127.0.0.1:0"],
    ];
    let (verifier, url) = listening(folder.path(), more.as_flattened());
    let line = verifier.line("the verifier takes");
    let http = line
        .rsplit("http://")
        .next()
        .expect("an address")
        .trim()
        .to_owned();
    let each = 20;
    runtime().block_on(async {
        let mut talks = Vec::new();
        for _ in 0..2 {
            let mut client = connect(&url).await;
            let (requests, receiver) = mpsc::channel(1024);
            let mut request = Request::new(outgoing(receiver));
            let header = format!("Bearer {token}").parse().expect("a header");
            request.metadata_mut().insert("authorization", header);
            let answers = client.verify(request).await.expect("a stream").into_inner();
            talks.push(Talk { requests, answers });
        }
        for request in 0..each {
            for talk in &talks {
                talk.ask(request, rollup()).await;
            }
        }
        let mut most: f64 = 0.0;
        for _ in 0..each {
            for talk in &mut talks {
                assert_eq!(talk.result().await.1.status(), VerificationStatus::Valid);
                let page = get_as(&http, "/metrics", "host: localhost");
                most = most.max(sum(&page, &["proofmill_verifier_under_way"]));
            }
        }
        assert!((1.0..=4.0).contains(&most), "{most} under way");
    });
    ended(verifier);
}

#[test]
fn a_stop_answers_the_requests_of_a_stream_and_ends_it_with_a_reason() {
    let folder = folder();
    let (verifier, url) = listening(folder.path(), &[]);
    runtime().block_on(async {
        let mut client = connect(&url).await;
        let mut talk = Talk::open(&mut client).await;
        for request in 0..30 {
            talk.ask(request, rollup()).await;
        }
        talk.ask(99, Ask::Cancel(98)).await;
        let mut valid = 0;
        loop {
            match talk.answer().await.expect("no end").expect("an answer") {
                (99, Answer::Count(0)) => break,
                (_, Answer::Result(result)) => {
                    assert_eq!(result.status(), VerificationStatus::Valid);
                    valid += 1;
                }
                other => panic!("{other:?}"),
            }
        }
        verifier.signal(Signal::TERM);
        let end = loop {
            match talk.answer().await {
                Ok(Some((_, Answer::Result(result)))) => {
                    assert_eq!(result.status(), VerificationStatus::Valid);
                    valid += 1;
                }
                Ok(other) => panic!("{other:?}"),
                Err(status) => break status,
            }
        };
        assert_eq!(valid, 30);
        assert_eq!(end.code(), Code::Unavailable, "{end}");
    });
    verifier.end().1.succeeded();
}
