//! Real `nats-server` processes for tests and experiments: on free ports, with their files in a
//! temporary directory, stopped when dropped. They can be killed, paused and started again.
//!
//! Starting one blocks the thread for a moment: these are tools for tests, not for services.
//!
//! The program is the one that `make nats-server` installs, or the one that `PROOFMILL_NATS_SERVER`
//! names.

#![expect(clippy::disallowed_methods, reason = "waits for a process to start")]

mod authority;
mod deployed;

use std::fmt::{self, Write as _};
use std::fs;
use std::net::{Ipv4Addr, SocketAddr, TcpListener, TcpStream};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::{Duration, Instant};

use rustix::process::{Pid, Signal, kill_process};

pub use authority::{Authority, Certificate};
pub use deployed::Deployed;

/// Time within which a started server must accept connections, and a cluster must have a leader; past it,
/// starting panics.
const START_TIMEOUT: Duration = Duration::from_secs(90);

/// One `nats-server` process. Dropping it stops the process and removes its files.
#[derive(Debug)]
pub struct NatsServer {
    launch: Launch,
    dir: tempfile::TempDir,
    port: u16,
    child: Child,
    guard: Child,
}

/// Configuration file, arguments and environment variables that the server is started with.
#[derive(Debug)]
struct Launch {
    config: PathBuf,
    arguments: Vec<String>,
    variables: Vec<(String, String)>,
}

/// Servers that form a cluster.
#[derive(Debug)]
pub struct Cluster {
    /// Its members.
    pub servers: Vec<NatsServer>,
}

/// The `nats-server` program is not installed. The message says how to install it.
#[derive(Debug)]
pub struct NotInstalled {
    path: PathBuf,
}

/// Path of the `nats-server` program.
///
/// # Errors
/// If the program is not there.
pub fn find_program() -> Result<PathBuf, NotInstalled> {
    let path = std::env::var_os("PROOFMILL_NATS_SERVER").map_or_else(
        || Path::new(env!("CARGO_MANIFEST_DIR")).join("bin/nats-server"),
        PathBuf::from,
    );
    match path.is_file() {
        true => Ok(path),
        false => Err(NotInstalled { path }),
    }
}

/// Path of the `nats-server` program.
///
/// # Panics
/// If the program is not there; the message says how to install it.
pub fn program() -> PathBuf {
    find_program().unwrap_or_else(|error| panic!("{error}"))
}

/// A free TCP port that no other call in this process has returned. It lies below the system's ephemeral
/// ports, so an outgoing connection cannot take it before it is used.
pub fn free_port() -> u16 {
    const FIRST: u32 = 10_000;
    const COUNT: u32 = 22_000;
    static NEXT: AtomicU32 = AtomicU32::new(0);
    // Concurrent processes start far from each other in the range.
    let begin = std::process::id().wrapping_mul(1_009);
    loop {
        let number = begin.wrapping_add(NEXT.fetch_add(1, Ordering::Relaxed));
        let port = u16::try_from(FIRST + number % COUNT).expect("below 65536");
        if TcpListener::bind((Ipv4Addr::LOCALHOST, port)).is_ok() {
            return port;
        }
    }
}

// === impl NotInstalled ===

impl fmt::Display for NotInstalled {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(
            f,
            "{} is not there: run `make nats-server` (it needs Go), or name the program with PROOFMILL_NATS_SERVER",
            self.path.display()
        )
    }
}

impl std::error::Error for NotInstalled {}

// === impl NatsServer ===

impl NatsServer {
    /// A server with JetStream and no users.
    pub fn start() -> Self {
        Self::with_config("")
    }

    /// A server with JetStream and additional configuration lines. In them `$DIR` stands for the server's
    /// directory and `$NAME` for its name.
    pub fn with_config(more: &str) -> Self {
        Self::named("n1", free_port(), |_| more.to_owned())
    }

    /// Like [`with_config`](Self::with_config), but `prepare` may put further files into the server's directory
    /// and returns the additional lines.
    pub fn prepared(prepare: impl FnOnce(&Path) -> String) -> Self {
        Self::named("n1", free_port(), prepare)
    }

    /// A server with an unchanged configuration file. `prepare` gets the server's directory and returns the
    /// environment variables that the file refers to.
    pub fn with_file(config: &Path, prepare: impl FnOnce(&Path) -> Vec<(String, String)>) -> Self {
        let (dir, port) = (temporary(), free_port());
        let listen = ["--addr", "127.0.0.1", "--port", &port.to_string()];
        let launch = Launch {
            config: config.to_owned(),
            arguments: listen.map(str::to_owned).to_vec(),
            variables: prepare(dir.path()),
        };
        Self::launched(launch, dir, port)
    }

    fn named(name: &str, port: u16, prepare: impl FnOnce(&Path) -> String) -> Self {
        let dir = temporary();
        let more = prepare(dir.path())
            .replace("$DIR", &dir.path().display().to_string())
            .replace("$NAME", name);
        let jetstream = if more.contains("jetstream") {
            ""
        } else {
            "jetstream { store_dir: \"$DIR/store\" }"
        }
        .replace("$DIR", &dir.path().display().to_string());
        let config = format!(
            "server_name: {name}\nlisten: 127.0.0.1:{port}\n{jetstream}\nwrite_deadline: \"10s\"\n{more}\n",
        );
        let file = dir.path().join("server.conf");
        fs::write(&file, config).expect("the directory can be written");
        let launch = Launch {
            config: file,
            arguments: Vec::new(),
            variables: Vec::new(),
        };
        Self::launched(launch, dir, port)
    }

