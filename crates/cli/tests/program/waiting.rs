//! Roles started before their bus.

use std::process::Command;
use std::time::{Duration, Instant};

use proofmill_nats_server::{Cluster, NatsServer};

use crate::operate::{Site, THREE, site};
use crate::support::{Running, finish, proofmill};

fn role(site: &Site, role: &str, url: &str, more: &[&str]) -> Command {
    let mut command = proofmill(site.path());
    command
        .args([role, "workflow.toml", "--bus", url])
        .args(more);
    command
}

#[test]
fn a_role_waits_for_a_server_that_starts_late() {
    let mut server = NatsServer::start();
    server.kill();
    let site = site(THREE, "");
    let roles = ["coordinator", "sequencer"];
    let running = roles.map(|name| Running::start(&mut role(&site, name, &server.url(), &[])));
    for role in &running {
        role.line("waiting for the bus");
    }
    server.restart();
    for role in &running {
        role.line(": ready");
    }
}

#[test]
fn a_role_waits_no_longer_than_connect_timeout() {
    let mut server = NatsServer::start();
    server.kill();
    let site = site(THREE, "");
    let began = Instant::now();
    let more = ["--connect-timeout", "2s"];
    let ran = finish(&mut role(&site, "source", &server.url(), &more));
    ran.failed(1, "cannot connect to nats://127.0.0.1");
    assert!(began.elapsed() >= Duration::from_secs(2));
    // A command that only asks fails at once, not after the five minutes that are a role's.
    let asked = Instant::now();
    let mut command = proofmill(site.path());
    command.args(["status", "--workflow", "site", "--bus", &server.url()]);
    finish(&mut command).failed(1, "cannot connect to nats://127.0.0.1");
    assert!(asked.elapsed() < Duration::from_secs(100));
}

#[test]
fn a_role_whose_cluster_lacks_a_majority_waits_for_it() {
    let mut cluster = Cluster::start(3, "");
    let url = cluster.servers[0].url();
    cluster.servers[1].kill();
    cluster.servers[2].kill();
    let site = site(THREE, "");
    let more = ["--replicas", "3"];
    let coordinator = Running::start(&mut role(&site, "coordinator", &url, &more));
    let said = coordinator.line("waiting for the bus");
    assert!(
        said.contains("a majority of the servers has to run"),
        "{said}"
    );
    assert!(!said.contains("--jetstream"), "{said}");
    // Three replicas need three servers, once.
    cluster.servers[1].restart();
    cluster.servers[2].restart();
    coordinator.line(": ready");
}
