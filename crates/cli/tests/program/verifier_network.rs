//! `proofmill verifier serve --listen` over gRPC: streams of proofs, keys, tokens, and misbehaving clients.

use std::path::Path;
use std::time::Duration;

use futures_util::{Stream, stream};
use proofmill_api::verifier::proto::verifier_client::VerifierClient;
use proofmill_api::verifier::proto::verify_request::Ask;
use proofmill_api::verifier::proto::verify_response::Answer;
use proofmill_api::verifier::proto::{
    AddKeyRequest, ListKeysRequest, ListKindsRequest, Proof, RemoveKeyRequest, VerificationResult,
    VerificationStatus, VerifyRequest, VerifyResponse,
};
use rustix::process::Signal;
use tokio::runtime::Runtime;
use tokio::sync::mpsc;
use tonic::transport::{Certificate, Channel, ClientTlsConfig, Endpoint};
use tonic::{Code, Request, Status, Streaming};

use crate::engine_network::{block, private, shell};
use crate::support::{Running, folder, run, url};
use crate::verifier::{KIND, fixture, rollup_proof, serve};

/// Longest time for an answer.
const PATIENCE: Duration = Duration::from_secs(120);

/// An open stream.
pub(crate) struct Talk {
    pub(crate) requests: mpsc::Sender<VerifyRequest>,
    pub(crate) answers: Streaming<VerifyResponse>,
}

pub(crate) fn runtime() -> Runtime {
    let mut builder = tokio::runtime::Builder::new_current_thread();
    builder.enable_all().build().expect("a runtime")
}

pub(crate) fn listening(folder: &Path, more: &[&str]) -> (Running, String) {
    let listen = ["--listen", "127.0.0.1:0"];
    let verifier = serve(folder, &[&listen[..], more].concat());
    let url = url(&verifier.line("the verifier takes"))
        .trim_end_matches(',')
        .to_owned();
    (verifier, url)
}

pub(crate) async fn connect(url: &str) -> VerifierClient<Channel> {
    let endpoint = Endpoint::from_shared(url.to_owned()).expect("an address");
    VerifierClient::new(endpoint.connect().await.expect("connected"))
}

pub(crate) fn ended(verifier: Running) -> String {
    verifier.signal(Signal::TERM);
    verifier.end().1.succeeded().stderr
}

fn proof(kind: &str, key: &str, statement: Vec<u8>, proof: Vec<u8>) -> Ask {
    Ask::Proof(Proof {
        kind: kind.to_owned(),
        key: key.to_owned(),
        statement: statement.into(),
        proof: proof.into(),
        ..Proof::default()
    })
}

pub(crate) fn rollup() -> Ask {
    proof("grumpkin-ipa", "", Vec::new(), rollup_proof())
}

async fn add_key(client: &mut VerifierClient<Channel>) -> String {
    let request = AddKeyRequest {
        kind: KIND.to_owned(),
        key: fixture("verification_key.json").into(),
    };
    client
        .add_key(request)
        .await
        .expect("added")
        .into_inner()
        .digest
}

pub(crate) fn outgoing(
    requests: mpsc::Receiver<VerifyRequest>,
) -> impl Stream<Item = VerifyRequest> {
    stream::unfold(requests, |mut requests| async {
        Some((requests.recv().await?, requests))
    })
}

// === impl Talk ===

impl Talk {
    pub(crate) async fn open(client: &mut VerifierClient<Channel>) -> Self {
        let (requests, receiver) = mpsc::channel(1024);
        let answers = client.verify(outgoing(receiver)).await.expect("a stream");
        Self {
            requests,
            answers: answers.into_inner(),
        }
    }

    pub(crate) async fn ask(&self, request_id: u64, ask: impl Into<Option<Ask>>) {
        let request = VerifyRequest {
            request_id,
            ask: ask.into(),
        };
        self.requests
            .send(request)
            .await
            .expect("the stream is open");
    }

    pub(crate) async fn answer(&mut self) -> Result<Option<(u64, Answer)>, Status> {
        let next = tokio::time::timeout(PATIENCE, self.answers.message()).await;
        let answer = next.expect("in time")?;
        Ok(answer.map(|it| (it.request_id, it.answer.expect("an answer"))))
    }

    pub(crate) async fn result(&mut self) -> (u64, VerificationResult) {
        match self.answer().await.expect("no end").expect("an answer") {
            (request, Answer::Result(result)) => (request, result),
            other => panic!("no result: {other:?}"),
        }
    }
}

