//! Tests of the console over real connections, with a real mill: who may look, who may act, and what is refused.

use std::net::SocketAddr;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use proofmill_api::console::{Console, ConsoleError};
use proofmill_api::{AccessError, AuditLog, ConnectionLimits, Operations, PortError, TcpOptions};
use proofmill_orchestrator::mill::{Mill, Options, Registry};
use proofmill_workflow::Workflow;
use serde_json::{Value, json};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;
use tokio::task::JoinHandle;

/// A workflow without workers, so that tasks stay as they are.
const WORKFLOW: &str = r#"
name = "still"
[[source]]
name = "outside"
kind = "submit"
output = "in"
[[dispatcher]]
name = "prove"
input = "in"
output = "proofs"
executor = { kind = "native", prover = "none" }
[sequencer]
input = "proofs"
"#;

const TOKENS: &str = "alice alices-token-0123 operator\nbob bobs-token-0123456 viewer\n";

struct Site {
    folder: tempfile::TempDir,
    mill: Mill,
    operations: Operations,
    address: SocketAddr,
    login_url: Option<String>,
    serving: JoinHandle<()>,
}

/// A visitor: the cookie of a session, and the number of its changes.
#[derive(Clone, Debug)]
struct Visitor {
    cookie: String,
    csrf: String,
}

#[derive(Debug)]
struct Answer {
    status: u16,
    head: String,
    body: Value,
}

fn options(tokens: Option<PathBuf>) -> TcpOptions {
    TcpOptions {
        address: "127.0.0.1:0".parse().expect("an address"),
        tls: None,
        tokens,
        connections: ConnectionLimits::default(),
    }
}

fn token_file(folder: &Path, text: &str, mode: u32) -> PathBuf {
    let path = folder.join("tokens");
    std::fs::write(&path, text).expect("written");
    std::fs::set_permissions(&path, PermissionsExt::from_mode(mode)).expect("ours");
    path
}

// === impl Site ===

impl Site {
    async fn open(tokens: Option<&str>) -> Self {
        let folder = tempfile::tempdir().expect("a folder");
        let workflow = Workflow::parse(WORKFLOW, Path::new("still.toml")).expect("a workflow");
        let state = folder.path().join("state");
        let options_of_mill = Options::in_directory(&state);
        let mill = Mill::open(&workflow, Registry::default(), options_of_mill);
        let mill = mill.await.expect("open");
        let handle = mill.handle();
        let operations = Operations::new(handle.operator(), handle.source(), mill.blobs().clone())
            .with_audit(AuditLog::in_directory(&state))
            .with_workflow(Arc::new(workflow));
        let tokens = tokens.map(|text| token_file(folder.path(), text, 0o600));
        let console = Console::open(&options(tokens)).await.expect("open");
        let address = console.url()["http://".len()..]
            .trim_end_matches('/')
            .parse();
        let address = address.expect("an address");
        let login_url = console.login_url();
        let serving = tokio::spawn(console.serve(operations.clone()));
        Self {
            folder,
            mill,
            operations,
            address,
            login_url,
            serving,
        }
    }

    /// Sends a request with exactly these headers, beside those that every request has.
    async fn request(
        &self,
        method: &str,
        path: &str,
        headers: &[(&str, &str)],
        body: &Value,
    ) -> Answer {
        let mut request = format!("{method} {path} HTTP/1.1\r\nconnection: close\r\n");
        for (name, value) in headers {
            request.push_str(&format!("{name}: {value}\r\n"));
        }
        let body = if body.is_null() {
            String::new()
        } else {
            body.to_string()
        };
        request.push_str(&format!(
            "content-type: application/json\r\ncontent-length: {}\r\n\r\n{body}",
            body.len()
        ));
        let mut stream = TcpStream::connect(self.address).await.expect("connected");
        stream.write_all(request.as_bytes()).await.expect("sent");
        let mut bytes = Vec::new();
        stream.read_to_end(&mut bytes).await.expect("an answer");
        // A download is not text.
        let text = String::from_utf8_lossy(&bytes);
        let (head, body) = text.split_once("\r\n\r\n").expect("a head");
        Answer {
            status: head[9..12].parse().expect("a status"),
            head: head.to_owned(),
            body: serde_json::from_str(body).unwrap_or_default(),
        }
    }

