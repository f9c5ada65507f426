//! Emissions to a stream that the server's operator has created.

use std::time::Duration;

use async_nats::jetstream::consumer::pull;
use async_nats::jetstream::message::PublishMessage;
use async_nats::jetstream::stream::{Config, Stream};
use async_nats::jetstream::{self, Context};
use futures_util::StreamExt as _;
use proofmill_nats_server::NatsServer;
use proofmill_orchestrator::conversation::Reply;
use proofmill_orchestrator::shutdown::Level;

use crate::support::{Background, PATIENCE, Script};

/// A workflow that emits messages submitted to `blocks`, to a stream.
fn workflow(server: &NatsServer, more: &str) -> String {
    format!(
        r#"
        name = "streamed"
        [[source]]
        name = "in"
        kind = "submit"
        output = "blocks"
        [sequencer]
        input = "blocks"
        [[sequencer.sink]]
        kind = "jetstream"
        url = "{}"
        subject = "proofs.verified"
        backoff = {{ initial = "5ms", max = "20ms" }}
        {more}
        "#,
        server.url()
    )
}

async fn context(server: &NatsServer) -> Context {
    let client = async_nats::connect(server.url()).await;
    jetstream::new(client.expect("the server runs"))
}

async fn stream(context: &Context, duplicate_window: Duration) -> Stream {
    let config = Config {
        name: "PROOFS".into(),
        subjects: vec!["proofs.>".into()],
        duplicate_window,
        ..Config::default()
    };
    context.create_stream(config).await.expect("a stream")
}

/// Ids and payloads of the stream's first `count` messages.
async fn read(stream: &Stream, count: usize) -> Vec<(String, String)> {
    let consumer: jetstream::consumer::Consumer<pull::OrderedConfig> = stream
        .create_consumer(pull::OrderedConfig::default())
        .await
        .expect("a consumer");
    let messages = consumer.messages().await.expect("messages");
    let read = messages.take(count).map(|message| {
        let message = message.expect("a message");
        let headers = message.headers.clone().expect("headers");
        let id = headers.get("Nats-Msg-Id").expect("an id").to_string();
        let block = headers.get("Proofmill-Last-Block").map(ToString::to_string);
        let about = id.split('/').nth(2).map(str::to_owned);
        assert!(block.is_none() || block == about, "{headers:?}");
        let payload = String::from_utf8(message.payload.to_vec()).expect("text");
        (id, payload)
    });
    tokio::time::timeout(PATIENCE, read.collect())
        .await
        .expect("messages come")
}

fn message(block: u64) -> (String, String) {
    (
        format!("streamed/sequencer/{block}/0"),
        format!("[{block}]"),
    )
}

#[tokio::test(flavor = "multi_thread")]
async fn each_emission_is_in_the_stream_once_whenever_it_was_published() {
    let server = NatsServer::start();
    let context = context(&server).await;
    let window = Duration::from_millis(100);
    let stream = stream(&context, window).await;
    // Block 0 was published by a process that died before it could confirm it, longer ago than the stream's
    // deduplication window.
    let (id, payload) = message(0);
    let earlier = PublishMessage::build()
        .payload(payload.into())
        .message_id(id);
    let sent = context.send_publish("proofs.verified", earlier).await;
    sent.expect("sent").await.expect("stored");
    tokio::time::sleep(window * 3).await;

    let dir = tempfile::tempdir().expect("temporary directory");
    let text = workflow(&server, "stream = \"PROOFS\"");
    let mut mill = Background::start(&text, &Script::open(), dir.path(), true).await;
    for block in 0..3 {
        assert_eq!(
            mill.submit("blocks", block, message(block).1).await,
            Reply::Accepted
        );
    }
    for block in 0..3 {
        assert_eq!(mill.next().await.first, block);
    }
    mill.crash().await;
    let mut mill = Background::start(&text, &Script::open(), dir.path(), true).await;
    assert_eq!(
        mill.submit("blocks", 3, message(3).1).await,
        Reply::Accepted
    );
    while mill.next().await.first != 3 {}
    mill.stop.raise(Level::Drain);
    mill.ended().await;
    assert_eq!(read(&stream, 4).await, [0, 1, 2, 3].map(message));
    let info = stream.get_info().await.expect("known");
    assert_eq!(info.state.messages, 4);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_stream_that_is_not_there_is_said_and_one_that_goes_is_waited_for() {
    let server = NatsServer::start();
    let context = context(&server).await;
    let dir = tempfile::tempdir().expect("temporary directory");
    let refused = async |more: &str| {
        let text = workflow(&server, more);
        let mill = Background::start(&text, &Script::open(), dir.path(), true).await;
        let error = mill.run.await.expect("no panic").expect_err("no stream");
        error.to_string()
    };
    let error = refused("").await;
    assert!(
        error.starts_with("sequencer.sink #1: subject proofs.verified: no stream of the server"),
        "{error}"
    );
    stream(&context, Duration::from_secs(60)).await;
    let error = refused("stream = \"OTHER\"").await;
    assert!(
        error.contains("it belongs to stream PROOFS, not to OTHER"),
        "{error}"
    );

    let text = workflow(&server, "");
    let mut mill = Background::start(&text, &Script::open(), dir.path(), true).await;
    assert_eq!(
        mill.submit("blocks", 0, message(0).1).await,
        Reply::Accepted
    );
    assert_eq!(mill.next().await.first, 0);
    context.delete_stream("PROOFS").await.expect("deleted");
    for block in 1..3 {
        assert_eq!(
            mill.submit("blocks", block, message(block).1).await,
            Reply::Accepted
        );
    }
    mill.until("the sink has block 1", |core| {
        core.status().next_block == Some(1)
    })
    .await;
    let again = stream(&context, Duration::from_secs(60)).await;
    for block in 1..3 {
        assert_eq!(mill.next().await.first, block);
    }
    mill.stop.raise(Level::Drain);
    mill.ended().await;
    assert_eq!(read(&again, 2).await, [1, 2].map(message));
}
