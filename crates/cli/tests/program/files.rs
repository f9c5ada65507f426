//! Files that commands read and write: none is written over what is needed, none half, and none that is
//! no file is waited for.

use std::fs;
use std::os::unix::fs::{PermissionsExt as _, symlink};
use std::path::Path;
use std::process::Command;

use crate::engine::{fixtures, serve};
use crate::machine::has_namespaces;
use crate::support::{Finished, Running, finish, folder, proofmill, repository, run};

/// A folder with a key `k.zkey`, a witness `w.wtns`, the circuit `c.r1cs`, and a proof of it.
fn circuit() -> tempfile::TempDir {
    let folder = folder();
    let from = repository("crates/groth16/tests/fixtures/bn254");
    for (name, to) in [
        ("circuit.zkey", "k.zkey"),
        ("witness.wtns", "w.wtns"),
        ("circuit.r1cs", "c.r1cs"),
        ("verification_key.json", "vk.json"),
        ("proof.json", "proof.json"),
        ("public.json", "public.json"),
    ] {
        fs::copy(from.join(name), folder.path().join(to)).expect("copied");
    }
    folder
}

/// A deployment of one process, as a folder `compose`.
fn deployment(folder: &Path) {
    fs::create_dir(folder.join("compose")).expect("made");
    let text = "INPUT_QUEUE=mo.blocks\nOUTPUT_QUEUE=mo.proofs\nINPUT_STREAM=mo\nOUTPUT_STREAM=mo\n\
                MESSAGE_BUS_TYPE=NatsBasic\nSTORAGE_TYPE=Nats\nMETRICS_PORT=8888\n\
                EXECUTOR_TYPE=JsonExecutor\nBINARY=/provers/mock\n";
    fs::write(folder.join("compose/prove.env"), text).expect("written");
}

#[test]
fn a_deployment_is_imported_to_a_bare_name() {
    let folder = folder();
    let here = folder.path();
    deployment(here);
    let import = |output: &str, more: &[&str]| {
        let args = ["import-env", "compose/", "-o", output];
        run(here, args.iter().chain(more))
    };
    let ran = import("workflow.toml", &[]).succeeded();
    assert!(!ran.stderr.contains("error"), "{ran:?}");
    let there: Vec<String> = contents(here).into_iter().map(|(name, _)| name).collect();
    assert_eq!(there, ["compose", "workflow.toml"]);
    let text = fs::read_to_string(here.join("workflow.toml")).expect("a text");
    assert!(text.contains("[[dispatcher]]"), "{text}");

    // For everybody whom the umask allows: it holds no secret.
    let mut command = Command::new("sh");
    let program = proofmill(here);
    command
        .args(["-c", "umask 026 && exec \"$@\"", "sh"])
        .arg(program.get_program())
        .args(["import-env", "compose/", "-o", "other.toml"])
        .current_dir(here)
        .stdin(std::process::Stdio::null());
    finish(&mut command).succeeded();
    let mode = |name: &str| {
        let metadata = fs::metadata(here.join(name)).expect("there");
        metadata.permissions().mode() & 0o777
    };
    assert_eq!(mode("other.toml"), 0o640);

    import("workflow.toml", &[]).failed(2, "workflow.toml already exists");
    import("workflow.toml", &["--force"]).succeeded();
    // What it is made from is never written over.
    let before = fs::read(here.join("compose/prove.env")).expect("there");
    let ran = import("compose/prove.env", &["--force"]);
    ran.failed(2, "would overwrite a file of the deployment");
    assert_eq!(
        fs::read(here.join("compose/prove.env")).expect("there"),
        before
    );
}

