//! Transforms: every field and kind, sizes of one, two and three passes, both tables of powers.

use ark_std::rand::{SeedableRng, rngs::StdRng};
use proofmill_accelerator::{Device, DeviceField, DeviceJob, TransformKind};
use proofmill_kernels::Domain;

use crate::devices::{cards, devices, oracle};

fn transform<F: DeviceField>(
    device: &dyn Device,
    domain: &Domain<F>,
    kind: TransformKind,
    values: &[F],
) -> Vec<F> {
    let transform = F::transform(domain.clone(), kind, values.to_vec());
    let ticket = device.submit(DeviceJob::Transform(transform)).unwrap();
    ticket.wait().unwrap().into_values().unwrap()
}

fn compare<F: DeviceField>(logs: impl IntoIterator<Item = u32>, kinds: &[TransformKind]) {
    compare_on::<F>(&devices(), logs, kinds);
}

fn compare_on<F: DeviceField>(
    devices: &[Box<dyn Device>],
    logs: impl IntoIterator<Item = u32>,
    kinds: &[TransformKind],
) {
    if devices.is_empty() {
        return;
    }
    let mut rng = StdRng::seed_from_u64(4);
    let oracle = oracle();
    for log in logs {
        for domain in [Domain::<F>::new(1 << log), Domain::snarkjs(1 << log)] {
            let domain = domain.unwrap();
            let values: Vec<F> = (0..1 << log).map(|_| F::rand(&mut rng)).collect();
            for &kind in kinds {
                let expected = transform(&oracle, &domain, kind, &values);
                for device in devices {
                    assert!(
                        transform(&**device, &domain, kind, &values) == expected,
                        "{kind:?} of 2^{log} values of {} on {}",
                        F::FIELD,
                        device.caps().name
                    );
                }
            }
        }
    }
}

fn all_kinds<F: DeviceField>() {
    compare::<F>(0..=12, &TransformKind::ALL);
}

#[test]
fn bls12_381() {
    all_kinds::<ark_bls12_381::Fr>();
}

#[test]
fn bls12_377() {
    all_kinds::<ark_bls12_377::Fr>();
}

#[test]
fn bn254() {
    all_kinds::<ark_bn254::Fr>();
}

#[test]
fn three_passes_and_both_tables() {
    compare::<ark_bn254::Fr>([17], &[TransformKind::CosetExtend]);
}

#[test]
fn zeros_and_the_largest_element() {
    let domain = Domain::<ark_bn254::Fr>::new(64).unwrap();
    for value in [0u64.into(), -ark_bn254::Fr::from(1u64)] {
        let values = vec![value; 64];
        let expected = transform(&oracle(), &domain, TransformKind::Forward, &values);
        for device in devices() {
            let transformed = transform(&*device, &domain, TransformKind::Forward, &values);
            assert_eq!(transformed, expected, "{}", device.caps().name);
        }
    }
}

/// `make cuda-check` runs this test under compute-sanitizer.
#[test]
fn small_on_cards() {
    let cards = cards();
    compare_on::<ark_bls12_381::Fr>(&cards, [0, 5, 10], &TransformKind::ALL);
    compare_on::<ark_bls12_377::Fr>(&cards, [0, 5, 10], &TransformKind::ALL);
    compare_on::<ark_bn254::Fr>(&cards, [0, 5, 10], &TransformKind::ALL);
}

#[test]
fn large_on_cards() {
    let cards = cards();
    let kinds = [TransformKind::Forward, TransformKind::CosetExtend];
    compare_on::<ark_bls12_381::Fr>(&cards, [16, 20, 24], &kinds);
    compare_on::<ark_bls12_377::Fr>(&cards, [16, 20, 24], &kinds);
    compare_on::<ark_bn254::Fr>(&cards, [16, 20, 24], &kinds);
}
