//! Completeness: true statements are provable with every form of key, and false ones are not.

use std::sync::Arc;

use ark_ff::{One, UniformRand, Zero};
use ark_std::rand::{SeedableRng, rngs::StdRng};
use proofmill_accelerator::{Device, cpu, host_cuda};
use proofmill_groth16::mirage::{
    self, CommittedR1cs, CommittedR1csError, Opening, Prover, ProvingKeyInfo, ResidentKey, Setup,
};
use proofmill_groth16::{
    Bls12_381, Bn254, Curve, DeviceKey, KeyError, MAPPED_WINDOW_POINTS, Offload, ProveError,
    ResidentForm, SnarkCurve, with_curve,
};
use proofmill_r1cs::{Assignment, R1cs};
use proptest::prelude::*;

use super::support::{Case, SMALL, Size, random_system};

fn assert_provable<E: SnarkCurve>(seed: u64, size: Size) {
    let case = Case::<E>::random(size, &mut StdRng::seed_from_u64(seed));
    assert!(case.holds(case.inputs(), &case.commitment, &case.proof));
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(10))]

    #[test]
    fn true_statements_are_provable(
        seed: u64,
        inputs in 0usize..5,
        committed in 0usize..12,
        products in 0usize..40,
    ) {
        let size = Size { inputs, committed, products };
        assert_provable::<Bn254>(seed, size);
        assert_provable::<Bls12_381>(seed, size);
    }
}

/// The whole witness may be committed to. The L query then has only the part with C.
#[test]
fn all_of_the_witness_may_be_committed_to() {
    let rng = &mut StdRng::seed_from_u64(1);
    let (system, assignment) = random_system::<ark_bn254::Fr>(SMALL, rng);
    let all = system.num_witness();
    let unbound = mirage::unbound_variables(&system, all);
    let mut rows = [0, 1, 2].map(|matrix| {
        let matrix = system.matrices()[matrix];
        let row = |row| {
            let entries = matrix.row(row);
            let entries = entries.map(|(column, value)| (system.coefficients()[value], column));
            entries.collect::<Vec<_>>()
        };
        (0..matrix.rows()).map(row).collect::<Vec<_>>()
    });
    for variable in unbound {
        rows[0].push(vec![(One::one(), system.num_instance() + variable)]);
        rows[1].push(vec![]);
        rows[2].push(vec![]);
    }
    let system = R1cs::from_rows(system.num_instance(), all, rows).unwrap();
    let circuit = CommittedR1cs::new(&system, all).unwrap();
    let key = mirage::setup::<Bn254>(&[circuit], rng).unwrap().remove(0);
    let case = Case::with_key(key, system, assignment, rng);
    assert!(case.holds(case.inputs(), &case.commitment, &case.proof));
}

fn check_resident_keys<E: SnarkCurve>() {
    let rng = &mut StdRng::seed_from_u64(2);
    for committed in [0, 1, 40] {
        let case = Case::<E>::random(Size { committed, ..SMALL }, rng);
        let system = Arc::new(case.system.clone());
        let limit = ResidentForm::Prepared {
            memory_limit: 1 << 20,
        };
        for residency in [ResidentForm::Plain, limit] {
            let key = ResidentKey::new(case.key.clone(), Arc::clone(&system), residency).unwrap();
            assert_eq!(key.vk(), case.key.vk());
            assert!(key.bytes() > key.plain().bytes() || committed == 0);
            let prover = key.prover();
            let (commitment, opening) = prover.commit(case.committed(), rng).unwrap();
            // The same randomness gives the same commitment, however the points are held.
            let again = case.prover().commit_with(case.committed(), &opening);
            assert_eq!(again.unwrap(), commitment);
            let (proof, _) = prover.prove(case.assignment.z(), &opening, rng).unwrap();
            assert!(case.holds(case.inputs(), &commitment, &proof));
        }
    }
}

#[test]
fn resident_keys_prove_over_every_curve() {
    for curve in Curve::ALL {
        with_curve!(curve, E => check_resident_keys::<E>());
    }
}

