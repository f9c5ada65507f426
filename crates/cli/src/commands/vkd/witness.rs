//! `proofmill vkd witness`

use proofmill_files::Visibility;
use proofmill_telemetry::console_line;
use serde_json::json;
use zeroize::Zeroizing;

use crate::args::vkd::Witness;
use crate::failure::Failure;
use crate::files::{FilePlan, OverwritePolicy, write};
use crate::output;
use crate::progress::counted;

pub(super) fn run(args: &Witness) -> Result<(), Failure> {
    FilePlan::default()
        .writes("the witness", &args.output)
        .check(OverwritePolicy::NothingHardToRecreate)?;
    let (directory, epoch, _) = args.epoch.open()?;
    let batch = epoch.batch(&directory, args.batch)?;
    let bytes = Zeroizing::new(batch.to_witness());
    write(&args.output, Visibility::Private, &bytes)?;
    let shown = args.output.display();
    let updates = counted(batch.len(), "update");
    console_line(output::plain(&format!(
        "{shown}: the witness of batch {} of {} of epoch {}, {updates}; it is secret",
        args.batch,
        epoch.count(),
        epoch.number,
    )));
    if args.json {
        let answer = json!({
            "epoch": epoch.number,
            "batch": args.batch,
            "batches": epoch.count(),
            "updates": batch.len(),
            "root_before": batch.root_before(),
            "root_after": batch.root_after(),
            "bytes": bytes.len(),
        });
        output::line(answer.to_string())?;
    }
    Ok(())
}
