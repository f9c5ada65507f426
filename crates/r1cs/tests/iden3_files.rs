//! `.r1cs` and `.wtns` files, made by circom and by us.

use std::io::Cursor as Memory;

use ark_ff::{BigInteger, Field, PrimeField, UniformRand};
use ark_std::rand::{SeedableRng, rngs::StdRng};
use proofmill_r1cs::iden3::{
    Container, ContainerWriter, LabelledR1cs, R1CS_FORMAT, R1csFile, R1csHeader, Reason,
    ScalarField, WTNS_FORMAT, WtnsFile, write_r1cs, write_wtns,
};
use proofmill_r1cs::{R1cs, Unsatisfied};

const CUBE: &[u8] = include_bytes!("fixtures/cube.r1cs");
const CUBE_WITNESS: &[u8] = include_bytes!("fixtures/cube.wtns");
const CUBE_BLS: &[u8] = include_bytes!("fixtures/cube_bls12381.r1cs");
const CUBE_BLS_WITNESS: &[u8] = include_bytes!("fixtures/cube_bls12381.wtns");
const CUBE_GOLDILOCKS: &[u8] = include_bytes!("fixtures/cube_goldilocks.r1cs");
const GATE: &[u8] = include_bytes!("fixtures/gate.r1cs");

fn r1cs_again<F: PrimeField>(bytes: &[u8]) -> (LabelledR1cs<F>, Vec<u8>) {
    let circuit = R1csFile::parse(bytes).unwrap().read().unwrap();
    let again = write_r1cs(Memory::new(Vec::new()), &circuit).unwrap();
    (circuit, again.into_inner())
}

fn wtns_again<F: PrimeField>(bytes: &[u8]) -> (Vec<F>, Vec<u8>) {
    let witness = WtnsFile::parse(bytes).unwrap().read().unwrap();
    let again = write_wtns(Memory::new(Vec::new()), witness.values()).unwrap();
    (witness.values().to_vec(), again.into_inner())
}

fn circom_files_are_read_and_written<F: PrimeField>(prime: ScalarField, r1cs: &[u8], wtns: &[u8]) {
    let (circuit, again) = r1cs_again::<F>(r1cs);
    assert!(again == r1cs, "written as it was read");
    let expected = R1csHeader {
        prime,
        n_wires: 5,
        n_pub_out: 1,
        n_pub_in: 1,
        n_prv_in: 1,
        n_labels: 5,
        n_constraints: 2,
    };
    assert_eq!(circuit.header, expected);
    assert_eq!(circuit.labels, [0, 1, 2, 3, 4]);
    let system = &circuit.system;
    assert_eq!((system.num_instance(), system.num_witness()), (3, 2));

    let (values, again) = wtns_again::<F>(wtns);
    assert!(again == wtns, "written as it was read");
    // square = (7 − 3·2)·7 and y = square·7 + 7 + 5.
    assert_eq!(values, [1u64, 61, 2, 7, 7].map(F::from));
    assert_eq!(system.is_satisfied(&values), Ok(()));
    let mut wrong = values;
    wrong[1] += F::ONE;
    assert_eq!(system.is_satisfied(&wrong), Err(Unsatisfied { row: 1 }));
}

#[test]
fn files_of_circom() {
    circom_files_are_read_and_written::<ark_bn254::Fr>(ScalarField::Bn254, CUBE, CUBE_WITNESS);
    circom_files_are_read_and_written::<ark_bls12_381::Fr>(
        ScalarField::Bls12_381,
        CUBE_BLS,
        CUBE_BLS_WITNESS,
    );
}

#[test]
fn files_over_bls12_377_name_its_prime() {
    type F = ark_bls12_377::Fr;
    let rows = [0, 1, 2].map(|shift| vec![vec![(F::from(3u64) - F::ONE, 1 + shift)]]);
    let system = R1cs::from_rows(2, 2, rows).unwrap();
    let z = [1u64, 5, 7, 70].map(F::from);
    assert_eq!(system.is_satisfied(&z), Ok(()));

    let plain = LabelledR1cs::plain(system).unwrap();
    let bytes = write_r1cs(Memory::new(Vec::new()), &plain)
        .unwrap()
        .into_inner();
    let file = R1csFile::parse(&bytes).unwrap();
    assert_eq!(file.header().prime, ScalarField::Bls12_377);
    let (circuit, again) = r1cs_again::<F>(&bytes);
    assert!(again == bytes && circuit.system == plain.system);
    let other = file.system::<ark_bls12_381::Fr>().unwrap_err().to_string();
    assert!(
        other.ends_with("for the field BLS12-377, not BLS12-381"),
        "{other}"
    );

    let bytes = write_wtns(Memory::new(Vec::new()), &z)
        .unwrap()
        .into_inner();
    assert_eq!(
        WtnsFile::parse(&bytes).unwrap().header().prime,
        ScalarField::Bls12_377
    );
    let (values, again) = wtns_again::<F>(&bytes);
    assert!(again == bytes && values == z);
}

