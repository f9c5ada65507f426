//! Arguments of `proofmill demo --settle`.

use std::path::PathBuf;

use clap::Args;
use proofmill_workflow::HttpUrl;

/// An endpoint of a chain, and its text.
#[derive(Clone, Debug)]
pub(crate) struct Endpoint {
    pub(crate) url: HttpUrl,
    pub(crate) text: String,
}

fn endpoint(text: &str) -> Result<Endpoint, String> {
    let url = HttpUrl::try_new(text).map_err(|error| error.to_string())?;
    let text = text.to_owned();
    Ok(Endpoint { url, text })
}

/// Settlement of the demo's chunks on a development chain.
#[derive(Clone, Debug, Args)]
pub(crate) struct DemoSettle {
    /// Deploy a light client of Bitcoin on the Ethereum chain of this node, and settle every chunk there, in
    /// order. The node must hold an account with funds, as development nodes do (`geth --dev`, `anvil`).
    #[arg(
        long = "settle",
        value_name = "URL",
        help_heading = "Settlement",
        requires = "solc",
        value_parser = endpoint
    )]
    pub(crate) rpc: Option<Endpoint>,
    /// Solidity's compiler, 0.8.30 or newer: `solc`, or `solcjs` of npm's package `solc`.
    #[arg(
        long,
        value_name = "PROGRAM",
        help_heading = "Settlement",
        requires = "rpc"
    )]
    pub(crate) solc: Option<PathBuf>,
    /// Blocks of the Ethereum chain, its own included, after which a transaction counts.
    #[arg(long, value_name = "N", help_heading = "Settlement", default_value_t = 2,
          requires = "rpc", value_parser = clap::value_parser!(u64).range(1..=100))]
    pub(crate) confirmations: u64,
    /// Maximum number of chunks in one transaction.
    #[arg(long, value_name = "N", help_heading = "Settlement", default_value_t = 4,
          requires = "rpc", value_parser = clap::value_parser!(u32).range(1..=64))]
    pub(crate) settle_batch: u32,
    /// Time of the first header of the difficulty period before the first header [default: that of the genesis
    /// block; needed for headers that start above height 2016]
    #[arg(
        long,
        value_name = "SECONDS",
        help_heading = "Settlement",
        requires = "rpc"
    )]
    pub(crate) period_start: Option<u32>,
    /// Time of the header before the first, which is needed if the first header's height is a multiple of 2016.
    #[arg(
        long,
        value_name = "SECONDS",
        help_heading = "Settlement",
        requires = "rpc"
    )]
    pub(crate) anchor_time: Option<u32>,
}