#[test]
fn no_command_writes_over_what_it_reads_or_over_its_other_output() {
    let folder = circuit();
    let here = folder.path();
    fs::hard_link(here.join("k.zkey"), here.join("hard.json")).expect("linked");
    symlink("k.zkey", here.join("soft.json")).expect("linked");
    fs::create_dir(here.join("inner")).expect("made");
    let before = contents(here);
    const KEY: &str = "would overwrite the key";
    const BOTH: &str = "the proof and the public signals would be the same file";
    let cases: [(&[&str], &str); 13] = [
        (&["prove", "k.zkey", "w.wtns", "k.zkey", "q.json"], KEY),
        (&["prove", "k.zkey", "w.wtns", "q.json", "k.zkey"], KEY),
        (&["prove", "k.zkey", "w.wtns", "hard.json", "q.json"], KEY),
        (&["prove", "k.zkey", "w.wtns", "q.json", "soft.json"], KEY),
        (
            &["prove", "k.zkey", "w.wtns", "w.wtns", "q.json"],
            "would overwrite the witness",
        ),
        (&["prove", "k.zkey", "w.wtns", "p.json", "p.json"], BOTH),
        (
            &["prove", "k.zkey", "w.wtns", "p.json", "inner/../p.json"],
            BOTH,
        ),
        (
            &["zkey", "export-vk", "k.zkey", "k.zkey"],
            "would overwrite the proving key",
        ),
        (
            &["zkey", "export-vk", "k.zkey", "soft.json", "--force"],
            "would overwrite the proving key, which is k.zkey",
        ),
        (
            &["setup", "c.r1cs", "-o", "c.r1cs"],
            "would overwrite the circuit",
        ),
        (
            &["setup", "c.r1cs", "-o", "./c.r1cs", "--force"],
            "would overwrite the circuit",
        ),
        (
            &["engine", "prove", "c", "w.wtns", "-o", "w.wtns"],
            "would overwrite the witness",
        ),
        (
            &["engine", "timeline", "--out", "t.json", "--svg", "t.json"],
            "the trace and the waterfall would be the same file",
        ),
    ];
    for (args, why) in cases {
        run(here, args).failed(2, why);
        assert_eq!(contents(here), before, "{args:?}");
    }
}

/// The files of a folder with what they hold; links as what they lead to, folders as nothing.
fn contents(folder: &Path) -> Vec<(String, Option<Vec<u8>>)> {
    let entries = fs::read_dir(folder).expect("a folder");
    let entry = |entry: std::io::Result<fs::DirEntry>| {
        let entry = entry.expect("an entry");
        let name = entry.file_name().into_string().expect("text");
        (name, fs::read(entry.path()).ok())
    };
    let mut contents: Vec<_> = entries.map(entry).collect();
    contents.sort();
    contents
}

#[test]
fn a_key_is_replaced_only_if_that_is_asked_for() {
    let folder = circuit();
    let here = folder.path();
    let setup = |more: &[&str]| {
        let args = ["setup", "c.r1cs", "-o", "made.zkey"];
        run(here, args.iter().chain(more))
    };
    let read = |name: &str| fs::read(here.join(name)).expect("a file");
    setup(&[]).succeeded();
    let first = read("made.zkey");
    setup(&[]).failed(2, "made.zkey already exists");
    assert_eq!(read("made.zkey"), first);
    setup(&["--force"]).succeeded();
    assert_ne!(read("made.zkey"), first);

    let export = |key: &str, more: &[&str]| {
        let args = ["zkey", "export-vk", key, "exported.json"];
        run(here, args.iter().chain(more))
    };
    export("k.zkey", &[]).succeeded();
    let exported = read("exported.json");
    // The same again is no other key.
    export("k.zkey", &[]).succeeded();
    let ran = export("made.zkey", &[]).failed(2, "is a verifying key");
    assert!(ran.stderr.contains("--force"), "{ran:?}");
    assert_eq!(read("exported.json"), exported);
    export("made.zkey", &["--force"]).succeeded();
    assert_ne!(read("exported.json"), exported);

    // A proof takes no key's place, whatever the file is called.
    fs::rename(here.join("made.zkey"), here.join("p.json")).expect("renamed");
    fs::rename(here.join("c.r1cs"), here.join("c.json")).expect("renamed");
    let before = contents(here);
    for name in ["p.json", "vk.json", "c.json"] {
        for outputs in [[name, "s.json"], ["s.json", name]] {
            let args = ["prove", "k.zkey", "w.wtns"];
            let ran = run(here, args.iter().chain(&outputs));
            ran.failed(2, &format!("{name} would be overwritten, and is a"));
            assert_eq!(contents(here), before);
        }
    }
    // Another proof's place it takes.
    run(
        here,
        ["prove", "k.zkey", "w.wtns", "proof.json", "public.json"],
    )
    .succeeded();
}

