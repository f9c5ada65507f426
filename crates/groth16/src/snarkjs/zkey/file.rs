//! A key file whose structure was checked.

use ark_ff::{BigInteger, PrimeField};
use proofmill_files::MappedFile;
use proofmill_r1cs::iden3::{
    Container, Cursor, FormatError, MontgomeryField, Reason, ScalarField, width,
};

use super::format::{
    A, B_G1, B_G2, C, COEFFICIENTS, CONTRIBUTIONS, GROTH16, GROTH16_HEADER, H, HEADER, IC,
    ZKEY_FORMAT,
};
use super::points::{count_finite, point_bytes, read_items, read_points};
use super::{Coefficient, CoefficientMatrix, Contributions, Zkey};
use crate::{Curve, PointCheck, PointGroup, QueryPoints, SnarkCurve, VerifyingKey, with_curve};

/// The content of a key's headers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ZkeyHeader {
    /// The curve.
    pub curve: Curve,
    /// The number of variables, the leading one included.
    pub variables: u32,
    /// The number of public inputs, the leading one not included.
    pub public: u32,
    /// The size of the domain, a power of two: constraints and instance variables fit into it.
    pub domain_size: u32,
}

/// A key file whose headers were read, and whose sections have the lengths that follow from them.
#[derive(Clone, Debug)]
pub struct ZkeyFile<'a> {
    container: Container<'a>,
    header: ZkeyHeader,
    coefficients: u32,
    /// The file that the bytes are mapped from, if any: pages that were read are released.
    mapped: Option<&'a MappedFile>,
}

/// The points of the header.
struct HeaderPoints<E: SnarkCurve> {
    alpha_g1: E::G1Affine,
    beta_g1: E::G1Affine,
    beta_g2: E::G2Affine,
    gamma_g2: E::G2Affine,
    delta_g1: E::G1Affine,
    delta_g2: E::G2Affine,
}

// === impl ZkeyFile ===

impl<'a> ZkeyFile<'a> {
    /// Finds the sections in a file's untrusted bytes and checks their lengths against the headers, so that
    /// reading allocates no more than the file's size.
    ///
    /// # Errors
    ///
    /// [`FormatError`] with the section and the offset: among others for other proof systems than
    /// Groth16, other curves, and lengths that contradict each other.
    pub fn parse(bytes: &'a [u8]) -> Result<Self, FormatError> {
        let container = Container::parse(&ZKEY_FORMAT, bytes)?;
        let mut cursor = container.section(HEADER)?;
        let protocol = cursor.u32()?;
        if protocol != GROTH16 {
            let reason = match protocol {
                2 => "PLONK".to_owned(),
                10 => "FFLONK".to_owned(),
                other => format!("proof system {other}"),
            };
            return Err(cursor.error_at(cursor.offset() - 4, Reason::Unsupported(reason.into())));
        }
        cursor.finish()?;

        let mut cursor = container.section(GROTH16_HEADER)?;
        let header = read_header(&mut cursor)?;
        let file = Self {
            container,
            header,
            coefficients: 0,
            mapped: None,
        };
        with_curve!(header.curve, E => file.with_lengths_checked::<E>(cursor))
    }

    /// Like [`parse`](Self::parse) for a mapped file, of which at most
    /// [`READING_WINDOW_BYTES`](crate::READING_WINDOW_BYTES) bytes are in memory at once while it is read.
    ///
    /// # Errors
    ///
    /// As for [`parse`](Self::parse).
    pub fn of_mapped(file: &'a MappedFile) -> Result<Self, FormatError> {
        let mapped = Some(file);
        Self::parse(file).map(|parsed| Self { mapped, ..parsed })
    }

    fn with_lengths_checked<E: SnarkCurve>(
        mut self,
        header: Cursor<'a>,
    ) -> Result<Self, FormatError> {
        let g1 = point_bytes::<E::G1Affine>() as u64;
        let g2 = point_bytes::<E::G2Affine>() as u64;
        header.expect_length(3 * (g1 + g2))?;
        let [variables, public, domain_size] = [
            self.header.variables,
            self.header.public,
            self.header.domain_size,
        ]
        .map(u64::from);
        // Counts have 32 bits, so no product overflows.
        for (section, expected) in [
            (IC, (public + 1) * g1),
            (A, variables * g1),
            (B_G1, variables * g1),
            (B_G2, variables * g2),
            (C, (variables - public - 1) * g1),
            (H, domain_size * g1),
        ] {
            self.container.section(section)?.expect_length(expected)?;
        }
        let mut coefficients = self.container.section(COEFFICIENTS)?;
        self.coefficients = coefficients.u32()?;
        let size = (12 + width::<E::ScalarField>()) as u64;
        coefficients.expect_length(u64::from(self.coefficients) * size)?;
        Ok(self)
    }

    /// The content of the headers.
    pub const fn header(&self) -> &ZkeyHeader {
        &self.header
    }

    /// The curve, on which callers dispatch with [`with_curve!`](crate::with_curve).
    pub const fn curve(&self) -> Curve {
        self.header.curve
    }

