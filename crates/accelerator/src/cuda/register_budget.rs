//! The register budget: every kernel compiles for the architectures below without spills, and takes
//! no more registers than `kernels/registers.txt` allows it.
//!
//! It needs NVRTC, which `make cuda-toolkit` installs below this crate. A module that has not changed since it was
//! last compiled is not compiled again.

use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::path::{Path, PathBuf};
use std::process::Command;

use super::{Module, compile};
use crate::group::{Group, ScalarField};

const ARCHITECTURES: [&str; 2] = ["sm_80", "sm_90"];
/// Name of the environment variable that gives the child process the module and architecture to compile.
const CHILD: &str = "PROOFMILL_COMPILE_MODULE";
/// Name of the environment variable that makes the test write the budget instead of checking it.
const UPDATE: &str = "UPDATE_REGISTERS";

/// Resources of a compiled kernel: registers of a thread, bytes spilled.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
struct Usage {
    registers: u32,
    spilled: u32,
}

fn modules() -> Vec<Module> {
    let scalars = ScalarField::ALL.iter().copied().map(Module::Scalars);
    let points = Group::ALL.iter().copied().map(Module::Points);
    std::iter::once(Module::Sort)
        .chain(scalars)
        .chain(points)
        .filter(|module| module.exists())
        .collect()
}

fn crate_folder() -> &'static Path {
    Path::new(env!("CARGO_MANIFEST_DIR"))
}

#[test]
fn kernels_keep_to_their_registers_and_spill_nothing() {
    let library = crate_folder().join("toolkit/nvidia/cu13/lib");
    assert!(
        library.exists(),
        "{}: NVRTC is not there; `make cuda-toolkit` installs it",
        library.display()
    );
    let wanted: Vec<(Module, &'static str)> = modules()
        .into_iter()
        .flat_map(|module| ARCHITECTURES.map(|architecture| (module, architecture)))
        .collect();
    let library = library.as_path();
    let logs = std::thread::scope(|scope| {
        let compile_all = |part: &[(Module, &'static str)]| -> Vec<(&'static str, String)> {
            part.iter()
                .map(|&(module, architecture)| (architecture, log(module, architecture, library)))
                .collect()
        };
        let (left, right) = wanted.split_at(wanted.len() / 2);
        let right = scope.spawn(move || compile_all(right));
        let mut logs = compile_all(left);
        logs.extend(right.join().unwrap());
        logs
    });
    let mut usages = BTreeMap::new();
    for (architecture, log) in &logs {
        for (kernel, usage) in parse(log) {
            usages.insert(format!("{kernel} {architecture}"), usage);
        }
    }
    let spilling: Vec<_> = usages
        .iter()
        .filter(|(_, usage)| usage.spilled > 0)
        .collect();
    assert!(spilling.is_empty(), "kernels spill registers: {spilling:?}");

    let path = crate_folder().join("kernels/registers.txt");
    if std::env::var_os(UPDATE).is_some() {
        let mut text = String::new();
        for (kernel, usage) in &usages {
            writeln!(text, "{kernel} {}", usage.registers).unwrap();
        }
        std::fs::write(&path, text).unwrap();
    }
    let budget = std::fs::read_to_string(&path).unwrap();
    let budget: BTreeMap<&str, u32> = budget
        .lines()
        .map(|line| {
            let (kernel, registers) = line.rsplit_once(' ').unwrap();
            (kernel, registers.parse().unwrap())
        })
        .collect();
    for (kernel, usage) in &usages {
        let allowed = budget.get(kernel.as_str()).copied().unwrap_or_default();
        assert!(
            usage.registers <= allowed,
            "{kernel} takes {} registers, its budget is {allowed}: if that is meant, \
             {UPDATE}=1 writes kernels/registers.txt",
            usage.registers
        );
    }
    assert_eq!(
        usages.len(),
        budget.len(),
        "kernels, and lines of the budget"
    );
}

/// The compiler's log of a module: from the cache of an earlier run, or from a child process that has the
/// toolkit in its library path.
fn log(module: Module, architecture: &str, library: &Path) -> String {
    let kept = kept(module, architecture);
    if let Ok(log) = std::fs::read_to_string(&kept) {
        return log;
    }
    let output = Command::new(std::env::current_exe().unwrap())
        .args([
            "cuda::compile::register_budget::child",
            "--exact",
            "--nocapture",
        ])
        .env("LD_LIBRARY_PATH", library)
        .env(CHILD, format!("{module} {architecture}"))
        .output()
        .unwrap();
    assert!(
        output.status.success(),
        "{module} for {architecture}: {}",
        String::from_utf8_lossy(&output.stderr)
    );
    std::fs::read_to_string(&kept).unwrap()
}

/// Path of the compiler's cached log; it depends on the source.
fn kept(module: Module, architecture: &str) -> PathBuf {
    let digest = blake3::hash(module.source().as_bytes()).to_hex();
    let folder = crate_folder().join("toolkit/registers");
    folder.join(format!("{module}-{architecture}-{digest}.log"))
}

/// Compiles the module that the parent process names in the environment; run as an ordinary test, it does nothing.
#[test]
fn child() {
    let Ok(wanted) = std::env::var(CHILD) else {
        return;
    };
    let (name, architecture) = wanted.split_once(' ').unwrap();
    let module = modules().into_iter().find(|module| module.name() == name);
    let kept = kept(module.unwrap(), architecture);
    let compiled = compile(module.unwrap(), architecture).unwrap();
    assert!(compiled.cubin.starts_with(b"\x7fELF"));
    std::fs::create_dir_all(kept.parent().unwrap()).unwrap();
    let file = tempfile::NamedTempFile::new_in(kept.parent().unwrap()).unwrap();
    std::fs::write(file.path(), compiled.log).unwrap();
    file.persist(kept).unwrap();
}

/// The kernels of the assembler's report with their usage, which includes the functions that they call.
fn parse(log: &str) -> BTreeMap<String, Usage> {
    let number = |line: &str, after: &str| -> u32 {
        let (before, _) = line.split_once(after).unwrap();
        before.rsplit(' ').next().unwrap().parse().unwrap()
    };
    let mut usages: BTreeMap<String, Usage> = BTreeMap::new();
    let mut kernel = String::new();
    for line in log.lines() {
        if let Some((_, rest)) = line.split_once("Compiling entry function '") {
            kernel = rest.split('\'').next().unwrap().to_owned();
            usages.insert(kernel.clone(), Usage::default());
        } else if line.contains("bytes spill stores") {
            let usage = usages.get_mut(&kernel).unwrap();
            usage.spilled +=
                number(line, " bytes spill stores") + number(line, " bytes spill loads");
        } else if line.contains(" registers") {
            usages.get_mut(&kernel).unwrap().registers = number(line, " registers");
        }
    }
    usages
}

#[test]
fn the_report_is_read() {
    let log = "ptxas info    : Compiling entry function 'a_b' for 'sm_90'\n\
               ptxas         .     0 bytes stack frame, 4 bytes spill stores, 8 bytes spill loads\n\
               ptxas info    : Used 40 registers, used 1 barriers, 34048 bytes smem\n";
    let expected = Usage {
        registers: 40,
        spilled: 12,
    };
    assert_eq!(parse(log), BTreeMap::from([("a_b".to_owned(), expected)]));
}
