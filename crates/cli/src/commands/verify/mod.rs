//! `proofmill verify`

pub(super) mod find;
pub(super) mod pairs;
mod paths;
mod printer;
mod read;
mod statement;
mod tally;

use crate::args::verify::Verify;
use crate::failure::Failure;

pub(crate) async fn run(args: &Verify) -> Result<(), Failure> {
    match &args.vk {
        Some(vk) => pairs::run(args, vk),
        None => paths::run(args).await,
    }
}
