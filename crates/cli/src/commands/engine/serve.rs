//! `proofmill engine serve`

use std::collections::BTreeMap;
use std::ffi::OsStr;
use std::path::{Path, PathBuf};
use std::pin::pin;
use std::time::Duration;

use proofmill_api::engine::{ENGINE_SOCKET, Server, ServerOptions};
use proofmill_engine::{
    CircuitRef, CircuitSource, Generator, GeneratorProgram, Handle, KeyForm, Limits, Options,
    Registration, Service, Tier,
};
use proofmill_shutdown::Level;

use super::bytes;
use crate::args::engine::Serve;
use crate::failure::Failure;
use crate::progress::Screen;
use crate::{output, signals};

pub(crate) async fn run(args: Serve) -> Result<(), Failure> {
    let circuits = registrations(&args.circuits)?;
    let options = options(&args)?;
    // The budget is for the whole process: memory freed by one stage must be available to others.
    proofmill_memory::return_large_allocations();
    let (service, handle) = Service::open(options).await?;
    let socket = args.socket.clone();
    let socket = socket.unwrap_or_else(|| args.state.join(ENGINE_SOCKET));
    let server = Server::bind(handle.clone(), &server_options(&args, socket.clone())).await?;
    let screen = Screen::open();
    let mut listening = vec![format!("unix:{}", socket.display())];
    listening.extend(server.tcp_address().map(|it| it.to_string()));
    listening.extend(server.http_address().map(|it| format!("http://{it}")));
    if let Some(address) = server.console_address() {
        screen.note(&format!("console on http://{address}/"));
    }
    let shutdown = signals::listen(screen.clone(), args.drain)?;
    let ready = async {
        prepare(&handle, circuits, &args.preload, &screen).await?;
        screen.note(&output::plain(&format!(
            "the engine answers on {}",
            listening.join(", ")
        )));
        std::future::pending::<Result<(), Failure>>().await
    };
    let mut serving = pin!(server.run(service, shutdown.clone()));
    let prepared = tokio::select! {
        served = &mut serving => return Ok(served?),
        prepared = ready => prepared,
    };
    match shutdown.level() {
        Level::Run => prepared,
        // The stop ended a registration, which is no fault of the circuit.
        _ => Ok(serving.await?),
    }
}

/// Registers the circuits of `--circuits`, and loads the keys of `--preload`.
async fn prepare(
    handle: &Handle,
    circuits: Vec<Registration>,
    preload: &[String],
    screen: &Screen,
) -> Result<(), Failure> {
    for registration in circuits {
        let name = registration.name.clone();
        let circuit = handle.register(registration).await;
        let circuit = circuit.map_err(|error| Failure::new(format!("circuit {name}: {error}")))?;
        screen.note(&output::plain(&format!(
            "circuit {name}: {}, {} variables, {}{} when hot, {} for a proof, {} to load it and prove",
            circuit.curve,
            circuit.variables,
            if circuit.measured { "" } else { "about " },
            bytes(circuit.hot_bytes),
            bytes(circuit.work_bytes),
            bytes(circuit.needed_bytes),
        )));
    }
    for name in preload {
        let circuit: CircuitRef = name.parse()?;
        handle.preload(circuit, Tier::Hot).await?;
    }
    Ok(())
}

fn options(args: &Serve) -> Result<Options, Failure> {
    let mut generators = BTreeMap::new();
    for text in &args.generator {
        let (name, generator) = generator(text, args)?;
        if generators.insert(name.clone(), generator).is_some() {
            return Err(Failure::usage(format!(
                "--generator: two generators are named {name:?}"
            )));
        }
    }
    Ok(Options {
        state_dir: Some(args.state.clone()),
        accept_loss: args.accept_loss,
        memory: args.budget,
        partition_workers: args.workers.into(),
        batch: args.batch,
        threads: args.threads.threads.unwrap_or(0).into(),
        devices: args.devices.devices.for_engine(args.products.into())?,
        key_form: args
            .prepared
            .map_or(KeyForm::Plain, |percent| KeyForm::Prepared { percent }),
        limits: Limits {
            jobs_per_client: usize::try_from(args.client_jobs).unwrap_or(usize::MAX),
            ..Limits::default()
        },
        result_ttl: Duration::from_secs(args.result_seconds.into()),
        generators,
        allow_insecure_keys: args.key_safety.allow_insecure_key,
        ..Options::default()
    })
}

fn server_options(args: &Serve, socket: PathBuf) -> ServerOptions {
    ServerOptions {
        socket: Some(socket),
        tcp: args.listen.options(args.tokens.as_ref()),
        http: args.http,
        console: args.console,
    }
}