#[test]
fn fields_are_named() {
    assert_eq!(ScalarField::of::<ark_bn254::Fr>(), Some(ScalarField::Bn254));
    assert_eq!(
        ScalarField::of::<ark_bls12_381::Fr>(),
        Some(ScalarField::Bls12_381)
    );
    assert_eq!(
        ScalarField::of::<ark_bls12_377::Fr>(),
        Some(ScalarField::Bls12_377)
    );
    assert_eq!(ScalarField::of::<ark_bn254::Fq>(), None);
    let file = R1csFile::parse(CUBE).unwrap();
    assert_eq!(
        file.system::<ark_bls12_381::Fr>().unwrap_err().to_string(),
        ".r1cs file, section 1 (header), byte 384: for the field BN254, not BLS12-381"
    );
    let file = WtnsFile::parse(CUBE_BLS_WITNESS).unwrap();
    assert_eq!(
        file.read::<ark_bn254::Fr>().unwrap_err().to_string(),
        ".wtns file, section 1 (header), byte 24: for the field BLS12-381, not BN254"
    );
    assert_eq!(
        R1csFile::parse(CUBE_GOLDILOCKS).unwrap_err().to_string(),
        ".r1cs file, section 1 (header), byte 168: for the field Goldilocks, not BN254, BLS12-381 or BLS12-377"
    );
    assert_eq!(
        R1csFile::parse(GATE).unwrap_err().to_string(),
        ".r1cs file, section 4 (custom gates), byte 276: custom gates, which only PLONK has: not \
         supported"
    );
}

/// Runs all readers of a file.
fn read_all(bytes: &[u8]) -> Result<(), proofmill_r1cs::iden3::FormatError> {
    if bytes.starts_with(b"w") {
        WtnsFile::parse(bytes)?.read::<ark_bn254::Fr>().map(drop)
    } else {
        R1csFile::parse(bytes)?.read::<ark_bn254::Fr>().map(drop)
    }
}

#[test]
fn a_file_cut_short_anywhere_is_refused() {
    for (bytes, format) in [(CUBE, &R1CS_FORMAT), (CUBE_WITNESS, &WTNS_FORMAT)] {
        read_all(bytes).unwrap();
        let sections: Vec<_> = Container::parse(format, bytes)
            .unwrap()
            .sections()
            .collect();
        for length in 1..bytes.len() {
            let error = read_all(&bytes[..length]).unwrap_err();
            assert!(matches!(error.reason, Reason::Truncated { .. }), "{error}");
            assert!(error.offset <= length as u64, "{error}");
            if let Some((kind, content)) = sections.iter().find(|(_, at)| at.contains(&length)) {
                let at = (error.section, error.offset);
                assert_eq!(at, (Some(*kind), content.start as u64), "{error}");
            }
        }
    }
}

/// The file with each section's content cut to every length, and its length field corrected.
#[test]
fn a_section_cut_short_anywhere_is_refused() {
    for (bytes, format) in [(CUBE, &R1CS_FORMAT), (CUBE_WITNESS, &WTNS_FORMAT)] {
        let container = Container::parse(format, bytes).unwrap();
        for (cut, content) in container.sections() {
            for length in 0..content.len() {
                let mut out = ContainerWriter::new(Memory::new(Vec::new()), format).unwrap();
                for (kind, content) in container.sections() {
                    let keep = if kind == cut { length } else { content.len() };
                    out.section(kind, &bytes[content][..keep]).unwrap();
                }
                let bytes = out.finish().unwrap().into_inner();
                let error = read_all(&bytes).unwrap_err();
                assert_eq!(error.section, Some(cut), "{error}");
                let range = content.start as u64..=(content.start + length) as u64;
                let in_header = cut == 1 && content.start > 100;
                assert!(in_header || range.contains(&error.offset), "{error}");
            }
        }
    }
}

fn refused(bytes: &[u8], offset: usize, replacement: &[u8]) -> String {
    let mut bytes = bytes.to_vec();
    bytes[offset..offset + replacement.len()].copy_from_slice(replacement);
    read_all(&bytes).unwrap_err().to_string()
}

