//! Partitions in files: decoding restores them, and other bytes are refused.

use ark_bn254::Fr;
use ark_std::rand::{SeedableRng, rngs::StdRng};
use proofmill_kernels::Poseidon2Field;
use proofmill_r1cs::R1cs;
use sha2::{Digest, Sha256};

use super::chain::Chain;
use crate::applications::BigMerkleTree;
use crate::{
    Challenges, Partition, PartitionError, PartitionFileError, PartitionedCircuit, Transfer,
};

/// Offsets of the numbers at the beginning.
const PARTS: usize = 44;
const CLASSES: usize = 48;
const PUBLIC_INPUTS: usize = 52;
const ACCESSES: usize = 56;
const FIRST_CLASS: usize = 60;
const CHECKSUM_BYTES: usize = 32;

/// Checks that a file restores an equal partition, which gives the same results for the circuit.
fn check<F: Poseidon2Field>(
    blank: &impl PartitionedCircuit<F>,
    circuit: &impl PartitionedCircuit<F>,
) {
    let made = Partition::new(blank).unwrap();
    let bytes = made.to_bytes();
    let read = Partition::<F>::from_bytes(&bytes).unwrap();
    assert!(read == made);
    assert!(read.to_bytes() == bytes);
    assert_eq!(read.digest(), made.digest());
    assert_eq!(read.public_state(), made.public_state());
    for (read, made) in read.classes().iter().zip(made.classes()) {
        assert_eq!((read.name(), read.layout()), (made.name(), made.layout()));
        assert_eq!(read.first_part(), made.first_part());
        assert_eq!(read.digest(), read.system().digest());
        for row in 0..=made.layout().constraints {
            assert_eq!(read.check_of(row), made.check_of(row));
        }
    }
    let traces = made.trace(circuit).unwrap();
    assert!(read.trace(circuit).unwrap() == traces);
    let challenges = Challenges {
        alpha: F::from(1001u64),
        beta: F::from(1002u64),
    };
    let [states, again] = [&made, &read].map(|partition| {
        let rng = &mut StdRng::seed_from_u64(1);
        partition.states(&traces, challenges, rng).unwrap()
    });
    assert_eq!(states.leaves(), again.leaves());
    for part in 0..made.num_parts() {
        let inputs = made.preprocessed(part).unwrap();
        assert_eq!(read.preprocessed(part).unwrap(), inputs);
        let trace = made.part_trace(&traces, part).unwrap();
        assert!(read.part_trace(&traces, part).unwrap() == trace);
        let opening = states.opening(part).unwrap();
        assert_eq!(again.opening(part).unwrap(), opening);
        let [assignment, again] = [&made, &read].map(|partition| {
            let made = partition.assignment(circuit, part, &trace, &challenges, &opening);
            made.unwrap()
        });
        assert!(assignment.z() == again.z());
        let class = &read.classes()[read.class_of(part).unwrap()];
        assert_eq!(class.system().is_satisfied(again.z()), Ok(()));
    }
}

#[test]
fn chains_come_back() {
    for parts in [1, 2, 7, 32] {
        check::<Fr>(&Chain::blank(parts), &Chain::new(parts, 5, 9));
    }
}

#[test]
fn chains_over_bls12_381_come_back() {
    use ark_bls12_381::Fr;
    for parts in [1, 2, 7, 32] {
        check::<Fr>(&Chain::blank(parts), &Chain::new(parts, 5, 9));
    }
}

#[test]
fn big_merkle_trees_come_back() {
    let blank = BigMerkleTree::<Fr>::blank(2, 1, 3).unwrap();
    let leaves = (0..4).map(|i| std::array::from_fn(|j| (i * 16 + j) as u32));
    let circuit = BigMerkleTree::new(leaves.collect(), 1, 3).unwrap();
    check(&blank, &circuit);
}

/// Small files are read and large ones mapped. Saving replaces the whole file.
#[test]
fn partitions_are_saved_and_loaded() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("circuit.partition");
    let missing = Partition::<Fr>::load(&path).unwrap_err();
    assert!(missing.to_string().contains("circuit.partition"));
    let small = Partition::<Fr>::new(&Chain::blank(2)).unwrap();
    small.save(&path).unwrap();
    assert!(Partition::load(&path).unwrap() == small);
    let blank = BigMerkleTree::<Fr>::blank(1, 2, 1).unwrap();
    let large = Partition::new(&blank).unwrap();
    large.save(&path).unwrap();
    assert!(std::fs::metadata(&path).unwrap().len() > 1 << 20);
    assert!(Partition::load(&path).unwrap() == large);
    assert!(std::fs::read(&path).unwrap() == large.to_bytes());
    let nowhere = folder.path().join("none").join("circuit.partition");
    let refused = small.save(&nowhere).unwrap_err();
    assert!(matches!(refused, PartitionFileError::File(_)), "{refused}");
}

