//! The kernels' arguments: field for field the `Args` of `kernels/cuda`. Addresses are the machine's.

use cudarc::driver::DeviceRepr;

/// The arguments of one kernel, laid out as the kernel reads them.
pub(crate) trait Arguments: DeviceRepr {
    /// The kernel's name, after its module's and an underscore.
    const KERNEL: &'static str;
    /// The most threads of a block.
    const THREADS: u32;
}

/// Defines arguments.
macro_rules! arguments {
    ($($(#[$doc:meta])* $name:ident($kernel:literal, $threads:literal) {
        $($field:ident: $type:ty,)*
    })*) => {$(
        $(#[$doc])*
        #[derive(Clone, Copy, Debug)]
        #[repr(C)]
        pub(crate) struct $name {
            $(pub(crate) $field: $type,)*
        }

        // SAFETY: repr(C), and field for field the kernel's, as the host's kernels check by size
        // and the conformance tests by result.
        #[expect(unsafe_code, reason = "a kernel believes what it is given")]
        unsafe impl DeviceRepr for $name {}

        impl Arguments for $name {
            const KERNEL: &'static str = $kernel;
            const THREADS: u32 = $threads;
        }
    )*};
}

/// The powers of an element, by two tables. No tables, no powers: address 0.
#[derive(Clone, Copy, Debug, Default)]
#[repr(C)]
pub(crate) struct Powers {
    pub(crate) high: u64,
    pub(crate) low: u64,
    pub(crate) low_bits: u32,
    pub(crate) unused: u32,
}

arguments! {
    /// Scalars to pairs of (bucket, point).
    Recode("recode", 256) {
        scalars: u64,
        keys: u64,
        values: u64,
        count: u32,
        window_bits: u32,
        windows: u32,
        shared_windows: u32,
        first_base: u32,
        bases: u32,
    }
    /// Prefix sums within tiles.
    ScanTiles("scan_tiles", 256) {
        values: u64,
        totals: u64,
        count: u32,
    }
    /// Adds to each tile's prefix sums the total of the tiles before it.
    AddTotals("add_totals", 256) {
        values: u64,
        totals: u64,
        count: u32,
    }
    /// Each tile's digits.
    CountDigits("count_digits", 256) {
        keys: u64,
        counts: u64,
        pairs: u32,
        tiles: u32,
        shift: u32,
    }
    /// Pairs to where their digits begin.
    MovePairs("move_pairs", 256) {
        keys: u64,
        values: u64,
        sorted_keys: u64,
        sorted_values: u64,
        begins: u64,
        pairs: u32,
        tiles: u32,
        shift: u32,
    }
    /// Empty buckets.
    ClearBuckets("clear_buckets", 256) {
        buckets: u64,
        count: u32,
    }
    /// Runs of bases to their buckets.
    AddBases("add_bases", 128) {
        points: u64,
        values: u64,
        keys: u64,
        buckets: u64,
        left_sums: u64,
        left_keys: u64,
        items: u32,
        segment: u32,
        none: u32,
    }
    /// Adds runs of left-over sums to their buckets.
    AddLeftOver("add_left_over", 128) {
        sums: u64,
        unused: u64,
        keys: u64,
        buckets: u64,
        left_sums: u64,
        left_keys: u64,
        items: u32,
        segment: u32,
        none: u32,
    }
    /// Buckets to chunks.
    SumChunks("sum_chunks", 128) {
        buckets: u64,
        sums: u64,
        chunks: u32,
        chunk_log: u32,
    }
    /// Pairs of nodes to one.
    FoldNodes("fold_nodes", 128) {
        from: u64,
        to: u64,
        parts: u32,
        nodes: u32,
    }
    /// Points to their multiples.
    DoublePoints("double_points", 128) {
        points: u64,
        multiples: u64,
        count: u32,
        doublings: u32,
    }
    /// Sums to affine points.
    Normalize("normalize", 128) {
        from: u64,
        to: u64,
        products: u64,
        count: u32,
        each: u32,
        stride: u32,
    }
    /// One pass of a transform.
    NttPass("ntt_pass", 512) {
        from: u64,
        to: u64,
        roots: Powers,
        before: Powers,
        after: Powers,
        size_log: u32,
        radix_log: u32,
        done_log: u32,
        columns_log: u32,
    }
}
