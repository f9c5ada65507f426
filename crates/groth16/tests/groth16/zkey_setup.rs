//! Powers of tau made by snarkjs, and the keys made from them.

use std::io::Cursor as Memory;

use ark_ec::AffineRepr;
use ark_std::rand::{SeedableRng, rngs::StdRng};
use proofmill_groth16::snarkjs::{
    PTAU_FORMAT, Powers, Ptau, PtauHeader, ZkeyFile, ZkeySetupError, setup_zkey,
    setup_zkey_from_ptau,
};
use proofmill_groth16::{Bls12_381, Bn254, Curve, KeyElement, SnarkCurve, Weakness};
use proofmill_r1cs::iden3::{
    Container, ContainerWriter, Format, FormatError, MontgomeryField, R1CS_FORMAT, R1csFile, Reason,
};

const CUBE: &[u8] = include_bytes!("../../../r1cs/tests/fixtures/cube.r1cs");
const CUBE_BLS: &[u8] = include_bytes!("../../../r1cs/tests/fixtures/cube_bls12381.r1cs");
/// Powers of tau of the circuit's own power; `PTAU_4` is of a larger one.
const PTAU_3: &[u8] = include_bytes!("../fixtures/setup/bn128_3.ptau");
const PTAU_4: &[u8] = include_bytes!("../fixtures/setup/bn128_4.ptau");
const PTAU_BLS: &[u8] = include_bytes!("../fixtures/setup/bls12381_3.ptau");
const ZKEY_3: &[u8] = include_bytes!("../fixtures/setup/bn128_3.zkey");
const ZKEY_4: &[u8] = include_bytes!("../fixtures/setup/bn128_4.zkey");
const ZKEY_BLS: &[u8] = include_bytes!("../fixtures/setup/bls12381_3.zkey");
const CONTRIBUTED: &[u8] = include_bytes!("../fixtures/setup/bn128_contributed.zkey");

static ZKEY: Format = Format {
    name: ".zkey",
    magic: *b"zkey",
    version: 1,
    sections: &[],
};

fn rng() -> StdRng {
    StdRng::seed_from_u64(8)
}

fn setup<E: SnarkCurve>(
    circuit: &[u8],
    ptau: &[u8],
    contribution: Option<&str>,
) -> Result<Vec<u8>, ZkeySetupError> {
    let circuit = R1csFile::parse(circuit)?;
    let ptau = Ptau::<E>::parse(ptau)?;
    let out = Memory::new(Vec::new());
    let key = setup_zkey_from_ptau(&circuit, &ptau, contribution, &mut rng(), out, &|_| {})?;
    Ok(key.into_inner())
}

/// The file with its sections changed: `edit` returns a section's new content, or `None` to drop the section.
fn edited(bytes: &[u8], edit: impl Fn(u32, &[u8]) -> Option<Vec<u8>>) -> Vec<u8> {
    let container = Container::parse(&PTAU_FORMAT, bytes).unwrap();
    let mut out = ContainerWriter::new(Memory::new(Vec::new()), &PTAU_FORMAT).unwrap();
    for (kind, content) in container.sections() {
        if let Some(content) = edit(kind, &bytes[content]) {
            out.section(kind, &content).unwrap();
        }
    }
    out.finish().unwrap().into_inner()
}

fn unprepared(bytes: &[u8]) -> Vec<u8> {
    edited(bytes, |kind, content| (kind < 12).then(|| content.to_vec()))
}

#[test]
fn keys_are_those_of_snarkjs() {
    for (ptau, zkey) in [(PTAU_3, ZKEY_3), (PTAU_4, ZKEY_4)] {
        assert!(setup::<Bn254>(CUBE, ptau, None).unwrap() == zkey);
        assert!(setup::<Bn254>(CUBE, &unprepared(ptau), None).unwrap() == zkey);
    }
    assert!(setup::<Bls12_381>(CUBE_BLS, PTAU_BLS, None).unwrap() == ZKEY_BLS);
    let unprepared = unprepared(PTAU_BLS);
    assert!(setup::<Bls12_381>(CUBE_BLS, &unprepared, None).unwrap() == ZKEY_BLS);
}

#[test]
fn a_contribution_changes_what_depends_on_delta() {
    let ours = setup::<Bn254>(CUBE, PTAU_4, Some("two")).unwrap();
    let sizes = |bytes: &[u8]| -> Vec<(u32, std::ops::Range<usize>)> {
        Container::parse(&ZKEY, bytes).unwrap().sections().collect()
    };
    // The same sections of the same sizes as snarkjs's contribution of the same name.
    assert_eq!(sizes(&ours), sizes(CONTRIBUTED));
    for (kind, content) in sizes(&ours) {
        let same = ours[content.clone()] == CONTRIBUTED[content];
        assert_eq!(same, [1, 3, 4, 5, 6, 7].contains(&kind), "section {kind}");
    }
}

