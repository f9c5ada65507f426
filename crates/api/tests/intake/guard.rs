//! Tests of refused callers, and of requests that are not read.

use std::time::{Duration, Instant};

use proofmill_api::intake::{Intake, Options};
use proofmill_api::{ConnectionLimits, TlsFiles};

use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;

use crate::support::{Files, PATIENCE, Site, TOKEN, submission};

#[tokio::test]
async fn pages_in_a_browser_are_refused() {
    let site = Site::open(|_| {}).await;
    let message = submission(1, "1");
    let post = async |headers: &[(&str, &str)]| {
        let answer = site
            .request("POST", "/v1/queues/groups/messages", headers, &message)
            .await;
        answer.status
    };
    let json = ("content-type", "application/json");
    let here = ("host", "localhost:9465");
    for origin in ["null", "http://localhost:9465", "https://evil.example"] {
        assert_eq!(
            post(&[here, json, ("origin", origin)]).await,
            403,
            "{origin}"
        );
    }
    // Types that a page can send without a preflight request.
    for kind in [
        "text/plain",
        "application/x-www-form-urlencoded",
        "multipart/form-data",
        "text/plain;application/json",
    ] {
        assert_eq!(post(&[here, ("content-type", kind)]).await, 415, "{kind}");
    }
    assert_eq!(post(&[here]).await, 415);
    // A page's own name that points here.
    assert_eq!(post(&[("host", "evil.example:9465"), json]).await, 403);
    assert_eq!(post(&[json]).await, 403);
    let headers = [("host", "evil.example")];
    let answer = site.request("GET", "/v1/status", &headers, "").await;
    assert_eq!(answer.status, 403);
    // A preflight request is refused, too.
    let headers = [here, ("origin", "https://evil.example")];
    let answer = site
        .request("OPTIONS", "/v1/queues/groups/messages", &headers, "")
        .await;
    assert_eq!(answer.status, 403);
    assert!(!answer.head.contains("access-control"), "{}", answer.head);
    assert_eq!(site.get("/v1/status").await.json()["live"], 0);
    let charset = ("content-type", "Application/JSON; charset=utf-8");
    assert_eq!(post(&[here, charset]).await, 201);
}

#[tokio::test]
async fn too_large_requests_are_not_read() {
    let site = Site::open(|_| {}).await;
    let path = "/v1/queues/groups/messages";
    // The length is refused before the body: none of it is sent.
    let head = format!(
        "POST {path} HTTP/1.1\r\nhost: localhost\r\ncontent-type: application/json\r\n\
         content-length: 68157441\r\nexpect: 100-continue\r\n\r\n"
    );
    let answer = site.raw(head.as_bytes()).await;
    assert_eq!(answer.status, 413, "{}", answer.head);
    // A body of unknown length is read up to the limit.
    let head = format!(
        "POST {path} HTTP/1.1\r\nhost: localhost\r\ncontent-type: application/json\r\n\
         transfer-encoding: chunked\r\n\r\n"
    );
    let mut request = head.into_bytes();
    let chunk = vec![b' '; 1 << 20];
    for _ in 0..66 {
        request.extend_from_slice(b"100000\r\n");
        request.extend_from_slice(&chunk);
        request.extend_from_slice(b"\r\n");
    }
    let answer = site.raw(&request).await;
    // The answer may be lost with the part that is not read.
    assert!([413, 0].contains(&answer.status), "{}", answer.head);
    // The size of heads is limited, too.
    let long = "x".repeat(100_000);
    let headers = [("host", "localhost"), ("x-long", &*long)];
    let answer = site.request("GET", "/v1/status", &headers, "").await;
    assert!([431, 0].contains(&answer.status), "{}", answer.head);
    assert_eq!(site.get("/v1/status").await.json()["live"], 0);
}

