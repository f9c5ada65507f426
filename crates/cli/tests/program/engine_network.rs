//! An engine on a TCP port: certificates made as the document says, and clients that ask in a wrong way.

use std::fs;
use std::io::{Read, Write};
use std::net::TcpStream;
use std::os::unix::fs::PermissionsExt;
use std::path::Path;
use std::process::{Command, Stdio};

use rustix::process::Signal;

use crate::engine::fixtures;
use crate::operate::get_as;
use crate::support::{Running, finish, folder, proofmill, repository, run};

/// The fenced block of a document that holds `what`.
pub(crate) fn block(document: &str, what: &str) -> String {
    let text = fs::read_to_string(repository(document)).expect("a document");
    let mut blocks = text.split("```sh\n").skip(1);
    let found = blocks.find_map(|rest| rest.split("\n```").next().filter(|it| it.contains(what)));
    found
        .unwrap_or_else(|| panic!("{document} has no block with {what:?}"))
        .to_owned()
}

/// Runs a script of `sh` in a folder.
pub(crate) fn shell(folder: &Path, script: &str) {
    let mut command = Command::new("sh");
    command
        .args(["-euc", script])
        .current_dir(folder)
        .stdin(Stdio::null());
    let ran = finish(&mut command);
    assert_eq!(ran.code, Some(0), "{script}: {ran:?}");
}

pub(crate) fn private(path: &Path, text: &str) {
    fs::write(path, text).expect("written");
    fs::set_permissions(path, fs::Permissions::from_mode(0o600)).expect("set");
}

/// An engine on a port with these options, and that port.
fn listening(folder: &Path, options: &[&str]) -> (Running, String) {
    let args = [
        "engine",
        "serve",
        "--circuits",
        "keys",
        "--listen",
        "127.0.0.1:0",
    ];
    let engine = Running::start(proofmill(folder).args(args).args(options));
    let line = engine.line("the engine answers on");
    let address = line.split(", ").find(|it| it.starts_with("127.0.0.1:"));
    let port = address
        .and_then(|it| it.rsplit(':').next())
        .expect("a port");
    (engine, port.trim().to_owned())
}

fn ended(engine: Running) {
    engine.signal(Signal::TERM);
    engine.end().1.succeeded();
}

#[test]
fn the_documented_certificate_works_and_errors_of_others_are_explained() {
    let folder = folder();
    let here = folder.path();
    fixtures(here);
    shell(here, &block("docs/engine.md", "openssl req -x509"));
    private(
        &here.join("tokens"),
        "rollup 0123456789abcdef0123456789abcdef\n",
    );
    let tls = |certificate, key| {
        [
            "--tls-certificate",
            certificate,
            "--tls-key",
            key,
            "--tokens",
            "tokens",
        ]
    };
    let (engine, port) = listening(here, &tls("engine.pem", "engine.key"));
    let status = |address: &str, more: &[&str]| {
        let url = format!("{address}:{port}");
        let args = ["engine", "status", "--engine", &url, "--token", "tokens"];
        run(here, args.iter().chain(more))
    };
    status("https://localhost", &["--ca", "authority.pem"]).succeeded();
    status("https://127.0.0.1", &["--ca", "authority.pem"]).succeeded();
    // Without the authority, and without TLS.
    let unknown =
        status("https://localhost", &[]).failed(1, "not of an authority that is trusted here");
    assert!(unknown.stderr.contains("with --ca"), "{unknown:?}");
    let plain =
        status("http://localhost", &[]).failed(1, "is addressed as https://HOST:PORT with --ca");
    assert!(!plain.stderr.contains("panicked"), "{plain:?}");
    ended(engine);

    // An authority's certificate that is shown as the engine's own.
    let (engine, port) = listening(here, &tls("authority.pem", "authority.key"));
    let url = format!("https://localhost:{port}");
    let shown = [
        "engine",
        "status",
        "--engine",
        &url,
        "--token",
        "tokens",
        "--ca",
        "authority.pem",
    ];
    let refused = run(here, shown).failed(1, "no engine answers");
    assert!(
        refused.stderr.contains("CA:FALSE") || refused.stderr.contains("no name in it"),
        "{refused:?}"
    );
    ended(engine);

    // One that signs itself, as most guides make it.
    let make = "openssl req -x509 -newkey ec -pkeyopt ec_paramgen_curve:prime256v1 -nodes -days 1 \
                -subj /CN=localhost -addext subjectAltName=DNS:localhost -keyout own.key -out own.pem \
                2> own.log && chmod 600 own.key";
    shell(here, make);
    let (engine, port) = listening(here, &tls("own.pem", "own.key"));
    let url = format!("https://localhost:{port}");
    let own = [
        "engine", "status", "--engine", &url, "--token", "tokens", "--ca", "own.pem",
    ];
    let refused = run(here, own).failed(1, "CA:FALSE");
    assert!(refused.stderr.contains("docs/engine.md"), "{refused:?}");
    ended(engine);
}

#[test]
fn connections_with_and_without_tls_are_told_apart_and_every_port_has_a_front_page() {
    let folder = folder();
    let here = folder.path();
    fixtures(here);
    let (engine, port) = listening(here, &["--http", "127.0.0.1:0"]);
    let line = engine.line("the engine answers on");
    let http = line
        .split("http://")
        .nth(1)
        .expect("an address")
        .trim()
        .to_owned();
    let ask = |url: &str| run(here, ["engine", "status", "--engine", url]);
    ask(&format!("http://localhost:{port}")).succeeded();
    let refused = ask(&format!("https://localhost:{port}"));
    refused.failed(1, "is addressed as http://HOST:PORT");
    // The port for browsers is not the one for clients.
    let wrong = ask(&format!("http://{http}"));
    wrong.failed(1, "the port is that of --listen, not of --http");

    for (address, here_is) in [
        (
            format!("127.0.0.1:{port}"),
            "proofmill.engine.v1.ProvingEngine",
        ),
        (http, "href=\"/metrics\""),
    ] {
        let page = get_as(&address, "/", "host: localhost");
        assert!(page.starts_with("HTTP/1.1 200 "), "{page}");
        for expected in [
            here_is,
            "<h1>proofmill engine</h1>",
            "docs/engine.md",
            "text/html",
        ] {
            assert!(page.contains(expected), "no {expected:?} in {page}");
        }
    }
    // Of HTTP/1 nothing else is answered there.
    let mut stream = TcpStream::connect(format!("127.0.0.1:{port}")).expect("connected");
    let call = "POST /proofmill.engine.v1.ProvingEngine/GetStatus HTTP/1.1\r\nhost: evil.example\r\n\
                content-type: application/grpc\r\ncontent-length: 0\r\nconnection: close\r\n\r\n";
    stream.write_all(call.as_bytes()).expect("sent");
    let mut answer = Vec::new();
    stream.read_to_end(&mut answer).expect("answered");
    let answer = String::from_utf8_lossy(&answer);
    assert!(
        answer.contains("grpc-status: 7"),
        "permission denied: {answer}"
    );
    ended(engine);
}
