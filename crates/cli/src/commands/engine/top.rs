//! `proofmill engine top`

use std::time::Duration;

use super::{connect, frame, refused};
use crate::args::engine::Top;
use crate::failure::Failure;
use crate::output;
use crate::watch::{OnLoss, printed_size, prints_once, watch};

pub(crate) async fn run(args: &Top) -> Result<(), Failure> {
    let client = connect(&args.query.engine).await?;
    let ask = async || client.status().await.map_err(|error| refused(&error));
    let first = ask().await?;
    if args.query.json {
        return output::line(serde_json::to_string(&first)?);
    }
    if prints_once(args.once) {
        let (columns, rows) = printed_size();
        return output::line(frame::text(&first, columns, rows));
    }
    let every = Duration::from_millis(args.every);
    watch(first, every, OnLoss::End, ask, |shown, area, buffer| {
        frame::draw(shown.now, shown.before, Some(shown.keys), area, buffer);
    })
    .await
}
