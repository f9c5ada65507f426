//! Reports to Ethproofs: a site that is out delays nothing, a killed mill's proofs are told by the next process, and on a
//! cluster the leader reports. Clusters and their machines.

use std::collections::BTreeSet;
use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::Path;
use std::process::Command;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use proofmill_nats_server::NatsServer;
use serde_json::Value;

use crate::ethproofs_site::{Mood, Site};
use crate::support::{Finished, Running, eventually, finish, folder, proofmill};

const KEY: &str = "key-of-the-team";

/// A workflow whose proofs are its messages.
fn write_workflow(folder: &Path, blocks: u64, site: &Site) {
    let text = format!(
        r#"name = "told"
[[source]]
name = "blocks"
kind = "range"
end = {}
output = "blocks"
[[dispatcher]]
name = "prove"
input = "blocks"
output = "proofs"
workers = 2
executor = {{ kind = "process", program = "./prove.sh" }}
[sequencer]
input = "proofs"
directory = "proofs"
[ethproofs]
url = "{}"
token_env = "ETHPROOFS_KEY"
cluster_id = 4
calls_per_minute = 6000
"#,
        blocks - 1,
        site.url()
    );
    fs::write(folder.join("workflow.toml"), text).expect("written");
    let program = folder.join("prove.sh");
    fs::write(&program, "#!/bin/sh\nexec cp \"$2\" \"$4\"\n").expect("written");
    fs::set_permissions(&program, fs::Permissions::from_mode(0o755)).expect("set");
}

fn mill(folder: &Path) -> Command {
    let mut command = proofmill(folder);
    command
        .args(["run", "workflow.toml", "--state", "state"])
        .env("ETHPROOFS_KEY", KEY);
    command
}

fn has_proofs(site: &Site, count: usize) {
    eventually(&format!("the site has {count} proofs"), || {
        (site.proofs().len() >= count).then_some(())
    });
}

#[test]
fn a_site_that_never_answers_delays_nothing_and_is_told_later() {
    let here = folder();
    let site = Site::start(Mood::Mute);
    write_workflow(here.path(), 10, &site);
    finish(&mut mill(here.path())).succeeded();
    assert!(site.connections() > 0 && site.proofs().is_empty());
    site.be(Mood::Fine);
    let running = Running::start(mill(here.path()).arg("--stay"));
    has_proofs(&site, 10);
    for (block, proof) in site.proofs() {
        let name = format!("state/proofs/{block:010}-{block:010}.json");
        let emitted = fs::read(here.path().join(name)).expect("emitted");
        assert_eq!(STANDARD.decode(proof).expect("Base64"), emitted, "{block}");
    }
    assert!(
        site.calls()
            .iter()
            .all(|call| call.authorization == format!("Bearer {KEY}"))
    );
    let said = running.kill().join("\n");
    assert!(!said.contains(KEY), "{said}");
}

#[test]
fn what_a_killed_mill_has_proved_is_told_by_the_next() {
    let here = folder();
    let site = Site::start(Mood::Fine);
    write_workflow(here.path(), 40, &site);
    for told in [3, 12, 25] {
        let running = Running::start(&mut mill(here.path()));
        has_proofs(&site, told);
        running.kill();
    }
    let _running = Running::start(mill(here.path()).arg("--stay"));
    has_proofs(&site, 40);
}

#[test]
fn a_missing_key_is_named() {
    let here = folder();
    let site = Site::start(Mood::Fine);
    write_workflow(here.path(), 2, &site);
    let mut command = mill(here.path());
    command.env_remove("ETHPROOFS_KEY");
    finish(&mut command).failed(1, "the variable ETHPROOFS_KEY is missing");
    assert_eq!(site.connections(), 0);
}

#[test]
fn on_a_cluster_the_leader_reports() {
    let server = NatsServer::start();
    let here = folder();
    let site = Site::start(Mood::Fine);
    write_workflow(here.path(), 12, &site);
    let start = |role: &str| {
        let mut command = proofmill(here.path());
        command.args([role, "workflow.toml", "--bus", &server.url()]);
        if role == "coordinator" {
            command.env("ETHPROOFS_KEY", KEY);
        }
        let running = Running::start(&mut command);
        running.line(": ready");
        running
    };
    let _roles = ["coordinator", "source", "sequencer", "dispatcher"].map(start);
    has_proofs(&site, 12);
    let calls = site.calls();
    let proved = calls.iter().filter(|call| call.step == "proved");
    assert!(
        proved
            .clone()
            .all(|call| call.body["proving_time"].as_u64() > Some(0))
    );
    // Whoever leads next tells again what may not have been told.
    let blocks: BTreeSet<u64> = proved.map(|call| call.block).collect();
    assert_eq!(blocks, (0..12).collect::<BTreeSet<u64>>());
}

