//! Attacks by confined programs. The program is this test binary itself, run as [`intruder`]. Each attack is
//! first tried without confinement, where it must succeed.

#![cfg(target_os = "linux")]

use std::collections::BTreeMap;
use std::fs::{self, File, OpenOptions, Permissions};
use std::io::{self, Read as _, Write as _};
use std::net::{TcpListener, TcpStream, UdpSocket};
use std::os::unix::fs::{MetadataExt as _, PermissionsExt as _};
use std::os::unix::net::{UnixListener, UnixStream};
use std::path::PathBuf;
use std::process::{Command, Output, Stdio};

use proofmill_sandbox::{Confinement, Environment, Survey};
use rustix::process::{geteuid, getppid, test_kill_process};
use seccompiler::{BpfProgram, SeccompAction, SeccompFilter, apply_filter};
use tempfile::TempDir;

/// Environment variables with the intruder's attack and its victim.
const ATTACK: &str = "INTRUDER_ATTACK";
const VICTIM: &str = "INTRUDER_VICTIM";

/// An attack that went through.
const SUCCEEDED: i32 = 0;
/// Exit status of a refused attack.
const REFUSED: i32 = 3;

/// A scratch folder, and a folder beside it.
struct Ground {
    root: TempDir,
}

impl Ground {
    fn new() -> Self {
        let root = tempfile::tempdir().unwrap();
        fs::create_dir(root.path().join("scratch")).unwrap();
        fs::create_dir(root.path().join("outside")).unwrap();
        Self { root }
    }

    fn scratch(&self) -> PathBuf {
        self.root.path().join("scratch")
    }

    fn outside(&self, name: &str) -> PathBuf {
        self.root.path().join("outside").join(name)
    }

    fn run(&self, confinement: Confinement<'_>, command: &mut Command) -> Output {
        let child = confinement.spawn(
            command
                .current_dir(self.scratch())
                .stdin(Stdio::null())
                .stdout(Stdio::piped())
                .stderr(Stdio::piped()),
        );
        child.unwrap().wait_with_output().unwrap()
    }

    fn strictly(&self, command: &mut Command) -> Output {
        let writable = &self.scratch();
        self.run(Confinement::Strict { writable }, command)
    }

    /// Tries an attack without and with confinement. `prepare` restores the victim's initial state.
    fn assert_only_strict_refuses(&self, attack: &str, victim: &str, prepare: impl Fn()) {
        let mut intruder = Command::new(std::env::current_exe().unwrap());
        intruder
            .args(["--exact", "intruder", "--nocapture"])
            .env(ATTACK, attack)
            .env(VICTIM, victim);
        prepare();
        let free = self.run(Confinement::Basic, &mut intruder);
        assert_eq!(free.status.code(), Some(SUCCEEDED), "{attack}: {free:?}");
        prepare();
        let strict = self.strictly(&mut intruder);
        assert_eq!(strict.status.code(), Some(REFUSED), "{attack}: {strict:?}");
    }
}

/// Not a test, but the program that the tests start. It does nothing unless a test started it.
#[test]
fn intruder() {
    let Ok(attack) = std::env::var(ATTACK) else {
        return;
    };
    let victim = std::env::var(VICTIM).unwrap();
    let tried = try_attack(&attack, &victim);
    if let Err(error) = &tried {
        eprintln!("{attack}: {error}");
    }
    std::process::exit(match tried {
        Ok(()) => SUCCEEDED,
        Err(_) => REFUSED,
    });
}

