//! Prime moduli in limbs of 52 bits, and the constants of Montgomery arithmetic for them.

use ark_ff::{BigInt, Fp, MontBackend, MontConfig};

/// Bits of a limb.
pub(crate) const LIMB_BITS: u32 = 52;
/// The low [`LIMB_BITS`] bits.
pub(crate) const LIMB_MASK: u64 = (1 << LIMB_BITS) - 1;

/// A prime modulus below `2^(52·L − 4)`; Montgomery's radix is `R = 2^(52·L)`.
///
/// With `N` 64-bit limbs in arkworks, whose Montgomery radix is `2^(64·N)`.
pub(crate) trait Modulus<const L: usize, const N: usize>: MontConfig<N> {
    /// The modulus p.
    const P: [u64; L] = limbs(&Self::MODULUS.0);
    /// `−p⁻¹ mod 2⁵²`.
    const P_INVERSE: u64 = Self::INV & LIMB_MASK;
    /// Limb i of `k·p` in lane k, k = 0..8.
    const MULTIPLES: [[u64; 8]; L] = multiples(&Self::P);
    /// A little below `2^52 / p_top`, where `p_top` is the top limb of p. The high half of its product with a
    /// value's top limb is the value's quotient by p, rounded down and at most one too small.
    const QUOTIENT_FACTOR: u64 = (1 << LIMB_BITS) / (Self::P[L - 1] + 1);
    /// `R² / 2^(64·N) mod p`: a Montgomery product by it takes arkworks' form to ours.
    const FROM_ARK: [u64; L] = power_of_two(&Self::MODULUS, 2 * LIMB_BITS as usize * L - 64 * N);
    /// `2^(64·N) mod p`: a Montgomery product by it takes our form to arkworks'.
    const TO_ARK: [u64; L] = power_of_two(&Self::MODULUS, 64 * N);
    /// `R mod p`, which is 1 in our form.
    const ONE: [u64; L] = power_of_two(&Self::MODULUS, LIMB_BITS as usize * L);
}

/// The arkworks field of a modulus.
pub(crate) type Scalar<P, const N: usize> = Fp<MontBackend<P, N>, N>;

/// 64-bit words cut into limbs of 52 bits.
pub(crate) const fn limbs<const L: usize, const N: usize>(words: &[u64; N]) -> [u64; L] {
    let mut out = [0; L];
    let mut i = 0;
    while i < L {
        let bit = i * LIMB_BITS as usize;
        let (word, shift) = (bit / 64, bit % 64);
        if word < N {
            out[i] = words[word] >> shift;
            if shift > 12 && word + 1 < N {
                out[i] |= words[word + 1] << (64 - shift);
            }
            out[i] &= LIMB_MASK;
        }
        i += 1;
    }
    out
}

/// Carried limbs joined to 64-bit words; what exceeds them is dropped.
pub(crate) const fn words<const L: usize, const N: usize>(limbs: &[u64; L]) -> [u64; N] {
    let mut out = [0; N];
    let mut i = 0;
    while i < L {
        let bit = i * LIMB_BITS as usize;
        let (word, shift) = (bit / 64, bit % 64);
        if word < N {
            out[word] |= limbs[i] << shift;
            if shift > 12 && word + 1 < N {
                out[word + 1] |= limbs[i] >> (64 - shift);
            }
        }
        i += 1;
    }
    out
}

const fn multiples<const L: usize>(p: &[u64; L]) -> [[u64; 8]; L] {
    let mut out = [[0; 8]; L];
    let mut k = 0;
    while k < 8 {
        let mut carry = 0;
        let mut i = 0;
        while i < L {
            let limb = p[i] * k as u64 + carry;
            out[i][k] = limb & LIMB_MASK;
            carry = limb >> LIMB_BITS;
            i += 1;
        }
        assert!(carry == 0, "8·p fits L limbs");
        k += 1;
    }
    out
}

