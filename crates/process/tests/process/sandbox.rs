//! Tests of the process executor with hostile programs.

use std::fs;
use std::future::pending;
use std::net::TcpListener;
use std::path::{Path, PathBuf};

use proofmill_process::{
    Attempt, Outcome, ProcessError, ProcessExecutor, ProcessSpec, Sandbox, TaskContext,
};
use seccompiler::{BpfProgram, SeccompAction, SeccompFilter, apply_filter};
use tempfile::TempDir;

/// System call number of landlock_create_ruleset(2), the same on every architecture.
const LANDLOCK_CREATE_RULESET: i64 = 444;
const ENOSYS: u32 = 38;

fn strict() -> Sandbox {
    Sandbox::Strict {
        pids_limit: 64,
        cgroup: None,
    }
}

/// `script` run by bash: `$2` is the input, `$4` the output, `$DIR` is `dir`.
fn script(dir: &Path, script: &str, sandbox: Sandbox) -> ProcessSpec {
    let mut spec = ProcessSpec::new("bash");
    spec.args = vec!["-c".into(), script.into(), "intruder".into()];
    spec.env.insert("DIR".into(), dir.to_str().unwrap().into());
    spec.sandbox = sandbox;
    spec
}

async fn run(dir: &TempDir, spec: ProcessSpec) -> Attempt {
    let executor = ProcessExecutor::new(spec, dir.path().join("scratch")).unwrap();
    let task = TaskContext {
        id: "prove/17".into(),
        attempt: 1,
        block: 17,
    };
    executor.run(&task, b"input", pending()).await
}

fn output(attempt: &Attempt) -> String {
    match &attempt.outcome {
        Outcome::Succeeded(output) => String::from_utf8(output.to_vec()).unwrap(),
        other => panic!("{other}: {}", attempt.stderr),
    }
}

