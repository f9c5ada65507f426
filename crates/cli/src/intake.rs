//! Messages over HTTP, beside whatever else a process does.

use proofmill_api::intake::Intake;

use crate::args::intake::IntakeArgs;
use crate::failure::Failure;
use crate::progress::Screen;

/// Listens for messages, if that is asked for, and says where.
pub(crate) async fn open(args: &IntakeArgs, screen: &Screen) -> Result<Option<Intake>, Failure> {
    let Some(options) = args.options() else {
        return Ok(None);
    };
    let intake = Intake::open(&options).await?;
    screen.note(&format!(
        "messages on {}/v1/queues/NAME/messages",
        intake.url()
    ));
    Ok(Some(intake))
}
