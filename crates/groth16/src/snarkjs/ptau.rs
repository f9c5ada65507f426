//! `.ptau`: the powers of tau, the result of the first phase of a ceremony.
//!
//! Version 1 (snarkjs, `powersoftau_utils.js` and `powersoftau_preparephase2.js`), with k the power and n = 2ᵏ:
//!
//! | section | content |
//! |---|---|
//! | 1 header | the base field's prime; k and the power of the whole ceremony (u32) |
//! | 2 tau in G1 | τⁱ, 2n − 1 points |
//! | 3 tau in G2 | τⁱ, n points |
//! | 4 alpha tau in G1, 5 beta tau in G1 | α·τⁱ and β·τⁱ, n points each |
//! | 6 beta in G2 | β |
//! | 7 contributions | the contributions |
//! | 12 to 15 Lagrange | of a file "prepared for phase 2": see below |
//!
//! Sections 12 to 15 belong to sections 2 to 5. Each has the Lagrange polynomials at τ of the domains of 1, 2, 4, … n
//! points; section 12 also those of the domain of 2n points, computed without τ^(2n − 1), which section 2 lacks.

use std::marker::PhantomData;

use ark_ec::{AffineRepr, CurveGroup, VariableBaseMSM};
use ark_ff::{BigInteger, PrimeField, UniformRand};
use ark_std::rand::{CryptoRng, RngCore};
use proofmill_kernels::Domain;
use proofmill_r1cs::iden3::{Container, Cursor, Format, FormatError, Reason};

use super::zkey::{point_bytes, read_points};
use crate::{Curve, PointCheck, PointGroup, SnarkCurve, with_curve};

const HEADER: u32 = 1;
const TAU_G1: u32 = 2;
const TAU_G2: u32 = 3;
const ALPHA_TAU_G1: u32 = 4;
const BETA_TAU_G1: u32 = 5;
const BETA_G2: u32 = 6;
const CONTRIBUTIONS: u32 = 7;
const LAGRANGE_TAU_G1: u32 = 12;
const LAGRANGE_TAU_G2: u32 = 13;
const LAGRANGE_ALPHA_TAU_G1: u32 = 14;
const LAGRANGE_BETA_TAU_G1: u32 = 15;

/// The largest power that is read: no supported field has a larger domain.
pub const MAX_POWER: u32 = 32;

/// The container of `.ptau` files.
pub static PTAU_FORMAT: Format = Format {
    name: ".ptau",
    magic: *b"ptau",
    version: 1,
    sections: &[
        (HEADER, "header"),
        (TAU_G1, "tau in G1"),
        (TAU_G2, "tau in G2"),
        (ALPHA_TAU_G1, "alpha tau in G1"),
        (BETA_TAU_G1, "beta tau in G1"),
        (BETA_G2, "beta in G2"),
        (CONTRIBUTIONS, "contributions"),
        (LAGRANGE_TAU_G1, "Lagrange tau in G1"),
        (LAGRANGE_TAU_G2, "Lagrange tau in G2"),
        (LAGRANGE_ALPHA_TAU_G1, "Lagrange alpha tau in G1"),
        (LAGRANGE_BETA_TAU_G1, "Lagrange beta tau in G1"),
    ],
};

/// The header of a `.ptau` file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PtauHeader {
    /// The curve.
    pub curve: Curve,
    /// The power k of the file: circuits may have domains of up to 2ᵏ points.
    pub power: u32,
    /// The power of the ceremony. It exceeds `power` in a file that has only the first points of a ceremony.
    pub ceremony_power: u32,
}

/// A `.ptau` file whose sections have the sizes that follow from its header. Points are read on demand, and are then
/// checked to be canonical, on their curve and in its subgroup.
#[derive(Clone, Debug)]
pub struct Ptau<'a, E: SnarkCurve> {
    container: Container<'a>,
    header: PtauHeader,
    engine: PhantomData<E>,
}

