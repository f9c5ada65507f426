//! Messages over HTTP, to the program as it is run.

use std::fs::{self, Permissions};
use std::net::TcpStream;
use std::os::unix::fs::PermissionsExt;

use rustix::process::Signal;

use crate::operate::{blocks, site};
use crate::support::{Running, eventually, finish, post, post_with, url};

/// Ends by itself unless it stays for messages.
const NONE: &str = "kind = \"range\"\nend = 0";

#[test]
fn a_run_takes_messages_until_it_is_told_to_end() {
    let site = site(NONE, "");
    let mill = Running::start(&mut site.mill(&["--submit", "127.0.0.1:0"]));
    let line = mill.line("messages on http");
    let url = url(&line);
    let message = |block: u64| format!(r#"{{"block": {block}, "payload": {{"block": {block}}}}}"#);
    assert_eq!(
        post(url, "blocks", &message(1)),
        (201, r#"{"outcome":"accepted"}"#.to_owned())
    );
    assert_eq!(
        post(url, "blocks", &message(1)),
        (200, r#"{"outcome":"duplicate","same":true}"#.to_owned())
    );
    assert_eq!(post(url, "nowhere", &message(2)).0, 404);
    eventually("both have left", || {
        (site.proofs() == blocks(0..=1)).then_some(())
    });
    mill.signal(Signal::TERM);
    let (_, ran) = mill.end();
    assert_eq!(ran.succeeded().json()["status"]["live"], 0);
    let address = url.split('/').nth(2).expect("an address");
    assert!(TcpStream::connect(address).is_err());
}

#[test]
fn another_payload_of_a_finished_block_is_told_from_the_same_one() {
    let site = site(NONE, "");
    let message = |block: u64, more: &str| {
        format!(r#"{{"block": {block}, "payload": {{"block": {block}{more}}}}}"#)
    };
    let same = (200, r#"{"outcome":"duplicate","same":true}"#.to_owned());
    let other = (200, r#"{"outcome":"duplicate","same":false}"#.to_owned());
    let serve = |options: &[&str]| {
        let options = [&["--submit", "127.0.0.1:0"], options].concat();
        let mill = Running::start(&mut site.mill(&options));
        let line = mill.line("messages on http");
        (mill, url(&line).to_owned())
    };
    let (mill, url) = serve(&[]);
    assert_eq!(post(&url, "blocks", &message(1, "")).0, 201);
    eventually("it has left", || {
        (site.proofs() == blocks(0..=1)).then_some(())
    });
    assert_eq!(post(&url, "blocks", &message(1, "")), same);
    assert_eq!(post(&url, "blocks", &message(1, ", \"x\": 1")), other);
    mill.signal(Signal::TERM);
    mill.end().1.succeeded();

    // The same after a restart, and a refusal if that is asked for.
    let (mill, url) = serve(&["--submit-exact"]);
    assert_eq!(post(&url, "blocks", &message(1, "")), same);
    let (status, said) = post(&url, "blocks", &message(1, ", \"x\": 1"));
    assert!(
        status == 409 && said.contains("carried something else"),
        "{status} {said}"
    );
    mill.signal(Signal::TERM);
    // 130 if the signal comes before the mill has looked at its source, which has ended.
    let ran = mill.end().1;
    assert!(matches!(ran.code, Some(0 | 130)), "{}", ran.stderr);
}

#[test]
fn a_token_posts_to_the_queues_of_its_line_only() {
    let site = site(NONE, "");
    let file = site.file("tokens");
    let tokens = "0000000000000000\nprover 1111111111111111 queues=proofs\n";
    fs::write(&file, tokens).expect("written");
    fs::set_permissions(&file, Permissions::from_mode(0o600)).expect("ours");
    let file = file.to_str().expect("text");
    let options = ["--submit", "127.0.0.1:0", "--submit-token", file];
    let mill = Running::start(&mut site.mill(&options));
    let line = mill.line("messages on http");
    let url = url(&line);
    let status = |token: &str, queue: &str, block: u64| {
        let message = format!(r#"{{"block": {block}, "payload": {{"block": {block}}}}}"#);
        post_with(
            url,
            queue,
            &format!("authorization: Bearer {token}\r\n"),
            &message,
        )
        .0
    };
    let (old, prover) = ("0000000000000000", "1111111111111111");
    // The sequencer's queue, which the stage writes: posting there is as good as proving.
    assert_eq!(status(old, "proofs", 1), 403);
    assert_eq!(status(prover, "blocks", 1), 403);
    assert_eq!(status("2222222222222222", "blocks", 1), 401);
    assert_eq!(status(old, "blocks", 1), 201);
    eventually("it has left", || {
        (site.proofs() == blocks(0..=1)).then_some(())
    });
    assert_eq!(status(prover, "proofs", 2), 201);
    eventually("it has left", || {
        (site.proofs() == blocks(0..=2)).then_some(())
    });
    mill.signal(Signal::TERM);
    mill.end().1.succeeded();

    fs::write(file, "prover 1111111111111111 proofs\n").expect("written");
    finish(&mut site.mill(&options)).failed(1, "line 1: \"proofs\": expected `queues=");
}

#[test]
fn a_reachable_intake_does_not_start_without_tls_and_a_token() {
    let site = site(NONE, "");
    let ran = finish(&mut site.mill(&["--submit", "0.0.0.0:0"]));
    ran.failed(1, "give --submit-cert");
    let ran = finish(&mut site.mill(&["--submit-token", "token"]));
    ran.failed(2, "--submit <ADDRESS>");
}
