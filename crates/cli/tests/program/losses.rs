//! State directories that have lost something, that others may change, or that lie on a full disk.

use std::collections::BTreeMap;
use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};

use rand::rngs::StdRng;
use rand::{Rng, SeedableRng};

use crate::operate::{Site, THREE, blocks, site};
use crate::support::{Finished, Running, eventually, files, finish, proofmill};

/// Blocks of the mill that is damaged.
const BLOCKS: u64 = 12;

/// A mill that was killed after it had emitted everything, before its log was tidied up.
fn killed() -> Site {
    let end = BLOCKS - 1;
    let site = site(&format!("kind = \"range\"\nstart = 0\nend = {end}"), "");
    let mill = started(&site);
    eventually("every block is emitted", || {
        let status = site.json(&["status"]);
        (status["next_block"] == BLOCKS && status["live"] == 0).then_some(())
    });
    mill.kill();
    assert_eq!(site.proofs(), blocks(0..=end));
    take_room_off(&site.file("state/log/log.sqlite-wal"));
    site
}

/// Takes the room after its last frame off a write-ahead log, so that damage by chance meets a frame.
fn take_room_off(wal: &Path) {
    const HEADER: usize = 32;
    const FRAME: usize = 24 + 4096;
    let mut bytes = fs::read(wal).expect("read");
    let last = bytes.iter().rposition(|byte| *byte != 0).expect("frames");
    let frames = (last + 1).saturating_sub(HEADER).div_ceil(FRAME);
    bytes.truncate(HEADER + frames * FRAME);
    fs::write(wal, bytes).expect("written");
}

/// A mill that stays, and answers.
fn started(site: &Site) -> Running {
    let mill = Running::start(&mut site.mill(&["--stay"]));
    let socket = site.file("state/control.sock");
    eventually("it answers", || socket.exists().then_some(()));
    mill
}

/// The regular files below a folder, with what they hold.
fn tree(folder: &Path) -> BTreeMap<PathBuf, Vec<u8>> {
    let mut found = BTreeMap::new();
    for entry in fs::read_dir(folder).expect("a folder") {
        let (path, kind) = {
            let entry = entry.expect("an entry");
            (entry.path(), entry.file_type().expect("a type"))
        };
        if kind.is_dir() {
            found.extend(tree(&path));
        } else if kind.is_file() {
            found.insert(path.clone(), fs::read(&path).expect("read"));
        }
    }
    found
}

/// Puts files back as they were, and removes what has been made since.
fn restore(folder: &Path, were: &BTreeMap<PathBuf, Vec<u8>>) {
    for path in tree(folder)
        .into_keys()
        .filter(|path| !were.contains_key(path))
    {
        fs::remove_file(path).expect("removed");
    }
    for (path, bytes) in were {
        fs::write(path, bytes).expect("written");
    }
}

fn damage(log: &Path, random: &mut StdRng) -> String {
    let name = if random.random_range(0..3) == 0 {
        "log.sqlite"
    } else {
        "log.sqlite-wal"
    };
    let path = log.join(name);
    let mut bytes = fs::read(&path).expect("read");
    let at = random.random_range(0..bytes.len());
    let what = match random.random_range(0..6) {
        0..3 => {
            bytes[at] ^= 1 << random.random_range(0..8);
            "a bit"
        }
        3 => {
            bytes.truncate(at);
            "cut"
        }
        4 => {
            bytes.clear();
            "emptied"
        }
        _ => {
            fs::remove_file(&path).expect("removed");
            return format!("{name}: deleted");
        }
    };
    fs::write(&path, bytes).expect("written");
    format!("{name}: {what} at {at}")
}

#[test]
fn a_damaged_log_is_refused_until_its_loss_is_accepted() {
    let site = killed();
    let (state, log) = (site.file("state"), site.file("state/log"));
    let (were, proofs) = (tree(&state), files(&site.file("state/proofs")));
    let (mut refused, mut harmless) = (0, 0);
    for seed in 0..16 {
        restore(&state, &were);
        let mut random = StdRng::seed_from_u64(seed);
        let what = format!("seed {seed}, {}", damage(&log, &mut random));
        let status = site.ask(&["status", "--json"]);
        let ran = finish(&mut site.mill(&[]));
        if ran.code == Some(0) {
            harmless += 1;
            assert_eq!(status.succeeded().json()["next_block"], BLOCKS, "{what}");
            assert!(!ran.stderr.contains("accepted loss"), "{what}: {ran:?}");
            assert_eq!(
                ran.json()["sources"]["blocks"]["accepted"],
                0,
                "{what}: {ran:?}"
            );
        } else {
            refused += 1;
            let status = status.failed(1, "was durable");
            let ran = ran.failed(1, "was durable");
            for said in [&status, &ran] {
                assert!(said.stderr.contains("--accept-loss"), "{what}: {said:?}");
            }
            let ran = finish(&mut site.mill(&["--accept-loss"])).succeeded();
            assert!(ran.stderr.contains("accepted loss: "), "{what}: {ran:?}");
            finish(&mut site.mill(&[])).succeeded();
        }
        assert_eq!(files(&site.file("state/proofs")), proofs, "{what}");
    }
    assert!(
        refused > 3 && harmless > 0,
        "{refused} refused, {harmless} harmless"
    );
}

