//! Elements of the target group in half their size: the torus T₂ of Rubin and Silverberg ("Torus-Based
//! Cryptography", CRYPTO 2003, section 4).
//!
//! The target field is F(w) with w² = v for the field F in its middle. An element c₀ + c₁·w whose norm over
//! F is one, other than 1, is (τ + w)/(τ − w) for exactly one τ = (1 + c₀)/c₁ of F. The encoding is that of τ: its
//! coordinates, each little-endian and below the modulus. τ = 0 would be the element −1, which is not in
//! the cyclotomic subgroup, whose order is odd; zeros encode 1. So each element has one encoding.
//!
//! **Checks of decoding.** The norm is one for every τ. In addition, an element must be in the cyclotomic
//! subgroup, of order Φ₁₂(p): there an inverse is a conjugate, which the products of powers rely on. An
//! element is *not* tested to have the prime order r, which would take longer than all of a verification and
//! is not necessary: the subgroup is a direct product of the target group and a group whose order is not
//! divisible by r, so every element is z·z′ with z of the target group, and taking z is a homomorphism. An
//! equation that a verifier checks between elements therefore also holds between their parts in the target
//! group. An element represents that part; a proof with another representative of it has other challenges.

use ark_ec::pairing::PairingOutput;
use ark_ff::fields::batch_inversion;
use ark_ff::{
    AdditiveGroup, Field, Fp6, Fp12, Fp12Config, Fp12ConfigWrapper, One, PrimeField, QuadExtConfig,
    Zero,
};
use ark_serialize::{CanonicalDeserialize, CanonicalSerialize};
use proofmill_groth16::SnarkCurve;

/// A field of degree 12 as an extension of degree two of the field in its middle.
pub trait TargetField: Field {
    /// The field in the middle.
    type Half: Field;

    /// c₀ and c₁ of c₀ + c₁·w.
    fn halves(&self) -> [Self::Half; 2];

    /// c₀ + c₁·w.
    fn of_halves(halves: [Self::Half; 2]) -> Self;

    /// The product with v = w².
    fn times_v(half: Self::Half) -> Self::Half;
}

/// A pairing whose proofs can be aggregated: BN254 and BLS12-381.
pub trait AggregationCurve: SnarkCurve<TargetField: TargetField> {}

/// Bytes that are no element.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum TorusError {
    /// The wrong number of bytes.
    #[error("{found} bytes for elements of the target group of {size} each")]
    Length {
        /// The bytes of an element.
        size: usize,
        /// The bytes there are.
        found: usize,
    },
    /// A coordinate is not below the modulus.
    #[error("element {index} of the target group has a coordinate that is not canonical")]
    Coordinate {
        /// The number of the element, from 0.
        index: usize,
    },
    /// The element is not in the cyclotomic subgroup.
    #[error("element {index} of the target group is outside of the cyclotomic subgroup")]
    Subgroup {
        /// The number of the element, from 0.
        index: usize,
    },
}

// === impl TargetField ===

impl<P: Fp12Config> TargetField for Fp12<P> {
    type Half = Fp6<P::Fp6Config>;

    fn halves(&self) -> [Self::Half; 2] {
        [self.c0, self.c1]
    }

    fn of_halves([c0, c1]: [Self::Half; 2]) -> Self {
        Self::new(c0, c1)
    }

    fn times_v(mut half: Self::Half) -> Self::Half {
        Fp12ConfigWrapper::<P>::mul_base_field_by_nonresidue_in_place(&mut half);
        half
    }
}

// === impl AggregationCurve ===

impl<E: SnarkCurve<TargetField: TargetField>> AggregationCurve for E {}

type Half<E> = <<E as ark_ec::pairing::Pairing>::TargetField as TargetField>::Half;

/// The bytes of an element: 288 over BLS12-381, 192 over BN254.
pub fn element_bytes<E: AggregationCurve>() -> usize {
    Half::<E>::ZERO.compressed_size()
}

/// Writes elements of the target group, one after the other.
pub fn write_elements<E: AggregationCurve>(elements: &[PairingOutput<E>], out: &mut Vec<u8>) {
    let halves: Vec<_> = elements.iter().map(|element| element.0.halves()).collect();
    // c₁ is zero for the element 1 and for no other in the group: its inverse is left zero, and so is τ.
    let mut inverses: Vec<_> = halves.iter().map(|[_, c1]| *c1).collect();
    batch_inversion(&mut inverses);
    for ([c0, _], inverse) in halves.iter().zip(inverses) {
        let torus = (*c0 + Half::<E>::one()) * inverse;
        torus
            .serialize_compressed(&mut *out)
            .expect("writing to a vector does not fail");
    }
}

