//! Making a bundle.

use std::collections::BTreeMap;
use std::collections::btree_map::Entry;
use std::fs::File;
use std::io::Read;
use std::path::{Path, PathBuf};

use bytes::Bytes;
use futures_util::future::BoxFuture;
use proofmill_bus::{BlobStore, Digest};
use proofmill_files::open_regular;
use proofmill_process::find_program;
use proofmill_workflow as file;
use sha2::{Digest as _, Sha256};

use super::container::{BUNDLE_BYTES_MAX, Bundle, LETTERS_MAX};
use super::error::BundleError;
use super::facts::{BundledFile, Facts, Stage, Work};
use crate::clock::wall_ms;
use crate::executor::{ResolveError, Resolved};
use crate::mill::program_path;
use crate::payload::Payload;
use crate::record::DeadRecord;

/// Room for all that is not an input or a file: facts, letters with their attempts, headers.
const OTHER_BYTES: u64 = 8 << 20;

/// Bytes read from a file at a time.
const PIECE_BYTES: usize = 1 << 20;

/// Choices for making a bundle.
#[derive(Clone, Copy, Debug, Default)]
pub struct BuildOptions {
    /// Whether the programs of the stages are put in.
    pub with_programs: bool,
}

/// Inputs and files of a bundle, by the SHA-256 of their content.
struct Contents {
    contents: BTreeMap<[u8; 32], Bytes>,
    bytes: u64,
}

/// Makes the bundle of these letters of a workflow.
///
/// # Errors
/// There is no letter, or too much for one bundle, or an input or a program that is wanted cannot be read.
pub async fn build(
    workflow: &file::Workflow,
    letters: Vec<DeadRecord>,
    blobs: &BlobStore,
    options: BuildOptions,
) -> Result<Bundle, BundleError> {
    check_limits(&letters)?;
    let mut contents = Contents {
        contents: BTreeMap::new(),
        bytes: 0,
    };
    let mut bundled = Vec::with_capacity(letters.len());
    let mut stages = BTreeMap::new();
    for mut letter in letters {
        let payload = contents.take_payload(&letter.task.payload, blobs).await;
        letter.task.payload = payload.map_err(|source| BundleError::Input {
            task: letter.task.id.to_string(),
            source: Box::new(source),
        })?;
        if let Entry::Vacant(entry) = stages.entry(letter.task.id.stage.to_string()) {
            let stage = stage_facts(workflow, entry.key(), options, &mut contents).await?;
            entry.insert(stage);
        }
        bundled.push(letter);
    }
    let facts = Facts {
        program_version: env!("CARGO_PKG_VERSION").to_owned(),
        os: std::env::consts::OS.to_owned(),
        arch: std::env::consts::ARCH.to_owned(),
        made_at_ms: wall_ms(),
        workflow: workflow.name.clone(),
        stages,
    };
    Ok(Bundle::new(facts, bundled, contents.contents))
}

/// Refuses letters whose inputs, as recorded, do not fit, before any is fetched.
fn check_limits(letters: &[DeadRecord]) -> Result<(), BundleError> {
    match letters.len() {
        0 => return Err(BundleError::Empty),
        count if count > LETTERS_MAX => {
            return Err(BundleError::TooManyLetters {
                letters: count,
                max: LETTERS_MAX,
            });
        }
        _ => {}
    }
    let sizes = letters.iter().map(|letter| letter.task.payload.len());
    check_size(sizes.fold(0, u64::saturating_add))
}

fn check_size(bytes: u64) -> Result<(), BundleError> {
    let max = BUNDLE_BYTES_MAX as u64 - OTHER_BYTES;
    if bytes > max {
        return Err(BundleError::TooLarge { bytes, max });
    }
    Ok(())
}

// === impl Contents ===

impl Contents {
    fn add(&mut self, digest: [u8; 32], content: Bytes) {
        let size = content.len() as u64;
        if self.contents.insert(digest, content).is_none() {
            self.bytes = self.bytes.saturating_add(size);
        }
    }

