//! A product in files for tools that speak to a ZKPU by themselves: its scalars and its table, and the comparison of a
//! result with the sum that this machine computes.
//!
//! `product_files make FOLDER LOG2_POINTS WINDOW LEVELS SEED` writes `scalars` and `table`, each filled up to a block of 512
//! bytes. `product_files check LOG2_POINTS SEED RESULT` compares the 192 bytes of the file RESULT with the product
//! of the same seed, and fails where they are another sum's.

use std::error::Error;
use std::path::Path;

use ark_bls12_377::{Fr, G1Affine, G1Projective};
use ark_ff::UniformRand;
use ark_std::rand::{SeedableRng, rngs::StdRng};
use proofmill_zkpu::curve::{decode_result, encode_scalars, table};
use proofmill_zkpu::nvme::zkpu::{BLOCK_BYTES, RESULT_BYTES, Shape};

fn main() -> Result<(), Box<dyn Error>> {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let arguments: Vec<&str> = arguments.iter().map(String::as_str).collect();
    match arguments[..] {
        ["make", folder, log_n, window, levels, seed] => {
            let (points, scalars) = product(log_n.parse()?, seed.parse()?);
            let shape = Shape {
                window: window.parse()?,
                levels: levels.parse()?,
            };
            let folder = Path::new(folder);
            std::fs::write(folder.join("scalars"), blocks(encode_scalars(&scalars)))?;
            std::fs::write(folder.join("table"), blocks(table(&points, shape)))?;
            Ok(())
        }
        ["check", log_n, seed, result] => {
            let (points, scalars) = product(log_n.parse()?, seed.parse()?);
            let bytes = std::fs::read(result)?;
            let bytes = bytes.get(..RESULT_BYTES as usize);
            let sum = decode_result(bytes.ok_or("the result is shorter than 192 bytes")?)?;
            let pairs = points.iter().zip(&scalars);
            let expected: G1Projective = pairs.map(|(point, scalar)| *point * scalar).sum();
            match sum == expected {
                true => Ok(()),
                false => Err("the result is another sum".into()),
            }
        }
        _ => Err("arguments: make FOLDER LOG2_POINTS WINDOW LEVELS SEED | check LOG2_POINTS SEED RESULT".into()),
    }
}

/// Points and scalars of a seed.
fn product(log_n: u32, seed: u64) -> (Vec<G1Affine>, Vec<Fr>) {
    let mut rng = StdRng::seed_from_u64(seed);
    let mut random = || (0..1 << log_n.min(20)).map(|_| Fr::rand(&mut rng)).collect::<Vec<Fr>>();
    let (exponents, scalars) = (random(), random());
    let generator = G1Projective::rand(&mut StdRng::seed_from_u64(seed ^ 1));
    (proofmill_kernels::fixed_base(generator, &exponents), scalars)
}

fn blocks(mut bytes: Vec<u8>) -> Vec<u8> {
    bytes.resize(bytes.len().next_multiple_of(BLOCK_BYTES as usize), 0);
    bytes
}
