//! Messages over HTTP, to the program as it is run.

use std::net::TcpStream;

use rustix::process::Signal;

use crate::operate::{blocks, site};
use crate::support::{Running, eventually, finish, post, url};

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
        (200, r#"{"outcome":"duplicate"}"#.to_owned())
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
fn where_others_could_send_messages_it_does_not_begin_without_tls_and_a_token() {
    let site = site(NONE, "");
    let ran = finish(&mut site.mill(&["--submit", "0.0.0.0:0"]));
    ran.failed(1, "give --submit-cert");
    let ran = finish(&mut site.mill(&["--submit-token", "token"]));
    ran.failed(2, "--submit <ADDRESS>");
}
