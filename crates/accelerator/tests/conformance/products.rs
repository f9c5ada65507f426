//! Products: every group, edge cases, skewed scalars, several rounds, copies of the bases.

use ark_bls12_377::G1Projective as Bls12_377G1;
use ark_bls12_381::{G1Projective as Bls12_381G1, G2Projective as Bls12_381G2};
use ark_bn254::{G1Projective as Bn254G1, G2Projective as Bn254G2};
use ark_ec::AffineRepr;
use ark_ff::PrimeField;
use ark_std::UniformRand;
use ark_std::rand::{Rng, SeedableRng, rngs::StdRng};
use proofmill_accelerator::{Device, DeviceField, DeviceGroup, DeviceJob};
use proofmill_kernels::fixed_base;

use crate::devices::{cards, devices, oracle};

/// Memory limits: for the bases alone; for a few copies of the small products' bases, more or less by
/// the size of a point; for one for each window.
const NO_COPIES: usize = 0;
const SOME_COPIES: usize = 150_000;
const ALL_COPIES: usize = usize::MAX;

fn product<G: DeviceGroup>(
    device: &dyn Device,
    points: &[G::Affine],
    scalars: &[G::ScalarField],
    memory_limit: usize,
) -> G {
    let bases = device
        .load_bases(G::points(points.to_vec()), memory_limit)
        .unwrap();
    let scalars = G::ScalarField::scalars(scalars.to_vec());
    let ticket = device.submit(DeviceJob::Msm { bases, scalars }).unwrap();
    let sum = ticket.wait().unwrap().into_sum().unwrap();
    device.evict(bases).unwrap();
    sum
}

/// Compares all devices with the oracle.
fn compare<G: DeviceGroup>(
    what: &str,
    points: &[G::Affine],
    scalars: &[G::ScalarField],
    memory_limit: usize,
) {
    compare_on::<G>(&devices(), what, points, scalars, memory_limit);
}

fn compare_on<G: DeviceGroup>(
    devices: &[Box<dyn Device>],
    what: &str,
    points: &[G::Affine],
    scalars: &[G::ScalarField],
    memory_limit: usize,
) {
    let expected: G = product(&oracle(), points, scalars, 0);
    for device in devices {
        let sum: G = product(&**device, points, scalars, memory_limit);
        assert_eq!(
            sum,
            expected,
            "{what} of {} on {}",
            G::GROUP,
            device.caps().name
        );
    }
}

fn random_points<G: DeviceGroup>(rng: &mut StdRng, count: usize) -> Vec<G::Affine> {
    let scalars: Vec<_> = (0..count).map(|_| G::ScalarField::rand(rng)).collect();
    fixed_base(G::generator(), &scalars)
}

/// Points whose sums meet every case of an addition.
fn awkward_points<G: DeviceGroup>(rng: &mut StdRng, count: usize) -> Vec<G::Affine> {
    let point = G::rand(rng);
    let few: Vec<G::Affine> = G::normalize_batch(&[G::zero(), point, -point, point.double()]);
    (0..count)
        .map(|_| few[rng.gen_range(0..few.len())])
        .collect()
}

