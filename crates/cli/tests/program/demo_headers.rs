//! `proofmill demo` with the user's own headers.

use std::path::Path;

use serde_json::Value;

use crate::support::{Finished, emitted, files, folder, headers, names, raw, run};

/// Where a field of a header begins, in bytes.
const FIELDS: [(&str, usize); 6] = [
    ("version", 0),
    ("previous", 4),
    ("merkle", 36),
    ("time", 68),
    ("bits", 72),
    ("nonce", 76),
];

fn demo(folder: &Path, more: &[&str]) -> Finished {
    run(
        folder,
        ["demo", "--headers", "headers", "--state", "state", "--json"]
            .iter()
            .chain(more),
    )
}

fn write(folder: &Path, bytes: impl AsRef<[u8]>) {
    std::fs::write(folder.join("headers"), bytes).expect("written");
}

#[track_caller]
fn complete(report: &Value, blocks: u64, chunks: u64) {
    assert_eq!(report["blocks_emitted"], blocks, "{report}");
    assert_eq!(report["proofs_verified"], chunks, "{report}");
    assert_eq!(
        (&report["out_of_order"], &report["lost"]),
        (&0.into(), &0.into()),
        "{report}"
    );
}

#[test]
fn other_headers_raw_or_in_hexadecimal_in_chunks_that_do_not_divide() {
    let folder = folder();
    let here = folder.path();
    write(here, raw(&headers(10, 14)));
    let report = demo(here, &["--chunk", "2"]).succeeded().json();
    complete(&report, 5, 3);
    let proofs = here.join("state/proofs");
    // They are known by their hashes: the heights are right without being told.
    assert_eq!(
        names(&proofs),
        [emitted(10, 11), emitted(12, 13), emitted(14, 14)]
    );
    let before = files(&proofs);

    let lines: Vec<String> = headers(10, 14)
        .iter()
        .map(|header| hex::encode(header.as_bytes()))
        .collect();
    write(here, format!("# five headers\n\n{}\n", lines.join("\n")));
    let again = demo(here, &["--chunk", "2"]).succeeded().json();
    complete(&again, 5, 3);
    assert_eq!(
        again["chunks_proved_now"], 0,
        "the same headers in another form"
    );
    assert_eq!(files(&proofs), before);

    demo(here, &["--chunk", "1"]).failed(2, "holds a demo with chunks of 2 from height 10");
    demo(here, &["--chunk", "2", "--start", "7"]).failed(2, "not chunks of 2 from height 7");
    write(here, raw(&headers(20, 24)));
    demo(here, &["--chunk", "2", "--start", "10"]).failed(1, "it is a proof of other headers");
    assert_eq!(files(&proofs), before);
}

#[test]
fn a_flipped_bit_is_named_and_a_mended_file_costs_one_chunk() {
    let folder = folder();
    let here = folder.path();
    let right = raw(&headers(10, 13));
    let mut wrong = right.clone();
    wrong[2 * 80 + 40] ^= 0x10;
    write(here, &wrong);
    let ran = demo(here, &["--chunk", "1"]).failed(1, "header 12 is invalid: ");
    let report = ran.json();
    assert_eq!(
        (&report["dead"], &report["lost"]),
        (&1.into(), &0.into()),
        "{report}"
    );
    assert_eq!(report["chunks_proved_now"], 3);
    assert!(
        ran.stderr.contains("the proofs of the other 3 are kept"),
        "{}",
        ran.stderr
    );
    let proofs = here.join("state/proofs");
    assert_eq!(names(&proofs), [emitted(10, 10), emitted(11, 11)]);
    let list = run(here, ["dlq", "list", "--state", "state", "--json"])
        .succeeded()
        .json();
    assert_eq!(list[0]["task"], "prove/12/0", "{list}");

    // As wrong as before: nothing is proven, and the same is said.
    let again = demo(here, &["--chunk", "1"])
        .failed(1, "header 12 is invalid: ")
        .json();
    assert_eq!(again["chunks_proved_now"], 0, "{again}");

    write(here, &right);
    let report = demo(here, &["--chunk", "1"]).succeeded().json();
    complete(&report, 4, 4);
    assert_eq!(
        report["chunks_proved_now"], 1,
        "only what changed: {report}"
    );
    let list = run(here, ["dlq", "list", "--state", "state", "--json"])
        .succeeded()
        .json();
    assert_eq!(list, Value::Array(Vec::new()));
}