/// One of the sequences of points in the first group.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Powers {
    /// The powers of τ.
    Tau,
    /// The powers of τ, times α.
    AlphaTau,
    /// The powers of τ, times β.
    BetaTau,
}

// === impl PtauHeader ===

impl PtauHeader {
    /// Reads the header alone, for a caller that does not know the curve yet.
    ///
    /// # Errors
    ///
    /// [`FormatError`], among others for another curve than those of [`Curve`].
    pub fn read(bytes: &[u8]) -> Result<Self, FormatError> {
        Self::of(&Container::parse(&PTAU_FORMAT, bytes)?)
    }

    fn of(container: &Container<'_>) -> Result<Self, FormatError> {
        let mut cursor = container.section(HEADER)?;
        let offset = cursor.offset();
        let length = cursor.u32()?;
        let prime = cursor.bytes(length as usize)?;
        let curve = Curve::ALL
            .into_iter()
            .find(|curve| with_curve!(*curve, E => base_prime::<E>() == prime))
            .ok_or_else(|| {
                let reason = "a curve other than BN254, BLS12-381 and BLS12-377".into();
                cursor.error_at(offset, Reason::Unsupported(reason))
            })?;
        let offset = cursor.offset();
        let header = Self {
            curve,
            power: cursor.u32()?,
            ceremony_power: cursor.u32()?,
        };
        if header.power > MAX_POWER {
            let reason = format!("a power of {}: at most {MAX_POWER}", header.power);
            return Err(cursor.error_at(offset, Reason::Unsupported(reason.into())));
        }
        cursor.finish()?;
        Ok(header)
    }
}

fn base_prime<E: SnarkCurve>() -> Vec<u8> {
    <E::BaseField as PrimeField>::MODULUS.to_bytes_le()
}

// === impl Powers ===

impl Powers {
    const fn section(self) -> u32 {
        match self {
            Self::Tau => TAU_G1,
            Self::AlphaTau => ALPHA_TAU_G1,
            Self::BetaTau => BETA_TAU_G1,
        }
    }

    const fn lagrange_section(self) -> u32 {
        match self {
            Self::Tau => LAGRANGE_TAU_G1,
            Self::AlphaTau => LAGRANGE_ALPHA_TAU_G1,
            Self::BetaTau => LAGRANGE_BETA_TAU_G1,
        }
    }
}

// === impl Ptau ===

impl<'a, E: SnarkCurve> Ptau<'a, E> {
    /// Reads the container's head and the header, and checks the sections' sizes.
    ///
    /// # Errors
    ///
    /// [`FormatError`], among others for another curve than `E`.
    pub fn parse(bytes: &'a [u8]) -> Result<Self, FormatError> {
        let container = Container::parse(&PTAU_FORMAT, bytes)?;
        let header = PtauHeader::of(&container)?;
        if header.curve != E::CURVE {
            let reason = Reason::Field {
                found: header.curve.name().into(),
                expected: E::CURVE.name().into(),
            };
            return Err(container.section(HEADER)?.error(reason));
        }
        let [g1, g2] =
            [point_bytes::<E::G1Affine>(), point_bytes::<E::G2Affine>()].map(|size| size as u64);
        // No power is above MAX_POWER, so nothing overflows.
        let n = 1u64 << header.power;
        for (kind, size) in [
            (TAU_G1, (2 * n - 1) * g1),
            (TAU_G2, n * g2),
            (ALPHA_TAU_G1, n * g1),
            (BETA_TAU_G1, n * g1),
            (BETA_G2, g2),
        ] {
            container.section(kind)?.expect_length(size)?;
        }
        if container.optional(LAGRANGE_TAU_G1).is_some() {
            for (kind, size) in [
                (LAGRANGE_TAU_G1, (4 * n - 1) * g1),
                (LAGRANGE_TAU_G2, (2 * n - 1) * g2),
                (LAGRANGE_ALPHA_TAU_G1, (2 * n - 1) * g1),
                (LAGRANGE_BETA_TAU_G1, (2 * n - 1) * g1),
            ] {
                container.section(kind)?.expect_length(size)?;
            }
        }
        Ok(Self {
            container,
            header,
            engine: PhantomData,
        })
    }