    fn launched(launch: Launch, dir: tempfile::TempDir, port: u16) -> Self {
        let (child, guard) = spawn(&launch, dir.path());
        let server = Self {
            launch,
            dir,
            port,
            child,
            guard,
        };
        server.wait();
        server
    }

    fn wait(&self) {
        let begun = Instant::now();
        let address = SocketAddr::from((Ipv4Addr::LOCALHOST, self.port));
        while TcpStream::connect_timeout(&address, Duration::from_millis(200)).is_err() {
            assert!(
                begun.elapsed() < START_TIMEOUT,
                "nats-server does not listen; it said:\n{}",
                self.log()
            );
            std::thread::sleep(Duration::from_millis(10));
        }
    }

    /// The URL that clients connect to.
    pub fn url(&self) -> String {
        format!("nats://127.0.0.1:{}", self.port)
    }

    /// The port clients connect to.
    pub fn port(&self) -> u16 {
        self.port
    }

    /// The server's log so far; empty if it has written none.
    pub fn log(&self) -> String {
        fs::read_to_string(self.dir.path().join("server.log")).unwrap_or_default()
    }

    /// The server's temporary directory: configuration, log and store.
    pub fn dir(&self) -> &Path {
        self.dir.path()
    }

    /// The server's process id.
    pub fn pid(&self) -> u32 {
        self.child.id()
    }

    /// Kills the server (SIGKILL).
    pub fn kill(&mut self) {
        // An error means that the process has already ended.
        for process in [&mut self.guard, &mut self.child] {
            let _ = process.kill();
            let _ = process.wait();
        }
    }

    /// Starts the server again with the same port and files, after killing it if it runs.
    pub fn restart(&mut self) {
        self.kill();
        (self.child, self.guard) = spawn(&self.launch, self.dir.path());
        self.wait();
    }

    /// Suspends the server (SIGSTOP): its connections stay open, and it answers nothing.
    pub fn pause(&self) {
        self.signal(Signal::STOP);
    }

    /// Resumes a paused server (SIGCONT).
    pub fn resume(&self) {
        self.signal(Signal::CONT);
    }

    fn signal(&self, signal: Signal) {
        if let Some(pid) = Pid::from_raw(self.child.id().cast_signed()) {
            // An error means that the process has already ended.
            let _ = kill_process(pid, signal);
        }
    }
}

impl Drop for NatsServer {
    fn drop(&mut self) {
        self.kill();
    }
}

fn temporary() -> tempfile::TempDir {
    tempfile::Builder::new()
        .prefix("proofmill-nats-")
        .tempdir()
        .expect("a temporary directory")
}

/// Starts the server, and a guard process that kills it when this process has ended in any way.
fn spawn(launch: &Launch, dir: &Path) -> (Child, Child) {
    let log = fs::OpenOptions::new()
        .create(true)
        .append(true)
        .open(dir.join("server.log"))
        .expect("the directory can be written");
    let variables = launch.variables.iter();
    let server = Command::new(program())
        .arg("--config")
        .arg(&launch.config)
        .args(&launch.arguments)
        .envs(variables.map(|(name, value)| (name, value)))
        .stdin(Stdio::null())
        .stdout(Stdio::null())
        .stderr(log)
        .spawn()
        .expect("nats-server starts");
    // The guard's standard input closes when this process ends.
    let guard = Command::new("sh")
        .args(["-c", "read _; kill -9 \"$1\"", "guard"])
        .arg(server.id().to_string())
        .stdin(Stdio::piped())
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .spawn()
        .expect("a shell starts");
    (server, guard)
}

// === impl Cluster ===

impl Cluster {
    /// Starts a cluster of `members` servers and waits until it has a leader. `more` is added to every configuration.
    ///
    /// With one member it is a single server without a cluster.
    pub fn start(members: usize, more: &str) -> Self {
        if members == 1 {
            let servers = vec![NatsServer::with_config(more)];
            return Self { servers };
        }
        let routes: Vec<u16> = (0..members).map(|_| free_port()).collect();
        let mut addresses = String::new();
        for port in &routes {
            let _ = write!(addresses, "\"nats://127.0.0.1:{port}\", ");
        }
        let servers = routes
            .iter()
            .zip(1..)
            .map(|(route, number)| {
                let cluster = format!(
                    "cluster {{ name: proofmill, listen: \"127.0.0.1:{route}\", routes: [{addresses}] }}\n{more}",
                );
                NatsServer::named(&format!("n{number}"), free_port(), |_| cluster)
            })
            .collect();
        let cluster = Self { servers };
        let begun = Instant::now();
        let knows = |server: &NatsServer| {
            let log = server.log();
            log.contains("JetStream cluster new metadata leader")
                || log.contains("Self is new JetStream cluster metadata leader")
        };
        while !cluster.servers.iter().any(knows) {
            assert!(
                begun.elapsed() < START_TIMEOUT,
                "the cluster has no leader; its first server said:\n{}",
                cluster.servers[0].log()
            );
            std::thread::sleep(Duration::from_millis(20));
        }
        cluster
    }

    /// The URLs of all members, separated by commas.
    pub fn url(&self) -> String {
        let urls: Vec<String> = self.servers.iter().map(NatsServer::url).collect();
        urls.join(",")
    }
}
