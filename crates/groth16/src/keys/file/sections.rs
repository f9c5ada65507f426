//! The parts of a key file's body.

use std::sync::Arc;

use proofmill_files::MappedFile;
use proofmill_kernels::MsmGroup;

use super::{Head, KeyError, little_endian};
use crate::keys::encoding::{read_points, uncompressed_size};
use crate::keys::key::{SparseQuery, VerifyingKey};
use crate::keys::mapped_points::MappedPoints;
use crate::{PointGroup, SnarkCurve};

/// A reader of a file's body: each method takes the next section.
///
/// The body must have the size that follows from the file's head; methods panic at the end of the bytes.
pub(crate) struct Sections<'a> {
    /// The bytes that were not yet read.
    pub(crate) rest: &'a [u8],
    /// Whether points are checked to be on their curve and in the subgroup.
    pub(crate) validate: bool,
    /// The file that the bytes are mapped from, if any: pages that were read are released.
    pub(crate) mapped: Option<&'a MappedFile>,
}

// === impl Sections ===

impl<'a> Sections<'a> {
    fn take(&mut self, count: usize) -> &'a [u8] {
        let (taken, rest) = self.rest.split_at(count);
        self.rest = rest;
        taken
    }

    pub(crate) fn points<A: PointGroup>(
        &mut self,
        count: usize,
        section: &'static str,
    ) -> Result<Vec<A>, KeyError> {
        let bytes = self.take(count * uncompressed_size::<A>());
        read_points(bytes, self.validate, self.mapped).ok_or(KeyError::Point { section })
    }

    pub(crate) fn point<A: PointGroup>(&mut self, section: &'static str) -> Result<A, KeyError> {
        self.points(1, section)?
            .pop()
            .ok_or(KeyError::Point { section })
    }

    pub(super) fn indices(
        &mut self,
        count: usize,
        variables: usize,
        section: &'static str,
    ) -> Result<Vec<u32>, KeyError> {
        let bytes = self.take(4 * count);
        let indices: Vec<u32> = bytes
            .chunks_exact(4)
            .map(|bytes| little_endian(bytes) as u32)
            .collect();
        let ascending = indices.is_sorted_by(|left, right| left < right);
        if ascending
            && indices
                .last()
                .is_none_or(|last| (*last as usize) < variables)
        {
            Ok(indices)
        } else {
            Err(KeyError::Index { section })
        }
    }

    /// Points that stay in `file`, which the body must be mapped from.
    pub(crate) fn mapped_points<G: MsmGroup<Affine: PointGroup>>(
        &mut self,
        count: usize,
        file: &Arc<MappedFile>,
        section: &'static str,
    ) -> Result<MappedPoints<G>, KeyError> {
        let bytes = self.take(count * uncompressed_size::<G::Affine>());
        let start = bytes.as_ptr() as usize - file.as_ptr() as usize;
        MappedPoints::new(Arc::clone(file), start..start + bytes.len())
            .ok_or(KeyError::Point { section })
    }

    pub(super) fn query<A: PointGroup>(
        &mut self,
        count: usize,
        variables: usize,
        section: &'static str,
    ) -> Result<SparseQuery<A>, KeyError> {
        let indices = self.indices(count, variables, section)?;
        Ok(SparseQuery {
            indices,
            points: self.points(count, section)?,
        })
    }

    pub(super) fn verifying_key<E: SnarkCurve>(
        &mut self,
        head: &Head,
    ) -> Result<VerifyingKey<E>, KeyError> {
        Ok(VerifyingKey {
            circuit: head.circuit,
            alpha_g1: self.point("alpha")?,
            beta_g2: self.point("beta")?,
            gamma_g2: self.point("gamma")?,
            delta_g2: self.point("delta")?,
            instance: self.points(head.instance, "instance")?,
        })
    }
}
