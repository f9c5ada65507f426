//! The verifier, which stands alone: a key, public inputs and a proof are all it needs.

use std::path::Path as FilePath;

use ark_ff::PrimeField;
use ark_serialize::CanonicalSerialize;
use proofmill_aggregation::files::{
    AggregationFileError, BEGINNING_BYTES, CHECKSUM_BYTES, FileKind, write,
};
use proofmill_aggregation::torus::TorusError;
use proofmill_aggregation::{
    Aggregate, AggregateError, AggregateKind, AggregateVerifyError, Commitment, MirageStatement,
    MirageVerifyingKey, Transcript,
};

use super::statement::Statement;
use super::{PartitionCurve, SHARED};
use crate::public_state::PublicState;
use crate::tree::{ARITY, Path, depth};

/// The most public inputs that a verifying key's file may have.
pub(super) const MAX_PUBLIC_INPUTS: usize = 1 << 20;

const KEY: FileKind = FileKind {
    magic: b"PMILLPVK",
    what: "verifying key for partitioned proofs",
};
const PROOF: FileKind = FileKind {
    magic: b"PMILLPPR",
    what: "partitioned proof",
};
const DIGEST_BYTES: usize = 32;

/// The version of the constraints that keys are for. Keys of another version must not be used: their parts prove
/// other states than this verifier begins with.
const PROTOCOL: u32 = 2;

/// A key to verify with. It has an address for each public input; else its size is constant.
#[derive(Clone, Debug)]
pub struct VerifyingKey<E: PartitionCurve> {
    partition: [u8; DIGEST_BYTES],
    public: PublicState,
    parts: MirageVerifyingKey<E>,
    digest: [u8; DIGEST_BYTES],
}

/// One proof for all parts.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PartitionProof<E: PartitionCurve> {
    pub(super) commitment: Commitment<E>,
    pub(super) root: E::ScalarField,
    pub(super) public_path: Path<E::ScalarField>,
    pub(super) aggregate: Aggregate<E>,
}

/// Bytes that are no key or proof.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum PartitionProofError {
    /// The frame: magic, version, curve, length, checksum; or the file itself.
    #[error(transparent)]
    File(#[from] AggregationFileError),
    /// The commitment to the parts' commitments.
    #[error("the partitioned proof's commitment: {0}")]
    Commitment(#[from] TorusError),
    /// A number that is not below the field's modulus.
    #[error("number {index} of the partitioned proof is not a canonical element of its field")]
    Scalar {
        /// The number of the element, from 0: the root, then the path.
        index: usize,
    },
    /// The aggregate of the parts' proofs.
    #[error("in the partitioned proof: {0}")]
    Aggregate(#[from] AggregateError),
    /// The key of another version of the protocol.
    #[error(
        "the verifying key is not for version {PROTOCOL} of the protocol of circuits in parts: make the keys again"
    )]
    Protocol,
    /// Addresses that no partition has.
    #[error("the addresses of the verifying key's public inputs are of no partition: corrupt")]
    Addresses,
    /// The key of another protocol.
    #[error(
        "the verifying key's parts share {found} public inputs, where those of a partition share {SHARED}"
    )]
    SharedInputs {
        /// The number there is.
        found: usize,
    },
}

/// The refusal of a proof.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum VerifyError {
    /// The number of public inputs is not the key's.
    #[error("{found} public inputs: the verifying key is for {expected}")]
    InputCount {
        /// The key's.
        expected: usize,
        /// The number there is.
        found: usize,
    },
    /// The tree of states does not begin with these public inputs.
    #[error("the proof is not one of these public inputs under this key")]
    PublicState,
    /// The parts' proofs do not hold.
    #[error("the proof does not hold")]
    Parts,
}

/// Bytes that are no public inputs of a key's circuit.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum StatementError {
    /// The length is not that of the public inputs.
    #[error("{found} bytes of public inputs: the circuit has {inputs}, {expected} bytes")]
    Length {
        /// The public inputs of the circuit.
        inputs: usize,
        /// The bytes that they take.
        expected: usize,
        /// The bytes there are.
        found: usize,
    },
    /// A number that is not below the field's modulus.
    #[error("public input {0} is not below the field's modulus")]
    Input(usize),
}

