//! `proofmill console`

use std::path::Path;

use proofmill_api::Operations;
use proofmill_orchestrator::cluster;
use proofmill_orchestrator::remote::Role;

use crate::args::console::Console;
use crate::commands::cluster::{load, process_name};
use crate::commands::run::bind;
use crate::failure::Failure;
use crate::progress::Screen;
use crate::{bus, engines, memory, provers, signals};

pub(crate) async fn run(args: Console) -> Result<(), Failure> {
    let workflow = load(&args.file)?;
    let name = process_name(args.name.as_deref());
    let signalled = signals::first_signal()?;
    let listener = bind("the console", args.listen).await?;
    let address = listener.local_addr()?;
    let serving = async {
        let connection = bus::connect(&args.bus, Role::Console, &name).await?;
        let registry = provers::registry(Path::new(""));
        let console = cluster::Console::open(connection, &workflow, &registry, &name).await?;
        let ports = console.ports();
        let operations = Operations::new(ports.operator(), ports.source(), console.blobs().clone())
            .with_engines(engines::of_arguments(&args.engines, &workflow));
        let screen = Screen::open();
        screen.note(&format!("console on http://{address}/"));
        memory::start_releasing_pages();
        let served = console.run(proofmill_api::console::serve_read_only(
            listener, operations,
        ));
        Ok::<(), Failure>(served.await?)
    };
    tokio::select! {
        served = serving => served,
        () = signalled => Ok(()),
    }
}
