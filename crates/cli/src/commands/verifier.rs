//! `proofmill verifier`

use std::path::Path;

use proofmill_api::PortError;
use proofmill_api::verifier::{
    PipePair, Server, ServerOptions, VERIFIER_SOCKET, VerifierServeError,
};
use proofmill_files::make_private_directory;
use proofmill_ipa::Srs;
use proofmill_verifier::{Kinds, Options, Service};

use crate::args::verifier::{Serve, Verifier};
use crate::failure::Failure;
use crate::progress::Screen;
use crate::{output, signals};

/// File in the state directory with the points for rollup proofs.
pub(super) const SRS_FILE: &str = "grumpkin-srs";

pub(crate) async fn run(command: Verifier) -> Result<(), Failure> {
    match command {
        Verifier::Serve(args) => serve(args).await,
    }
}

async fn serve(args: Serve) -> Result<(), Failure> {
    let screen = Screen::open();
    let state = args.state.clone();
    make_private_directory(&state).map_err(|error| {
        Failure::new(format!(
            "cannot make the state directory {}: {error}",
            state.display()
        ))
        .help("name another with --state")
    })?;
    let kinds = tokio::task::spawn_blocking(move || kinds(&state)).await;
    let kinds = kinds.map_err(|error| Failure::new(error.to_string()))??;
    let mut options = Options::of(kinds);
    options.threads = args.threads.threads.unwrap_or(0).into();
    options.limits.batch = args.batch.into();
    options.limits.requests = args.source_requests as usize;
    let (service, handle) = Service::open(options).map_err(|error| Failure::of(&error))?;
    let socket = args
        .socket
        .unwrap_or_else(|| args.state.join(VERIFIER_SOCKET));
    let mut listening = vec![format!("unix:{}", socket.display())];
    let pipes = args.pipes.as_deref().map(PipePair::in_folder);
    if let (Some(folder), Some(pair)) = (&args.pipes, &pipes) {
        make_private_directory(folder)
            .map_err(|error| Failure::new(format!("--pipes {}: {error}", folder.display())))?;
        listening.push(pair.requests.display().to_string());
    }
    let server_options = ServerOptions {
        socket: Some(socket),
        pipes,
        tcp: args.listen.options(args.tokens.as_ref()),
        http: args.http,
        console: args.console,
    };
    let server = Server::bind(handle.clone(), server_options).await;
    let server = server.map_err(bind_failure)?;
    listening.extend(server.tcp_url());
    listening.extend(server.http_address().map(|it| format!("http://{it}")));
    if let Some(address) = server.console_address() {
        screen.note(&format!("console on http://{address}/"));
    }
    let shutdown = signals::listen(screen.clone(), args.drain)?;
    screen.note(&output::plain(&format!(
        "the verifier takes {} on {}",
        handle.kinds().join(", "),
        listening.join(", ")
    )));
    let served = server.run(service, shutdown).await;
    served.map_err(|error| Failure::of(&error))
}

fn bind_failure(error: VerifierServeError) -> Failure {
    let failure = Failure::of(&error);
    match error {
        VerifierServeError::Port(PortError::Exposed(_)) => {
            failure.help("give --tls-certificate, --tls-key and --tokens, or listen on 127.0.0.1")
        }
        _ => failure,
    }
}

/// All kinds of proofs, with the points for rollup proofs loaded from [`SRS_FILE`], or derived and kept there.
fn kinds(state: &Path) -> Result<Kinds, Failure> {
    let path = state.join(SRS_FILE);
    let srs = Srs::load_or_derive(&path).map_err(|error| {
        Failure::of(&error).help("remove that file: the next start derives the points again")
    })?;
    Ok(Kinds::all(Some(&srs)))
}
