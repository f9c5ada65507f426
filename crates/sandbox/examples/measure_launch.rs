//! Time that starting a program takes: directly, by a thread that gives up rights, by one that confines
//! itself strictly, and with a hook between fork and exec, which this crate avoids. The argument is
//! how many MiB of memory this process has in use.
//!
//! ```sh
//! cargo run -p proofmill-sandbox --example measure_launch -- 2000
//! ```

use std::os::unix::process::CommandExt as _;
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use proofmill_sandbox::Confinement;

const RUNS: usize = 400;

type Start = fn(&mut Command, &Path) -> Child;

fn main() {
    let mib = std::env::args().nth(1);
    let mib: usize = mib.map_or(0, |mib| mib.parse().expect("a number of MiB"));
    let used = vec![1_u8; mib << 20];
    let folder = std::env::temp_dir();
    let ways: [(&str, Start); 4] = [
        ("directly", |command, _| command.spawn().expect("starts")),
        ("basic", |command, _| {
            Confinement::Basic.spawn(command).expect("starts")
        }),
        ("strict", |command, writable| {
            let strict = Confinement::Strict { writable };
            strict.spawn(command).expect("starts")
        }),
        ("hook", with_hook),
    ];
    for (name, start) in ways {
        let mut times: Vec<Duration> = (0..RUNS).map(|_| measure(start, &folder)).collect();
        times.sort_unstable();
        let (median, late) = (times[RUNS / 2], times[RUNS * 99 / 100]);
        println!("{name:<9} P50 {median:>10.1?}  P99 {late:>10.1?}");
    }
    drop(used);
}

fn measure(start: Start, folder: &Path) -> Duration {
    let mut command = Command::new("true");
    command.stdin(Stdio::null()).current_dir(folder);
    let began = Instant::now();
    let mut child = start(&mut command, folder);
    let took = began.elapsed();
    assert!(child.wait().expect("ends").success());
    took
}

#[expect(unsafe_code, reason = "what it costs is the question")]
fn with_hook(command: &mut Command, _: &Path) -> Child {
    // SAFETY: the hook does nothing.
    unsafe { command.pre_exec(|| Ok(())) };
    command.spawn().expect("starts")
}