    /// A request as the console's own page makes it.
    async fn ask(
        &self,
        method: &str,
        path: &str,
        visitor: Option<&Visitor>,
        body: &Value,
    ) -> Answer {
        let (host, origin) = self.own();
        let mut headers = vec![("host", &*host), ("origin", &*origin)];
        if let Some(visitor) = visitor {
            headers.push(("cookie", &visitor.cookie));
            headers.push(("x-csrf-token", &visitor.csrf));
        }
        self.request(method, path, &headers, body).await
    }

    fn own(&self) -> (String, String) {
        (self.address.to_string(), format!("http://{}", self.address))
    }

    async fn log_in(&self, token: &str) -> Visitor {
        let answer = self
            .ask("POST", "/api/login", None, &json!({ "token": token }))
            .await;
        assert_eq!(answer.status, 204, "{answer:?}");
        let cookie = answer
            .head
            .lines()
            .find_map(|it| it.strip_prefix("set-cookie: "));
        let cookie = cookie.expect("a cookie");
        assert!(cookie.contains("; HttpOnly; SameSite=Strict"), "{cookie}");
        let cookie = cookie.split(';').next().expect("a pair").to_owned();
        let csrf = String::new();
        let visitor = Visitor { cookie, csrf };
        let session = self.ask("GET", "/api/session", Some(&visitor), &Value::Null);
        let csrf = session.await.body["csrf"].as_str().expect("one").to_owned();
        Visitor { csrf, ..visitor }
    }

    async fn act(&self, visitor: &Visitor, action: Value) -> Answer {
        self.ask("POST", "/api/action", Some(visitor), &action)
            .await
    }

    /// Submits a block, whose task stays live.
    async fn submit(&self, block: u64) {
        let submission = json!({ "queue": "in", "first": block, "last": block, "payload": block });
        let submission = serde_json::from_str(&submission.to_string()).expect("a submission");
        self.operations.submit(submission).await.expect("accepted");
    }

    async fn live(&self) -> usize {
        self.operations.status().await.expect("a status").live
    }

    async fn close(self) {
        self.serving.abort();
        drop(self.operations);
        self.mill.close().await.expect("closed");
        drop(self.folder);
    }
}

#[tokio::test]
async fn operators_act_viewers_look_and_strangers_do_neither() {
    let site = Site::open(Some(TOKENS)).await;
    site.submit(1).await;
    let none = Value::Null;
    for path in [
        "/api/block/1",
        "/api/events",
        "/api/engines",
        "/api/engines/0/timeline.svg",
        "/api/dead",
        "/api/audit",
    ] {
        assert_eq!(
            site.ask("GET", path, None, &none).await.status,
            401,
            "{path}"
        );
    }
    // The page itself holds no secret, and asks for a token.
    assert_eq!(site.ask("GET", "/", None, &none).await.status, 200);
    let session = site.ask("GET", "/api/session", None, &none).await.body;
    assert_eq!(
        (
            &session["may_look"],
            &session["may_log_in"],
            &session["csrf"]
        ),
        (&json!(false), &json!(true), &none)
    );

    let (alice, bob) = (
        site.log_in("alices-token-0123").await,
        site.log_in("bobs-token-0123456").await,
    );
    let cancel = json!({ "action": "cancel", "target": { "block": 1 } });
    let refused = site.act(&bob, cancel.clone()).await;
    assert_eq!(refused.status, 403);
    assert_eq!(
        refused.body["error"],
        "bob is a viewer: this needs an operator"
    );
    assert_eq!(
        site.ask("GET", "/api/audit", Some(&bob), &none)
            .await
            .status,
        403
    );
    let block = site.ask("GET", "/api/block/1", Some(&bob), &none).await;
    assert_eq!((block.status, site.live().await), (200, 1));

    let answer = site.act(&alice, cancel.clone()).await;
    assert_eq!(answer.status, 200, "{answer:?}");
    let done = "the live tasks of block 1: stopped, and in the dead-letter queue";
    assert_eq!(answer.body["done"], done);
    let again = site.act(&alice, cancel).await;
    assert_eq!(again.status, 404);
    let retry = json!({ "action": "retry", "task": "prove/1/0" });
    assert_eq!(
        site.act(&alice, retry).await.body["done"],
        "prove/1/0 is back in its queue"
    );
    assert_eq!(site.live().await, 1);

    let entries = site
        .ask("GET", "/api/audit", Some(&alice), &none)
        .await
        .body;
    let told = entries.as_array().expect("entries").iter().map(|entry| {
        assert_eq!(
            (&entry["who"], &entry["via"]),
            (&json!("alice"), &json!("console"))
        );
        (entry["action"].clone(), entry["done"].clone())
    });
    let wanted = [("retry", true), ("cancel", false), ("cancel", true)];
    let wanted = wanted.map(|(action, done)| (json!(action), json!(done)));
    assert_eq!(told.collect::<Vec<_>>(), wanted);

    // Whoever has logged out is a stranger.
    assert_eq!(
        site.ask("POST", "/api/logout", Some(&alice), &json!({}))
            .await
            .status,
        204
    );
    let retry = json!({ "action": "retry", "task": "prove/1/0" });
    assert_eq!(site.act(&alice, retry).await.status, 401);
    site.close().await;
}

