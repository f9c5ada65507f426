//! Points that stay in a key's file; a product holds only a window of them in memory.

use std::marker::PhantomData;
use std::ops::Range;
use std::sync::Arc;

use ark_serialize::{CanonicalDeserialize, Compress, Validate};
use proofmill_files::MappedFile;
use proofmill_kernels::{MsmGroup, msm};
use rayon::prelude::*;
use zeroize::Zeroizing;

use crate::keys::encoding::uncompressed_size;

/// Number of points that a product has in memory at once, with their scalars and working memory. Smaller windows need
/// more bucket additions for each point: products of a key of 2¹⁷ constraints take about a fifth longer than with all
/// points in memory.
pub const MAPPED_WINDOW_POINTS: usize = 1 << 14;

/// Uncompressed points in a mapped file, which are decoded anew for each product.
pub(crate) struct MappedPoints<G: MsmGroup> {
    file: Arc<MappedFile>,
    bytes: Range<usize>,
    group: PhantomData<fn() -> G>,
}

// === impl MappedPoints ===

impl<G: MsmGroup> MappedPoints<G> {
    /// The points in a range of bytes of a file; `None` if one of them is malformed.
    ///
    /// # Panics
    ///
    /// If the range exceeds the file.
    pub(crate) fn new(file: Arc<MappedFile>, bytes: Range<usize>) -> Option<Self> {
        let points = Self {
            file,
            bytes,
            group: PhantomData,
        };
        let mut windows = points.windows();
        windows
            .all(|window| points.read(window).is_some())
            .then_some(points)
    }

    pub(crate) fn len(&self) -> usize {
        self.bytes.len() / uncompressed_size::<G::Affine>()
    }

    /// The sum of all points, each times its scalar. It is wrong if another process writes to the file meanwhile.
    pub(crate) fn multiply(&self, scalar: impl Fn(usize) -> G::ScalarField + Sync) -> G {
        let products = self.windows().map(|window| {
            let scalars: Vec<_> = window.clone().into_par_iter().map(&scalar).collect();
            let scalars = Zeroizing::new(scalars);
            match self.read(window) {
                Some(points) => msm::<G>(&points, &scalars),
                None => G::default(),
            }
        });
        products.fold(G::default(), |sum, product| sum + product)
    }

    fn windows(&self) -> impl Iterator<Item = Range<usize>> + use<G> {
        let count = self.len();
        let starts = (0..count).step_by(MAPPED_WINDOW_POINTS);
        starts.map(move |start| start..count.min(start + MAPPED_WINDOW_POINTS))
    }

    /// Decodes the points of a window; `None` if one is malformed. The pages that were read are released.
    fn read(&self, window: Range<usize>) -> Option<Vec<G::Affine>> {
        let size = uncompressed_size::<G::Affine>();
        let start = self.bytes.start;
        let bytes = &self.file[start + window.start * size..start + window.end * size];
        let encoded = bytes.par_chunks_exact(size);
        let points = encoded
            .map(|bytes| G::Affine::deserialize_with_mode(bytes, Compress::No, Validate::No).ok())
            .collect();
        self.file.release(bytes);
        points
    }
}
