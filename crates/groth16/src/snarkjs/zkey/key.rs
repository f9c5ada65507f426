//! A key's content, and loading it.

use std::fmt;

use proofmill_files::MappedFile;
use proofmill_r1cs::iden3::ReadError;

use super::{CheckedKeyStore, Contributions, ZkeyFile};
use crate::{PointCheck, SnarkCurve, VerifyingKey};

/// The order in which snarkjs's `zkey new` writes the sections.
pub const SNARKJS_NEW_ORDER: [u32; 10] = [1, 2, 4, 3, 9, 8, 5, 6, 7, 10];

/// The whole content of a `.zkey` file. It can be assembled from its parts. In the docs of the fields, n is the size of
/// the domain.
#[derive(Clone, PartialEq, Eq)]
pub struct Zkey<E: SnarkCurve> {
    /// The number of public inputs, the leading one not included.
    pub public: u32,
    /// α in the first group.
    pub alpha_g1: E::G1Affine,
    /// β in the first group.
    pub beta_g1: E::G1Affine,
    /// β in the second group.
    pub beta_g2: E::G2Affine,
    /// γ in the second group.
    pub gamma_g2: E::G2Affine,
    /// δ in the first group.
    pub delta_g1: E::G1Affine,
    /// δ in the second group.
    pub delta_g2: E::G2Affine,
    /// (β·Aⱼ(τ) + α·Bⱼ(τ) + Cⱼ(τ)) / γ for the instance variables, the leading one first.
    pub ic: Vec<E::G1Affine>,
    /// The entries of A and B, in the file's order. Those of A include, after the constraints' rows,
    /// one row for each instance variable, with that variable alone.
    pub coefficients: Vec<Coefficient<E::ScalarField>>,
    /// Aⱼ(τ) for each variable.
    pub a: Vec<E::G1Affine>,
    /// Bⱼ(τ) for each variable, in the first group.
    pub b_g1: Vec<E::G1Affine>,
    /// Bⱼ(τ) for each variable, in the second group.
    pub b_g2: Vec<E::G2Affine>,
    /// (β·Aⱼ(τ) + α·Bⱼ(τ) + Cⱼ(τ)) / δ for the witness variables.
    pub c: Vec<E::G1Affine>,
    /// Lᵢ(τ)/δ for the odd points i of the domain of 2n.
    pub h: Vec<E::G1Affine>,
    /// The ceremony's record; some programs write none.
    pub contributions: Option<Contributions<E>>,
    /// The kinds of the sections in the order in which they are written: 1 to 10, or 1 to 9.
    pub order: Vec<u32>,
}

/// The matrix that a [`Coefficient`] belongs to.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum CoefficientMatrix {
    /// A.
    #[default]
    A,
    /// B.
    B,
}

/// An entry of a matrix.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Coefficient<F> {
    /// The matrix.
    pub matrix: CoefficientMatrix,
    /// The row, below the size of the domain.
    pub row: u32,
    /// The variable.
    pub variable: u32,
    /// The value.
    pub value: F,
}

/// The trust in a key file, which decides the extent of its checks.
#[derive(Clone, Copy, Debug)]
pub enum Trust<'a> {
    /// No trust: every point is checked, each time the file is loaded.
    Check,
    /// Every point is checked the first time, and the file's digest is then remembered in the store. Of a file with a
    /// remembered digest, the structure is checked, but not the points.
    Remembered(&'a CheckedKeyStore),
}

/// The checks that were made when a key was loaded.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Checked {
    /// Everything was checked now.
    Full,
    /// Everything but the points was checked; the points were checked when the same file was loaded before.
    PointsRemembered,
}

// === impl Zkey ===

impl<E: SnarkCurve> Zkey<E> {
    /// Loads an untrusted key file, on the current rayon pool's threads.
    ///
    /// No check of the file alone can show whether the key is for a certain circuit, or whether its makers
    /// kept or leaked their secrets.
    ///
    /// # Errors
    ///
    /// [`ReadError`]: a format error names the section and the offset.
    pub fn load(file: &MappedFile, trust: Trust<'_>) -> Result<(Self, Checked), ReadError> {
        let read = |check| {
            ZkeyFile::of_mapped(file)
                .and_then(|zkey| zkey.read(check))
                .map_err(|error| error.in_file(file.path()))
        };
        let Trust::Remembered(keys) = trust else {
            return Ok((read(PointCheck::Full)?, Checked::Full));
        };
        let digest = CheckedKeyStore::digest(file);
        let known = keys.contains(&digest);
        let key = read(PointCheck::unless(known))?;
        // Otherwise the content that was read might not be the content that was digested.
        file.check_unchanged()?;
        if known {
            return Ok((key, Checked::PointsRemembered));
        }
        keys.remember(&digest, file.path())?;
        Ok((key, Checked::Full))
    }

    /// The number of variables, the leading one included.
    pub fn variables(&self) -> usize {
        self.a.len()
    }

    /// The number of instance variables, the leading one included.
    pub fn instance(&self) -> usize {
        self.ic.len()
    }

    /// The verifying key. Its circuit digest is all zeros, as the file has none.
    pub fn verifying_key(&self) -> VerifyingKey<E> {
        VerifyingKey {
            circuit: [0; 32],
            alpha_g1: self.alpha_g1,
            beta_g2: self.beta_g2,
            gamma_g2: self.gamma_g2,
            delta_g2: self.delta_g2,
            instance: self.ic.clone(),
        }
    }

    /// Checks that the parts make a key: counts that agree with each other, and entries within them.
    ///
    /// # Errors
    ///
    /// A message that names the contradiction.
    pub fn check(&self) -> Result<(), String> {
        let (m, instance) = (self.a.len(), self.ic.len());
        let fits = |count: usize| u32::try_from(count).is_ok();
        let counts = [m, self.h.len(), self.coefficients.len()];
        if !counts.into_iter().all(fits) {
            return Err("more points or entries than 32 bits count".to_owned());
        }
        if instance != self.public as usize + 1 || instance > m {
            return Err(format!(
                "{instance} points IC for {} public inputs and {m} variables",
                self.public
            ));
        }
        let lengths = [self.b_g1.len(), self.b_g2.len(), self.c.len() + instance];
        if lengths != [m; 3] {
            return Err(format!("queries of {lengths:?} variables, not {m}"));
        }
        if !self.h.len().is_power_of_two() {
            return Err(format!("{} points H: not a power of two", self.h.len()));
        }
        let out_of_range = |entry: &&Coefficient<E::ScalarField>| {
            entry.row as usize >= self.h.len() || entry.variable as usize >= m
        };
        if let Some(entry) = self.coefficients.iter().find(out_of_range) {
            return Err(format!(
                "an entry in row {} for variable {}",
                entry.row, entry.variable
            ));
        }
        let mut order = self.order.clone();
        order.sort_unstable();
        if order
            .iter()
            .ne((1..=10).take(order.len().max(9)).collect::<Vec<_>>().iter())
        {
            return Err(format!("sections {:?}", self.order));
        }
        Ok(())
    }
}

impl<E: SnarkCurve> fmt::Debug for Zkey<E> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Zkey")
            .field("curve", &E::CURVE)
            .field("public", &self.public)
            .field("variables", &self.a.len())
            .field("domain", &self.h.len())
            .field("coefficients", &self.coefficients.len())
            .finish_non_exhaustive()
    }
}
