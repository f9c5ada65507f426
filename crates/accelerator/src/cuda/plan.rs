//! The division of a product's scalars into windows.

/// Windows of signed digits, and the copies of the bases that let windows share buckets.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct WindowPlan {
    /// Bits of a digit.
    pub(crate) window_bits: u32,
    /// Digits of a scalar.
    pub(crate) windows: u32,
    /// Windows with buckets of their own; each has those of all copies.
    pub(crate) shared_windows: u32,
}

/// Multiplications in the base field that an addition of an affine point costs, and one of sums.
const MIXED_ADDITION: u64 = 10;
const ADDITION: u64 = 14;
/// Additions for each bucket: one to the running sum, one to the weighted sum, and about one for the left-over
/// sums of a segment.
const BUCKET_ADDITIONS: u64 = 3;
/// The widest window: the buckets of one are then 400 MB of BLS12-381's G1.
const MAX_WINDOW_BITS: u32 = 22;

impl WindowPlan {
    /// The cheapest plan for products of `bases` scalars of `scalar_bits` bits, with room for `copies` copies of the
    /// bases.
    pub(crate) fn new(bases: usize, scalar_bits: u32, copies: usize) -> Self {
        (2..=MAX_WINDOW_BITS)
            .map(|window_bits| Self::with(window_bits, scalar_bits, copies))
            .min_by_key(|plan| plan.cost(bases))
            .expect("there are widths to choose from")
    }

    fn with(window_bits: u32, scalar_bits: u32, copies: usize) -> Self {
        // One bit more than scalars have, so that the last digit leaves no carry.
        let windows = (scalar_bits + 1).div_ceil(window_bits);
        let copies = u32::try_from(copies).unwrap_or(u32::MAX).clamp(1, windows);
        Self {
            window_bits,
            windows,
            shared_windows: windows.div_ceil(copies),
        }
    }

    /// Copies of the bases that the windows need; copy i has the multiples by 2^(i·`copy_bits`).
    pub(crate) fn copies(&self) -> usize {
        self.windows.div_ceil(self.shared_windows) as usize
    }

    /// Bits that neighbouring copies are apart.
    pub(crate) fn copy_bits(&self) -> u32 {
        self.window_bits * self.shared_windows
    }

    /// Buckets of all windows.
    pub(crate) fn buckets(&self) -> usize {
        (self.shared_windows as usize) << (self.window_bits - 1)
    }

    /// Bits of the number of a bucket, or of the one behind the last.
    pub(crate) fn key_bits(&self) -> u32 {
        usize::BITS - self.buckets().leading_zeros()
    }

    fn cost(&self, bases: usize) -> u64 {
        bases as u64 * u64::from(self.windows) * MIXED_ADDITION
            + self.buckets() as u64 * BUCKET_ADDITIONS * ADDITION
    }
}

#[cfg(test)]
mod tests {
    use super::WindowPlan;

    #[test]
    fn digits_cover_a_scalar_and_its_carry() {
        for bits in [253, 254, 255] {
            for log in 0..27 {
                for copies in [1, 2, 3, 5, 12, 200] {
                    let plan = WindowPlan::new(1 << log, bits, copies);
                    assert!(plan.windows * plan.window_bits > bits, "{plan:?}");
                    assert!(plan.copies() <= copies, "{plan:?}");
                    assert!(plan.copy_bits() * plan.copies() as u32 >= bits, "{plan:?}");
                }
            }
        }
    }

    #[test]
    fn more_bases_make_wider_windows() {
        let width = |log: u32| WindowPlan::new(1 << log, 255, 1).window_bits;
        assert!((4..26).all(|log| width(log) <= width(log + 1)));
        assert!(width(22) > width(10));
    }
}
