//! `proofmill submit`

use std::io::Read;
use std::path::Path;

use proofmill_api::{Submission, SubmitAnswer};
use proofmill_files::open_regular_or_inherited;
use serde_json::value::RawValue;

use crate::access::MillAccess;
use crate::args::Submit;
use crate::failure::Failure;
use crate::output;

/// Largest payload, in bytes.
const PAYLOAD_BYTES_MAX: u64 = 64 * 1024 * 1024;

pub(crate) async fn run(args: Submit) -> Result<(), Failure> {
    let payload = read(&args.payload)?;
    let payload: Box<RawValue> = serde_json::from_str(&payload)
        .map_err(|error| Failure::new(format!("{}: not JSON: {error}", args.payload.display())))?;
    let submission = Submission {
        queue: args.queue,
        first: args.block,
        last: args.last.unwrap_or(args.block),
        part: args.part,
        payload,
        requires: (!args.requires.is_empty()).then(|| args.requires.into_iter().collect()),
        traceparent: std::env::var("TRACEPARENT").ok(),
        tracestate: std::env::var("TRACESTATE").ok(),
    };
    let access = MillAccess::open_for_change(&args.mill).await?;
    let answer = access.submit(submission).await;
    let running = access.is_running();
    access.close().await?;
    let answer = answer?;
    if args.mill.json {
        output::line(serde_json::to_string(&answer)?)?;
    }
    let message = match &answer {
        SubmitAnswer::Accepted if running => "accepted".to_owned(),
        SubmitAnswer::Accepted => "accepted; it runs when the mill runs".to_owned(),
        SubmitAnswer::Duplicate { same: Some(true) } => "known already: nothing to do".to_owned(),
        SubmitAnswer::Duplicate { same: Some(false) } => {
            "finished already, with another payload: this one was not taken".to_owned()
        }
        SubmitAnswer::Duplicate { same: None } => {
            "finished already: nothing to do (its payload is no longer known)".to_owned()
        }
        SubmitAnswer::Rejected { why } => {
            return Err(Failure::new(format!(
                "rejected to the dead-letter queue: {why}"
            )));
        }
        SubmitAnswer::Dead { task, why } => {
            return Err(
                Failure::new(format!("in the dead-letter queue already: {why}"))
                    .help(format!("proofmill dlq retry {task}")),
            );
        }
    };
    if args.mill.json {
        Ok(())
    } else {
        output::line(message)
    }
}

fn read(path: &Path) -> Result<String, Failure> {
    let shown = path.display();
    let mut text = String::new();
    let failed = |error: std::io::Error| Failure::new(format!("cannot read {shown}: {error}"));
    let read = if path == Path::new("-") {
        std::io::stdin()
            .lock()
            .take(PAYLOAD_BYTES_MAX + 1)
            .read_to_string(&mut text)
    } else {
        let file = open_regular_or_inherited(path).map_err(failed)?;
        file.take(PAYLOAD_BYTES_MAX + 1).read_to_string(&mut text)
    };
    if read.map_err(failed)? as u64 > PAYLOAD_BYTES_MAX {
        return Err(Failure::new(format!(
            "{shown} is larger than {PAYLOAD_BYTES_MAX} bytes"
        )));
    }
    Ok(text)
}