#[test]
fn a_bit_flipped_in_any_field_of_any_header_is_found() {
    for (index, (field, offset)) in FIELDS.into_iter().enumerate() {
        let folder = folder();
        let at = index % 2;
        let mut wrong = raw(&headers(20, 21));
        wrong[at * 80 + offset + 1] ^= 0x08;
        write(folder.path(), &wrong);
        let height = 20 + at;
        let ran = demo(folder.path(), &["--chunk", "2"]);
        println!("{field}: {}", ran.stderr);
        let report = ran
            .failed(1, &format!("header {height} is invalid: "))
            .json();
        assert_eq!(report["blocks_emitted"], 0, "{field}");
        assert_eq!(report["chunks_proved_now"], 0, "{field}");
    }
}

#[test]
fn files_that_hold_no_chain_are_refused_before_any_work() {
    let folder = folder();
    let here = folder.path();
    let mut swapped = headers(0, 3);
    swapped.swap(1, 2);
    write(here, raw(&swapped));
    let ran = demo(here, &[]).failed(1, "header 1 does not follow from header 0");
    assert!(ran.stderr.contains("lowest first"), "{}", ran.stderr);
    write(here, &raw(&headers(0, 3))[..300]);
    demo(here, &[]).failed(1, "header 3 at offset 240 has 60 bytes, not 80");
    write(here, "");
    demo(here, &[]).failed(1, "no header found");
    write(here, "not hex at all\n");
    demo(here, &[]).failed(1, "line 1 (header 0), column 1: not a hex digit");
    std::fs::remove_file(here.join("headers")).expect("removed");
    demo(here, &[]).failed(1, "cannot read headers: No such file");
    std::fs::create_dir(here.join("headers")).expect("made");
    demo(here, &[]).failed(
        1,
        "cannot read headers: a directory, where a regular file is needed",
    );
    assert!(!here.join("state").exists(), "nothing was begun");
}

#[test]
fn fresh_deletes_what_the_demo_made_and_nothing_else() {
    let folder = folder();
    let here = folder.path();
    write(here, raw(&headers(0, 0)));
    std::fs::create_dir(here.join("mine")).expect("made");
    std::fs::write(here.join("mine/letter"), "dear").expect("written");
    let mine = [
        "demo",
        "--headers",
        "headers",
        "--chunk",
        "1",
        "--state",
        "mine",
    ];
    run(here, mine.iter().chain(&["--fresh"])).failed(2, "--fresh does not delete it");
    run(here, mine).failed(2, "holds \"letter\" and is no state directory");
    assert_eq!(names(&here.join("mine")), ["letter"]);

    demo(here, &["--chunk", "1", "--aggregate"]).succeeded();
    assert!(here.join("state/range/range.proof").exists());
    std::fs::write(here.join("state/proofs/note.json"), "mine").expect("written");
    let report = demo(here, &["--chunk", "1", "--fresh"]).succeeded().json();
    assert_eq!(report["chunks_proved_now"], 1, "{report}");
    assert_eq!(
        names(&here.join("state/proofs")),
        [emitted(0, 0), "note.json".to_owned()]
    );
    assert!(!here.join("state/range").exists());
}

#[test]
fn headers_from_a_pipe_and_a_path_that_is_no_text() {
    use std::os::unix::ffi::OsStrExt;
    let folder = folder();
    let here = folder
        .path()
        .join(std::ffi::OsStr::from_bytes(b"not-\xff-text"));
    std::fs::create_dir(&here).expect("made");
    let mut command = crate::support::proofmill(&here);
    let pipe = std::io::pipe().expect("a pipe");
    std::io::Write::write_all(&mut &pipe.1, &raw(&headers(0, 0))).expect("written");
    drop(pipe.1);
    let state = here.join("state");
    command.args([
        "demo",
        "--headers",
        "/dev/stdin",
        "--chunk",
        "1",
        "--json",
        "--state",
    ]);
    let ran = crate::support::finish(command.arg(&state).stdin(pipe.0)).succeeded();
    complete(&ran.json(), 1, 1);
    let mut status = crate::support::proofmill(&here);
    let ran = crate::support::finish(status.args(["status", "--state"]).arg(&state)).succeeded();
    assert!(
        ran.stdout
            .starts_with("workflow bitcoin-demo: stopped; next block to emit: 1")
    );
}
