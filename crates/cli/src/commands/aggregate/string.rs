//! Reference strings: `proofmill aggregate setup`, `contribute` and `check`.

use std::path::Path;

use ark_std::rand::rngs::OsRng;
use proofmill_aggregation::{AggregationCurve, MAX_CONTRIBUTIONS, Srs};
use proofmill_files::Visibility;
use proofmill_groth16::{Curve, with_curve};
use proofmill_telemetry::console_line;
use serde_json::json;

use super::read::load_srs;
use crate::args::aggregate::{AggregateSetup, CheckString, Contribute};
use crate::content::{FileKind, curve_of_file};
use crate::failure::Failure;
use crate::files::{FilePlan, write};
use crate::output;
use crate::progress::counted;
use crate::stages::{StageTimes, Stages, milliseconds, short};

/// Warning about a reference string with a single contribution.
pub(crate) const ONE_PARTY: &str = "warning: one party made this reference string and could forge aggregates: it is for \
     development. Let others contribute (`proofmill aggregate contribute`) before anything depends on it";

/// Facts about a reference string, for the summary.
struct Facts {
    curve: Curve,
    capacity: usize,
    /// Digests of the contributions, hexadecimal.
    contributions: Vec<String>,
    digest: String,
    stage_times: StageTimes,
}

pub(super) fn setup(args: &AggregateSetup) -> Result<(), Failure> {
    args.output
        .check("the reference string", FilePlan::default())?;
    let capacity = (args.capacity as usize).next_power_of_two().max(2);
    let path = &args.output.output;
    let facts = args.threads.run(|| {
        with_curve!(Curve::from(args.curve), E => {
            let mut stages = Stages::begin("setup", 2);
            stages.enter("draw secrets and multiply by their powers");
            let srs = Srs::<E>::setup(capacity, &mut OsRng)?;
            save(path, &srs, stages)
        })
    })??;
    let rounded = match args.capacity as usize {
        asked if asked == capacity => String::new(),
        asked => format!(" (a power of two; {asked} were asked for)"),
    };
    console_line(output::plain(&format!(
        "{}: a reference string over {} for up to {capacity} proofs{rounded}, in {}",
        path.display(),
        facts.curve,
        short(facts.stage_times.total)
    )));
    console_line(ONE_PARTY);
    if args.json {
        output::line(facts.to_json().to_string())?;
    }
    Ok(())
}

pub(super) fn contribute(args: &Contribute) -> Result<(), Failure> {
    let reads = FilePlan::default().reads("the string that is extended", &args.srs);
    args.output.check("the reference string", reads)?;
    let curve = curve_of_file(FileKind::ReferenceString, &args.srs)?;
    let path = &args.output.output;
    let facts = args.threads.run(|| {
        with_curve!(curve, E => {
            let mut stages = Stages::begin("contribute", 3);
            stages.enter("read and check the string");
            let mut srs = load_srs::<E>(&args.srs)?;
            if srs.contributions().len() >= MAX_CONTRIBUTIONS {
                return Err(Failure::new(format!(
                    "{}: {MAX_CONTRIBUTIONS} contributions already, the most that a string has",
                    args.srs.display()
                )));
            }
            stages.enter("draw secrets and multiply by their powers");
            srs.contribute(&mut OsRng);
            save(path, &srs, stages)
        })
    })??;
    console_line(output::plain(&format!(
        "{}: {} with contribution {}, in {}",
        path.display(),
        args.srs.display(),
        facts.contributions.len(),
        short(facts.stage_times.total)
    )));
    let digest = facts.contributions.last().map_or("", String::as_str);
    console_line(format!(
        "  digest of this contribution, to publish: {digest}"
    ));
    if args.json {
        let mut answer = facts.to_json();
        answer["contribution"] = json!(digest);
        output::line(answer.to_string())?;
    }
    Ok(())
}

pub(super) fn check(args: &CheckString) -> Result<(), Failure> {
    let curve = curve_of_file(FileKind::ReferenceString, &args.srs)?;
    let facts = args.threads.run(|| {
        with_curve!(curve, E => {
            let mut stages = Stages::begin("check", 1);
            stages.enter("read and check the string");
            let srs = load_srs::<E>(&args.srs)?;
            Ok::<_, Failure>(Facts::of(&srs, stages.end()))
        })
    })??;
    if args.json {
        return output::line(facts.to_json().to_string());
    }
    let mut lines = vec![
        format!("curve          {}", facts.curve),
        format!("capacity       {}", counted(facts.capacity, "proof")),
    ];
    for (number, digest) in (1..).zip(&facts.contributions) {
        lines.push(format!("contribution   {number}: {digest}"));
    }
    lines.push(format!("digest         {}", facts.digest));
    output::line(lines.join("\n"))?;
    if facts.contributions.len() == 1 {
        console_line(ONE_PARTY);
    }
    output::line(output::plain(&format!(
        "{} is consistent: its powers are those of two secrets, and its contributions lead to \
         them ({})",
        args.srs.display(),
        short(facts.stage_times.total)
    )))
}

fn save<E: AggregationCurve>(
    path: &Path,
    srs: &Srs<E>,
    mut stages: Stages,
) -> Result<Facts, Failure> {
    stages.enter("write");
    write(path, Visibility::Public, &srs.to_bytes())?;
    Ok(Facts::of(srs, stages.end()))
}

// === impl Facts ===

impl Facts {
    fn of<E: AggregationCurve>(srs: &Srs<E>, stage_times: StageTimes) -> Self {
        let contributions = srs.contributions().iter();
        Self {
            curve: E::CURVE,
            capacity: srs.capacity(),
            contributions: contributions.map(|it| hex::encode(it.digest())).collect(),
            digest: hex::encode(srs.digest()),
            stage_times,
        }
    }

    fn to_json(&self) -> serde_json::Value {
        json!({
            "curve": self.curve.name(),
            "capacity": self.capacity,
            "contributions": self.contributions,
            "digest": self.digest,
            "stages": self.stage_times.to_json(),
            "total_ms": milliseconds(self.stage_times.total),
        })
    }
}
