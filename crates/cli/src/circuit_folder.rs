//! The folder that `proofmill partition setup` makes: a description of the circuit, and its keys.

mod rv32;

pub(crate) use rv32::{PROGRAM, Rv32Sizes, program_path, read_program, read_program_bytes};

use std::path::{Path, PathBuf};

use ark_ff::PrimeField;
use proofmill_aggregation::Srs;
use proofmill_directory::circuit::{BatchShape, UpdateBatch};
use proofmill_groth16::mirage::{ProvingKeyInfo, VerifyingKey as ClassVerifyingKey};
use proofmill_groth16::{Curve, SnarkCurve};
use proofmill_kernels::Poseidon2Field;
use proofmill_partition::applications::{BigMerkleTree, Squarings};
use proofmill_partition::proof::{
    ClassKeys, Index, MemoryNeeds, PartVerifiers, PartitionCurve, VerifyingKey,
};
use proofmill_partition::{
    DistributedCircuit, Part, Partition, PartitionError, PartitionedCircuit,
};
use proofmill_rv32_circuit::Rv32Circuit;
use serde::{Deserialize, Serialize};
use zeroize::Zeroizing;

use crate::failure::Failure;
use crate::files::read;

/// Largest description file, in bytes.
const DESCRIPTION_BYTES_MAX: usize = 1 << 12;

/// The curve and the circuit of a folder's keys.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Description {
    pub(crate) curve: String,
    pub(crate) circuit: CircuitSizes,
}

/// A circuit and its size parameters.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case", deny_unknown_fields)]
pub(crate) enum CircuitSizes {
    /// [`BigMerkleTree`].
    MerkleTree {
        levels: u8,
        hashes: u16,
        portals: u32,
    },
    /// [`Squarings`].
    Squarings {
        parts: u32,
        squarings: u32,
        portals: u32,
    },
    /// [`Rv32Circuit`].
    Rv32(Rv32Sizes),
    /// [`UpdateBatch`]: `updates` at most, of a tree of `depth` levels, `levels` in each part.
    KeyDirectory {
        depth: u32,
        updates: u32,
        levels: u32,
    },
}

/// One of the built-in circuits.
#[derive(Clone, Debug)]
pub(crate) enum AnyCircuit<F: PrimeField> {
    Tree(BigMerkleTree<F>),
    Squarings(Squarings<F>),
    Rv32(Box<Rv32Circuit>),
    KeyDirectory(Box<UpdateBatch>),
}

/// A folder with keys.
#[derive(Clone, Debug)]
pub(crate) struct Folder {
    path: PathBuf,
}

/// Whether a file of a folder is needed to commit to parts and to prove them.
pub(crate) fn is_proving_file(name: &str) -> bool {
    ["circuit.json", "partition", PROGRAM].contains(&name) || is_of_class(name, ".pk")
}

/// Whether a file of a folder is needed, beside [those to prove with](is_proving_file), to check proofs of parts.
pub(crate) fn is_checking_file(name: &str) -> bool {
    ["string.srs", "verifying.key"].contains(&name) || is_of_class(name, ".vk")
}

fn is_of_class(name: &str, suffix: &str) -> bool {
    name.starts_with("class-") && name.ends_with(suffix)
}

// === impl Description ===

impl Description {
    pub(crate) fn curve(&self) -> Result<Curve, Failure> {
        let mut known = Curve::ALL.into_iter();
        let found = known.find(|known| known.name() == self.curve);
        found.ok_or_else(|| {
            Failure::new(format!(
                "{:?} is no curve that this release knows",
                self.curve
            ))
        })
    }
}

// === impl CircuitSizes ===

impl CircuitSizes {
    /// The circuit without a witness; `folder` has the files that it is made of.
    pub(crate) fn without_witness<F: PrimeField>(
        &self,
        folder: &Folder,
    ) -> Result<AnyCircuit<F>, Failure> {
        Ok(match self {
            Self::MerkleTree {
                levels,
                hashes,
                portals,
            } => AnyCircuit::Tree(BigMerkleTree::blank(
                (*levels).into(),
                (*hashes).into(),
                *portals as usize,
            )?),
            Self::Squarings {
                parts,
                squarings,
                portals,
            } => AnyCircuit::Squarings(Squarings::blank(
                *parts as usize,
                *squarings as usize,
                *portals as usize,
            )?),
            Self::Rv32(sizes) => AnyCircuit::Rv32(Box::new(sizes.blank(folder)?)),
            Self::KeyDirectory { .. } => {
                AnyCircuit::KeyDirectory(Box::new(UpdateBatch::blank(self.batch_shape()?)))
            }
        })
    }

