//! `proofmill prove`

use std::path::Path;
use std::sync::Arc;
use std::time::Instant;

use ark_std::rand::rngs::OsRng;
use proofmill_accelerator::{Device, cpu};
use proofmill_api::engine::proto::partition::Input;
use proofmill_api::engine::proto::{self, Partition, SubmitRequest};
use proofmill_api::engine::{Client, ProofTexts, check_answer};
use proofmill_files::MappedFile;
use proofmill_groth16::snarkjs::{
    Checked, CheckedKeyStore, Trust, Zkey, ZkeyFile, ZkeyHeader, inputs_to_json, proof_to_json,
};
use proofmill_groth16::stages::ProverStage;
use proofmill_groth16::{
    DeviceKey, Offload, PointCheck, PreparedVerifyingKey, Proof, ProveError, Prover, ResidentForm,
    ResidentKey, SnarkCurve, verify, with_curve,
};
use proofmill_r1cs::iden3::{ReadError, Witness, WtnsFile};
use proofmill_telemetry::console_line;
use serde_json::json;

use crate::args::circuits::Prove;
use crate::commands::engine;
use crate::commands::engine::prove::{engine_with_key, random_request_id};
use crate::content::FileKind;
use crate::devices::Devices;
use crate::failure::Failure;
use crate::files::{FilePlan, OverwritePolicy, write_together};
use crate::output;
use crate::progress::counted;
use crate::stages::{StageTimes, Stages, milliseconds, short};

/// Steps of a proof, for the bar: reading two files, the prover's eight, verifying, writing.
const STEPS: usize = 12;

/// Domain size from which `--devices auto` considers a card: opening one and copying a key to it takes longer than a
/// smaller proof.
const CARD_DOMAIN_MIN: u32 = 1 << 17;

/// The files that the command reads and writes.
struct Files<'a> {
    zkey: &'a Path,
    witness: &'a Path,
    proof: &'a Path,
    public: &'a Path,
}

/// Device that computes beside the processors.
struct Card {
    device: Arc<dyn Device>,
    /// Use the device only for operations that it finishes sooner than the processors; otherwise for all it supports.
    only_if_faster: bool,
}

/// Facts about a finished proof, for the summary.
struct ProofSummary {
    header: ZkeyHeader,
    checked: Checked,
    threads: usize,
    stage_times: StageTimes,
}

pub(crate) async fn run(args: &Prove) -> Result<(), Failure> {
    let files = Files::of(args)?;
    files.check()?;
    if let Some((client, circuit)) = engine_with_key(&args.engine, files.zkey).await? {
        return prove_with_engine(args, &files, &client, circuit).await;
    }
    let key = MappedFile::open(files.zkey)?;
    let header = *ZkeyFile::parse(&key)
        .map_err(|error| error.in_file(files.zkey))?
        .header();
    let remembered = if args.trust_key {
        let known = CheckedKeyStore::of_user().ok_or_else(|| {
            Failure::new("--trust-key: no place to remember checked keys in")
                .help("set HOME or XDG_STATE_HOME to an absolute path")
        })?;
        Some(known)
    } else {
        None
    };
    let devices = &args.devices.devices;
    let auto = *devices == Devices::Auto;
    let card = if auto && header.domain_size < CARD_DOMAIN_MIN {
        None
    } else {
        devices.for_proof()?
    };
    let card = card.map(|device| Card {
        device,
        only_if_faster: auto,
    });
    let trust = remembered.as_ref().map_or(Trust::Check, Trust::Remembered);
    let summary = args
        .threads
        .run(|| with_curve!(header.curve, E => prove::<E>(args, &files, &key, trust, card)))??;
    print_summary(args, &files, &summary)
}

/// Has an engine make the proof, checks its answer against the key and the witness, and writes the two files from the
/// checked values.
async fn prove_with_engine(
    args: &Prove,
    files: &Files<'_>,
    client: &Client,
    circuit: String,
) -> Result<(), Failure> {
    let began = Instant::now();
    let key = MappedFile::open(files.zkey)?;
    let key = ZkeyFile::parse(&key).map_err(|error| error.in_file(files.zkey))?;
    args.key_safety.check_zkey(files.zkey, &key)?;
    let witness = MappedFile::read(files.witness)?;
    let request = SubmitRequest {
        request_id: random_request_id(),
        partitions: vec![Partition {
            circuit,
            input: Some(Input::Wtns(witness.to_vec())),
        }],
        ..SubmitRequest::default()
    };
    let outputs = [("-o", files.proof), ("--public", files.public)];
    let engine_proof = engine::prove::prove(client, request, &outputs).await?;
    let texts = with_curve!(key.curve(), E => check_engine_proof::<E>(files, &key, &witness, &engine_proof.proof))?;
    files.write(&texts.public, &texts.proof)?;
    let total = began.elapsed();
    console_line(output::plain(&format!(
        "{}, {}: a proof, made by the engine as job {} and verified in {}",
        files.proof.display(),
        files.public.display(),
        engine_proof.job,
        short(total),
    )));
    if args.json {
        let answer = json!({
            "curve": key.curve().name(),
            "public_signals": key.header().public,
            "engine_job": engine_proof.job,
            "total_ms": milliseconds(total),
        });
        output::line(answer.to_string())?;
    }
    Ok(())
}

