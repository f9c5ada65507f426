//! Points and scalars of the cases.

use ark_ec::AffineRepr;
use ark_ff::PrimeField;
use ark_std::UniformRand;
use ark_std::rand::{Rng, SeedableRng, rngs::StdRng};
use proofmill_kernels::{PreparedBases, fixed_base};

use crate::group::DeviceGroup;

/// Most distinct points of a product; more would take longer to make than to multiply, and repeat.
const DISTINCT_MAX: usize = 1 << 16;

/// Kinds of points.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum PointKind {
    /// Random ones.
    Random,
    /// Few, with their negatives and infinity, whose sums meet every case of an addition.
    Awkward,
    /// One point.
    Equal,
    /// Infinity.
    Infinity,
}

/// Kinds of scalars.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum ScalarKind {
    Random,
    Equal,
    Zeros,
    /// 0, 1, 2, 1/2 and their negatives.
    Edges,
    /// Powers of two and their predecessors, where digits carry.
    DigitEnds,
    /// Below 2^32.
    Short,
    /// One bucket of the lowest window takes all, the rest is spread.
    HotBucket,
    Bits,
}

// === impl PointKind ===

impl PointKind {
    pub(super) const ALL: [Self; 4] = [Self::Random, Self::Awkward, Self::Equal, Self::Infinity];

    pub(super) const fn name(self) -> &'static str {
        match self {
            Self::Random => "random points",
            Self::Awkward => "points, their negatives and infinity",
            Self::Equal => "equal points",
            Self::Infinity => "points at infinity",
        }
    }

    pub(super) fn make<G: DeviceGroup>(self, count: usize, seed: u64) -> Vec<G::Affine> {
        let rng = &mut StdRng::seed_from_u64(seed);
        match self {
            Self::Random => {
                let distinct = count.min(DISTINCT_MAX);
                let scalars: Vec<_> = (0..distinct).map(|_| G::ScalarField::rand(rng)).collect();
                let mut points = fixed_base(G::generator(), &scalars);
                points.reserve_exact(count - distinct);
                for i in distinct..count {
                    points.push(points[i - distinct]);
                }
                points
            }
            Self::Awkward => {
                let point = G::rand(rng);
                let few = G::normalize_batch(&[G::zero(), point, -point, point.double()]);
                (0..count)
                    .map(|_| few[rng.gen_range(0..few.len())])
                    .collect()
            }
            Self::Equal => vec![G::generator().into_affine(); count],
            Self::Infinity => vec![G::Affine::zero(); count],
        }
    }
}

// === impl ScalarKind ===

impl ScalarKind {
    pub(super) const ALL: [Self; 8] = [
        Self::Random,
        Self::Equal,
        Self::Zeros,
        Self::Edges,
        Self::DigitEnds,
        Self::Short,
        Self::HotBucket,
        Self::Bits,
    ];
    /// Those that large products are tested with: spread, and skewed in two ways.
    pub(super) const SKEWED: [Self; 3] = [Self::Random, Self::Equal, Self::Short];

    pub(super) const fn name(self) -> &'static str {
        match self {
            Self::Random => "random scalars",
            Self::Equal => "equal scalars",
            Self::Zeros => "zeros",
            Self::Edges => "0, 1, 2, 1/2 and their negatives",
            Self::DigitEnds => "powers of two and their predecessors",
            Self::Short => "scalars of 32 bits",
            Self::HotBucket => "scalars with one lowest digit",
            Self::Bits => "bits",
        }
    }

    pub(super) fn make<F: PrimeField>(self, count: usize, seed: u64) -> Vec<F> {
        let rng = &mut StdRng::seed_from_u64(seed);
        let one_for_all = F::rand(rng);
        let half = F::ONE.double().inverse().unwrap_or(F::ONE);
        let edges = [
            F::ZERO,
            F::ONE,
            -F::ONE,
            F::from(2u64),
            -F::from(2u64),
            half,
            -half,
        ];
        let mut scalar = |i: usize| match self {
            Self::Random => F::rand(rng),
            Self::Equal => one_for_all,
            Self::Zeros => F::ZERO,
            Self::Edges => edges[i % edges.len()],
            Self::DigitEnds => {
                F::from(2u64).pow([i as u64 % 256]) - F::from(rng.gen_range(0..2u64))
            }
            Self::Short => F::from(rng.r#gen::<u32>()),
            Self::HotBucket => F::rand(rng) * F::from(1u64 << 40) + F::from(3u64),
            Self::Bits => F::from(rng.r#gen::<bool>()),
        };
        (0..count).map(&mut scalar).collect()
    }
}

/// The product by the CPU's kernels.
pub(super) fn expected<G: DeviceGroup>(points: &[G::Affine], scalars: &[G::ScalarField]) -> G {
    PreparedBases::<G>::new(points, 0).msm(scalars)
}