    /// The circuit with its witness, of [`read_witness`](Self::read_witness).
    pub(crate) fn with_witness<F: PrimeField>(
        &self,
        folder: &Folder,
        bytes: &[u8],
    ) -> Result<AnyCircuit<F>, Failure> {
        Ok(match self {
            Self::MerkleTree {
                hashes, portals, ..
            } => {
                let leaves = bytes.as_chunks::<64>().0.iter().map(|leaf| {
                    let words = leaf.as_chunks::<4>().0;
                    std::array::from_fn(|i| u32::from_be_bytes(words[i]))
                });
                let (leaves, hashes) = (leaves.collect(), (*hashes).into());
                AnyCircuit::Tree(BigMerkleTree::new(leaves, hashes, *portals as usize)?)
            }
            Self::Squarings {
                parts, squarings, ..
            } => {
                let values = bytes.as_chunks::<32>().0.iter();
                let values = values
                    .map(|bytes| F::from_be_bytes_mod_order(bytes))
                    .collect();
                let (parts, squarings) = (*parts as usize, *squarings as usize);
                AnyCircuit::Squarings(Squarings::new(parts, squarings, values)?)
            }
            Self::Rv32(sizes) => AnyCircuit::Rv32(Box::new(sizes.with_input(folder, bytes)?)),
            Self::KeyDirectory { .. } => {
                let shape = self.batch_shape()?;
                AnyCircuit::KeyDirectory(Box::new(UpdateBatch::from_witness(shape, bytes)?))
            }
        })
    }

    /// Reads a witness. Fails if it has a length that none of the circuit has.
    pub(crate) fn read_witness(&self, path: &Path) -> Result<Zeroizing<Vec<u8>>, Failure> {
        let (exact, most, what) = match self {
            Self::MerkleTree { levels, .. } => {
                // As many as `partition setup` makes.
                let leaves = 1usize << (*levels).min(19);
                (true, 64 * leaves, format!("{leaves} leaves of 64 bytes"))
            }
            Self::Squarings { portals, .. } => {
                let what = format!("{portals} values of 32 bytes");
                (true, 32 * *portals as usize, what)
            }
            Self::KeyDirectory { .. } => {
                let bytes = UpdateBatch::witness_bytes(self.batch_shape()?);
                let what = format!("a file of `proofmill vkd witness`, of {bytes} bytes");
                (true, bytes, what)
            }
            Self::Rv32(sizes) => {
                let most = sizes.input_bytes_max()?;
                (false, most, format!("inputs of up to {most} bytes"))
            }
        };
        let shown = path.display();
        let bytes = read(path, most);
        let bytes = bytes
            .map_err(|why| Failure::new(format!("{shown}: {why}: the keys are for {what}")))?;
        let bytes = Zeroizing::new(bytes);
        match exact && bytes.len() != most {
            false => Ok(bytes),
            true => Err(Failure::new(format!(
                "{shown}: {} bytes, where the keys are for {what}",
                bytes.len()
            ))),
        }
    }

    /// The sizes of the batches of a key directory.
    pub(crate) fn batch_shape(&self) -> Result<BatchShape, Failure> {
        match self {
            Self::KeyDirectory {
                depth,
                updates,
                levels,
            } => Ok(BatchShape::with_depth(*depth, *updates as usize, *levels)?),
            _ => Err(Failure::new("keys for another circuit")),
        }
    }
}

// === impl AnyCircuit ===

impl<F: PrimeField> PartitionedCircuit<F> for AnyCircuit<F> {
    fn num_parts(&self) -> usize {
        match self {
            Self::Tree(circuit) => circuit.num_parts(),
            Self::Squarings(circuit) => circuit.num_parts(),
            Self::Rv32(circuit) => PartitionedCircuit::<F>::num_parts(&**circuit),
            Self::KeyDirectory(circuit) => PartitionedCircuit::<F>::num_parts(&**circuit),
        }
    }

