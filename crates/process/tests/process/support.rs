//! A place for runs of shell scripts, and what they leave behind.

use std::fs;
use std::future::pending;
use std::path::PathBuf;
use std::time::{Duration, Instant};

use proofmill_process::{Attempt, ProcessExecutor, ProcessSpec, TaskContext};
use tempfile::TempDir;

/// Longest wait for anything, on a machine that may give a process no time for several seconds.
pub(crate) const PATIENCE: Duration = Duration::from_secs(60);

/// A scratch root and a folder for files that scripts leave behind, removed at the end of the test.
pub(crate) struct Bench {
    pub(crate) root: TempDir,
}

impl Bench {
    pub(crate) fn new() -> Self {
        Self {
            root: tempfile::tempdir().unwrap(),
        }
    }

    pub(crate) fn path(&self, name: &str) -> PathBuf {
        self.root.path().join(name)
    }

    pub(crate) fn scratch(&self) -> PathBuf {
        self.path("scratch")
    }

    /// `script` run by a shell: `$2` is the input, `$4` the output, `$DIR` this bench.
    pub(crate) fn script(&self, script: &str) -> ProcessSpec {
        // Passed to the shell as an argument: a script file could be busy if another test forks while it is
        // executed.
        let mut spec = ProcessSpec::new("/bin/sh");
        spec.args = vec!["-c".into(), script.into(), "prover".into()];
        spec.env
            .insert("DIR".into(), self.root.path().to_str().unwrap().into());
        spec.kill_grace = Duration::from_millis(300);
        spec
    }

    pub(crate) fn executor(&self, spec: ProcessSpec) -> ProcessExecutor {
        ProcessExecutor::new(spec, self.scratch()).unwrap()
    }

    pub(crate) async fn run(&self, spec: ProcessSpec) -> Attempt {
        self.executor(spec).run(&task(), b"input", pending()).await
    }

    /// Runs a program until its time limit, and returns that limit too. A busy machine may not have begun
    /// the program within the first limit; if the attempt is not `as_wanted`, a longer limit is tried.
    pub(crate) async fn time_out(
        &self,
        spec: &ProcessSpec,
        as_wanted: impl Fn(&Attempt) -> bool,
    ) -> (Attempt, Duration) {
        for limit in [Duration::from_millis(800), Duration::from_secs(8)] {
            let attempt = self.run_for(spec, limit).await;
            if as_wanted(&attempt) {
                return (attempt, limit);
            }
            // An empty list of process ids for the next try.
            let _ = fs::remove_file(self.path("pids"));
        }
        (self.run_for(spec, PATIENCE).await, PATIENCE)
    }

    pub(crate) async fn run_for(&self, spec: &ProcessSpec, limit: Duration) -> Attempt {
        let mut spec = spec.clone();
        spec.time_limit = Some(limit);
        self.run(spec).await
    }

    /// Process ids that a script wrote, one per line.
    pub(crate) fn pids(&self, name: &str) -> Vec<i32> {
        let text = fs::read_to_string(self.path(name)).unwrap_or_default();
        text.lines()
            .map(|line| line.trim().parse().unwrap())
            .collect()
    }

    pub(crate) async fn wait_for_pids(&self, name: &str, count: usize) -> Vec<i32> {
        until(|| self.pids(name).len() == count).await;
        self.pids(name)
    }

    pub(crate) fn assert_clean(&self) {
        let left: Vec<_> = fs::read_dir(self.scratch()).unwrap().collect();
        assert!(left.is_empty(), "left in the scratch root: {left:?}");
    }
}

pub(crate) fn task() -> TaskContext {
    TaskContext {
        id: "prove/17".into(),
        attempt: 3,
        block: 17,
    }
}

/// Whether a process runs: it exists, and is not a zombie that its parent has not reaped yet.
pub(crate) fn runs(pid: i32) -> bool {
    let Ok(stat) = fs::read_to_string(format!("/proc/{pid}/stat")) else {
        return false;
    };
    !matches!(
        stat.rsplit(')').next().unwrap().trim_start().as_bytes()[0],
        b'Z' | b'X'
    )
}

pub(crate) async fn until(mut condition: impl FnMut() -> bool) {
    let start = Instant::now();
    while !condition() {
        assert!(start.elapsed() < PATIENCE, "waited too long");
        tokio::time::sleep(Duration::from_millis(2)).await;
    }
}

/// Asserts that these processes are gone, unless the run or sweep has `waited` for them as long as it may.
pub(crate) async fn assert_gone(pids: &[i32], waited: Duration, longest: Duration) {
    let gone = || !pids.iter().any(|&pid| runs(pid));
    assert!(
        gone() || waited >= longest,
        "{pids:?} are left after {waited:?}"
    );
    until(gone).await;
}

/// A leader with a child and a grandchild, each of which writes its process id.
pub(crate) const FAMILY: &str = "echo $$ >> $DIR/pids
    sh -c 'echo $$ >> $DIR/pids; sh -c \"echo \\$\\$ >> \\$DIR/pids; sleep 600; :\"; :'
    :";

/// A leader and a child without an environment, so that only the process group shows what they belong to.
pub(crate) const SCRUBBED: &str = "exec env -i /bin/sh -c '
    trap : HUP; echo $$ >> \"$0/pids\"; /bin/sleep 600 & echo $! >> \"$0/pids\"; wait' \"$DIR\"";
