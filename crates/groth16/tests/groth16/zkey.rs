//! snarkjs's proving keys, made by snarkjs (see `fixtures/README.md`): read, written back byte for
//! byte, proven with; and refused with the section and the offset when they are cut or changed.

use std::io::Cursor;
use std::path::{Path, PathBuf};

use ark_bls12_381::G1Affine;
use ark_ff::{One, Zero};
use ark_snark::SNARK;
use ark_std::rand::{SeedableRng, rngs::StdRng};
use proofmill_files::{FileError, MappedFile};
use proofmill_groth16::snarkjs::{
    Checked, CheckedKeyStore, Trust, Zkey, ZkeyFile, inputs_from_json, verifying_key_to_json,
};
use proofmill_groth16::{
    Bls12_381, Bn254, Curve, PointCheck, PreparedVerifyingKey, Proof, ProveError, ProverStage,
    ResidentForm, ResidentKey, SnarkCurve, VerifyError, VerifyingKey, verify, with_curve,
};
use proofmill_r1cs::iden3::{ReadError, Reason, WtnsFile};

use crate::points::outside_subgroup;

/// The curves that snarkjs knows.
const CURVES: [Curve; 2] = [Curve::Bn254, Curve::Bls12_381];

fn fixture(curve: Curve, name: &str) -> PathBuf {
    let folder = match curve {
        Curve::Bn254 => "bn254",
        Curve::Bls12_381 => "bls12_381",
        Curve::Bls12_377 => panic!("snarkjs knows no BLS12-377"),
    };
    Path::new(env!("CARGO_MANIFEST_DIR"))
        .join("tests/fixtures")
        .join(folder)
        .join(name)
}

fn key_bytes(curve: Curve) -> Vec<u8> {
    std::fs::read(fixture(curve, "circuit.zkey")).unwrap()
}

pub(super) fn key<E: SnarkCurve>() -> Zkey<E> {
    let bytes = key_bytes(E::CURVE);
    ZkeyFile::parse(&bytes)
        .unwrap()
        .read(PointCheck::Full)
        .unwrap()
}

pub(super) fn witness<E: SnarkCurve>() -> Vec<E::ScalarField> {
    let bytes = std::fs::read(fixture(E::CURVE, "witness.wtns")).unwrap();
    let witness = WtnsFile::parse(&bytes).unwrap().read().unwrap();
    witness.values().to_vec()
}

/// Whether arkworks' verifier accepts a proof.
pub(super) fn ark_accepts<E: SnarkCurve>(
    vk: &VerifyingKey<E>,
    inputs: &[E::ScalarField],
    proof: &Proof<E>,
) -> bool {
    let vk = ark_groth16::VerifyingKey::<E> {
        alpha_g1: vk.alpha_g1,
        beta_g2: vk.beta_g2,
        gamma_g2: vk.gamma_g2,
        delta_g2: vk.delta_g2,
        gamma_abc_g1: vk.instance.clone(),
    };
    let proof = ark_groth16::Proof {
        a: proof.a,
        b: proof.b,
        c: proof.c,
    };
    ark_groth16::Groth16::<E>::verify(&vk, inputs, &proof).unwrap()
}

#[test]
fn keys_are_written_back_byte_for_byte() {
    for curve in CURVES {
        with_curve!(curve, E => {
            let key = key::<E>();
            let out = key.write(Cursor::new(Vec::new())).unwrap().into_inner();
            assert!(out == key_bytes(curve), "{curve}");
            let json = std::fs::read_to_string(fixture(curve, "verification_key.json")).unwrap();
            assert_eq!(verifying_key_to_json(&key.verifying_key()), json);

            let directory = tempfile::tempdir().unwrap();
            let path = directory.path().join("a.zkey");
            key.save(&path).unwrap();
            let file = MappedFile::open(&path).unwrap();
            assert_eq!(Zkey::<E>::load(&file, Trust::Check).unwrap(), (key, Checked::Full));
        });
    }
}

