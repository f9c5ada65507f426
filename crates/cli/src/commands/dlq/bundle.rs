//! `proofmill dlq bundle`

use std::path::PathBuf;

use proofmill_api::BundleQuery;
use proofmill_files::Visibility;
use proofmill_orchestrator::bundle::Bundle;

use crate::access::MillAccess;
use crate::args::dlq::DlqBundle;
use crate::failure::Failure;
use crate::files::{self, FilePlan, OverwritePolicy};
use crate::output;
use crate::progress::counted;

pub(super) async fn run(args: DlqBundle) -> Result<(), Failure> {
    let query = BundleQuery {
        task: args.task,
        with_programs: args.with_program,
    };
    let path = args
        .output
        .unwrap_or_else(|| PathBuf::from(query.file_name()));
    let policy = match args.force {
        true => OverwritePolicy::Anything,
        false => OverwritePolicy::Nothing,
    };
    FilePlan::default()
        .writes("the bundle", &path)
        .check(policy)?;
    let access = MillAccess::open_for_reading(&args.mill).await?;
    let file = access.bundle(&query).await;
    access.close().await?;
    let file = file?;
    // What came from another process is checked before it is kept.
    let bundle = Bundle::decode(&file)
        .map_err(|error| Failure::new(format!("the mill sent no proper bundle: {error}")))?;
    files::write(&path, Visibility::Private, &file)?;
    let (letters, bytes) = (bundle.letters().len(), file.len());
    if args.mill.json {
        let answer = serde_json::json!({ "file": path, "letters": letters, "bytes": bytes });
        return output::line(answer.to_string());
    }
    let letters = counted(letters, "dead letter");
    let shown = path.display();
    output::line(output::plain(&format!(
        "{shown}: {letters}, {bytes} bytes; proofmill dlq replay {shown} runs them again"
    )))
}
