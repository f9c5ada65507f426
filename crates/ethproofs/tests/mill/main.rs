//! A whole mill in this process, with a real reporter and a site on a port.
//!
//! Where the site never answers, the reporter's time limit is an hour: a mill that waited for it would not end within
//! the time that a test has.

mod site;

use std::collections::BTreeMap;
use std::fs::Permissions;
use std::os::unix::fs::PermissionsExt as _;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use proofmill_ethproofs::{
    DropReason, Observer, ObserverOptions, Reporting, Settings, Snapshot, Step, add_metrics, start,
};
use proofmill_orchestrator::executor::{Context, Json, Prover, ProverError};
use proofmill_orchestrator::mill::{Mill, Options, Registry, Summary};
use proofmill_orchestrator::shutdown;
use proofmill_orchestrator::sink::Emitted;
use proofmill_telemetry::Page;
use proofmill_workflow::{LocalHost, Workflow, render, validate};
use serde_json::{Value, json};
use tokio::sync::mpsc;

use site::{Mood, Site};

/// Longest wait for anything.
const PATIENCE: Duration = Duration::from_secs(120);

const TOKEN: &str = "key-of-the-team";

/// Proves a block at once: the proof is its number, and a blob's worth of padding for every third block.
struct Quick;

impl Prover for Quick {
    type Input = Json<Value>;
    type Output = Json<Value>;

    fn prove(&self, context: &Context, _: Json<Value>) -> Result<Json<Value>, ProverError> {
        let block = context.first;
        let padding = if block.is_multiple_of(3) {
            "p".repeat(70_000)
        } else {
            String::new()
        };
        let proof = STANDARD.encode(proof_of(block));
        Ok(Json(
            json!({ "proof": proof, "cycles": 1_000 + block, "padding": padding }),
        ))
    }
}

fn proof_of(block: u64) -> Vec<u8> {
    format!("proof of block {block}").into_bytes()
}

/// A folder with the state of a mill, and its workflow.
struct Place {
    folder: tempfile::TempDir,
    workflow: Workflow,
}

// === impl Place ===

impl Place {
    fn new(blocks: u64, site: &Site, further: &str) -> Self {
        let folder = tempfile::tempdir().expect("a folder");
        let token = folder.path().join("token");
        std::fs::write(&token, TOKEN).expect("written");
        std::fs::set_permissions(&token, Permissions::from_mode(0o600)).expect("it is ours");
        let text = format!(
            r#"
            name = "told"
            [[source]]
            name = "blocks"
            kind = "range"
            end = {}
            output = "blocks"
            [[dispatcher]]
            name = "prove"
            input = "blocks"
            output = "proofs"
            workers = 4
            executor = {{ kind = "native", prover = "quick" }}
            [sequencer]
            input = "proofs"
            directory = "emitted"
            [ethproofs]
            url = "{}"
            token_file = "{}"
            cluster_id = 4
            verifier_id = "vk"
            proof = "/proof"
            cycles = "/cycles"
            calls_per_minute = 6000
            {further}
            "#,
            blocks - 1,
            site.url(),
            token.display(),
        );
        let host = LocalHost::new(["quick"]);
        let workflow = match validate(&text, &folder.path().join("w.toml"), &host) {
            Ok((workflow, _)) => workflow,
            Err(faults) => panic!("{}", render(&faults)),
        };
        Self { folder, workflow }
    }

    fn state(&self) -> PathBuf {
        self.folder.path().join("state")
    }

    /// Starts a reporter. The one before may still hold its lock as it ends.
    fn reporter(&self) -> Reporting {
        let ethproofs = self.workflow.ethproofs.as_ref().expect("it is there");
        let folder = self.state().join("ethproofs");
        let begun = Instant::now();
        loop {
            match start(Settings::of(ethproofs, &folder).expect("settings")) {
                Ok(reporting) => return reporting,
                Err(error) => assert!(begun.elapsed() < PATIENCE, "it does not start: {error}"),
            }
            std::thread::park_timeout(Duration::from_millis(10));
        }
    }

    /// Runs the mill to its end. Returns what it emitted.
    async fn run(&self, reporting: &Reporting) -> (Summary, Vec<Emitted>) {
        let mut registry = Registry::default();
        registry.prover("quick", |_| Ok(Quick));
        let (stream, mut emitted) = mpsc::channel(16);
        let options = Options {
            stream: Some(stream),
            ..Options::in_directory(self.state())
        };
        let mill = Mill::open(&self.workflow, registry, options)
            .await
            .expect("opened");
        let observed = ObserverOptions {
            begins_at: None,
            directory: Some(self.state().join("emitted")),
        };
        let (blobs, reports) = (mill.blobs().clone(), reporting.reports());
        let observer = Observer::begin(mill.handle(), blobs, reports, observed);
        let observing = tokio::spawn(observer.await.expect("it runs").run());
        let (_stop, shutdown) = shutdown::channel();
        let running = tokio::spawn(mill.run(shutdown));
        let mut all = Vec::new();
        while let Some(emitted) = within(emitted.recv()).await {
            all.push(emitted);
        }
        let summary = within(running).await.expect("no panic").expect("it ends");
        within(observing).await.expect("no panic");
        (summary, all)
    }

