//! Products of pairings, `e(P₁, Q₁) · … · e(Pₙ, Qₙ)`.
//!
//! Results are arkworks' own: the same element of the target group that its `multi_pairing`
//! returns. What comes between, a [`MillerLoopOutput`](ark_ec::pairing::MillerLoopOutput), may
//! differ by a factor that the final exponentiation takes to one.
//!
//! Points must be on their curves. With points of the second group outside of the subgroup of prime
//! order the product means nothing, here as in arkworks, and it may not exist: see
//! [`Product::value`].
//!
//! ```
//! use ark_bls12_381::{Bls12_381, Fr, G1Affine, G2Affine};
//! use ark_ec::{AffineRepr, CurveGroup};
//! use proofmill_kernels::pairing;
//!
//! let (p, q) = (G1Affine::generator(), G2Affine::generator());
//! let (minus_six, three) = ((p * -Fr::from(6)).into_affine(), (q * Fr::from(3)).into_affine());
//! let two = (p * Fr::from(2)).into_affine();
//! // e(2·P, 3·Q) · e(−6·P, Q)
//! assert!(pairing::product_is_one::<Bls12_381>(&[two, minus_six], &[three, q]));
//! ```

mod curve;
mod each;
mod power;
mod prepared;
mod product;

pub use curve::PairingCurve;
pub use each::{
    final_exponentiation_each, final_exponentiation_each_on, power_each, power_each_on,
};
pub use power::{multi_power, multi_power_on};
pub use prepared::PreparedG2;
pub use product::{Product, final_exponentiation, multi_miller_loop, product, product_is_one};
