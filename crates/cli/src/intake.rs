//! Opening the HTTP and gRPC endpoint through which messages are submitted to a mill.

use proofmill_api::PortError;
use proofmill_api::intake::{Intake, OptionsError};

use crate::args::intake::IntakeArgs;
use crate::failure::Failure;
use crate::progress::Screen;

/// Opens the endpoint if the arguments ask for one, and prints its address. `None` if they do not.
pub(crate) async fn open(args: &IntakeArgs, screen: &Screen) -> Result<Option<Intake>, Failure> {
    let Some(options) = args.options() else {
        return Ok(None);
    };
    let intake = Intake::open(&options).await.map_err(|error| {
        let is_exposed = matches!(error, OptionsError::Port(PortError::Exposed(_)));
        let failure = Failure::from(error);
        if is_exposed {
            failure
                .help("give --submit-cert, --submit-key and --submit-token, or listen on 127.0.0.1")
        } else {
            failure
        }
    })?;
    screen.note(&format!(
        "messages on {}/v1/queues/NAME/messages",
        intake.url()
    ));
    Ok(Some(intake))
}