fn try_attack(attack: &str, victim: &str) -> io::Result<()> {
    let overwrite = |path: &str| File::create(path)?.write_all(b"overwritten");
    match attack {
        "write" => overwrite(victim),
        "truncate" => OpenOptions::new().write(true).open(victim)?.set_len(0),
        "truncate by path" => raw(libc::SYS_truncate, [path(victim).as_ptr() as usize, 0, 0]),
        "remove" => fs::remove_file(victim),
        "rename over" => {
            fs::write("mine", "overwritten")?;
            fs::rename("mine", victim)
        }
        "hard link" => {
            let _ = fs::remove_file("link");
            fs::hard_link(victim, "link")?;
            overwrite("link")
        }
        "symbolic link" => {
            let _ = fs::remove_file("link");
            std::os::unix::fs::symlink(victim, "link")?;
            overwrite("link")
        }
        "mode" => fs::set_permissions(victim, Permissions::from_mode(0o777)),
        "mode by descriptor" => File::open(victim)?.set_permissions(Permissions::from_mode(0o777)),
        "tcp" => TcpStream::connect(victim).map(drop),
        "udp" => UdpSocket::bind("127.0.0.1:0")?
            .send_to(b"x", victim)
            .map(drop),
        "unix" => UnixStream::connect(victim).map(drop),
        "listen" => TcpListener::bind(victim).map(drop),
        "environment" => {
            let mut environment = String::new();
            let parent = getppid().unwrap();
            let file = File::open(format!("/proc/{parent}/environ"));
            file?.read_to_string(&mut environment).map(drop)
        }
        "signal" => Ok(test_kill_process(getppid().unwrap())?),
        "limits" => raw(
            libc::SYS_prlimit64,
            [getppid().unwrap().as_raw_nonzero().get() as usize, 7, 0],
        ),
        "set-user-id" => {
            let output = Command::new(victim).arg("-u").output()?;
            let uid: u32 = String::from_utf8_lossy(&output.stdout)
                .trim()
                .parse()
                .unwrap();
            match uid == geteuid().as_raw() {
                true => Err(io::Error::other("the program runs as before")),
                false => Ok(()),
            }
        }
        other => panic!("no attack {other:?}"),
    }
}

fn path(text: &str) -> std::ffi::CString {
    std::ffi::CString::new(text).unwrap()
}

/// Makes a system call by number, for calls without a library function.
#[expect(unsafe_code, reason = "calls with numbers of their own")]
fn raw(call: libc::c_long, arguments: [usize; 3]) -> io::Result<()> {
    let [first, second, third] = arguments;
    // SAFETY: callers pass numbers, null pointers, or paths that live as long as the call.
    match unsafe { libc::syscall(call, first, second, third, 0, 0, 0) } {
        -1 => Err(io::Error::last_os_error()),
        _ => Ok(()),
    }
}

#[test]
fn a_strict_program_changes_no_file_outside_its_scratch_folder() {
    let ground = Ground::new();
    let victim = ground.outside("victim");
    for attack in [
        "write",
        "truncate",
        "truncate by path",
        "remove",
        "rename over",
        "hard link",
        "symbolic link",
        "mode",
        "mode by descriptor",
    ] {
        ground.assert_only_strict_refuses(attack, victim.to_str().unwrap(), || {
            fs::write(&victim, "precious").unwrap();
            fs::set_permissions(&victim, Permissions::from_mode(0o640)).unwrap();
        });
        assert_eq!(fs::read_to_string(&victim).unwrap(), "precious", "{attack}");
        let mode = fs::metadata(&victim).unwrap().mode() & 0o7777;
        assert_eq!(mode, 0o640, "{attack}");
    }
    let new = ground.outside("new");
    ground.assert_only_strict_refuses("write", new.to_str().unwrap(), || {
        let _ = fs::remove_file(&new);
    });
    assert!(!new.exists());
    // The process that started all this may write as before.
    fs::write(&new, "x").unwrap();
}

#[test]
fn a_strict_program_reaches_no_listener() {
    let ground = Ground::new();
    let tcp = TcpListener::bind("127.0.0.1:0").unwrap();
    let udp = UdpSocket::bind("127.0.0.1:0").unwrap();
    let socket = ground.outside("service.sock");
    let _unix = UnixListener::bind(&socket).unwrap();
    // Also in the scratch folder, where writing is allowed.
    let inside = ground.scratch().join("service.sock");
    let _inside = UnixListener::bind(&inside).unwrap();
    for (attack, victim) in [
        ("tcp", tcp.local_addr().unwrap().to_string()),
        ("udp", udp.local_addr().unwrap().to_string()),
        ("unix", socket.to_str().unwrap().to_owned()),
        ("unix", inside.to_str().unwrap().to_owned()),
        ("listen", "127.0.0.1:0".to_owned()),
    ] {
        ground.assert_only_strict_refuses(attack, &victim, || {});
    }
}

