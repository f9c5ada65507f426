//! Tests of the sources of witnesses.

use std::collections::BTreeMap;
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use proofmill_engine::{
    CircuitRef, Error, Generator, GeneratorProgram, Input, JobState, Options, Partition, Resource,
    Secret, WitnessGenerator,
};
use proofmill_shutdown::Level;

use super::support::{BLS12_381, BN254, FROM_R1CS, Running, options, submission};

fn partition(input: Input) -> Partition {
    Partition {
        circuit: BN254.circuit(),
        input,
    }
}

/// A generator whose inputs are the seed.
struct FromSeed;

impl WitnessGenerator for FromSeed {
    fn generate(&self, inputs: &[u8]) -> Result<Secret, String> {
        let text = std::str::from_utf8(inputs).map_err(|error| error.to_string())?;
        let seed = text.parse().map_err(|_| "not a seed".to_owned())?;
        Ok(Secret::new(BN254.wtns(seed)))
    }
}

/// A shell script as a generator.
fn script(text: &str) -> Generator {
    Generator::Program(program(text))
}

/// The same, with its standard error kept.
fn talking(text: &str) -> Generator {
    Generator::Program(GeneratorProgram {
        keep_stderr: true,
        ..program(text)
    })
}

fn program(text: &str) -> GeneratorProgram {
    GeneratorProgram {
        program: "/bin/sh".into(),
        args: ["-c", text, "sh", "{input}", "{output}"]
            .map(str::to_owned)
            .to_vec(),
        inherit_env: Vec::new(),
        time_limit: Duration::from_secs(60),
        memory: 1 << 20,
        keep_stderr: false,
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn witnesses_come_as_files_vectors_streams_and_from_generators() {
    let folder = tempfile::tempdir().unwrap();
    let ready = folder.path().join("witness.wtns");
    std::fs::write(&ready, BN254.wtns(5)).unwrap();
    let copy = format!("cp {} \"$2\"", ready.display());
    let killed = folder.path().join("killed");
    // Somebody kills it the first time.
    let killed_once = format!(
        "[ -e {0} ] || {{ touch {0}; kill -9 $$; }}; {copy}",
        killed.display()
    );
    let generators = BTreeMap::from([
        ("native".to_owned(), Generator::Native(Arc::new(FromSeed))),
        ("copy".to_owned(), script(&copy)),
        ("killed".to_owned(), script(&killed_once)),
    ]);
    let running = Running::with(
        Options {
            generators,
            ..options()
        },
        &[BN254],
    )
    .await;
    let mut upload = running.handle.upload().await.unwrap();
    for chunk in BN254.vector(3).chunks(1000) {
        upload.write(chunk).await.unwrap();
    }
    let inputs = |generator: &str, json: &[u8]| Input::Inputs {
        generator: generator.to_owned(),
        json: Secret::new(json.to_vec()),
    };
    let partitions = [
        Input::Wtns(Secret::new(BN254.wtns(1))),
        Input::Vector(Secret::new(BN254.vector(2))),
        Input::Uploaded(upload),
        inputs("native", b"4"),
        inputs("copy", b"{}"),
    ];
    let partitions = partitions.map(partition).into();
    let result = running
        .handle
        .prove(submission("client", "1", partitions))
        .await
        .unwrap();
    assert_eq!(result.state, JobState::Done);
    for (seed, proof) in (1..).zip(result.proofs.iter()) {
        BN254.check(proof, seed);
    }
    let partitions = vec![partition(inputs("killed", b"{}"))];
    let again = running.handle.prove(submission("client", "2", partitions));
    let result = again.await.unwrap();
    assert_eq!((result.state, killed.exists()), (JobState::Done, true));
    BN254.check(&result.proofs[0], 5);
    running.stop(Level::Drain).await;
}

/// Runs this test again, in a process with secrets in its environment.
fn with_secrets(test: &str) -> bool {
    const INNER: &str = "PROOFMILL_TEST_INNER";
    if std::env::var_os(INNER).is_some() {
        return true;
    }
    let ran = std::process::Command::new(std::env::current_exe().unwrap())
        .args(["--exact", &format!("inputs::{test}"), "--nocapture"])
        .env(INNER, "1")
        .env("PROOFMILL_TOKEN", "hunter2")
        .env("AWS_SECRET_ACCESS_KEY", "hunter2")
        .env("WANTED", "wanted")
        .output()
        .unwrap();
    let stdout = String::from_utf8_lossy(&ran.stdout);
    assert!(
        ran.status.success() && stdout.contains("1 passed"),
        "{ran:?}"
    );
    false
}

#[tokio::test(flavor = "multi_thread")]
async fn no_secret_of_the_engine_reaches_a_generator() {
    if !with_secrets("no_secret_of_the_engine_reaches_a_generator") {
        return;
    }
    let folder = tempfile::tempdir().unwrap();
    let seen = folder.path().join("seen");
    let prints = format!(
        "env > {0}; grep NoNewPrivs /proc/self/status >> {0}",
        seen.display()
    );
    let Generator::Program(mut program) = script(&prints) else {
        panic!("a program");
    };
    program.inherit_env = vec!["WANTED".to_owned()];
    let generators = BTreeMap::from([("prints".to_owned(), Generator::Program(program))]);
    let options = Options {
        generators,
        ..options()
    };
    let running = Running::with(options, &[BN254]).await;
    let input = Input::Inputs {
        generator: "prints".to_owned(),
        json: Secret::new(b"{}".to_vec()),
    };
    let job = submission("client", "1", vec![partition(input)]);
    // The program writes no witness.
    let state = running.handle.prove(job).await.unwrap().state;
    assert!(matches!(state, JobState::Failed(_)), "{state:?}");
    let seen = std::fs::read_to_string(seen).unwrap();
    assert!(!seen.contains("hunter2"), "{seen}");
    assert!(
        !seen.contains("AWS_") && !seen.contains("PROOFMILL_TOKEN"),
        "{seen}"
    );
    assert!(
        seen.contains("WANTED=wanted") && seen.contains("PATH="),
        "{seen}"
    );
    if cfg!(target_os = "linux") {
        assert!(seen.contains("NoNewPrivs:\t1"), "{seen}");
    }
    running.stop(Level::Drain).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_generator_that_fails_says_why() {
    let generators = BTreeMap::from([
        ("native".to_owned(), Generator::Native(Arc::new(FromSeed))),
        ("refuses".to_owned(), script("echo too small >&2; exit 3")),
        ("talks".to_owned(), talking("echo too small >&2; exit 3")),
        ("silent".to_owned(), script(":")),
    ]);
    let running = Running::with(
        Options {
            generators,
            ..options()
        },
        &[BN254],
    )
    .await;
    for (generator, why) in [
        ("native", "not a seed"),
        ("refuses", "exit status: 3"),
        ("talks", "too small"),
        ("silent", "wrote no witness"),
    ] {
        let input = Input::Inputs {
            generator: generator.to_owned(),
            json: Secret::new(b"x".to_vec()),
        };
        let job = submission("client", generator, vec![partition(input)]);
        let JobState::Failed(said) = running.handle.prove(job).await.unwrap().state else {
            panic!("{generator} fails");
        };
        assert!(said.contains(why), "{said}");
    }
    running.stop(Level::Drain).await;
}

/// A job's error is kept on disk and shown to everyone who may see the job.
#[tokio::test(flavor = "multi_thread")]
async fn inputs_that_a_generator_quotes_are_not_kept() {
    const SECRET: &[u8] = b"{\"preimage\": \"correct horse battery staple\"}";
    let state = tempfile::tempdir().unwrap();
    let quotes = "echo 'assertion failed:' >&2; cat \"$1\" >&2; exit 1";
    let options = Options {
        state_dir: Some(state.path().to_owned()),
        generators: BTreeMap::from([("quotes".to_owned(), script(quotes))]),
        ..options()
    };
    let running = Running::with(options, &[BN254]).await;
    let input = Input::Inputs {
        generator: "quotes".to_owned(),
        json: Secret::new(SECRET.to_vec()),
    };
    let job = submission("client", "1", vec![partition(input)]);
    let JobState::Failed(said) = running.handle.prove(job).await.unwrap().state else {
        panic!("it fails");
    };
    assert!(said.contains("exit status: 1"), "{said}");
    assert!(!said.contains("battery"), "{said}");
    let shown = format!("{:?}", running.handle.status().await.unwrap());
    assert!(!shown.contains("battery"), "{shown}");
    running.stop(Level::Drain).await;
    let mut folders = vec![state.path().to_owned()];
    while let Some(folder) = folders.pop() {
        for entry in std::fs::read_dir(folder).unwrap() {
            let path = entry.unwrap().path();
            if path.is_dir() {
                folders.push(path);
                continue;
            }
            let content = std::fs::read(&path).unwrap();
            let quoted = content.windows(7).any(|bytes| bytes == b"battery");
            assert!(!quoted, "{}", path.display());
        }
    }
}

/// Processes that a generator has started are killed when it ends or is stopped, and do not delay the job.
#[tokio::test(flavor = "multi_thread")]
async fn processes_that_a_generator_leaves_behind_are_killed() {
    let folder = tempfile::tempdir().unwrap();
    let pid = folder.path().join("pid");
    // The process that stays holds the pipe of standard error.
    let leaves = format!("sleep 1000 & echo $! > {}; exit 1", pid.display());
    let options = Options {
        generators: BTreeMap::from([("leaves".to_owned(), talking(&leaves))]),
        ..options()
    };
    let running = Running::with(options, &[BN254]).await;
    let input = Input::Inputs {
        generator: "leaves".to_owned(),
        json: Secret::new(b"{}".to_vec()),
    };
    let job = submission("client", "1", vec![partition(input)]);
    let began = std::time::Instant::now();
    let result = running.handle.prove(job).await.unwrap();
    assert!(matches!(result.state, JobState::Failed(_)));
    assert!(began.elapsed() < Duration::from_secs(30));
    let pid = std::fs::read_to_string(pid).unwrap();
    let process = Path::new("/proc").join(pid.trim());
    for _ in 0..1200 {
        // An orphan is reaped by another process, or stays as a zombie without a command line.
        let line = std::fs::read(process.join("cmdline")).unwrap_or_default();
        if line.is_empty() {
            running.stop(Level::Drain).await;
            return;
        }
        tokio::time::sleep(Duration::from_millis(50)).await;
    }
    panic!("process {pid} runs on");
}

#[tokio::test(flavor = "multi_thread")]
async fn impossible_inputs_are_refused_before_they_are_stored() {
    let running = Running::with(options(), &[BN254]).await;
    let refused = async |partitions| {
        let submitted = running
            .handle
            .submit(submission("client", "1", partitions))
            .await;
        submitted.unwrap_err()
    };
    assert!(matches!(refused(Vec::new()).await, Error::Invalid(_)));
    let other = Input::Wtns(Secret::new(BLS12_381.wtns(1)));
    let error = refused(vec![partition(other)]).await.to_string();
    assert!(
        error.contains("partition 0") && error.contains("another circuit"),
        "{error}"
    );
    let short = Input::Vector(Secret::new(vec![0; 31]));
    assert!(matches!(
        refused(vec![partition(short)]).await,
        Error::Invalid(_)
    ));
    let unknown = Partition {
        circuit: CircuitRef::Name("nothing".to_owned()),
        ..BN254.partition(1)
    };
    let unknown = refused(vec![unknown]).await;
    assert!(matches!(unknown, Error::UnknownCircuit { .. }));
    let unknown = unknown.to_string();
    assert!(unknown.contains(&BN254.name()), "{unknown}");
    let json = Input::Wtns(Secret::new(b" \n{\"a\": 3}".to_vec()));
    let json = refused(vec![partition(json)]).await.to_string();
    assert!(
        json.contains("JSON") && json.contains("generator") && !json.contains("\"a\""),
        "{json}"
    );
    let no_generator = Input::Inputs {
        generator: "none".to_owned(),
        json: Secret::default(),
    };
    assert!(matches!(
        refused(vec![partition(no_generator)]).await,
        Error::UnknownGenerator { .. }
    ));
    running.stop(Level::Drain).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn quotas_are_enforced_and_suggest_a_wait() {
    let gate = super::support::Gate::closed();
    let mut options = Options {
        interference: Some(gate.clone()),
        ..options()
    };
    options.limits.jobs = 3;
    options.limits.jobs_per_client = 2;
    options.limits.uploads = 1;
    let running = Running::with(options, &[BN254]).await;
    let submit = |client: &'static str, request: &'static str| {
        running
            .handle
            .submit(submission(client, request, vec![BN254.partition(1)]))
    };
    submit("a", "1").await.unwrap();
    submit("a", "2").await.unwrap();
    let full = |error: Error| match error {
        Error::Exhausted {
            resource,
            retry_after,
            ..
        } => {
            assert!(retry_after > Duration::ZERO);
            resource
        }
        other => panic!("{other}"),
    };
    assert_eq!(
        full(submit("a", "3").await.unwrap_err()),
        Resource::ClientJobs
    );
    submit("b", "1").await.unwrap();
    assert_eq!(full(submit("c", "1").await.unwrap_err()), Resource::Queue);
    assert!(
        submit("a", "1").await.unwrap().existing,
        "what is there is found"
    );
    let upload = running.handle.upload().await.unwrap();
    assert_eq!(
        full(running.handle.upload().await.unwrap_err()),
        Resource::Uploads
    );
    drop(upload);
    running.handle.upload().await.unwrap();
    assert_eq!(running.handle.status().await.unwrap().counts.refused, 2);
    gate.open();
    running.stop(Level::Drain).await;
}

fn files(folder: &Path) -> usize {
    std::fs::read_dir(folder).unwrap().count()
}

#[tokio::test(flavor = "multi_thread")]
async fn witnesses_on_disk_are_private_and_removed_with_their_jobs() {
    use std::os::unix::fs::PermissionsExt;
    let gate = super::support::Gate::closed();
    let state = tempfile::tempdir().unwrap();
    let inputs = state.path().join("inputs");
    let options = Options {
        state_dir: Some(state.path().to_owned()),
        interference: Some(gate.clone()),
        ..options()
    };
    let running = Running::with(options, &[FROM_R1CS]).await;
    let mut upload = running.handle.upload().await.unwrap();
    upload.write(&[0; 100]).await.unwrap();
    let partitions = vec![FROM_R1CS.partition(1), FROM_R1CS.partition(2)];
    let job = running.submit(submission("client", "1", partitions)).await;
    assert_eq!(files(&inputs), 3);
    for file in std::fs::read_dir(&inputs).unwrap() {
        let mode = file.unwrap().metadata().unwrap().permissions().mode();
        assert_eq!(mode & 0o777, 0o600);
    }
    let mode = std::fs::metadata(&inputs).unwrap().permissions().mode();
    assert_eq!(mode & 0o777, 0o700);
    drop(upload);
    assert_eq!(files(&inputs), 2, "an upload that is dropped is removed");
    gate.open();
    assert_eq!(running.result(job).await.state, JobState::Done);
    assert_eq!(files(&inputs), 0);
    // The same content again is the same job, and nothing of it is left on disk.
    let again = vec![FROM_R1CS.partition(1), FROM_R1CS.partition(2)];
    assert!(
        running
            .handle
            .submit(submission("client", "1", again))
            .await
            .unwrap()
            .existing
    );
    assert_eq!(files(&inputs), 0);
    running.stop(Level::Drain).await;
}
