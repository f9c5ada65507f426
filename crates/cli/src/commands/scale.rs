//! `proofmill scale`

use proofmill_api::PortError;
use proofmill_api::scaler::{ScaledMill, Scaler, ScalerOptions};

use crate::access::MillAccess;
use crate::args::MillArgs;
use crate::args::scale::Scale;
use crate::commands::inspect::print_table;
use crate::failure::Failure;
use crate::progress::Screen;
use crate::{output, signals};

pub(crate) async fn run(args: Scale) -> Result<(), Failure> {
    match args.options() {
        Some(options) => serve(&args.mill, &options).await,
        None if args.dry_run => print(&args.mill).await,
        None => Err(Failure::usage("proofmill starts and stops no machines").help(
            "--dry-run prints how many workers are wanted; --serve ADDRESS tells KEDA, which starts them; a script can \
             read --dry-run --json",
        )),
    }
}

/// Prints one line for each pool.
async fn print(args: &MillArgs) -> Result<(), Failure> {
    let access = MillAccess::open_for_reading(args).await?;
    let status = access.status().await;
    access.close().await?;
    let pools = status?["scaling"].take();
    if args.json {
        return output::line(pools.to_string());
    }
    let text = |value: &serde_json::Value| match value.as_str() {
        Some(text) => text.to_owned(),
        None => value.to_string(),
    };
    let pools = pools.as_array().cloned().unwrap_or_default();
    let rows = pools.iter().map(|pool| {
        ["pool", "group", "present", "wanted", "why"].map(|column| text(&pool[column]))
    });
    print_table(["POOL", "GROUP", "PRESENT", "WANTED", "WHY"], rows)
}

/// Answers KEDA until a signal.
async fn serve(args: &MillArgs, options: &ScalerOptions) -> Result<(), Failure> {
    let client = match MillAccess::open_for_service(args).await? {
        // The client connects for each request, so that it reaches the mill after a restart too.
        MillAccess::Running(client) => client,
        stopped @ MillAccess::Stopped(..) => {
            stopped.close().await?;
            return Err(
                Failure::new("the mill is stopped: there is nothing to scale")
                    .help("start it with `proofmill run`, then this command"),
            );
        }
    };
    let scaler = Scaler::open(options).await.map_err(|error| {
        let is_exposed = matches!(error, PortError::Uncertified(_));
        let failure = Failure::of(&error);
        match is_exposed {
            true => failure
                .help("give --tls-certificate, --tls-key and --client-ca, or listen on 127.0.0.1"),
            false => failure,
        }
    })?;
    let stop = signals::first_signal()?;
    Screen::open().note(&output::plain(&format!(
        "external scaler for KEDA on {}",
        scaler.url()
    )));
    scaler.serve(ScaledMill::Elsewhere(client), stop).await;
    Ok(())
}