/// A key whose points stay in its file makes the same commitments as one in memory, and proofs that hold. The larger key
/// has more points than are in memory at once.
fn check_mapped_keys<E: SnarkCurve>() {
    let rng = &mut StdRng::seed_from_u64(6);
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("key");
    let large = Size {
        inputs: 3,
        committed: MAPPED_WINDOW_POINTS + 5,
        products: 100,
    };
    for size in [SMALL, large] {
        let case = Case::<E>::random(size, rng);
        case.key.save(&path).unwrap();
        let info = ProvingKeyInfo::of::<E>(&path).unwrap();
        assert_eq!(info.committed, size.committed);
        assert_eq!(info.file_bytes, path.metadata().unwrap().len());
        assert_eq!(info.plain.variables, case.key.plain.variables);
        let plain = case.key.size_in_bytes() as u64;
        assert_eq!(info.plain_bytes::<E>(), plain);
        let system = Arc::new(case.system.clone());
        let key = ResidentKey::<E>::map(&path, Arc::clone(&system)).unwrap();
        assert_eq!(key.vk(), case.key.vk());
        let points = key.bytes() - system.memory();
        assert_eq!(points as u64, info.mapped_bytes::<E>());
        let prover = key.prover();
        let (commitment, opening) = prover.commit(case.committed(), rng).unwrap();
        let again = case.prover().commit_with(case.committed(), &opening);
        assert_eq!(again.unwrap(), commitment);
        let (proof, _) = prover.prove(case.assignment.z(), &opening, rng).unwrap();
        assert!(case.holds(case.inputs(), &commitment, &proof));

        let other = Size {
            committed: 9,
            ..SMALL
        };
        let (other, _) = random_system(other, rng);
        let refused = ResidentKey::<E>::map(&path, Arc::new(other)).err();
        assert!(matches!(refused, Some(KeyError::Circuit)));
        let mut bytes = std::fs::read(&path).unwrap();
        let middle = bytes.len() / 2;
        bytes[middle] ^= 1;
        std::fs::write(&path, &bytes).unwrap();
        let refused = ResidentKey::<E>::map(&path, system).err();
        assert!(matches!(refused, Some(KeyError::Checksum)));
    }
}

#[test]
fn keys_in_their_files_prove_over_every_curve() {
    for curve in Curve::ALL {
        with_curve!(curve, E => check_mapped_keys::<E>());
    }
}

#[test]
fn devices_prove_and_the_prover_completes() {
    let rng = &mut StdRng::seed_from_u64(3);
    let case = Case::<Bn254>::random(SMALL, rng);
    let system = Arc::new(case.system.clone());
    let key = ResidentKey::new(case.key.clone(), system, ResidentForm::Plain).unwrap();
    let devices: [Arc<dyn Device>; 2] = [
        Arc::new(cpu().unwrap()),
        Arc::new(host_cuda(64, false).unwrap()),
    ];
    for device in devices {
        let device_key =
            DeviceKey::load(Arc::clone(key.plain()), device, Offload::Always, 0).unwrap();
        let (plain, _) = device_key.prove(case.assignment.z(), rng).unwrap();
        let proof = key.prover().complete(&plain, &case.opening);
        assert!(case.holds(case.inputs(), &case.commitment, &proof));
        assert!(!case.holds(case.inputs(), &case.commitment, &plain));
    }
}

