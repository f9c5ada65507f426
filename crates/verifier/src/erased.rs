//! Kinds of proofs behind one type.

use std::any::Any;
use std::sync::Arc;

use proofmill_kernels::NoRandomness;

use crate::batch::{self, Outcome};
use crate::isolation::ExpectedFalseShare;
use crate::kind::{Invalid, Kind, ProofInput, UnusableKey};
use crate::request::Request;

/// A key of some kind.
pub(crate) type AnyKey = Arc<dyn Any + Send + Sync>;
/// A claim of some kind.
pub(crate) type AnyClaim = Arc<dyn Any + Send + Sync>;

/// A request with its key.
#[derive(Clone)]
pub(crate) struct AnyProof {
    pub(crate) request: Arc<Request>,
    pub(crate) key: Option<AnyKey>,
}

/// [`Kind`], whatever its keys, claims and values are.
pub(crate) trait AnyKind: Send + Sync {
    fn name(&self) -> &str;
    fn has_keys(&self) -> bool;
    fn read_key(&self, bytes: &[u8]) -> Result<AnyKey, UnusableKey>;
    fn reduce_each(&self, proofs: &[AnyProof]) -> Vec<Result<AnyClaim, Invalid>>;
    fn reduced_together(&self) -> usize;
    fn side_by_side(&self) -> usize;
    fn check(
        &self,
        claims: &[AnyClaim],
        expected_false_share: ExpectedFalseShare,
    ) -> Result<Outcome, NoRandomness>;
}

impl AnyProof {
    fn proof_input<K: Send + Sync + 'static>(&self) -> ProofInput<'_, K> {
        let key = self.key.as_ref().map(|key| {
            let key = Arc::clone(key).downcast();
            key.expect("a key is stored with the kind that read it")
        });
        ProofInput {
            key,
            statement: &self.request.statement,
            proof: &self.request.proof,
        }
    }
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

    fn reduce_each(&self, proofs: &[AnyProof]) -> Vec<Result<AnyClaim, Invalid>> {
        let inputs: Vec<_> = proofs.iter().map(AnyProof::proof_input).collect();
        let claims = Kind::reduce_each(self, &inputs);
        assert_eq!(claims.len(), proofs.len(), "a claim for each proof");
        let any = |claim: Result<K::Claim, Invalid>| Ok(Arc::new(claim?) as AnyClaim);
        claims.into_iter().map(any).collect()
    }

    fn reduced_together(&self) -> usize {
        Kind::reduced_together(self).max(1)
    }

    fn side_by_side(&self) -> usize {
        self.costs_alone().lanes.max(1)
    }

    fn check(
        &self,
        claims: &[AnyClaim],
        expected_false_share: ExpectedFalseShare,
    ) -> Result<Outcome, NoRandomness> {
        let claims: Vec<&K::Claim> = claims
            .iter()
            .map(|claim| {
                let claim = claim.downcast_ref();
                claim.expect("a batch has the claims of one kind")
            })
            .collect();
        batch::check(self, &claims, expected_false_share)
    }
}