    /// The header.
    pub const fn header(&self) -> &PtauHeader {
        &self.header
    }

    /// Whether the file has the Lagrange polynomials ("prepared for phase 2").
    pub fn is_prepared(&self) -> bool {
        self.container.optional(LAGRANGE_TAU_G1).is_some()
    }

    /// The first `count` points of a sequence in the first group.
    ///
    /// # Errors
    ///
    /// [`FormatError`] if the section has fewer points, or for a point that is not canonical, not on its curve or not
    /// in its subgroup; also of the following functions.
    pub fn g1(&self, powers: Powers, count: usize) -> Result<Vec<E::G1Affine>, FormatError> {
        read_points(
            &mut self.container.section(powers.section())?,
            count as u64,
            PointCheck::Full,
            None,
        )
    }

    /// The first `count` powers of τ in the second group.
    pub fn tau_g2(&self, count: usize) -> Result<Vec<E::G2Affine>, FormatError> {
        read_points(
            &mut self.container.section(TAU_G2)?,
            count as u64,
            PointCheck::Full,
            None,
        )
    }

    /// β in the second group.
    pub fn beta_g2(&self) -> Result<E::G2Affine, FormatError> {
        let mut cursor = self.container.section(BETA_G2)?;
        Ok(read_points(&mut cursor, 1, PointCheck::Full, None)?[0])
    }

    /// The Lagrange polynomials at τ of the domain of 2^`power` points, in a prepared file.
    pub fn lagrange_g1(&self, powers: Powers, power: u32) -> Result<Vec<E::G1Affine>, FormatError> {
        read_lagrange(self.container.section(powers.lagrange_section())?, power)
    }

    /// Like [`lagrange_g1`](Self::lagrange_g1), in the second group, for the powers of τ.
    pub fn lagrange_tau_g2(&self, power: u32) -> Result<Vec<E::G2Affine>, FormatError> {
        read_lagrange(self.container.section(LAGRANGE_TAU_G2)?, power)
    }

