//! Products of pairings side by side, one in each lane.

use super::super::field::Fp;
use super::super::vector_field::Layout;
use super::accumulator::Accumulator;
use super::cyclotomic::Cyclotomic;
use super::exponentiation::{of_eight, unless};
use super::fixed::{FixedGroup, FixedPair, InLanes};
use super::lanes::Element;
use super::miller::{Group, Pair, product_of_lines};
use super::tower::{Family, Tower};

/// The pairs of a product, none of their points infinite.
pub(crate) struct Terms<'a, E: Tower<L, N>, const L: usize, const N: usize> {
    pub(crate) pairs: &'a [Pair<E, L, N>],
    pub(crate) fixed: Vec<FixedPair<'a, E, L, N>>,
}

/// The value of each product: its Miller loops and the final exponentiation. `None` for a product that does not
/// exist.
///
/// Eight products take as long as the longest of them: the k-th group has the k-th pair of each product with at least
/// k pairs.
///
/// # Safety
///
/// The instructions of this back end.
#[target_feature(enable = "avx512f,avx512dq,avx512vl,avx512ifma,avx512vbmi2")]
pub(crate) unsafe fn value_each<E: Tower<L, N>, const L: usize, const N: usize>(
    products: &[Terms<'_, E, L, N>],
) -> Vec<Option<Element<E, L, N>>>
where
    Fp<E::Base, L, N>: Layout<E::Base, N>,
{
    let mut values = Vec::with_capacity(products.len());
    for products in products.chunks(8) {
        // SAFETY: as the caller promises.
        unsafe {
            let mut groups = Vec::new();
            for pairs in by_place(products, |product| product.pairs) {
                groups.push(Group::new(&pairs));
            }
            let mut fixed = FixedGroup::groups(&by_place(products, |product| &product.fixed));
            let mut product =
                product_of_lines::<E, Accumulator<E, L, N>, L, N>(&mut groups, &mut fixed);
            if E::FAMILY == Family::Bls12 && E::PARAMETER_IS_NEGATIVE {
                product = product.conjugate();
            }
            let (power, zeros) = of_eight(&product);
            values.extend(unless(power.elements(), zeros).take(products.len()));
        }
    }
    values
}

/// The items of one to eight products by their place, each product in its lane.
fn by_place<'a, P, T>(products: &'a [P], items: impl Fn(&'a P) -> &'a [T]) -> Vec<InLanes<'a, T>> {
    let longest = products.iter().map(|product| items(product).len()).max();
    let group =
        |place| std::array::from_fn(|lane| products.get(lane).and_then(|it| items(it).get(place)));
    (0..longest.unwrap_or(0)).map(group).collect()
}
