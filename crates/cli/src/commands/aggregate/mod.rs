//! `proofmill aggregate`

mod key;
mod prove;
mod read;
mod string;
mod verify;

pub(crate) use string::ONE_PARTY;
pub(crate) use verify::{Answer, answer_for};

use crate::args::aggregate::Aggregate;
use crate::failure::Failure;

pub(crate) fn run(command: Aggregate) -> Result<(), Failure> {
    match command {
        Aggregate::Setup(args) => string::setup(&args),
        Aggregate::Contribute(args) => string::contribute(&args),
        Aggregate::Check(args) => string::check(&args),
        Aggregate::Key(args) => key::run(&args),
        Aggregate::Prove(args) => prove::run(&args),
        Aggregate::Verify(args) => verify::run(&args),
    }
}