#[test]
fn development_keys_have_their_shape() {
    let circuit = R1csFile::parse(CUBE).unwrap();
    let out = Memory::new(Vec::new());
    let key = setup_zkey::<Bn254, _>(&circuit, &mut rng(), out, &|_| {}).unwrap();
    assert_eq!(key.into_inner().len(), ZKEY_3.len());
}

/// A header may state any number of wires, and a key has points for each.
#[test]
fn wires_that_are_only_stated_are_not_allocated_for() {
    let mut circuit = CUBE.to_vec();
    let header = Container::parse(&R1CS_FORMAT, CUBE)
        .unwrap()
        .sections()
        .find(|(kind, _)| *kind == 1)
        .unwrap()
        .1;
    // After the length of the prime and the prime.
    circuit[header.start + 36..][..4].copy_from_slice(&100_000_u32.to_le_bytes());
    let circuit = R1csFile::parse(&circuit).unwrap();
    assert_eq!(circuit.header().n_wires, 100_000);
    let out = || Memory::new(Vec::new());
    let error = setup_zkey::<Bn254, _>(&circuit, &mut rng(), out(), &|_| {}).unwrap_err();
    assert!(matches!(error, ZkeySetupError::Format(_)), "{error}");
    let ptau = Ptau::<Bn254>::parse(PTAU_3).unwrap();
    let made = setup_zkey_from_ptau(&circuit, &ptau, None, &mut rng(), out(), &|_| {});
    let error = made.unwrap_err();
    assert!(matches!(error, ZkeySetupError::Format(_)), "{error}");
}

/// Before the first contribution δ is γ; afterwards it is not.
#[test]
fn a_key_that_nobody_contributed_to_is_named() {
    let weaknesses = |bytes: &[u8]| {
        let info = ZkeyFile::parse(bytes).unwrap().info().unwrap();
        info.weaknesses
    };
    let expected = [Weakness::Related(KeyElement::Gamma, KeyElement::Delta)];
    for uncontributed in [ZKEY_3, ZKEY_4, ZKEY_BLS] {
        assert_eq!(weaknesses(uncontributed), expected);
    }
    assert_eq!(weaknesses(CONTRIBUTED), []);
    let ours = setup::<Bn254>(CUBE, PTAU_4, Some("ours")).unwrap();
    assert_eq!(weaknesses(&ours), []);
    let circuit = R1csFile::parse(CUBE).unwrap();
    let out = Memory::new(Vec::new());
    let ours = setup_zkey::<Bn254, _>(&circuit, &mut rng(), out, &|_| {}).unwrap();
    assert_eq!(weaknesses(&ours.into_inner()), []);
}

#[test]
fn what_does_not_fit_is_refused() {
    let error = setup::<Bls12_381>(CUBE, PTAU_BLS, None).unwrap_err();
    assert_eq!(
        error.to_string(),
        "the circuit is for BN254, the key for bls12-381"
    );
    let error = setup::<Bn254>(CUBE, PTAU_BLS, None).unwrap_err();
    assert_eq!(
        error.to_string(),
        ".ptau file, section 1 (header), byte 24: for the field bls12-381, not bn254"
    );
    // The first points of a file are those of a smaller ceremony.
    let g1 = 64;
    let small = edited(PTAU_3, |kind, content| {
        let mut content = content.to_vec();
        match kind {
            1 => content[36] = 2,
            2 => content.truncate(7 * g1),
            3 => content.truncate(4 * 2 * g1),
            4 | 5 => content.truncate(4 * g1),
            12.. => return None,
            _ => {}
        }
        Some(content)
    });
    let error = setup::<Bn254>(CUBE, &small, None).unwrap_err();
    assert!(
        matches!(
            error,
            ZkeySetupError::Power {
                needed: 3,
                found: 2
            }
        ),
        "{error}"
    );
    Ptau::<Bn254>::parse(&small)
        .unwrap()
        .verify(&mut rng())
        .unwrap();
}

fn verify<E: SnarkCurve>(bytes: &[u8]) -> Result<(), FormatError> {
    Ptau::<E>::parse(bytes)?.verify(&mut rng())
}