#[test]
fn a_strict_program_reaches_no_other_process() {
    let ground = Ground::new();
    for attack in ["environment", "limits"] {
        ground.assert_only_strict_refuses(attack, "", || {});
    }
    if Survey::take().landlock >= Some(6) {
        ground.assert_only_strict_refuses("signal", "", || {});
    }
}

/// Every call that the filter refuses, with arguments that it would not be refused for.
#[test]
fn a_strict_program_gets_no_way_around_the_filter() {
    let ground = Ground::new();
    let mut calls = BTreeMap::from([
        ("socket", libc::SYS_socket),
        ("io_uring_setup", libc::SYS_io_uring_setup),
        ("ptrace", libc::SYS_ptrace),
        ("keyctl", libc::SYS_keyctl),
        ("shmget", libc::SYS_shmget),
        ("mount", libc::SYS_mount),
        ("setxattrat", 463),
        ("bpf", libc::SYS_bpf),
        ("unshare", libc::SYS_unshare),
    ]);
    if cfg!(target_arch = "x86_64") {
        calls.insert("socket of the x32 ABI", 0x4000_0000 | libc::SYS_socket);
    }
    let writable = &ground.scratch();
    for (name, call) in calls {
        let made = Confinement::Strict { writable }.launch(|| raw(call, [0, 0, 0]));
        let error = made.unwrap_err().to_string();
        assert!(error.contains("os error 1)"), "{name}: {error}");
    }
    let capabilities =
        ground.strictly(Command::new("grep").args(["Cap[IPEA]", "/proc/self/status"]));
    let none = "\t0000000000000000\n";
    let none = ["CapInh:", "CapPrm:", "CapEff:", "CapAmb:"].map(|set| format!("{set}{none}"));
    assert_eq!(String::from_utf8_lossy(&capabilities.stdout), none.concat());
    let clone3 = Confinement::Strict { writable }.launch(|| raw(libc::SYS_clone3, [0, 0, 0]));
    let error = clone3.unwrap_err().to_string();
    assert!(
        error.contains(&format!("os error {})", libc::ENOSYS)),
        "{error}"
    );
    let pair = |family: i32| raw(libc::SYS_socketpair, [family as usize, 1, 0]);
    let tipc = Confinement::Strict { writable }.launch(|| pair(libc::AF_TIPC));
    assert!(tipc.unwrap_err().to_string().contains("os error 1)"));
    let tty = |request: usize| raw(libc::SYS_ioctl, [usize::MAX, request, 0]);
    let typed = Confinement::Strict { writable }.launch(|| tty(0x5412));
    assert!(typed.unwrap_err().to_string().contains("os error 1)"));
    let asked = Confinement::Strict { writable }.launch(|| tty(0x5401));
    let bad = format!("os error {})", libc::EBADF);
    assert!(asked.unwrap_err().to_string().contains(&bad));
}

#[test]
fn no_program_gains_rights_through_set_user_id() {
    let ground = Ground::new();
    let status = ground.run(
        Confinement::Basic,
        Command::new("grep").args(["NoNewPrivs", "/proc/self/status"]),
    );
    assert_eq!(String::from_utf8_lossy(&status.stdout), "NoNewPrivs:\t1\n");
    if !geteuid().is_root() {
        eprintln!("the rest needs root, to make a set-user-id program of another user");
        return;
    }
    // The reverse: root's program, which would run as another user.
    let id = ground.outside("id");
    fs::set_permissions(ground.root.path(), Permissions::from_mode(0o755)).unwrap();
    fs::copy("/usr/bin/id", &id).unwrap();
    std::os::unix::fs::chown(&id, Some(65534), None).unwrap();
    fs::set_permissions(&id, Permissions::from_mode(0o4755)).unwrap();
    let run = |confinement: Option<Confinement<'_>>| {
        let mut intruder = Command::new(std::env::current_exe().unwrap());
        intruder
            .args(["--exact", "intruder"])
            .env(ATTACK, "set-user-id")
            .env(VICTIM, &id);
        match confinement {
            Some(confinement) => ground.run(confinement, &mut intruder),
            None => intruder.output().unwrap(),
        }
    };
    if run(None).status.code() != Some(SUCCEEDED) {
        eprintln!("set-user-id programs have no effect in {}", id.display());
        return;
    }
    let writable = &ground.scratch();
    for confinement in [Confinement::Basic, Confinement::Strict { writable }] {
        let ran = run(Some(confinement));
        assert_eq!(ran.status.code(), Some(REFUSED), "{confinement:?}: {ran:?}");
    }
}

