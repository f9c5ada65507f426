//! A key of one of the curves.

use std::sync::Arc;

use proofmill_groth16::{Engine, PreparedVerifyingKey, ResidentKey};

use super::traits::{Key, Work};
use super::work::TypedWork;

/// A key over the curve `E`.
pub(crate) struct HotKey<E: Engine> {
    pub(super) key: ResidentKey<E>,
    pub(super) verifying: PreparedVerifyingKey<E>,
    knows_constraints: bool,
}

// === impl HotKey ===

impl<E: Engine> HotKey<E> {
    pub(crate) fn new(key: ResidentKey<E>, knows_constraints: bool) -> Self {
        Self {
            verifying: PreparedVerifyingKey::from(key.vk().clone()),
            key,
            knows_constraints,
        }
    }
}

impl<E: Engine> Key for HotKey<E> {
    fn bytes(&self) -> u64 {
        self.key.bytes() as u64
    }

    fn work(self: Arc<Self>) -> Box<dyn Work> {
        Box::new(TypedWork::new(self))
    }

    fn knows_constraints(&self) -> bool {
        self.knows_constraints
    }
}
