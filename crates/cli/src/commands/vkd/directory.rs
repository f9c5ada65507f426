//! `proofmill vkd init`, and the directory of the other commands.

use std::path::Path;

use proofmill_directory::KEY_BYTES_MAX;
use proofmill_directory::store::{DirectoryWriter, KeyDirectory, StoreError};
use proofmill_telemetry::console_line;
use serde_json::json;

use crate::args::vkd::Init;
use crate::failure::Failure;
use crate::output;

pub(super) fn init(args: &Init) -> Result<(), Failure> {
    let writer = DirectoryWriter::create_with_depth(&args.directory, args.depth.depth)?;
    let root = writer.directory().root();
    console_line(output::plain(&format!(
        "{}: an empty directory, root {root}",
        args.directory.display()
    )));
    if args.json {
        output::line(json!({ "epoch": 0, "root": root }).to_string())?;
    }
    Ok(())
}

/// Reads a directory.
pub(super) fn open(path: &Path) -> Result<KeyDirectory, Failure> {
    KeyDirectory::load(path).map_err(|error| unopened(path, &error))
}

/// Opens a directory to change it.
pub(super) fn open_for_change(path: &Path) -> Result<DirectoryWriter, Failure> {
    DirectoryWriter::open(path).map_err(|error| unopened(path, &error))
}

fn unopened(path: &Path, error: &StoreError) -> Failure {
    let failure = Failure::of(error);
    match path.join("snapshot").try_exists() {
        Ok(false) => failure.help("`proofmill vkd init` makes a directory"),
        _ => failure,
    }
}

/// A key from the command line.
pub(super) fn key_of(text: &str, is_hex: bool) -> Result<Vec<u8>, Failure> {
    let key = match is_hex {
        true => hex::decode(text)
            .map_err(|error| Failure::usage(format!("key {text:?}: {error}, with --key-hex")))?,
        false => text.as_bytes().to_vec(),
    };
    match key.len() {
        found if found > KEY_BYTES_MAX => Err(Failure::usage(format!(
            "a key of {found} bytes: it has {KEY_BYTES_MAX} at most"
        ))),
        _ => Ok(key),
    }
}