#[test]
fn proofs_with_keys_of_snarkjs_verify() {
    for curve in CURVES {
        with_curve!(curve, E => {
            let rng = &mut StdRng::seed_from_u64(1);
            let z = witness::<E>();
            let inputs = std::fs::read(fixture(curve, "public.json")).unwrap();
            let inputs = inputs_from_json(&inputs).unwrap();
            assert_eq!(inputs, z[1..=inputs.len()]);
            for residency in [
                ResidentForm::Plain,
                ResidentForm::Prepared { memory_limit: 0 },
                ResidentForm::Prepared { memory_limit: 1 << 20 },
            ] {
                let resident = ResidentKey::from_zkey(key::<E>(), residency).unwrap();
                let (proof, reports) = resident.prover().prove(&z, rng).unwrap();
                let vk = PreparedVerifyingKey::from(resident.vk().clone());
                assert_eq!(verify(&vk, &inputs, &proof), Ok(()), "{residency:?}");
                assert!(ark_accepts(resident.vk(), &inputs, &proof));
                let (other, _) = resident.prover().prove(&z, rng).unwrap();
                assert!(other.a != proof.a && other.b != proof.b && other.c != proof.c);

                let stages: Vec<ProverStage> = reports.iter().map(|report| report.stage).collect();
                assert_eq!(stages.len(), 8);
                let n = resident.prover().domain_size();
                let held = |stage| {
                    reports.iter().find(|report| report.stage == stage).unwrap().bytes
                };
                assert_eq!(held(ProverStage::Evaluate), 64 * n);
                assert_eq!(held(ProverStage::Quotient), 96 * n);
                assert_eq!(held(ProverStage::MsmH), 32 * n);
                assert!(resident.bytes() > 0);

                // As C is not known, a wrong assignment is found by verification only.
                for variable in 1..z.len() {
                    let mut wrong = z.clone();
                    wrong[variable] += <E as ark_ec::pairing::Pairing>::ScalarField::one();
                    let (proof, _) = resident.prover().prove(&wrong, rng).unwrap();
                    let inputs = &wrong[1..=inputs.len()];
                    assert_eq!(
                        verify(&vk, inputs, &proof),
                        Err(VerifyError::Invalid),
                        "variable {variable}"
                    );
                }
                let error = resident.prover().prove(&z[1..], rng).unwrap_err();
                assert!(matches!(error, ProveError::Assignment(_)), "{error}");
                let mut wrong = z.clone();
                wrong[0].set_zero();
                let error = resident.prover().prove(&wrong, rng).unwrap_err();
                assert!(matches!(error, ProveError::Unsatisfied(_)), "{error}");
            }
        });
    }
}

/// Hashes as snarkjs printed them when the fixtures were made.
#[test]
fn info_names_the_contributions() {
    let expected = [
        (
            Curve::Bn254,
            "9203f316 e008de23",
            ["c9edb5b9 19aa280a", "92eb102e afb45f4e"],
        ),
        (
            Curve::Bls12_381,
            "ee0b13b5 a8532a34",
            ["45521f27 a0f297eb", "56c6db0c 6be0ea7d"],
        ),
    ];
    for (curve, circuit, hashes) in expected {
        let bytes = key_bytes(curve);
        let info = ZkeyFile::parse(&bytes).unwrap().info().unwrap();
        assert_eq!(info.header.curve, curve);
        assert_eq!(
            (
                info.header.variables,
                info.header.public,
                info.header.domain_size
            ),
            (8, 2, 8)
        );
        assert!(info.circuit_hash.unwrap().to_string().starts_with(circuit));
        let names: Vec<_> = info
            .contributions
            .iter()
            .map(|c| c.name.as_deref())
            .collect();
        assert_eq!(names, [Some("first contribution"), Some("the beacon")]);
        for (contribution, hash) in info.contributions.iter().zip(hashes) {
            assert!(
                contribution.hash.to_string().starts_with(hash),
                "{:?}",
                contribution.hash
            );
        }
        assert!(!info.contributions[0].beacon && info.contributions[1].beacon);
        let total: u64 = info.sections.iter().map(|section| section.bytes + 12).sum();
        assert_eq!(total + 12, bytes.len() as u64);
        assert!(info.sections.iter().all(|section| section.name.is_some()));
    }
}

#[test]
fn cut_keys_are_refused_with_section_and_offset() {
    for curve in CURVES {
        let bytes = key_bytes(curve);
        for length in 0..bytes.len() {
            let error = ZkeyFile::parse(&bytes[..length]).unwrap_err();
            assert!(error.offset <= length as u64, "{length}: {error}");
            let text = error.to_string();
            assert!(
                text.starts_with(".zkey file, ") && text.contains(", byte "),
                "{text}"
            );
        }
        // Lengths that were made to fit the cut contradict the header.
        let file = ZkeyFile::parse(&bytes).unwrap();
        for (kind, content) in file.container().sections() {
            let mut wrong = bytes.clone();
            wrong.drain(content.end - 1..content.end);
            let length = (content.len() as u64 - 1).to_le_bytes();
            wrong[content.start - 8..content.start].copy_from_slice(&length);
            let result = ZkeyFile::parse(&wrong)
                .map(|file| with_curve!(curve, E => file.read::<E>(PointCheck::Full).map(|_| ())));
            let error = result.and_then(|read| read).unwrap_err();
            assert_eq!(error.section, Some(kind), "{error}");
        }
    }
}