#[tokio::test]
async fn forged_requests_of_a_browser_with_a_session_do_nothing() {
    let site = Site::open(Some(TOKENS)).await;
    site.submit(1).await;
    let Visitor { cookie, csrf } = site.log_in("alices-token-0123").await;
    let (host, origin) = site.own();
    let (host, origin) = (("host", &*host), ("origin", &*origin));
    let (cookie, csrf) = (("cookie", &*cookie), ("x-csrf-token", &*csrf));
    let wrong = format!("{}0", &csrf.1[..63]);
    let port = site.address.port();
    let rebound = format!("rebound.example:{port}");
    let rebound_origin = format!("http://{rebound}");
    let cancel = json!({ "action": "cancel", "target": "all" });
    for (what, headers) in [
        (
            "another page",
            vec![host, ("origin", "http://evil.example"), cookie, csrf],
        ),
        (
            "another port",
            vec![host, ("origin", "http://127.0.0.1:1"), cookie, csrf],
        ),
        (
            "a sandboxed page",
            vec![host, ("origin", "null"), cookie, csrf],
        ),
        ("no origin", vec![host, cookie, csrf]),
        (
            "another site",
            vec![host, origin, ("sec-fetch-site", "cross-site"), cookie, csrf],
        ),
        ("no number", vec![host, origin, cookie]),
        (
            "a wrong number",
            vec![host, origin, cookie, ("x-csrf-token", &wrong)],
        ),
        (
            "a rebound host",
            vec![
                ("host", &*rebound),
                ("origin", &*rebound_origin),
                cookie,
                csrf,
            ],
        ),
    ] {
        let answer = site.request("POST", "/api/action", &headers, &cancel).await;
        assert_eq!(answer.status, 403, "{what}: {answer:?}");
    }
    assert_eq!(site.live().await, 1);
    let form = vec![host, origin, cookie, csrf, ("content-type", "text/plain")];
    let answer = site.request("POST", "/api/action", &form, &cancel).await;
    assert!(matches!(answer.status, 400 | 415), "{answer:?}");
    let own = vec![host, origin, cookie, csrf];
    let odd = json!({ "action": "cancel", "target": "all", "more": 1 });
    assert_eq!(
        site.request("POST", "/api/action", &own, &odd).await.status,
        422
    );
    let large = json!({ "action": "retry", "task": "x".repeat(100_000) });
    assert_eq!(
        site.request("POST", "/api/action", &own, &large)
            .await
            .status,
        413
    );
    assert_eq!(site.live().await, 1);
    assert_eq!(
        site.request("POST", "/api/action", &own, &cancel)
            .await
            .status,
        200
    );
    assert_eq!(site.live().await, 0);
    site.close().await;
}