    /// The number of entries of A and B.
    pub const fn coefficients(&self) -> u32 {
        self.coefficients
    }

    /// The container.
    pub const fn container(&self) -> &Container<'a> {
        &self.container
    }

    /// Reads the whole key, in parallel.
    ///
    /// # Errors
    ///
    /// [`FormatError`] with the section and the offset of a value that is not canonical, out of range or, with
    /// [`PointCheck::Full`], not in its group; or if the key is for another curve.
    pub fn read<E: SnarkCurve>(&self, check: PointCheck) -> Result<Zkey<E>, FormatError> {
        let header = &self.header;
        let points = self.header_points::<E>(check)?;
        let g1 = |section| self.all_points::<E::G1Affine>(section, check);
        let mut b_g2 = self.container.section(B_G2)?;
        Ok(Zkey {
            public: header.public,
            alpha_g1: points.alpha_g1,
            beta_g1: points.beta_g1,
            beta_g2: points.beta_g2,
            gamma_g2: points.gamma_g2,
            delta_g1: points.delta_g1,
            delta_g2: points.delta_g2,
            ic: g1(IC)?,
            coefficients: self.read_coefficients()?,
            a: g1(A)?,
            b_g1: g1(B_G1)?,
            b_g2: read_points(&mut b_g2, header.variables.into(), check, self.mapped)?,
            c: g1(C)?,
            h: g1(H)?,
            contributions: self.read_contributions(check)?,
            order: self
                .container
                .sections()
                .map(|(kind, _)| kind)
                .filter(|kind| ZKEY_FORMAT.section_name(*kind).is_some())
                .collect(),
        })
    }

    /// The verifying key, as by [`Zkey::verifying_key`], without reading the rest of the file.
    ///
    /// # Errors
    ///
    /// [`FormatError`] as for [`read`](Self::read).
    pub fn verifying_key<E: SnarkCurve>(
        &self,
        check: PointCheck,
    ) -> Result<VerifyingKey<E>, FormatError> {
        let points = self.header_points::<E>(check)?;
        Ok(VerifyingKey {
            circuit: [0; 32],
            alpha_g1: points.alpha_g1,
            beta_g2: points.beta_g2,
            gamma_g2: points.gamma_g2,
            delta_g2: points.delta_g2,
            instance: self.all_points(IC, check)?,
        })
    }

    fn header_points<E: SnarkCurve>(
        &self,
        check: PointCheck,
    ) -> Result<HeaderPoints<E>, FormatError> {
        let mut cursor = self.container.section(GROTH16_HEADER)?;
        if self.header.curve != E::CURVE {
            return Err(cursor.error(Reason::Field {
                found: self.header.curve.name().into(),
                expected: E::CURVE.name().into(),
            }));
        }
        read_header(&mut cursor)?;
        let [alpha_g1, beta_g1] = read_array(&mut cursor, check)?;
        let [beta_g2, gamma_g2] = read_array(&mut cursor, check)?;
        let [delta_g1] = read_array(&mut cursor, check)?;
        let [delta_g2] = read_array(&mut cursor, check)?;
        cursor.finish()?;
        Ok(HeaderPoints {
            alpha_g1,
            beta_g1,
            beta_g2,
            gamma_g2,
            delta_g1,
            delta_g2,
        })
    }

    /// Counts the points of each query that are not at infinity. It reads all their bytes and decodes none.
    ///
    /// # Errors
    ///
    /// [`FormatError`] as for [`read`](Self::read).
    pub fn query_points(&self) -> Result<QueryPoints, FormatError> {
        with_curve!(self.curve(), E => self.count_points::<E>())
    }

    fn count_points<E: SnarkCurve>(&self) -> Result<QueryPoints, FormatError> {
        let g1 = |section| self.count_finite::<E::G1Affine>(section);
        Ok(QueryPoints {
            a: g1(A)?,
            b_g1: g1(B_G1)?,
            b_g2: self.count_finite::<E::G2Affine>(B_G2)?,
            l: g1(C)?,
        })
    }

    fn count_finite<G: PointGroup>(&self, section: u32) -> Result<u64, FormatError> {
        let mut cursor = self.container.section(section)?;
        let count = cursor.remaining() / point_bytes::<G>();
        let bytes = cursor.items(count as u64, point_bytes::<G>())?;
        Ok(count_finite::<G>(bytes, self.mapped))
    }

    /// The points of a section that holds nothing else.
    fn all_points<G: PointGroup>(
        &self,
        section: u32,
        check: PointCheck,
    ) -> Result<Vec<G>, FormatError> {
        let mut cursor = self.container.section(section)?;
        let count = cursor.remaining() / point_bytes::<G>();
        read_points(&mut cursor, count as u64, check, self.mapped)
    }

    /// The circuit's hash and the contributions; `None` if the section is missing.
    ///
    /// # Errors
    ///
    /// [`FormatError`] as for [`read`](Self::read).
    pub fn read_contributions<E: SnarkCurve>(
        &self,
        check: PointCheck,
    ) -> Result<Option<Contributions<E>>, FormatError> {
        self.container
            .optional(CONTRIBUTIONS)
            .map(|cursor| Contributions::read(cursor, check))
            .transpose()
    }

    fn read_coefficients<F: MontgomeryField>(&self) -> Result<Vec<Coefficient<F>>, FormatError> {
        let mut cursor = self.container.section(COEFFICIENTS)?;
        let count = cursor.u32()?;
        let start = cursor.offset();
        let size = 12 + width::<F>();
        let bytes = cursor.items(count.into(), size)?;
        // The file has the value times R², so that reading it as a Montgomery form gives the value times R.
        let r_inverse = montgomery_r::<F>().inverse().unwrap_or_default();
        let read = |bytes: &[u8]| -> Result<Coefficient<F>, Reason> {
            let (numbers, value) = bytes.split_at(12);
            let number = |i: usize| {
                numbers[4 * i..4 * i + 4]
                    .iter()
                    .rev()
                    .fold(0, |number, byte| number << 8 | u32::from(*byte))
            };
            let value = F::from_montgomery_le(value).ok_or(Reason::NotCanonical)?;
            let inconsistent = |reason: String| Reason::Inconsistent(reason.into());
            let coefficient = Coefficient {
                matrix: match number(0) {
                    0 => CoefficientMatrix::A,
                    1 => CoefficientMatrix::B,
                    other => return Err(inconsistent(format!("matrix {other}: only 0 and 1 are"))),
                },
                row: number(1),
                variable: number(2),
                value: value * r_inverse,
            };
            if coefficient.row >= self.header.domain_size {
                return Err(inconsistent(format!(
                    "row {}: the domain has {}",
                    coefficient.row, self.header.domain_size
                )));
            }
            if coefficient.variable >= self.header.variables {
                return Err(inconsistent(format!(
                    "variable {} of {}",
                    coefficient.variable, self.header.variables
                )));
            }
            Ok(coefficient)
        };
        let mut coefficients = vec![Coefficient::default(); bytes.len() / size];
        read_items(
            &mut coefficients,
            bytes,
            size,
            self.mapped,
            |items, bytes| {
                let encoded = bytes.chunks_exact(size).enumerate();
                for (item, (i, bytes)) in items.iter_mut().zip(encoded) {
                    *item = read(bytes).map_err(|reason| (i, reason))?;
                }
                Ok(())
            },
        )
        .map_err(|(i, reason)| cursor.error_at(start + (i * size) as u64, reason))?;
        Ok(coefficients)
    }
}