/// Reads untrusted elements until the end of the bytes.
///
/// # Errors
///
/// [`TorusError`] unless the bytes are those that [`write_elements`] writes for elements of the cyclotomic
/// subgroup. See the [module](self) about the order of an element.
pub fn read_elements<E: AggregationCurve>(
    bytes: &[u8],
) -> Result<Vec<PairingOutput<E>>, TorusError> {
    let size = element_bytes::<E>();
    if !bytes.len().is_multiple_of(size) {
        return Err(TorusError::Length {
            size,
            found: bytes.len(),
        });
    }
    let toruses = bytes.chunks_exact(size).enumerate().map(|(index, bytes)| {
        Half::<E>::deserialize_compressed(bytes).map_err(|_| TorusError::Coordinate { index })
    });
    let toruses = toruses.collect::<Result<Vec<_>, _>>()?;
    // As v is no square, τ² − v is never zero and can be inverted.
    let v = E::TargetField::times_v(Half::<E>::one());
    let squares: Vec<_> = toruses.iter().map(|torus| torus.square()).collect();
    let mut inverses: Vec<_> = squares.iter().map(|square| *square - v).collect();
    batch_inversion(&mut inverses);
    let mut elements = Vec::with_capacity(toruses.len());
    for (index, torus) in toruses.iter().enumerate() {
        let element = if torus.is_zero() {
            E::TargetField::one()
        } else {
            let halves = [squares[index] + v, torus.double()];
            E::TargetField::of_halves(halves.map(|half| half * inverses[index]))
        };
        if !is_cyclotomic(&element) {
            return Err(TorusError::Subgroup { index });
        }
        elements.push(PairingOutput(element));
    }
    Ok(elements)
}

/// True if the element to the power Φ₁₂(p) = p⁴ − p² + 1 is one.
fn is_cyclotomic<F: TargetField>(element: &F) -> bool {
    let to_p2 = element.frobenius_map(2);
    let to_p4 = element.frobenius_map(4);
    to_p4 * element == to_p2
}

/// True if an element of the cyclotomic subgroup has the prime order: for keys, which are read once.
pub(crate) fn has_prime_order<E: AggregationCurve>(element: &PairingOutput<E>) -> bool {
    use ark_ec::PrimeGroup;
    element.mul_bigint(E::ScalarField::MODULUS).is_zero()
}

#[cfg(test)]
mod tests {
    use super::*;
    use ark_bls12_381::Bls12_381;
    use ark_bn254::Bn254;
    use ark_std::UniformRand;
    use ark_std::rand::SeedableRng;
    use ark_std::rand::rngs::StdRng;

    fn elements_come_back<E: AggregationCurve>() {
        let rng = &mut StdRng::seed_from_u64(5);
        let mut elements: Vec<_> = (0..20).map(|_| PairingOutput::<E>::rand(rng)).collect();
        elements[3] = PairingOutput::zero();
        let mut bytes = Vec::new();
        write_elements(&elements, &mut bytes);
        assert_eq!(bytes.len(), 20 * element_bytes::<E>());
        assert_eq!(read_elements::<E>(&bytes).unwrap(), elements);
        assert!(elements.iter().all(has_prime_order));

        // Any other bytes are another element, or none.
        for place in [0, 7, 3 * element_bytes::<E>() + 1, bytes.len() - 1] {
            for bit in 0..8 {
                let mut changed = bytes.clone();
                changed[place] ^= 1 << bit;
                if let Ok(read) = read_elements::<E>(&changed) {
                    assert_ne!(read, elements);
                    let mut again = Vec::new();
                    write_elements(&read, &mut again);
                    assert_eq!(again, changed);
                }
            }
        }
        assert!(matches!(
            read_elements::<E>(&bytes[1..]),
            Err(TorusError::Length { .. })
        ));
        let largest = vec![0xff; element_bytes::<E>()];
        assert_eq!(
            read_elements::<E>(&largest),
            Err(TorusError::Coordinate { index: 0 })
        );
    }

    /// A norm of one is not enough: of p⁶ + 1 such elements few are in the cyclotomic subgroup. Those of it
    /// that have another order than r are read, and a key's check finds them.
    fn others_are_told_apart<E: AggregationCurve>() {
        let rng = &mut StdRng::seed_from_u64(6);
        for _ in 0..10 {
            let element = E::TargetField::rand(rng);
            let mut conjugate = element.halves();
            conjugate[1] = -conjugate[1];
            let norm_one = E::TargetField::of_halves(conjugate) * element.inverse().unwrap();
            let mut bytes = Vec::new();
            write_elements(&[PairingOutput::<E>(norm_one)], &mut bytes);
            assert_eq!(
                read_elements::<E>(&bytes),
                Err(TorusError::Subgroup { index: 0 })
            );

            let cyclotomic = norm_one.frobenius_map(2) * norm_one;
            let mut bytes = Vec::new();
            write_elements(&[PairingOutput::<E>(cyclotomic)], &mut bytes);
            let read = read_elements::<E>(&bytes).unwrap();
            assert_eq!(read, [PairingOutput(cyclotomic)]);
            assert!(!has_prime_order(&read[0]));
        }
        // Minus one has order two.
        let zeros = vec![0; element_bytes::<E>()];
        assert_eq!(
            read_elements::<E>(&zeros).unwrap(),
            [PairingOutput::<E>::zero()]
        );
    }

    #[test]
    fn elements_come_back_on_both_curves() {
        elements_come_back::<Bls12_381>();
        elements_come_back::<Bn254>();
    }

    #[test]
    fn elements_of_other_orders_are_refused() {
        others_are_told_apart::<Bls12_381>();
        others_are_told_apart::<Bn254>();
    }
}
