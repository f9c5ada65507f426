//! Generation of a key from a ceremony's powers of tau, or from fresh randomness.

use std::io::{Seek, Write};

use ark_ec::{AffineRepr, CurveGroup};
use ark_ff::{Field, UniformRand, Zero};
use ark_std::rand::{CryptoRng, RngCore};
use proofmill_kernels::{Domain, fixed_base};
use proofmill_r1cs::R1cs;
use proofmill_r1cs::iden3::R1csFile;
use rayon::prelude::*;
use zeroize::Zeroizing;

use super::super::point_bytes::uncompressed_bytes;
use super::super::ptau::{Powers, Ptau};
use super::super::zkey::{Contributions, SNARKJS_NEW_ORDER, Zkey};
use super::coefficients::coefficients;
use super::columns::{Columns, Multiplier, affine_points, lagrange};
use super::contribution::contribute;
use super::error::ZkeySetupError;
use super::zkey_hash::circuit_hash;
use crate::{Curve, SnarkCurve};

/// Number of points that snarkjs hashes at once, see [`h_differences`].
const HASH_CHUNK_POINTS: usize = 1 << 14;

/// A circuit with its matrices by column, for both ways of making a key.
struct CircuitColumns<F: ark_ff::PrimeField> {
    system: R1cs<F>,
    columns: [Columns; 3],
    constraints: usize,
    instance: usize,
    /// Base-two logarithm of the domain's size.
    power: u32,
}

/// The Lagrange polynomials of the domain at τ, in the forms whose sums make a key.
struct SetupPoints<E: SnarkCurve> {
    tau_g1: Vec<E::G1Affine>,
    tau_g2: Vec<E::G2Affine>,
    alpha_tau: Vec<E::G1Affine>,
    beta_tau: Vec<E::G1Affine>,
}

/// Writes a `.zkey` for `circuit` from a ceremony's powers of tau. Points of the file are checked
/// as they are read; [`Ptau::verify`] checks that they are powers.
///
/// Without a `contribution` the key is byte for byte that of `snarkjs groth16 setup`, **which must not
/// be used for proofs**: δ = 1, so anyone can forge proofs. With a contribution, a name for the public
/// record, δ gets a secret factor from `rng` that is then erased, and is recorded as by
/// `snarkjs zkey contribute`, so that `snarkjs zkey verify` accepts the key. Proofs are then sound if one
/// contributor to the powers and the operator of this program are honest.
///
/// A file that is not prepared for phase 2 works too, but the Lagrange polynomials are then computed
/// here: about n·log n multiplications of points for n constraints.
///
/// The recorded circuit hash is that of snarkjs, except for circuits of 2¹⁵ points or more on a file of
/// exactly their power: there snarkjs hashes the bytes that happen to follow the powers in the file.
///
/// `progress` is called with a description before each step.
///
/// # Errors
///
/// [`ZkeySetupError`], among others for a malformed file, another curve, or too few powers.
pub fn setup_zkey_from_ptau<E: SnarkCurve, W: Write + Seek>(
    circuit: &R1csFile<'_>,
    ptau: &Ptau<'_, E>,
    contribution: Option<&str>,
    rng: &mut (impl RngCore + CryptoRng),
    out: W,
    progress: &dyn Fn(&str),
) -> Result<W, ZkeySetupError> {
    progress("reading the circuit");
    let columns = CircuitColumns::read::<E>(circuit)?;
    let found = ptau.header().power;
    if columns.power > found {
        let needed = columns.power;
        return Err(ZkeySetupError::Power { needed, found });
    }
    progress("reading the powers of tau");
    let n = 1usize << columns.power;
    let (points, h) = if ptau.is_prepared() {
        let points = SetupPoints {
            tau_g1: ptau.lagrange_g1(Powers::Tau, columns.power)?,
            tau_g2: ptau.lagrange_tau_g2(columns.power)?,
            alpha_tau: ptau.lagrange_g1(Powers::AlphaTau, columns.power)?,
            beta_tau: ptau.lagrange_g1(Powers::BetaTau, columns.power)?,
        };
        (points, ptau.lagrange_g1(Powers::Tau, columns.power + 1)?)
    } else {
        compute_lagrange(ptau, columns.power, progress)?
    };
    // The even points of the domain of 2n points are the circuit's domain, the odd points are the coset.
    let h = h.into_iter().skip(1).step_by(2).collect();
    let mut key = Zkey {
        public: columns.instance as u32 - 1,
        alpha_g1: ptau.g1(Powers::AlphaTau, 1)?[0],
        beta_g1: ptau.g1(Powers::BetaTau, 1)?[0],
        beta_g2: ptau.beta_g2()?,
        gamma_g2: E::G2Affine::generator(),
        delta_g1: E::G1Affine::generator(),
        delta_g2: E::G2Affine::generator(),
        ic: Vec::new(),
        coefficients: coefficients(circuit)?,
        a: Vec::new(),
        b_g1: Vec::new(),
        b_g2: Vec::new(),
        c: Vec::new(),
        h,
        contributions: None,
        order: SNARKJS_NEW_ORDER.to_vec(),
    };
    columns.sum_points(&points, &mut key, progress);
    drop(points);
    progress("hashing the key");
    key.contributions = Some(Contributions {
        circuit_hash: circuit_hash(&key, &h_differences(ptau, n)?),
        list: Vec::new(),
    });
    if let Some(name) = contribution {
        progress("contributing to delta");
        let x = Zeroizing::new(random_nonzero::<E>(rng));
        let s = E::G1::rand(rng).into_affine();
        contribute(&mut key, *x, s, name);
    }
    progress("writing the key");
    Ok(key.write(out)?)
}

