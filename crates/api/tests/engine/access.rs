//! Tests of access control: who may connect, and who may use which calls.

use std::fs::{self, Permissions};
use std::net::SocketAddr;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};

use proofmill_api::engine::proto::register_request::Source;
use proofmill_api::engine::proto::{RegisterRequest, SubmitRequest, Tier};
use proofmill_api::engine::{
    Address, Client, ClientError, Credentials, ServeError, Server, ServerOptions, TcpOptions,
};
use proofmill_api::{ConnectionLimits, TlsFiles};
use proofmill_engine::{Limits, Options, Service};
use proofmill_nats_server::Authority;
use tempfile::TempDir;
use tonic::Code;

use crate::engines::{BN254, Gate, options};
use crate::site::{Offer, Site, assert_refused, request};

const TOKENS: &str =
    "rollup 0123456789abcdef0123456789abcdef\nlight fedcba9876543210fedcba9876543210\n";

/// A file that only this user can read.
pub(crate) fn private_file(folder: &Path, name: &str, text: &str) -> PathBuf {
    let path = folder.join(name);
    fs::write(&path, text).unwrap();
    fs::set_permissions(&path, Permissions::from_mode(0o600)).unwrap();
    path
}

fn on_loopback() -> SocketAddr {
    "127.0.0.1:0".parse().unwrap()
}

async fn bind(tcp: TcpOptions) -> Result<Server, ServeError> {
    let (_service, handle) = Service::open(options()).await.unwrap();
    let places = ServerOptions {
        tcp: Some(tcp),
        ..ServerOptions::default()
    };
    Server::bind(handle, &places).await
}

#[track_caller]
fn assert_not_served(outcome: Result<Server, ServeError>, why: &str) {
    let text = match outcome {
        Err(error) => error.to_string(),
        Ok(_) => panic!("it serves"),
    };
    assert!(text.contains(why), "no {why:?} in {text:?}");
}

#[tokio::test(flavor = "multi_thread")]
async fn the_socket_is_for_its_user_only_and_for_one_engine() {
    let site = Site::open().await;
    let mode = fs::metadata(site.socket()).unwrap().permissions().mode();
    assert_eq!(mode & 0o777, 0o600);
    let (_service, handle) = Service::open(options()).await.unwrap();
    let same = ServerOptions {
        socket: Some(site.socket()),
        ..ServerOptions::default()
    };
    assert_not_served(Server::bind(handle.clone(), &same).await, "listens");
    let socket = site.socket();
    let kept = site.folder.path().to_owned();
    assert!(Client::find(&socket).await.unwrap().is_some());
    site.stop().await;
    assert!(!socket.exists() && Client::find(&socket).await.unwrap().is_none());
    drop(kept);
}

#[tokio::test(flavor = "multi_thread")]
async fn beyond_loopback_tls_and_tokens_are_needed() {
    let folder = tempfile::tempdir().unwrap();
    let authority = Authority::new(folder.path(), "authority");
    let signed = authority.sign("engine", "localhost");
    let tls = Some(TlsFiles {
        certificate: signed.certificate.clone(),
        key: signed.key.clone(),
    });
    let tokens = Some(private_file(folder.path(), "tokens", TOKENS));
    let everywhere = TcpOptions {
        address: "0.0.0.0:0".parse().unwrap(),
        tls: tls.clone(),
        tokens: tokens.clone(),
        connections: ConnectionLimits::default(),
    };
    for half in [
        TcpOptions {
            tls: None,
            ..everywhere.clone()
        },
        TcpOptions {
            tokens: None,
            ..everywhere.clone()
        },
    ] {
        assert_not_served(bind(half).await, "can be reached from other machines");
    }
    // Faulty files are reported before anything is offered.
    let open = private_file(folder.path(), "open", TOKENS);
    fs::set_permissions(&open, Permissions::from_mode(0o644)).unwrap();
    let short = private_file(folder.path(), "short", "rollup secret\n");
    for (file, why) in [
        (open, "other users"),
        (short, "line 1"),
        (folder.path().join("absent"), "absent"),
    ] {
        let with = TcpOptions {
            tokens: Some(file),
            ..everywhere.clone()
        };
        assert_not_served(bind(with).await, why);
    }
    let swapped = TlsFiles {
        certificate: signed.key.clone(),
        key: signed.key.clone(),
    };
    let with = TcpOptions {
        tls: Some(swapped),
        ..everywhere.clone()
    };
    assert_not_served(bind(with).await, "engine.key");
    fs::set_permissions(&signed.key, Permissions::from_mode(0o604)).unwrap();
    assert_not_served(bind(everywhere.clone()).await, "other users");
    fs::set_permissions(&signed.key, Permissions::from_mode(0o600)).unwrap();
    assert!(bind(everywhere).await.is_ok());
}

