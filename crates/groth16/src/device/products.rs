//! A proof's products while a device computes them.

use std::fmt;
use std::time::Instant;

use ark_ff::PrimeField;
use proofmill_accelerator::{
    DeviceField, DeviceGroup, DeviceJob, Error, Scalars, Ticket, TransformKind,
};
use proofmill_r1cs::iden3::SCALAR_BYTES;
use zeroize::Zeroizing;

use super::key::{DeviceBases, DeviceKey};
use crate::prover::stages::{Evaluations, Products, Prover, ProverStage, Quotient, StageReport};
use crate::{ProveError, SnarkCurve};

/// Products that a device is computing. Dropping this cancels them.
pub struct PendingProducts<'k, E: SnarkCurve> {
    key: &'k DeviceKey<E>,
    quotient: PendingQuotient<E::ScalarField>,
    products: Tickets,
}

/// The scalars of the H query, before or after the transforms.
pub enum QuotientInput<F: PrimeField> {
    /// A·z and B·z: the transforms are still to be computed.
    Evaluations(Evaluations<F>),
    /// The transformed scalars.
    Quotient(Quotient<F>),
}

/// The products of a proof; the one in the second group may be missing.
pub struct PartialProducts<E: SnarkCurve> {
    /// Σ zⱼ·Aⱼ(τ).
    pub a: E::G1,
    /// Σ zⱼ·Bⱼ(τ) in the first group.
    pub b_g1: E::G1,
    /// Σ zⱼ·Bⱼ(τ) in the second group; `None` if the processors are to compute it.
    pub b_g2: Option<E::G2>,
    /// The part of C that is linear in z.
    pub l: E::G1,
    /// The part of C that is quadratic in z.
    pub h: E::G1,
}

/// The scalars of the H query, or the jobs that compute them.
pub(super) enum PendingQuotient<F: PrimeField> {
    /// The scalars, on the host.
    Host(QuotientInput<F>),
    /// Jobs of the device that transform the quotient's factors.
    Device(Vec<Ticket>),
}

/// The products with the assignment that the device computes.
pub(super) struct Tickets {
    a: Option<Ticket>,
    b_g1: Option<Ticket>,
    b_g2: Option<Ticket>,
    l: Option<Ticket>,
}

/// A product, on the host or still on the device.
enum Product<G> {
    Host(G),
    Device(Ticket),
}

/// Records the time that each step added to a proof.
struct Reports {
    reports: Vec<StageReport>,
    last: Instant,
}

// === impl DeviceKey ===

impl<E: SnarkCurve> DeviceKey<E> {
    /// Submits the products with the assignment.
    pub(super) fn multiply(&self, z: &[E::ScalarField]) -> Result<Tickets, ProveError> {
        let prover = self.key().prover();
        prover.check_length(z)?;
        let scalars = E::ScalarField::scalars;
        // One copy for both groups, unless their queries differ.
        let b = || scalars(prover.b_g1.gather(z));
        let shared =
            (self.key().shares_b_indices() && self.b_g1.is_some() && self.b_g2.is_some()).then(b);
        let submit = |bases: &Option<DeviceBases>, scalars: &dyn Fn() -> Scalars| {
            let ticket = bases.as_ref().map(|bases| self.submit(bases, scalars));
            ticket.transpose()
        };
        let a = submit(&self.a, &|| scalars(prover.a.gather(z)))?;
        let b_g1 = submit(&self.b_g1, &|| shared.clone().unwrap_or_else(b))?;
        let b_g2 = submit(&self.b_g2, &|| {
            let gathered = || scalars(prover.b_g2.gather(z));
            shared.clone().unwrap_or_else(gathered)
        })?;
        let l = submit(&self.l, &|| scalars(prover.l.gather(z)))?;
        Ok(Tickets { a, b_g1, b_g2, l })
    }

