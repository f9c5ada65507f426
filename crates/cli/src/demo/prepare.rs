//! The demo's headers, and its state directory.

use std::io::Read;
use std::path::{Path, PathBuf};

use proofmill_api::Client;
use proofmill_bitcoin::{Header, MAX_HEADERS, mainnet_headers, parse_headers};
use proofmill_bus::{EmbeddedLog, OpenError};
use proofmill_files::{Visibility, open_regular_or_inherited};
use serde::{Deserialize, Serialize};

use super::range::{RANGE, is_range};
use super::{ENGINE, PROOFS, WORKFLOW};
use crate::args::Demo;
use crate::failure::Failure;
use crate::{files, state};

/// File in the state directory that records the demo's settings, a [`DemoSettings`].
const SETTINGS_FILE: &str = "demo.json";

/// Largest header file, in bytes: 160 hexadecimal digits and two characters of white space for each header.
const FILE_BYTES_MAX: u64 = MAX_HEADERS as u64 * 162;

/// Settings that a state directory was made with; a run with others cannot continue it.
#[derive(Debug, PartialEq, Eq, Serialize, Deserialize)]
struct DemoSettings {
    chunk: u32,
    start: u64,
}

/// Consecutive headers and their position in their chain.
pub(super) struct Chain {
    pub(super) headers: Vec<Header>,
    /// Height of the first.
    pub(super) start: u64,
    /// Description for people.
    pub(super) what: String,
    /// A name unique to these headers; other headers have another.
    pub(super) name: String,
}

// === impl Chain ===

impl Chain {
    /// The headers that the command line names.
    pub(super) fn read(args: &Demo) -> Result<Self, Failure> {
        let headers = match &args.headers {
            Some(file) => read_file(file)?,
            None => mainnet_headers(),
        };
        let start = args.start.unwrap_or_else(|| known_height(&headers));
        let last = start + headers.len() as u64 - 1;
        let what = match &args.headers {
            Some(file) => format!("headers {start} to {last}, of {}", file.display()),
            None => "the first 32 headers of Bitcoin's main chain".to_owned(),
        };
        Ok(Self {
            name: name(&headers),
            headers,
            start,
            what,
        })
    }

    /// Writes the headers into the state directory, because a header file may be a pipe or may change during the run.
    /// Returns the name of the written file.
    pub(super) fn keep(&self, state: &Path) -> Result<String, Failure> {
        let file = format!("{}.bin", self.name);
        let mut bytes = Vec::with_capacity(self.headers.len() * 80);
        self.headers
            .iter()
            .for_each(|header| bytes.extend_from_slice(header.as_bytes()));
        files::write(&state.join(&file), Visibility::Private, &bytes)?;
        Ok(file)
    }
}

fn name(headers: &[Header]) -> String {
    use sha2::Digest as _;
    let mut digest = sha2::Sha256::new();
    headers
        .iter()
        .for_each(|header| digest.update(header.as_bytes()));
    format!("headers-{}", &hex::encode(digest.finalize())[..12])
}

/// The height of the first header, found from any header that is among the built-in ones; one match is enough, as
/// others may have been altered. 0 if none matches.
fn known_height(headers: &[Header]) -> u64 {
    let known = mainnet_headers();
    let found = headers.iter().enumerate().find_map(|(index, header)| {
        let height = known
            .iter()
            .position(|known| known.as_bytes() == header.as_bytes())?;
        height.checked_sub(index)
    });
    found.unwrap_or(0) as u64
}

fn read_file(file: &Path) -> Result<Vec<Header>, Failure> {
    let shown = file.display();
    let failed = |error: std::io::Error| Failure::new(format!("cannot read {shown}: {error}"));
    let mut bytes = Vec::new();
    let open = open_regular_or_inherited(file).map_err(failed)?;
    open.take(FILE_BYTES_MAX + 1)
        .read_to_end(&mut bytes)
        .map_err(failed)?;
    if bytes.len() as u64 > FILE_BYTES_MAX {
        return Err(Failure::new(format!(
            "{shown} is longer than {MAX_HEADERS} headers could be: it is no header file"
        )));
    }
    parse_headers(&bytes).map_err(|error| Failure::new(format!("{shown}: {error}")))
}