/// Runs `prove` into a file system of its own with a proof and its signals from before, after the
/// shell commands `prepare` in it; returns what it said, and the files that were there at the end.
fn prove_into(prepare: &str) -> (Finished, Vec<(String, Vec<u8>)>) {
    let folder = circuit();
    let here = folder.path();
    for name in ["out", "seen"] {
        fs::create_dir(here.join(name)).expect("made");
    }
    fs::write(here.join("proof"), "the old proof").expect("written");
    fs::write(here.join("public"), "the old signals").expect("written");
    let script = format!(
        "mount -t tmpfs -o size=64k,nr_inodes=40 proofmill-test out || exit 99\n\
         cp proof out/proof.json; cp public out/public.json\n\
         (cd out; {prepare}) 2>/dev/null\n\
         \"$0\" prove --engine off k.zkey w.wtns out/proof.json out/public.json\n\
         code=$?; rm -f out/ballast*; cp out/.[!.]* out/* seen; exit $code"
    );
    let program = proofmill(here);
    let mut command = Command::new("unshare");
    command
        .args(["-rm", "sh", "-c", &script])
        .arg(program.get_program())
        .current_dir(here)
        .stdin(std::process::Stdio::null());
    let mut ran = finish(&mut command);
    // Of `cp`, where there is no hidden file.
    let own = |line: &&str| !line.starts_with("cp: ");
    ran.stderr = ran
        .stderr
        .lines()
        .filter(own)
        .collect::<Vec<_>>()
        .join("\n");
    let seen = fs::read_dir(here.join("seen")).expect("a folder");
    let mut seen: Vec<(String, Vec<u8>)> = seen
        .map(|entry| entry.expect("an entry"))
        .map(|entry| {
            let name = entry.file_name().into_string().expect("text");
            (name, fs::read(entry.path()).expect("a file"))
        })
        .collect();
    seen.sort();
    (ran, seen)
}

#[test]
fn on_a_full_disk_neither_proof_nor_signals_are_replaced() {
    if !has_namespaces() {
        eprintln!("not run: `unshare -rm` with a tmpfs of its own is not allowed here");
        return;
    }
    const FILL: &str = "head -c 1000000 /dev/zero > ballast;";
    // One page of 4 KiB is enough for the signals, and not for the proof as well. The old signals have
    // a second name, so that to replace them makes no room.
    let one_page = format!("ln public.json ballast-link; {FILL} truncate -s -4096 ballast");
    let one_inode = "n=0; while touch ballast-$n; do n=$((n+1)); done; rm ballast-0";
    for prepare in [&one_page, FILL, one_inode] {
        let (ran, seen) = prove_into(prepare);
        let ran = ran.failed(1, "cannot write out/p");
        assert!(ran.stderr.contains("No space left on device"), "{ran:?}");
        assert!(ran.stderr.contains("nothing was replaced"), "{ran:?}");
        // The user asked for no such file.
        assert!(!ran.stderr.contains(".proofmill-"), "{ran:?}");
        let old = [
            ("proof.json".to_owned(), b"the old proof".to_vec()),
            ("public.json".to_owned(), b"the old signals".to_vec()),
        ];
        assert_eq!(seen, old, "{prepare}: {ran:?}");
    }
    let (ran, seen) = prove_into("true");
    ran.succeeded();
    assert_eq!(seen.len(), 2);
    assert!(
        seen.iter()
            .all(|(_, content)| !content.starts_with(b"the old"))
    );
}

