//! The key to prove with: a partition, the keys of its classes, and what aggregation needs of both.

use std::ops::Range;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use ark_ec::{AffineRepr, CurveGroup};
use proofmill_aggregation::{MirageClass, MirageIndex, MirageParts, Srs};
use proofmill_groth16::mirage::{
    CommittedR1csError, PreparedInputs, PreparedVerifyingKey, ProvingKey, ResidentKey,
    VerifyingKey as ClassVerifyingKey,
};
use proofmill_groth16::{InsecureKey, KeyError, PointCheck, ProveError, ResidentForm, VerifyError};
use proofmill_kernels::Poseidon2Field;

use super::memory::{KeyForm, PREPARED_PARTS_MIN};
use super::verifier::{MAX_PUBLIC_INPUTS, VerifyingKey};
use super::{PartitionCurve, SHARED};
use crate::Partition;

/// A partition with the keys that its proofs are made and verified with.
#[derive(Debug)]
pub struct Index<E: PartitionCurve> {
    partition: Partition<E::ScalarField>,
    classes: Vec<PreparedVerifyingKey<E>>,
    parts: MirageIndex<E>,
    verifying_key: VerifyingKey<E>,
}

/// The keys to verify the proofs of parts with: what [`Index`] has of them, without what the aggregation needs.
#[derive(Debug)]
pub struct PartVerifiers<E: PartitionCurve> {
    classes: Vec<PreparedVerifyingKey<E>>,
    parts: Vec<PartInputs<E>>,
}

/// Inputs that the partition fixes for a part.
#[derive(Clone, Copy, Debug)]
struct PartInputs<E: PartitionCurve> {
    class: u32,
    /// The sum of the points of fixed inputs, and that of the leading one.
    fixed: E::G1Affine,
    /// The sum of the points of addresses, which are in the instance times β, and that of β.
    of_beta: E::G1Affine,
}

/// The proving keys of all classes.
#[derive(Debug)]
pub enum ClassKeys<E: PartitionCurve> {
    /// Keys that stay in memory, in the order of classes.
    Held(Vec<Arc<ResidentKey<E>>>),
    /// Keys in a folder. Each key is read before the parts of its class, and dropped after them.
    Files {
        /// The folder, with a file `class-0.pk` and so on.
        folder: PathBuf,
        /// The form in which a key is held while it is used; of a class with few parts it is never prepared.
        residency: ResidentForm,
    },
    /// Keys in a folder like those of `Files`, whose points stay in the files: each proof reads its whole key again.
    Mapped {
        /// The folder.
        folder: PathBuf,
    },
}

/// The reason why keys do not fit a partition.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum IndexError {
    /// There are more public inputs than a verifying key may have.
    #[error("{0} public inputs: a verifying key has {MAX_PUBLIC_INPUTS} at most; hash them")]
    PublicInputs(usize),
    /// The number of keys is not the number of classes.
    #[error("{found} keys for {expected} classes")]
    Classes {
        /// The number of classes.
        expected: usize,
        /// The number of keys.
        found: usize,
    },
    /// A key that is for other constraints.
    #[error(
        "the key of class {class} ({name}) is for another circuit: make keys of this partition"
    )]
    OtherCircuit {
        /// The class, from 0.
        class: usize,
        /// The class's name.
        name: String,
    },
    /// Keys of two setups.
    #[error("the keys of classes 0 and {class} are of two setups: make all keys in one")]
    OtherSetup {
        /// The class, from 0.
        class: usize,
    },
    /// Committed variables that a commitment would not bind.
    #[error("class {class}: {source}")]
    Unbound {
        /// The class, from 0.
        class: usize,
        /// The reason.
        source: CommittedR1csError,
    },
    /// A key under which anybody could make proofs.
    #[error("the key of class {class}: {source}")]
    Insecure {
        /// The class, from 0.
        class: usize,
        /// The weakness.
        source: InsecureKey,
    },
    /// The aggregation's key could not be made.
    #[error(transparent)]
    Aggregation(#[from] proofmill_aggregation::IndexError),
    /// A proving key that could not be read.
    #[error("the key of class {class}: {source}")]
    Key {
        /// The class, from 0.
        class: usize,
        /// The reason.
        source: KeyError,
    },
    /// A proving key that could not be held.
    #[error("the key of class {class}: {source}")]
    Resident {
        /// The class, from 0.
        class: usize,
        /// The reason.
        source: ProveError,
    },
}