fn generator(text: &str, args: &Serve) -> Result<(String, Generator), Failure> {
    let malformed = || {
        Failure::usage(format!("--generator {text:?}: expected NAME=COMMAND"))
            .help("such as 'mul=node generate_witness.js mul.wasm {input} {output}'")
    };
    let (name, command) = text.split_once('=').ok_or_else(malformed)?;
    let mut words = command.split_whitespace();
    let program = words.next().ok_or_else(malformed)?;
    let generator = GeneratorProgram {
        program: program.into(),
        // The generator runs in a directory of its own, so names of files here are made absolute.
        args: words.map(absolute_if_file).collect(),
        inherit_env: args.generator_inherit_env.clone(),
        time_limit: Duration::from_secs(args.generator_seconds.into()),
        memory: args.generator_memory,
        keep_stderr: args.generator_stderr,
    };
    Ok((name.to_owned(), Generator::Program(generator)))
}

fn absolute_if_file(word: &str) -> String {
    match std::fs::canonicalize(word) {
        Ok(path) => path.to_string_lossy().into_owned(),
        Err(_) => word.to_owned(),
    }
}

/// Parses the values of `--circuits`.
fn registrations(given: &[String]) -> Result<Vec<Registration>, Failure> {
    let mut all = Vec::new();
    for text in given {
        match text.split_once('=') {
            Some((name, files)) => all.push(registration(name, files)?),
            None => all.extend(folder_registrations(Path::new(text))?),
        }
    }
    Ok(all)
}

fn registration(name: &str, files: &str) -> Result<Registration, Failure> {
    let source = match files.split_once(',') {
        None => CircuitSource::Zkey(absolute_path(Path::new(files))?),
        Some((constraints, key)) => CircuitSource::System {
            constraints: absolute_path(Path::new(constraints))?,
            key: absolute_path(Path::new(key))?,
        },
    };
    Ok(Registration {
        name: name.to_owned(),
        source,
    })
}

fn absolute_path(path: &Path) -> Result<PathBuf, Failure> {
    let absolute = std::fs::canonicalize(path);
    absolute.map_err(|error| Failure::new(format!("{}: {error}", path.display())))
}

/// The failure for a plain file where a folder or NAME=FILE is expected.
fn not_a_folder(path: &Path) -> Failure {
    let shown = path.display();
    let failure = Failure::usage(format!(
        "--circuits {shown}: a file, where a folder of keys or NAME=FILE is expected"
    ));
    let is_name = |name: &&str| proofmill_engine::check_name(name).is_ok();
    let stem = path.file_stem().and_then(OsStr::to_str);
    let name = stem.filter(is_name).unwrap_or("NAME");
    match path.extension().and_then(OsStr::to_str) {
        Some("key") => failure.help(format!(
            "for this key: --circuits {name}=CONSTRAINTS,{shown}, with the .r1cs or .pmcs it is of"
        )),
        _ => failure.help(format!("for this key: --circuits {name}={shown}")),
    }
}

/// Every `NAME.zkey` of a folder, and every `NAME.key` with its constraints, `NAME.pmcs` (precompiled)
/// or `NAME.r1cs`.
fn folder_registrations(folder: &Path) -> Result<Vec<Registration>, Failure> {
    let failed = |error| {
        Failure::new(format!("--circuits {}: {error}", folder.display()))
            .help("name a folder, NAME=KEY.zkey, or NAME=CONSTRAINTS,KEY")
    };
    if folder.is_file() {
        return Err(not_a_folder(folder));
    }
    let mut all = Vec::new();
    for entry in std::fs::read_dir(folder).map_err(failed)? {
        let path = absolute_path(&entry.map_err(failed)?.path())?;
        let Some(name) = path.file_stem().and_then(OsStr::to_str) else {
            continue;
        };
        let constraints = ["pmcs", "r1cs"]
            .map(|ending| path.with_extension(ending))
            .into_iter()
            .find(|it| it.is_file());
        let source = match (path.extension().and_then(OsStr::to_str), constraints) {
            (Some("zkey"), _) => CircuitSource::Zkey(path.clone()),
            (Some("key"), Some(constraints)) => CircuitSource::System {
                constraints,
                key: path.clone(),
            },
            _ => continue,
        };
        all.push(Registration {
            name: name.to_owned(),
            source,
        });
    }
    if all.is_empty() {
        return Err(Failure::usage(format!(
            "{}: the folder has no .zkey, and no .key with its .r1cs or .pmcs",
            folder.display()
        )));
    }
    // The system lists a folder in no particular order.
    all.sort_by(|a, b| a.name.cmp(&b.name));
    Ok(all)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_folder_is_registered_by_its_files_names() {
        let folder = tempfile::tempdir().unwrap();
        for name in ["b.zkey", "a.key", "a.r1cs", "c.key", "d.txt"] {
            std::fs::write(folder.path().join(name), "").unwrap();
        }
        let text = folder.path().to_str().unwrap().to_owned();
        let names: Vec<String> = registrations(&[text])
            .unwrap()
            .into_iter()
            .map(|it| it.name)
            .collect();
        assert_eq!(names, ["a", "b"]);
    }
}