const VERIFY: [&str; 3] = ["verify", "--vk", "vk.json"];

#[test]
fn a_file_that_cannot_be_read_is_no_verdict() {
    let folder = circuit();
    let here = folder.path();
    let proof = fs::read(here.join("proof.json")).expect("a proof");
    fs::write(here.join("short.json"), &proof[..proof.len() / 2]).expect("written");
    fs::write(here.join("empty.json"), "").expect("written");
    fs::write(here.join("wrong.json"), "[\"7\", \"7\"]").expect("written");
    fs::write(here.join("no.json"), "{}").expect("written");
    let cases = [
        (["absent.json", "public.json"], "the proof: No such file"),
        (
            ["proof.json", "absent.json"],
            "the public signals: No such file",
        ),
        (["short.json", "public.json"], "the proof: cut short: "),
        (["empty.json", "public.json"], "the proof: cut short: "),
        (
            ["proof.json", "empty.json"],
            "the public signals: cut short: ",
        ),
        (
            ["w.wtns", "public.json"],
            "the proof: a witness (.wtns), not JSON",
        ),
        (
            ["c.r1cs", "wrong.json"],
            "the proof: a circuit (.r1cs), not JSON",
        ),
    ];
    for (pair, why) in cases {
        let ran = run(here, VERIFY.iter().chain(&pair)).failed(3, "no verdict");
        let line = format!("unread   {} with {}: {why}", pair[0], pair[1]);
        assert!(ran.stdout.starts_with(&line), "{ran:?}");
        // Each path is said once.
        for path in pair {
            assert_eq!(ran.stdout.matches(path).count(), 1, "{ran:?}");
        }
    }
    // What is whole, and no proof of this, is not valid.
    for proof in ["no.json", "public.json"] {
        run(here, VERIFY.iter().chain(&[proof, "public.json"])).failed(1, "not valid");
    }

    let pairs = ["proof.json", "public.json", "short.json", "public.json"];
    let ran = run(here, VERIFY.iter().chain(&pairs)).failed(3, "no verdict on 1 of 2 proofs");
    assert!(ran.stdout.starts_with("valid    proof.json"), "{ran:?}");
    let pairs = [&pairs[..], &["proof.json", "wrong.json", "--json"]].concat();
    let ran = run(here, VERIFY.iter().chain(&pairs)).failed(1, "1 of 3 proofs is not valid");
    let answer = ran.json();
    let counts = ["valid", "invalid", "unread"].map(|name| answer[name].as_u64());
    assert_eq!(counts, [Some(1); 3], "{answer}");
    assert_eq!(answer["proofs"][1]["valid"], serde_json::Value::Null);

    fs::write(here.join("short-vk.json"), "{\"protocol\": \"groth16\",").expect("written");
    for (vk, why) in [
        ("absent.json", "--vk absent.json: No such file"),
        ("short-vk.json", "--vk short-vk.json: cut short: "),
        ("k.zkey", "--vk k.zkey: a proving key (.zkey), not JSON"),
        ("proof.json", "--vk proof.json: missing field"),
    ] {
        let ran = run(here, ["verify", "--vk", vk, "proof.json", "public.json"]).failed(3, why);
        assert_eq!(ran.stderr.matches(vk).count(), 1, "{ran:?}");
        assert!(ran.stdout.is_empty(), "{ran:?}");
    }
}