/// Writes a `.zkey` for `circuit` from fresh randomness. **For development only**: the process that runs
/// it learns secrets with which proofs can be forged; see [`setup`](fn@crate::keys::setup) for their erasure.
///
/// As the key comes from no ceremony, its record has no contribution, and `snarkjs zkey verify` has nothing to compare
/// it with. snarkjs proves and verifies with this key as with any other.
///
/// # Errors
///
/// [`ZkeySetupError`], among others for a malformed file and another curve.
pub fn setup_zkey<E: SnarkCurve, W: Write + Seek>(
    circuit: &R1csFile<'_>,
    rng: &mut (impl RngCore + CryptoRng),
    out: W,
    progress: &dyn Fn(&str),
) -> Result<W, ZkeySetupError> {
    progress("reading the circuit");
    let columns = CircuitColumns::read::<E>(circuit)?;
    let too_large = |_| ZkeySetupError::TooLarge {
        constraints: circuit.header().n_constraints,
    };
    let n = 1usize << columns.power;
    let domain = Domain::<E::ScalarField>::snarkjs(n).map_err(too_large)?;
    let double = Domain::<E::ScalarField>::snarkjs(2 * n).map_err(too_large)?;
    // Where the larger domain's vanishing polynomial is zero, so is the smaller one's, and proofs of
    // any statement would verify.
    let tau = Zeroizing::new(loop {
        let tau = random_nonzero::<E>(rng);
        if !double.vanishing_at(tau).is_zero() {
            break tau;
        }
    });
    let [alpha, beta, delta] = [(); 3].map(|()| Zeroizing::new(random_nonzero::<E>(rng)));
    let delta_inverse = Zeroizing::new(delta.inverse().expect("not zero"));

    progress("evaluating the circuit's polynomials");
    let weights = Zeroizing::new(domain.lagrange_at(*tau));
    let scalars = |j: usize| columns.evaluate(j, &weights);
    let abc: Zeroizing<Vec<[E::ScalarField; 3]>> = Zeroizing::new(
        (0..columns.system.num_variables())
            .into_par_iter()
            .map(scalars)
            .collect(),
    );
    let abc_sum = |j: usize| *beta * abc[j][0] + *alpha * abc[j][1] + abc[j][2];
    let variables = abc.len();
    let g1 = E::G1Affine::generator().into_group();
    let g2 = E::G2Affine::generator().into_group();
    let multiply = |scalars: Vec<E::ScalarField>| fixed_base(g1, &Zeroizing::new(scalars));

    progress("multiplying points for A and B");
    let a = multiply(abc.iter().map(|abc| abc[0]).collect());
    let b_scalars: Zeroizing<Vec<_>> = Zeroizing::new(abc.iter().map(|abc| abc[1]).collect());
    let b_g1 = fixed_base(g1, &b_scalars);
    let b_g2 = fixed_base(g2, &b_scalars);
    progress("multiplying points for the witness and the quotient");
    let ic = multiply((0..columns.instance).map(abc_sum).collect());
    let c = (columns.instance..variables).map(|j| abc_sum(j) * *delta_inverse);
    let c = multiply(c.collect());
    let double_weights = Zeroizing::new(double.lagrange_at(*tau));
    let odd = double_weights.iter().skip(1).step_by(2);
    let h = multiply(odd.map(|weight| *weight * *delta_inverse).collect());

    let mut key: Zkey<E> = Zkey {
        public: columns.instance as u32 - 1,
        alpha_g1: (g1 * *alpha).into_affine(),
        beta_g1: (g1 * *beta).into_affine(),
        beta_g2: (g2 * *beta).into_affine(),
        gamma_g2: g2.into_affine(),
        delta_g1: (g1 * *delta).into_affine(),
        delta_g2: (g2 * *delta).into_affine(),
        ic,
        coefficients: coefficients(circuit)?,
        a,
        b_g1,
        b_g2,
        c,
        h,
        contributions: None,
        order: SNARKJS_NEW_ORDER.to_vec(),
    };
    key.contributions = Some(Contributions {
        circuit_hash: circuit_hash(&key, &uncompressed_bytes(&key.h)),
        list: Vec::new(),
    });
    progress("writing the key");
    Ok(key.write(out)?)
}

