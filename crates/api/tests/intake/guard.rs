//! Who is kept out, and what is not read.

use proofmill_api::TlsFiles;
use proofmill_api::intake::{Intake, Options};

use crate::support::{Files, Site, TOKEN, submission};

#[tokio::test]
async fn a_page_in_a_browser_cannot_ask() {
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
    // Types that a page can send without asking first.
    for kind in [
        "text/plain",
        "application/x-www-form-urlencoded",
        "multipart/form-data",
        "text/plain;application/json",
    ] {
        assert_eq!(post(&[here, ("content-type", kind)]).await, 415, "{kind}");
    }
    assert_eq!(post(&[here]).await, 415);
    // A name of its own that points here.
    assert_eq!(post(&[("host", "evil.example:9465"), json]).await, 403);
    assert_eq!(post(&[json]).await, 403);
    let headers = [("host", "evil.example")];
    let answer = site.request("GET", "/v1/status", &headers, "").await;
    assert_eq!(answer.status, 403);
    // Asking first is no use.
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
async fn what_is_too_large_is_not_read() {
    let site = Site::open(|_| {}).await;
    let path = "/v1/queues/groups/messages";
    // The length is refused, not the body: none of it is sent.
    let head = format!(
        "POST {path} HTTP/1.1\r\nhost: localhost\r\ncontent-type: application/json\r\n\
         content-length: 68157441\r\nexpect: 100-continue\r\n\r\n"
    );
    let answer = site.raw(head.as_bytes()).await;
    assert_eq!(answer.status, 413, "{}", answer.head);
    // One that does not say how long it is, is read as far as it may go.
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
    // The answer may be lost with what is not read.
    assert!([413, 0].contains(&answer.status), "{}", answer.head);
    // Heads are bounded, too.
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
        token: token.then(|| files.token.clone()),
        patience: Options::PATIENCE,
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
    assert!(said.contains("token is a secret that everybody"), "{said}");
    files.private(&files.token);
    files.readable_by_all(&files.server.key);
    let said = refused(|_, _| {}).await;
    assert!(
        said.contains("server.key is a secret that everybody"),
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
    std::fs::write(&files.token, "short").expect("written");
    let said = refused(|_, _| {}).await;
    assert!(
        said.contains("16 to 4096 bytes") && !said.contains("short"),
        "{said}"
    );
}

#[tokio::test]
async fn over_tls_whoever_shows_the_token_is_served() {
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
    // Without TLS nothing is said but that TLS is wanted.
    let answer = site.get("/v1/status").await;
    assert!(!answer.head.contains("HTTP"), "{}", answer.head);
    assert_eq!(site.status().await["live"], 1);
}