/// The JSON texts of the engine's proof. Fails unless it proves the witness's public signals under the key file.
fn check_engine_proof<E: SnarkCurve>(
    files: &Files<'_>,
    key: &ZkeyFile<'_>,
    witness: &[u8],
    engine_proof: &proto::Proof,
) -> Result<ProofTexts, Failure> {
    let vk = key
        .verifying_key::<E>(PointCheck::Full)
        .map_err(|error| error.in_file(files.zkey))?;
    let vk = PreparedVerifyingKey::from(vk);
    let checked = check_answer(engine_proof, Some(witness), Some(&vk)).map_err(|error| {
        let zkey = files.zkey.display();
        Failure::new(format!("{error}; nothing was written")).help(format!(
            "{zkey} has changed since the engine read it, or the engine cannot be trusted: \
             --engine off makes the proof without the engine"
        ))
    })?;
    Ok(ProofTexts::from(&checked))
}

/// Makes the proof in this process, verifies it, and writes the two files.
fn prove<E: SnarkCurve>(
    args: &Prove,
    files: &Files<'_>,
    key: &MappedFile,
    trust: Trust<'_>,
    card: Option<Card>,
) -> Result<ProofSummary, Failure> {
    let mut stages = Stages::begin("prove", STEPS);
    stages.enter("read witness");
    let header = *ZkeyFile::parse(key)
        .map_err(|error| error.in_file(files.zkey))?
        .header();
    let witness = read_witness::<E>(files, &header)?;
    let z = witness.values();
    stages.enter("read key");
    let (key, checked) = Zkey::<E>::load(key, trust)?;
    args.key_safety.check(files.zkey, &key.verifying_key())?;
    let proof_failure = |error| proof_failure(files, &error);
    let key = ResidentKey::from_zkey(key, ResidentForm::Plain).map_err(proof_failure)?;
    let key = Arc::new(key);
    let on_device = card.map(|card| card.prove(&key, z, &mut stages));
    let proof = match on_device.transpose() {
        Ok(Some(proof)) => proof,
        Ok(None) => on_processors(&key.prover(), z, &mut stages).map_err(proof_failure)?,
        Err(ProveError::Device(error)) => {
            console_line(output::plain(&format!(
                "{error}; the processors make the proof"
            )));
            on_processors(&key.prover(), z, &mut stages).map_err(proof_failure)?
        }
        Err(error) => return Err(proof_failure(error)),
    };

    stages.enter("verify");
    let inputs = &z[1..key.vk().instance.len()];
    let verifying = PreparedVerifyingKey::from(key.vk().clone());
    if let Err(error) = verify(&verifying, inputs, &proof) {
        return Err(unsatisfied(files, &error.to_string()));
    }
    stages.enter("write");
    files.write(&inputs_to_json(inputs), &proof_to_json(&proof))?;
    Ok(ProofSummary {
        header,
        checked,
        threads: rayon::current_num_threads(),
        stage_times: stages.end(),
    })
}

/// Makes the proof on the processors, stage by stage.
fn on_processors<E: SnarkCurve>(
    prover: &Prover<'_, E>,
    z: &[E::ScalarField],
    stages: &mut Stages,
) -> Result<Proof<E>, ProveError> {
    let enter = |stage: ProverStage| stages.enter(stage.name());
    let (proof, _) = prover.prove_observed(z, &mut OsRng, enter)?;
    Ok(proof)
}

