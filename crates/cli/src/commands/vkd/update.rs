//! `proofmill vkd update`

use std::io::BufReader;
use std::path::Path;

use proofmill_directory::{KeyUpdate, UpdatesError};
use proofmill_files::open_regular_or_inherited;
use proofmill_telemetry::console_line;
use serde_json::json;

use super::directory::open_for_change;
use crate::args::vkd::Update;
use crate::failure::Failure;
use crate::output;

pub(super) fn run(args: &Update) -> Result<(), Failure> {
    let updates = read(&args.file)?;
    let mut writer = open_for_change(&args.directory)?;
    let epoch = writer.append(updates)?;
    let replaced = epoch.updates - epoch.inserted;
    console_line(output::plain(&format!(
        "{}: epoch {}, root {}; {} inserted, {replaced} replaced",
        args.directory.display(),
        epoch.number,
        epoch.root_after,
        epoch.inserted,
    )));
    if args.json {
        let answer = json!({
            "epoch": epoch.number,
            "root_before": epoch.root_before,
            "root": epoch.root_after,
            "inserted": epoch.inserted,
            "replaced": replaced,
        });
        output::line(answer.to_string())?;
    }
    Ok(())
}

fn read(path: &Path) -> Result<Vec<KeyUpdate>, Failure> {
    let (name, updates) = match path == Path::new("-") {
        true => (
            "standard input".to_owned(),
            KeyUpdate::read_lines(std::io::stdin().lock()),
        ),
        false => {
            let file = open_regular_or_inherited(path).map_err(UpdatesError::from);
            let updates = file.and_then(|file| KeyUpdate::read_lines(BufReader::new(file)));
            (path.display().to_string(), updates)
        }
    };
    updates.map_err(|error| {
        let failure = Failure::new(format!("{name}: {error}"));
        match error {
            UpdatesError::Line { .. } => failure.help(
                "an update is a line such as {\"key\": \"alice\", \"value\": \"1\"}; nothing was changed",
            ),
            _ => failure,
        }
    })
}