fn random_nonzero<E: SnarkCurve>(rng: &mut (impl RngCore + CryptoRng)) -> E::ScalarField {
    loop {
        let value = E::ScalarField::rand(rng);
        if !value.is_zero() {
            return value;
        }
    }
}

// === impl CircuitColumns ===

impl<F: ark_ff::PrimeField> CircuitColumns<F> {
    fn read<E: SnarkCurve<ScalarField = F>>(file: &R1csFile<'_>) -> Result<Self, ZkeySetupError> {
        let header = file.header();
        if Curve::from(header.prime) != E::CURVE {
            return Err(ZkeySetupError::Curve {
                circuit: header.prime,
                curve: E::CURVE,
            });
        }
        let constraints = header.n_constraints as usize;
        let instance = header.instance();
        // The domain has a point for each constraint and each public variable; at least two, as
        // snarkjs has it.
        let power = (constraints + instance).max(2).next_power_of_two().ilog2();
        // Keys count the domain by 32 bits, and the coset needs a root of twice its order.
        if power >= F::TWO_ADICITY.min(31) {
            return Err(ZkeySetupError::TooLarge {
                constraints: header.n_constraints,
            });
        }
        // Everything below allocates for each wire, and the header's number of wires is only a claim.
        file.check_labels()?;
        let system = file.system()?;
        let columns = system
            .matrices()
            .map(|matrix| Columns::new(matrix, system.num_variables()));
        Ok(Self {
            system,
            columns,
            constraints,
            instance,
            power,
        })
    }

    /// The values of a variable's polynomials, given the domain's Lagrange polynomials. After the
    /// constraints A has a row for each instance variable.
    fn evaluate(&self, j: usize, weights: &[F]) -> [F; 3] {
        let table = self.system.coefficients();
        let mut values = [0, 1, 2].map(|i: usize| self.columns[i].evaluate(j, table, weights));
        if j < self.instance {
            values[0] += weights[self.constraints + j];
        }
        values
    }

