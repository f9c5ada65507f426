//! `proofmill pause`, `proofmill resume` and `proofmill run-now`

use proofmill_api::Action;

use crate::access::MillAccess;
use crate::args::MillArgs;
use crate::args::pause::{Pause, RunNow};
use crate::failure::Failure;
use crate::output;

pub(crate) async fn pause(args: Pause) -> Result<(), Failure> {
    let (kind, name) = (args.kind.into(), args.name);
    act(&args.mill, Action::Pause { kind, name }).await
}

pub(crate) async fn resume(args: Pause) -> Result<(), Failure> {
    let (kind, name) = (args.kind.into(), args.name);
    act(&args.mill, Action::Resume { kind, name }).await
}

pub(crate) async fn run_now(args: RunNow) -> Result<(), Failure> {
    act(&args.mill, Action::RunNow { task: args.task }).await
}

/// Has the mill carry out an action, and prints the result.
async fn act(mill: &MillArgs, action: Action) -> Result<(), Failure> {
    let access = MillAccess::open_for_change(mill).await?;
    let result = access.act(&action).await;
    access.close().await?;
    let result = result?;
    if mill.json {
        return output::line(serde_json::json!({ "done": result.done }).to_string());
    }
    output::line(result.done)
}
