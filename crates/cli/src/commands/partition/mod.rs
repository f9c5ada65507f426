//! `proofmill partition`

mod info;
mod prove;
pub(super) mod proving;
mod publish;
mod register;
mod setup;
mod verify;
mod workflow;

pub(crate) use prove::{check_files, prove_in};
pub(crate) use setup::{NewCircuit, make_and_report};
pub(crate) use verify::ProofFiles;

use crate::args::partition::Partition;
use crate::failure::Failure;

pub(crate) async fn run(command: Partition) -> Result<(), Failure> {
    match command {
        Partition::Setup(args) => setup::run(&args),
        Partition::Prove(args) => prove::run(&args).await,
        Partition::Verify(args) => verify::run(&args),
        Partition::Info(args) => info::run(&args),
        Partition::Publish(args) => publish::run(&args).await,
        Partition::Register(args) => register::run(&args).await,
    }
}
