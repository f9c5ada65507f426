//! The register budget: every kernel compiles for the architectures below without spills, and takes
//! no more registers than `kernels/registers.txt` allows it.
//!
//! The file has a section for each module and architecture, headed by the digest of the source that its numbers are of. A
//! module with another source is compiled, which needs NVRTC; `make cuda-toolkit` installs it below this crate.
//! `make cuda-registers` compiles all of them, in some minutes, and writes the file.

use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::path::Path;
use std::process::Command;

use super::{Module, compile};
use crate::group::{Group, ScalarField};

const ARCHITECTURES: [&str; 2] = ["sm_80", "sm_90"];
/// Name of the environment variable that gives the child process the module and architecture to compile.
const CHILD: &str = "PROOFMILL_COMPILE_MODULE";
/// Name of the environment variable that gives it the file to write the compiler's log to.
const CHILD_LOG: &str = "PROOFMILL_COMPILE_LOG";
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

/// The kernels of a module on an architecture, with their registers.
type Budget = BTreeMap<String, u32>;

/// The budget's sections by module, architecture and digest of the source, which is in their first line:
/// `[MODULE ARCHITECTURE DIGEST]`.
fn sections(text: &str) -> BTreeMap<String, Budget> {
    let mut sections = BTreeMap::<String, Budget>::new();
    let mut section = String::new();
    for line in text.lines() {
        if line.starts_with('[') {
            line.clone_into(&mut section);
            sections.insert(section.clone(), Budget::new());
        } else {
            let (kernel, registers) = line.rsplit_once(' ').unwrap();
            let budget = sections.get_mut(&section).unwrap();
            budget.insert(kernel.to_owned(), registers.parse().unwrap());
        }
    }
    sections
}

#[test]
fn kernels_keep_to_their_registers_and_spill_nothing() {
    let library = crate_folder().join("toolkit/nvidia/cu13/lib");
    assert!(
        library.exists(),
        "{}: NVRTC is not there; `make cuda-toolkit` installs it",
        library.display()
    );
    let path = crate_folder().join("kernels/registers.txt");
    let is_update = std::env::var_os(UPDATE).is_some();
    let text = std::fs::read_to_string(&path).unwrap();
    let budgets = sections(&text);
    let all = modules()
        .into_iter()
        .flat_map(|module| ARCHITECTURES.map(|architecture| (module, architecture)));
    let (same, changed): (Vec<_>, Vec<_>) = all.partition(|&(module, architecture)| {
        !is_update && budgets.contains_key(&heading(module, architecture))
    });
    let measured = compiled(&changed, &library);
    if is_update {
        std::fs::write(&path, written(&measured)).unwrap();
        return;
    }
    for (heading, budget) in &measured {
        let of = heading.rsplit_once(' ').unwrap().0;
        let earlier = budgets
            .iter()
            .find(|(name, _)| name.starts_with(&format!("{of} ")));
        let allowed = earlier
            .map(|(_, budget)| budget.clone())
            .unwrap_or_default();
        for (kernel, registers) in budget {
            let allowed = allowed.get(kernel).copied().unwrap_or_default();
            assert!(
                *registers <= allowed,
                "{kernel} takes {registers} registers, its budget is {allowed}: if that is meant, \
                 `make cuda-registers` writes kernels/registers.txt"
            );
        }
    }
    assert!(
        changed.is_empty(),
        "{changed:?} keep to their registers, but are not those that kernels/registers.txt was made from: \
         `make cuda-registers` writes it"
    );
    assert_eq!(
        same.len(),
        budgets.len(),
        "modules, and sections of the budget"
    );
}

/// Compiles the modules, two at a time, each for an architecture; none may spill.
fn compiled(wanted: &[(Module, &'static str)], library: &Path) -> BTreeMap<String, Budget> {
    let compile_all = |part: &[(Module, &'static str)]| -> Vec<(String, String)> {
        part.iter()
            .map(|&(module, architecture)| {
                (
                    heading(module, architecture),
                    log(module, architecture, library),
                )
            })
            .collect()
    };
    let logs = std::thread::scope(|scope| {
        let (left, right) = wanted.split_at(wanted.len() / 2);
        let right = scope.spawn(move || compile_all(right));
        let mut logs = compile_all(left);
        logs.extend(right.join().unwrap());
        logs
    });
    let usage = |(heading, log): (String, String)| {
        let budget = parse(&log).into_iter().map(|(kernel, usage)| {
            assert_eq!(usage.spilled, 0, "{kernel} of {heading} spills registers");
            (kernel, usage.registers)
        });
        let budget = budget.collect();
        (heading, budget)
    };
    logs.into_iter().map(usage).collect()
}

/// The text of the budget.
fn written(measured: &BTreeMap<String, Budget>) -> String {
    let mut text = String::new();
    for (heading, budget) in measured {
        writeln!(text, "{heading}").unwrap();
        for (kernel, registers) in budget {
            writeln!(text, "{kernel} {registers}").unwrap();
        }
    }
    text
}

/// The first line of a section.
fn heading(module: Module, architecture: &str) -> String {
    let digest = blake3::hash(module.source().as_bytes()).to_hex();
    format!("[{module} {architecture} {digest}]")
}

/// The compiler's log of a module, from a child process that has the toolkit in its library path.
fn log(module: Module, architecture: &str, library: &Path) -> String {
    let written = tempfile::NamedTempFile::new().unwrap();
    let output = Command::new(std::env::current_exe().unwrap())
        .args([
            "cuda::compile::register_budget::child",
            "--exact",
            "--nocapture",
        ])
        .env("LD_LIBRARY_PATH", library)
        .env(CHILD, format!("{module} {architecture}"))
        .env(CHILD_LOG, written.path())
        .output()
        .unwrap();
    assert!(
        output.status.success(),
        "{module} for {architecture}: {}",
        String::from_utf8_lossy(&output.stderr)
    );
    std::fs::read_to_string(written.path()).unwrap()
}

/// Compiles the module that the parent process names in the environment; run as an ordinary test, it does nothing.
#[test]
fn child() {
    let Ok(wanted) = std::env::var(CHILD) else {
        return;
    };
    let (name, architecture) = wanted.split_once(' ').unwrap();
    let module = modules().into_iter().find(|module| module.name() == name);
    let compiled = compile(module.unwrap(), architecture).unwrap();
    assert!(compiled.cubin.starts_with(b"\x7fELF"));
    std::fs::write(std::env::var_os(CHILD_LOG).unwrap(), compiled.log).unwrap();
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
fn the_budget_is_read_as_it_is_written() {
    let budget = |registers| Budget::from([("a_b".to_owned(), registers), ("a_c".to_owned(), 9)]);
    let measured = [("[a sm_80 1]", budget(8)), ("[a sm_90 1]", budget(10))];
    let measured = measured
        .map(|(heading, budget)| (heading.to_owned(), budget))
        .into();
    assert_eq!(sections(&written(&measured)), measured);
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
