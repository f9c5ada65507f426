//! The engines of a mill in its console: one in this process, one behind a socket, one that is not there, and one that
//! takes connections and never answers.

use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use http_body_util::{BodyExt, Empty};
use hyper::body::Incoming;
use hyper_util::rt::TokioIo;
use proofmill_api::console::Console;
use proofmill_api::engine::{Address, Credentials, WatchedEngine};
use proofmill_api::{ConnectionLimits, Operations, TcpOptions};
use proofmill_orchestrator::mill::{Mill, Options, Registry};
use proofmill_workflow::Workflow;
use serde_json::Value;
use tokio::net::{TcpListener, TcpStream};
use tokio::task::JoinHandle;

use crate::engines::BN254;
use crate::site::{Site, request};

const WORKFLOW: &str = r#"
name = "still"
[[source]]
name = "outside"
kind = "submit"
output = "in"
[[dispatcher]]
name = "prove"
input = "in"
executor = { kind = "native", prover = "none" }
"#;

/// Longest wait for an event.
const PATIENCE: Duration = Duration::from_secs(30);

/// A listener that takes connections and says nothing; the number of those that it has taken.
async fn silent() -> (String, Arc<AtomicUsize>) {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = format!("http://{}", listener.local_addr().unwrap());
    let taken = Arc::new(AtomicUsize::new(0));
    let counted = taken.clone();
    tokio::spawn(async move {
        let mut open = Vec::new();
        while let Ok((stream, _)) = listener.accept().await {
            counted.fetch_add(1, Ordering::Relaxed);
            open.push(stream);
        }
    });
    (address, taken)
}

fn there(address: &str) -> WatchedEngine {
    let address: Address = address.parse().unwrap();
    WatchedEngine::there(address, Credentials::default(), vec!["prove".to_owned()])
}

/// The console of a mill, whose engines these are, its address, and the task that serves it.
async fn console(folder: &Path, engines: Vec<WatchedEngine>) -> (Mill, String, JoinHandle<()>) {
    let workflow = Workflow::parse(WORKFLOW, Path::new("still.toml")).unwrap();
    let options = Options::in_directory(folder.join("state"));
    let mill = Mill::open(&workflow, Registry::default(), options).await;
    let mill = mill.unwrap();
    let handle = mill.handle();
    let operations = Operations::new(handle.operator(), handle.source(), mill.blobs().clone())
        .with_engines(engines);
    let options = TcpOptions {
        address: "127.0.0.1:0".parse().unwrap(),
        tls: None,
        tokens: None,
        connections: ConnectionLimits::default(),
    };
    let console = Console::open(&options).await.unwrap();
    let host = console.url()["http://".len()..]
        .trim_end_matches('/')
        .to_owned();
    let serving = tokio::spawn(console.serve(operations));
    (mill, host, serving)
}

async fn get(host: &str, path: &str) -> hyper::Response<Incoming> {
    let stream = TokioIo::new(TcpStream::connect(host).await.unwrap());
    let (mut sender, connection) = hyper::client::conn::http1::handshake(stream).await.unwrap();
    tokio::spawn(connection);
    let request = hyper::Request::get(path).header("host", host);
    let request = request.body(Empty::<bytes::Bytes>::new()).unwrap();
    sender.send_request(request).await.unwrap()
}

async fn text(host: &str, path: &str) -> (u16, String) {
    let answer = get(host, path).await;
    let status = answer.status().as_u16();
    let body = answer.into_body().collect().await.unwrap().to_bytes();
    (status, String::from_utf8(body.to_vec()).unwrap())
}

/// The next overview of the engines.
async fn next(body: &mut Incoming) -> Vec<Value> {
    let mut event = String::new();
    loop {
        let frame = tokio::time::timeout(PATIENCE, body.frame()).await;
        let frame = frame.expect("in time").expect("an event").unwrap();
        event.push_str(std::str::from_utf8(&frame.into_data().unwrap()).unwrap());
        if !event.ends_with("\n\n") {
            continue;
        }
        // Others are signs of life.
        if event.starts_with("event: overview") {
            let data = event.lines().find_map(|line| line.strip_prefix("data: "));
            let overview: Value = serde_json::from_str(data.unwrap()).unwrap();
            return overview["engines"].as_array().unwrap().clone();
        }
        event.clear();
    }
}

