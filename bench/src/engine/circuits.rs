//! Circuits for an engine, each with a witness and a check of its proofs.

use std::path::{Path, PathBuf};

use anyhow::Context;
use ark_ff::{BigInteger, PrimeField};
use ark_std::rand::rngs::OsRng;
use proofmill_api::engine::proto::partition::Input;
use proofmill_api::engine::proto::{Partition, Proof as ProofMessage};
use proofmill_files::MappedFile;
use proofmill_groth16::snarkjs::ZkeyFile;
use proofmill_groth16::{
    Curve, PointCheck, PreparedVerifyingKey, Proof, SnarkCurve, VerifyingKey, setup, verify,
    with_curve,
};
use proofmill_r1cs::iden3::{WtnsFile, canonical_from_le};
use proofmill_r1cs::{Assignment, R1cs};

use crate::circom::Circuit;
use crate::groth16::Sized;

/// A function that fails unless a message is a valid proof of the witness's public inputs.
type IsProof = Box<dyn Fn(&ProofMessage) -> anyhow::Result<()> + Send + Sync>;

/// A circuit whose files an engine can read, with a witness and a check of its proofs.
pub(super) struct EngineCircuit {
    pub(super) name: String,
    /// The value of `--circuits` for `proofmill engine serve`.
    argument: String,
    pub(super) constraints: usize,
    witness: Vec<u8>,
    is_proof: IsProof,
}

/// The arguments with which `proofmill engine serve` registers the circuits.
pub(super) fn arguments(circuits: &[EngineCircuit]) -> Vec<String> {
    let argument_pair =
        |circuit: &EngineCircuit| ["--circuits".to_owned(), circuit.argument.clone()];
    circuits.iter().flat_map(argument_pair).collect()
}

// === impl EngineCircuit ===

impl EngineCircuit {
    /// A circuit of the Groth16 benchmark. Its files are made in `folder` if they are missing.
    pub(super) fn synthesized(folder: &Path, curve: Curve, circuit: Sized) -> anyhow::Result<Self> {
        with_curve!(curve, E => Self::synthesize_on::<E>(folder, curve, circuit))
    }

    fn synthesize_on<E: SnarkCurve>(
        folder: &Path,
        curve: Curve,
        circuit: Sized,
    ) -> anyhow::Result<Self> {
        let curve = curve.name().replace('-', "_");
        let name = format!("{}_{}_{curve}", circuit.name(), circuit.size());
        let file = |ending: &str| -> PathBuf { folder.join(format!("{name}.{ending}")) };
        let (constraints, key, vk) = (file("pmcs"), file("key"), file("vk"));
        let system = R1cs::<E::ScalarField>::from_circuit(circuit)?;
        // The key is the last file to be written, so that the others exist if it does.
        if !key.exists() {
            eprintln!("making a key of {name}, once");
            system.save_precompiled(&constraints)?;
            let proving_key = setup::<E>(&system, &mut OsRng)?;
            proving_key.vk.save(&vk)?;
            proving_key.save(&key)?;
        }
        let assignment = Assignment::<E::ScalarField>::from_circuit(circuit)?;
        let vk = VerifyingKey::<E>::load(&vk)?;
        Ok(Self {
            argument: format!("{name}={},{}", constraints.display(), key.display()),
            constraints: system.num_constraints(),
            witness: witness_bytes(assignment.z()),
            is_proof: proof_check(vk, assignment.inputs().to_vec()),
            name,
        })
    }

    /// A circuit that circom compiled, over BN254.
    pub(super) fn from_circom(circuit: &Circuit) -> anyhow::Result<Self> {
        with_curve!(Curve::Bn254, E => Self::read_circom::<E>(circuit))
    }

    fn read_circom<E: SnarkCurve>(circuit: &Circuit) -> anyhow::Result<Self> {
        let file = MappedFile::open(&circuit.zkey)?;
        let in_key = |error| anyhow::anyhow!("{}: {error}", circuit.zkey.display());
        let zkey = ZkeyFile::parse(&file).map_err(in_key)?;
        let vk = zkey
            .read::<E>(PointCheck::Skip)
            .map_err(in_key)?
            .verifying_key();
        let witness = std::fs::read(&circuit.witness)
            .with_context(|| format!("reading {}", circuit.witness.display()))?;
        let values = WtnsFile::parse(&witness)?.read::<E::ScalarField>()?;
        let header = zkey.header();
        let public = values.values()[1..=header.public as usize].to_vec();
        let name = circuit.name();
        Ok(Self {
            argument: format!("{name}={}", circuit.zkey.display()),
            // The file has no such number; a circom circuit has about as many as variables.
            constraints: header.variables as usize,
            is_proof: proof_check(vk, public),
            witness,
            name,
        })
    }

    /// The partition to submit: the circuit and its witness.
    pub(super) fn partition(&self) -> Partition {
        let is_file = self.witness.starts_with(b"wtns");
        let input = if is_file { Input::Wtns } else { Input::Vector };
        Partition {
            circuit: self.name.clone(),
            input: Some(input(self.witness.clone())),
        }
    }

    /// Fails unless the message is a valid proof of the witness's public inputs.
    pub(super) fn check(&self, proof: &ProofMessage) -> anyhow::Result<()> {
        (self.is_proof)(proof).with_context(|| format!("a proof of {}", self.name))
    }
}

fn witness_bytes<F: PrimeField>(values: &[F]) -> Vec<u8> {
    let bytes = |value: &F| value.into_bigint().to_bytes_le();
    values.iter().flat_map(bytes).collect()
}

fn proof_check<E: SnarkCurve>(vk: VerifyingKey<E>, public: Vec<E::ScalarField>) -> IsProof {
    let vk = PreparedVerifyingKey::from(vk);
    Box::new(move |message| {
        let returned_inputs: Option<Vec<E::ScalarField>> = message
            .public_inputs
            .iter()
            .map(|bytes| canonical_from_le(bytes))
            .collect();
        anyhow::ensure!(
            returned_inputs.as_ref() == Some(&public),
            "it has other public inputs"
        );
        verify(&vk, &public, &Proof::<E>::from_bytes(&message.proof)?)?;
        Ok(())
    })
}