#[test]
fn a_pipe_that_nobody_writes_to_is_refused_and_not_waited_for() {
    let folder = circuit();
    let here = folder.path();
    deployment(here);
    let made = Command::new("mkfifo").arg(here.join("pipe")).status();
    assert!(made.expect("mkfifo").success());
    let commands: [&[&str]; 16] = [
        &["prove", "pipe", "w.wtns", "p.json", "s.json"],
        &["prove", "k.zkey", "pipe", "p.json", "s.json"],
        &["prove", "k.zkey", "w.wtns", "pipe", "s.json"],
        &["verify", "--vk", "pipe", "proof.json", "public.json"],
        &["verify", "--vk", "vk.json", "pipe", "public.json"],
        &["verify", "--vk", "vk.json", "proof.json", "pipe"],
        &["zkey", "info", "pipe"],
        &["zkey", "check", "pipe"],
        &["zkey", "export-vk", "pipe", "new.json"],
        &["setup", "pipe", "-o", "new.zkey"],
        &["setup", "c.r1cs", "--ptau", "pipe", "-o", "new.zkey"],
        &["check", "pipe"],
        &["run", "pipe"],
        &["import-env", "pipe"],
        &["demo", "--headers", "pipe"],
        &["submit", "pipe", "--queue", "blocks", "--block", "1"],
    ];
    for args in commands {
        // Not as the other tests run it: an end is waited for, and not for ever.
        let (_, ran) = Running::start(proofmill(here).args(args)).end();
        assert!(matches!(ran.code, Some(1 | 3)), "{args:?}: {ran:?}");
        let said = format!("{}{}", ran.stdout, ran.stderr);
        assert!(said.contains("regular file"), "{args:?}: {ran:?}");
        assert!(!said.contains("panicked"), "{args:?}: {ran:?}");
    }
    // Directories and devices as well.
    for (path, what) in [("compose", "a directory"), ("/dev/zero", "a device")] {
        run(here, ["zkey", "info", path]).failed(1, what);
        run(here, ["prove", "k.zkey", "w.wtns", path, "s.json"]).failed(1, what);
    }
    assert!(!here.join("s.json").exists() && !here.join("new.zkey").exists());

    // What a shell hands over is read: `verify --vk <(…)`.
    let mut command = proofmill(here);
    let vk = fs::File::open(here.join("vk.json")).expect("a key");
    let mut pipe = Command::new("cat")
        .stdin(vk)
        .stdout(std::process::Stdio::piped())
        .spawn();
    let key = pipe
        .as_mut()
        .expect("it starts")
        .stdout
        .take()
        .expect("piped");
    command.args(["verify", "--vk", "/dev/stdin", "proof.json", "public.json"]);
    finish(command.stdin(key)).succeeded();
    pipe.expect("it starts").wait().expect("a status");
}

#[test]
fn another_kind_of_file_is_named_with_what_is_expected() {
    let folder = circuit();
    let here = folder.path();
    fs::write(here.join("input.json"), "{\"a\": \"3\"}").expect("written");
    let outputs = ["p.json", "s.json"];
    let prove = |key, witness| {
        let args = ["prove", key, witness];
        run(here, args.iter().chain(&outputs)).failed(1, "another kind of file: ")
    };
    let ran = prove("k.zkey", "input.json");
    assert!(
        ran.stderr.contains("JSON, not a witness (.wtns)"),
        "{ran:?}"
    );
    assert!(ran.stderr.contains("wtns calculate"), "{ran:?}");
    let ran = prove("c.r1cs", "w.wtns");
    assert!(
        ran.stderr.contains("a circuit (.r1cs), not a proving key"),
        "{ran:?}"
    );
    assert!(ran.stderr.contains("proofmill setup"), "{ran:?}");
    for command in [&["check"][..], &["run"], &["check", "--json"]] {
        let args = command.iter().chain(&["k.zkey"]);
        let ran = run(here, args).failed(1, "the file is a proving key (.zkey), not a workflow");
        assert!(
            ran.stderr.contains("proofmill zkey check k.zkey"),
            "{ran:?}"
        );
        assert!(!ran.stderr.contains("UTF-8"), "{ran:?}");
    }
}