/// Reads the witness; fails if its number of values is not that of the key's circuit.
fn read_witness<E: SnarkCurve>(
    files: &Files<'_>,
    header: &ZkeyHeader,
) -> Result<Witness<E::ScalarField>, Failure> {
    let in_file =
        |error: proofmill_r1cs::iden3::FormatError| -> ReadError { error.in_file(files.witness) };
    // A copy: another program may overwrite the witness file meanwhile.
    let file = MappedFile::read(files.witness)?;
    let witness = WtnsFile::parse(&file)
        .and_then(|witness| witness.read::<E::ScalarField>())
        .map_err(in_file)?;
    let (found, expected) = (witness.values().len(), header.variables);
    if found != expected as usize {
        return Err(Failure::new(format!(
            "{}: {found} values, where {} is for a circuit of {expected} variables: it is of \
             another circuit",
            files.witness.display(),
            files.zkey.display()
        )));
    }
    Ok(witness)
}

fn proof_failure(files: &Files<'_>, error: &ProveError) -> Failure {
    match error {
        ProveError::Unsatisfied(_) | ProveError::Assignment(_) => {
            unsatisfied(files, &error.to_string())
        }
        error => Failure::new(format!("{}: {error}", files.zkey.display())),
    }
}

/// The failure for an unsatisfied circuit. A `.zkey` has no matrix C, so unsatisfied constraints are found only when
/// the proof is verified.
fn unsatisfied(files: &Files<'_>, why: &str) -> Failure {
    Failure::new(format!(
        "{} does not satisfy the circuit of {}: {why}; nothing was written",
        files.witness.display(),
        files.zkey.display()
    ))
    .help(
        "make the witness again from the circuit that the key is for; if the witness is right, \
         the parts of the key do not belong together",
    )
}

fn print_summary(args: &Prove, files: &Files<'_>, summary: &ProofSummary) -> Result<(), Failure> {
    let header = &summary.header;
    console_line(output::plain(&format!(
        "{}, {}: a proof over {} of {}, made and verified in {}",
        files.proof.display(),
        files.public.display(),
        header.curve,
        counted(header.public as usize, "public signal"),
        short(summary.stage_times.total),
    )));
    console_line(format!("  {}", summary.stage_times.shown()));
    if args.json {
        let answer = json!({
            "curve": header.curve.name(),
            "variables": header.variables,
            "domain": header.domain_size,
            "public_signals": header.public,
            "threads": summary.threads,
            "key_points_checked": match summary.checked {
                Checked::Full => "now",
                Checked::PointsRemembered => "before",
            },
            "stages": summary.stage_times.to_json(),
            "total_ms": milliseconds(summary.stage_times.total),
        });
        output::line(answer.to_string())?;
    }
    Ok(())
}

// === impl Card ===

impl Card {
    /// Makes the proof on the device, as far as `only_if_faster` allows, and the rest on the processors.
    fn prove<E: SnarkCurve>(
        self,
        key: &Arc<ResidentKey<E>>,
        z: &[E::ScalarField],
        stages: &mut Stages,
    ) -> Result<Proof<E>, ProveError> {
        stages.enter("bring the key to the device");
        let processors = cpu()?;
        let offload = if self.only_if_faster {
            Offload::WhenFasterThan(&processors)
        } else {
            Offload::Always
        };
        // Precomputed multiples of the points cost more than they save for a single proof.
        let key = DeviceKey::load(key.clone(), self.device, offload, 0)?;
        stages.enter("prove");
        key.prove(z, &mut OsRng).map(|(proof, _)| proof)
    }
}

// === impl Files ===

impl<'a> Files<'a> {
    fn of(args: &'a Prove) -> Result<Self, Failure> {
        let named = (&args.zkey, &args.witness, &args.proof, &args.public);
        match (&args.files[..], named) {
            ([zkey, witness, proof, public], _)
            | (_, (Some(zkey), Some(witness), Some(proof), Some(public))) => Ok(Self {
                zkey,
                witness,
                proof,
                public,
            }),
            _ => Err(Failure::usage(
                "four files are needed: key, witness, proof, public signals",
            )),
        }
    }

    /// Fails unless the key and the witness are files of their kinds and the other two can be written without loss.
    fn check(&self) -> Result<(), Failure> {
        FilePlan::default()
            .reads("the key", self.zkey)
            .reads("the witness", self.witness)
            .writes("the proof", self.proof)
            .writes("the public signals", self.public)
            .check(OverwritePolicy::NothingHardToRecreate)?;
        FileKind::Zkey.expect(self.zkey)?;
        FileKind::Witness.expect(self.witness)
    }

    /// Writes the public signals and the proof, both or neither; the signals first, so no proof exists without them.
    fn write(&self, public: &str, proof: &str) -> Result<(), Failure> {
        write_together(&[(self.public, public), (self.proof, proof)])
    }
}
