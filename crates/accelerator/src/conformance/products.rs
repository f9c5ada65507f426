//! Products: kinds of points and scalars, few points, copies of the bases, sizes.

use super::case::{Case, ensure};
use super::samples::{PointKind, ScalarKind, expected};
use crate::device::{Device, DeviceJob};
use crate::group::{DeviceField, DeviceGroup};

/// Points of the products that all kinds of points and scalars are tried with.
const SMALL: usize = 150;
/// Memory limits: for the bases alone; for a few copies of them; for one for each window.
const MEMORY_LIMITS: [(usize, &str); 3] = [
    (0, "no copies of the bases"),
    (150_000, "some copies of the bases"),
    (usize::MAX, "all copies of the bases"),
];

/// Small products of every kind, over the group `G`.
pub fn products<G: DeviceGroup>() -> Vec<Case> {
    let mut cases = Vec::new();
    for points in PointKind::ALL {
        for scalars in ScalarKind::ALL {
            cases.push(product::<G>(SMALL, points, scalars, MEMORY_LIMITS[0]));
        }
    }
    for limit in &MEMORY_LIMITS[1..] {
        for scalars in &ScalarKind::ALL[..3] {
            cases.push(product::<G>(SMALL, PointKind::Awkward, *scalars, *limit));
        }
    }
    for count in 0..4 {
        for scalars in &ScalarKind::ALL[..4] {
            for limit in [MEMORY_LIMITS[0], MEMORY_LIMITS[2]] {
                cases.push(product::<G>(count, PointKind::Random, *scalars, limit));
            }
        }
    }
    cases
}

/// Products of these numbers of random points, over the group `G`, with spread and with skewed scalars.
/// `memory_limit` is that of [`Device::load_bases`].
pub fn sized_products<G: DeviceGroup>(counts: &[usize], memory_limit: usize) -> Vec<Case> {
    let kinds = ScalarKind::SKEWED;
    let limit = (memory_limit, "copies of the bases as memory allows");
    let limit = if memory_limit == 0 {
        MEMORY_LIMITS[0]
    } else {
        limit
    };
    let of_count = |count: &usize| {
        kinds.map(|scalars| product::<G>(*count, PointKind::Random, scalars, limit))
    };
    counts.iter().flat_map(of_count).collect()
}

/// The case of one product.
fn product<G: DeviceGroup>(
    count: usize,
    points: PointKind,
    scalars: ScalarKind,
    (memory_limit, copies): (usize, &str),
) -> Case {
    let size = match count {
        count if count > SMALL && count.is_power_of_two() => format!("2^{}", count.ilog2()),
        count => count.to_string(),
    };
    let name = format!(
        "{}: the product of {size} {} and {}, {copies}",
        G::GROUP,
        points.name(),
        scalars.name()
    );
    Case::new(name, move |device| {
        let seed = count as u64;
        let points = points.make::<G>(count, seed);
        let scalars = scalars.make::<G::ScalarField>(count, seed + 1);
        let sum = product_on::<G>(device, &points, &scalars, memory_limit)?;
        ensure(sum == expected::<G>(&points, &scalars), || {
            "the result is another point than that of the CPU".into()
        })
    })
}

/// A product on a device; its bases are loaded and evicted.
fn product_on<G: DeviceGroup>(
    device: &dyn Device,
    points: &[G::Affine],
    scalars: &[G::ScalarField],
    memory_limit: usize,
) -> Result<G, String> {
    let text = |error: crate::Error| error.to_string();
    let bases = device
        .load_bases(G::points(points.to_vec()), memory_limit)
        .map_err(|error| format!("the bases are not loaded: {error}"))?;
    let scalars = G::ScalarField::scalars(scalars.to_vec());
    let outcome = device
        .submit(DeviceJob::Msm { bases, scalars })
        .and_then(|ticket| ticket.wait())
        .and_then(|outcome| outcome.into_sum());
    let evicted = device.evict(bases);
    let sum = outcome.map_err(text)?;
    evicted.map_err(|error| format!("the bases are not evicted: {error}"))?;
    Ok(sum)
}
