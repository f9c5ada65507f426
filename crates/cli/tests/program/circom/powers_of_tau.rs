//! A prepared powers-of-tau file of BN254.
//!
//! snarkjs takes twenty minutes on two cores to make one for 2¹⁶ constraints, almost all of it in
//! transforms of points whose logarithms nobody may know. With a known τ, which is enough for tests,
//! the same points are computed from their logarithms in seconds. The layout is that of snarkjs 0.7's
//! `powersoftau_new.js` and `powersoftau_preparephase2.js`.

use std::io::Write;

use ark_bn254::{Fq, Fr, G1Affine, G1Projective, G2Affine, G2Projective};
use ark_ec::{AffineRepr, PrimeGroup};
use ark_ff::{BigInteger, FftField, Field, PrimeField};
use proofmill_kernels::fixed_base;

/// Bytes of a field element.
const FIELD_BYTES: u32 = 32;

/// The whole file for circuits of up to 2^`power` constraints: powers of `tau`, and their multiples
/// by `alpha` and `beta`, as they are and in Lagrange form for every smaller domain.
pub(crate) fn prepared(power: u32, tau: Fr, alpha: Fr, beta: Fr) -> Vec<u8> {
    let powers = powers(tau, (2 << power) - 1);
    let most = &powers[..1 << power];
    let lagrange: Vec<Fr> = (0..=power).flat_map(|it| lagrange(it, tau)).collect();
    let tau_g1: Vec<Fr> = lagrange
        .iter()
        .copied()
        .chain(lagrange_without_top(power + 1, tau))
        .collect();

    let mut header = FIELD_BYTES.to_le_bytes().to_vec();
    header.extend(Fq::MODULUS.to_bytes_le());
    header.extend(power.to_le_bytes());
    header.extend(power.to_le_bytes());
    let sections = [
        (1, header),
        (2, g1(&powers, Fr::ONE)),
        (3, g2(most)),
        (4, g1(most, alpha)),
        (5, g1(most, beta)),
        (6, g2(&[beta])),
        // No contributions are recorded.
        (7, 0u32.to_le_bytes().to_vec()),
        (12, g1(&tau_g1, Fr::ONE)),
        (13, g2(&lagrange)),
        (14, g1(&lagrange, alpha)),
        (15, g1(&lagrange, beta)),
    ];
    let mut file = b"ptau".to_vec();
    file.extend(1u32.to_le_bytes());
    file.extend((sections.len() as u32).to_le_bytes());
    for (number, content) in sections {
        file.extend(u32::to_le_bytes(number));
        file.extend((content.len() as u64).to_le_bytes());
        file.write_all(&content).expect("memory");
    }
    file
}

fn powers(base: Fr, count: usize) -> Vec<Fr> {
    std::iter::successors(Some(Fr::ONE), |it| Some(*it * base))
        .take(count)
        .collect()
}

/// All Lagrange polynomials of the domain of 2^`power` points, at `tau`:
/// Lᵢ(τ) = (τᴺ − 1)/N · ωⁱ/(τ − ωⁱ).
fn lagrange(power: u32, tau: Fr) -> Vec<Fr> {
    let roots = roots(power);
    let mut values: Vec<Fr> = roots.iter().map(|root| tau - root).collect();
    ark_ff::batch_inversion(&mut values);
    let points = Fr::from(roots.len() as u64);
    let factor = (tau.pow([roots.len() as u64]) - Fr::ONE) / points;
    values
        .iter()
        .zip(&roots)
        .map(|(value, root)| factor * root * value)
        .collect()
}

/// The same where the highest power of τ is missing from the file and counts as nothing:
/// Lᵢ(τ) − τᴺ⁻¹·ωⁱ/N.
fn lagrange_without_top(power: u32, tau: Fr) -> Vec<Fr> {
    let roots = roots(power);
    let top = tau.pow([roots.len() as u64 - 1]) / Fr::from(roots.len() as u64);
    lagrange(power, tau)
        .iter()
        .zip(&roots)
        .map(|(value, root)| *value - top * root)
        .collect()
}

fn roots(power: u32) -> Vec<Fr> {
    let root = Fr::get_root_of_unity(1 << power).expect("BN254 has roots of order 2^28");
    powers(root, 1 << power)
}

fn g1(scalars: &[Fr], factor: Fr) -> Vec<u8> {
    let scalars: Vec<Fr> = scalars.iter().map(|scalar| factor * scalar).collect();
    let points: Vec<G1Affine> = fixed_base(G1Projective::generator(), &scalars);
    let mut bytes = Vec::with_capacity(points.len() * 64);
    for point in points {
        let (x, y) = point.xy().expect("not infinity");
        montgomery(&mut bytes, &[x, y]);
    }
    bytes
}

fn g2(scalars: &[Fr]) -> Vec<u8> {
    let points: Vec<G2Affine> = fixed_base(G2Projective::generator(), scalars);
    let mut bytes = Vec::with_capacity(points.len() * 128);
    for point in points {
        let (x, y) = point.xy().expect("not infinity");
        montgomery(&mut bytes, &[x.c0, x.c1, y.c0, y.c1]);
    }
    bytes
}

/// Coordinates as iden3's binary files have them: in Montgomery form, little-endian.
fn montgomery(bytes: &mut Vec<u8>, coordinates: &[Fq]) {
    let limbs = coordinates.iter().flat_map(|it| it.0.0);
    bytes.extend(limbs.flat_map(u64::to_le_bytes));
}