fn chain(parts: usize) -> Partition<Fr> {
    Partition::new(&Chain::blank(parts)).unwrap()
}

/// The bytes with the checksum that they should have.
fn sealed(mut bytes: Vec<u8>) -> Vec<u8> {
    let content = bytes.len() - CHECKSUM_BYTES;
    let checksum = Sha256::digest(&bytes[..content]);
    bytes[content..].copy_from_slice(&checksum);
    bytes
}

fn patched(bytes: &[u8], at: usize, with: &[u8]) -> Vec<u8> {
    let mut bytes = bytes.to_vec();
    bytes[at..at + with.len()].copy_from_slice(with);
    sealed(bytes)
}

/// The message of a refusal.
fn refused(bytes: &[u8]) -> String {
    match Partition::<Fr>::from_bytes(bytes) {
        Ok(_) => panic!("bytes that must be refused were taken"),
        Err(error) => error.to_string(),
    }
}

/// The first place of these bytes.
fn find(bytes: &[u8], wanted: &[u8]) -> usize {
    let found = bytes.windows(wanted.len()).position(|at| at == wanted);
    found.expect("they are there")
}

/// The places of all systems.
fn systems(bytes: &[u8]) -> Vec<std::ops::Range<usize>> {
    let starts = (FIRST_CLASS..bytes.len() - 4).filter(|at| &bytes[*at..at + 4] == b"pmcs");
    let ranges = starts.map(|at| {
        let length = <[u8; 8]>::try_from(&bytes[at - 8..at]).unwrap();
        at..at + u64::from_le_bytes(length) as usize
    });
    ranges.collect()
}

/// Runs a prover's work with an untrusted partition, which must end with a result or an error.
fn use_it(partition: &Partition<Fr>, circuit: &Chain<Fr>) {
    let challenges = super::attempt::challenges();
    let _ = partition.digest();
    let inputs = vec![Fr::from(7u64); partition.num_public_inputs()];
    assert!(
        partition
            .public_state()
            .leaf(&inputs, &challenges)
            .is_some()
    );
    for part in 0..partition.num_parts() {
        let layout = partition.classes()[partition.class_of(part).unwrap()].layout();
        assert!(layout.committed <= layout.witness);
        let inputs = partition.preprocessed(part).unwrap();
        assert_eq!(inputs.len(), layout.preprocessed);
    }
    let Ok(traces) = partition.trace(circuit) else {
        return;
    };
    let rng = &mut StdRng::seed_from_u64(1);
    let states = partition.states(&traces, challenges, rng).unwrap();
    for part in 0..partition.num_parts() {
        let trace = partition.part_trace(&traces, part).unwrap();
        let opening = states.opening(part).unwrap();
        let made = partition.assignment(circuit, part, &trace, &challenges, &opening);
        assert!(made.is_ok(), "the same code and the same accesses");
    }
}

/// Changes every byte outside of systems, and many inside. The checksum detects the damage. With an adjusted
/// checksum, the bytes are refused or are the encoding of another partition.
#[test]
fn changed_bytes_are_refused_or_are_another_partition() {
    let partition = chain(2);
    let (bytes, circuit) = (partition.to_bytes(), Chain::new(2, 5, 9));
    let systems = systems(&bytes);
    assert_eq!(systems.len(), 2);
    let inside = |at: usize| systems.iter().any(|system| system.contains(&at));
    let places = (0..bytes.len() - CHECKSUM_BYTES).filter(|at| !inside(*at) || at % 331 == 0);
    let (mut tried, mut taken) = (0, 0);
    for at in places {
        for value in [bytes[at] ^ 1, bytes[at] ^ 0x80, bytes[at].wrapping_add(3)] {
            let mut changed = bytes.clone();
            changed[at] = value;
            assert!(Partition::<Fr>::from_bytes(&changed).is_err(), "byte {at}");
            let changed = sealed(changed);
            tried += 1;
            if let Ok(read) = Partition::<Fr>::from_bytes(&changed) {
                taken += 1;
                assert!(!inside(at), "systems have digests: byte {at}");
                assert!(read != partition && read.to_bytes() == changed, "byte {at}");
                use_it(&read, &circuit);
            }
        }
    }
    // Names, digests of accesses, constants, some addresses: about two thirds of the bytes outside systems.
    assert!(taken > 100 && taken < tried, "{taken} of {tried}");
}

