//! Cheating provers: each makes the best proof it can, and both verifiers refuse it.

use ark_bn254::Fr;
use ark_ff::Field;
use ark_std::rand::Rng;
use proofmill_aggregation::{Commitment as Aggregated, MirageStatement, Srs};
use proofmill_groth16::mirage::{Commitment, Opening, Prover, ProvingKey};
use proofmill_groth16::{Bn254, Proof};
use proofmill_r1cs::R1cs;
use sha2::{Digest, Sha256};

use super::case::{Case, class_keys, rng, srs, verdict};
use crate::proof::{
    ClassKeys, Index, IndexError, PartitionProof, PartitionProofError, VerifyError, VerifyingKey,
};
use crate::tests::attempt::{Attempt, unsatisfied};
use crate::tests::chain::Chain;
use crate::tests::cheats::{CHEATS, PARTS, Setting};
use crate::tree::Path;
use crate::{Challenges, Partition};

/// The commitments, openings and proofs of all parts.
struct Forged {
    commitments: Vec<Commitment<Bn254>>,
    openings: Vec<Opening<Bn254>>,
    proofs: Vec<Proof<Bn254>>,
}

/// Commits to the traces of an attempt.
fn commit(case: &Case<Bn254>, attempt: &Attempt<'_, Chain<Fr>>) -> Forged {
    let rng = &mut rng(3);
    let parts = attempt.traces.iter().enumerate().map(|(part, trace)| {
        let class = case.index.partition().class_of(part).unwrap();
        let key = &case.keys[class];
        proofmill_groth16::mirage::commit(key, &trace.committed(), rng).unwrap()
    });
    let (commitments, openings) = parts.unzip();
    Forged {
        commitments,
        openings,
        proofs: Vec::new(),
    }
}

fn aggregated(case: &Case<Bn254>, forged: &Forged) -> Aggregated<Bn254> {
    let d: Vec<_> = forged.commitments.iter().map(|made| made.point).collect();
    case.index.parts().commit(&case.srs, &d).unwrap()
}

fn challenges(case: &Case<Bn254>, inputs: &[Fr], commitment: &Aggregated<Bn254>) -> Challenges<Fr> {
    let key = case.index.verifying_key();
    key.statement(inputs, commitment).challenges()
}

/// A proof of a part with any values: rows that the values do not satisfy are left out of the system.
fn force(
    key: &ProvingKey<Bn254>,
    system: &R1cs<Fr>,
    z: &[Fr],
    opening: &Opening<Bn254>,
) -> Proof<Bn254> {
    let wrong = unsatisfied(system, z);
    let matrices = system.matrices().map(|matrix| {
        let rows = (0..system.num_constraints()).map(|row| {
            let entries = matrix.row(row).filter(|_| !wrong.contains(&row));
            let valued = entries.map(|(column, index)| (system.coefficients()[index], column));
            valued.collect::<Vec<_>>()
        });
        rows.collect::<Vec<_>>()
    });
    let relaxed = R1cs::from_rows(system.num_instance(), system.num_witness(), matrices).unwrap();
    let mut key = key.clone();
    key.plain.vk.circuit = relaxed.digest();
    let prover = Prover::new(&key, &relaxed).unwrap();
    prover.prove(z, opening, &mut rng(4)).unwrap().0
}

/// The whole proof of an attempt with the given proofs of its parts.
fn aggregate(
    case: &Case<Bn254>,
    attempt: &Attempt<'_, Chain<Fr>>,
    forged: &Forged,
) -> PartitionProof<Bn254> {
    let commitment = aggregated(case, forged);
    let statement = case
        .index
        .verifying_key()
        .statement(&attempt.public_inputs, &commitment);
    let inputs = statement.shared(attempt.root);
    let of_parts = MirageStatement {
        context: &statement.context(attempt.root, &attempt.public_path),
        inputs: &inputs,
        commitment: &commitment,
    };
    let d: Vec<_> = forged.commitments.iter().map(|made| made.point).collect();
    let parts = case.index.parts();
    let aggregate = parts.aggregate(&case.srs, of_parts, &forged.proofs, &d);
    PartitionProof {
        commitment,
        root: attempt.root,
        public_path: attempt.public_path.clone(),
        aggregate: aggregate.unwrap(),
    }
}

/// Proves all parts of an attempt, by force where need be.
fn prove(case: &Case<Bn254>, attempt: &Attempt<'_, Chain<Fr>>, forged: &mut Forged) {
    forged.proofs = (0..PARTS)
        .map(|part| {
            let partition = case.index.partition();
            let class = partition.class_of(part).unwrap();
            let system = partition.classes()[class].system();
            let opening = &forged.openings[part];
            force(&case.keys[class], system, &attempt.z(part), opening)
        })
        .collect();
}