    /// Checks that the points are powers of one τ, times one α and one β, and, in a prepared file, the
    /// Lagrange polynomials. Sequences are combined with random weights and compared by pairings, so a wrong
    /// file passes with a probability below 2⁻¹²⁰. The contributors, and whether any of them was honest, cannot
    /// be checked.
    ///
    /// # Errors
    ///
    /// [`FormatError`] with the section that is wrong.
    pub fn verify(&self, rng: &mut (impl RngCore + CryptoRng)) -> Result<(), FormatError> {
        let n = 1usize << self.header.power;
        let (g1, g2) = (E::G1Affine::generator(), E::G2Affine::generator());
        let tau_g1 = self.g1(Powers::Tau, 2 * n - 1)?;
        let tau_g2 = self.tau_g2(n)?;
        let weights: Vec<E::ScalarField> = (0..2 * n).map(|_| E::ScalarField::rand(rng)).collect();
        let wrong = |section: u32, what: &'static str| match self.container.section(section) {
            Ok(cursor) => cursor.error(Reason::Inconsistent(what.into())),
            Err(error) => error,
        };
        if tau_g1[0] != g1 || tau_g2[0] != g2 {
            return Err(wrong(
                TAU_G1,
                "the first power is not the group's generator",
            ));
        }
        // n is at least 2 where there is a second power; a file of power 0 has none in G2.
        let tau = match tau_g2.get(1) {
            Some(tau) => *tau,
            None => return Err(wrong(TAU_G2, "a power of 0 has no tau in the second group")),
        };
        if tau.is_zero() {
            return Err(wrong(TAU_G2, "tau is zero"));
        }
        // Whether each point is τ times the point before, by weighted sums of all but the first, and of all but the
        // last.
        let are_powers = |points: &[E::G1Affine]| {
            let sums = [&points[1..], &points[..points.len() - 1]]
                .map(|points| weighted_sum::<E::G1>(points, &weights));
            E::pairing(sums[0], g2) == E::pairing(sums[1], tau)
        };
        if !are_powers(&tau_g1) {
            return Err(wrong(TAU_G1, "not the powers of one number"));
        }
        let [without_first, without_last] =
            [&tau_g2[1..], &tau_g2[..n - 1]].map(|points| weighted_sum::<E::G2>(points, &weights));
        if E::pairing(g1, without_first) != E::pairing(tau_g1[1], without_last) {
            return Err(wrong(TAU_G2, "not the powers of tau"));
        }
        let mut sequences = vec![(Powers::Tau, tau_g1)];
        for powers in [Powers::AlphaTau, Powers::BetaTau] {
            let points = self.g1(powers, n)?;
            if points[0].is_zero() || !are_powers(&points) {
                return Err(wrong(
                    powers.section(),
                    "not multiples of the powers of tau",
                ));
            }
            sequences.push((powers, points));
        }
        let beta = self.beta_g2()?;
        if E::pairing(sequences[2].1[0], g2) != E::pairing(g1, beta) {
            return Err(wrong(BETA_G2, "another beta than in the first group"));
        }
        if self.is_prepared() {
            for (powers, points) in &sequences {
                let section = powers.lagrange_section();
                let power_max = self.header.power + u32::from(*powers == Powers::Tau);
                for power in 0..=power_max {
                    let lagrange = self.lagrange_g1(*powers, power)?;
                    if !matches_powers::<E::G1>(&lagrange, points, &weights) {
                        return Err(wrong(section, "not the Lagrange polynomials"));
                    }
                }
            }
            for power in 0..=self.header.power {
                let lagrange = self.lagrange_tau_g2(power)?;
                if !matches_powers::<E::G2>(&lagrange, &tau_g2, &weights) {
                    return Err(wrong(LAGRANGE_TAU_G2, "not the Lagrange polynomials"));
                }
            }
        }
        Ok(())
    }
}

/// Reads the points of the domain of 2^`power` points from a Lagrange section.
fn read_lagrange<P: PointGroup>(mut cursor: Cursor<'_>, power: u32) -> Result<Vec<P>, FormatError> {
    let points = 1u64 << power.min(MAX_POWER + 1);
    // The smaller domains come first: 1 + 2 + 4 + … points.
    cursor.skip((points - 1) * point_bytes::<P>() as u64)?;
    read_points(&mut cursor, points, PointCheck::Full, None)
}

/// Σ wᵢ·Pᵢ over all of `points`; further weights are ignored.
fn weighted_sum<G: CurveGroup + VariableBaseMSM>(
    points: &[G::Affine],
    weights: &[G::ScalarField],
) -> G {
    G::msm_unchecked(points, &weights[..points.len()])
}

/// Whether `lagrange` are the Lagrange polynomials of a domain at τ, given the powers of τ. A polynomial with random
/// values on the domain must give the same point from its values as from its coefficients. If there are fewer powers
/// than coefficients, the further coefficients are left out.
fn matches_powers<G: CurveGroup + VariableBaseMSM>(
    lagrange: &[G::Affine],
    powers: &[G::Affine],
    weights: &[G::ScalarField],
) -> bool {
    let values = &weights[..lagrange.len()];
    let Ok(domain) = Domain::<G::ScalarField>::snarkjs(values.len()) else {
        return false;
    };
    let mut coefficients = values.to_vec();
    domain.inverse(&mut coefficients);
    let known = powers.len().min(coefficients.len());
    weighted_sum::<G>(lagrange, values) == weighted_sum::<G>(&powers[..known], &coefficients)
}
