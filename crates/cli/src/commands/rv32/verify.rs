//! `proofmill rv32 verify`

use proofmill_partition::with_partition_curve;
use std::time::Instant;

use proofmill_files::Visibility;
use proofmill_partition::Partition;
use proofmill_partition::proof::PartitionCurve;
use proofmill_rv32_circuit::{Rv32Circuit, Statement};
use proofmill_telemetry::console_line;
use serde_json::json;

use crate::args::rv32::Rv32Verify;
use crate::circuit_folder::{CircuitSizes, Folder, Rv32Sizes, read_program};
use crate::commands::partition::ProofFiles;
use crate::failure::Failure;
use crate::files::{FilePlan, OverwritePolicy, write};
use crate::output;
use crate::progress::counted;
use crate::stages::{milliseconds, short};

/// Most bytes of output that are shown.
const SHOWN_BYTES: usize = 64;

pub(super) fn run(args: &Rv32Verify) -> Result<(), Failure> {
    let began = Instant::now();
    let folder = Folder::at(&args.keys);
    check_output(args, &folder)?;
    let description = folder.description().map_err(Failure::without_answer)?;
    let CircuitSizes::Rv32(sizes) = &description.circuit else {
        let shown = args.keys.display();
        return Err(Failure::no_verdict(format!(
            "{shown}: these are keys of another circuit than an execution"
        )));
    };
    let curve = description.curve().map_err(Failure::without_answer)?;
    let verdict = args
        .threads
        .run(|| with_partition_curve!(curve, E => verify::<E>(args, &folder, sizes))?)??;
    let total = began.elapsed();
    let shown = args.proof.display();
    if args.json {
        let statement = verdict.as_ref().ok().map(|statement| {
            json!({
                "program": hex::encode(statement.program),
                "exit_code": statement.exit_code,
                "output": hex::encode(&statement.output),
                "input": statement.input.as_ref().map(hex::encode),
            })
        });
        let answer = json!({
            "valid": verdict.is_ok(),
            "reason": verdict.as_ref().err(),
            "statement": statement,
            "key_is_of_the_program": verdict.is_ok() && args.program.is_some(),
            "total_ms": milliseconds(total),
        });
        output::line(answer.to_string())?;
    }
    let statement = verdict.map_err(|why| Failure::new(format!("{shown}: not valid: {why}")))?;
    if let Some(path) = &args.output {
        write(path, Visibility::Public, &statement.output).map_err(Failure::without_answer)?;
    }
    let lines = lines(args, &statement);
    console_line(output::plain(&format!(
        "{shown}: valid, in {}",
        short(total)
    )));
    for line in lines {
        console_line(output::plain(&line));
    }
    Ok(())
}

/// Fails if the output would replace a file that is read, or cannot be written. Exit code 1 would be a verdict.
fn check_output(args: &Rv32Verify, folder: &Folder) -> Result<(), Failure> {
    let Some(output) = &args.output else {
        return Ok(());
    };
    let key = folder.verifying_key_path();
    let mut plan = FilePlan::default()
        .reads("the proof", &args.proof)
        .reads("the public inputs", &args.public)
        .reads("the key", &key);
    if let Some(program) = &args.program {
        plan = plan.reads("the program", program);
    }
    let checked = plan
        .writes("the output", output)
        .check(OverwritePolicy::NothingHardToRecreate);
    checked.map_err(|failure| match failure.code {
        1 => failure.without_answer(),
        _ => failure,
    })
}

/// The statement of a valid proof, or the reason why it is not valid. The outer error is for what gives no verdict.
fn verify<E: PartitionCurve>(
    args: &Rv32Verify,
    folder: &Folder,
    sizes: &Rv32Sizes,
) -> Result<Result<Statement, String>, Failure> {
    let key = folder.verifying_key_path();
    let files = ProofFiles::<E>::load(&key, &args.public, &args.proof)?;
    if let Err(why) = files.verify() {
        return Ok(Err(why.to_string()));
    }
    let claimed = hex::decode(&sizes.program).unwrap_or_default();
    let mut program: [u8; 32] = claimed[..].try_into().map_err(|_| {
        let path = folder.description_path();
        Failure::no_verdict(format!("{}: no digest of a program", path.display()))
    })?;
    let shape = sizes.shape().map_err(Failure::without_answer)?;
    if let Some(path) = &args.program {
        let expected = read_program(path).map_err(Failure::without_answer)?;
        let blank = Rv32Circuit::blank(&expected, shape);
        let blank = blank.map_err(|error| Failure::of(&error).without_answer())?;
        let partition = Partition::<E::ScalarField>::new(&blank);
        let partition = partition.map_err(|error| Failure::of(&error).without_answer())?;
        if partition.digest() != files.key.partition() {
            let shown = path.display();
            return Ok(Err(format!("the verifying key is not for {shown}")));
        }
        program = expected.digest();
    }
    let statement = Statement::from_public_inputs(program, &shape, &files.inputs);
    Ok(statement.map_err(|error| error.to_string()))
}

fn lines(args: &Rv32Verify, statement: &Statement) -> Vec<String> {
    let claim = match &args.program {
        Some(path) => format!("{}, of which the key says it is", path.display()),
        None => "as the folder of keys says; check it with --program".to_owned(),
    };
    let input = match &statement.input {
        Some(input) => described(input),
        None => "some secret input".to_owned(),
    };
    vec![
        format!("  program    {} ({claim})", hex::encode(statement.program)),
        format!("  input      {input}"),
        format!("  exit code  {}", statement.exit_code),
        format!("  output     {}", described(&statement.output)),
    ]
}

/// The length of some bytes, and their beginning.
fn described(bytes: &[u8]) -> String {
    let length = counted(bytes.len(), "byte");
    let text = str::from_utf8(bytes).ok();
    let text = text.filter(|text| text.len() <= SHOWN_BYTES && !text.contains('\0'));
    match (bytes.len(), text) {
        (0, _) => "none".to_owned(),
        (_, Some(text)) => format!("{length}: {text:?}"),
        (1..=SHOWN_BYTES, None) => format!("{length}: {}", hex::encode(bytes)),
        _ => format!("{length}, {}…", hex::encode(&bytes[..SHOWN_BYTES])),
    }
}
