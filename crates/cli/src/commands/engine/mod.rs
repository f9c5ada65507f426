//! `proofmill engine`

mod change;
mod failure;
mod frame;
mod inspect;
mod job;
mod proof;
pub(crate) mod prove;
mod serve;
mod timeline;
mod top;

pub(super) use change::absolute;

use proofmill_api::engine::{Address, Client, ClientError, Credentials};

use crate::args::engine::{Engine, EngineArg};
use crate::failure::Failure;

pub(crate) async fn run(command: Engine) -> Result<(), Failure> {
    match command {
        Engine::Serve(args) => serve::run(*args).await,
        Engine::Status(args) => inspect::status(&args).await,
        Engine::Circuits(args) => inspect::circuits(&args).await,
        Engine::Jobs(args) => inspect::jobs(&args).await,
        Engine::Job(args) => job::show(&args).await,
        Engine::Wait(args) => job::wait(&args).await,
        Engine::Get(args) => job::get(&args).await,
        Engine::Register(args) => change::register(args).await,
        Engine::Unregister(args) => change::unregister(&args).await,
        Engine::Preload(args) => change::preload(&args).await,
        Engine::Evict(args) => change::evict(&args).await,
        Engine::Pin(args) => change::pin(&args, true).await,
        Engine::Unpin(args) => change::pin(&args, false).await,
        Engine::Prove(args) => prove::run(&args).await,
        Engine::Cancel(args) => change::cancel(&args).await,
        Engine::Top(args) => top::run(&args).await,
        Engine::Timeline(args) => timeline::run(&args).await,
    }
}

/// Connects to the engine that the arguments name.
pub(super) async fn connect(args: &EngineArg) -> Result<Client, Failure> {
    let credentials = Credentials {
        authority: args.credentials.ca.clone(),
        token: args.credentials.token.clone(),
    };
    let connected = Client::connect(&args.engine, &credentials).await;
    connected.map_err(|error| refused(&error))
}

/// The failure for an error of a request to an engine, with advice.
pub(crate) fn refused(error: &ClientError) -> Failure {
    let failure = Failure::of(error);
    match error {
        ClientError::Unreachable {
            address: Address::Socket(_),
            ..
        } => failure.help("start one with `proofmill engine serve`, or name another with --engine"),
        ClientError::Refused {
            retry_after: Some(wait),
            ..
        } => failure.help(format!("try again in {} ms", wait.as_millis())),
        _ => failure,
    }
}

/// A number of bytes for people: `3.2 GiB`.
pub(crate) fn bytes(count: u64) -> String {
    let units = ["B", "KiB", "MiB", "GiB", "TiB"];
    let mut value = count as f64;
    let mut unit = 0;
    while value >= 1024.0 && unit + 1 < units.len() {
        value /= 1024.0;
        unit += 1;
    }
    match unit {
        0 => format!("{count} B"),
        _ => format!("{value:.1} {}", units[unit]),
    }
}

#[cfg(test)]
mod tests {
    #[test]
    fn sizes_have_units() {
        let shown = [0, 1023, 1024, 3 << 29, u64::MAX].map(super::bytes);
        assert_eq!(
            shown,
            ["0 B", "1023 B", "1.0 KiB", "1.5 GiB", "16777216.0 TiB"]
        );
    }
}