#[tokio::test]
async fn a_strict_program_writes_to_its_scratch_directory_only() {
    let dir = tempfile::tempdir().unwrap();
    let attack = r#"
        echo own > own && mkdir sub && mv own sub && mktemp > /dev/null && echo works >> "$4"
        echo x > "$DIR/new" && echo new >> "$4"
        echo x > "$DIR/victim" && echo overwritten >> "$4"
        mv "$2" "$DIR/moved" && echo moved >> "$4"
        ln "$DIR/victim" link && echo linked >> "$4"
        chmod 777 "$DIR/victim" && echo opened >> "$4"
        rm "$DIR/victim" && echo removed >> "$4"
        # The note of the process group, which a sweep would believe.
        for note in ../*.group; do echo 1 > "$note" && echo forged >> "$4"; done
        exit 0
    "#;
    let victim = dir.path().join("victim");
    let attacked = async |sandbox: Sandbox| {
        fs::write(&victim, "precious").unwrap();
        output(&run(&dir, script(dir.path(), attack, sandbox)).await)
    };
    assert_eq!(attacked(strict()).await, "works\n");
    assert_eq!(fs::read_to_string(&victim).unwrap(), "precious");
    // Without the sandbox, the program can write beside its directory.
    let free = attacked(Sandbox::Basic).await;
    for done in ["new", "overwritten", "moved", "linked", "opened", "removed"] {
        assert!(free.contains(done), "{free}");
    }
}

#[tokio::test]
async fn a_strict_program_does_not_reach_a_loopback_listener() {
    let dir = tempfile::tempdir().unwrap();
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    listener.set_nonblocking(true).unwrap();
    let port = listener.local_addr().unwrap().port();
    let attack = format!(
        "exec 3<>/dev/tcp/127.0.0.1/{port} && echo secret >&3 && echo reached > \"$4\" || echo not > \"$4\""
    );
    let strictly = run(&dir, script(dir.path(), &attack, strict())).await;
    assert_eq!(output(&strictly), "not\n");
    assert!(
        strictly.stderr.to_string().contains("not permitted"),
        "{}",
        strictly.stderr
    );
    assert!(listener.accept().is_err(), "nobody has connected");
    let freely = run(&dir, script(dir.path(), &attack, Sandbox::Basic)).await;
    assert_eq!(output(&freely), "reached\n");
    assert!(listener.accept().is_ok());
}

#[tokio::test]
async fn no_program_gains_rights_and_a_strict_one_reads_no_environment_of_the_dispatcher() {
    let dir = tempfile::tempdir().unwrap();
    let attack = r#"
        grep NoNewPrivs /proc/self/status > "$4"
        cat /proc/$PPID/environ > /dev/null && echo read >> "$4"
        kill -0 $PPID && echo signalled >> "$4"
        exit 0
    "#;
    let basic = run(&dir, script(dir.path(), attack, Sandbox::Basic)).await;
    assert_eq!(output(&basic), "NoNewPrivs:\t1\nread\nsignalled\n");
    let strictly = output(&run(&dir, script(dir.path(), attack, strict())).await);
    assert!(strictly.starts_with("NoNewPrivs:\t1\n"), "{strictly}");
    assert!(!strictly.contains("read"), "{strictly}");
    if proofmill_sandbox::Survey::take().landlock >= Some(6) {
        assert!(!strictly.contains("signalled"), "{strictly}");
    }
}

#[tokio::test]
async fn a_strict_program_is_refused_where_the_kernel_cannot_confine_it() {
    // This thread sees a kernel without Landlock.
    let rules = [(LANDLOCK_CREATE_RULESET, Vec::new())];
    let filter = SeccompFilter::new(
        rules.into_iter().collect(),
        SeccompAction::Allow,
        SeccompAction::Errno(ENOSYS),
        std::env::consts::ARCH.try_into().unwrap(),
    );
    let program: BpfProgram = filter.unwrap().try_into().unwrap();
    apply_filter(&program).unwrap();
    let dir = tempfile::tempdir().unwrap();
    let made = |sandbox| {
        let spec = script(dir.path(), "cp $2 $4", sandbox);
        ProcessExecutor::new(spec, dir.path().join("scratch"))
    };
    let error = made(strict()).unwrap_err();
    assert!(matches!(error, ProcessError::Sandbox { .. }), "{error}");
    let said = error.to_string();
    assert!(
        said.contains("`bash` is not run without its sandbox"),
        "{said}"
    );
    assert!(said.contains("this kernel has no Landlock"), "{said}");
    // Other threads run as before.
    let task = TaskContext {
        id: "prove/17".into(),
        attempt: 1,
        block: 17,
    };
    let basic = made(Sandbox::Basic).unwrap();
    assert_eq!(
        output(&basic.run(&task, b"input", pending()).await),
        "input"
    );
}

/// A folder that imitates the kernel's control groups.
fn pretended(dir: &Path) -> PathBuf {
    let root = dir.join("cgroup");
    fs::create_dir(&root).unwrap();
    fs::write(root.join("cgroup.controllers"), "cpu memory pids\n").unwrap();
    fs::write(root.join("cgroup.subtree_control"), "memory pids\n").unwrap();
    root
}

#[tokio::test]
async fn a_strict_run_has_a_control_group_with_its_limits() {
    let dir = tempfile::tempdir().unwrap();
    let root = pretended(dir.path());
    let mut spec = script(
        dir.path(),
        "cp $2 $4",
        Sandbox::Strict {
            pids_limit: 12,
            cgroup: Some(root.clone()),
        },
    );
    spec.memory_limit = Some(1 << 30);
    assert_eq!(output(&run(&dir, spec).await), "input");
    // The kernel would remove these files together with their group; in the imitation they stay.
    let groups: Vec<PathBuf> = fs::read_dir(&root)
        .unwrap()
        .map(|entry| entry.unwrap().path())
        .filter(|path| path.is_dir())
        .collect();
    let [group] = &groups[..] else {
        panic!("{groups:?}");
    };
    let said = |name: &str| fs::read_to_string(group.join(name)).unwrap();
    assert_eq!(said("memory.max"), (1 << 30).to_string());
    assert_eq!(said("pids.max"), "12");
    assert_eq!(said("cgroup.procs"), "0", "the program joined it by itself");
    assert_eq!(said("cgroup.kill"), "1", "all that was left was killed");
}

#[tokio::test]
async fn a_control_group_that_is_named_and_cannot_be_used_refuses_the_program() {
    let dir = tempfile::tempdir().unwrap();
    let sandbox = Sandbox::Strict {
        pids_limit: 12,
        cgroup: Some(dir.path().join("missing")),
    };
    let spec = script(dir.path(), ":", sandbox);
    let error = ProcessExecutor::new(spec, dir.path().join("scratch")).unwrap_err();
    assert!(error.to_string().contains("cannot be used"), "{error}");
}