/// R = 2^(8·width), the factor of Montgomery forms.
pub(super) fn montgomery_r<F: PrimeField>() -> F {
    F::from(2u64).pow([8 * width::<F>() as u64])
}

fn read_array<P: crate::PointGroup, const N: usize>(
    cursor: &mut Cursor<'_>,
    check: PointCheck,
) -> Result<[P; N], FormatError> {
    let points = read_points(cursor, N as u64, check, None)?;
    Ok(points
        .try_into()
        .unwrap_or_else(|_| unreachable!("as many points as were asked for")))
}

/// Reads section 2 up to its points.
fn read_header(cursor: &mut Cursor<'_>) -> Result<ZkeyHeader, FormatError> {
    let start = cursor.offset();
    let base = cursor.u32()?;
    // The widest supported base field has 48 bytes, so a longer one is not read in full.
    let prime = cursor.bytes(base.min(64) as usize)?;
    let curve = Curve::ALL
        .into_iter()
        .find(|curve| with_curve!(*curve, E => base_prime::<E>()) == prime)
        .ok_or_else(|| {
            let reason = "a curve other than BN254, BLS12-381 and BLS12-377".into();
            cursor.error_at(start, Reason::Unsupported(reason))
        })?;
    let start = cursor.offset();
    let scalars = ScalarField::read(cursor)?;
    with_curve!(curve, E => scalars.expect::<<E as ark_ec::pairing::Pairing>::ScalarField>())
        .map_err(|reason| cursor.error_at(start, reason))?;
    let start = cursor.offset();
    let header = ZkeyHeader {
        curve,
        variables: cursor.u32()?,
        public: cursor.u32()?,
        domain_size: cursor.u32()?,
    };
    let adicity = with_curve!(curve, E => {
        <<E as ark_ec::pairing::Pairing>::ScalarField as ark_ff::FftField>::TWO_ADICITY
    });
    if header.public >= header.variables {
        let reason = format!(
            "{} public inputs and a leading one among {} variables",
            header.public, header.variables
        );
        return Err(cursor.error_at(start, Reason::Inconsistent(reason.into())));
    }
    if !header.domain_size.is_power_of_two() || header.domain_size.ilog2() > adicity {
        let reason = format!(
            "a domain of {} points: it must be a power of two up to 2^{adicity}",
            header.domain_size
        );
        return Err(cursor.error_at(start + 8, Reason::Inconsistent(reason.into())));
    }
    Ok(header)
}

/// The base field's prime, little-endian, padded to whole 64-bit words.
fn base_prime<E: SnarkCurve>() -> Vec<u8> {
    E::BaseField::MODULUS.to_bytes_le()
}