/// Keys of one setup share α and β, and nothing else that is secret.
#[test]
fn keys_of_one_setup_share_alpha_and_beta_alone() {
    let rng = &mut StdRng::seed_from_u64(4);
    let (one, assignment) = random_system::<ark_bn254::Fr>(SMALL, rng);
    let more = Size {
        committed: 9,
        ..SMALL
    };
    let (two, _) = random_system::<ark_bn254::Fr>(more, rng);
    let circuits = [(&one, SMALL.committed), (&two, more.committed), (&one, 2)]
        .map(|(system, committed)| CommittedR1cs::new(system, committed).unwrap());
    let keys = mirage::setup::<Bn254>(&circuits, rng).unwrap();
    let vks: Vec<_> = keys.iter().map(mirage::ProvingKey::vk).collect();
    for (i, left) in vks.iter().enumerate() {
        left.require_secure().unwrap();
        assert_eq!(left.committed, circuits[i].committed());
        assert_eq!(left.plain.circuit, circuits[i].r1cs().digest());
        for right in &vks[i + 1..] {
            assert_eq!(left.plain.alpha_g1, right.plain.alpha_g1);
            assert_eq!(left.plain.beta_g2, right.plain.beta_g2);
            let own = |vk: &mirage::VerifyingKey<Bn254>| {
                [vk.plain.gamma_g2, vk.plain.delta_g2, vk.eta_g2]
            };
            assert!(own(left).iter().all(|point| !own(right).contains(point)));
            assert_ne!(left.plain.instance[1], right.plain.instance[1]);
        }
    }
    // Keys made one by one from a `Setup` share α and β as well.
    let setup = Setup::<Bn254>::new(rng);
    let [first, second] = [0, 1].map(|i| setup.key(circuits[i], rng).unwrap().vk().plain);
    assert_eq!(first.alpha_g1, second.alpha_g1);
    assert_ne!(first.alpha_g1, vks[0].plain.alpha_g1);
    assert!(!format!("{setup:?}").contains("alpha"));

    let key = keys.into_iter().next().unwrap();
    let case = Case::with_key(key, one, assignment, rng);
    assert!(case.holds(case.inputs(), &case.commitment, &case.proof));
}

#[test]
fn false_statements_are_not_provable() {
    let rng = &mut StdRng::seed_from_u64(5);
    let case = Case::<Bn254>::random(SMALL, rng);
    let mut witness = case.assignment.witness().to_vec();
    *witness.last_mut().unwrap() += ark_bn254::Fr::one();
    let wrong = Assignment::new(case.inputs(), &witness);
    let refused = mirage::prove(&case.key, &case.system, &wrong, &case.opening, rng);
    assert!(matches!(refused, Err(ProveError::Unsatisfied(_))));
}

#[test]
fn what_does_not_fit_is_refused() {
    let rng = &mut StdRng::seed_from_u64(6);
    let case = Case::<Bn254>::random(SMALL, rng);
    let other = Case::<Bn254>::random(
        Size {
            products: 21,
            ..SMALL
        },
        rng,
    );
    let refused = Prover::new(&case.key, &other.system).unwrap_err();
    assert!(matches!(refused, ProveError::WrongKey), "{refused}");
    let mut key = case.key.clone();
    key.committed
        .resize(case.system.num_witness() + 1, key.committed[0]);
    let refused = Prover::new(&key, &case.system).unwrap_err();
    assert!(matches!(refused, ProveError::WrongKey), "{refused}");
    let prover = case.prover();
    for count in [0, 4, 6] {
        let values = vec![ark_bn254::Fr::zero(); count];
        let refused = prover.commit(&values, rng).unwrap_err();
        assert!(matches!(refused, ProveError::Assignment(_)), "{refused}");
    }
    let z = case.assignment.z();
    let refused = prover.prove(&z[1..], &case.opening, rng).unwrap_err();
    assert!(matches!(refused, ProveError::Assignment(_)), "{refused}");
    // The opening is checked before the proof is computed.
    let opening = Opening::new(&case.committed()[1..], ark_bn254::Fr::rand(rng));
    let refused = prover.prove(z, &opening, rng).unwrap_err();
    assert!(matches!(refused, ProveError::OtherCommitment), "{refused}");
    let refused = prover.commit_with(case.committed(), &opening).unwrap_err();
    assert!(matches!(refused, ProveError::OtherCommitment), "{refused}");

    // Witness 0 and 1 occur only together: a commitment to both could be opened otherwise.
    let one = ark_bn254::Fr::one();
    let rows = [
        vec![vec![(one, 1), (one, 2)]],
        vec![vec![(one, 0)]],
        vec![vec![(one, 3)]],
    ];
    let system = R1cs::from_rows(1, 3, rows).unwrap();
    assert!(CommittedR1cs::new(&system, 1).is_ok());
    let refused = CommittedR1cs::new(&system, 2).unwrap_err();
    assert_eq!(refused, CommittedR1csError::Unbound { first: 0, count: 2 });
}