#[test]
fn a_strict_program_works_in_its_scratch_folder() {
    let ground = Ground::new();
    let script = r#"
        set -e
        mkdir -p a/b
        echo text > a/b/file
        mv a/b/file moved
        ln -s moved link
        sort < moved | tee /dev/null > sorted
        (echo part > part) &
        wait
        mkfifo pipe
        rm -r a pipe
        cat /etc/passwd > copy
        echo done > /dev/stdout
    "#;
    let ran = ground.strictly(Command::new("/bin/sh").args(["-c", script]));
    assert!(ran.status.success(), "{ran:?}");
    assert_eq!(ran.stdout, b"done\n");
    for (name, text) in [("sorted", "text\n"), ("part", "part\n")] {
        assert_eq!(
            fs::read_to_string(ground.scratch().join(name)).unwrap(),
            text
        );
    }
}

#[test]
fn a_kernel_that_cannot_confine_is_named_and_nothing_is_started() {
    // For this thread and those that it starts, this call fails as if it did not exist.
    let rules = [(libc::SYS_landlock_create_ruleset, Vec::new())];
    let filter = SeccompFilter::new(
        rules.into_iter().collect(),
        SeccompAction::Allow,
        SeccompAction::Errno(libc::ENOSYS as u32),
        std::env::consts::ARCH.try_into().unwrap(),
    );
    let program: BpfProgram = filter.unwrap().try_into().unwrap();
    apply_filter(&program).unwrap();
    let ground = Ground::new();
    let marker = ground.scratch().join("started");
    let writable = &ground.scratch();
    let mut command = Command::new("touch");
    let spawned = Confinement::Strict { writable }.spawn(command.arg(&marker));
    let said = spawned.unwrap_err().to_string();
    assert!(said.contains("this kernel has no Landlock"), "{said}");
    assert!(!marker.exists());
    Confinement::Basic.check().unwrap();
    let survey = Survey::take();
    assert_eq!((survey.landlock, survey.basic), (None, None));
    assert!(survey.strict.unwrap().contains("Landlock"));
}

#[test]
fn a_program_sees_no_secret_of_its_parent() {
    let secrets = [
        ("PROOFMILL_BUS", "nats://mill:hunter2@bus:4222"),
        ("PROOFMILL_TOKEN", "hunter2"),
        ("AWS_SECRET_ACCESS_KEY", "hunter2"),
        ("LANG", "C"),
    ];
    if std::env::var_os("INTRUDER_PARENT").is_none() {
        let parent = Command::new(std::env::current_exe().unwrap())
            .args(["--exact", "a_program_sees_no_secret_of_its_parent"])
            .envs(secrets)
            .env("INTRUDER_PARENT", "1")
            .output()
            .unwrap();
        assert!(parent.status.success(), "{parent:?}");
        return;
    }
    let ground = Ground::new();
    let environment = Environment {
        inherit: vec!["PROOFMILL_TOKEN".to_owned()],
        ..Environment::default()
    };
    let mut command = Command::new("env");
    command.env_clear().envs(environment.variables());
    let seen = ground.run(Confinement::Basic, &mut command);
    let seen = String::from_utf8(seen.stdout).unwrap();
    assert!(seen.lines().any(|line| line == "LANG=C"), "{seen}");
    assert!(seen.contains("PROOFMILL_TOKEN=hunter2"), "{seen}");
    assert!(
        !seen.contains("AWS_") && !seen.contains("PROOFMILL_BUS"),
        "{seen}"
    );
}
