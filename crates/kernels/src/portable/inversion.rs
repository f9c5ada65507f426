//! Inverses, and many that share one inversion.

use ark_ff::{Field, Fp, Fp2, Fp2Config, MontBackend, MontConfig};

use super::binary_gcd;

/// A field of coordinates, with an inverse faster than arkworks'.
pub(crate) trait Invertible: Field {
    /// The inverse, unless the element is zero. Its time depends on the element.
    fn inverted(&self) -> Option<Self>;
}

impl<C: MontConfig<N>, const N: usize> Invertible for Fp<MontBackend<C, N>, N> {
    fn inverted(&self) -> Option<Self> {
        binary_gcd::inverse(self)
    }
}

impl<P: Fp2Config<Fp: Invertible>> Invertible for Fp2<P> {
    fn inverted(&self) -> Option<Self> {
        // 1/(a + b·u) = (a − b·u)/(a² − β·b²), u² = β.
        let norm = self.c0.square() - self.c1.square() * P::NONRESIDUE;
        let inverse = norm.inverted()?;
        Some(Self::new(self.c0 * inverse, -self.c1 * inverse))
    }
}

/// Inverts every element in place; zeros stay. On this thread: what calls it is a task already.
///
/// Montgomery's trick: 3 products an element and one inversion for all.
pub(crate) fn invert_all<F: Invertible>(values: &mut [F], products: &mut Vec<F>) {
    products.clear();
    let mut product = F::ONE;
    for value in values.iter() {
        products.push(product);
        if !value.is_zero() {
            product *= value;
        }
    }
    let mut rest = product.inverted().expect("a product of what is not zero");
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

    fn check<F: Invertible>() {
        let rng = &mut ark_std::test_rng();
        for length in 0..20 {
            let values: Vec<F> = (0..length)
                .map(|i| if i % 3 == 1 { F::ZERO } else { F::rand(rng) })
                .collect();
            let mut inverses = values.clone();
            invert_all(&mut inverses, &mut Vec::new());
            for (value, inverse) in values.iter().zip(&inverses) {
                assert_eq!(*inverse, value.inverse().unwrap_or(F::ZERO));
            }
        }
    }

    #[test]
    fn inverses_are_right_and_zeros_stay() {
        check::<ark_bls12_381::Fq>();
        check::<ark_bls12_381::Fq2>();
        check::<ark_bls12_377::Fq2>();
        check::<ark_bn254::Fq2>();
    }
}