/// A file with any byte changed is refused, or read as another key that is written back byte for byte.
#[test]
fn changed_keys_are_refused_or_read() {
    let bytes = key_bytes(Curve::Bn254);
    let mut read = 0;
    for index in 0..bytes.len() {
        let mut wrong = bytes.clone();
        wrong[index] ^= 0x41;
        let Ok(file) = ZkeyFile::parse(&wrong) else {
            continue;
        };
        // A section whose kind became one that keys do not have is not kept.
        let mut kinds = file.container().sections().map(|(kind, _)| kind);
        if !kinds.all(|kind| (1..=10).contains(&kind)) {
            continue;
        }
        if let Ok(key) = file.read::<Bn254>(PointCheck::Full) {
            let out = key.write(Cursor::new(Vec::new())).unwrap().into_inner();
            assert!(out == wrong, "byte {index}");
            read += 1;
        }
    }
    // Among others in the contributions' names and hashes.
    assert!(read > 100, "{read}");
}

#[test]
fn every_section_s_points_are_checked() {
    let bytes = key_bytes(Curve::Bls12_381);
    let file = ZkeyFile::parse(&bytes).unwrap();
    let outside = outside_subgroup::<ark_bls12_381::g1::Config>();
    let mut key = key::<Bls12_381>();
    key.h[0] = outside;
    let out = key.write(Cursor::new(Vec::new())).unwrap().into_inner();
    let wrong = ZkeyFile::parse(&out).unwrap();
    let error = wrong.read::<Bls12_381>(PointCheck::Full).unwrap_err();
    assert_eq!(
        (error.section, error.reason),
        (Some(9), Reason::NotInSubgroup)
    );
    assert!(wrong.read::<Bls12_381>(PointCheck::Skip).is_ok());

    for (kind, content) in file.container().sections() {
        // Where a point that is not at infinity starts.
        let at = match kind {
            1 => continue,
            2 => content.start + 4 + 48 + 4 + 32 + 12,
            4 => continue,
            10 => content.start + 64 + 4,
            _ => (content.start..content.end)
                .step_by(if kind == 7 { 192 } else { 96 })
                .find(|at| bytes[*at..at + 96].iter().any(|byte| *byte != 0))
                .unwrap(),
        };
        let refused = |place: usize, value: u8| {
            let mut wrong = bytes.clone();
            wrong[place] = value;
            let wrong = ZkeyFile::parse(&wrong).unwrap();
            let error = wrong.read::<Bls12_381>(PointCheck::Full).unwrap_err();
            assert_eq!(
                (error.section, error.offset),
                (Some(kind), at as u64),
                "{error}"
            );
            (
                error.reason,
                wrong.read::<Bls12_381>(PointCheck::Skip).is_ok(),
            )
        };
        assert_eq!(refused(at, bytes[at] ^ 1), (Reason::NotOnCurve, true));
        assert_eq!(refused(at + 47, 0xff), (Reason::NotCanonical, false));
    }
}

#[test]
fn entries_out_of_range_are_refused() {
    let bytes = key_bytes(Curve::Bn254);
    let file = ZkeyFile::parse(&bytes).unwrap();
    let (_, content) = file
        .container()
        .sections()
        .find(|(kind, _)| *kind == 4)
        .unwrap();
    let entry = content.start + 4 + 44;
    let refused = |place: usize, value: u8| {
        let mut wrong = bytes.clone();
        wrong[place] = value;
        let wrong = ZkeyFile::parse(&wrong).unwrap();
        let error = wrong.read::<Bn254>(PointCheck::Skip).unwrap_err();
        assert_eq!(
            (error.section, error.offset),
            (Some(4), entry as u64),
            "{error}"
        );
        error.to_string()
    };
    assert!(refused(entry, 2).contains("matrix 2"));
    assert!(refused(entry + 4, 8).contains("row 8"));
    assert!(refused(entry + 8, 8).contains("variable 8"));
    assert!(refused(entry + 43, 0xff).contains("below the field's prime"));
}