    /// Submits the transforms, if there are any to do and the device does them.
    pub(super) fn transform(
        &self,
        input: QuotientInput<E::ScalarField>,
    ) -> Result<PendingQuotient<E::ScalarField>, ProveError> {
        let evaluations = match input {
            QuotientInput::Evaluations(evaluations) if self.placement().transforms => evaluations,
            input => return Ok(PendingQuotient::Host(input)),
        };
        let prover = self.key().prover();
        let submit = |mut factor: Zeroizing<Vec<_>>| {
            let domain = prover.domain.clone();
            let values = std::mem::take(&mut *factor);
            let kind = TransformKind::CosetExtend;
            self.run(DeviceJob::Transform(E::ScalarField::transform(
                domain, kind, values,
            )))
        };
        let tickets: Result<_, Error> = prover
            .factors(evaluations)
            .into_iter()
            .map(submit)
            .collect();
        Ok(PendingQuotient::Device(tickets?))
    }
}

// === impl PendingProducts ===

impl<'k, E: SnarkCurve> PendingProducts<'k, E> {
    pub(super) const fn new(
        key: &'k DeviceKey<E>,
        quotient: PendingQuotient<E::ScalarField>,
        products: Tickets,
    ) -> Self {
        Self {
            key,
            quotient,
            products,
        }
    }

    /// Computes the parts that the device does not, except for the product in the second group, while the
    /// device works, then awaits the device's results. The computation runs where the future is polled, on all
    /// threads of the current rayon pool. Each report has the time that a step took after the steps before it.
    ///
    /// # Errors
    ///
    /// [`ProveError::Assignment`] if `z` is for another circuit, [`ProveError::Device`].
    pub async fn finish(
        self,
        z: &[E::ScalarField],
    ) -> Result<(PartialProducts<E>, Vec<StageReport>), ProveError> {
        let Self {
            key,
            quotient,
            products,
        } = self;
        let (resident, prover) = (key.key(), key.key().prover());
        let mut reports = Reports::new();
        let quotient = match quotient {
            PendingQuotient::Host(QuotientInput::Quotient(quotient)) => quotient,
            PendingQuotient::Host(QuotientInput::Evaluations(evaluations)) => {
                reports.add_host_step(prover.quotient(evaluations))
            }
            PendingQuotient::Device(tickets) => {
                let mut factors = Vec::with_capacity(tickets.len());
                for ticket in tickets {
                    factors.push(Zeroizing::new(ticket.await?.into_values()?));
                }
                reports
                    .add_device_step(ProverStage::Quotient, factors.len() * prover.domain_size());
                prover.combine(factors)
            }
        };
        // Submitted before the processors multiply, so that the device goes on meanwhile.
        let h = match &key.h {
            None => Product::Host(reports.add_host_step(prover.multiply_h(quotient))),
            Some(bases) => {
                let Quotient { mut values } = quotient;
                let scalars = || E::ScalarField::scalars(std::mem::take(&mut *values));
                Product::Device(key.submit(bases, scalars)?)
            }
        };
        let a = Product::of(products.a, || {
            reports.try_add_host_step(prover.multiply_a(z))
        })?;
        let b_g1 = Product::of(products.b_g1, || {
            reports.try_add_host_step(prover.multiply_b_g1(z))
        })?;
        let l = Product::of(products.l, || {
            reports.try_add_host_step(prover.multiply_l(z))
        })?;
        let products = PartialProducts {
            a: a.wait(&mut reports, ProverStage::MsmA, resident.a.len())
                .await?,
            b_g1: b_g1
                .wait(&mut reports, ProverStage::MsmBG1, resident.b_g1.len())
                .await?,
            b_g2: match products.b_g2 {
                None => None,
                Some(ticket) => Some(
                    Product::Device(ticket)
                        .wait(&mut reports, ProverStage::MsmBG2, resident.b_g2.len())
                        .await?,
                ),
            },
            l: l.wait(&mut reports, ProverStage::MsmL, resident.l.len())
                .await?,
            h: h.wait(&mut reports, ProverStage::MsmH, resident.h.len())
                .await?,
        };
        Ok((products, reports.reports))
    }
}

