//! `proofmill partition`

mod info;
mod prove;
pub(super) mod proving;
pub(super) mod setup;
mod verify;
mod workflow;

use crate::args::partition::Partition;
use crate::failure::Failure;

pub(crate) async fn run(command: Partition) -> Result<(), Failure> {
    match command {
        Partition::Setup(args) => setup::run(&args),
        Partition::Prove(args) => prove::run(&args).await,
        Partition::Verify(args) => verify::run(&args),
        Partition::Info(args) => info::run(&args),
    }
}