// === impl Index ===

impl<E: PartitionCurve> Index<E> {
    /// Makes the proving and verifying keys (Agg.G of figure 6, section 6.3). A verifier without trust in another's
    /// key makes its own from the same partition, keys and reference string, and compares digests.
    ///
    /// # Errors
    ///
    /// [`IndexError`] if the partition, keys and reference string do not belong together.
    pub fn new(
        partition: Partition<E::ScalarField>,
        keys: Vec<ClassVerifyingKey<E>>,
        srs: &Srs<E>,
    ) -> Result<Self, IndexError> {
        if partition.num_public_inputs() > MAX_PUBLIC_INPUTS {
            return Err(IndexError::PublicInputs(partition.num_public_inputs()));
        }
        check_keys(&partition, &keys)?;
        let parts = MirageIndex::new(srs, mirage_parts(&partition, &keys))?;
        let verifying_key = VerifyingKey::new(
            partition.digest(),
            partition.public_state(),
            parts.verifying_key().clone(),
        );
        Ok(Self {
            partition,
            classes: keys.into_iter().map(PreparedVerifyingKey::from).collect(),
            parts,
            verifying_key: verifying_key.expect("parts share the inputs of a partition"),
        })
    }

    /// The partition.
    pub const fn partition(&self) -> &Partition<E::ScalarField> {
        &self.partition
    }

    /// The key to verify with.
    pub const fn verifying_key(&self) -> &VerifyingKey<E> {
        &self.verifying_key
    }

    /// The key with which the parts' proofs are aggregated.
    pub const fn parts(&self) -> &MirageIndex<E> {
        &self.parts
    }

    /// The verifying key of a part's own proof, and the inputs that the partition fixes for the part, addresses times β.
    pub(super) fn verifier_of(
        &self,
        part: usize,
        beta: E::ScalarField,
    ) -> (&PreparedVerifyingKey<E>, PreparedInputs<E>) {
        let parts = self.parts.parts();
        let inputs = PartInputs {
            class: parts.class_of[part],
            fixed: parts.inputs[0][part],
            of_beta: parts.inputs[SHARED][part],
        };
        let key = &self.classes[inputs.class as usize];
        (key, inputs.prepared(key, beta))
    }
}

// === impl PartVerifiers ===

impl<E: PartitionCurve> PartVerifiers<E> {
    /// The verifiers of a partition's parts, with the keys of its classes.
    ///
    /// # Errors
    ///
    /// [`IndexError`] if the partition and the keys do not belong together.
    pub fn new(
        partition: &Partition<E::ScalarField>,
        keys: Vec<ClassVerifyingKey<E>>,
    ) -> Result<Self, IndexError> {
        check_keys(partition, &keys)?;
        let parts = 0..partition.num_parts();
        Ok(Self {
            parts: parts
                .map(|part| PartInputs::of(partition, &keys, part))
                .collect(),
            classes: keys.into_iter().map(PreparedVerifyingKey::from).collect(),
        })
    }

    /// The verifying key of a part's own proof and its fixed inputs, as [`Index::verifier_of`]; `None` if there is no
    /// such part.
    pub(super) fn of(
        &self,
        part: usize,
        beta: E::ScalarField,
    ) -> Option<(&PreparedVerifyingKey<E>, PreparedInputs<E>)> {
        let inputs = self.parts.get(part)?;
        let key = &self.classes[inputs.class as usize];
        Some((key, inputs.prepared(key, beta)))
    }
}

// === impl PartInputs ===

