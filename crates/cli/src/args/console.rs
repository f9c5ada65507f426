//! Arguments of the console: of the programs that serve it beside their work, and `proofmill console`.

use std::net::SocketAddr;
use std::path::PathBuf;

use clap::Args;
use proofmill_api::engine::Address;
use proofmill_api::{ConnectionLimits, TcpOptions, TlsFiles};

use super::cluster::BusArgs;

/// Heading of these arguments in the help.
const CONSOLE_HELP: &str = "Console";
/// Heading of the arguments about engines.
const ENGINES_HELP: &str = "Engines";

/// The page that shows a mill, and on which operators act.
#[derive(Clone, Debug, Args)]
pub(crate) struct ConsoleArgs {
    /// Serve the console, a page that shows the chain, says why each block waits, and lets operators act, on this address
    /// [without an address: 127.0.0.1:9467]. An address that other machines can reach needs the certificate, the key and
    /// the tokens.
    #[arg(long, value_name = "ADDRESS", num_args = 0..=1, default_missing_value = "127.0.0.1:9467",
          value_parser = address, help_heading = CONSOLE_HELP)]
    pub(crate) console: Option<SocketAddr>,
    /// A file with the tokens that visitors log in with: NAME TOKEN viewer or NAME TOKEN operator on each line. Without
    /// it, on loopback, everybody may look, and an operator logs in with an address that is printed.
    #[arg(long, env = "PROOFMILL_CONSOLE_TOKENS", value_name = "FILE", help_heading = CONSOLE_HELP,
          requires = "console")]
    pub(crate) console_tokens: Option<PathBuf>,
    /// The certificate for that address (PEM), with its intermediate certificates; turns TLS on.
    #[arg(long, env = "PROOFMILL_CONSOLE_CERT", value_name = "FILE", help_heading = CONSOLE_HELP,
          requires_all = ["console", "console_key"])]
    pub(crate) console_cert: Option<PathBuf>,
    /// The key of that certificate (PEM).
    #[arg(long, env = "PROOFMILL_CONSOLE_KEY", value_name = "FILE", help_heading = CONSOLE_HELP,
          requires = "console_cert")]
    pub(crate) console_key: Option<PathBuf>,
}

const EXAMPLES: &str = "\
Examples:
  proofmill console workflow.toml --bus nats://127.0.0.1:4222
  proofmill console workflow.toml --engine https://prover:7400 --engine-token console.token
  ssh -L 9467:127.0.0.1:9467 HOST                # from another machine, beside it

A mill in one process serves its console itself: `proofmill run workflow.toml --console`. The user of the NATS server
that a console needs may ask and change nothing: deploy/nats/cluster.conf.";

/// `proofmill console`
#[derive(Debug, Args)]
#[command(after_help = EXAMPLES)]
pub(crate) struct Console {
    /// The workflow file: the same as that of the coordinator.
    pub(crate) file: PathBuf,
    #[command(flatten)]
    pub(crate) bus: BusArgs,
    /// The loopback address to serve the page on.
    #[arg(long, value_name = "ADDRESS", default_value = "127.0.0.1:9467", value_parser = loopback)]
    pub(crate) listen: SocketAddr,
    #[command(flatten)]
    pub(crate) engines: EngineArgs,
    /// Name of this process in logs [default: the machine's name].
    #[arg(long, env = "PROOFMILL_NAME", value_name = "NAME")]
    pub(crate) name: Option<String>,
}

/// The engines that the stages use, and the console's credentials at them.
#[derive(Clone, Debug, Args)]
pub(crate) struct EngineArgs {
    /// Show this engine, unix:PATH, http://HOST:PORT or https://HOST:PORT, instead of those that the workflow names. Give it
    /// several times for several engines.
    #[arg(long, value_name = "ADDRESS", help_heading = ENGINES_HELP)]
    pub(crate) engine: Vec<Address>,
    /// A file with the console's token at the engines, instead of the workflow's; it must not be readable by everybody.
    #[arg(long, env = "PROOFMILL_ENGINE_TOKEN", value_name = "FILE", help_heading = ENGINES_HELP)]
    pub(crate) engine_token: Option<PathBuf>,
    /// The authority of the engines' certificates (PEM), over https, instead of the workflow's.
    #[arg(long, env = "PROOFMILL_ENGINE_CA", value_name = "FILE", help_heading = ENGINES_HELP)]
    pub(crate) engine_ca: Option<PathBuf>,
}

fn address(text: &str) -> Result<SocketAddr, String> {
    text.parse().map_err(|_| {
        "expected an address and a port, such as 127.0.0.1:9467; a workflow file goes before this option".to_owned()
    })
}

/// An address that only this machine reaches, for a console without tokens.
pub(super) fn loopback(text: &str) -> Result<SocketAddr, String> {
    let address = address(text)?;
    match address.ip().is_loopback() {
        true => Ok(address),
        false => Err(
            "this console has no tokens: it is served on loopback only, such as 127.0.0.1:9467"
                .to_owned(),
        ),
    }
}

// === impl ConsoleArgs ===

impl ConsoleArgs {
    /// Options of the console; `None` without `--console`.
    pub(crate) fn options(&self) -> Option<TcpOptions> {
        let tls = self.console_cert.clone().zip(self.console_key.clone());
        Some(TcpOptions {
            address: self.console?,
            tls: tls.map(|(certificate, key)| TlsFiles { certificate, key }),
            tokens: self.console_tokens.clone(),
            connections: ConnectionLimits::default(),
        })
    }
}
