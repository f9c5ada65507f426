//! `proofmill vkd`

mod chain;
mod directory;
mod epoch;
mod info;
mod key;
mod lookup;
mod prove;
mod publish;
mod serve;
mod setup;
mod update;
mod witness;

use crate::args::vkd::{Verify, Vkd};
use crate::failure::Failure;

pub(crate) async fn run(command: Vkd) -> Result<(), Failure> {
    match command {
        Vkd::Init(args) => directory::init(&args),
        Vkd::Update(args) => update::run(&args),
        Vkd::Info(args) => info::run(&args),
        Vkd::Setup(args) => setup::run(&args),
        Vkd::Prove(args) => prove::run(&args).await,
        Vkd::Lookup(args) => lookup::run(&args),
        Vkd::Verify { command } => match command {
            Verify::Key(args) => key::run(&args),
            Verify::Chain(args) => chain::run(&args),
        },
        Vkd::Serve(args) => serve::run(&args).await,
        Vkd::Witness(args) => witness::run(&args),
        Vkd::Publish(args) => publish::run(&args),
    }
}
