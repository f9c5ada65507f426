//! Systems from arkworks circuits and from rows.

use ark_bls12_381::Fr;
use ark_ff::{BigInteger, Field, One, PrimeField, UniformRand, Zero};
use ark_relations::gr1cs::{
    ConstraintSynthesizer, ConstraintSystemRef, LinearCombination, SynthesisError, Variable,
};
use ark_std::rand::seq::SliceRandom;
use ark_std::rand::{Rng, SeedableRng, rngs::StdRng};
use proofmill_r1cs::{Assignment, Coefficients, Matrix, R1cs, R1csError, Unsatisfied};
use proptest::prelude::*;
use sha2::{Digest, Sha256};

/// out = x³ + x + 5, x secret.
struct Cubic {
    x: Option<Fr>,
}

impl ConstraintSynthesizer<Fr> for Cubic {
    fn generate_constraints(self, cs: ConstraintSystemRef<Fr>) -> Result<(), SynthesisError> {
        let value = |f: fn(Fr) -> Fr| self.x.map(f).ok_or(SynthesisError::AssignmentMissing);
        let out = cs.new_input_variable(|| value(|x| x * x * x + x + Fr::from(5)))?;
        let x = cs.new_witness_variable(|| value(|x| x))?;
        let square = cs.new_witness_variable(|| value(|x| x * x))?;
        let one = Fr::one();
        let lc = |terms: Vec<(Fr, Variable)>| LinearCombination(terms);
        cs.enforce_r1cs_constraint(|| x.into(), || x.into(), || square.into())?;
        // x is named twice on purpose.
        cs.enforce_r1cs_constraint(
            || square.into(),
            || x.into(),
            || {
                lc(vec![
                    (one, out),
                    (-one - one, x),
                    (one, x),
                    (-Fr::from(5), Variable::One),
                ])
            },
        )
    }
}

#[test]
fn a_circuit_becomes_a_system() {
    let system = R1cs::from_circuit(Cubic { x: None }).unwrap();
    assert_eq!((system.num_instance(), system.num_witness()), (2, 2));
    assert_eq!(system.num_constraints(), 2);
    let [_, _, c] = system.matrices();
    let row: Vec<(usize, Fr)> = c
        .row(1)
        .map(|(column, index)| (column, system.coefficients()[index]))
        .collect();
    assert_eq!(row, [(0, -Fr::from(5)), (1, Fr::one()), (2, -Fr::one())]);

    let assignment = Assignment::from_circuit(Cubic {
        x: Some(Fr::from(3)),
    })
    .unwrap();
    assert_eq!(assignment.inputs(), [Fr::from(35)]);
    assert_eq!(assignment.witness(), [3, 9].map(Fr::from));
    assert_eq!(system.is_satisfied(assignment.z()), Ok(()));
    assert!(
        !format!("{assignment:?}").contains('9'),
        "a witness is not printed"
    );

    let wrong = Assignment::new(&[Fr::from(36)], &[3, 9].map(Fr::from));
    assert_eq!(system.is_satisfied(wrong.z()), Err(Unsatisfied { row: 1 }));
    let wrong = Assignment::new(&[Fr::from(35)], &[3, 10].map(Fr::from));
    assert_eq!(system.is_satisfied(wrong.z()), Err(Unsatisfied { row: 0 }));
    assert!(system.is_satisfied(&[]).is_err());
    assert!(
        system.is_satisfied(&[Fr::zero(); 4]).is_err(),
        "z must start with one"
    );
}

#[test]
fn a_missing_witness_is_an_error() {
    let error = Assignment::<Fr>::from_circuit(Cubic { x: None }).unwrap_err();
    assert!(matches!(error, R1csError::Synthesis(_)), "{error}");
}