/// The shapes scalars take, by name.
fn shapes<F: PrimeField>(rng: &mut StdRng, count: usize) -> Vec<(&'static str, Vec<F>)> {
    let one_for_all = F::rand(rng);
    let edges = [
        F::ZERO,
        F::ONE,
        -F::ONE,
        F::from(2u64),
        -F::from(2u64),
        F::ONE.double().inverse().unwrap(),
    ];
    let mut make = |scalar: &mut dyn FnMut(&mut StdRng, usize) -> F| -> Vec<F> {
        (0..count).map(|i| scalar(rng, i)).collect()
    };
    vec![
        ("random scalars", make(&mut |rng, _| F::rand(rng))),
        ("equal scalars", make(&mut |_, _| one_for_all)),
        ("zeros", make(&mut |_, _| F::ZERO)),
        ("edges", make(&mut |_, i| edges[i % edges.len()])),
        (
            "ends of digits",
            make(&mut |rng, i| {
                F::from(2u64).pow([i as u64 % 256]) - F::from(rng.gen_range(0..2u64))
            }),
        ),
        (
            "scalars of 32 bits",
            make(&mut |rng, _| F::from(rng.r#gen::<u32>())),
        ),
        // One bucket of the lowest window takes all, the rest is spread.
        (
            "a hot bucket",
            make(&mut |rng, _| F::rand(rng) * F::from(1u64 << 40) + F::from(3u64)),
        ),
        ("bits", make(&mut |rng, _| F::from(rng.r#gen::<bool>()))),
    ]
}

/// The shapes of scalars that large products are tested with.
const SKEWED: [&str; 3] = ["equal scalars", "random scalars", "scalars of 32 bits"];

/// All shapes with both kinds of points, and copies of the bases.
fn small<G: DeviceGroup>() {
    let mut rng = StdRng::seed_from_u64(1);
    let count = 150;
    let kinds = [
        ("random points", random_points::<G>(&mut rng, count)),
        ("awkward points", awkward_points::<G>(&mut rng, count)),
        ("equal points", vec![G::generator().into_affine(); count]),
        ("points at infinity", vec![G::Affine::zero(); count]),
    ];
    for (kind, points) in &kinds {
        for (shape, scalars) in shapes(&mut rng, count) {
            compare::<G>(&format!("{shape}, {kind}"), points, &scalars, NO_COPIES);
        }
    }
    let (_, points) = &kinds[1];
    for memory_limit in [SOME_COPIES, ALL_COPIES] {
        for (shape, scalars) in shapes(&mut rng, count).into_iter().take(3) {
            let what = format!("{shape}, copies of awkward points in {memory_limit} bytes");
            compare::<G>(&what, points, &scalars, memory_limit);
        }
    }
}

/// Few bases: none, one, two.
fn few<G: DeviceGroup>() {
    let mut rng = StdRng::seed_from_u64(2);
    for count in 0..4 {
        let points = random_points::<G>(&mut rng, count);
        for (shape, scalars) in shapes(&mut rng, count).into_iter().take(4) {
            for memory_limit in [NO_COPIES, ALL_COPIES] {
                compare::<G>(&format!("{count} {shape}"), &points, &scalars, memory_limit);
            }
        }
    }
}

/// Several rounds, the last one not full.
fn large<G: DeviceGroup>(counts: &[usize], of_shapes: &[&str]) {
    let mut rng = StdRng::seed_from_u64(3);
    for &count in counts {
        let points = random_points::<G>(&mut rng, count);
        for (shape, scalars) in shapes(&mut rng, count) {
            if of_shapes.contains(&shape) {
                compare::<G>(&format!("{count} {shape}"), &points, &scalars, NO_COPIES);
            }
        }
    }
}

#[test]
fn bls12_381_g1() {
    small::<Bls12_381G1>();
    few::<Bls12_381G1>();
    large::<Bls12_381G1>(&[1 << 12, 2500], &SKEWED);
}

#[test]
fn bls12_381_g2() {
    small::<Bls12_381G2>();
    few::<Bls12_381G2>();
    large::<Bls12_381G2>(&[1 << 12], &SKEWED[..1]);
}

#[test]
fn bls12_377_g1() {
    small::<Bls12_377G1>();
    few::<Bls12_377G1>();
    large::<Bls12_377G1>(&[1 << 12], &SKEWED);
}

#[test]
fn bn254_g1() {
    small::<Bn254G1>();
    few::<Bn254G1>();
    large::<Bn254G1>(&[1 << 12], &SKEWED);
}

#[test]
fn bn254_g2() {
    small::<Bn254G2>();
    few::<Bn254G2>();
    large::<Bn254G2>(&[1 << 12], &SKEWED[..1]);
}

/// Products on cards only, of each size. The points of a large product repeat: distinct ones would take
/// longer to make than to multiply.
fn on_cards<G: DeviceGroup>(logs: &[u32]) {
    let cards = cards();
    if cards.is_empty() {
        return;
    }
    let mut rng = StdRng::seed_from_u64(5);
    let some = random_points::<G>(&mut rng, 1 << 12);
    for &log in logs {
        let points: Vec<_> = some.iter().copied().cycle().take(1 << log).collect();
        for (shape, scalars) in shapes(&mut rng, points.len()) {
            if SKEWED.contains(&shape) {
                let what = format!("2^{log} {shape}");
                for memory_limit in [NO_COPIES, 4 << 30] {
                    compare_on::<G>(&cards, &what, &points, &scalars, memory_limit);
                }
            }
        }
    }
}

/// `make cuda-check` runs this test under compute-sanitizer.
#[test]
fn small_on_cards() {
    on_cards::<Bls12_381G1>(&[0, 5, 10]);
    on_cards::<Bls12_381G2>(&[0, 5, 10]);
    on_cards::<Bls12_377G1>(&[0, 5, 10]);
    on_cards::<Bn254G1>(&[0, 5, 10]);
    on_cards::<Bn254G2>(&[0, 5, 10]);
}

#[test]
fn large_on_cards() {
    on_cards::<Bls12_381G1>(&[16, 20, 24]);
    on_cards::<Bls12_381G2>(&[16, 20]);
    on_cards::<Bls12_377G1>(&[16, 20, 24]);
    on_cards::<Bn254G1>(&[16, 20, 24]);
    on_cards::<Bn254G2>(&[16, 20]);
}
