//! `proofmill top`, for scripts and on a mill that runs.

use crate::operate::{THREE, site};
use crate::support::{Running, eventually, finish};
use crate::usage::snapshot;

/// The frame without what differs from run to run.
fn steady(frame: &str) -> String {
    let lines = frame.lines().map(|line| {
        let mut words: Vec<&str> = line.split(' ').collect();
        let mut at = 0;
        while at < words.len() {
            let is_number = words[at].parse::<f64>().is_ok();
            if is_number && words[at].contains('.') {
                words[at] = "N.N";
            } else if is_number && words.get(at + 1) == Some(&"s") {
                // An age from 10 s on has no decimals, and a space more after it.
                words[at] = "N.N";
                if words.get(at + 2) == Some(&"") {
                    words.remove(at + 2);
                }
            }
            at += 1;
        }
        words.join(" ")
    });
    lines.collect::<Vec<_>>().join("\n") + "\n"
}

#[test]
fn one_frame_shows_why_the_next_block_waits() {
    let site = site(THREE, "");
    site.mark("poison-0");
    site.mark("gate");
    let mill = Running::start(&mut site.mill(&["--stay"]));
    eventually("one block is dead, and one in work", || {
        let status = site.ask(&["status", "--json"]);
        let status = (status.code == Some(0)).then(|| status.json())?;
        let stage = &status["stages"][0];
        (stage["dead"] == 1 && stage["leased"] == 1).then_some(())
    });
    let frame = site.ask(&["top", "--once"]).succeeded().stdout;
    assert!(!frame.contains('\u{1b}'), "no colours in a pipe: {frame:?}");
    snapshot("top", &steady(&frame));
    let json = site.json(&["top"]);
    assert_eq!(
        (&json["running"], &json["status"]["dead"]),
        (&true.into(), &1.into()),
        "{json}"
    );
    assert_eq!(json["head"]["block"], 0, "{json}");
    assert_eq!(json["source_heads"][0]["head"], 2, "{json}");
    assert_eq!(json["measures"]["groups"][0]["working"], 1, "{json}");
    drop(mill);
    // Stopped: one frame, of what is recorded.
    let stopped = site.ask(&["top"]).succeeded().stdout;
    assert!(
        stopped.starts_with("site, stopped   next block 0"),
        "{stopped}"
    );
    let mut nowhere = crate::support::proofmill(site.path());
    finish(nowhere.args(["top", "--state", "none"])).failed(1, "none");
}