#[tokio::test]
async fn logins_that_fail_are_limited() {
    let site = Site::open(Some(TOKENS)).await;
    let guess = json!({ "token": "guessed-token-0123" });
    let mut seen = Vec::new();
    for _ in 0..11 {
        seen.push(site.ask("POST", "/api/login", None, &guess).await.status);
    }
    assert_eq!(seen[..10], [401; 10]);
    assert_eq!(seen[10], 429);
    // The right token is not tried either, or a guess would be told apart.
    let right = json!({ "token": "alices-token-0123" });
    let answer = site.ask("POST", "/api/login", None, &right).await;
    assert_eq!(
        (answer.status, answer.head.contains("set-cookie")),
        (429, false)
    );
    assert!(answer.head.contains("retry-after"), "{answer:?}");
    site.close().await;
}

#[tokio::test]
async fn without_a_file_everybody_looks_and_the_operator_of_this_run_acts() {
    let site = Site::open(None).await;
    site.submit(1).await;
    assert_eq!(
        site.ask("GET", "/api/block/1", None, &Value::Null)
            .await
            .status,
        200
    );
    let pause = json!({ "action": "pause", "kind": "stage", "name": "prove" });
    assert_eq!(
        site.ask("POST", "/api/action", None, &pause).await.status,
        401
    );
    let url = site.login_url.clone().expect("an address");
    let (page, token) = url.split_once("#/login/").expect("a token");
    assert_eq!(page, format!("http://{}/", site.address));
    let operator = site.log_in(token).await;
    let answer = site.act(&operator, pause.clone()).await;
    assert_eq!(
        answer.body["done"],
        "stage prove is paused; work that has begun goes on"
    );
    let again = site.act(&operator, pause).await;
    assert_eq!(again.status, 409);
    assert_eq!(
        again.body["error"],
        "stage prove is paused already, by operator"
    );
    let why = site
        .ask("GET", "/api/block/1", None, &Value::Null)
        .await
        .body;
    let why = why["tasks"][0]["waits_for"].as_str().expect("a reason");
    assert!(
        why.starts_with("stage \"prove\" to be resumed: operator paused it"),
        "{why}"
    );
    for (action, status) in [
        (
            json!({ "action": "pause", "kind": "source", "name": "nobody" }),
            404,
        ),
        (
            json!({ "action": "pause", "kind": "worker", "name": "nobody" }),
            404,
        ),
        (
            json!({ "action": "pause", "kind": "source", "name": "outside" }),
            200,
        ),
        (
            json!({ "action": "resume", "kind": "source", "name": "outside" }),
            200,
        ),
        (
            json!({ "action": "resume", "kind": "stage", "name": "prove" }),
            200,
        ),
        (
            json!({ "action": "resume", "kind": "stage", "name": "prove" }),
            404,
        ),
        (json!({ "action": "run_now", "task": "prove/1/0" }), 409),
        (json!({ "action": "run_now", "task": "prove/2/0" }), 404),
        (json!({ "action": "run_now", "task": "prove" }), 400),
    ] {
        assert_eq!(
            site.act(&operator, action.clone()).await.status,
            status,
            "{action}"
        );
    }
    site.close().await;
}

#[tokio::test]
async fn all_dead_letters_with_a_text_are_retried() {
    let site = Site::open(None).await;
    for block in 1..=3 {
        site.submit(block).await;
    }
    let url = site.login_url.clone().expect("an address");
    let operator = site.log_in(url.rsplit('/').next().expect("a token")).await;
    let cancel = json!({ "action": "cancel", "target": "all" });
    assert_eq!(site.act(&operator, cancel).await.status, 200);
    let found = site
        .ask("GET", "/api/dead?text=prove/2", None, &Value::Null)
        .await
        .body;
    assert_eq!(
        (&found["total"], &found["letters"][0]["task"]),
        (&json!(1), &json!("prove/2/0"))
    );
    let retry = |text: &str| json!({ "action": "retry_all", "filter": { "text": text } });
    let answer = site.act(&operator, retry("prove/2")).await;
    assert_eq!(answer.body["done"], "1 dead letter is back in its queue");
    assert_eq!(site.act(&operator, retry("prove/2")).await.status, 404);
    let answer = site.act(&operator, retry("cancelled by")).await;
    assert_eq!(
        answer.body["done"],
        "2 dead letters are back in their queues"
    );
    let long = "x".repeat(300);
    assert_eq!(site.act(&operator, retry(&long)).await.status, 400);
    site.close().await;
}