#[test]
fn truncated_bytes_are_refused() {
    let bytes = chain(2).to_bytes();
    let ends = (0..FIRST_CLASS + 50).chain((0..bytes.len()).step_by(997));
    for end in ends.chain(bytes.len() - 300..bytes.len()) {
        assert!(Partition::<Fr>::from_bytes(&bytes[..end]).is_err(), "{end}");
        if end < bytes.len() - CHECKSUM_BYTES {
            let mut content = bytes[..end].to_vec();
            content.extend([0; CHECKSUM_BYTES]);
            let shortened = sealed(content);
            assert!(Partition::<Fr>::from_bytes(&shortened).is_err(), "{end}");
        }
    }
}

#[test]
fn other_files_are_refused_by_name() {
    let bytes = chain(2).to_bytes();
    assert!(matches!(
        Partition::<Fr>::from_bytes(b"PMILLAGS"),
        Err(PartitionFileError::Magic)
    ));
    for version in [1, 3] {
        let error = refused(&patched(&bytes, 8, &[version]));
        let expected = format!(
            "a partition file of version {version}: this release reads version 2; make the partition again"
        );
        assert_eq!(error, expected);
    }
    let other = Partition::<ark_bls12_381::Fr>::from_bytes(&bytes).unwrap_err();
    assert_eq!(
        other.to_string(),
        "a partition over the scalar field of BN254, not over the scalar field of BLS12-381"
    );
    let error = refused(&patched(&bytes, 12, &[7; 32]));
    assert_eq!(
        error,
        "a partition over an unknown field, not over the scalar field of BN254"
    );
    let mut damaged = bytes.clone();
    *damaged.last_mut().unwrap() ^= 1;
    assert!(refused(&damaged).starts_with("the checksum does not match"));
    let mut longer = bytes;
    let end = longer.len() - CHECKSUM_BYTES;
    longer.splice(end..end, [0; 4]);
    assert_eq!(
        refused(&sealed(longer)),
        "4 bytes between the last address and the checksum"
    );
}

/// Numbers at the beginning that ask for more than there is; nothing is allocated for them.
#[test]
fn impossible_numbers_are_refused() {
    let bytes = chain(2).to_bytes();
    let number = |at: usize, value: u32| refused(&patched(&bytes, at, &value.to_le_bytes()));
    assert_eq!(number(PARTS, 0), "0 parts: there must be 1 to 16777216");
    assert!(number(PARTS, u32::MAX).starts_with("4294967295 parts"));
    assert!(number(PARTS, 1 << 24).starts_with("cut short: classes, parts and addresses"));
    assert_eq!(number(CLASSES, 0), "0 classes: there must be 1 to 2");
    assert_eq!(number(CLASSES, 3), "3 classes: there must be 1 to 2");
    assert!(number(PUBLIC_INPUTS, u32::MAX).contains("public inputs"));
    assert!(number(ACCESSES, u32::MAX - 1).starts_with("cut short"));
    assert!(number(ACCESSES, 2).contains("2 accesses: there must be 3 to"));
    assert!(number(FIRST_CLASS, u32::MAX).starts_with("cut short: class names"));
    // The same number of bytes, read as another number of items.
    let accesses = chain(2).num_accesses() as u32;
    assert!(number(ACCESSES, accesses - 1).contains("accesses"));
    assert!(number(PUBLIC_INPUTS, 2).contains("parts that have all accesses"));
    assert!(number(PUBLIC_INPUTS, 4).contains("accesses"));
}

