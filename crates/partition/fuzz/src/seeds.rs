//! Valid inputs to start from.

use std::io::Cursor;
use std::ops::ControlFlow;
use std::path::PathBuf;
use std::sync::atomic::{AtomicUsize, Ordering};

use ark_bn254::Fr;
use ark_relations::gr1cs::{LinearCombination, Variable};
use ark_std::rand::{SeedableRng, rngs::StdRng};
use proofmill_aggregation::Srs;
use proofmill_groth16::mirage::{CommittedR1cs, ProvingKey, Setup};
use proofmill_groth16::{Bn254, ResidentForm};
use proofmill_partition::proof::{
    ClassKeys, Index, Journal, PartitionProof, Prover, Step, VerifyingKey,
};
use proofmill_partition::tree::{Leaf, Tree};
use proofmill_partition::{Part, PartTrace, Partition, PartitionError, PartitionedCircuit};
use proofmill_r1cs::{R1cs, write_precompiled};
use sha2::{Digest, Sha256};

/// A proof of three parts, with its verifying key and public inputs.
pub struct Proved {
    /// The verifying key.
    pub key: VerifyingKey<Bn254>,
    /// The public inputs.
    pub public_inputs: Vec<Fr>,
    /// The proof.
    pub proof: PartitionProof<Bn254>,
    /// The content of the journal that it was made with.
    pub journal: Vec<u8>,
}

/// The modulus of BN254's scalar field, little-endian.
pub const MODULUS: [u8; 32] = [
    0x01, 0x00, 0x00, 0xf0, 0x93, 0xf5, 0xe1, 0x43, 0x91, 0x70, 0xb9, 0x79, 0x48, 0xe8, 0x33, 0x28,
    0x5d, 0x58, 0x81, 0x81, 0xb6, 0x45, 0x50, 0xb8, 0x29, 0xa0, 0x31, 0xe1, 0x72, 0x4e, 0x64, 0x30,
];

/// Position of the leaf whose path is among the shares of parts.
pub const POSITION: usize = 2;

/// Each part squares the value of the part before, and adds it and a constant to a cell; the public input is
/// the first part's value. The first part has a table of one row, which each later part looks up, and puts its square
/// and takes it back.
#[derive(Clone, Copy, Debug)]
pub struct Squares(pub usize);

impl PartitionedCircuit<Fr> for Squares {
    fn num_parts(&self) -> usize {
        self.0
    }

    fn class(&self, part: usize) -> &'static str {
        if part == 0 { "first" } else { "later" }
    }

    fn num_public_inputs(&self) -> usize {
        1
    }

    fn public_inputs(&self) -> Vec<Fr> {
        vec![Fr::from(3u64)]
    }

    fn synthesize(&self, part: usize, wires: &mut Part<'_, Fr>) -> Result<(), PartitionError> {
        let x = match part {
            0 => wires.public_input(0)?,
            _ => wires.get(("square", part - 1))?,
        };
        let square = wires.witness(x.value * x.value)?;
        let of = |variable: Variable| move || LinearCombination::from(variable);
        let (x, made) = (x.variable, square.variable);
        wires.cs().enforce_r1cs_constraint(of(x), of(x), of(made))?;
        wires.set(("square", part), square)?;
        let constant = wires.constant(Fr::from(part as u64))?;
        if part > 0 {
            wires.load("cell")?;
            let row = wires.witness(Fr::from(9u64))?;
            wires.take(row)?;
        } else {
            let times = wires.witness(Fr::from(self.0 as u64 - 1))?;
            let row = || LinearCombination(vec![(Fr::from(9u64), Variable::One)]);
            wires.put_sum_times(Fr::from(9u64), row, times)?;
            wires.take(square)?;
            wires.put(square)?;
        }
        wires.store("cell", constant)
    }
}