#[test]
fn a_deleted_log_is_refused_if_proofs_were_emitted() {
    let site = site(THREE, "");
    finish(&mut site.mill(&[])).succeeded();
    let proofs = files(&site.file("state/proofs"));
    fs::remove_dir_all(site.file("state/log")).expect("removed");
    let ran = finish(&mut site.mill(&[]))
        .failed(1, "the log has gone back: the next block by the log is 0");
    assert!(
        ran.stderr.contains("proofs of blocks 0, 1, 2 were emitted"),
        "{ran:?}"
    );
    let ran = finish(&mut site.mill(&["--accept-loss"])).succeeded();
    assert!(
        ran.stderr.contains("accepted loss: the next block"),
        "{ran:?}"
    );
    finish(&mut site.mill(&[])).succeeded();
    assert_eq!(files(&site.file("state/proofs")), proofs);
}

/// The program, where no file may grow: as on a full disk.
fn without_room(site: &Site, args: &[&str]) -> Finished {
    let program = proofmill(site.path());
    let mut command = std::process::Command::new("sh");
    command
        .args(["-c", r#"trap "" XFSZ; ulimit -f 0; exec "$0" "$@""#])
        .arg(program.get_program())
        .args(args)
        .args(["--state", "state"])
        .current_dir(site.path())
        .stdin(std::process::Stdio::null());
    for (name, value) in program.get_envs() {
        match value {
            Some(value) => command.env(name, value),
            None => command.env_remove(name),
        };
    }
    finish(&mut command)
}

#[test]
fn a_stopped_mill_on_a_full_disk_can_be_inspected() {
    let site = site(THREE, "");
    site.mark("poison-1");
    let mill = started(&site);
    eventually("a dead letter", || {
        (site.json(&["status"])["dead"] == 1).then_some(())
    });
    mill.kill();
    let state = site.file("state");
    assert!(fs::metadata(state.join("log/log.sqlite-wal")).is_ok_and(|it| it.len() > 0));
    let were = tree(&state);
    for (args, says) in [
        (&["status"][..], "1 dead"),
        (&["queues"], "blocks"),
        (&["tasks"], ""),
        (&["block", "1"], "block 1: dead"),
        (&["block", "0-2"], "1      dead"),
        (&["dlq", "list"], "prove/1/0"),
        (&["dlq", "show", "prove/1/0"], "block 1 is bad"),
    ] {
        let ran = without_room(&site, args).succeeded();
        assert!(ran.stdout.contains(says), "{args:?}: {ran:?}");
        assert_eq!(tree(&state), were, "{args:?} has changed the state");
    }
    without_room(&site, &["dlq", "retry", "prove/1/0"]).failed(1, "cannot");
}

#[test]
fn a_stopped_mill_on_a_read_only_file_system_can_be_inspected() {
    let site = site(THREE, "");
    site.mark("poison-1");
    finish(&mut site.mill(&[])).failed(1, "1 task is in the dead-letter queue");
    // Mounted anew, where only the program sees it.
    let read_only = |args: &[&str]| {
        let program = proofmill(site.path());
        let mut command = std::process::Command::new("unshare");
        let mount = r#"mount --bind "$0" "$0" && mount -o remount,bind,ro "$0" && exec "$@""#;
        command.args(["-rm", "sh", "-c", mount]).arg(site.path());
        command.arg(program.get_program()).args(args);
        command.stdin(std::process::Stdio::null());
        finish(command.args(["--state"]).arg(site.file("state")))
    };
    let tried = read_only(&["status"]);
    if tried.stderr.contains("unshare") || tried.stderr.contains("mount") {
        eprintln!("not run: a mount of its own is not allowed here");
        return;
    }
    for (args, says) in [
        (&["status"][..], "1 dead"),
        (&["dlq", "list"], "prove/1/0"),
        (&["block", "0"], "block 0: emitted"),
        (&["block", "1"], "block 1: dead"),
        (&["block", "7"], "block 7: never seen"),
    ] {
        let ran = read_only(args).succeeded();
        assert!(ran.stdout.contains(says), "{args:?}: {ran:?}");
    }
    read_only(&["dlq", "retry", "prove/1/0"]).failed(1, "");
}

#[test]
fn a_state_directory_that_others_may_change_is_refused() {
    let site = site(THREE, "");
    finish(&mut site.mill(&[])).succeeded();
    let set = |mode| {
        let permissions = fs::Permissions::from_mode(mode);
        fs::set_permissions(site.file("state"), permissions).expect("it is ours");
    };
    set(0o777);
    finish(&mut site.mill(&[])).failed(1, "other users may change it");
    site.ask(&["status"]).failed(1, "other users may change it");
    set(0o755);
    finish(&mut site.mill(&[])).succeeded();
}
