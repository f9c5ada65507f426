//! `proofmill cancel`

use proofmill_api::Cancellation;

use crate::access::MillAccess;
use crate::args::Cancel;
use crate::failure::Failure;
use crate::output;

pub(crate) async fn run(args: Cancel) -> Result<(), Failure> {
    let cancellation = match (args.task, args.block) {
        (Some(task), _) => Cancellation::Task(task),
        (None, Some(block)) => Cancellation::Block(block),
        (None, None) => Cancellation::All,
    };
    let access = MillAccess::open_for_change(&args.mill).await?;
    let cancelled = access.cancel(&cancellation).await;
    access.close().await?;
    cancelled?;
    if args.mill.json {
        return output::line(serde_json::json!({ "cancelled": cancellation }).to_string());
    }
    let target = match cancellation {
        Cancellation::Task(task) => format!("task {task}"),
        Cancellation::Block(block) => format!("the live tasks of block {block}"),
        Cancellation::All => "all live tasks".to_owned(),
    };
    output::line(format!(
        "{target}: stopped, and in the dead-letter queue; see `proofmill dlq`"
    ))
}