    fn kept(&self) -> usize {
        let entries = std::fs::read_dir(self.state().join("ethproofs")).expect("a folder");
        let names = entries.map(|entry| entry.expect("an entry").file_name());
        names
            .filter(|name| name.to_string_lossy().ends_with(".proof"))
            .count()
    }
}

async fn within<T>(future: impl Future<Output = T>) -> T {
    let done = tokio::time::timeout(PATIENCE, future).await;
    done.expect("it takes too long")
}

async fn until(what: &str, is: impl Fn() -> bool) {
    let begun = Instant::now();
    while !is() {
        assert!(begun.elapsed() < PATIENCE, "it never comes to: {what}");
        tokio::time::sleep(Duration::from_millis(10)).await;
    }
}

fn assert_complete(site: &Site, blocks: u64) {
    let proofs: BTreeMap<u64, String> = (0..blocks)
        .map(|block| (block, STANDARD.encode(proof_of(block))))
        .collect();
    assert_eq!(site.proofs(), proofs);
}

fn look(reporting: &Reporting) -> Snapshot {
    reporting.reports().numbers().look()
}

fn is_private(path: &Path) -> bool {
    use std::os::unix::fs::PermissionsExt as _;
    let mode = std::fs::metadata(path)
        .expect("it is there")
        .permissions()
        .mode();
    mode & 0o077 == 0
}

#[tokio::test(flavor = "multi_thread")]
async fn a_mill_s_blocks_and_proofs_are_told() {
    let site = Site::start(Mood::Fine);
    let place = Place::new(30, &site, "");
    let reporting = place.reporter();
    let (summary, emitted) = place.run(&reporting).await;
    assert!(summary.is_complete());
    assert_eq!(emitted.len(), 30);
    until("all proofs are told", || site.proofs().len() == 30).await;
    until("nothing is kept", || place.kept() == 0).await;
    assert_complete(&site, 30);
    for block in 0..30 {
        let calls = site.calls();
        let of_block: Vec<_> = calls.iter().filter(|call| call.block == block).collect();
        let order = ["queued", "proving", "proved"];
        let steps: Vec<usize> = of_block
            .iter()
            .map(|call| {
                order
                    .iter()
                    .position(|step| *step == call.step)
                    .expect("a step")
            })
            .collect();
        assert!(steps.is_sorted() && steps.last() == Some(&2), "{steps:?}");
        assert!(of_block.iter().all(|call| call.status == 200));
        assert!(
            of_block
                .iter()
                .all(|call| call.authorization == format!("Bearer {TOKEN}"))
        );
        let body = &of_block.last().expect("proved").body;
        assert_eq!(body["cluster_id"], json!(4));
        assert_eq!(body["proving_cycles"], json!(1_000 + block));
        assert_eq!(body["verifier_id"], json!("vk"));
        assert!(
            body["proving_time"]
                .as_u64()
                .is_some_and(|ms| (1..60_000).contains(&ms))
        );
    }
    until("nothing is pending", || {
        look(&reporting).pending == [0, 0, 0]
    })
    .await;
    let numbers = look(&reporting);
    assert_eq!((numbers.failing, numbers.pending_bytes), (0, 0));
    assert!(numbers.dropped.is_empty(), "{:?}", numbers.dropped);
    until("the scores are shown", || {
        look(&reporting).scores.liveness() == Some(1.0)
    })
    .await;
    assert_eq!(look(&reporting).scores.blocks, 30);
    let mut page = Page::new("proofmill");
    let reports = reporting.reports();
    add_metrics(&mut page, [("told", &**reports.numbers())]);
    let page = page.render();
    for line in [
        "proofmill_ethproofs_calls_total{workflow=\"told\",call=\"proved\",outcome=\"accepted\"} 30",
        "proofmill_ethproofs_liveness_ratio{workflow=\"told\"} 1.0",
        "proofmill_ethproofs_window_blocks{workflow=\"told\"} 30",
    ] {
        assert!(page.contains(line), "{line} is not in\n{page}");
    }
    assert!(is_private(&place.state().join("ethproofs/score")));
    reporting.finish();
}