#[test]
fn powers_are_verified() {
    verify::<Bn254>(PTAU_3).unwrap();
    verify::<Bn254>(PTAU_4).unwrap();
    verify::<Bls12_381>(PTAU_BLS).unwrap();
    verify::<Bn254>(&unprepared(PTAU_3)).unwrap();
    // Two points of a section are swapped.
    for (kind, size, what) in [
        (2, 64, "not the powers of one number"),
        (3, 128, "not the powers of tau"),
        (4, 64, "not multiples of the powers of tau"),
        (5, 64, "not multiples of the powers of tau"),
        (12, 64, "not the Lagrange polynomials"),
        (13, 128, "not the Lagrange polynomials"),
        (14, 64, "not the Lagrange polynomials"),
        (15, 64, "not the Lagrange polynomials"),
    ] {
        let wrong = edited(PTAU_3, |found, content| {
            let mut content = content.to_vec();
            if found == kind {
                let (head, tail) = content.split_at_mut(6 * size);
                head[5 * size..].swap_with_slice(&mut tail[..size]);
            }
            Some(content)
        });
        let error = verify::<Bn254>(&wrong).unwrap_err();
        assert_eq!(error.section, Some(kind), "{error}");
        assert!(error.to_string().ends_with(what), "{error}");
    }
    let wrong = edited(PTAU_3, |kind, content| {
        let own = &PTAU_4[PTAU_4.len() - 128..];
        Some(if kind == 6 {
            own.to_vec()
        } else {
            content.to_vec()
        })
    });
    assert_eq!(verify::<Bn254>(&wrong).unwrap_err().section, Some(6));
}

#[test]
fn points_are_checked() {
    let at = |bytes: &[u8], section| -> usize {
        let container = Container::parse(&PTAU_FORMAT, bytes).unwrap();
        let found = container.sections().find(|(kind, _)| *kind == section);
        found.unwrap().1.start
    };
    let start = at(PTAU_3, 4);
    let refused = |offset: usize, byte: u8| {
        let mut bytes = PTAU_3.to_vec();
        bytes[offset] ^= byte;
        let error = Ptau::<Bn254>::parse(&bytes)
            .unwrap()
            .g1(Powers::AlphaTau, 8)
            .unwrap_err();
        assert_eq!(error.section, Some(4));
        (error.offset - start as u64, error.reason)
    };
    assert_eq!(
        refused(start + 2 * 64 + 31, 0xc0),
        (128, Reason::NotCanonical)
    );
    assert_eq!(refused(start + 5 * 64 + 1, 1), (320, Reason::NotOnCurve));
    // A point of BLS12-381's curve outside the subgroup.
    let point = (1u64..)
        .find_map(|x| ark_bls12_381::G1Affine::get_point_from_x_unchecked(x.into(), false))
        .unwrap();
    assert!(!point.is_in_correct_subgroup_assuming_on_curve());
    let start = at(PTAU_BLS, 5);
    let mut bytes = PTAU_BLS.to_vec();
    let mut encoded = Vec::new();
    for coordinate in [point.x, point.y] {
        coordinate.write_montgomery_le(&mut encoded);
    }
    bytes[start + 96..start + 192].copy_from_slice(&encoded);
    let ptau = Ptau::<Bls12_381>::parse(&bytes).unwrap();
    let error = ptau.g1(Powers::BetaTau, 8).unwrap_err();
    assert_eq!(error.reason, Reason::NotInSubgroup);
    assert_eq!(error.offset, start as u64 + 96);
}

#[test]
fn headers_tell_the_curve() {
    let header = PtauHeader::read(PTAU_BLS).unwrap();
    assert_eq!((header.curve, header.power), (Curve::Bls12_381, 3));
    let ptau = Ptau::<Bn254>::parse(PTAU_4).unwrap();
    assert!(ptau.is_prepared());
    assert_eq!(ptau.header().power, 4);
    assert_eq!(
        ptau.g1(Powers::Tau, 1).unwrap()[0],
        ark_bn254::G1Affine::generator()
    );
    let mut bytes = PTAU_4.to_vec();
    bytes[28] ^= 1;
    let error = PtauHeader::read(&bytes).unwrap_err();
    assert!(matches!(error.reason, Reason::Unsupported(_)), "{error}");
}

#[test]
fn a_file_cut_short_anywhere_is_refused() {
    for length in 0..PTAU_3.len() {
        let error = Ptau::<Bn254>::parse(&PTAU_3[..length]).unwrap_err();
        assert!(matches!(error.reason, Reason::Truncated { .. }), "{error}");
        assert!(error.offset <= length as u64, "{error}");
    }
    for section in (1..=15).filter(|section| ![7, 8, 9, 10, 11].contains(section)) {
        let short = edited(PTAU_3, |kind, content| {
            let cut = usize::from(kind == section);
            Some(content[..content.len() - cut].to_vec())
        });
        let error = Ptau::<Bn254>::parse(&short).unwrap_err();
        assert_eq!(error.section, Some(section), "{error}");
        let missing = edited(PTAU_3, |kind, content| {
            (kind != section).then(|| content.to_vec())
        });
        if section == 12 {
            assert!(!Ptau::<Bn254>::parse(&missing).unwrap().is_prepared());
        } else {
            let error = Ptau::<Bn254>::parse(&missing).unwrap_err();
            assert_eq!(
                (error.section, error.reason),
                (Some(section), Reason::MissingSection)
            );
        }
    }
}