#[test]
fn inconsistent_files_are_refused() {
    let prime = ark_bn254::Fr::MODULUS.to_bytes_le();
    // The first term's coefficient, then its wire; then the counts of terms and of wires.
    assert_eq!(
        refused(CUBE, 32, &prime),
        ".r1cs file, section 2 (constraints), byte 28: a field element that is not below the \
         field's prime"
    );
    assert_eq!(
        refused(CUBE, 28, &[5]),
        ".r1cs file, section 2 (constraints), byte 28: constraint 0 names wire 5 of 5"
    );
    assert_eq!(
        refused(CUBE, 24, &[0xff; 4]),
        ".r1cs file, section 2 (constraints), byte 28: cut short: 154618822620 bytes needed, 344 \
         left"
    );
    assert_eq!(
        refused(CUBE, 384 + 36, &[3]),
        ".r1cs file, section 1 (header), byte 420: 3 wires for the constant one, 1 outputs, 1 \
         public and 1 private inputs"
    );
    assert_eq!(
        refused(CUBE, 384 + 36, &[6]),
        ".r1cs file, section 3 (labels of wires), byte 460: 40 bytes, where the header asks for 48"
    );
    assert_eq!(
        refused(CUBE, 384 + 60, &[1]),
        ".r1cs file, section 2 (constraints), byte 180: 192 bytes too many"
    );
    assert_eq!(
        refused(CUBE, 384, &[65]),
        ".r1cs file, section 1 (header), byte 384: a prime of 65 bytes: not supported"
    );
    assert_eq!(
        refused(CUBE_WITNESS, 76 + 3 * 32, &prime),
        ".wtns file, section 2 (values), byte 172: a field element that is not below the field's \
         prime"
    );
    assert_eq!(
        refused(CUBE_WITNESS, 76, &[2]),
        ".wtns file, section 2 (values), byte 76: the first value is not one"
    );
    assert_eq!(
        refused(CUBE_WITNESS, 60, &[4]),
        ".wtns file, section 2 (values), byte 76: 160 bytes, where the header asks for 128"
    );
}

#[test]
fn large_witnesses_round_trip() {
    let rng = &mut StdRng::seed_from_u64(3);
    let mut values = vec![ark_bn254::Fr::ONE];
    values.extend((0..20_000).map(|_| ark_bn254::Fr::rand(rng)));
    let bytes = write_wtns(Memory::new(Vec::new()), &values)
        .unwrap()
        .into_inner();
    let file = WtnsFile::parse(&bytes).unwrap();
    assert_eq!(file.header().n_values, 20_001);
    let witness = file.read::<ark_bn254::Fr>().unwrap();
    assert_eq!(witness.values(), values);
    assert_eq!(format!("{witness:?}"), "Witness { values: 20001 }");
    assert!(format!("{file:?}").len() < 100, "values are not printed");
    let assignment = witness.into_assignment(3);
    assert_eq!(assignment.inputs(), &values[1..3]);
    assert_eq!(assignment.witness(), &values[3..]);
    // Fields that circom does not know are not written.
    assert!(write_wtns(Memory::new(Vec::new()), &[ark_bn254::Fq::ONE]).is_err());
}

#[test]
fn systems_made_here_round_trip() {
    type Fr = ark_bls12_381::Fr;
    let terms = |terms: &[(i64, usize)]| -> Vec<(Fr, usize)> {
        terms
            .iter()
            .map(|(value, wire)| (Fr::from(*value), *wire))
            .collect()
    };
    let rows = [
        vec![terms(&[(7, 3), (-1, 0)]), vec![], terms(&[(1, 1)])],
        vec![terms(&[(1 << 40, 2)]), terms(&[(-5, 3)]), vec![]],
        vec![terms(&[(1, 1), (2, 2), (3, 3)]), vec![], vec![]],
    ];
    let system = R1cs::from_rows(2, 2, rows).unwrap();
    let circuit = LabelledR1cs::plain(system).unwrap();
    let bytes = write_r1cs(Memory::new(Vec::new()), &circuit)
        .unwrap()
        .into_inner();
    let (back, again) = r1cs_again::<Fr>(&bytes);
    assert_eq!(again, bytes);
    assert_eq!(back.labels, circuit.labels);
    assert_eq!(back.header, circuit.header);
    assert_eq!(back.system.num_instance(), 2);
    for (matrix, written) in back
        .system
        .matrices()
        .into_iter()
        .zip(circuit.system.matrices())
    {
        for row in 0..3 {
            let of = |system: &R1cs<Fr>, matrix: &proofmill_r1cs::Matrix| -> Vec<(usize, Fr)> {
                let coefficients = system.coefficients();
                matrix
                    .row(row)
                    .map(|(column, index)| (column, coefficients[index]))
                    .collect()
            };
            assert_eq!(of(&back.system, matrix), of(&circuit.system, written));
        }
    }
}