#[test]
fn a_stream_has_a_verdict_for_each_proof() {
    let folder = folder();
    let (verifier, url) = listening(folder.path(), &[]);
    runtime().block_on(async {
        let mut client = connect(&url).await;
        let kinds = client.list_kinds(ListKindsRequest {}).await.expect("kinds");
        assert!(kinds.into_inner().kinds.contains(&KIND.to_owned()));
        let key = add_key(&mut client).await;
        let listed = client.list_keys(ListKeysRequest {}).await.expect("keys");
        let listed = listed.into_inner().keys;
        assert_eq!((&listed[0].digest, &*listed[0].kind), (&key, KIND));
        assert_eq!(listed.len(), 1);

        let (public, good) = (fixture("public.json"), fixture("proof.json"));
        let text = String::from_utf8(public.clone()).expect("JSON");
        let other = text.replace("156", "157").into_bytes();
        let (valid, invalid, unavailable) = (
            VerificationStatus::Valid,
            VerificationStatus::Invalid,
            VerificationStatus::Unavailable,
        );
        let none = "00".repeat(32);
        let expected = [
            (proof(KIND, &key, public.clone(), good.clone()), valid),
            (proof(KIND, &key, other, good.clone()), invalid),
            (
                proof(KIND, &key, public.clone(), b"no proof".to_vec()),
                invalid,
            ),
            (
                proof(KIND, &none, public.clone(), good.clone()),
                unavailable,
            ),
            (proof(KIND, "", public.clone(), good.clone()), unavailable),
            (proof("spells", "", Vec::new(), good.clone()), unavailable),
            (rollup(), valid),
        ];
        let mut talk = Talk::open(&mut client).await;
        for (request, (ask, _)) in (10..).zip(&expected) {
            talk.ask(request, ask.clone()).await;
        }
        let mut results = Vec::new();
        for _ in &expected {
            results.push(talk.result().await);
        }
        results.sort_by_key(|(request, _)| *request);
        for (place, (request, result)) in results.iter().enumerate() {
            let status = expected[place].1;
            assert_eq!(
                (*request, result.status()),
                (10 + place as u64, status),
                "{result:?}"
            );
            assert_eq!(
                result.error_message.is_empty(),
                status == valid,
                "{result:?}"
            );
        }
        assert!(results[0].1.batch_size >= 1 && results[0].1.time_in_verify_ms > 0.0);

        // What is not taken is said, and the stream goes on.
        let urgent = |priority| {
            let Ask::Proof(of) = proof(KIND, &key, public.clone(), good.clone()) else {
                unreachable!("a proof");
            };
            Ask::Proof(Proof { priority, ..of })
        };
        for (request, ask, why) in [
            (1, Some(urgent(256)), "`priority`: 256"),
            (
                2,
                Some(proof(KIND, "xyz", Vec::new(), Vec::new())),
                "`key`: a key's digest",
            ),
            (3, None, "not a request"),
        ] {
            talk.ask(request, ask).await;
            match talk.answer().await.expect("no end") {
                Some((found, Answer::Refused(reason))) => {
                    assert_eq!(found, request);
                    assert!(reason.contains(why), "{reason}");
                }
                other => panic!("no refusal: {other:?}"),
            }
        }
        talk.ask(4, urgent(255)).await;
        assert_eq!(talk.result().await.1.status(), valid);
        talk.ask(5, Ask::CancelSource("nobody".to_owned())).await;
        assert_eq!(
            talk.answer().await.expect("no end"),
            Some((5, Answer::Count(0)))
        );

        // The end of the requests is not the end of the answers.
        talk.ask(6, rollup()).await;
        let Talk { requests, answers } = talk;
        drop(requests);
        let mut talk = Talk {
            requests: mpsc::channel(1).0,
            answers,
        };
        assert_eq!(talk.result().await.1.status(), valid);
        assert_eq!(talk.answer().await.expect("no error"), None);

        let remove = RemoveKeyRequest {
            digest: key.clone(),
        };
        let removed = client.remove_key(remove.clone()).await.expect("removed");
        assert!(removed.into_inner().removed);
        assert!(
            !client
                .remove_key(remove)
                .await
                .expect("asked")
                .into_inner()
                .removed
        );
        let mut talk = Talk::open(&mut client).await;
        talk.ask(1, proof(KIND, &key, public, good)).await;
        assert_eq!(talk.result().await.1.status(), unavailable);
        let bad = AddKeyRequest {
            kind: KIND.to_owned(),
            key: "{}".into(),
        };
        let refused = client.add_key(bad).await.expect_err("no key");
        assert_eq!(refused.code(), Code::InvalidArgument, "{refused}");
    });
    ended(verifier);
}

