//! Every variable of a batch is constrained: a change of any single one violates a constraint.

use ark_bn254::Fr;
use proofmill_partition::Monolithic;
use proofmill_r1cs::{Assignment, Matrix, R1cs};

use crate::circuit::{BatchShape, UpdateBatch};
use crate::{Digest, KeyDigest, Tree, ValueDigest};

/// A replacement, an insertion and an idle update of a tree of two levels, in parts of one level.
#[test]
fn every_variable_is_constrained() {
    let key = |path: u8| KeyDigest(Digest([path << 6; 32]));
    let mut tree = Tree::with_depth(2).unwrap();
    tree.set(key(1), ValueDigest::of(b"old")).unwrap();
    let updates = [1, 2].map(|path| (key(path), ValueDigest::of(b"new")));
    let shape = BatchShape::with_depth(2, 3, 1).unwrap();
    let batch = UpdateBatch::apply(shape, &mut tree, &updates).unwrap();
    let system = R1cs::<Fr>::from_circuit(Monolithic::new(&batch)).unwrap();
    let assignment = Assignment::from_circuit(Monolithic::new(&batch)).unwrap();
    let mut z = assignment.z().to_vec();
    assert_eq!(system.is_satisfied(&z), Ok(()));

    let mut rows_of = vec![Vec::new(); z.len()];
    for matrix in system.matrices() {
        for row in 0..system.num_constraints() {
            for (column, _) in matrix.row(row) {
                rows_of[column].push(row);
            }
        }
    }
    let dot = |matrix: &Matrix, row: usize, z: &[Fr]| -> Fr {
        let entries = matrix.row(row);
        entries
            .map(|(column, coefficient)| system.coefficients()[coefficient] * z[column])
            .sum()
    };
    for column in 1..z.len() {
        let good = z[column];
        // The other bit, of a bit.
        z[column] = Fr::from(1u64) - good;
        let [a, b, c] = system.matrices();
        let is_violated = |row: &usize| dot(a, *row, &z) * dot(b, *row, &z) != dot(c, *row, &z);
        assert!(rows_of[column].iter().any(is_violated), "variable {column}");
        z[column] = good;
    }
}