#[tokio::test(flavor = "multi_thread")]
async fn a_site_that_is_out_delays_nothing_and_gets_all_later() {
    const BLOCKS: u64 = 60;
    let mut expected = None;
    for mood in [Mood::Fine, Mood::Mute, Mood::Broken, Mood::Locked] {
        let site = Site::start(mood);
        let place = Place::new(BLOCKS, &site, "time_limit = \"1h\"");
        let reporting = place.reporter();
        let (summary, emitted) = place.run(&reporting).await;
        assert!(summary.is_complete());
        // Whatever the site does, the mill emits the same.
        let emitted: Vec<_> = emitted
            .iter()
            .map(|it| (it.first, it.bytes.clone()))
            .collect();
        assert_eq!(*expected.get_or_insert_with(|| emitted.clone()), emitted);
        if mood == Mood::Fine {
            until("all is told", || site.proofs().len() as u64 == BLOCKS).await;
        } else {
            until("all is kept", || place.kept() as u64 == BLOCKS).await;
            until("the site is called", || site.connections() > 0).await;
            assert!(site.proofs().is_empty());
            assert_eq!(look(&reporting).pending[2] as u64, BLOCKS);
        }
        let begun = Instant::now();
        reporting.finish();
        // It takes up to 4 s where the site does not answer, whose time limit is an hour.
        assert!(begun.elapsed() < Duration::from_secs(60), "{mood:?}");
        // The next process tells what this one could not.
        site.be(Mood::Fine);
        let reporting = place.reporter();
        let (_, emitted) = place.run(&reporting).await;
        assert!(emitted.is_empty());
        until("all is told", || site.proofs().len() as u64 == BLOCKS).await;
        assert_complete(&site, BLOCKS);
        until("nothing is kept", || place.kept() == 0).await;
        until("it counts", || {
            look(&reporting).scores.liveness() == Some(1.0)
        })
        .await;
        reporting.finish();
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_site_that_comes_back_is_told_by_the_same_process() {
    let site = Site::start(Mood::Mute);
    let place = Place::new(20, &site, "time_limit = \"200ms\"");
    let reporting = place.reporter();
    place.run(&reporting).await;
    until("calls fail", || look(&reporting).failing >= 2).await;
    site.be(Mood::Fine);
    until("all is told", || site.proofs().len() == 20).await;
    until("it is counted", || look(&reporting).failing == 0).await;
    assert_complete(&site, 20);
    reporting.finish();
}

#[tokio::test(flavor = "multi_thread")]
async fn emissions_that_were_not_kept_are_found_again() {
    let site = Site::start(Mood::Fine);
    let place = Place::new(12, &site, "");
    let reporting = place.reporter();
    place.run(&reporting).await;
    until("all is told", || site.proofs().len() == 12).await;
    // The last answers may still be on their way.
    until("nothing is pending", || {
        look(&reporting).pending == [0, 0, 0]
    })
    .await;
    reporting.finish();
    // As if the process had been killed after these emissions and before their proofs were kept.
    let score = place.state().join("ethproofs/score");
    let text = std::fs::read_to_string(&score).expect("text");
    let lost = |line: &str| {
        ["proved 10 ", "proved 11 ", "reported 10", "reported 11"]
            .iter()
            .any(|lost| line.starts_with(lost))
    };
    let lines: Vec<&str> = text.lines().filter(|line| !lost(line)).collect();
    assert_eq!(lines.len() + 4, text.lines().count());
    std::fs::write(&score, lines.join("\n") + "\n").expect("written");
    let site_again = Site::start(Mood::Fine);
    let again = Place::new(12, &site_again, "");
    let place = Place {
        folder: place.folder,
        workflow: again.workflow,
    };
    let reporting = place.reporter();
    place.run(&reporting).await;
    until("both are told", || site_again.proofs().len() == 2).await;
    let found: Vec<u64> = site_again.proofs().keys().copied().collect();
    assert_eq!(found, [10, 11]);
    assert_eq!(site_again.proofs()[&11], STANDARD.encode(proof_of(11)));
    until("it counts", || {
        look(&reporting).scores.liveness() == Some(1.0)
    })
    .await;
    reporting.finish();
}

#[tokio::test(flavor = "multi_thread")]
async fn a_message_without_a_proof_is_counted_and_holds_nothing_up() {
    let site = Site::start(Mood::Fine);
    let place = Place::new(5, &site, "");
    let mut place = place;
    let ethproofs = place.workflow.ethproofs.as_mut().expect("it is there");
    ethproofs.proof = Some(proofmill_workflow::JsonPointer::try_new("/none").expect("a pointer"));
    let reporting = place.reporter();
    let (summary, _) = place.run(&reporting).await;
    assert!(summary.is_complete());
    let unreadable = (Step::Proved, DropReason::Unreadable);
    until("all are counted", || {
        look(&reporting).dropped.get(&unreadable) == Some(&5)
    })
    .await;
    assert!(site.proofs().is_empty());
    reporting.finish();
}

#[test]
fn a_second_reporter_of_a_folder_is_refused() {
    let site = Site::start(Mood::Fine);
    let place = Place::new(5, &site, "");
    let first = place.reporter();
    let ethproofs = place.workflow.ethproofs.as_ref().expect("it is there");
    let folder = place.state().join("ethproofs");
    let second = start(Settings::of(ethproofs, &folder).expect("settings"));
    let error = second.expect_err("refused").to_string();
    assert!(error.contains("cannot keep reports"), "{error}");
    first.finish();
}