#[test]
fn tls_and_a_token_are_needed_where_they_are_set() {
    let folder = folder();
    let here = folder.path();
    shell(here, &block("docs/engine.md", "openssl req -x509"));
    let (rollup, light) = (
        "0123456789abcdef0123456789abcdef",
        "fedcba9876543210fedcba9876543210",
    );
    private(
        &here.join("tokens"),
        &format!("rollup {rollup}\nlight {light}\n"),
    );
    let tls = [
        "--tls-certificate",
        "engine.pem",
        "--tls-key",
        "engine.key",
        "--tokens",
        "tokens",
    ];
    let (verifier, url) = listening(here, &tls);
    let url = url.replace("127.0.0.1", "localhost");
    assert!(url.starts_with("https://"), "{url}");
    let authority = std::fs::read(here.join("authority.pem")).expect("an authority");
    let open = async || {
        let tls = ClientTlsConfig::new().ca_certificate(Certificate::from_pem(&authority));
        let endpoint = Endpoint::from_shared(url.clone()).expect("an address");
        let endpoint = endpoint.tls_config(tls).expect("TLS");
        VerifierClient::new(endpoint.connect().await.expect("connected"))
    };
    let bearing = |token: &str| {
        let mut request = Request::new(ListKeysRequest {});
        let header = format!("Bearer {token}").parse().expect("a header");
        request.metadata_mut().insert("authorization", header);
        request
    };
    runtime().block_on(async {
        let mut client = open().await;
        for request in [
            Request::new(ListKeysRequest {}),
            bearing("0123456789abcdef0123456789abcdee"),
        ] {
            let refused = client.list_keys(request).await.expect_err("refused");
            assert_eq!(refused.code(), Code::Unauthenticated, "{refused}");
        }
        let (_requests, receiver) = mpsc::channel(1);
        let refused = client
            .verify(outgoing(receiver))
            .await
            .expect_err("refused");
        assert_eq!(refused.code(), Code::Unauthenticated, "{refused}");

        // Keys are those of the token's client, on whatever connection.
        let key = AddKeyRequest {
            kind: KIND.to_owned(),
            key: fixture("verification_key.json").into(),
        };
        let mut request = Request::new(key);
        *request.metadata_mut() = bearing(rollup).into_parts().0;
        client.add_key(request).await.expect("added");
        let mut again = open().await;
        for (token, count) in [(rollup, 1), (light, 0)] {
            let keys = again
                .list_keys(bearing(token))
                .await
                .expect("keys")
                .into_inner();
            assert_eq!(keys.keys.len(), count, "{token}");
        }
        // Without the authority, and without TLS.
        let endpoint = Endpoint::from_shared(url.clone()).expect("an address");
        let endpoint = endpoint.tls_config(ClientTlsConfig::new().with_enabled_roots());
        let unknown = endpoint.expect("TLS").connect().await;
        assert!(unknown.is_err(), "a certificate of an unknown authority");
        let plain = Endpoint::from_shared(url.replace("https", "http")).expect("an address");
        let answer = match plain.connect().await {
            Ok(channel) => VerifierClient::new(channel)
                .list_keys(bearing(rollup))
                .await
                .ok(),
            Err(_) => None,
        };
        assert!(answer.is_none(), "an answer without TLS: {answer:?}");
    });
    ended(verifier);

    for (tokens, why) in [
        (
            "rollup 0123456789abcdef0123456789abcdef operator\n",
            "\"operator\": expected nothing",
        ),
        (
            "local 0123456789abcdef0123456789abcdef\n",
            "the client of the Unix socket",
        ),
        ("rollup short\n", "line 1"),
    ] {
        private(&here.join("tokens"), tokens);
        let state = Path::new(env!("CARGO_TARGET_TMPDIR")).join("verifier");
        let args = [
            "verifier",
            "serve",
            "--state",
            state.to_str().expect("text"),
        ];
        let listen = [
            "--socket",
            "v.sock",
            "--listen",
            "127.0.0.1:0",
            "--tokens",
            "tokens",
        ];
        run(here, args.iter().chain(&listen)).failed(1, why);
        let open = ["--socket", "v.sock", "--listen", "0.0.0.0:0"];
        let refused = run(here, args.iter().chain(&open)).failed(1, "without TLS and a token");
        assert!(refused.stderr.contains("--tls-certificate"), "{refused:?}");
    }
}

#[test]
fn a_message_that_is_too_long_ends_its_stream_and_nothing_else() {
    let folder = folder();
    let (verifier, url) = listening(folder.path(), &[]);
    runtime().block_on(async {
        let mut client = connect(&url).await;
        let mut talk = Talk::open(&mut client).await;
        talk.ask(1, rollup()).await;
        let long = proof(
            "grumpkin-ipa",
            "",
            Vec::new(),
            vec![0; (4 << 20) + (64 << 10)],
        );
        talk.ask(2, long).await;
        // What was asked before has its verdict.
        assert_eq!(talk.result().await.1.status(), VerificationStatus::Valid);
        let refused = talk.answer().await.expect_err("the end");
        assert_eq!(refused.code(), Code::InvalidArgument, "{refused}");
        assert!(refused.message().contains("at most"), "{refused}");

        // A message of that size is read, and no proof of that size taken.
        let mut talk = Talk::open(&mut client).await;
        talk.ask(
            1,
            proof("grumpkin-ipa", "", Vec::new(), vec![0; (4 << 20) + 1]),
        )
        .await;
        let refused = talk.answer().await.expect("no end");
        assert!(
            matches!(refused, Some((1, Answer::Refused(_)))),
            "{refused:?}"
        );
        talk.ask(2, rollup()).await;
        assert_eq!(talk.result().await.1.status(), VerificationStatus::Valid);
    });
    ended(verifier);
}