impl<E: PartitionCurve> PartInputs<E> {
    /// Those of a part, which must exist.
    fn of(
        partition: &Partition<E::ScalarField>,
        keys: &[ClassVerifyingKey<E>],
        part: usize,
    ) -> Self {
        let class = partition.class_of(part).expect("there is such a part");
        let preprocessed = partition.preprocessed(part).expect("there is such a part");
        let key = &keys[class];
        let prepared = |range: Range<usize>| {
            let first = SHARED + range.start;
            let prepared = PreparedInputs::new(key, first, &preprocessed[range]);
            let prepared: Result<_, VerifyError> = prepared;
            prepared
                .expect("the key has as many inputs as the class")
                .point
        };
        let instance = &key.plain.instance;
        // Addresses are in the instance times β, so their points are added to that of β.
        let addresses = partition.classes()[class].addresses();
        let before = prepared(0..addresses.start);
        let after = prepared(addresses.end..preprocessed.len());
        let fixed = before.into_group() + after + instance[0];
        let of_beta = prepared(addresses).into_group() + instance[SHARED];
        Self {
            class: class as u32,
            fixed: fixed.into_affine(),
            of_beta: of_beta.into_affine(),
        }
    }

    /// The inputs for this β.
    fn prepared(&self, key: &PreparedVerifyingKey<E>, beta: E::ScalarField) -> PreparedInputs<E> {
        let instance = &key.vk().plain.instance;
        // The points here have the leading one and β too.
        let fixed = self.fixed.into_group() - instance[0];
        let addresses = self.of_beta.into_group() - instance[SHARED];
        let point = fixed + addresses * beta;
        PreparedInputs {
            first: SHARED,
            count: instance.len() - 1 - SHARED,
            point: point.into_affine(),
        }
    }
}

/// An error unless there is a key for each class.
pub(super) fn require_number<F: Poseidon2Field>(
    partition: &Partition<F>,
    found: usize,
) -> Result<(), IndexError> {
    let expected = partition.classes().len();
    match found == expected {
        true => Ok(()),
        false => Err(IndexError::Classes { expected, found }),
    }
}

fn check_keys<E: PartitionCurve>(
    partition: &Partition<E::ScalarField>,
    keys: &[ClassVerifyingKey<E>],
) -> Result<(), IndexError> {
    require_number(partition, keys.len())?;
    let classes = partition.classes();
    for (number, (class, key)) in classes.iter().zip(keys).enumerate() {
        let system = class
            .committed_system()
            .map_err(|source| IndexError::Unbound {
                class: number,
                source,
            })?;
        let is_of_class = key.plain.circuit == class.digest()
            && key.committed == system.committed()
            && key.plain.instance.len() == class.system().num_instance();
        if !is_of_class {
            return Err(IndexError::OtherCircuit {
                class: number,
                name: class.name().to_owned(),
            });
        }
        let shared = |key: &ClassVerifyingKey<E>| (key.plain.alpha_g1, key.plain.beta_g2);
        if shared(key) != shared(&keys[0]) {
            return Err(IndexError::OtherSetup { class: number });
        }
        key.require_secure()
            .map_err(|source| IndexError::Insecure {
                class: number,
                source,
            })?;
    }
    Ok(())
}

fn mirage_parts<E: PartitionCurve>(
    partition: &Partition<E::ScalarField>,
    keys: &[ClassVerifyingKey<E>],
) -> MirageParts<E> {
    let count = partition.num_parts();
    let mut class_of = Vec::with_capacity(count);
    let mut inputs = vec![Vec::new(); 1 + SHARED];
    for part in 0..count {
        let of_part = PartInputs::of(partition, keys, part);
        let instance = &keys[of_part.class as usize].plain.instance;
        inputs[0].push(of_part.fixed);
        for shared in 1..SHARED {
            inputs[shared].push(instance[shared]);
        }
        inputs[SHARED].push(of_part.of_beta);
        class_of.push(of_part.class);
    }
    let classes = keys.iter().map(|key| MirageClass {
        gamma: key.plain.gamma_g2,
        delta: key.plain.delta_g2,
        eta: key.eta_g2,
    });
    MirageParts {
        alpha: keys[0].plain.alpha_g1,
        beta: keys[0].plain.beta_g2,
        classes: classes.collect(),
        class_of,
        inputs,
    }
}