/// Proves an attempt of a setting, whose challenges are set to those that the commitments yield. Returns the
/// public inputs and the proof.
fn forge(
    case: &Case<Bn254>,
    setting: &mut Setting,
    attempt: fn(&Setting) -> Attempt<'_, Chain<Fr>>,
) -> (Vec<Fr>, PartitionProof<Bn254>) {
    let first = attempt(setting);
    let mut forged = commit(case, &first);
    let commitment = aggregated(case, &forged);
    setting.challenges = challenges(case, &first.public_inputs, &commitment);
    let attempt = attempt(setting);
    prove(case, &attempt, &mut forged);
    let proof = aggregate(case, &attempt, &forged);
    (attempt.public_inputs, proof)
}

fn chain() -> Case<Bn254> {
    Case::new(&Chain::blank(PARTS))
}

/// The tools with which cheats are made yield valid proofs of honest attempts.
#[test]
fn an_honest_attempt_is_accepted() {
    let case = chain();
    let (inputs, proof) = forge(&case, &mut Setting::honest(), Setting::consistent);
    assert!(case.holds(&inputs, &proof));
}

#[test]
fn every_cheat_is_refused() {
    let case = chain();
    for cheat in CHEATS {
        let (inputs, proof) = forge(&case, &mut (cheat.setting)(), cheat.attempt);
        assert!(!case.holds(&inputs, &proof), "{}", cheat.name);
    }
}

/// Valid commitments and proofs, but in the places of other parts.
#[test]
fn exchanged_parts_are_refused() {
    let case = chain();
    for (what, shuffle) in [
        ("swapped", [0, 1, 4, 3, 2, 5, 6]),
        ("repeated", [0, 1, 2, 2, 4, 5, 6]),
        ("turned", [6, 5, 4, 3, 2, 1, 0]),
    ] {
        let mut setting = Setting::honest();
        let mut honest = commit(&case, &setting.consistent());
        let commitments = shuffle.map(|part: usize| honest.commitments[part]).to_vec();
        let mut forged = Forged {
            commitments,
            openings: Vec::new(),
            proofs: Vec::new(),
        };
        let commitment = aggregated(&case, &forged);
        let inputs = setting.consistent().public_inputs;
        setting.challenges = challenges(&case, &inputs, &commitment);
        let attempt = setting.consistent();
        prove(&case, &attempt, &mut honest);
        forged.proofs = shuffle.map(|part: usize| honest.proofs[part]).to_vec();
        let proof = aggregate(&case, &attempt, &forged);
        assert!(!case.holds(&inputs, &proof), "{what}");
    }
}

/// A proof of fewer parts, which would need a key for fewer parts.
#[test]
fn dropped_parts_are_refused() {
    let case = chain();
    let shorter = Case::<Bn254>::of(Partition::new(&Chain::blank(PARTS - 1)).unwrap(), 1);
    let circuit = Chain::new(PARTS - 1, 5, 9);
    let proof = shorter.prove(&circuit, 1);
    assert!(shorter.holds(&circuit.public, &proof));
    assert!(!case.holds(&circuit.public, &proof));
}

/// Proofs under keys of another setup, another string, another partition, classes in another order.
#[test]
fn proofs_under_another_key_are_refused() {
    let blank = Chain::blank(3);
    let partition = || Partition::<Fr>::new(&blank).unwrap();
    let circuit = Chain::new(3, 5, 9);
    let case = Case::<Bn254>::of(partition(), 1);
    let proof = case.prove(&circuit, 1);
    let refused = |index: &Index<Bn254>| {
        let key = index.verifying_key();
        assert_ne!(key.digest(), case.index.verifying_key().digest());
        assert!(!verdict::<Bn254>(
            &key.to_bytes(),
            &circuit.public,
            &proof.to_bytes()
        ));
    };
    let index = |keys: &[ProvingKey<Bn254>], srs: &Srs<Bn254>| {
        Index::new(partition(), keys.iter().map(ProvingKey::vk).collect(), srs)
    };
    refused(&index(&class_keys(&partition(), 2), &case.srs).unwrap());
    refused(&index(&case.keys, &srs(3, 2)).unwrap());
    let elsewhere = Partition::<Fr>::new(&OtherConstants(blank.clone())).unwrap();
    assert_ne!(elsewhere.digest(), partition().digest());
    let keys = class_keys::<Bn254>(&elsewhere, 1);
    let vks = keys.iter().map(ProvingKey::vk).collect();
    refused(&Index::new(elsewhere, vks, &case.srs).unwrap());

    // Classes in another order, fewer, or of two setups make no key.
    let mut turned = case.keys.clone();
    turned.swap(0, 1);
    let error = index(&turned, &case.srs).unwrap_err();
    assert!(
        matches!(error, IndexError::OtherCircuit { class: 0, .. }),
        "{error}"
    );
    let error = index(&case.keys[..2], &case.srs).unwrap_err();
    assert!(
        matches!(
            error,
            IndexError::Classes {
                expected: 3,
                found: 2
            }
        ),
        "{error}"
    );
    let mut mixed = case.keys.clone();
    mixed[2] = class_keys(&partition(), 2).remove(2);
    let error = index(&mixed, &case.srs).unwrap_err();
    assert!(
        matches!(error, IndexError::OtherSetup { class: 2 }),
        "{error}"
    );
    let mut weak = case.keys.clone();
    weak[1].eta_g2 = weak[1].plain.vk.delta_g2;
    let error = index(&weak, &case.srs).unwrap_err();
    assert!(
        matches!(error, IndexError::Insecure { class: 1, .. }),
        "{error}"
    );
    let error = ClassKeys::hold(&partition(), turned, proofmill_groth16::ResidentForm::Plain);
    assert!(matches!(error, Err(IndexError::Resident { class: 0, .. })));
}