#[tokio::test]
async fn beyond_loopback_tls_and_a_token_are_required() {
    let folder = tempfile::tempdir().expect("a folder");
    let files = Files::new(folder.path());
    let options = |tls: bool, token: bool| Options {
        address: "0.0.0.0:0".parse().expect("an address"),
        tls: tls.then(|| files.tls()),
        tokens: token.then(|| files.token.clone()),
        patience: Options::PATIENCE,
        exact: false,
        connections: ConnectionLimits::default(),
    };
    for (tls, token) in [(false, false), (true, false), (false, true)] {
        let refused = Intake::open(&options(tls, token)).await;
        let said = refused.err().expect("refused").to_string();
        assert!(
            said.contains("without TLS and a token") && said.contains("0.0.0.0:0"),
            "{said}"
        );
    }
    let intake = Intake::open(&options(true, true)).await.expect("enough");
    assert!(
        intake.url().starts_with("https://0.0.0.0:"),
        "{}",
        intake.url()
    );

    let refused = async |change: fn(&mut Options, &Files)| {
        let mut options = options(true, true);
        change(&mut options, &files);
        let refused = Intake::open(&options).await;
        refused.err().expect("refused").to_string()
    };
    files.readable_by_all(&files.token);
    let said = refused(|_, _| {}).await;
    assert!(
        said.contains("token is a secret that other users"),
        "{said}"
    );
    files.private(&files.token);
    files.readable_by_all(&files.server.key);
    let said = refused(|_, _| {}).await;
    assert!(
        said.contains("server.key is a secret that other users"),
        "{said}"
    );
    files.private(&files.server.key);
    let said = refused(|options, files| {
        options.tls = Some(TlsFiles {
            certificate: files.server.key.clone(),
            ..files.tls()
        });
    })
    .await;
    assert!(said.contains("there is no certificate in it"), "{said}");
    let said = refused(|options, files| {
        options.tls = Some(TlsFiles {
            key: files.other.key.clone(),
            ..files.tls()
        });
    })
    .await;
    assert!(said.contains("cannot be used"), "{said}");
    for (text, why) in [
        ("short", "line 1: a token has 16 to 4096 bytes"),
        (
            "a 0123456789abcdef blocks",
            "line 1: \"blocks\": expected `queues=",
        ),
        ("# nothing", "there is no token in it"),
    ] {
        std::fs::write(&files.token, text).expect("written");
        let said = refused(|_, _| {}).await;
        assert!(
            said.contains(why) && !said.contains("short") && !said.contains("0123"),
            "{said}"
        );
    }
}

#[tokio::test]
async fn over_tls_callers_with_the_token_are_served() {
    let folder = tempfile::tempdir().expect("a folder");
    let files = Files::new(folder.path());
    let site = Site::guarded(&files).await;
    let bearer = format!("Bearer {TOKEN}");
    let post = async |ca: Option<&std::path::Path>, authorization: Option<&str>| {
        site.post_over_tls(ca, authorization, &submission(1, "1"))
            .await
    };
    let ca = Some(&*files.authority);
    assert_eq!(post(ca, Some(&bearer)).await, Ok(201));
    assert_eq!(post(ca, Some(&bearer)).await, Ok(200));
    assert_eq!(post(ca, None).await, Ok(401));
    assert_eq!(post(ca, Some("Bearer 0123456789abcdeF")).await, Ok(401));
    for ca in [None, Some(&*files.other_authority)] {
        let said = post(ca, Some(&bearer)).await.expect_err("not trusted");
        assert!(said.contains("invalid peer certificate"), "{said}");
    }
    // A client without TLS learns only that TLS is needed.
    let answer = site.get("/v1/status").await;
    assert!(!answer.head.contains("HTTP"), "{}", answer.head);
    assert_eq!(site.status().await["live"], 1);
}

/// Tokens of clients that may post to different queues.
const TOKENS: &str = "\
    0000000000000000\n\
    one 1111111111111111 queues=in\n\
    prover 2222222222222222 queues=proofs,in\n\
    all 3333333333333333 queues=*\n";