#[tokio::test]
async fn an_operator_downloads_dead_letters_and_the_audit_log_says_so() {
    let site = Site::open(Some(TOKENS)).await;
    site.submit(1).await;
    let alice = site.log_in("alices-token-0123").await;
    let bob = site.log_in("bobs-token-0123456").await;
    let one = json!({ "task": "prove/1/0", "with_programs": false });
    let missing = site.ask("POST", "/api/bundle", Some(&alice), &one).await;
    assert_eq!(missing.status, 404, "{missing:?}");
    let cancel = json!({ "action": "cancel", "target": "all" });
    assert_eq!(site.act(&alice, cancel).await.status, 200);
    for (visitor, status) in [(None, 401), (Some(&bob), 403), (Some(&alice), 200)] {
        let answer = site.ask("POST", "/api/bundle", visitor, &one).await;
        assert_eq!(answer.status, status, "{answer:?}");
        let named = answer.head.contains("filename=\"prove-1-0.bundle\"");
        assert_eq!(named, status == 200, "{answer:?}");
    }
    let unknown = json!({ "tasks": "all" });
    let refused = site
        .ask("POST", "/api/bundle", Some(&alice), &unknown)
        .await;
    assert_eq!(refused.status, 422, "{refused:?}");
    let entries = site.ask("GET", "/api/audit", Some(&alice), &Value::Null);
    let entries = entries.await.body;
    let told = entries.as_array().expect("entries").iter().map(|entry| {
        let text = |name: &str| entry[name].as_str().expect("text").to_owned();
        let done = entry["done"].as_bool().expect("ended");
        (text("action"), text("target"), done)
    });
    let wanted = [
        ("bundle", "prove/1/0", true),
        ("cancel", "all live tasks", true),
        ("bundle", "prove/1/0", false),
    ];
    let wanted = wanted.map(|(action, target, done)| (action.to_owned(), target.to_owned(), done));
    assert_eq!(told.collect::<Vec<_>>(), wanted);
    site.close().await;
}

#[tokio::test]
async fn an_action_that_cannot_be_audited_is_not_begun() {
    let site = Site::open(None).await;
    site.submit(1).await;
    std::fs::create_dir(site.folder.path().join("state/audit.jsonl")).expect("made");
    let url = site.login_url.clone().expect("an address");
    let operator = site.log_in(url.rsplit('/').next().expect("a token")).await;
    let answer = site
        .act(&operator, json!({ "action": "cancel", "target": "all" }))
        .await;
    assert_eq!((answer.status, site.live().await), (503, 1), "{answer:?}");
    site.close().await;
}

#[tokio::test]
async fn an_open_port_and_an_open_file_are_refused() {
    let folder = tempfile::tempdir().expect("a folder");
    let exposed = |tokens| TcpOptions {
        address: "0.0.0.0:0".parse().expect("an address"),
        ..options(tokens)
    };
    let tokens = token_file(folder.path(), TOKENS, 0o600);
    for options in [exposed(None), exposed(Some(tokens))] {
        let refused = Console::open(&options).await.err().expect("refused");
        assert!(matches!(refused, ConsoleError::Port(PortError::Exposed(_))));
    }
    let readable = token_file(folder.path(), TOKENS, 0o644);
    let refused = Console::open(&options(Some(readable))).await;
    let refused = refused.err().expect("refused");
    assert!(
        matches!(refused, ConsoleError::Access(AccessError::Secret(_))),
        "{refused}"
    );
    let without_role = token_file(folder.path(), "alice alices-token-0123\n", 0o600);
    let refused = Console::open(&options(Some(without_role))).await;
    let refused = refused.err().expect("refused").to_string();
    assert!(
        refused.contains("line 1: expected `viewer` or `operator`"),
        "{refused}"
    );
}
