//! `proofmill console`: the page of a workflow on a cluster, by a user that may ask and change nothing.

use std::io::{BufRead as _, BufReader, Write as _};
use std::net::TcpStream;
use std::time::Instant;

use proofmill_nats_server::Deployed;
use serde_json::Value;

use crate::cluster_roles::{as_user, prepare};
use crate::support::{PATIENCE, Running, eventually, finish, url};

/// The events of a console, read as a page does.
struct Events(BufReader<TcpStream>);

// === impl Events ===

impl Events {
    fn open(address: &str) -> Self {
        Self(BufReader::new(ask(address, "/api/events")))
    }

    /// The data of the next event of this name for which `is_wanted` holds.
    fn next(&mut self, name: &str, is_wanted: impl Fn(&str) -> bool) -> String {
        let deadline = Instant::now() + PATIENCE;
        let mut event = String::new();
        loop {
            assert!(Instant::now() < deadline, "no event {name:?} in time");
            let mut line = String::new();
            let read = self.0.read_line(&mut line).expect("an event in time");
            assert_ne!(read, 0, "the console has closed the connection");
            if let Some(found) = line.strip_prefix("event: ") {
                found.trim().clone_into(&mut event);
            }
            let data = line.strip_prefix("data: ").map(str::trim);
            if let Some(data) = data.filter(|data| event == name && is_wanted(data)) {
                return data.to_owned();
            }
        }
    }

    fn overview(&mut self, is_wanted: impl Fn(&Value) -> bool) -> Value {
        let parse = |data: &str| serde_json::from_str(data).expect("JSON");
        parse(&self.next("overview", |data| is_wanted(&parse(data))))
    }
}

fn ask(address: &str, path: &str) -> TcpStream {
    let mut stream = TcpStream::connect(address).expect("connected");
    stream.set_read_timeout(Some(PATIENCE)).expect("a limit");
    let request = format!("GET {path} HTTP/1.1\r\nhost: {address}\r\n\r\n");
    stream.write_all(request.as_bytes()).expect("sent");
    stream
}

/// The first line of an answer, which has the status.
fn status(address: &str, path: &str) -> String {
    let mut line = String::new();
    let mut answer = BufReader::new(ask(address, path));
    answer.read_line(&mut line).expect("an answer");
    line.trim().to_owned()
}

#[test]
fn a_console_of_a_cluster_shows_it_over_a_failover() {
    let server = Deployed::start();
    let folder = prepare(3);
    let start = |user: &str, args: &[&str]| {
        Running::start(as_user(&server, folder.path(), user).args(args))
    };
    let first = start("coordinator", &["coordinator", "workflow.toml"]);
    first.line("ready");
    let arguments = ["console", "workflow.toml", "--listen", "127.0.0.1:0"];
    let console = start("console", &arguments);
    let line = console.line("console on http");
    let address = url(&line).trim_start_matches("http://");
    let address = address.trim_end_matches('/');

    let mut events = Events::open(address);
    let seen = events.overview(|_| true);
    assert_eq!(seen["status"]["workflow"], "roles");
    assert_eq!(seen["stages"][0]["reads"][0], "blocks");
    let source = start("source", &["source", "workflow.toml"]);
    events.overview(|seen| seen["status"]["live"] == 3);
    assert_eq!(status(address, "/"), "HTTP/1.1 200 OK");
    let answered = || (status(address, "/api/block/1") == "HTTP/1.1 200 OK").then_some(());
    eventually("the block is shown", answered);

    first.kill();
    let lost = events.next("lost", |_| true);
    assert!(lost.contains("no leader of the workflow answers"), "{lost}");
    let refused = status(address, "/api/block/1");
    assert_eq!(refused, "HTTP/1.1 503 Service Unavailable");
    let second = start("coordinator", &["coordinator", "workflow.toml"]);
    second.line("ready");
    // The same connection goes on with the new leader.
    let seen = events.overview(|_| true);
    assert_eq!(seen["status"]["live"], 3);
    eventually("the block is shown again", answered);

    for role in [console, source, second] {
        let said = role.kill().join("\n");
        assert!(!said.contains("does not let"), "{said}");
    }
}

/// The console's user has no other right: the commands of operators are refused by the server.
#[test]
fn the_consoles_user_changes_nothing() {
    let server = Deployed::start();
    let folder = prepare(0);
    let coordinator = Running::start(
        as_user(&server, folder.path(), "coordinator").args(["coordinator", "workflow.toml"]),
    );
    coordinator.line("ready");
    let mut command = as_user(&server, folder.path(), "console");
    let ran = finish(command.args(["dlq", "retry", "--all", "--workflow", "roles"]));
    assert_eq!(ran.code, Some(1), "{ran:?}");
    assert!(ran.stderr.contains("the server does not let"), "{ran:?}");
    drop(coordinator);
}

#[test]
fn a_console_that_others_could_reach_is_refused() {
    let folder = prepare(0);
    let mut command = crate::support::proofmill(folder.path());
    let bus = ["--bus", "nats://127.0.0.1:1", "--listen", "0.0.0.0:9467"];
    let ran = finish(command.args(["console", "workflow.toml"]).args(bus));
    ran.failed(2, "it is served on loopback only");
}
