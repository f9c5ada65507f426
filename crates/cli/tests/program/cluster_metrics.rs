//! Metrics of a cluster: of every workflow that a coordinator leads, and of the processes of sources and sinks.

use std::fs;
use std::io::{Read, Write};
use std::net::TcpStream;
use std::os::unix::fs::PermissionsExt;
use std::path::Path;

use proofmill_nats_server::NatsServer;

use crate::support::{Running, eventually, folder, proofmill, url};

/// A workflow of three blocks.
fn write_workflow(folder: &Path, name: &str) {
    let text = format!(
        r#"name = "{name}"
[[source]]
name = "blocks"
kind = "range"
start = 0
end = 2
output = "blocks"
[[dispatcher]]
name = "prove"
input = "blocks"
output = "proofs"
executor = {{ kind = "process", program = "./prove.sh" }}
[sequencer]
input = "proofs"
directory = "{name}-proofs"
"#
    );
    fs::write(folder.join(format!("{name}.toml")), text).expect("written");
    let program = folder.join("prove.sh");
    fs::write(&program, "#!/bin/sh\nexec cp \"$2\" \"$4\"\n").expect("written");
    fs::set_permissions(&program, fs::Permissions::from_mode(0o755)).expect("set");
}

fn get(url: &str, path: &str) -> String {
    let address = url
        .trim_start_matches("http://")
        .trim_end_matches("/metrics");
    let mut stream = TcpStream::connect(address).expect("connected");
    write!(
        stream,
        "GET {path} HTTP/1.1\r\nhost: {address}\r\nconnection: close\r\n\r\n"
    )
    .expect("sent");
    let mut answer = String::new();
    stream.read_to_string(&mut answer).expect("text");
    answer
}

#[track_caller]
fn shows(url: &str, wanted: &str) {
    eventually(wanted, || {
        get(url, "/metrics").contains(wanted).then_some(())
    });
}

/// Waits until a counter has a value or a higher one: a message that a sink is given again is counted again.
#[track_caller]
fn reaches(url: &str, counter: &str, least: u32) {
    eventually(&format!("{counter} of {least} or more"), || {
        let page = get(url, "/metrics");
        let value = page.lines().find_map(|line| line.strip_prefix(counter))?;
        let value: f64 = value.trim().parse().expect("a number");
        (value >= f64::from(least)).then_some(())
    });
}

/// Waits until one of two coordinators leads a workflow, and the other shows that it does not. Returns whether the first
/// leads, and the page of the other.
#[track_caller]
fn leader_of(workflow: &str, first: &str, second: &str) -> (bool, String) {
    let shows = |page: &str, value: u8| {
        page.contains(&format!(
            "proofmill_leading{{workflow=\"{workflow}\"}} {value}"
        ))
    };
    eventually("one of two leads", || {
        let (first, second) = (get(first, "/metrics"), get(second, "/metrics"));
        if shows(&first, 1) && shows(&second, 0) {
            return Some((true, second));
        }
        (shows(&first, 0) && shows(&second, 1)).then_some((false, first))
    })
}

#[test]
fn every_process_of_a_cluster_shows_its_part() {
    let server = NatsServer::start();
    let here = folder();
    write_workflow(here.path(), "one");
    write_workflow(here.path(), "two");
    let start = |args: &[&str]| {
        let mut command = proofmill(here.path());
        command
            .args(args)
            .args(["--bus", &server.url(), "--metrics", "127.0.0.1:0"]);
        let running = Running::start(&mut command);
        let line = running.line("metrics on http://");
        let page = url(&line).to_owned();
        running.line(": ready");
        (running, page)
    };
    let (leader, led) = start(&["coordinator", "one.toml", "two.toml"]);
    for workflow in ["one", "two"] {
        shows(
            &led,
            &format!("proofmill_leading{{workflow=\"{workflow}\"}} 1"),
        );
        shows(
            &led,
            &format!("proofmill_next_block{{workflow=\"{workflow}\"}} 0"),
        );
        shows(
            &led,
            &format!("proofmill_log_bytes{{workflow=\"{workflow}\"}} "),
        );
    }
    let (_source, source) = start(&["source", "one.toml", "--submit", "127.0.0.1:0"]);
    shows(
        &source,
        "proofmill_source_head_block{workflow=\"one\",source=\"blocks\"} 2",
    );
    shows(
        &source,
        "proofmill_source_next_block{workflow=\"one\",source=\"blocks\"} 3",
    );
    shows(
        &led,
        "proofmill_tasks_waiting_by_reason{workflow=\"one\",stage=\"prove\",reason=\"none_joined\"} 3",
    );
    shows(
        &led,
        "proofmill_stage_lowest_block{workflow=\"one\",stage=\"prove\"} 0",
    );
    let (_sequencer, sequencer) = start(&["sequencer", "one.toml"]);
    let mut dispatcher = proofmill(here.path());
    dispatcher.args(["dispatcher", "one.toml", "--bus", &server.url()]);
    let _dispatcher = Running::start(&mut dispatcher);
    reaches(
        &sequencer,
        "proofmill_sink_messages_total{workflow=\"one\",sink=\"1\"}",
        3,
    );
    shows(
        &sequencer,
        "proofmill_sink_failing{workflow=\"one\",sink=\"1\"} 0",
    );
    shows(&led, "proofmill_next_block{workflow=\"one\"} 3");
    shows(
        &led,
        "proofmill_group_workers{workflow=\"one\",group=\"prove\",state=\"idle\"} 1",
    );
    reaches(
        &led,
        "proofmill_task_wait_seconds_count{workflow=\"one\"}",
        3,
    );

    // Only now: it takes the lead if the other one waits for its turn of the processor for longer than its lease lasts.
    let (second, also_led) = start(&["coordinator", "one.toml", "two.toml"]);
    let [_, first_leads] = ["two", "one"].map(|workflow| {
        let (first_leads, other) = leader_of(workflow, &led, &also_led);
        let of_leaders = format!("proofmill_next_block{{workflow=\"{workflow}\"}}");
        assert!(!other.contains(&of_leaders), "it does not lead: {other}");
        first_leads
    });
    for page in [&led, &also_led] {
        assert!(get(page, "/healthz").ends_with("\r\n\r\nok\n"));
    }

    let (leads, _stands_by, stands_by) = match first_leads {
        true => (leader, second, also_led),
        false => (second, leader, led),
    };
    leads.kill();
    shows(&stands_by, "proofmill_leading{workflow=\"one\"} 1");
    shows(&stands_by, "proofmill_next_block{workflow=\"one\"} 3");
}