    fn class(&self, part: usize) -> &'static str {
        match self {
            Self::Tree(circuit) => circuit.class(part),
            Self::Squarings(circuit) => circuit.class(part),
            Self::Rv32(circuit) => PartitionedCircuit::<F>::class(&**circuit, part),
            Self::KeyDirectory(circuit) => PartitionedCircuit::<F>::class(&**circuit, part),
        }
    }

    fn num_public_inputs(&self) -> usize {
        match self {
            Self::Tree(circuit) => circuit.num_public_inputs(),
            Self::Squarings(circuit) => circuit.num_public_inputs(),
            Self::Rv32(circuit) => PartitionedCircuit::<F>::num_public_inputs(&**circuit),
            Self::KeyDirectory(circuit) => PartitionedCircuit::<F>::num_public_inputs(&**circuit),
        }
    }

    fn public_inputs(&self) -> Vec<F> {
        match self {
            Self::Tree(circuit) => circuit.public_inputs(),
            Self::Squarings(circuit) => circuit.public_inputs(),
            Self::Rv32(circuit) => circuit.public_inputs(),
            Self::KeyDirectory(circuit) => PartitionedCircuit::<F>::public_inputs(&**circuit),
        }
    }

    fn synthesize(&self, part: usize, wires: &mut Part<'_, F>) -> Result<(), PartitionError> {
        match self {
            Self::Tree(circuit) => circuit.synthesize(part, wires),
            Self::Squarings(circuit) => circuit.synthesize(part, wires),
            Self::Rv32(circuit) => circuit.synthesize(part, wires),
            Self::KeyDirectory(circuit) => circuit.synthesize(part, wires),
        }
    }
}

impl<F: PrimeField> DistributedCircuit<F> for AnyCircuit<F> {
    fn part_witness(&self, part: usize) -> Vec<u8> {
        match self {
            Self::Tree(circuit) => circuit.part_witness(part),
            Self::Squarings(circuit) => circuit.part_witness(part),
            Self::Rv32(circuit) => DistributedCircuit::<F>::part_witness(&**circuit, part),
            Self::KeyDirectory(circuit) => DistributedCircuit::<F>::part_witness(&**circuit, part),
        }
    }

    fn with_part_witness(&self, part: usize, bytes: &[u8]) -> Result<Self, String> {
        Ok(match self {
            Self::Tree(circuit) => Self::Tree(circuit.with_part_witness(part, bytes)?),
            Self::Squarings(circuit) => Self::Squarings(circuit.with_part_witness(part, bytes)?),
            Self::Rv32(circuit) => {
                let with = DistributedCircuit::<F>::with_part_witness(&**circuit, part, bytes);
                Self::Rv32(Box::new(with?))
            }
            Self::KeyDirectory(circuit) => {
                let circuit = DistributedCircuit::<F>::with_part_witness(&**circuit, part, bytes)?;
                Self::KeyDirectory(Box::new(circuit))
            }
        })
    }
}

// === impl Folder ===

impl Folder {
    pub(crate) fn at(path: &Path) -> Self {
        Self {
            path: path.to_owned(),
        }
    }

    pub(crate) fn path(&self) -> &Path {
        &self.path
    }

    pub(crate) fn description_path(&self) -> PathBuf {
        self.path.join("circuit.json")
    }

    pub(crate) fn partition_path(&self) -> PathBuf {
        self.path.join("partition")
    }

    pub(crate) fn srs_path(&self) -> PathBuf {
        self.path.join("string.srs")
    }

    pub(crate) fn class_key_path(&self, class: usize) -> PathBuf {
        self.path.join(format!("class-{class}.vk"))
    }

    pub(crate) fn verifying_key_path(&self) -> PathBuf {
        self.path.join("verifying.key")
    }

    /// Names of the files that the folder has, without folders and files that are no part of the keys.
    pub(crate) fn file_names(&self) -> Result<Vec<String>, Failure> {
        let failed = |error| Failure::new(format!("{}: {error}", self.path.display()));
        let mut names = Vec::new();
        for entry in std::fs::read_dir(&self.path).map_err(failed)? {
            let name = entry.map_err(failed)?.file_name();
            let name = name.into_string().unwrap_or_default();
            if is_proving_file(&name) || is_checking_file(&name) {
                names.push(name);
            }
        }
        Ok(names)
    }