fn has_an_answer(engine: &Value) -> bool {
    !engine["status"].is_null() || !engine["failure"].is_null()
}

#[tokio::test(flavor = "multi_thread")]
async fn a_mills_console_shows_its_engines_and_none_waits_for_a_dead_one() {
    let site = Site::open().await;
    let (deaf, taken) = silent().await;
    let nobody = format!("unix:{}", site.folder.path().join("nobody.sock").display());
    let here = WatchedEngine::here(
        site.handle.clone(),
        vec!["prove".to_owned(), "wrap".to_owned()],
    );
    let socket = format!("unix:{}", site.socket().display());
    let engines = vec![here, there(&socket), there(&nobody), there(&deaf)];
    let (mill, host, serving) = console(site.folder.path(), engines).await;
    site.client()
        .await
        .prove(request("1", BN254, 7), None)
        .await
        .unwrap();
    tokio::time::sleep(Duration::from_millis(300)).await;
    assert_eq!(
        taken.load(Ordering::Relaxed),
        0,
        "nobody looks, and it was asked"
    );

    let (mut one, mut other) = (
        get(&host, "/api/engines").await.into_body(),
        get(&host, "/api/engines").await.into_body(),
    );
    // On a loaded machine the engine that is there may answer after the first overview.
    let seen = loop {
        let seen = next(&mut one).await;
        assert_eq!(seen.len(), 4);
        assert_eq!(
            (&seen[3]["status"], &seen[3]["failure"]),
            (&Value::Null, &Value::Null),
            "those that answer wait for the one that does not"
        );
        if seen[..3].iter().all(has_an_answer) {
            break seen;
        }
    };
    let asked = taken.load(Ordering::Relaxed);
    assert!(asked <= 1, "each page asks by itself");
    assert_eq!(seen[0]["stages"], serde_json::json!(["prove", "wrap"]));
    assert_eq!(seen[1]["address"], Value::from(socket));
    for engine in &seen[..2] {
        assert_eq!(engine["failure"], Value::Null);
        assert_eq!(
            engine["status"]["circuits"][0]["name"],
            Value::from(BN254.name())
        );
        assert_eq!(engine["status"]["counts"]["done"], 1);
    }
    // Both ways to one engine give the same fields.
    let fields = |at: usize| seen[at]["status"].as_object().unwrap().keys().cloned();
    assert!(fields(0).eq(fields(1)));
    let why = seen[2]["failure"].as_str().unwrap();
    assert!(why.starts_with("no engine answers at unix:"), "{why}");

    loop {
        let seen = next(&mut other).await;
        if let Some(why) = seen[3]["failure"].as_str() {
            assert_eq!(why, "no answer within 5 s");
            assert_eq!(seen[0]["failure"], Value::Null);
            break;
        }
    }

    for place in [0, 1] {
        let (status, drawing) = text(&host, &format!("/api/engines/{place}/timeline.svg")).await;
        assert_eq!(status, 200);
        assert!(drawing.starts_with("<svg"), "{drawing}");
    }
    let (status, drawing) = text(&host, "/api/engines/2/timeline.svg").await;
    assert_eq!(status, 200);
    assert!(
        drawing.contains("no engine answers at unix:"),
        "a picture says why there is none: {drawing}"
    );
    assert_eq!(text(&host, "/api/engines/9/timeline.svg").await.0, 404);
    assert_eq!(text(&host, "/api/engines/x/timeline.svg").await.0, 400);
    drop((one, other));
    serving.abort();
    assert!(serving.await.unwrap_err().is_cancelled());
    mill.close().await.unwrap();
    site.stop().await;
}