/// Options for a TCP port with tokens and TLS, whose certificate is for `name`, and the authority of the certificate.
fn guard(name: &str) -> (TempDir, TcpOptions, PathBuf) {
    let folder = tempfile::tempdir().unwrap();
    let authority = Authority::new(folder.path(), "authority");
    let signed = authority.sign("engine", name);
    let tcp = TcpOptions {
        address: on_loopback(),
        tls: Some(TlsFiles {
            certificate: signed.certificate,
            key: signed.key,
        }),
        tokens: Some(private_file(folder.path(), "tokens", TOKENS)),
        connections: ConnectionLimits::default(),
    };
    (folder, tcp, authority.certificate)
}

/// A site on a port made by [`guard`].
async fn guarded(name: &str) -> (TempDir, Site, PathBuf) {
    let (folder, tcp, authority) = guard(name);
    (
        folder,
        Site::with(options(), Offer::tcp(tcp)).await,
        authority,
    )
}

async fn connect(
    site: &Site,
    authority: &Path,
    token: Option<PathBuf>,
) -> Result<Client, ClientError> {
    let port = site.tcp.unwrap().port();
    let address = Address::Tcp(format!("https://localhost:{port}").parse().unwrap());
    let credentials = Credentials {
        authority: Some(authority.to_owned()),
        token,
    };
    Client::connect(&address, &credentials).await
}