// === impl ClassKeys ===

impl<E: PartitionCurve> ClassKeys<E> {
    /// The file of a class's key in a folder.
    pub fn path(folder: &Path, class: usize) -> PathBuf {
        folder.join(format!("class-{class}.pk"))
    }

    /// The keys in a folder, each held in this form while it is used.
    pub fn in_folder(folder: PathBuf, form: KeyForm) -> Self {
        let residency = match form {
            KeyForm::Mapped => return Self::Mapped { folder },
            KeyForm::Plain => ResidentForm::Plain,
            KeyForm::Prepared { memory_limit } => ResidentForm::Prepared {
                memory_limit: usize::try_from(memory_limit).unwrap_or(usize::MAX),
            },
        };
        Self::Files { folder, residency }
    }

    /// Holds all keys, in the order of classes.
    ///
    /// # Errors
    ///
    /// [`IndexError::Resident`] if one is for another class.
    pub fn hold(
        partition: &Partition<E::ScalarField>,
        keys: Vec<ProvingKey<E>>,
        residency: ResidentForm,
    ) -> Result<Self, IndexError> {
        require_number(partition, keys.len())?;
        let keys = keys.into_iter().enumerate();
        let held = keys.map(|(class, key)| resident(partition, class, key, residency));
        Ok(Self::Held(held.collect::<Result<_, _>>()?))
    }

    /// Reads all keys, and holds them from now on.
    ///
    /// # Errors
    ///
    /// As for proofs: [`IndexError::Key`], [`IndexError::Resident`].
    pub fn read_all(&self, partition: &Partition<E::ScalarField>) -> Result<Self, IndexError> {
        let classes = 0..partition.classes().len();
        let keys = classes.map(|class| self.key(partition, class));
        Ok(Self::Held(keys.collect::<Result<_, _>>()?))
    }

    /// The bytes that keys take in memory between proofs: none of keys in files.
    pub fn bytes(&self) -> usize {
        match self {
            Self::Held(keys) => keys.iter().map(|key| key.bytes()).sum(),
            Self::Files { .. } | Self::Mapped { .. } => 0,
        }
    }

    /// The key of a class.
    ///
    /// # Errors
    ///
    /// [`IndexError::Key`], [`IndexError::Resident`]; [`IndexError::Classes`] if fewer are held.
    pub(super) fn key(
        &self,
        partition: &Partition<E::ScalarField>,
        class: usize,
    ) -> Result<Arc<ResidentKey<E>>, IndexError> {
        match self {
            Self::Held(keys) => keys.get(class).cloned().ok_or(IndexError::Classes {
                expected: partition.classes().len(),
                found: keys.len(),
            }),
            Self::Files { folder, residency } => {
                let key = ProvingKey::load(&Self::path(folder, class), PointCheck::Skip)
                    .map_err(|source| IndexError::Key { class, source })?;
                let is_large = partition.parts_of_classes()[class] >= PREPARED_PARTS_MIN;
                let residency = match residency {
                    ResidentForm::Prepared { .. } if !is_large => ResidentForm::Plain,
                    residency => *residency,
                };
                resident(partition, class, key, residency)
            }
            Self::Mapped { folder } => {
                let system = Arc::clone(partition.classes()[class].system());
                let key = ResidentKey::map(&Self::path(folder, class), system);
                let key = key.map_err(|source| IndexError::Key { class, source })?;
                Ok(Arc::new(key))
            }
        }
    }
}

fn resident<E: PartitionCurve>(
    partition: &Partition<E::ScalarField>,
    class: usize,
    key: ProvingKey<E>,
    residency: ResidentForm,
) -> Result<Arc<ResidentKey<E>>, IndexError> {
    let system = Arc::clone(partition.classes()[class].system());
    let resident = ResidentKey::new(key, system, residency);
    let resident = resident.map_err(|source| IndexError::Resident { class, source })?;
    Ok(Arc::new(resident))
}