#[test]
fn other_curves_and_proof_systems_are_named() {
    let bytes = key_bytes(Curve::Bn254);
    let error = ZkeyFile::parse(&bytes)
        .unwrap()
        .read::<Bls12_381>(PointCheck::Full)
        .unwrap_err();
    assert!(error.to_string().contains("bn254"), "{error}");
    let mut plonk = bytes.clone();
    plonk[24] = 2;
    let error = ZkeyFile::parse(&plonk).unwrap_err().to_string();
    assert!(error.contains("PLONK: not supported"), "{error}");
    let mut other = bytes;
    other[24 + 4 + 12 + 4] ^= 1;
    let error = ZkeyFile::parse(&other).unwrap_err().to_string();
    assert!(error.contains("a curve other than"), "{error}");
}

#[test]
fn parts_that_contradict_each_other_are_not_written() {
    let key = key::<Bn254>();
    let wrong: [fn(&mut Zkey<Bn254>); 8] = [
        |key| key.public += 1,
        |key| key.a.truncate(3),
        |key| key.b_g2.truncate(3),
        |key| key.c.truncate(3),
        |key| key.h.truncate(3),
        |key| key.coefficients[0].row = 8,
        |key| key.coefficients[0].variable = 8,
        |key| key.order = vec![1, 2, 3],
    ];
    for change in wrong {
        let mut key = key.clone();
        change(&mut key);
        assert!(key.write(Cursor::new(Vec::new())).is_err());
        let resident = ResidentKey::from_zkey(key, ResidentForm::Plain);
        assert!(matches!(resident, Err(ProveError::InvalidKey(_))));
    }
}

#[test]
fn a_checked_key_is_remembered_until_it_changes() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("a.zkey");
    let keys = CheckedKeyStore::in_directory(directory.path().join("state/checked"));
    let trust = Trust::Remembered(&keys);
    let load = || Zkey::<Bls12_381>::load(&MappedFile::open(&path).unwrap(), trust);
    let mut key = key::<Bls12_381>();
    key.save(&path).unwrap();
    assert_eq!(load().unwrap().1, Checked::Full);
    assert_eq!(load().unwrap(), (key.clone(), Checked::PointsRemembered));

    // A changed file is checked anew; its fault is found, and its digest not remembered.
    key.delta_g1 = G1Affine::new_unchecked(key.delta_g1.x, key.delta_g1.y + key.delta_g1.x);
    key.save(&path).unwrap();
    for _ in 0..2 {
        let error = load().unwrap_err();
        assert!(matches!(error, ReadError::Format { .. }), "{error}");
    }
    let file = MappedFile::open(&path).unwrap();
    keys.remember(&CheckedKeyStore::digest(&file), &path)
        .unwrap();
    assert_eq!(load().unwrap().1, Checked::PointsRemembered);

    #[cfg(unix)]
    {
        use std::os::unix::fs::PermissionsExt;
        let state = directory.path().join("state/checked");
        let mode = |mode| {
            let permissions = std::fs::Permissions::from_mode(mode);
            std::fs::set_permissions(&state, permissions).unwrap();
        };
        assert_eq!(
            std::fs::metadata(&state).unwrap().permissions().mode() & 0o777,
            0o700
        );
        // Users who can write to the directory could mark any file as checked.
        mode(0o777);
        assert!(load().is_err());
        mode(0o700);
        assert!(load().is_ok());
    }
}

/// Between digesting and reading, another process may write other points to the file: without a check
/// afterwards they would be taken for the points that were checked before.
#[test]
#[expect(
    clippy::disallowed_methods,
    reason = "nothing else runs on this thread"
)]
fn a_key_that_is_overwritten_after_its_digest_is_not_taken_for_the_remembered_one() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("a.zkey");
    let keys = CheckedKeyStore::in_directory(directory.path().join("checked"));
    let trust = Trust::Remembered(&keys);
    key::<Bls12_381>().save(&path).unwrap();
    let load = |file: &MappedFile| Zkey::<Bls12_381>::load(file, trust);
    load(&MappedFile::open(&path).unwrap()).unwrap();

    let opened = MappedFile::open(&path).unwrap();
    assert_eq!(load(&opened).unwrap().1, Checked::PointsRemembered);
    // Longer than the resolution of the file system's clock.
    std::thread::sleep(std::time::Duration::from_millis(30));
    let time = std::fs::metadata(&path).unwrap().modified().unwrap();
    let content = std::fs::read(&path).unwrap();
    let mut file = std::fs::OpenOptions::new().write(true).open(&path).unwrap();
    std::io::Write::write_all(&mut file, &content).unwrap();
    file.set_modified(time).unwrap();
    let error = load(&opened).unwrap_err();
    assert!(
        matches!(error, ReadError::File(FileError::Changed { .. })),
        "{error}"
    );
}