#[tokio::test(flavor = "multi_thread")]
async fn a_certificate_of_an_unknown_authority_is_refused() {
    let (folder, site, authority) = guarded("localhost").await;
    let other = Authority::new(folder.path(), "other").certificate;
    let refused = connect(&site, &other, None).await;
    assert!(
        matches!(refused, Err(ClientError::Unreachable { .. })),
        "{refused:?}"
    );
    // A client without TLS gets no answer.
    let plain = Address::Tcp(format!("http://{}", site.tcp.unwrap()).parse().unwrap());
    let answered = match Client::connect(&plain, &Credentials::default()).await {
        Ok(client) => client.status().await.map(drop),
        Err(error) => Err(error),
    };
    assert!(
        matches!(answered, Err(ClientError::Unreachable { .. })),
        "{answered:?}"
    );
    let known = connect(&site, &authority, None).await.unwrap();
    assert_refused(known.status().await, Code::Unauthenticated, "needs a token");
    site.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_certificate_for_another_name_is_refused() {
    let (_folder, site, authority) = guarded("elsewhere.example").await;
    match connect(&site, &authority, None).await {
        Err(ClientError::Unreachable { why, .. }) => {
            assert!(why.contains("not valid for name"), "{why}");
        }
        other => panic!("{other:?}"),
    }
    site.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_client_has_one_quota_over_all_its_connections() {
    let gate = Gate::closed();
    let options = Options {
        interference: Some(gate.clone()),
        limits: Limits {
            jobs_per_client: 1,
            ..Limits::default()
        },
        ..options()
    };
    let (folder, tcp, authority) = guard("localhost");
    let site = Site::with(options, Offer::tcp(tcp)).await;
    let of = |name: &str, token: &str| private_file(folder.path(), name, token);
    let rollup = of("rollup", "0123456789abcdef0123456789abcdef\n");
    let light = of("light", "fedcba9876543210fedcba9876543210\n");
    let first = connect(&site, &authority, Some(rollup.clone()))
        .await
        .unwrap();
    let again = connect(&site, &authority, Some(rollup)).await.unwrap();
    let other = connect(&site, &authority, Some(light)).await.unwrap();
    first.submit(request("1", BN254, 7)).await.unwrap();
    let refused = again.submit(request("2", BN254, 7)).await;
    assert_refused(refused, Code::ResourceExhausted, "1 of 1");
    other.submit(request("2", BN254, 7)).await.unwrap();
    gate.open();
    site.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_token_is_required_and_gives_access_to_its_clients_jobs_only() {
    let (folder, site, authority) = guarded("localhost").await;
    let wrong = private_file(folder.path(), "wrong", "0123456789abcdef0123456789abcdee\n");
    let client = connect(&site, &authority, Some(wrong)).await.unwrap();
    assert_refused(
        client.status().await,
        Code::Unauthenticated,
        "does not know the token",
    );
    let of = |name: &str, token: &str| private_file(folder.path(), name, token);
    let rollup = of("rollup", "0123456789abcdef0123456789abcdef\n");
    let light = of("light", "light fedcba9876543210fedcba9876543210\n");
    let rollup = connect(&site, &authority, Some(rollup)).await.unwrap();
    let light = connect(&site, &authority, Some(light)).await.unwrap();

    let job = rollup.submit(request("1", BN254, 7)).await.unwrap().job;
    assert_eq!(rollup.job(&job).await.unwrap().client, "rollup");
    let posing = SubmitRequest {
        client: "rollup".to_owned(),
        ..request("2", BN254, 7)
    };
    assert_refused(light.submit(posing).await, Code::PermissionDenied, "light");
    // Another client's jobs are reported as unknown.
    for answer in [
        light.job(&job).await.map(drop),
        light.cancel(&job).await.map(drop),
        light.await_result(&job).await.map(drop),
    ] {
        assert_refused(answer, Code::NotFound, &job);
    }
    rollup.await_result(&job).await.unwrap();
    let seen = light.status().await.unwrap();
    assert!(seen.jobs.is_empty() && seen.recent.is_empty());
    assert_refused(
        light.past_events().await,
        Code::PermissionDenied,
        "its own jobs",
    );
    assert_eq!(rollup.status().await.unwrap().recent.len(), 1);
    let registration = RegisterRequest {
        name: "x".to_owned(),
        source: Some(Source::Zkey("/etc/passwd".to_owned())),
    };
    assert_refused(
        rollup.register(registration).await,
        Code::PermissionDenied,
        "Unix socket",
    );
    assert_refused(
        rollup.pin("x", true).await,
        Code::PermissionDenied,
        "Unix socket",
    );
    site.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_token_that_is_no_operators_neither_moves_keys_nor_sees_their_paths() {
    let (folder, mut tcp, authority) = guard("localhost");
    let tokens = format!("{TOKENS}keeper 00112233445566778899aabbccddeeff operator\n");
    tcp.tokens = Some(private_file(folder.path(), "with-operator", &tokens));
    let site = Site::with(options(), Offer::tcp(tcp)).await;
    let of = |name: &str, token: &str| private_file(folder.path(), name, token);
    let light = of("light", "fedcba9876543210fedcba9876543210\n");
    // A line in the format of the engine's own file works too.
    let keeper = of(
        "keeper",
        "keeper 00112233445566778899aabbccddeeff operator\n",
    );
    let light = connect(&site, &authority, Some(light)).await.unwrap();
    let keeper = connect(&site, &authority, Some(keeper)).await.unwrap();
    let circuit = BN254.name();
    let why = "`operator` on its line";
    let preloaded = light.preload(&circuit, Tier::Hot).await;
    assert_refused(preloaded, Code::PermissionDenied, why);
    keeper.preload(&circuit, Tier::Hot).await.unwrap();
    keeper.past_events().await.unwrap();
    assert_refused(light.evict(&circuit).await, Code::PermissionDenied, why);
    assert_eq!(light.status().await.unwrap().circuits[0].tier(), Tier::Hot);

    let paths = async |client: &Client| {
        let mut circuits = client.list_circuits().await.unwrap().circuits;
        circuits.extend(client.status().await.unwrap().circuits);
        let paths = circuits
            .into_iter()
            .flat_map(|it| [it.key_path, it.constraints_path]);
        paths.filter(|path| !path.is_empty()).count()
    };
    assert_eq!(paths(&light).await, 0);
    assert!(paths(&keeper).await >= 2);
    assert!(keeper.evict(&circuit).await.unwrap() > 0);
    site.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn loopback_needs_no_tls_and_no_token() {
    let site = Site::with(options(), Offer::loopback()).await;
    let client = site.over_tcp(None).await;
    client.prove(request("1", BN254, 7), None).await.unwrap();
    site.stop().await;
}