// === impl VerifyingKey ===

impl<E: PartitionCurve> VerifyingKey<E> {
    /// Combines the [digest](crate::Partition::digest) of a partition, its public state, and the key of its parts.
    /// `None` if the parts' key does not share the inputs that a partition shares.
    pub(super) fn new(
        partition: [u8; DIGEST_BYTES],
        public: PublicState,
        parts: MirageVerifyingKey<E>,
    ) -> Option<Self> {
        if parts.shared_inputs() != SHARED || public.depth() != depth(parts.count() + 1) {
            return None;
        }
        let mut transcript = Transcript::new::<E>("partition key");
        transcript.absorb_number("protocol", PROTOCOL.into());
        transcript.absorb("partition", &partition);
        let addresses = public.addresses().iter();
        let addresses: Vec<u8> = addresses
            .flat_map(|address| address.to_le_bytes())
            .collect();
        transcript.absorb("addresses of public inputs", &addresses);
        transcript.absorb("key of the parts", &parts.digest());
        Some(Self {
            digest: transcript.digest("digest"),
            partition,
            public,
            parts,
        })
    }

    /// SHA-256 over all of the key.
    pub const fn digest(&self) -> [u8; DIGEST_BYTES] {
        self.digest
    }

    /// The digest of the partition that it is for.
    pub const fn partition(&self) -> [u8; DIGEST_BYTES] {
        self.partition
    }

    /// The number of parts.
    pub const fn num_parts(&self) -> usize {
        self.parts.count()
    }

    /// The number of public inputs.
    pub const fn num_public_inputs(&self) -> usize {
        self.public.num_public_inputs()
    }

    /// The bytes of public inputs, each in 32, little-endian.
    pub fn encode_statement(public_inputs: &[E::ScalarField]) -> Vec<u8> {
        let mut bytes = Vec::new();
        write_scalars(public_inputs, &mut bytes);
        bytes
    }

    /// Decodes public inputs from untrusted bytes.
    ///
    /// # Errors
    ///
    /// [`StatementError`] unless they are as many canonical numbers as the circuit has public inputs.
    pub fn decode_statement(&self, bytes: &[u8]) -> Result<Vec<E::ScalarField>, StatementError> {
        let inputs = self.num_public_inputs();
        let size = E::ScalarField::default().compressed_size();
        let (expected, found) = (inputs * size, bytes.len());
        if expected != found {
            return Err(StatementError::Length {
                inputs,
                expected,
                found,
            });
        }
        read_scalars(bytes).map_err(StatementError::Input)
    }

    /// Checks a proof.
    ///
    /// # Errors
    ///
    /// [`VerifyError`] unless the proof shows that the circuit holds for these public inputs.
    pub fn verify(
        &self,
        public_inputs: &[E::ScalarField],
        proof: &PartitionProof<E>,
    ) -> Result<(), VerifyError> {
        let (expected, found) = (self.num_public_inputs(), public_inputs.len());
        if expected != found {
            return Err(VerifyError::InputCount { expected, found });
        }
        let statement = self.statement(public_inputs, &proof.commitment);
        let (root, path) = (proof.root, &proof.public_path);
        if !self
            .public
            .holds(public_inputs, &statement.challenges(), root, path)
        {
            return Err(VerifyError::PublicState);
        }
        let inputs = statement.shared(root);
        let of_parts = MirageStatement {
            context: &statement.context(root, path),
            inputs: &inputs,
            commitment: &proof.commitment,
        };
        self.parts
            .verify(of_parts, &proof.aggregate)
            .map_err(|_: AggregateVerifyError| VerifyError::Parts)
    }

    pub(super) fn statement(
        &self,
        public_inputs: &[E::ScalarField],
        commitment: &Commitment<E>,
    ) -> Statement<E::ScalarField> {
        Statement::new(&self.digest, self.num_parts(), public_inputs, commitment)
    }