    /// The curve and the circuit of the keys.
    pub(crate) fn description(&self) -> Result<Description, Failure> {
        let path = self.description_path();
        let failed = |why: String| {
            Failure::new(format!("{}: {why}", path.display()))
                .help("`partition setup`, `rv32 setup` and `vkd setup` make folders with keys")
        };
        let bytes = read(&path, DESCRIPTION_BYTES_MAX).map_err(failed)?;
        serde_json::from_slice(&bytes).map_err(|error| failed(error.to_string()))
    }

    /// The partition that the keys were made of.
    pub(crate) fn partition<F: Poseidon2Field>(&self) -> Result<Partition<F>, Failure> {
        let path = self.partition_path();
        Partition::load(&path).map_err(|error| Failure::new(format!("{}: {error}", path.display())))
    }

    /// Bytes of the files that are read whole before any part is proved.
    pub(crate) fn bytes_read_whole(&self) -> Result<u64, Failure> {
        let sizes = [self.partition_path(), self.srs_path()].map(|path| {
            let size = path.metadata().map(|file| file.len());
            size.map_err(|error| Failure::new(format!("{}: {error}", path.display())))
        });
        sizes.into_iter().sum()
    }

    /// The heads of the keys of all classes, in their order.
    pub(crate) fn key_infos<E: PartitionCurve>(
        &self,
        partition: &Partition<E::ScalarField>,
    ) -> Result<Vec<ProvingKeyInfo>, Failure> {
        let keys = (0..partition.classes().len()).map(|class| {
            let path = ClassKeys::<E>::path(&self.path, class);
            ProvingKeyInfo::of::<E>(&path)
                .map_err(|error| Failure::new(format!("{}: {error}", path.display())))
        });
        keys.collect()
    }

    /// Memory needed for proofs, computed from the headers of the keys.
    pub(crate) fn memory<E: PartitionCurve>(
        &self,
        partition: &Partition<E::ScalarField>,
    ) -> Result<MemoryNeeds, Failure> {
        let keys = self.key_infos::<E>(partition)?;
        Ok(MemoryNeeds::new::<E>(partition, &keys))
    }

    /// The keys to prove with, except those of the classes, which are read one at a time.
    pub(crate) fn index<E: PartitionCurve>(
        &self,
        partition: Partition<E::ScalarField>,
    ) -> Result<(Index<E>, Srs<E>), Failure> {
        let keys = self.class_keys::<E>(&partition)?;
        let path = self.srs_path();
        let srs = Srs::load(&path)
            .map_err(|error| Failure::new(format!("{}: {error}", path.display())))?;
        let index = Index::new(partition, keys, &srs)?;
        if self.verifying_key::<E>()?.digest() != index.verifying_key().digest() {
            return Err(Failure::new(format!(
                "{}: it is not the key of the other files in the folder",
                self.verifying_key_path().display()
            ))
            .help("make the keys again, with `proofmill partition setup`"));
        }
        Ok((index, srs))
    }

    /// The keys to verify the proofs of parts with.
    pub(crate) fn part_verifiers<E: PartitionCurve>(
        &self,
        partition: &Partition<E::ScalarField>,
    ) -> Result<PartVerifiers<E>, Failure> {
        Ok(PartVerifiers::new(
            partition,
            self.class_keys::<E>(partition)?,
        )?)
    }

    /// The verifying keys of all classes, in their order.
    fn class_keys<E: PartitionCurve>(
        &self,
        partition: &Partition<E::ScalarField>,
    ) -> Result<Vec<ClassVerifyingKey<E>>, Failure> {
        (0..partition.classes().len())
            .map(|class| self.class_key::<E>(class))
            .collect()
    }

    /// The key to verify whole proofs with.
    pub(crate) fn verifying_key<E: PartitionCurve>(&self) -> Result<VerifyingKey<E>, Failure> {
        let path = self.verifying_key_path();
        VerifyingKey::load(&path)
            .map_err(|error| Failure::new(format!("{}: {error}", path.display())))
    }

    fn class_key<E: SnarkCurve>(&self, class: usize) -> Result<ClassVerifyingKey<E>, Failure> {
        let path = self.class_key_path(class);
        ClassVerifyingKey::load(&path)
            .map_err(|error| Failure::new(format!("{}: {error}", path.display())))
    }
}
