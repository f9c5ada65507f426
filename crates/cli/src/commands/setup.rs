//! `proofmill setup`

use std::cell::RefCell;
use std::path::Path;

use ark_std::rand::rngs::OsRng;
use proofmill_files::{MappedFile, Visibility};
use proofmill_groth16::snarkjs::{
    Ptau, ZkeyFile, ZkeySetupError, setup_zkey, setup_zkey_from_ptau,
};
use proofmill_groth16::{Curve, SnarkCurve, with_curve};
use proofmill_r1cs::iden3::{R1csFile, R1csHeader, ReadError};
use proofmill_telemetry::console_line;
use serde_json::json;

use crate::args::circuits::Setup;
use crate::content::FileKind;
use crate::failure::Failure;
use crate::files::{FilePlan, OverwritePolicy, write_with};
use crate::output;
use crate::stages::{StageTimes, Stages, milliseconds, short};

/// Approximate number of stages of a setup, for the bar.
const STAGES: usize = 7;

pub(crate) fn run(args: &Setup) -> Result<(), Failure> {
    check(args)?;
    let file = MappedFile::open(&args.r1cs)?;
    let circuit = R1csFile::parse(&file).map_err(|error| error.in_file(&args.r1cs))?;
    let header = *circuit.header();
    let curve = Curve::from(header.prime);
    let powers = args.ptau.as_deref().map(MappedFile::open).transpose()?;
    if args.verify_ptau && powers.is_none() {
        return Err(Failure::usage(
            "--verify-ptau: there is no --ptau to verify",
        ));
    }
    let stage_times = args
        .threads
        .run(|| with_curve!(curve, E => make_key::<E>(args, &circuit, powers.as_ref())))??;
    print_summary(args, curve, &header, &stage_times)
}

/// Fails unless the input files are of their kinds and the key can be written without loss.
fn check(args: &Setup) -> Result<(), Failure> {
    let mut plan = FilePlan::default()
        .reads("the circuit", &args.r1cs)
        .writes("the key", &args.output);
    if let Some(ptau) = &args.ptau {
        plan = plan.reads("the powers of tau", ptau);
    }
    plan.check(if args.force {
        OverwritePolicy::Anything
    } else {
        OverwritePolicy::Nothing
    })?;
    FileKind::Circuit.expect(&args.r1cs)?;
    match &args.ptau {
        Some(ptau) => FileKind::PowersOfTau.expect(ptau),
        None => Ok(()),
    }
}

/// Makes the key and writes it.
fn make_key<E: SnarkCurve>(
    args: &Setup,
    circuit: &R1csFile<'_>,
    powers: Option<&MappedFile>,
) -> Result<StageTimes, Failure> {
    let stages = RefCell::new(Stages::begin("setup", STAGES));
    let enter = |what: &str| stages.borrow_mut().enter(what);
    let powers = match powers {
        None => None,
        Some(file) => {
            let in_file = |error| ReadError::Format {
                path: file.path().to_owned(),
                source: error,
            };
            let powers = Ptau::<E>::parse(file).map_err(in_file)?;
            if args.verify_ptau {
                enter("verifying the powers of tau");
                powers.verify(&mut OsRng).map_err(in_file)?;
            }
            Some(powers)
        }
    };
    // `write_with` reports every error as one of writing; an error of the setup itself is kept
    // here, to be reported as such.
    let mut setup_error = None;
    let written = write_with(&args.output, Visibility::Public, |file| {
        let made = match &powers {
            Some(powers) => {
                setup_zkey_from_ptau(circuit, powers, Some(&args.name), &mut OsRng, file, &enter)
                    .map(drop)
            }
            None => setup_zkey::<E, _>(circuit, &mut OsRng, file, &enter).map(drop),
        };
        made.map_err(|error| match error {
            ZkeySetupError::Io(error) => error,
            other => {
                setup_error = Some(other);
                std::io::Error::other("no key was made")
            }
        })
    });
    if let Some(error) = setup_error {
        return Err(add_file(args, error));
    }
    written?;
    Ok(stages.into_inner().end())
}

/// Adds to an error the file that it is about.
fn add_file(args: &Setup, error: ZkeySetupError) -> Failure {
    let ptau = args
        .ptau
        .as_deref()
        .unwrap_or(Path::new("the powers of tau"));
    match error {
        ZkeySetupError::Format(error) if error.format.name == ".ptau" => error.in_file(ptau).into(),
        ZkeySetupError::Format(error) => error.in_file(&args.r1cs).into(),
        error @ ZkeySetupError::Power { .. } => {
            Failure::new(format!("{}: {error}", ptau.display()))
        }
        error => Failure::new(format!("{}: {error}", args.r1cs.display())),
    }
}

fn print_summary(
    args: &Setup,
    curve: Curve,
    header: &R1csHeader,
    stage_times: &StageTimes,
) -> Result<(), Failure> {
    let file = MappedFile::open(&args.output)?;
    let key = ZkeyFile::parse(&file).map_err(|error| error.in_file(&args.output))?;
    console_line(output::plain(&format!(
        "{}: a key over {curve} for {} constraints, {} bytes, in {}",
        args.output.display(),
        header.n_constraints,
        file.len(),
        short(stage_times.total)
    )));
    console_line(
        "warning: one party made this key and could forge proofs: it is for development. Let others \
         contribute (`snarkjs zkey contribute`) before anything depends on it",
    );
    if args.json {
        let answer = json!({
            "curve": curve.name(),
            "constraints": header.n_constraints,
            "variables": key.header().variables,
            "public_signals": key.header().public,
            "domain": key.header().domain_size,
            "bytes": file.len(),
            "stages": stage_times.to_json(),
            "total_ms": milliseconds(stage_times.total),
        });
        output::line(answer.to_string())?;
    }
    Ok(())
}
