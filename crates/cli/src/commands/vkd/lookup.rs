//! `proofmill vkd lookup`

use proofmill_directory::inclusion::KeyAnswer;
use proofmill_files::Visibility;
use proofmill_telemetry::console_line;

use super::directory::{key_of, open};
use crate::args::vkd::Lookup;
use crate::failure::Failure;
use crate::files::{FilePlan, OverwritePolicy, write};
use crate::output;

pub(super) fn run(args: &Lookup) -> Result<(), Failure> {
    let key = key_of(&args.key, args.key_hex)?;
    FilePlan::default()
        .writes("the proof", &args.output)
        .check(OverwritePolicy::NothingHardToRecreate)?;
    let directory = open(&args.directory)?;
    let answer = KeyAnswer::new(&directory, &key);
    let is_json = args.output.extension().is_some_and(|name| name == "json");
    let proof = match is_json {
        true => answer.proof.to_json().into_bytes(),
        false => answer.proof.to_bytes(),
    };
    write(&args.output, Visibility::Public, &proof)?;
    let state = match &answer.state {
        Some(state) => format!(
            "version {}, a value of {} bytes",
            state.version,
            state.value.len()
        ),
        None => "absent".to_owned(),
    };
    console_line(output::plain(&format!(
        "{:?}: {state}, at epoch {}; {}: the proof, {} bytes",
        args.key,
        answer.epoch,
        args.output.display(),
        proof.len(),
    )));
    match args.json {
        true => output::line(answer.to_json()),
        false => Ok(()),
    }
}