#[tokio::test]
async fn a_token_for_one_queue_posts_to_no_other() {
    let folder = tempfile::tempdir().expect("a folder");
    let files = Files::new(folder.path());
    std::fs::write(&files.token, TOKENS).expect("written");
    let site = Site::open(|options| options.tokens = Some(files.token.clone())).await;
    let mut block = 0;
    let mut post = async |digit: &str, queue: &str| {
        block += 1;
        let bearer = format!("Bearer {}", digit.repeat(16));
        let headers = [
            ("host", "localhost"),
            ("content-type", "application/json"),
            ("authorization", &*bearer),
        ];
        let path = format!("/v1/queues/{queue}/messages");
        let message = submission(block, &format!(r#"{{"group": {block}}}"#));
        site.request("POST", &path, &headers, &message).await
    };
    // Stages write `gathered` and `proofs`.
    for (digit, allowed) in [
        ("0", &["in", "groups"][..]),
        ("1", &["in"]),
        ("2", &["in", "proofs"]),
        ("3", &["in", "groups", "gathered", "proofs"]),
    ] {
        for queue in ["in", "groups", "gathered", "proofs"] {
            let answer = post(digit, queue).await;
            let expected = if allowed.contains(&queue) { 201 } else { 403 };
            assert_eq!(answer.status, expected, "{digit} to {queue}: {answer:?}");
        }
    }
    let said = post("1", "proofs").await.body;
    assert!(
        said.contains(r#"client \"one\" may not post to queue \"proofs\""#)
            && said.contains("has queues=in"),
        "{said}"
    );
    let said = post("0", "proofs").await.body;
    assert!(said.contains("a stage writes the queue"), "{said}");
    assert_eq!(post("1", "nowhere").await.status, 404);
    assert_eq!(site.status().await["live"], 9);
}

#[tokio::test]
async fn without_a_token_nothing_is_posted_to_a_stages_queue() {
    let site = Site::open(|_| {}).await;
    for queue in ["proofs", "gathered"] {
        let answer = site.post(queue, &submission(1, "1")).await;
        assert_eq!(answer.status, 403, "{answer:?}");
        let said = "a caller without a token may not post";
        assert!(answer.body.contains(said), "{answer:?}");
        let answer = site.post_lines(queue, &submission(1, "1")).await;
        assert_eq!(answer.status, 403, "{answer:?}");
    }
    assert_eq!(site.status().await["live"], 0);
}

#[tokio::test]
async fn half_open_bodies_do_not_keep_others_from_posting() {
    let site = Site::open(|_| {}).await;
    // There is room for four requests of unknown length.
    let head = "POST /v1/queues/groups/messages HTTP/1.1\r\nhost: localhost\r\n\
                content-type: application/json\r\ntransfer-encoding: chunked\r\n\r\n5\r\n    ";
    let mut halves = Vec::new();
    for _ in 0..4 {
        let mut stream = TcpStream::connect(site.address).await.expect("connected");
        stream.write_all(head.as_bytes()).await.expect("sent");
        halves.push(stream);
    }
    // All of them have room by the time that another one waits.
    tokio::time::sleep(Duration::from_millis(300)).await;
    let began = Instant::now();
    let answer = site.post("groups", &submission(1, "1")).await;
    assert_eq!(answer.status, 201, "{answer:?}");
    // Less than the minute that a body has while nobody waits.
    assert!(began.elapsed() < Duration::from_secs(45));
    let mut said = Vec::new();
    let mut first = halves.swap_remove(0);
    let ended = tokio::time::timeout(PATIENCE / 2, first.read_to_end(&mut said)).await;
    ended.expect("it is closed").expect("an answer");
    let said = String::from_utf8_lossy(&said);
    assert!(said.starts_with("HTTP/1.1 408"), "{said}");
}

#[tokio::test]
async fn idle_connections_keep_nobody_from_posting() {
    let site = Site::open(|options| {
        options.connections.idle = Duration::from_secs(2);
    })
    .await;
    let mut idle = Vec::new();
    for _ in 0..300 {
        idle.push(TcpStream::connect(site.address).await.expect("connected"));
    }
    let answer = site.post("groups", &submission(1, "1")).await;
    assert_eq!(answer.status, 201, "{answer:?}");
    // The remaining connections are idle, and are closed.
    for mut stream in idle {
        let mut said = Vec::new();
        let ended = tokio::time::timeout(PATIENCE / 2, stream.read_to_end(&mut said)).await;
        // The connection is closed now or was closed before.
        let _ = ended.expect("it is closed");
    }
}