/// Classes and parts that do not go together, each wrong in one thing.
#[test]
fn inconsistent_partitions_are_refused() {
    let wrong = |change: &dyn Fn(&mut Partition<Fr>)| {
        let mut partition = chain(3);
        change(&mut partition);
        refused(&partition.to_bytes())
    };
    let error = wrong(&|partition| partition.classes[2].name = "first".into());
    assert_eq!(error, "class 2: its name, \"first\", is another's");
    let error = wrong(&|partition| partition.parts[0].class = 1);
    assert_eq!(error, "part 0: class 1, after parts of 0 classes of 3");
    let error = wrong(&|partition| partition.parts[1].class = 3);
    assert_eq!(error, "part 1: class 3, after parts of 1 classes of 3");
    // More constants follow from it, and one is missing: later values are read at another place.
    wrong(&|partition| partition.classes[0].shape.accesses -= 1);
    wrong(&|partition| partition.parts[1].constants.clear());
    let error = wrong(&|partition| partition.classes[2].shape.accesses = 1 << 20);
    assert!(
        error.contains("accesses of each part of a class"),
        "{error}"
    );
    let error = wrong(&|partition| {
        let (_, rows) = partition.classes[1].sections.last_mut().unwrap();
        rows.end += 1;
    });
    assert!(error.starts_with("class 1: ") && error.contains("constraints"));

    // Systems whose sizes do not fit: without instance variables for the addresses, or without a witness.
    let resized = |instance: usize, witness: usize| {
        wrong(&|partition| {
            let class = &mut partition.classes[0];
            let rows = vec![Vec::new(); class.system.num_constraints()];
            let rows = [rows.clone(), rows.clone(), rows];
            class.system = R1cs::from_rows(instance, witness, rows).unwrap().into();
        })
    };
    let class = &chain(3).classes[0];
    let (instance, committed) = (class.system.num_instance(), class.layout().committed);
    let error = resized(instance - 2, 1000);
    assert!(error.contains("instance variables, where"), "{error}");
    let error = resized(instance, committed - 1);
    assert!(error.contains("witness variables, where"), "{error}");
    // Transfers that the constraints were not made for are read, but no run of the code has them.
    let mut partition = chain(3);
    partition.classes[1].shape.transfers = [Transfer::Put; 3].into();
    let read = Partition::<Fr>::from_bytes(&partition.to_bytes()).unwrap();
    let error = read.trace(&Chain::new(3, 5, 9)).unwrap_err();
    let expected = PartitionError::AccessesChanged { part: 1 };
    assert_eq!(error.to_string(), expected.to_string());
    // More constants than the file can hold.
    let error = resized(instance + (1 << 30), 1000);
    assert!(error.starts_with("cut short: constants"), "{error}");
}

/// Addresses and constants that nothing else in the file contradicts.
#[test]
fn wrong_addresses_and_constants_are_refused() {
    let partition = chain(3);
    let bytes = partition.to_bytes();
    let addresses = bytes.len() - CHECKSUM_BYTES - 4 * partition.num_accesses();
    let address = |index: usize, value: u32| {
        refused(&patched(
            &bytes,
            addresses + 4 * index,
            &value.to_le_bytes(),
        ))
    };
    let reason =
        |lacking: &str| format!("the accesses are not those of a partition, which has {lacking}");
    for (index, value) in [(5, 0), (5, u32::MAX), (partition.num_accesses() - 1, 1000)] {
        assert_eq!(address(index, value), reason("addresses without gaps"));
    }
    assert_eq!(
        address(0, 2),
        reason("public inputs with the first addresses")
    );
    let digest = partition.parts[1].accesses;
    let constant = find(&bytes, &digest) + digest.len();
    assert_eq!(
        refused(&patched(&bytes, constant, &[0xff; 32])),
        "part 1: a constant that is not below the prime"
    );
    // The kind of the first transfer, after the name's length and the name, the accesses and the number of transfers.
    let kind = refused(&patched(&bytes, FIRST_CLASS + 4 + 5 + 4 + 4, &[9]));
    assert_eq!(kind, "class 0: a transfer of no kind");
    // The last two bytes of the name "first", which then is not UTF-8.
    let name = refused(&patched(&bytes, FIRST_CLASS + 7, &[0xff, 0xfe]));
    assert_eq!(name, "class 0: a name that is not UTF-8");
}

/// A system in a container that encodes the same in other bytes, and one with false content.
#[test]
fn systems_have_one_encoding() {
    let bytes = chain(2).to_bytes();
    let system = systems(&bytes).remove(0);
    let mut longer = bytes.clone();
    // A sixth section, of a kind that is passed over, without content.
    let section = [&[99, 0, 0, 0][..], &[0; 8]].concat();
    longer.splice(system.end..system.end, section.iter().copied());
    let length = (system.len() + section.len()) as u64;
    longer[system.start - 8..system.start].copy_from_slice(&length.to_le_bytes());
    longer[system.start + 8] += 1;
    assert_eq!(
        refused(&sealed(longer)),
        "class 0: constraints that are not encoded as this program does"
    );
    let error = refused(&patched(&bytes, system.end - 1, &[0xfe]));
    assert!(
        error.starts_with("class 0: precompiled circuit file"),
        "{error}"
    );
}