#[test]
fn an_engine_without_the_key_says_which_it_has() {
    let folder = folder();
    let here = folder.path();
    fixtures(here);
    fs::copy(here.join("keys/circuit.zkey"), here.join("other.zkey")).expect("copied");
    let engine = serve(here, &[]);
    let address = "unix:.proofmill/engine/engine.sock";
    let args = [
        "prove",
        "--engine",
        address,
        "other.zkey",
        "witness.wtns",
        "p",
        "s",
    ];
    let ran = run(here, args).failed(
        1,
        "has no circuit with the key other.zkey: it has circuit (",
    );
    assert!(ran.stderr.contains("proofmill engine register"), "{ran:?}");
    assert!(!here.join("p").exists() && !here.join("s").exists());
    engine.kill();
}

/// The first column of the table of errors, without the parts that differ from case to case.
fn documented_messages() -> Vec<Vec<String>> {
    let page = fs::read_to_string(repository("docs/prove.md")).expect("the page");
    let (_, table) = page.split_once("## Errors").expect("the section");
    let rows = table.lines().filter_map(|line| line.strip_prefix("| `"));
    rows.map(|row| {
        let (message, _) = row.split_once("` |").expect("a message");
        let parts = message.split(['…', 'N']).map(str::trim);
        parts
            .filter(|part| !part.is_empty())
            .map(str::to_owned)
            .collect()
    })
    .collect()
}

/// Errors of `prove` about wrong files.
fn printed_messages() -> Vec<String> {
    let folder = circuit();
    let here = folder.path();
    let fixtures = repository("crates");
    let copy = |from: &str, to: &str| {
        fs::copy(fixtures.join(from), here.join(to)).expect("copied");
    };
    copy("groth16/tests/fixtures/setup/bn128_3.zkey", "bad.zkey");
    copy("r1cs/tests/fixtures/cube.wtns", "cube.wtns");
    copy("groth16/tests/fixtures/bls12_381/witness.wtns", "bls.wtns");
    let cut = |from: &str, to: &str, length: usize| {
        let bytes = fs::read(here.join(from)).expect("a file");
        fs::write(here.join(to), &bytes[..length]).expect("written");
    };
    cut("k.zkey", "short.zkey", 4_000);
    let mut witness = fs::read(here.join("w.wtns")).expect("a witness");
    let last = witness.len() - 32;
    witness[last] ^= 1;
    fs::write(here.join("changed.wtns"), witness).expect("written");
    let cases = [
        ("short.zkey", "w.wtns"),
        ("w.wtns", "k.zkey"),
        ("k.zkey", "bls.wtns"),
        ("bad.zkey", "cube.wtns"),
        ("k.zkey", "cube.wtns"),
        ("k.zkey", "changed.wtns"),
    ];
    let prove = |(key, witness)| {
        let args = ["prove", "--engine", "off", key, witness, "p.json", "s.json"];
        run(here, args).failed(1, "error: ").stderr
    };
    cases.into_iter().map(prove).collect()
}

#[test]
fn the_page_about_proofs_lists_messages_as_they_are_printed() {
    let promised = documented_messages();
    assert!(promised.len() >= 8, "{promised:?}");
    // Two that take another process at the right moment: `lying_engines`, and the reader's own tests.
    let elsewhere = [
        "changed while it was being read",
        "the engine's proof is of other public inputs",
    ];
    let said = printed_messages();
    let is_said = |parts: &[String], text: &str| {
        let mut rest = text;
        parts
            .iter()
            .all(|part| match rest.split_once(part.as_str()) {
                Some((_, after)) => {
                    rest = after;
                    true
                }
                None => false,
            })
    };
    for parts in &promised {
        let known = elsewhere.iter().any(|known| parts[..] == [*known]);
        let printed = said.iter().any(|text| is_said(parts, text));
        assert!(known || printed, "nothing prints {parts:?}: {said:#?}");
    }
    // And each of these is in the table.
    for text in &said {
        let listed = promised.iter().any(|parts| is_said(parts, text));
        assert!(listed, "not in the table: {text}");
    }
}
