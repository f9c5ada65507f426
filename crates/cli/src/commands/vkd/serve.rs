//! `proofmill vkd serve`

use proofmill_api::PortError;
use proofmill_api::directory::{DirectoryServeError, DirectoryServer};

use super::directory::open;
use crate::args::vkd::Serve;
use crate::failure::Failure;
use crate::progress::Screen;
use crate::{output, signals};

pub(super) async fn run(args: &Serve) -> Result<(), Failure> {
    let directory = open(&args.directory)?;
    let epoch = directory.epoch();
    let server = DirectoryServer::bind(directory, &args.tcp()).await;
    let server = server.map_err(bind_failure)?;
    let stop = signals::first_signal()?;
    Screen::open().note(&output::plain(&format!(
        "the directory {}, at epoch {epoch}, is served on {}",
        args.directory.display(),
        server.url()
    )));
    server.serve(stop).await;
    Ok(())
}

fn bind_failure(error: DirectoryServeError) -> Failure {
    let failure = Failure::of(&error);
    match error {
        DirectoryServeError::Port(PortError::Exposed(_)) => {
            failure.help("give --tls-certificate, --tls-key and --tokens, or listen on 127.0.0.1")
        }
        _ => failure,
    }
}