/// `2^exponent mod p`, by doublings.
const fn power_of_two<const L: usize, const N: usize>(p: &BigInt<N>, exponent: usize) -> [u64; L] {
    let mut value = [0u64; N];
    value[0] = 1;
    let mut step = 0;
    while step < exponent {
        let mut doubled = [0u64; N];
        let mut i = 0;
        while i < N {
            doubled[i] = value[i] << 1;
            if i > 0 {
                doubled[i] |= value[i - 1] >> 63;
            }
            i += 1;
        }
        let overflow = value[N - 1] >> 63 == 1;
        // doubled − p, kept if it is not negative.
        let mut reduced = [0u64; N];
        let mut borrow = false;
        i = 0;
        while i < N {
            let (first, under) = doubled[i].overflowing_sub(p.0[i]);
            let (second, under_again) = first.overflowing_sub(borrow as u64);
            reduced[i] = second;
            borrow = under || under_again;
            i += 1;
        }
        value = if overflow || !borrow {
            reduced
        } else {
            doubled
        };
        step += 1;
    }
    limbs(&value)
}

// BLS12-381, BLS12-377: base fields of 381 and 377 bits, scalar fields of 255 and 253.
impl Modulus<8, 6> for ark_bls12_381::FqConfig {}
impl Modulus<8, 6> for ark_bls12_377::FqConfig {}
impl Modulus<5, 4> for ark_bls12_381::FrConfig {}
impl Modulus<5, 4> for ark_bls12_377::FrConfig {}
// BN254: both of 254 bits. Grumpkin has the same two, exchanged.
impl Modulus<5, 4> for ark_bn254::FqConfig {}
impl Modulus<5, 4> for ark_bn254::FrConfig {}
// Pallas and Vesta: both of 255 bits, exchanged.
impl Modulus<5, 4> for ark_pallas::FqConfig {}
impl Modulus<5, 4> for ark_pallas::FrConfig {}

#[cfg(test)]
mod tests {
    use super::*;
    use ark_ff::{AdditiveGroup, BigInteger, Field, PrimeField};

    fn check<P: Modulus<L, N>, const L: usize, const N: usize>() {
        let value = |limbs: &[u64; L]| {
            let radix = Scalar::<P, N>::from(1u64 << LIMB_BITS);
            limbs.iter().rev().fold(Scalar::<P, N>::ZERO, |sum, limb| {
                sum * radix + Scalar::<P, N>::from(*limb)
            })
        };
        let two = Scalar::<P, N>::from(2u64);
        let bits = LIMB_BITS as u64 * L as u64;
        assert_eq!(value(&P::P), Scalar::<P, N>::ZERO);
        assert_eq!(value(&P::ONE), two.pow([bits]));
        assert_eq!(value(&P::TO_ARK), two.pow([64 * N as u64]));
        assert_eq!(value(&P::FROM_ARK), two.pow([2 * bits - 64 * N as u64]));
        assert_eq!(P::P[0].wrapping_mul(P::P_INVERSE) & LIMB_MASK, LIMB_MASK);
        assert_eq!(words::<L, N>(&P::P), P::MODULUS.0);
        let mut twice = P::MODULUS;
        twice.mul2();
        for k in 0..8 {
            let limbs: [u64; L] = std::array::from_fn(|i| P::MULTIPLES[i][k]);
            assert_eq!(value(&limbs), Scalar::<P, N>::ZERO, "{k}·p");
        }
        assert_eq!(
            words::<L, N>(&std::array::from_fn(|i| P::MULTIPLES[i][2])),
            twice.0
        );
        assert_eq!(Scalar::<P, N>::MODULUS, P::MODULUS);
    }

    #[test]
    fn constants_are_what_they_say() {
        check::<ark_bls12_381::FqConfig, 8, 6>();
        check::<ark_bls12_377::FqConfig, 8, 6>();
        check::<ark_bls12_381::FrConfig, 5, 4>();
        check::<ark_bls12_377::FrConfig, 5, 4>();
        check::<ark_bn254::FqConfig, 5, 4>();
        check::<ark_bn254::FrConfig, 5, 4>();
        check::<ark_pallas::FqConfig, 5, 4>();
        check::<ark_pallas::FrConfig, 5, 4>();
    }
}