#[test]
fn malformed_rows_are_refused() {
    let row = |column| vec![vec![(Fr::one(), column)]];
    let error = R1cs::from_rows(1, 1, [row(0), row(2), row(0)]).unwrap_err();
    assert!(
        matches!(
            error,
            R1csError::Column {
                row: 0,
                column: 2,
                variables: 2
            }
        ),
        "{error}"
    );
    let error = R1cs::from_rows(1, 1, [row(0), vec![], row(0)]).unwrap_err();
    assert!(matches!(error, R1csError::Rows([1, 0, 1])), "{error}");
    let error = R1cs::<Fr>::from_rows(0, 1, Default::default()).unwrap_err();
    assert!(matches!(error, R1csError::Size { .. }), "{error}");
    let error = R1cs::<Fr>::from_rows(1, usize::MAX, Default::default()).unwrap_err();
    assert!(matches!(error, R1csError::Size { .. }), "{error}");
}

type Rows = [Vec<Vec<(Fr, usize)>>; 3];

fn random_rows(rng: &mut StdRng, rows: usize, variables: usize) -> Rows {
    let pool = [
        Fr::one(),
        -Fr::one(),
        Fr::from(2),
        Fr::rand(rng),
        Fr::zero(),
    ];
    std::array::from_fn(|_| {
        (0..rows)
            .map(|_| {
                let terms = rng.gen_range(0..6);
                let term = |rng: &mut StdRng| {
                    (
                        pool[rng.gen_range(0..pool.len())],
                        rng.gen_range(0..variables),
                    )
                };
                (0..terms).map(|_| term(rng)).collect()
            })
            .collect()
    })
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(40))]

    #[test]
    fn products_agree_with_the_definition(seed: u64, rows in 0usize..5000, witness in 0usize..40) {
        let rng = &mut StdRng::seed_from_u64(seed);
        let data = random_rows(rng, rows, 2 + witness);
        let system = R1cs::from_rows(2, witness, data.clone()).unwrap();
        let z: Vec<Fr> = (0..2 + witness)
            .map(|_| if rng.gen_bool(0.7) { Fr::from(u64::from(rng.r#gen::<bool>())) } else { Fr::rand(rng) })
            .collect();
        let products: Vec<Vec<Fr>> = data
            .iter()
            .map(|m| m.iter().map(|r| r.iter().map(|(c, i)| *c * z[*i]).sum()).collect())
            .collect();
        for (matrix, expected) in system.matrices().into_iter().zip(&products) {
            let mut out = vec![Fr::zero(); rows];
            system.multiply(matrix, &z, &mut out).unwrap();
            prop_assert_eq!(&out, expected);
        }
        let broken = (0..rows).find(|i| products[0][*i] * products[1][*i] != products[2][*i]);
        let expected = match broken {
            _ if !z[0].is_one() => Err(Unsatisfied { row: 0 }),
            None => Ok(()),
            Some(row) => Err(Unsatisfied { row }),
        };
        prop_assert_eq!(system.is_satisfied(&z), expected);
    }

    /// The order of terms does not matter, anything else does.
    #[test]
    fn digests_tell_systems_apart(seed: u64, rows in 1usize..20) {
        let rng = &mut StdRng::seed_from_u64(seed);
        let data = random_rows(rng, rows, 5);
        let digest = |instance, data: Rows| {
            R1cs::from_rows(instance, 5 - instance, data).unwrap().digest()
        };
        let original = digest(2, data.clone());
        let mut reordered = data.clone();
        reordered.iter_mut().flatten().for_each(|row| row.reverse());
        prop_assert_eq!(digest(2, reordered), original);
        prop_assert_ne!(digest(3, data.clone()), original);
        let mut changed = data.clone();
        let (matrix, row) = (rng.gen_range(0..3), rng.gen_range(0..rows));
        changed[matrix][row].push((Fr::from(7).inverse().unwrap(), rng.gen_range(0..5)));
        prop_assert_ne!(digest(2, changed), original);
        let mut longer = data;
        longer.iter_mut().for_each(|m| m.push(vec![]));
        prop_assert_ne!(digest(2, longer), original);
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(40))]

    /// Entries in any order, some of them repeated and some zero, make the matrix their rows make.
    #[test]
    fn entries_make_the_same_matrix_as_rows(seed: u64, rows in 0usize..50, witness in 0usize..300) {
        let rng = &mut StdRng::seed_from_u64(seed);
        let data = random_rows(rng, rows, 2 + witness);
        let system = R1cs::from_rows(2, witness, data.clone()).unwrap();
        let mut entries: Vec<(u32, u32, Fr)> = data[0]
            .iter()
            .enumerate()
            .flat_map(|(row, terms)| terms.iter().map(move |(value, column)| (row as u32, *column as u32, *value)))
            .collect();
        if rng.r#gen() {
            entries.shuffle(rng);
        }
        let mut table = Coefficients::new();
        let matrix = Matrix::from_entries(rows, 2 + witness, entries.iter().copied(), &mut table).unwrap();
        prop_assert_eq!(matrix.rows(), rows);
        for row in 0..rows {
            let of = |matrix: &Matrix, table: &[Fr]| -> Vec<(usize, Fr)> {
                matrix.row(row).map(|(column, index)| (column, table[index])).collect()
            };
            prop_assert_eq!(of(&matrix, table.values()), of(system.matrices()[0], system.coefficients()));
        }
        if let Some(widest) = entries.iter().map(|(_, column, _)| *column as usize).max() {
            let error = Matrix::from_entries(rows, widest, entries.iter().copied(), &mut table).unwrap_err();
            let named = matches!(error, R1csError::Column { column, .. } if column == widest);
            prop_assert!(named);
            let last = entries.iter().map(|(row, _, _)| *row as usize).max().unwrap();
            let error = Matrix::from_entries(last, 2 + witness, entries.iter().copied(), &mut table).unwrap_err();
            let named = matches!(error, R1csError::Row { row, .. } if row == last);
            prop_assert!(named);
        }
    }
}

#[test]
fn coefficients_are_found_again() {
    let rng = &mut StdRng::seed_from_u64(9);
    let values: Vec<Fr> = (0..3000).map(|_| Fr::rand(rng)).collect();
    let mut table = Coefficients::new();
    assert_eq!(table.index(-Fr::one()), 1);
    assert_eq!(table.index(Fr::one()), 0);
    for _ in 0..2 {
        for (i, value) in values.iter().enumerate() {
            assert_eq!(table.index(*value), i as u32 + 2);
        }
    }
    assert_eq!(table.values()[2..], values);
}

/// Keys on disk name the circuit they are for by its digest: it must not change.
#[test]
fn the_digest_is_as_documented() {
    let two = Fr::from(2);
    let system = R1cs::from_rows(
        1,
        1,
        [
            vec![vec![(two, 1)], vec![]],
            vec![vec![(Fr::one(), 0)], vec![(-Fr::one(), 1)]],
            vec![vec![], vec![]],
        ],
    )
    .unwrap();
    let mut bytes = b"proofmill/r1cs/1".to_vec();
    let longs = |bytes: &mut Vec<u8>, numbers: &[u64]| {
        bytes.extend(numbers.iter().flat_map(|number| number.to_le_bytes()));
    };
    let words = |bytes: &mut Vec<u8>, numbers: &[u32]| {
        bytes.extend(numbers.iter().flat_map(|number| number.to_le_bytes()));
    };
    longs(&mut bytes, &[32]);
    bytes.extend(Fr::MODULUS.to_bytes_le());
    longs(&mut bytes, &[1, 1, 2, 3]);
    for coefficient in [Fr::one(), -Fr::one(), two] {
        bytes.extend(coefficient.into_bigint().to_bytes_le());
    }
    longs(&mut bytes, &[1]);
    words(&mut bytes, &[0, 1, 1, 1, 2]);
    longs(&mut bytes, &[2]);
    words(&mut bytes, &[0, 1, 2, 0, 1, 0, 1]);
    longs(&mut bytes, &[0]);
    words(&mut bytes, &[0, 0, 0]);
    assert_eq!(system.digest(), *Sha256::digest(&bytes));
}