    /// The content of the key's file: after magic (`PMILLPVK`), version and curve the version of the protocol, 2 (4
    /// bytes, little-endian); the partition's digest; the number of public inputs and the number of bytes of the parts' key, 4 bytes each, little-endian; an address of 4
    /// bytes for each public input; the content of the file of the parts' key; the SHA-256 of all that.
    pub fn to_bytes(&self) -> Vec<u8> {
        let mut bytes = KEY.begin::<E>();
        bytes.extend(PROTOCOL.to_le_bytes());
        bytes.extend(self.partition);
        let parts = self.parts.to_bytes();
        bytes.extend((self.num_public_inputs() as u32).to_le_bytes());
        bytes.extend((parts.len() as u32).to_le_bytes());
        let addresses = self.public.addresses().iter();
        bytes.extend(addresses.flat_map(|address| address.to_le_bytes()));
        bytes.extend(parts);
        KEY.end(bytes)
    }

    /// Decodes an untrusted key. Whether it is for the right circuit must be ensured by trust in its maker, or by
    /// its [digest](Self::digest).
    ///
    /// # Errors
    ///
    /// [`PartitionProofError`] for any other bytes.
    pub fn from_bytes(bytes: &[u8]) -> Result<Self, PartitionProofError> {
        const HEAD: usize = 4 + DIGEST_BYTES + 8;
        let head = KEY.after_beginning::<E>(bytes, HEAD)?;
        let (protocol, head) = head.split_at(4);
        if number(protocol) != PROTOCOL as usize {
            return Err(PartitionProofError::Protocol);
        }
        let (partition, rest) = head.split_at(DIGEST_BYTES);
        let (inputs, parts) = (number(&rest[..4]), number(&rest[4..8]));
        if inputs > MAX_PUBLIC_INPUTS {
            return Err(AggregationFileError::Head(KEY.what).into());
        }
        let expected = BEGINNING_BYTES + HEAD + 4 * inputs + CHECKSUM_BYTES;
        let content = KEY.checked(bytes, expected as u64 + parts as u64)?;
        let (addresses, parts) = content[BEGINNING_BYTES + HEAD..].split_at(4 * inputs);
        let addresses = addresses.chunks_exact(4).map(|four| number(four) as u32);
        let parts = MirageVerifyingKey::from_bytes(parts)?;
        let public = PublicState::new(addresses.collect(), parts.count())
            .ok_or(PartitionProofError::Addresses)?;
        let partition = partition.try_into().expect("as many bytes as a digest");
        let found = parts.shared_inputs();
        Self::new(partition, public, parts).ok_or(PartitionProofError::SharedInputs { found })
    }

    /// Writes the key to a file, whole or not at all.
    ///
    /// # Errors
    ///
    /// [`PartitionProofError::File`] if the file system refuses.
    pub fn save(&self, path: &FilePath) -> Result<(), PartitionProofError> {
        Ok(write(path, &self.to_bytes())?)
    }

    /// Reads an untrusted key.
    ///
    /// # Errors
    ///
    /// As for [`from_bytes`](Self::from_bytes), and if there is no such file.
    pub fn load(path: &FilePath) -> Result<Self, PartitionProofError> {
        let most = BEGINNING_BYTES + 4 + DIGEST_BYTES + 8 + 4 * MAX_PUBLIC_INPUTS + CHECKSUM_BYTES;
        let of_parts = MirageVerifyingKey::<E>::encoded_size(SHARED);
        Self::from_bytes(&KEY.read(path, (most + of_parts) as u64)?)
    }
}

// === impl PartitionProof ===

impl<E: PartitionCurve> PartitionProof<E> {
    /// Bytes of a proof for `parts` parts.
    pub fn encoded_size(parts: usize) -> usize {
        let aggregate = Aggregate::<E>::encoded_size(AggregateKind::Mirage, parts.max(1));
        Self::bytes_before_aggregate(depth(parts.saturating_add(1))) + aggregate + CHECKSUM_BYTES
    }

    fn bytes_before_aggregate(depth: usize) -> usize {
        let scalar = E::ScalarField::default().compressed_size();
        BEGINNING_BYTES + 4 + Commitment::<E>::encoded_size() + (1 + ARITY * depth) * scalar
    }