/// Runs `proofmill ethproofs` about the clusters of a team.
fn about_clusters(here: &Path, site: &Site, args: &[&str]) -> Finished {
    let mut command = proofmill(here);
    command.arg("ethproofs").args(args);
    command.args(["--url", &site.url()]);
    finish(command.env("ETHPROOFS_TOKEN", KEY))
}

#[test]
fn clusters_are_registered_listed_and_changed() {
    let here = folder();
    let site = Site::start(Mood::Fine);
    let run = |args: &[&str]| about_clusters(here.path(), &site, args);
    let register = ["register", "--name", "mill-1", "--zkvm-version", "7"];
    let planned = run(&[&register[..], &["--dry-run"]].concat()).succeeded();
    assert_eq!(site.connections(), 0);
    let planned: Value = serde_json::from_str(&planned.stdout).expect("JSON");
    let said = run(&register).succeeded().stdout;
    assert!(said.contains("[ethproofs]\ntoken_env = \"ETHPROOFS_TOKEN\"\ncluster_id = 1\n"));
    assert_eq!(site.clusters()[&1], planned);
    assert_eq!(planned["deployment_type"], "cloud-hosted");
    let threads = std::thread::available_parallelism().map_or(1, usize::from);
    let hardware = planned["hardware_description"].as_str().expect("text");
    let expected = format!("({threads} threads)");
    assert!(hardware.contains(&expected), "{hardware}");

    let two = ["--machines", "2", "--on-premises", "--json"];
    let said = run(&[&register[..], &two].concat()).succeeded().json();
    assert_eq!(
        (said["id"].as_u64(), &said["cluster"]),
        (Some(2), &site.clusters()[&2])
    );
    let hardware = said["cluster"]["hardware_description"].as_str();
    assert!(hardware.expect("text").starts_with("2 machines, each: "));
    assert_eq!(said["cluster"]["deployment_type"], "on-prem");

    let given = ["--gpus", "8", "--hardware", "8x H100", "--active", "no"];
    run(&[&["update", "2"], &given[..]].concat()).succeeded();
    let changed = &site.clusters()[&2];
    assert_eq!(changed["num_gpus"], 8);
    assert_eq!(changed["is_active"], false);
    let listed = run(&["clusters"]).succeeded().stdout;
    assert!(listed.contains("     2  mill-1: 8x H100\n"), "{listed}");
    run(&["update", "2", "--hardware", "--gpus", "4"]).succeeded();
    let listed = run(&["clusters", "--json"]).succeeded().json();
    assert_eq!(
        listed[1]["hardware_description"],
        planned["hardware_description"]
    );
}

#[test]
fn what_the_site_does_not_take_is_said() {
    let here = folder();
    let site = Site::start(Mood::Fine);
    let run = |args: &[&str]| about_clusters(here.path(), &site, args);
    run(&["update", "2"]).failed(2, "required");
    let long = "x".repeat(51);
    run(&["register", "--name", &long, "--zkvm-version", "7"]).failed(2, "51 characters");
    let register = ["register", "--name", "mill-1", "--zkvm-version", "6"];
    run(&register).failed(1, "Invalid zkvm version");
    run(&["update", "9", "--gpus", "2"]).failed(1, "Cluster not found");
    site.be(Mood::Locked);
    run(&["clusters"]).failed(1, "Invalid API key");
    site.be(Mood::Broken);
    run(&register).failed(1, "may exist nevertheless");
    let key = here.path().join("key");
    fs::write(&key, KEY).expect("written");
    fs::set_permissions(&key, fs::Permissions::from_mode(0o644)).expect("set");
    let open = run(&["clusters", "--token-file", "key"]);
    open.failed(1, "chmod 600");
    assert!(site.clusters().is_empty());
}
