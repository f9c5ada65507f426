//! Emissions by HTTP.

use std::fs::Permissions;
use std::os::unix::fs::PermissionsExt as _;
use std::path::Path;
use std::sync::Arc;

use proofmill_nats_server::Authority;
use proofmill_orchestrator::conversation::Reply;
use proofmill_orchestrator::shutdown::Level;
use ring::hmac;
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio_rustls::TlsAcceptor;
use tokio_rustls::rustls::ServerConfig;
use tokio_rustls::rustls::crypto::ring as provider;
use tokio_rustls::rustls::pki_types::pem::PemObject as _;
use tokio_rustls::rustls::pki_types::{CertificateDer, PrivateKeyDer};

use crate::receiver::{Got, Receiver, SILENCE};
use crate::support::{Background, PATIENCE, Script};

const SECRET: &str = "a secret of the tests";

/// A workflow that emits messages submitted to `blocks`, to a webhook.
fn workflow(dir: &Path, url: &str, more: &str) -> String {
    let secret = dir.join("secret");
    std::fs::write(&secret, format!("{SECRET}\n")).expect("written");
    std::fs::set_permissions(&secret, Permissions::from_mode(0o600)).expect("it is ours");
    format!(
        r#"
        name = "hooked"
        [[source]]
        name = "in"
        kind = "submit"
        output = "blocks"
        [sequencer]
        input = "blocks"
        [[sequencer.sink]]
        kind = "webhook"
        url = "{url}"
        secret_file = "{}"
        backoff = {{ initial = "1ms", max = "5ms" }}
        {more}
        "#,
        secret.display()
    )
}

/// Checks the signature as a receiver would, following the documentation only.
fn is_signed(got: &Got, body: &[u8]) -> bool {
    let fields = got.header("proofmill-signature").split_once(",v1=");
    let (time, signature) = fields.expect("two fields");
    let time = time.strip_prefix("t=").expect("a time");
    assert!(time.parse::<u64>().expect("seconds") > 1_700_000_000);
    let mut signed = format!("{time}.{}.", got.key()).into_bytes();
    signed.extend_from_slice(body);
    let key = hmac::Key::new(hmac::HMAC_SHA256, SECRET.as_bytes());
    let signature = hex::decode(signature).expect("hexadecimal");
    hmac::verify(&key, &signed, &signature).is_ok()
}

#[tokio::test(flavor = "multi_thread")]
async fn each_emission_is_posted_in_order_until_it_is_taken() {
    let dir = tempfile::tempdir().expect("temporary directory");
    // Block 0 fails twice, block 2 is refused, block 3 is too early.
    let statuses = [500, 500, 200, 204, 422, 200, 429, 301, 200];
    let mut receiver = Receiver::start(&statuses).await;
    let text = workflow(dir.path(), &receiver.url, "");
    let mut mill = Background::start(&text, &Script::open(), dir.path(), true).await;
    for block in 0..5 {
        let payload = format!("{{\"block\":{block}}}");
        assert_eq!(mill.submit("blocks", block, payload).await, Reply::Accepted);
    }
    for block in [0, 0, 0, 1, 2, 2, 3, 3, 3, 4] {
        let got = receiver.next().await;
        assert_eq!(got.key(), format!("hooked/sequencer/{block}/0"));
        assert_eq!(got.header("proofmill-workflow"), "hooked");
        assert_eq!(got.header("proofmill-block"), block.to_string());
        assert_eq!(got.header("proofmill-last-block"), block.to_string());
        assert_eq!(got.header("proofmill-part"), "0");
        assert_eq!(got.header("content-type"), "application/json");
        assert_eq!(got.body, format!("{{\"block\":{block}}}"));
        assert!(is_signed(&got, &got.body));
        let mut changed = got.body.to_vec();
        changed[2] ^= 1;
        assert!(!is_signed(&got, &changed));
        let mut other = got.clone();
        other.headers.insert(
            "idempotency-key",
            "hooked/sequencer/9/0".parse().expect("a value"),
        );
        assert!(!is_signed(&other, &got.body));
    }
    for block in 0..5 {
        assert_eq!(mill.next().await.first, block);
    }
    mill.stop.raise(Level::Drain);
    assert_eq!(mill.ended().await.status.next_block, Some(5));
    assert!(receiver.is_through());
}

