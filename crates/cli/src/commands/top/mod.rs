//! `proofmill top`

mod frame;
mod rates;

use std::time::Duration;

use proofmill_api::MillView;

use self::rates::{Rates, RatesShown};
use crate::access::MillAccess;
use crate::args::top::Top;
use crate::failure::Failure;
use crate::output;
use crate::watch::{OnLoss, printed_size, prints_once, watch};

/// The data of a frame.
struct Look {
    view: MillView,
    is_running: bool,
    rates: RatesShown,
}

pub(crate) async fn run(args: Top) -> Result<(), Failure> {
    let access = MillAccess::open_for_reading(&args.mill).await?;
    let shown = show(&access, &args).await;
    access.close().await?;
    shown
}

async fn show(access: &MillAccess, args: &Top) -> Result<(), Failure> {
    let is_running = access.is_running();
    let mut rates = Rates::default();
    let mut ask = async || {
        let view = access.view().await?;
        Ok::<Look, Failure>(Look {
            rates: rates.note(&view),
            view,
            is_running,
        })
    };
    let first = ask().await?;
    if args.mill.json {
        let mut view = serde_json::to_value(&first.view)?;
        view["running"] = is_running.into();
        return output::line(view.to_string());
    }
    // A stopped mill does not change.
    if prints_once(args.once) || !is_running {
        let (columns, rows) = printed_size();
        return output::line(frame::text(&first, columns, rows));
    }
    let every = Duration::from_millis(args.every);
    watch(
        first,
        every,
        OnLoss::AskAgain,
        ask,
        |shown, area, buffer| {
            frame::draw(shown.now, Some(shown.keys), shown.lost, area, buffer);
        },
    )
    .await
}
