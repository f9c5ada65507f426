//! Kinds of proofs behind one type.

use std::any::Any;
use std::sync::Arc;

use crate::batch::{self, Outcome};
use crate::isolation::Suspicion;
use crate::kind::{Invalid, Kind, NoRandomness, UnusableKey};

/// A key of some kind.
pub(crate) type AnyKey = Arc<dyn Any + Send + Sync>;
/// A claim of some kind.
pub(crate) type AnyClaim = Arc<dyn Any + Send + Sync>;

/// [`Kind`], whatever its keys, claims and values are.
pub(crate) trait AnyKind: Send + Sync {
    fn name(&self) -> &str;
    fn has_keys(&self) -> bool;
    fn read_key(&self, bytes: &[u8]) -> Result<AnyKey, UnusableKey>;
    fn reduce(
        &self,
        key: Option<&AnyKey>,
        statement: &[u8],
        proof: &[u8],
    ) -> Result<AnyClaim, Invalid>;
    fn check(&self, claims: &[AnyClaim], suspicion: Suspicion) -> Result<Outcome, NoRandomness>;
}

impl<K: Kind> AnyKind for K {
    fn name(&self) -> &str {
        Kind::name(self)
    }

    fn has_keys(&self) -> bool {
        Kind::has_keys(self)
    }

    fn read_key(&self, bytes: &[u8]) -> Result<AnyKey, UnusableKey> {
        Ok(Arc::new(Kind::read_key(self, bytes)?))
    }

    fn reduce(
        &self,
        key: Option<&AnyKey>,
        statement: &[u8],
        proof: &[u8],
    ) -> Result<AnyClaim, Invalid> {
        let key = key.map(|key| {
            let key = Arc::clone(key).downcast::<K::Key>();
            key.expect("a key is stored with the kind that read it")
        });
        Ok(Arc::new(Kind::reduce(
            self,
            key.as_ref(),
            statement,
            proof,
        )?))
    }

    fn check(&self, claims: &[AnyClaim], suspicion: Suspicion) -> Result<Outcome, NoRandomness> {
        let claims: Vec<&K::Claim> = claims
            .iter()
            .map(|claim| {
                let claim = claim.downcast_ref();
                claim.expect("a batch has the claims of one kind")
            })
            .collect();
        batch::check(self, &claims, suspicion)
    }
}
