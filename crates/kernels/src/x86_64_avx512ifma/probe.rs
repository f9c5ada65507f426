use super::field::Fp;
use super::modulus::Modulus;
use std::time::Instant;
#[target_feature(enable = "avx512f,avx512dq,avx512vl,avx512ifma,avx512vbmi2")]
fn probe<P: Modulus<L, N>, const L: usize, const N: usize>(name: &str) {
    unsafe {
        let mut x = [Fp::<P, L, N>::splat_limbs(&P::ONE); 4];
        for (chains, label) in [(1, "1 chain"), (2, "2"), (4, "4")] {
            let t = Instant::now();
            let n = 2_000_000;
            for _ in 0..n / chains {
                for x in &mut x[..chains] {
                    *x = Fp::multiply(*x, *x);
                }
            }
            let ns = t.elapsed().as_nanos() as f64 / n as f64;
            println!(
                "{name} {label}: {ns:.1} ns per vector, {:.2} each",
                ns / 8.0
            );
        }
        std::hint::black_box(x[0].to_ark_lanes());
        std::hint::black_box(x[1].to_ark_lanes());
        std::hint::black_box(x[2].to_ark_lanes());
        std::hint::black_box(x[3].to_ark_lanes());
    }
}
#[test]
fn probe_all() {
    unsafe {
        probe::<ark_bls12_381::FqConfig, 8, 6>("381");
        probe::<ark_bn254::FqConfig, 5, 4>("254");
    }
    use ark_ff::*;
    let mut r = ark_std::test_rng();
    let mut a = ark_bls12_381::Fq::rand(&mut r);
    let t = Instant::now();
    for _ in 0..1000 {
        a = a.inverse().unwrap() + a;
    }
    println!("inverse 381 {:?}", t.elapsed() / 1000);
    let mut b = ark_bn254::Fq::rand(&mut r);
    let t = Instant::now();
    for _ in 0..1000 {
        b = b.inverse().unwrap() + b;
    }
    println!("inverse 254 {:?} {a} {b}", t.elapsed() / 1000);
    let mut x = 1u64;
    let t = Instant::now();
    for i in 0..1_000_000_000u64 {
        x = std::hint::black_box(x.wrapping_add(i));
    }
    println!("1e9 dependent adds(+store fwd) {:?} {x}", t.elapsed());
}