/// The files of two circuits in parts, and of partitions with small systems, so that more of the random changes
/// are outside the systems.
pub fn decode() -> Vec<Vec<u8>> {
    let circuits = [1, 3].map(|parts| {
        let partition = Partition::new(&Squares(parts)).expect("a circuit in parts");
        partition.to_bytes()
    });
    let small = [
        small(0, &[(0, &[], &[0, 0, 0])]),
        small(2, &[(1, &[6], &[0, 0]), (2, &[8, 7], &[1, 0])]),
    ];
    circuits.into_iter().chain(small).collect()
}

// === impl Proved ===

impl Proved {
    /// The same at every call.
    pub fn new() -> Self {
        let rng = &mut StdRng::seed_from_u64(30);
        let circuit = Squares(3);
        let partition = Partition::new(&circuit).expect("a circuit in parts");
        let srs = Srs::<Bn254>::setup(4, rng).expect("a capacity");
        let setup = Setup::new(rng);
        let keys = partition.classes().iter().map(|class| {
            let system = class.committed_system().expect("bound");
            setup.key(system, rng).expect("a small system")
        });
        let keys: Vec<_> = keys.collect();
        let of_classes = keys.iter().map(ProvingKey::vk).collect();
        let keys = ClassKeys::hold(&partition, keys, ResidentForm::Plain).expect("its own keys");
        let index = Index::new(partition, of_classes, &srs).expect("its own keys");
        let prover = Prover {
            index: &index,
            srs: &srs,
            keys: &keys,
        };
        let path = temporary("journal");
        let _ = std::fs::remove_file(&path);
        let mut journal = Journal::open(&path, rng).expect("a new journal");
        let go_on = |_: Step| ControlFlow::Continue(());
        let proof = prover.prove(&circuit, &mut journal, rng, go_on);
        let bytes = std::fs::read(&path).expect("a journal");
        journal.remove().expect("removed");
        Self {
            key: index.verifying_key().clone(),
            public_inputs: circuit.public_inputs(),
            proof: proof.expect("the statement is true"),
            journal: bytes,
        }
    }
}

impl Default for Proved {
    fn default() -> Self {
        Self::new()
    }
}

/// A proof and a verifying key.
pub fn proof() -> Vec<Vec<u8>> {
    let proved = Proved::new();
    vec![proved.proof.to_bytes(), proved.key.to_bytes()]
}

/// Journals: whole, with half of the commitments, and without a record.
pub fn journal() -> Vec<Vec<u8>> {
    let whole = Proved::new().journal;
    let cut = [whole.len(), 128 + 53 + 20, 128];
    cut.into_iter().map(|end| whole[..end].to_vec()).collect()
}

