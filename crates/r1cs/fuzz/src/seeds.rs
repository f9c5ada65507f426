//! Writes the seeds that the targets start from: `cargo +nightly run --bin seeds` in this folder
//! fills `corpus/container`, `corpus/r1cs` and `corpus/wtns`.

use std::io::Cursor;
use std::path::Path;

use ark_bn254::Fr;
use ark_ff::UniformRand;
use ark_std::rand::rngs::StdRng;
use ark_std::rand::{Rng, SeedableRng};
use proofmill_r1cs::R1cs;
use proofmill_r1cs::iden3::{LabelledR1cs, write_r1cs, write_wtns};

fn main() -> std::io::Result<()> {
    let root = Path::new(env!("CARGO_MANIFEST_DIR"));
    let save = |target: &str, name: &str, bytes: &[u8]| {
        let folder = root.join("corpus").join(target);
        std::fs::create_dir_all(&folder)?;
        std::fs::write(folder.join(name), bytes)
    };
    for (target, name) in [
        ("r1cs", "cube.r1cs"),
        ("r1cs", "cube_bls12381.r1cs"),
        ("r1cs", "gate.r1cs"),
        ("wtns", "cube.wtns"),
        ("wtns", "cube_bls12381.wtns"),
    ] {
        let bytes = std::fs::read(root.join("../tests/fixtures").join(name))?;
        save(target, name, &bytes)?;
        save("container", name, &bytes)?;
    }
    let rng = &mut StdRng::seed_from_u64(1);
    for rows in [1usize, 20, 400] {
        let mut matrix = || -> Vec<Vec<(Fr, usize)>> {
            (0..rows)
                .map(|_| {
                    (0..rng.gen_range(0..4))
                        .map(|_| (Fr::rand(rng), rng.gen_range(0..rows + 1)))
                        .collect()
                })
                .collect()
        };
        let rows_of = [matrix(), matrix(), matrix()];
        let system = R1cs::from_rows(1, rows, rows_of).expect("a system");
        let circuit = LabelledR1cs::plain(system).expect("a field of circom's");
        let bytes = write_r1cs(Cursor::new(Vec::new()), &circuit)?.into_inner();
        save("r1cs", &format!("random-{rows}"), &bytes)?;
        let values: Vec<Fr> = [Fr::from(1)]
            .into_iter()
            .chain((0..rows).map(|_| Fr::rand(rng)))
            .collect();
        let bytes = write_wtns(Cursor::new(Vec::new()), &values)?.into_inner();
        save("wtns", &format!("random-{rows}"), &bytes)?;
    }
    Ok(())
}