    /// Takes the content of a payload; returns the payload with a reference in place of each content.
    fn take_payload<'a>(
        &'a mut self,
        payload: &'a Payload,
        blobs: &'a BlobStore,
    ) -> BoxFuture<'a, Result<Payload, ResolveError>> {
        Box::pin(async move {
            match payload {
                Payload::Inline { encoding, bytes } => {
                    let digest = Sha256::digest(bytes).into();
                    self.add(digest, bytes.clone());
                    Ok(Payload::Blob {
                        encoding: *encoding,
                        digest,
                        len: bytes.len() as u64,
                    })
                }
                Payload::Blob {
                    encoding, digest, ..
                } => {
                    let resolved = Resolved::fetch(payload, blobs).await?;
                    let len = match resolved {
                        Resolved::One(_, content) => {
                            let len = content.len() as u64;
                            self.add(*Digest::from(*digest).as_bytes(), content);
                            len
                        }
                        Resolved::Group { .. } => 0,
                    };
                    Ok(Payload::Blob {
                        encoding: *encoding,
                        digest: *digest,
                        len,
                    })
                }
                Payload::Group { by_queue, members } => {
                    let mut taken = Vec::with_capacity(members.len());
                    for (queue, member) in members {
                        taken.push((queue.clone(), self.take_payload(member, blobs).await?));
                    }
                    Ok(Payload::Group {
                        by_queue: *by_queue,
                        members: taken,
                    })
                }
            }
        })
    }

    /// Reads a file of a stage. With `include` its content becomes a part of the bundle, and a file that cannot be
    /// read is an error.
    async fn take_file(
        &mut self,
        stage: &str,
        path: PathBuf,
        include: bool,
    ) -> Result<Option<BundledFile>, BundleError> {
        let room = (BUNDLE_BYTES_MAX as u64 - OTHER_BYTES).saturating_sub(self.bytes);
        let shown = path.display().to_string();
        let read = tokio::task::spawn_blocking(move || read_file(&path, include.then_some(room)));
        let read = read.await.unwrap_or_else(|error| Err(error.to_string()));
        match read {
            Ok((file, content)) => {
                if let Some(content) = content {
                    self.add(file.digest, content);
                }
                Ok(Some(file))
            }
            Err(_) if !include => Ok(None),
            Err(why) => Err(BundleError::File {
                stage: stage.to_owned(),
                why: format!("cannot put in {shown}: {why}"),
            }),
        }
    }
}

/// Digest and length of a file, and its content if there is `room` for it; without `room` no content is kept.
fn read_file(path: &Path, room: Option<u64>) -> Result<(BundledFile, Option<Bytes>), String> {
    let file: Result<File, std::io::Error> = open_regular(path);
    let mut file = file.map_err(|error| error.to_string())?;
    let mut hasher = Sha256::new();
    let mut content = room.map(|_| Vec::new());
    let mut piece = vec![0; PIECE_BYTES];
    let mut bytes = 0_u64;
    loop {
        let read = file.read(&mut piece).map_err(|error| error.to_string())?;
        if read == 0 {
            break;
        }
        bytes += read as u64;
        if let Some(room) = room.filter(|room| bytes > *room) {
            return Err(format!(
                "it is larger than the {room} bytes left in the bundle"
            ));
        }
        hasher.update(&piece[..read]);
        if let Some(content) = &mut content {
            content.extend_from_slice(&piece[..read]);
        }
    }
    let file = BundledFile {
        digest: hasher.finalize().into(),
        bytes,
        included: content.is_some(),
    };
    Ok((file, content.map(Bytes::from)))
}

async fn stage_facts(
    workflow: &file::Workflow,
    name: &str,
    options: BuildOptions,
    contents: &mut Contents,
) -> Result<Stage, BundleError> {
    let dispatcher = workflow.dispatchers.iter().find(|stage| stage.name == name);
    let Some(stage) = dispatcher else {
        let collects = workflow.collectors.iter().any(|stage| stage.name == name);
        let kind = if collects { "collector" } else { "sequencer" };
        return Ok(Stage {
            fan_out: false,
            time_limit_ms: None,
            work: Work::Gathers(kind.to_owned()),
        });
    };
    let milliseconds =
        |time: std::time::Duration| u64::try_from(time.as_millis()).unwrap_or(u64::MAX);
    let work = match &stage.executor {
        file::Executor::Process(process) => {
            let path = find_program(&program_path(&process.program));
            let taken = contents.take_file(name, path, options.with_programs);
            program_facts(process, taken.await?)
        }
        file::Executor::Native { prover, params } => Work::Native {
            prover: prover.clone(),
            params: params.clone(),
        },
        file::Executor::Engine(engine) => Work::Engine {
            circuit: engine.circuit.clone(),
            generator: engine.generator.clone(),
            // Small, and public: without it a proof is not checked as the dispatcher does.
            verifying_key: match &engine.verifying_key {
                Some(path) => contents.take_file(name, path.clone(), true).await?,
                None => None,
            },
            patience_ms: milliseconds(engine.patience),
        },
    };
    Ok(Stage {
        fan_out: stage.fan_out,
        time_limit_ms: stage.time_limit.map(milliseconds),
        work,
    })
}

fn program_facts(process: &file::ProcessExecutor, taken: Option<BundledFile>) -> Work {
    Work::Program {
        program: program_path(&process.program)
            .to_string_lossy()
            .into_owned(),
        file: taken,
        args: process.args.clone(),
        variables: process.env.keys().cloned().collect(),
        inherit_env: process.inherit_env.clone(),
        strict_pids_limit: match process.sandbox {
            file::Sandbox::Basic => None,
            file::Sandbox::Strict { pids_limit } => Some(pids_limit),
        },
        input_flag: process.input_flag.clone(),
        output_flag: process.output_flag.clone(),
        memory_limit: process.memory_limit,
    }
}