/// Public inputs in JSON and in bytes.
pub fn statement() -> Vec<Vec<u8>> {
    let json = [r#"["3"]"#, r#"["3", "12345678901234567890"]"#, "[]"];
    let json = json.map(|text| text.as_bytes().to_vec());
    let bytes = VerifyingKey::<Bn254>::encode_statement(&[Fr::from(3u64)]);
    json.into_iter().chain([bytes]).collect()
}

/// Messages between processes about one part: trace shares with and without entries and transfers, and a tree path.
pub fn share() -> Vec<Vec<u8>> {
    let trace = |entries: u64, transfers: u64| PartTrace::<Fr> {
        by_part: (0..entries).map(Fr::from).collect(),
        by_address: (0..entries).map(|i| Fr::from(1000 + i)).collect(),
        transfers: (0..transfers).map(|i| Fr::from(2000 + i)).collect(),
    };
    let path = Tree::new(&leaves()).path(POSITION).to_bytes();
    let traces = [trace(0, 0), trace(3, 0), trace(2, 3)];
    let traces = traces.iter().map(PartTrace::to_bytes);
    traces.chain([path]).collect()
}

/// States between parts.
pub fn leaves() -> Vec<Leaf<Fr>> {
    let leaf = |i: u64| Leaf {
        salt: Fr::from(10 * i),
        value: Fr::from(10 * i + 1),
        traces: Fr::from(10 * i + 2),
        multiset: Fr::from(10 * i + 3),
    };
    (0..6).map(leaf).collect()
}

/// Keys of a small system, the same at every call.
pub fn keys() -> Vec<Vec<u8>> {
    let rng = &mut StdRng::seed_from_u64(31);
    let system = smallest_system();
    let system = CommittedR1cs::new(&system, 1).expect("bound");
    let key = Setup::<Bn254>::new(rng)
        .key(system, rng)
        .expect("a small system");
    vec![key.to_bytes(), key.vk().to_bytes()]
}

/// A few constraints with a committed variable.
pub fn smallest_system() -> R1cs<Fr> {
    let one = Fr::from(1u64);
    // The public input is the square of the committed variable, which is that of another.
    let rows = [
        vec![vec![(one, 2)], vec![(one, 3)]],
        vec![vec![(one, 2)], vec![(one, 3)]],
        vec![vec![(one, 1)], vec![(one, 2)]],
    ];
    R1cs::from_rows(2, 2, rows).expect("a system")
}

/// A file of this process, each name another.
pub fn temporary(name: &str) -> PathBuf {
    let process = std::process::id();
    static COUNT: AtomicUsize = AtomicUsize::new(0);
    let count = COUNT.fetch_add(1, Ordering::Relaxed);
    std::env::temp_dir().join(format!("proofmill-partition-{process}-{count}-{name}"))
}

/// A file written from the description of the format alone, without the crate's encoder. Each class has a number of
/// accesses, bytes of transfers and, for each of its parts, one constant; parts are in the order of their classes.
/// Each access has a separate address.
fn small(public_inputs: u32, classes: &[(u32, &[u8], &[u64])]) -> Vec<u8> {
    let parts: u32 = classes.iter().map(|(.., parts)| parts.len() as u32).sum();
    let made: u32 = classes
        .iter()
        .map(|(accesses, _, parts)| accesses * parts.len() as u32)
        .sum();
    let mut bytes = b"PMILLPTN".to_vec();
    bytes.extend(2u32.to_le_bytes());
    bytes.extend(MODULUS);
    for number in [
        parts,
        classes.len() as u32,
        public_inputs,
        public_inputs + made,
    ] {
        bytes.extend(number.to_le_bytes());
    }
    let depth = if parts < 4 { 1 } else { 2 };
    for (number, (accesses, transfers, _)) in classes.iter().enumerate() {
        let instance = 1 + 3 + 4 * depth + 2 + 2 * *accesses as usize + 1;
        let one = Fr::from(1u64);
        let rows = [
            vec![(one, 0)],
            vec![(-one, 1)],
            vec![(Fr::from(5u64), instance)],
        ];
        let rows = rows.map(|row| vec![row]);
        let with_times = transfers.iter().filter(|kind| **kind == 7).count();
        let witness = 2 * *accesses as usize + transfers.len() + with_times + 1;
        let system = R1cs::from_rows(instance, witness, rows).expect("a system");
        let system = write_precompiled(Cursor::new(Vec::new()), &system).expect("in memory");
        let system = system.into_inner();
        bytes.extend(1u32.to_le_bytes());
        bytes.push(b'a' + number as u8);
        bytes.extend(accesses.to_le_bytes());
        bytes.extend((transfers.len() as u32).to_le_bytes());
        bytes.extend(*transfers);
        for rows in [0u32, 0, 0, 0, 0, 0, 1, 0, 0] {
            bytes.extend(rows.to_le_bytes());
        }
        bytes.extend((system.len() as u64).to_le_bytes());
        bytes.extend(system);
    }
    for (number, (.., parts)) in classes.iter().enumerate() {
        for constant in *parts {
            bytes.extend((number as u32).to_le_bytes());
            bytes.extend([7; 32]);
            bytes.extend(constant.to_le_bytes());
            bytes.extend([0; 24]);
        }
    }
    for address in 1..=public_inputs + made {
        bytes.extend(address.to_le_bytes());
    }
    let checksum = Sha256::digest(&bytes);
    bytes.extend(checksum);
    bytes
}