    /// The proof's only encoding: after magic (`PMILLPPR`), version and curve the levels of the tree of states (4
    /// bytes, little-endian); the commitment to the parts' commitments, compressed; the root and the path of
    /// the public state, four children for each level from below, each 32 bytes, little-endian; the content of
    /// the aggregate's file; the SHA-256 of all that.
    pub fn to_bytes(&self) -> Vec<u8> {
        let mut bytes = PROOF.begin::<E>();
        let children = self.public_path.children();
        bytes.extend((children.len() as u32).to_le_bytes());
        bytes.extend(self.commitment.to_bytes());
        write_scalars([&self.root], &mut bytes);
        write_scalars(children.as_flattened(), &mut bytes);
        bytes.extend(self.aggregate.to_bytes());
        PROOF.end(bytes)
    }

    /// Decodes an untrusted proof.
    ///
    /// # Errors
    ///
    /// [`PartitionProofError`] for any bytes that [`to_bytes`](Self::to_bytes) does not make.
    pub fn from_bytes(bytes: &[u8]) -> Result<Self, PartitionProofError> {
        let head = PROOF.after_beginning::<E>(bytes, 4)?;
        let levels = number(&head[..4]);
        if !(1..=usize::BITS as usize / 2).contains(&levels) {
            return Err(AggregationFileError::Head(PROOF.what).into());
        }
        let before = Self::bytes_before_aggregate(levels);
        if bytes.len() < before + CHECKSUM_BYTES {
            let least = (before + CHECKSUM_BYTES) as u64;
            return Err(PROOF.length(least, bytes.len() as u64).into());
        }
        let content = PROOF.checked(bytes, bytes.len() as u64)?;
        let (of_tree, aggregate) = content.split_at(before);
        let (commitment, scalars) =
            of_tree[BEGINNING_BYTES + 4..].split_at(Commitment::<E>::encoded_size());
        let scalars: Vec<E::ScalarField> =
            read_scalars(scalars).map_err(|index| PartitionProofError::Scalar { index })?;
        let (root, children) = scalars.split_first().expect("as many as were counted");
        let (children, _) = children.as_chunks();
        Ok(Self {
            commitment: Commitment::from_bytes(commitment)?,
            root: *root,
            public_path: Path::new(children.to_vec()),
            aggregate: Aggregate::from_bytes(aggregate)?,
        })
    }

    /// Writes the proof to a file, whole or not at all.
    ///
    /// # Errors
    ///
    /// [`PartitionProofError::File`] if the file system refuses.
    pub fn save(&self, path: &FilePath) -> Result<(), PartitionProofError> {
        Ok(write(path, &self.to_bytes())?)
    }

    /// Reads an untrusted proof.
    ///
    /// # Errors
    ///
    /// As for [`from_bytes`](Self::from_bytes), and if there is no such file.
    pub fn load(path: &FilePath) -> Result<Self, PartitionProofError> {
        let most = Self::encoded_size(proofmill_aggregation::MAX_CAPACITY);
        Self::from_bytes(&PROOF.read(path, most as u64)?)
    }
}

fn write_scalars<'a, F: PrimeField>(scalars: impl IntoIterator<Item = &'a F>, bytes: &mut Vec<u8>) {
    for scalar in scalars {
        let written = scalar.serialize_compressed(&mut *bytes);
        written.expect("writing to a vector does not fail");
    }
}

/// The scalars that fill the bytes. The error is the number, from 0, of the first that is not canonical.
fn read_scalars<F: PrimeField>(bytes: &[u8]) -> Result<Vec<F>, usize> {
    let each = bytes.chunks_exact(F::ZERO.compressed_size()).enumerate();
    each.map(|(index, bytes)| F::deserialize_compressed(bytes).map_err(|_| index))
        .collect()
}

/// A number of four bytes.
fn number(bytes: &[u8]) -> usize {
    let four = bytes.try_into().expect("four bytes");
    u32::from_le_bytes(four) as usize
}