#[tokio::test(flavor = "multi_thread")]
async fn an_emission_whose_answer_is_lost_comes_again_under_its_key() {
    let dir = tempfile::tempdir().expect("temporary directory");
    let mut receiver = Receiver::start(&[SILENCE, SILENCE]).await;
    let text = workflow(dir.path(), &receiver.url, "time_limit = \"10m\"");
    let mill = Background::start(&text, &Script::open(), dir.path(), true).await;
    assert_eq!(mill.submit("blocks", 0, "7").await, Reply::Accepted);
    let first = receiver.next().await;
    mill.crash().await;
    let mill = Background::start(&text, &Script::open(), dir.path(), true).await;
    let second = receiver.next().await;
    assert_eq!((first.key(), &first.body), (second.key(), &second.body));
    // A stopping mill does not wait for a receiver that is silent.
    mill.stop.raise(Level::Stop);
    let summary = mill.ended().await;
    assert_eq!(summary.status.next_block, Some(0), "nobody has taken it");
    let mill = Background::start(&text, &Script::open(), dir.path(), true).await;
    assert_eq!(receiver.next().await.key(), first.key());
    mill.until("it is taken", |core| core.status().next_block == Some(1))
        .await;
    mill.stop.raise(Level::Drain);
    mill.ended().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_secret_that_is_not_there_is_said_before_anything_leaves() {
    let dir = tempfile::tempdir().expect("temporary directory");
    let text = workflow(dir.path(), "http://127.0.0.1:9/", "");
    std::fs::remove_file(dir.path().join("secret")).expect("removed");
    let mill = Background::start(&text, &Script::open(), dir.path(), true).await;
    let error = mill.run.await.expect("no panic").expect_err("no secret");
    let error = error.to_string();
    let secret = dir.path().join("secret");
    let expected = format!("sequencer.sink #1: cannot read {}: ", secret.display());
    assert!(error.starts_with(&expected), "{error}");
}

/// A server that speaks TLS with a certificate of `authority`.
fn acceptor(authority: &Authority) -> TlsAcceptor {
    let files = authority.sign("server", "localhost");
    let chain = CertificateDer::pem_file_iter(files.certificate).expect("a file");
    let chain = chain.collect::<Result<Vec<_>, _>>().expect("a certificate");
    let key = PrivateKeyDer::from_pem_file(files.key).expect("a key");
    let config = ServerConfig::builder_with_provider(Arc::new(provider::default_provider()))
        .with_safe_default_protocol_versions()
        .expect("versions")
        .with_no_client_auth()
        .with_single_cert(chain, key)
        .expect("a certificate and its key");
    TlsAcceptor::from(Arc::new(config))
}

#[tokio::test(flavor = "multi_thread")]
async fn https_is_spoken_to_those_whose_authority_is_trusted() {
    let dir = tempfile::tempdir().expect("temporary directory");
    let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await;
    let listener = listener.expect("a free port");
    let port = listener.local_addr().expect("it is bound").port();
    let url = format!("https://localhost:{port}/proofs");
    let authority = Authority::new(dir.path(), "authority");
    let acceptor = acceptor(&authority);

    let stranger = workflow(dir.path(), &url, "");
    let mill = Background::start(&stranger, &Script::open(), dir.path(), true).await;
    assert_eq!(mill.submit("blocks", 0, "7").await, Reply::Accepted);
    let (stream, _) = listener.accept().await.expect("a connection");
    let error = acceptor
        .accept(stream)
        .await
        .expect_err("it is not trusted");
    assert!(error.to_string().contains("UnknownCA"), "{error}");
    mill.crash().await;

    let ca = authority.certificate.display();
    let trusted = workflow(dir.path(), &url, &format!("ca = \"{ca}\""));
    let mill = Background::start(&trusted, &Script::open(), dir.path(), true).await;
    let answering = async {
        loop {
            let (stream, _) = listener.accept().await.expect("a connection");
            // The mill that crashed may have connected once more.
            let Ok(mut stream) = acceptor.accept(stream).await else {
                continue;
            };
            let mut request = Vec::new();
            while !request.ends_with(b"\r\n\r\n7") {
                assert_ne!(stream.read_buf(&mut request).await.expect("a request"), 0);
            }
            let answer = b"HTTP/1.1 200 OK\r\ncontent-length: 0\r\n\r\n";
            stream.write_all(answer).await.expect("answered");
            stream.shutdown().await.expect("answered");
            return String::from_utf8(request).expect("text");
        }
    };
    let request = tokio::time::timeout(PATIENCE, answering).await;
    let request = request.expect("a request comes");
    assert!(
        request.starts_with("POST /proofs HTTP/1.1\r\n"),
        "{request}"
    );
    mill.until("it is taken", |core| core.status().next_block == Some(1))
        .await;
    mill.stop.raise(Level::Drain);
    mill.ended().await;
}
