//! The kinds that a service takes.

use std::fmt;
use std::sync::Arc;

use proofmill_groth16::{Bls12_377, Bls12_381, Bn254};
use proofmill_ipa::Srs;

use super::{Groth16, Groth16Aggregate, GrumpkinIpa, Halo2, Kzg, Orchard, Partition};
use crate::erased::AnyKind;
use crate::keys::KeyError;
use crate::kind::Kind;

/// The kinds of proofs that a service takes. Requests name one.
#[derive(Clone, Default)]
pub struct Kinds {
    kinds: Vec<Arc<dyn AnyKind>>,
}

/// Characters of an unknown name that an error repeats.
const NAME_SHOWN: usize = 40;

// === impl Kinds ===

impl Kinds {
    /// An empty list.
    pub fn none() -> Self {
        Self::default()
    }

    /// All kinds of the program. Rollup proofs need `srs`, and are left out without it.
    pub fn all(srs: Option<&Srs>) -> Self {
        let kinds = Self::none()
            .with(Groth16::<Bn254>::new())
            .with(Groth16::<Bls12_381>::new())
            .with(Groth16::<Bls12_377>::new())
            .with(Groth16Aggregate::<Bn254>::new())
            .with(Groth16Aggregate::<Bls12_381>::new())
            .with(Partition::<Bn254>::new())
            .with(Partition::<Bls12_381>::new())
            .with(Kzg::new())
            .with(Halo2::new())
            .with(Orchard::new());
        match srs {
            Some(srs) => kinds.with(GrumpkinIpa::new(srs)),
            None => kinds,
        }
    }

    /// The list with one more kind.
    ///
    /// # Panics
    ///
    /// If a kind of the same name is in the list.
    #[must_use]
    pub fn with(mut self, kind: impl Kind) -> Self {
        let name = Kind::name(&kind).to_owned();
        assert!(self.number(&name).is_err(), "two kinds called {name}");
        self.kinds.push(Arc::new(kind));
        self
    }

    /// The kinds' names.
    pub fn names(&self) -> Vec<&str> {
        self.kinds.iter().map(|kind| kind.name()).collect()
    }

    /// The number of the kind of that name.
    pub(crate) fn number(&self, name: &str) -> Result<usize, KeyError> {
        let number = self.kinds.iter().position(|kind| kind.name() == name);
        number.ok_or_else(|| KeyError::UnknownKind {
            name: name.chars().take(NAME_SHOWN).collect(),
            known: self.names().join(", "),
        })
    }

    pub(crate) fn name(&self, number: usize) -> &str {
        self.kinds[number].name()
    }

    pub(crate) fn get(&self, number: usize) -> &Arc<dyn AnyKind> {
        &self.kinds[number]
    }
}

impl fmt::Debug for Kinds {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_list().entries(self.names()).finish()
    }
}
