//! Verifying proofs of any kind in files and folders together, with the verifier's own service.

use std::path::Path;
use std::time::Instant;

use proofmill_ipa::{ROLLUP_LOG_SIZE, Srs};
use proofmill_shutdown::Level;
use proofmill_verifier::{KeyLimits, Kinds, Options, Service};
use tokio::sync::mpsc;

use super::find::{Candidate, Findings, Found, RecognizedKind, SearchOptions, find};
use super::printer::VerdictPrinter;
use super::read::Reader;
use crate::args::verifier::STATE;
use crate::args::verify::Verify;
use crate::commands::verifier::SRS_FILE;
use crate::failure::Failure;
use crate::progress::{Screen, counted};
use crate::signals;

/// Most proofs checked together.
const BATCH_PROOFS_MAX: usize = 256;
/// Most proofs that have been read but have no verdict yet.
const UNDECIDED_PROOFS_MAX: usize = 1024;
/// Most verifying keys held, and their bytes.
const KEY_LIMITS: KeyLimits = KeyLimits {
    keys: 1 << 16,
    bytes: 1 << 30,
};
/// The kind of rollup proofs, which needs the SRS.
const ROLLUP_KIND: &str = "grumpkin-ipa";

pub(super) async fn run(args: &Verify) -> Result<(), Failure> {
    if args.key_safety.allow_insecure_key {
        return Err(Failure::usage("--allow-insecure-key goes with --vk only"));
    }
    let began = Instant::now();
    let screen = Screen::open();
    let search_args = args.clone();
    let findings =
        tokio::task::spawn_blocking(move || find(&SearchOptions::of(&search_args))).await?;
    check_findings(args, &findings)?;
    let options = options(args, &findings, &screen).await?;
    let limit = options.request_bytes;
    let (service, handle) = Service::open(options).map_err(|error| Failure::of(&error))?;
    let interrupted = signals::first_signal()?;
    let (ending, ended) = proofmill_shutdown::channel();
    let serving = tokio::spawn(service.run(ended));
    let mut printer = VerdictPrinter::new(args, &screen, findings.found.len());
    let (sender, mut submitted) = mpsc::channel(UNDECIDED_PROOFS_MAX);
    let reading = tokio::spawn(Reader::new(handle, limit).run(findings.found, sender));
    let printing = async {
        while let Some(submitted) = submitted.recv().await {
            printer.print_verdict(submitted).await?;
        }
        Ok::<_, Failure>(())
    };
    let stopping = async {
        interrupted.await;
        // Proofs without a verdict by now stay undecided, and are counted.
        reading.abort();
        ending.raise(Level::Stop);
        std::future::pending::<()>().await;
    };
    let printed = tokio::select! {
        printed = printing => printed,
        () = stopping => Ok(()),
    };
    ending.raise(Level::Stop);
    let _ = serving.await;
    printed?;
    printer.summary(findings.others, began.elapsed())
}

/// Fails if there is nothing to verify, or if the command line does not fit what was found.
fn check_findings(args: &Verify, findings: &Findings) -> Result<(), Failure> {
    if findings.found.is_empty() {
        let files = counted(findings.others, "file");
        return Err(
            Failure::no_verdict(format!("no proofs found: {files} of other content")).help(
                "`proofmill verify --help` lists the recognised proofs; with --kind KIND, files \
                 that are named here, and those called NAME.proof, are read as proofs of that kind",
            ),
        );
    }
    if args.inputs.is_some() && findings.found.len() > 1 {
        return Err(Failure::usage(format!(
            "--inputs is the statement of one proof, and there are {}",
            findings.found.len()
        )));
    }
    Ok(())
}

async fn options(args: &Verify, findings: &Findings, screen: &Screen) -> Result<Options, Failure> {
    let is_rollup = |found: &Found| matches!(found, Found::Proof(Candidate { kind: RecognizedKind::Kind(kind), .. }) if kind == ROLLUP_KIND);
    let srs = if findings.found.iter().any(is_rollup) {
        let spinner = screen.spinner("deriving the points for rollup proofs");
        let srs = tokio::task::spawn_blocking(srs).await?;
        spinner.clear();
        Some(srs?)
    } else {
        None
    };
    let kinds = Kinds::all(srs.as_ref());
    if let Some(kind) = &args.kind
        && kind != ROLLUP_KIND
        && !kinds.names().contains(&&**kind)
    {
        let known = kinds.names().join(", ");
        return Err(Failure::usage(format!(
            "--kind {kind}: unknown kind; known are {known}, {ROLLUP_KIND}"
        )));
    }
    let mut options = Options::of(kinds);
    options.threads = args.threads.threads.unwrap_or(0).into();
    options.limits.batch = BATCH_PROOFS_MAX;
    options.limits.requests = UNDECIDED_PROOFS_MAX;
    options.keys = KEY_LIMITS;
    Ok(options)
}

/// The SRS for rollup proofs: from the state directory of a verifier that ran here, or derived.
fn srs() -> Result<Srs, Failure> {
    let path = Path::new(STATE).join(SRS_FILE);
    match path.exists() {
        true => Srs::load(&path).map_err(|error| {
            Failure::of(&error).help("remove that file: the next run derives the points again")
        }),
        false => Ok(Srs::derive(ROLLUP_LOG_SIZE)),
    }
}