/// A chain with another constant in each part.
struct OtherConstants(Chain<Fr>);

impl crate::PartitionedCircuit<Fr> for OtherConstants {
    fn num_parts(&self) -> usize {
        self.0.parts
    }

    fn class(&self, part: usize) -> &'static str {
        self.0.class(part)
    }

    fn num_public_inputs(&self) -> usize {
        3
    }

    fn synthesize(
        &self,
        part: usize,
        wires: &mut crate::Part<'_, Fr>,
    ) -> Result<(), crate::PartitionError> {
        self.0.synthesize(part, wires)?;
        wires.constant(Fr::from(1 + part as u64))?;
        Ok(())
    }
}

/// Recomputes the checksum at the end.
fn sealed(mut bytes: Vec<u8>) -> Vec<u8> {
    let content = bytes.len() - 32;
    let checksum = Sha256::digest(&bytes[..content]);
    bytes[content..].copy_from_slice(&checksum);
    bytes
}

/// A bit of every element, point, scalar and number of proof and key, with the checksum made right again.
#[test]
fn every_field_is_bound() {
    let parts = 5;
    let case = Case::<Bn254>::new(&Chain::blank(parts));
    let circuit = Chain::new(parts, 5, 9);
    let proof = case.prove(&circuit, 1).to_bytes();
    let key = case.index.verifying_key().to_bytes();
    assert!(verdict::<Bn254>(&key, &circuit.public, &proof));
    let rng = &mut rng(5);
    // Elements take 192 bytes, points 32 or 64, scalars 32: no field is shorter than the step, but numbers in
    // heads, which are before byte 80.
    for (name, bytes) in [("proof", &proof), ("key", &key)] {
        let early = 0..80;
        let later = (80..bytes.len() - 32).step_by(31);
        for at in early.chain(later) {
            let mut changed = bytes.clone();
            changed[at] ^= 1 << rng.gen_range(0..8);
            let changed = sealed(changed);
            let (key, proof) = match name {
                "proof" => (&key, &changed),
                _ => (&changed, &proof),
            };
            assert!(
                !verdict::<Bn254>(key, &circuit.public, proof),
                "byte {at} of the {name}"
            );
        }
    }
    // The checksum itself.
    for bytes in [&proof, &key] {
        let mut changed = bytes.clone();
        *changed.last_mut().unwrap() ^= 1;
        assert!(PartitionProof::<Bn254>::from_bytes(&changed).is_err());
        assert!(VerifyingKey::<Bn254>::from_bytes(&changed).is_err());
    }
}

/// Keys whose parts prove other states than this verifier begins with: of another version, and as the first version
/// wrote them, without a number.
#[test]
fn keys_of_another_protocol_are_refused() {
    let case = Case::<Bn254>::new(&Chain::blank(1));
    let circuit = Chain::new(1, 5, 9);
    let proof = case.prove(&circuit, 1).to_bytes();
    let key = case.index.verifying_key().to_bytes();
    assert!(verdict::<Bn254>(&key, &circuit.public, &proof));
    let at = 8 + 4 + 16;
    assert_eq!(key[at..at + 4], [2, 0, 0, 0]);
    for version in [0, 1, 3] {
        let mut changed = key.clone();
        changed[at] = version;
        let changed = sealed(changed);
        let error = VerifyingKey::<Bn254>::from_bytes(&changed).unwrap_err();
        assert!(matches!(error, PartitionProofError::Protocol), "{error}");
        assert!(!verdict::<Bn254>(&changed, &circuit.public, &proof));
    }
    let first = sealed([&key[..at], &key[at + 4..]].concat());
    assert!(VerifyingKey::<Bn254>::from_bytes(&first).is_err());
    assert!(!verdict::<Bn254>(&first, &circuit.public, &proof));
}

/// The root and path of other states than the parts' are refused before any pairing.
#[test]
fn another_tree_is_refused() {
    let case = Case::<Bn254>::new(&Chain::blank(3));
    let circuit = Chain::new(3, 5, 9);
    let proof = case.prove(&circuit, 1);
    let key = case.index.verifying_key();
    let mut other = proof.clone();
    other.root += Fr::ONE;
    assert_eq!(
        key.verify(&circuit.public, &other),
        Err(VerifyError::PublicState)
    );
    let mut other = proof.clone();
    let mut children = other.public_path.children().to_vec();
    children.push(children[0]);
    other.public_path = Path::new(children);
    assert_eq!(
        key.verify(&circuit.public, &other),
        Err(VerifyError::PublicState)
    );
    let second = case.prove(&circuit, 2);
    let mut other = proof;
    other.aggregate = second.aggregate.clone();
    assert_eq!(key.verify(&circuit.public, &other), Err(VerifyError::Parts));
    assert!(!case.holds(&circuit.public, &other));
}