/// Makes the state directory, or checks that it was made with the same settings.
pub(super) async fn prepare_directory(args: &Demo, chain: &Chain) -> Result<(), Failure> {
    let path = args.state.join(SETTINGS_FILE);
    let shown = args.state.display();
    let settings = DemoSettings {
        chunk: args.chunk,
        start: chain.start,
    };
    if args.fresh && args.state.exists() {
        delete_demo(&args.state).await?;
    }
    state::claim(&args.state, WORKFLOW)?;
    match std::fs::read(&path) {
        Ok(bytes) => {
            let stored: DemoSettings = serde_json::from_slice(&bytes).map_err(|error| {
                Failure::new(format!("{}: {error}", path.display()))
                    .help("begin anew with --fresh, or name another --state")
            })?;
            if stored == settings {
                return Ok(());
            }
            Err(Failure::usage(format!(
                "{shown} holds a demo with chunks of {} from height {}, not chunks of {} from \
                 height {}",
                stored.chunk, stored.start, settings.chunk, settings.start
            ))
            .help("go on with the same --chunk, begin anew with --fresh, or name another --state"))
        }
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => {
            files::write(&path, Visibility::Private, &serde_json::to_vec(&settings)?)
        }
        Err(error) => Err(Failure::new(format!(
            "cannot read {}: {error}",
            path.display()
        ))),
    }
}

/// Deletes the demo's own files in a state directory, and nothing else.
async fn delete_demo(state: &Path) -> Result<(), Failure> {
    let shown = state.display();
    if !state.join(SETTINGS_FILE).exists() {
        return match std::fs::read_dir(state).map(|mut entries| entries.next().is_none()) {
            Ok(true) => Ok(()),
            _ => Err(Failure::usage(format!(
                "{shown} is no state directory of the demo: --fresh does not delete it"
            ))),
        };
    }
    state::claim(state, WORKFLOW)?;
    let in_use = || {
        Failure::new(format!(
            "{shown} is in use by a demo that runs: --fresh does not delete it"
        ))
        .help("stop it first, or name another --state")
    };
    if Client::connect(state).await?.is_some() {
        return Err(in_use());
    }
    let held = match EmbeddedLog::open(state.join("log"), proofmill_bus::Options::default()) {
        Err(OpenError::Locked(_)) => return Err(in_use()),
        // A log that cannot be opened does not prevent a fresh start.
        opened => opened.ok(),
    };
    remove(state).map_err(|error| Failure::new(format!("cannot empty {shown}: {error}")))?;
    if let Some(log) = held {
        // The log's files are deleted; an error of closing it does not matter.
        let _ = log.close().await;
    }
    Ok(())
}

fn remove(state: &Path) -> std::io::Result<()> {
    let ignore_absent = |result: std::io::Result<()>| match result {
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => Ok(()),
        result => result,
    };
    for file in [
        "workflow.json",
        "emissions.json",
        "accepted-emissions",
        proofmill_api::SOCKET_NAME,
    ] {
        ignore_absent(std::fs::remove_file(state.join(file)))?;
    }
    for folder in ["log", "blobs", "scratch", ENGINE] {
        ignore_absent(std::fs::remove_dir_all(state.join(folder)))?;
    }
    let proofs = state.join(PROOFS);
    for file in files_in(&proofs, is_emitted)?
        .into_iter()
        .chain(files_in(state, is_headers)?)
    {
        ignore_absent(std::fs::remove_file(file))?;
    }
    let range = state.join(RANGE);
    for file in files_in(&range, is_range)? {
        ignore_absent(std::fs::remove_file(file))?;
    }
    // A folder stays if it holds other files.
    for folder in [proofs, range] {
        let _ = std::fs::remove_dir(folder);
    }
    // Delete the settings file last: until then another --fresh can finish this deletion.
    ignore_absent(std::fs::remove_file(state.join(SETTINGS_FILE)))
}

fn files_in(directory: &Path, is_wanted: fn(&str) -> bool) -> std::io::Result<Vec<PathBuf>> {
    let entries = match std::fs::read_dir(directory) {
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => return Ok(Vec::new()),
        entries => entries?,
    };
    let mut files = Vec::new();
    for entry in entries {
        let entry = entry?;
        if entry.file_name().to_str().is_some_and(is_wanted) {
            files.push(entry.path());
        }
    }
    Ok(files)
}

/// Whether a file name is that of an emitted proof, `FIRST-LAST.json`, or of an unfinished one.
pub(super) fn is_emitted(name: &str) -> bool {
    let digits = |text: &str| text.len() == 10 && text.bytes().all(|byte| byte.is_ascii_digit());
    let span = name
        .strip_suffix(".json")
        .and_then(|stem| stem.split_once('-'));
    name.starts_with(".emit-") || span.is_some_and(|(first, last)| digits(first) && digits(last))
}

fn is_headers(name: &str) -> bool {
    name.starts_with("headers-") && name.ends_with(".bin") || is_unfinished(name)
}

/// Whether a file name is that of a file whose writing was interrupted.
pub(super) fn is_unfinished(name: &str) -> bool {
    [".new-", ".proofmill-"]
        .iter()
        .any(|prefix| name.starts_with(prefix))
}
