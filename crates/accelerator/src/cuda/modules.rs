//! The kernels' sources.

use std::fmt;

use crate::group::{Group, ScalarField};

/// A file of kernels that is compiled separately.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) enum Module {
    /// Kernels that work on no field's elements: sorting and prefix sums.
    Sort,
    /// Kernels that work on scalars of this field.
    Scalars(ScalarField),
    /// Kernels that work on points of this group.
    Points(Group),
}

/// The headers that modules include, in an order in which each follows the headers that it includes itself.
const HEADERS: &[&str] = &[
    include_str!("../../kernels/cuda/platform.cuh"),
    include_str!("../../kernels/cuda/chain.cuh"),
    include_str!("../../kernels/cuda/field.cuh"),
    include_str!("../../kernels/cuda/moduli.cuh"),
    include_str!("../../kernels/cuda/weierstrass.cuh"),
    include_str!("../../kernels/cuda/edwards.cuh"),
    include_str!("../../kernels/cuda/scan.cuh"),
    include_str!("../../kernels/cuda/sort.cuh"),
    include_str!("../../kernels/cuda/recode.cuh"),
    include_str!("../../kernels/cuda/buckets.cuh"),
    include_str!("../../kernels/cuda/multiples.cuh"),
    include_str!("../../kernels/cuda/ntt.cuh"),
    include_str!("../../kernels/cuda/modules.cuh"),
];

impl Module {
    /// The whole source, in one piece that includes nothing.
    pub(crate) fn source(self) -> String {
        HEADERS
            .iter()
            .copied()
            .chain([self.text()])
            .flat_map(str::lines)
            .filter(|line| !line.starts_with("#include") && *line != "#pragma once")
            .fold(String::new(), |source, line| source + line + "\n")
    }

    /// The prefix of its kernels' names.
    pub(crate) const fn name(self) -> &'static str {
        match self {
            Self::Sort => "sort",
            Self::Scalars(field) => field.name(),
            Self::Points(group) => group.name(),
        }
    }

    /// Whether there are kernels for it: a card refuses work in a group or field that has none.
    pub(crate) const fn exists(self) -> bool {
        !self.text().is_empty()
    }

    /// The module's own text, without the headers; empty if it does not exist.
    const fn text(self) -> &'static str {
        match self {
            Self::Sort => include_str!("../../kernels/cuda/sort.cu"),
            Self::Scalars(ScalarField::Bls12_381) => {
                include_str!("../../kernels/cuda/bls12_381_scalars.cu")
            }
            Self::Scalars(ScalarField::Bls12_377) => {
                include_str!("../../kernels/cuda/bls12_377_scalars.cu")
            }
            Self::Scalars(ScalarField::Bn254) => {
                include_str!("../../kernels/cuda/bn254_scalars.cu")
            }
            Self::Points(Group::Bls12_381G1) => include_str!("../../kernels/cuda/bls12_381_g1.cu"),
            Self::Points(Group::Bls12_381G2) => include_str!("../../kernels/cuda/bls12_381_g2.cu"),
            Self::Points(Group::Bls12_377G1) => include_str!("../../kernels/cuda/bls12_377_g1.cu"),
            // Its base field is not an extension by a root of -1, which the kernels' quadratic field is.
            Self::Points(Group::Bls12_377G2) => "",
            Self::Points(Group::Bn254G1) => include_str!("../../kernels/cuda/bn254_g1.cu"),
            Self::Points(Group::Bn254G2) => include_str!("../../kernels/cuda/bn254_g2.cu"),
        }
    }
}

impl fmt::Display for Module {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}