    fn sum_points<E: SnarkCurve<ScalarField = F>>(
        &self,
        points: &SetupPoints<E>,
        key: &mut Zkey<E>,
        progress: &dyn Fn(&str),
    ) {
        let coefficients = Multiplier::all(&self.system);
        let [a, b, c] = &self.columns;
        let variables = self.system.num_variables();
        // The additional row of A for an instance variable, with that variable alone.
        let instance_row = |j: usize, rows: &[E::G1Affine]| {
            if j < self.instance {
                rows[self.constraints + j].into_group()
            } else {
                E::G1::zero()
            }
        };
        let abc_sum = |j: usize| {
            a.sum::<E::G1>(j, &coefficients, &points.beta_tau)
                + b.sum::<E::G1>(j, &coefficients, &points.alpha_tau)
                + c.sum::<E::G1>(j, &coefficients, &points.tau_g1)
                + instance_row(j, &points.beta_tau)
        };
        progress("adding points for the public inputs and the witness");
        key.ic = affine_points(self.instance, abc_sum);
        key.c = affine_points(variables - self.instance, |j| abc_sum(self.instance + j));
        progress("adding points for A");
        key.a = affine_points(variables, |j| {
            a.sum::<E::G1>(j, &coefficients, &points.tau_g1) + instance_row(j, &points.tau_g1)
        });
        progress("adding points for B");
        key.b_g1 = affine_points(variables, |j| {
            b.sum::<E::G1>(j, &coefficients, &points.tau_g1)
        });
        key.b_g2 = affine_points(variables, |j| {
            b.sum::<E::G2>(j, &coefficients, &points.tau_g2)
        });
    }
}

/// Computes the Lagrange polynomials of the circuit's domain, and in the first group also those of the domain twice as
/// large, for a file that is not prepared for phase 2.
fn compute_lagrange<E: SnarkCurve>(
    ptau: &Ptau<'_, E>,
    power: u32,
    progress: &dyn Fn(&str),
) -> Result<(SetupPoints<E>, Vec<E::G1Affine>), ZkeySetupError> {
    let n = 1usize << power;
    let root = |points| -> Result<E::ScalarField, ZkeySetupError> {
        let domain = Domain::<E::ScalarField>::snarkjs(points);
        let domain = domain.map_err(|_| ZkeySetupError::TooLarge {
            constraints: n as u32,
        })?;
        Ok(domain.generator())
    };
    let g1 = |points: Vec<E::G1Affine>| points.into_iter().map(E::G1::from).collect::<Vec<_>>();
    progress("preparing the powers of tau for the circuit's domain, in the first group");
    let lacks_last_power = ptau.header().power == power;
    let mut doubled = g1(ptau.g1(Powers::Tau, 2 * n - usize::from(lacks_last_power))?);
    let [tau_g1, alpha_tau, beta_tau] = [
        doubled[..n].to_vec(),
        g1(ptau.g1(Powers::AlphaTau, n)?),
        g1(ptau.g1(Powers::BetaTau, n)?),
    ];
    // A file of the circuit's own power lacks τ^(2n − 1). Zero may stand for it, as the quotient has no coefficient
    // of that degree.
    doubled.resize(2 * n, E::G1::zero());
    let tau_g1 = lagrange(tau_g1, root(n)?);
    let alpha_tau = lagrange(alpha_tau, root(n)?);
    let beta_tau = lagrange(beta_tau, root(n)?);
    let doubled = lagrange(doubled, root(2 * n)?);
    progress("preparing the powers of tau for the circuit's domain, in the second group");
    let tau_g2 = ptau.tau_g2(n)?.into_iter().map(E::G2::from).collect();
    let setup_points = SetupPoints {
        tau_g1,
        tau_g2: lagrange(tau_g2, root(n)?),
        alpha_tau,
        beta_tau,
    };
    Ok((setup_points, doubled))
}

/// τ^(n + i) − τ^i for i below n − 1, uncompressed: the bytes that snarkjs hashes for section 9. snarkjs hashes chunks of
/// 2¹⁴ points and does not shorten the last one, so that from n = 2¹⁵ on it hashes i = n − 1 too. If the file lacks that
/// power, infinity stands for the difference.
fn h_differences<E: SnarkCurve>(ptau: &Ptau<'_, E>, n: usize) -> Result<Vec<u8>, ZkeySetupError> {
    let hashed = if n > HASH_CHUNK_POINTS { n } else { n - 1 };
    let available = (n + hashed).min((2usize << ptau.header().power) - 1);
    let powers = ptau.g1(Powers::Tau, available)?;
    let differences: Vec<E::G1Affine> =
        affine_points::<E::G1>(hashed, |i| match powers.get(n + i) {
            Some(high) => high.into_group() - powers[i],
            None => E::G1::zero(),
        });
    Ok(uncompressed_bytes(&differences))
}