// === impl PartialProducts ===

impl<E: SnarkCurve> PartialProducts<E> {
    /// All products: the one in the second group is computed, if it is missing.
    ///
    /// # Errors
    ///
    /// [`ProveError::Assignment`] if `z` is for another circuit.
    pub fn complete(
        self,
        prover: &Prover<'_, E>,
        z: &[E::ScalarField],
    ) -> Result<(Products<E>, Option<StageReport>), ProveError> {
        let (b_g2, report) = match self.b_g2 {
            Some(b_g2) => (b_g2, None),
            None => {
                let (b_g2, report) = prover.multiply_b_g2(z)?;
                (b_g2, Some(report))
            }
        };
        let products = Products {
            a: self.a,
            b_g1: self.b_g1,
            b_g2,
            l: self.l,
            h: self.h,
        };
        Ok((products, report))
    }
}

// === impl Product ===

impl<G: DeviceGroup> Product<G> {
    /// The device's result, or else the one computed on the host.
    fn of(
        ticket: Option<Ticket>,
        compute: impl FnOnce() -> Result<G, ProveError>,
    ) -> Result<Self, ProveError> {
        ticket.map_or_else(
            || compute().map(Self::Host),
            |ticket| Ok(Self::Device(ticket)),
        )
    }

    /// Awaits the product. `scalars` is the number of scalars that were given to the device.
    async fn wait(
        self,
        reports: &mut Reports,
        stage: ProverStage,
        scalars: usize,
    ) -> Result<G, ProveError> {
        match self {
            Self::Host(product) => Ok(product),
            Self::Device(ticket) => {
                let product = ticket.await?.into_sum()?;
                reports.add_device_step(stage, scalars);
                Ok(product)
            }
        }
    }
}

// === impl Reports ===

impl Reports {
    fn new() -> Self {
        Self {
            reports: Vec::with_capacity(6),
            last: Instant::now(),
        }
    }

    /// Adds a step that was computed on the host.
    fn add_host_step<T>(&mut self, (value, report): (T, StageReport)) -> T {
        self.last = Instant::now();
        self.reports.push(report);
        value
    }

    fn try_add_host_step<T>(
        &mut self,
        step: Result<(T, StageReport), ProveError>,
    ) -> Result<T, ProveError> {
        step.map(|step| self.add_host_step(step))
    }

    /// Adds a step of the device with this number of scalars, which ended now.
    fn add_device_step(&mut self, stage: ProverStage, scalars: usize) {
        let now = Instant::now();
        self.reports.push(StageReport {
            stage,
            bytes: scalars * SCALAR_BYTES,
            duration: now - self.last,
        });
        self.last = now;
    }
}

impl<F: PrimeField> From<Evaluations<F>> for QuotientInput<F> {
    fn from(evaluations: Evaluations<F>) -> Self {
        Self::Evaluations(evaluations)
    }
}

impl<F: PrimeField> From<Quotient<F>> for QuotientInput<F> {
    fn from(quotient: Quotient<F>) -> Self {
        Self::Quotient(quotient)
    }
}

// The types below hold values of the witness, so that `Debug` shows only where they are.

impl<F: PrimeField> fmt::Debug for QuotientInput<F> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Evaluations(evaluations) => evaluations.fmt(f),
            Self::Quotient(quotient) => quotient.fmt(f),
        }
    }
}

impl<E: SnarkCurve> fmt::Debug for PendingProducts<'_, E> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("PendingProducts")
            .field("key", self.key)
            .finish_non_exhaustive()
    }
}

impl<E: SnarkCurve> fmt::Debug for PartialProducts<E> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("PartialProducts").finish_non_exhaustive()
    }
}
