//! Inverses that share one inversion.

use ark_ff::Field;

/// Inverts every element in place; zeros stay. On this thread: what calls it is a task already.
///
/// Montgomery's trick: 3 products an element and one inversion for all.
pub(crate) fn invert_all<F: Field>(values: &mut [F], products: &mut Vec<F>) {
    products.clear();
    let mut product = F::ONE;
    for value in values.iter() {
        products.push(product);
        if !value.is_zero() {
            product *= value;
        }
    }
    let mut rest = product.inverse().expect("a product of what is not zero");
    for (value, before) in values.iter_mut().zip(products).rev() {
        if !value.is_zero() {
            let inverse = rest * before;
            rest *= &*value;
            *value = inverse;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use ark_bls12_381::Fq;
    use ark_ff::{AdditiveGroup, UniformRand};

    #[test]
    fn inverses_are_right_and_zeros_stay() {
        let rng = &mut ark_std::test_rng();
        for length in 0..20 {
            let values: Vec<Fq> = (0..length)
                .map(|i| if i % 3 == 1 { Fq::ZERO } else { Fq::rand(rng) })
                .collect();
            let mut inverses = values.clone();
            invert_all(&mut inverses, &mut Vec::new());
            for (value, inverse) in values.iter().zip(&inverses) {
                assert_eq!(*inverse, value.inverse().unwrap_or(Fq::ZERO));
            }
        }
    }
}
